/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A figure over the last time: a ring of HISTORY_SAMPLES samples, each the highest value that was
 * seen in its step. With the default of HISTORY_SECONDS, the last hour in steps of 30 seconds.
 *
 * The code that reads the figure anyway calls history_see(): the looks at all programs
 * (marks_take()), and readers of a device. So a history costs no read of a segment. A step in
 * which the figure was not read has no sample. Samples are for pictures: a float, which is exact to
 * 24 bits. No history outlives the daemon.
 *
 * Memory: 500 bytes; a device has three, a job one.
 *
 * Threads: history_see() under the model's lock, shared is enough; history_step() with it held
 * alone.
 */
#ifndef RMM_FUSEFS_HISTORY_H
#define RMM_FUSEFS_HISTORY_H

#include <stdatomic.h>
#include <stdint.h>

#define HISTORY_SAMPLES 120u
#define HISTORY_SECONDS 3600u
#define HISTORY_MISSING (-1.0f)

typedef struct history {
    _Atomic(uint64_t) highest; /* of this step, and one more; 0: none was seen */
    float samples[HISTORY_SAMPLES];
    uint32_t next, count;
} history_t;

/* What is not known is not seen. */
void history_see(history_t *history, uint64_t bytes);
/* The step is over: its highest becomes the last sample. */
void history_step(history_t *history);

/* The samples, the oldest first; returns how many. */
uint32_t history_copy(const history_t *history, float samples[HISTORY_SAMPLES]);

#endif /* RMM_FUSEFS_HISTORY_H */
