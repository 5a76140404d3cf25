/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which capacities something fits in, by trying. Pure.
 *
 * capacity_search() finds the smallest: from the lower bound upwards in steps that double until
 * a trial fits, then by bisection down to the granularity. This takes few trials where little
 * more than the lower bound suffices, and none at the upper bound unless it is needed. A pool's
 * answer need not be monotone: a little more room can change the layout for the worse. Like
 * every bisection it finds a capacity that fits, where one granule less does not.
 *
 * capacity_curve_measure() tries every capacity from the peak to 1.40 of it in steps of a
 * hundredth, and so sees what a bisection cannot: capacities that fail above one that
 * fits, the holes, and the capacity from which on all fit, the safe one.
 */
#ifndef RMM_TOOLS_REPLAY_CAPACITY_H
#define RMM_TOOLS_REPLAY_CAPACITY_H

#include <stdbool.h>
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

#define CAPACITY_CURVE_COUNT 41

/* The capacity number i is (100 + i) hundredths of the peak, rounded up to the unit. */
typedef struct capacity_curve {
    uint64_t bytes[CAPACITY_CURVE_COUNT];
    bool fits[CAPACITY_CURVE_COUNT];
} capacity_curve_t;

/* False: a trial failed. */
bool capacity_curve_measure(
    uint64_t peak_bytes, capacity_trial_fn trial, void *context,
    capacity_curve_t *curve);

/* In hundredths of the peak: this capacity and all above fit; 0: the last does not. */
unsigned capacity_curve_safe(const capacity_curve_t *curve);

/* How many capacities do not fit although a smaller one does. */
unsigned capacity_curve_holes(const capacity_curve_t *curve);

#endif /* RMM_TOOLS_REPLAY_CAPACITY_H */
