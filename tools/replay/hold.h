/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Waits while the memory stays allocated, so that it can be inspected.
 */
#ifndef RMM_TOOLS_REPLAY_HOLD_H
#define RMM_TOOLS_REPLAY_HOLD_H

/* From here on SIGTERM and SIGINT end hold_for(), before it or during it, and not the program. */
void hold_prepare(void);

/* Returns after so many seconds, or at SIGTERM or SIGINT. */
void hold_for(double seconds);

#endif /* RMM_TOOLS_REPLAY_HOLD_H */
