/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that can fail fails in turn: the N-th driver call, each function's N-th call,
 * the N-th request for host memory, for N = 1, 2, ... until the scenario gets through.
 * Each time every status is one of the contract, what the caller did not get stays
 * untouched, and nothing is left behind. Each N runs in a process of its own, because the
 * segment is made once per process; its leaks are the sanitizer's to see.
 *
 * The scenario runs in the child: it reports with CHECK_THAT(), never with cmocka, and
 * hands every status to check_failure().
 */
#ifndef RMM_TESTS_HARNESS_FAULT_SWEEP_H
#define RMM_TESTS_HARNESS_FAULT_SWEEP_H

#include "harness/harness.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmm/status.h>
#include <rmm/version.h>

#include "core/host_memory.h"
#include "driver/sim/control.h"

enum { SWEEP_ROUNDS = 3000 };
enum { SWEEP_GOT_THROUGH = 0, SWEEP_STRUCK = 10, SWEEP_BROKEN = 20 };

typedef void (*sweep_scenario_fn)(const void *context);

typedef struct sweep {
    sweep_scenario_fn scenario;
    const void *context;
} sweep_t;

/* In the test's own process, after each child; NULL: nothing. */
static void (*sweep_after_each)(void);

#define CHECK_THAT(condition)                                                          \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
            exit(SWEEP_BROKEN);                                                        \
        }                                                                              \
    } while (0)

static inline bool sweep_status_is_clean(rmm_status_t status)
{
    return status == RMM_OK || status == RMM_ERR_OUT_OF_MEMORY ||
           status == RMM_ERR_BAD_ALLOC || status == RMM_ERR_OUT_OF_HOST_MEMORY ||
           status == RMM_ERR_CUDA || status == RMM_ERR_NO_DEVICE;
}

static inline void check_failure(rmm_status_t status)
{
    CHECK_THAT(sweep_status_is_clean(status));
    CHECK_THAT(status == RMM_OK || rmm_last_error_message()[0] != '\0');
}

/* --- work ---------------------------------------------------------------------------- */

/* How often a use of a block found what another one wrote. */
static uint64_t sweep_mixups;

static inline void sweep_fill(const void *const *params)
{
    memset(
        *(void *const *)params[0], *(const int *)params[2], *(const size_t *)params[1]);
}

static inline void sweep_look(const void *const *params)
{
    const unsigned char *block = *(unsigned char *const *)params[0];
    size_t bytes = *(const size_t *)params[1];

    sweep_mixups +=
        block[0] != *(const int *)params[2] || memcmp(block, block + 1, bytes - 1) != 0;
}

/* Queue a use of a block that writes, and looks whether it is the only one. A test's own
 * launches are not counted by the plan. */
static inline void sweep_use(void *block, size_t bytes, rmm_stream_t stream)
{
    static int number;
    const void *params[] = {&block, &bytes, &number};
    const size_t param_bytes[] = {sizeof(block), sizeof(bytes), sizeof(number)};

    if (bytes == 0) {
        return;
    }
    number = (number + 1) % 256;
    CHECK_THAT(rmm_sim_launch("fill", sweep_fill, stream, params, param_bytes, 3) == 0);
    CHECK_THAT(rmm_sim_launch("look", sweep_look, stream, params, param_bytes, 3) == 0);
}

/* plan: "FUNCTION", or NULL for host memory. A refused mem_free keeps memory. */
static inline void sweep_child(const sweep_t *sweep, const char *plan, uint64_t nth)
{
    char text[64];
    bool struck;

    CHECK_THAT(rmm_sim_active());
    if (plan != NULL) {
        snprintf(text, sizeof(text), "%s:%" PRIu64, plan, nth);
        CHECK_THAT(rmm_sim_fail(text));
    } else {
        rmm__host_memory_fail(nth);
    }
    rmm__sim_reseed(nth);
    sweep->scenario(sweep->context);
    struck =
        plan != NULL ? rmm__sim_fault_has_struck() : rmm__host_memory_fail_struck();
    if (plan == NULL) {
        CHECK_THAT(rmm_sim_allocated_bytes(0) == 0);
    }
    CHECK_THAT(rmm_sim_device_synchronize() == 0);
    CHECK_THAT(sweep_mixups == 0);
    CHECK_THAT(rmm_sim_violations() == 0);
    exit(struck ? SWEEP_STRUCK : SWEEP_GOT_THROUGH);
}

static inline bool
sweep_gets_through(const sweep_t *sweep, const char *plan, uint64_t n)
{
    int status;
    pid_t pid;

    fflush(NULL);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        sweep_child(sweep, plan, n);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    if (sweep_after_each != NULL) {
        sweep_after_each();
    }
    if (!WIFEXITED(status) || (WEXITSTATUS(status) != SWEEP_GOT_THROUGH &&
                               WEXITSTATUS(status) != SWEEP_STRUCK)) {
        fail_msg(
            "%s:%" PRIu64 " ended with wait status %d",
            plan != NULL ? plan : "host memory", n, status);
    }
    return WEXITSTATUS(status) == SWEEP_GOT_THROUGH;
}

/* Fails every N-th until the scenario gets through; returns how many failed. */
static inline uint64_t sweep_all(const sweep_t *sweep, const char *plan, uint64_t step)
{
    uint64_t struck = 0;

    for (uint64_t nth = 1; nth < SWEEP_ROUNDS * step; nth += step) {
        if (sweep_gets_through(sweep, plan, nth)) {
            return struck;
        }
        struck++;
    }
    fail_msg("%s never got through", plan != NULL ? plan : "host memory");
    return 0;
}

/* The simulated GPU's own start, once in main() and not in each child: it has megabytes
 * to fill. Not through rmm__driver(), which refuses a child whose parent has called it. */
static inline void sweep_warm_up(void)
{
    rmm_status_t status;
    char message[256];
    const rmm_driver_t *driver =
        rmm_sim_driver(rmm_version_string(), &status, message, sizeof(message));
    void *block;

    if (driver == NULL || driver->mem_alloc(&block, 64u << 20) != RMM_DRIVER_OK ||
        driver->mem_free(block) != RMM_DRIVER_OK) {
        fprintf(stderr, "no simulated GPU: set RMM_DRIVER=sim\n");
        exit(2);
    }
}

/* Under a sanitizer every seventh only. */
static inline uint64_t sweep_step(void)
{
    return getenv("RMM_TEST_QUICK") != NULL ? 7 : 1;
}

#endif /* RMM_TESTS_HARNESS_FAULT_SWEEP_H */
