/* SPDX-License-Identifier: Apache-2.0 */
/* Keeps histories; see history.h. */
#include "model/history.h"

#include "node/figures.h"

void history_see(history_t *history, uint64_t bytes)
{
    uint64_t seen = atomic_load_explicit(&history->highest, memory_order_relaxed);
    if (bytes == FIGURE_UNKNOWN) {
        return;
    }
    while (bytes + 1 > seen && !atomic_compare_exchange_weak_explicit(
                                   &history->highest, &seen, bytes + 1,
                                   memory_order_relaxed, memory_order_relaxed)) {
    }
}

void history_step(history_t *history)
{
    uint64_t highest =
        atomic_exchange_explicit(&history->highest, 0, memory_order_relaxed);
    history->samples[history->next] =
        highest > 0 ? (float)(highest - 1) : HISTORY_MISSING;
    history->next = (history->next + 1) % HISTORY_SAMPLES;
    history->count += history->count < HISTORY_SAMPLES;
}

uint32_t history_copy(const history_t *history, float samples[HISTORY_SAMPLES])
{
    uint32_t first = history->next + HISTORY_SAMPLES - history->count;
    for (uint32_t i = 0; i < history->count; i++) {
        samples[i] = history->samples[(first + i) % HISTORY_SAMPLES];
    }
    return history->count;
}
