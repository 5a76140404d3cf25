/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of one level of the tree, read from the members of the model: a resource, a process
 * on a device, a device. lib/node/figures.h reads and adds them, render.c makes text of them, and
 * marks.c keeps those that outlive a process. A segment with a figure that cannot be true is
 * marked and logged.
 *
 * Marks. A reset is a request in the control page. Until the process has obeyed it (its
 * *_reset_seen is the request's number) a mark is the current value. A process without
 * a control page cannot receive the request, so it contributes its current value to a
 * device's mark.
 *
 * Cost: three preads for each live segment (the stripes, the record, the stripes
 * again), four with marks; with free blocks two more and five for each resource.
 * Threads: the caller holds the model lock, shared is enough.
 */
#ifndef RMM_FUSEFS_LEVEL_FIGURES_H
#define RMM_FUSEFS_LEVEL_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"
#include "model/slots.h"
#include "node/figures.h"

/* Figures to read beyond the plain counters. */
#define FIGURES_MARKS 1u /* peak_*: needs the control page */
#define FIGURES_FREE 2u  /* free_bytes, largest_free_bytes, fragmentation */
#define FIGURES_ALL 3u

/* Slots that are read for what is free in one process; beyond, that is unknown. */
#define FIGURES_OF_PROCESS_SLOTS 1024u

void figures_of_resource(const slot_view_t *view, unsigned want, figures_t *out);

/* A process on one device, over its segments; false: it has nothing there. */
bool figures_of_process(
    const process_t *process, uint32_t device, unsigned want, figures_t *out);

/* The live members on a device. What is free: as far as each user's allowance goes
 * (allowances.h). */
void figures_sum_device(
    model_t *model, uint32_t device, unsigned want, device_sum_t *sum);

/* A location of one member; false: it cannot be read. */
bool figures_read_location(
    member_t *member, uint32_t location, unsigned want, figures_t *out);

/* Add a part to the sum of its process. Of a member that is over only the counters stay. */
void figures_add_member(figures_t *sum, const member_t *member, const figures_t *part);

#endif /* RMM_FUSEFS_LEVEL_FIGURES_H */
