/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The sum over all live segments on a device. It takes 2 us for each
 * segment, and more with free blocks, so on a node with hundreds of programs the readers that
 * poll it would keep a core of the daemon busy. A sum over more than SUMS_EXACT segments, or
 * one that took more than SUMS_CHEAP_NS of CPU time, is cached for SUMS_SHARE times as
 * long as it took. So for any number of programs and readers a device's sums
 * take at most a SUMS_SHARE-th of one core. With few programs every read computes the sum anew.
 *
 * A sum is never used again after a segment came or went, a location was opened, or a
 * command was obeyed.
 *
 * Threads: any, each with the model lock held, shared is enough. A lock of its own, under
 * which nothing is read.
 */
#ifndef RMM_FUSEFS_SUMS_H
#define RMM_FUSEFS_SUMS_H

#include "model/level_figures.h"
#include "model/model.h"

#define SUMS_EXACT 64u
#define SUMS_CHEAP_NS 2000000u
#define SUMS_SHARE 20u

typedef struct sums sums_t;

/* NULL: no memory; sums_of_device() works without. */
sums_t *sums_open(void);
void sums_close(sums_t *sums);

void sums_of_device(model_t *model, uint32_t device, unsigned want, device_sum_t *out);

#endif /* RMM_FUSEFS_SUMS_H */
