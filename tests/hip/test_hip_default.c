/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which driver a process uses when RMM_DRIVER is unset. The answer is final, so each case looks
 * for it in a process of its own.
 */
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmm/rmm.h>

/* The status of _exit() is the number of the failed line; 0 is success. */
static void in_child(void (*function)(void))
{
    int status;
    pid_t child = fork();

    assert_true(child >= 0);
    if (child == 0) {
        function();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) != 0) {
        fail_msg("line %d", WEXITSTATUS(status));
    }
}

#define CHILD_CHECK(condition)                                                         \
    do {                                                                               \
        if (!(condition)) {                                                            \
            _exit(__LINE__);                                                           \
        }                                                                              \
    } while (0)

static void use_hip(void)
{
    unsetenv("RMM_DRIVER");
    CHILD_CHECK(rmm_driver_set_default("hip") == RMM_OK);
    CHILD_CHECK(strcmp(rmm_driver_name(), "hip") == 0);
    CHILD_CHECK(rmm_driver_set_default("hip") == RMM_OK);
    CHILD_CHECK(rmm_driver_set_default("cuda") == RMM_ERR_UNSUPPORTED);
    CHILD_CHECK(strstr(rmm_last_error_message(), "cannot become 'cuda'") != NULL);
    CHILD_CHECK(strcmp(rmm_driver_name(), "hip") == 0);
}

TEST_CASE(default_of_the_program_is_used_and_stays)
{
    in_child(use_hip);
}

static void empty_is_unset(void)
{
    setenv("RMM_DRIVER", "", 1);
    CHILD_CHECK(rmm_driver_set_default("cuda") == RMM_OK);
    CHILD_CHECK(rmm_driver_set_default("hip") == RMM_OK);
    CHILD_CHECK(strcmp(rmm_driver_name(), "hip") == 0);
}

TEST_CASE(last_default_counts_and_an_empty_variable_is_unset)
{
    in_child(empty_is_unset);
}

static void variable_wins(void)
{
    setenv("RMM_DRIVER", "sim", 1);
    CHILD_CHECK(rmm_driver_set_default("hip") == RMM_OK);
    CHILD_CHECK(strcmp(rmm_driver_name(), "sim") == 0);
    CHILD_CHECK(rmm_driver_set_default("cuda") == RMM_ERR_UNSUPPORTED);
}

TEST_CASE(variable_wins_over_the_default)
{
    in_child(variable_wins);
}

static void unknown_names(void)
{
    unsetenv("RMM_DRIVER");
    CHILD_CHECK(rmm_driver_set_default(NULL) == RMM_ERR_INVALID_ARGUMENT);
    CHILD_CHECK(rmm_driver_set_default("") == RMM_ERR_INVALID_ARGUMENT);
    CHILD_CHECK(rmm_driver_set_default("HIP") == RMM_ERR_INVALID_ARGUMENT);
    CHILD_CHECK(strstr(rmm_last_error_message(), "'HIP' is unknown") != NULL);
    CHILD_CHECK(rmm_driver_set_default("hip") == RMM_OK);
    CHILD_CHECK(strcmp(rmm_driver_name(), "hip") == 0);
}

TEST_CASE(unknown_names_are_refused_and_change_nothing)
{
    in_child(unknown_names);
}
