/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library that CUDA_INJECTION64_PATH names is started once, when the driver is open:
 * it may use the driver, as one that attaches does.
 */
#include "sim/driver/sim_harness.h"

#include <rmm/sys/diag.h>

void test_reenter(void);

static int started;
static int launches;

static void observer(void *context, const rmm_diag_event_v1_t *event)
{
    launches += event->kind == RMM_DIAG_LAUNCH;
}

/* Called by the injected library. */
void test_reenter(void)
{
    rmm_stream_t stream = make_stream(0); /* a deadlock here times out */

    started++;
    sim_driver()->observe(observer, NULL);
    assert_cuda(sim_driver()->stream_destroy(stream));
}

TEST_CASE(starts_the_injected_library_once_when_the_driver_is_open)
{
    journal_t journal = {.count = 0};

    assert_int_equal(started, 0);
    assert_non_null(sim_driver());
    assert_int_equal(started, 1);
    assert_cuda(launch_mark(&journal, 1, NULL));
    assert_int_equal(launches, 1);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(started, 1);
}
