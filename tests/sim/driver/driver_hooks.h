/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Answers that tests of pools put into a changed table of the simulated driver.
 */
#ifndef RMM_TESTS_SIM_DRIVER_HOOKS_H
#define RMM_TESTS_SIM_DRIVER_HOOKS_H

#include "sim/pool/pool_harness.h"

/* event_query: no event is ever done. */
static inline int is_never_done(rmm_driver_event_t event)
{
    (void)event;
    return RMM_DRIVER_NOT_READY;
}

/* stream_wait_event: no stream waits for another. */
static inline int refuse_to_wait(rmm_stream_t stream, rmm_driver_event_t event)
{
    (void)stream;
    (void)event;
    return RMM_DRIVER_INVALID_VALUE;
}

static bool is_key_hidden;

/* stream_key: while is_key_hidden, no stream can be told. */
static inline int hide_key(rmm_stream_t stream, rmm_stream_key_t *key)
{
    return is_key_hidden ? RMM_DRIVER_INVALID_VALUE
                         : sim_driver()->stream_key(stream, key);
}

#endif /* RMM_TESTS_SIM_DRIVER_HOOKS_H */
