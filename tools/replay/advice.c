/* SPDX-License-Identifier: Apache-2.0 */
/* See advice.h. */
#include "replay/advice.h"

#include <inttypes.h>
#include <stdio.h>

#define KIB UINT64_C(1024)
#define MIB (KIB * KIB)
#define UNIT_COUNT_MIN 128 /* rounding up adds less than a hundredth */

static uint64_t unit_of(uint64_t bytes)
{
    return bytes >= UNIT_COUNT_MIN * MIB   ? MIB
           : bytes >= UNIT_COUNT_MIN * KIB ? KIB
                                           : 256;
}

uint64_t advice_round(uint64_t capacity_bytes)
{
    uint64_t unit = unit_of(capacity_bytes);
    return (capacity_bytes + unit - 1) / unit * unit;
}

static void write_spec(const advice_candidate_t *chosen, char spec[ADVICE_SPEC_MAX])
{
    uint64_t bytes = advice_round(chosen->safe_bytes);
    if (chosen->safe == 0) {
        snprintf(spec, ADVICE_SPEC_MAX, "%s", chosen->resource);
    } else if (bytes % MIB == 0) {
        snprintf(
            spec, ADVICE_SPEC_MAX, "%s:%" PRIu64 "MiB", chosen->resource, bytes / MIB);
    } else if (bytes % KIB == 0) {
        snprintf(
            spec, ADVICE_SPEC_MAX, "%s:%" PRIu64 "KiB", chosen->resource, bytes / KIB);
    } else {
        snprintf(spec, ADVICE_SPEC_MAX, "%s:%" PRIu64, chosen->resource, bytes);
    }
}

static const advice_candidate_t *
least_memory(const advice_candidate_t *candidates, size_t count)
{
    const advice_candidate_t *least = NULL;
    for (size_t i = 0; i < count; i++) {
        const advice_candidate_t *c = &candidates[i];
        if (c->safe > 0 && (least == NULL || c->safe < least->safe)) {
            least = c;
        }
    }
    return least;
}

static const advice_candidate_t *
least_growth(const advice_candidate_t *candidates, size_t count)
{
    const advice_candidate_t *least = NULL;
    for (size_t i = 0; i < count; i++) {
        const advice_candidate_t *c = &candidates[i];
        if (c->grows && (least == NULL || c->grown_bytes < least->grown_bytes)) {
            least = c;
        }
    }
    return least;
}

/* The fastest candidate that needs at most `most` hundredths. */
static const advice_candidate_t *
fastest(const advice_candidate_t *candidates, size_t count, unsigned most)
{
    const advice_candidate_t *best = NULL;
    for (size_t i = 0; i < count; i++) {
        const advice_candidate_t *c = &candidates[i];
        if (c->safe > 0 && c->safe <= most &&
            (best == NULL || c->ns_per_operation < best->ns_per_operation)) {
            best = c;
        }
    }
    return best;
}

/* The least memory of those that are close to the least, and as fast as the fastest of them. */
static const advice_candidate_t *
choose(const advice_candidate_t *candidates, size_t count, unsigned least)
{
    unsigned most = least + ADVICE_CLOSE;
    double ns = fastest(candidates, count, most)->ns_per_operation * ADVICE_NOISE;
    const advice_candidate_t *best = NULL;
    for (size_t i = 0; i < count; i++) {
        const advice_candidate_t *c = &candidates[i];
        if (c->safe > 0 && c->safe <= most && c->ns_per_operation <= ns &&
            (best == NULL || c->safe < best->safe)) {
            best = c;
        }
    }
    return best;
}

static void explain(
    const advice_candidate_t *chosen, const advice_candidate_t *least,
    const advice_candidate_t *quickest, char why[ADVICE_WHY_MAX])
{
    int used = snprintf(
        why, ADVICE_WHY_MAX,
        "%s runs the log in %.2f of its peak, at %.0f ns an operation; ",
        chosen->resource, chosen->safe / 100.0, chosen->ns_per_operation);
    char *rest = why + used;
    size_t room = ADVICE_WHY_MAX - (size_t)used;
    if (chosen->ns_per_operation > quickest->ns_per_operation * ADVICE_NOISE) {
        snprintf(
            rest, room, "%s would be faster (%.0f ns), but needs %.2f",
            quickest->resource, quickest->ns_per_operation, quickest->safe / 100.0);
    } else if (chosen->safe > least->safe) {
        snprintf(
            rest, room,
            "%s needs only slightly less memory (%.2f), but more time (%.0f ns)",
            least->resource, least->safe / 100.0, least->ns_per_operation);
    } else {
        snprintf(rest, room, "none needs less memory, and none is much faster");
    }
}

bool advice_decide(
    const advice_candidate_t *candidates, size_t count, uint64_t peak_bytes,
    advice_t *advice)
{
    const advice_candidate_t *least = least_memory(candidates, count);
    if (least != NULL) {
        advice->candidate = choose(candidates, count, least->safe);
        explain(
            advice->candidate, least, fastest(candidates, count, UINT32_MAX),
            advice->why);
    } else {
        advice->candidate = least_growth(candidates, count);
        if (advice->candidate == NULL) {
            return false;
        }
        snprintf(
            advice->why, sizeof advice->why,
            "no size up to 1.40 of the peak is safe; %s that grows from nothing takes "
            "the least, %.2f of the peak",
            advice->candidate->resource,
            (double)advice->candidate->grown_bytes / (double)peak_bytes);
    }
    write_spec(advice->candidate, advice->spec);
    return true;
}
