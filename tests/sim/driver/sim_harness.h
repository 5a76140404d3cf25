/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the simulated GPU share: kernels that note that they ran.
 */
#ifndef RMM_TESTS_SIM_SIM_HARNESS_H
#define RMM_TESTS_SIM_SIM_HARNESS_H

#include "harness/harness.h"

#include <stdbool.h>
#include <string.h>

#include <rmm/sim.h>
#include <rmm/stream.h>

#include "driver/driver.h"
#include "driver/sim/control.h"

#define SEEDS 200

#define assert_cuda(expression) assert_int_equal((expression), RMM_DRIVER_OK)

/* What ran, in the order in which it ran. */
typedef struct journal {
    int entries[4096];
    size_t count;
} journal_t;

static inline void journal_kernel(const void *const *params)
{
    journal_t *journal = *(journal_t *const *)params[0];

    if (journal->count < sizeof(journal->entries) / sizeof(journal->entries[0])) {
        journal->entries[journal->count] = *(const int *)params[1];
    }
    journal->count++;
}

/* Queue a kernel that writes `mark` into the journal. */
static inline int launch_mark(journal_t *journal, int mark, rmm_stream_t stream)
{
    const void *params[] = {&journal, &mark};
    const size_t param_bytes[] = {sizeof(journal), sizeof(mark)};

    return rmm_sim_launch("mark", journal_kernel, stream, params, param_bytes, 2);
}

/* The simulated GPU, or HIP's table over it. */
static inline const rmm_driver_t *sim_driver(void)
{
    rmm_status_t status;
    const rmm_driver_t *driver = rmm__driver(&status);

    assert_non_null(driver);
    assert_true(rmm_sim_active());
    return driver;
}

static inline rmm_stream_t make_stream(uint32_t flags)
{
    rmm_stream_t stream;

    assert_ok(rmm_stream_create(flags, &stream));
    return stream;
}

/* Of device 1; device 0 is current afterwards. */
static inline rmm_stream_t make_stream_elsewhere(void)
{
    rmm_stream_t stream;

    assert_cuda(rmm__sim_device_set(1));
    stream = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_cuda(rmm__sim_device_set(0));
    return stream;
}

/* Where `mark` stands in the journal; fails the test if it did not run once. */
static inline size_t position_of(const journal_t *journal, int mark)
{
    size_t position = SIZE_MAX;

    for (size_t i = 0; i < journal->count; i++) {
        if (journal->entries[i] == mark) {
            assert_int_equal(position, SIZE_MAX);
            position = i;
        }
    }
    assert_int_not_equal(position, SIZE_MAX);
    return position;
}

static inline void assert_order(const journal_t *journal, int first, int second)
{
    assert_true(position_of(journal, first) < position_of(journal, second));
}

#endif /* RMM_TESTS_SIM_SIM_HARNESS_H */
