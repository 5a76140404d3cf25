/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which resource and which size suit a log, from the figures of some candidates. Pure.
 *
 * Memory decides first, because it decides whether the program fits at all: of the candidates whose
 * safe capacity is within ADVICE_CLOSE of the least, the fastest is advised. Times within
 * ADVICE_NOISE of the fastest count as equal; then again the least memory decides, and the order of
 * the candidates. The safe capacity is that of capacity_curve_safe(): it and all larger ones run
 * the log. Where no candidate has one, the advice is the pool that grows to the least, without a
 * size.
 */
#ifndef RMM_TOOLS_REPLAY_ADVICE_H
#define RMM_TOOLS_REPLAY_ADVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* In hundredths of the peak. */
#define ADVICE_CLOSE 3
#define ADVICE_NOISE 1.1

#define ADVICE_SPEC_MAX 64
#define ADVICE_WHY_MAX 384

typedef struct advice_candidate {
    const char *resource; /* as RMM_RESOURCE has it, without a size */
    unsigned safe;        /* hundredths of the peak; 0: none that was tried */
    uint64_t safe_bytes;  /* 0 if safe is 0 */
    bool grows;           /* takes memory as it needs it */
    uint64_t
        grown_bytes; /* held from the driver at the end, from nothing; if it grows */
    double ns_per_operation; /* of the best run at the safe capacity */
} advice_candidate_t;

typedef struct advice {
    const advice_candidate_t *candidate;
    char spec[ADVICE_SPEC_MAX]; /* for RMM_RESOURCE */
    char why[ADVICE_WHY_MAX];   /* one sentence */
} advice_t;

/* False: no candidate runs the log. */
bool advice_decide(
    const advice_candidate_t *candidates, size_t count, uint64_t peak_bytes,
    advice_t *advice);

/* The size that an advice names for this capacity: rounded up to a unit that a reader can
 * compare, by less than a hundredth. */
uint64_t advice_round(uint64_t capacity_bytes);

#endif /* RMM_TOOLS_REPLAY_ADVICE_H */
