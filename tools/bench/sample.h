/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Summary of repeated measurements: median, extremes, percentiles. Pure.
 */
#ifndef RMM_TOOLS_BENCH_SAMPLE_H
#define RMM_TOOLS_BENCH_SAMPLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Nanoseconds that single operations took; more than 4 s counts as that. */
typedef struct latencies {
    uint32_t *ns;
    size_t count, capacity;
} latencies_t;

/* Room for so many more. False: no host memory. */
bool latencies_reserve(latencies_t *latencies, size_t more);

/* One more, for which there is room. */
static inline void latencies_add(latencies_t *latencies, uint64_t ns)
{
    latencies->ns[latencies->count++] = ns < UINT32_MAX ? (uint32_t)ns : UINT32_MAX;
}

/* In rising order, as latencies_percentile() needs them. */
void latencies_sort(latencies_t *latencies);

/* The smallest that at least this part (0 to 1) of all does not exceed; count > 0. */
uint32_t latencies_percentile(const latencies_t *latencies, double part);

void latencies_fini(latencies_t *latencies);

/* Median, of an even number the mean of the middle two; values stay as they are. */
double sample_median(const double *values, size_t count);
double sample_min(const double *values, size_t count);
double sample_max(const double *values, size_t count);

#endif /* RMM_TOOLS_BENCH_SAMPLE_H */
