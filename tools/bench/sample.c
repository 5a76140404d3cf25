/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A median is looked for by counting: the few repetitions need no sorted copy. Latencies
 * are many and are sorted once.
 */
#include "bench/sample.h"

#include <math.h>
#include <stdlib.h>

bool latencies_reserve(latencies_t *latencies, size_t more)
{
    if (latencies->capacity - latencies->count >= more) {
        return true;
    }
    size_t capacity = latencies->count + more;
    uint32_t *ns = realloc(latencies->ns, capacity * sizeof *ns);
    if (ns == NULL) {
        return false;
    }
    latencies->ns = ns;
    latencies->capacity = capacity;
    return true;
}

static int compare(const void *left, const void *right)
{
    const uint32_t *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

void latencies_sort(latencies_t *latencies)
{
    if (latencies->count > 0) {
        qsort(latencies->ns, latencies->count, sizeof *latencies->ns, compare);
    }
}

uint32_t latencies_percentile(const latencies_t *latencies, double part)
{
    double rank = ceil(part * (double)latencies->count);
    size_t index = rank < 1 ? 0 : (size_t)rank - 1;
    return latencies->ns[index < latencies->count ? index : latencies->count - 1];
}

void latencies_fini(latencies_t *latencies)
{
    free(latencies->ns);
    *latencies = (latencies_t){0};
}

/* The value that `rank` others stand before. */
static double ranked(const double *values, size_t count, size_t rank)
{
    for (size_t i = 0; i < count; i++) {
        size_t less = 0, same = 0;
        for (size_t j = 0; j < count; j++) {
            less += values[j] < values[i];
            same += values[j] == values[i];
        }
        if (less <= rank && rank < less + same) {
            return values[i];
        }
    }
    return NAN;
}

double sample_median(const double *values, size_t count)
{
    double upper = ranked(values, count, count / 2);
    return count % 2 != 0 ? upper : (ranked(values, count, count / 2 - 1) + upper) / 2;
}

double sample_min(const double *values, size_t count)
{
    return ranked(values, count, 0);
}

double sample_max(const double *values, size_t count)
{
    return ranked(values, count, count - 1);
}
