/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits while the memory stays allocated, so that it can be inspected.
 */
#ifndef RMM_TOOLS_REPLAY_HOLD_H
#define RMM_TOOLS_REPLAY_HOLD_H

/* Call before the work: SIGTERM and SIGINT then wait for hold_for(). */
void hold_prepare(void);

/* Returns after so many seconds, or at SIGTERM or SIGINT. */
void hold_for(double seconds);

#endif /* RMM_TOOLS_REPLAY_HOLD_H */
