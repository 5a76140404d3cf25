/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The smallest capacity with which something fits, by trying. Pure.
 *
 * From the lower bound upwards in steps that double until a trial fits, then bisected
 * down to the granularity: few trials where little more than the lower bound suffices,
 * and none at the upper bound unless it is needed. A pool's answer need not be monotone
 * (a little more room can change the layout for the worse), so that the result is a
 * capacity that fits with one granule less that does not, as every bisection finds.
 */
#ifndef RMM_TOOLS_REPLAY_CAPACITY_H
#define RMM_TOOLS_REPLAY_CAPACITY_H

#include <stdint.h>

typedef enum capacity_trial {
    CAPACITY_FITS,
    CAPACITY_TOO_SMALL,
    CAPACITY_TRIAL_FAILED /* for another reason: the search stops */
} capacity_trial_t;

typedef capacity_trial_t (*capacity_trial_fn)(void *context, uint64_t capacity_bytes);

typedef enum capacity_result {
    CAPACITY_FOUND,
    CAPACITY_NOT_FOUND, /* the upper bound is too small */
    CAPACITY_STOPPED    /* a trial failed */
} capacity_result_t;

/* Where pools round to: every capacity tried is a multiple of it. */
#define CAPACITY_UNIT 256

/* A thousandth of the peak, at least 256 bytes. */
uint64_t capacity_granularity(uint64_t peak_bytes);

/* Between peak_bytes and four times that. */
capacity_result_t capacity_search(
    uint64_t peak_bytes, capacity_trial_fn trial, void *context, uint64_t *found);

#endif /* RMM_TOOLS_REPLAY_CAPACITY_H */
