/* SPDX-License-Identifier: Apache-2.0 */
/*
 * <rmm/sim.h> for rmm-replay, which is not linked with librmm-sim: it also runs where that library
 * is not installed.
 */
#ifndef RMM_TOOLS_REPLAY_SIMULATED_H
#define RMM_TOOLS_REPLAY_SIMULATED_H

#include <rmm/sim.h>

#define SIMULATED_MAP(X)                                                               \
    X(launch)                                                                          \
    X(event_create)                                                                    \
    X(event_destroy)                                                                   \
    X(event_record)                                                                    \
    X(stream_wait_event)                                                               \
    X(device_synchronize)                                                              \
    X(run_promptly)

/* Each is the function rmm_sim_NAME(). */
typedef struct simulated {
#define X(name) __typeof__(&rmm_sim_##name) name;
    SIMULATED_MAP(X)
#undef X
} simulated_t;

/* NULL: this process does not run on the simulated GPU. */
const simulated_t *simulated(void);

#endif /* RMM_TOOLS_REPLAY_SIMULATED_H */
