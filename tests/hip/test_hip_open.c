/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the library finds, or says that it lacks. It looks once in a process, so each
 * situation is a test of its own: RMM_TEST_LINE is a part of the message, or of the line in
 * the log where HIP is found; RMM_TEST_STATUS the status.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/rmm.h>

#include "driver/driver.h"

static unsigned lines;
static char last_line[512];

static void note(rmm_log_level_t level, const char *message, void *arg)
{
    if (strstr(message, "driver hip") != NULL) {
        assert_int_equal(level, RMM_LEVEL_INFO);
        lines++;
        snprintf(last_line, sizeof(last_line), "%s", message);
    }
}

static void assert_says(const char *text, const char *part)
{
    if (strstr(text, part) == NULL) {
        fail_msg("'%s' lacks '%s'", text, part);
    }
}

static void answers_or_says_what_is_missing(void **state)
{
    rmm_status_t expected = atoi(getenv("RMM_TEST_STATUS"));
    rmm_resource_t *mr = NULL;

    assert_ok(rmm_log_set_level(RMM_LEVEL_INFO));
    assert_ok(rmm_log_to_callback(note, NULL));
    for (int i = 0; i < 3; i++) { /* the answer is final */
        assert_int_equal(rmm_cuda_resource_create(&mr), expected);
        if (expected == RMM_OK) {
            rmm_resource_release(mr);
        } else {
            assert_null(mr);
            assert_says(rmm_last_error_message(), getenv("RMM_TEST_LINE"));
        }
    }
    assert_int_equal(lines, expected == RMM_OK);
    if (expected == RMM_OK) {
        assert_says(last_line, getenv("RMM_TEST_LINE"));
        assert_says(last_line, "has not been run on AMD hardware");
    }
}

/* Whatever else is installed, and whether or not there is a GPU. */
static void host_memory_works_without_a_gpu(void **state)
{
    rmm_resource_t *host;
    void *block;

    assert_ok(rmm_host_resource_create(&host));
    assert_ok(rmm_resource_alloc_sync(host, 1000, 0, &block));
    rmm_resource_dealloc_sync(host, block, 1000, 0);
    rmm_resource_release(host);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(answers_or_says_what_is_missing),
        cmocka_unit_test(host_memory_works_without_a_gpu)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
