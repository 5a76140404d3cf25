/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-replay --advise: runs the candidates over a log on the simulated GPU and prints which of them
 * suits it. Times are those of the CPU; what the driver of a real GPU takes is not in them.
 */
#ifndef RMM_TOOLS_REPLAY_ADVISE_H
#define RMM_TOOLS_REPLAY_ADVISE_H

#include <stdbool.h>

#include "replay/plan.h"

/* Chooses the simulated GPU; call it before anything that needs a device. False: the environment
 * asks for another one, and a message was printed. */
bool advise_prepare(void);

/* False: a message was printed. */
bool advise(const plan_t *plan, const char *log, bool json);

#endif /* RMM_TOOLS_REPLAY_ADVISE_H */
