/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of one level of the tree: a resource, a process on a device, a device.
 * Numbers only; render.c makes text of them, and marks.c keeps figures that outlive a
 * process.
 *
 * A figure that a process does not publish is FIGURE_UNKNOWN. It is not 0, and it makes the
 * sums of that process unknown. A figure that no address space can hold is unknown, too, and
 * the segment is marked and logged. A sum over processes leaves out unknown figures and counts
 * the processes left out: otherwise any user could make all sums unknown.
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
#ifndef RMM_FUSEFS_FIGURES_H
#define RMM_FUSEFS_FIGURES_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"
#include "slots.h"

#define FIGURE_UNKNOWN UINT64_MAX

/* What to read beyond the plain counters. */
#define FIGURES_MARKS 1u /* peak_*: needs the control page */
#define FIGURES_FREE 2u  /* free_bytes, largest_free_bytes, fragmentation */
#define FIGURES_ALL 3u

/* Slots that are read for what is free in one process; beyond, that is unknown. */
#define FIGURES_OF_PROCESS_SLOTS 1024u

typedef struct figures {
#define X(field, kind, unit, help) uint64_t field;
    RMM_EACH_STAT(X)
#undef X
    uint64_t current_count, cached_bytes, peak_upper_bytes;
    uint64_t largest_free_sum; /* over pools: what fragmentation is made of */
    uint64_t device_free_bytes;
    uint32_t left_out; /* of a device: processes that are not in all sums */
    bool torn;
} figures_t;

void figures_of_resource(const slot_view_t *view, unsigned want, figures_t *out);

/* A process on one device, over its segments; false: it has nothing there. */
bool figures_of_process(
    const process_t *process, uint32_t device, unsigned want, figures_t *out);

/* The live members on a device, and what makes its marks. */
typedef struct device_sum {
    figures_t figures;       /* sums; marks in it mean nothing */
    uint32_t member_count;   /* that were read */
    uint32_t left_out;       /* of these, not all figures are in the sums */
    uint32_t known, unknown; /* a bit for each sum: some member's figure is */
    uint64_t largest_peak_bytes, largest_peak_count; /* of one member, since reset */
    uint64_t largest_lifetime_bytes;
    uint64_t upper_bytes; /* sum of the members' marks */
} device_sum_t;

/* What is free: as far as each user's allowance goes (allowances.h). */
void figures_sum_device(
    model_t *model, uint32_t device, unsigned want, device_sum_t *sum);

/* The sums by their parts. Of a member that is over only the counters stay. */
void figures_add_member(figures_t *sum, const member_t *member, const figures_t *part);
void figures_add_to_device(device_sum_t *sum, const figures_t *part);
/* After the last part: a figure that no part has is unknown; without members all is 0. */
void figures_end_device(device_sum_t *sum);
/* What is free in a resource, to its location. */
void figures_add_free(figures_t *location, const figures_t *resource);

/* A location of one member; false: it cannot be read. */
bool figures_read_location(
    member_t *member, uint32_t location, unsigned want, figures_t *out);

/* Add a part to a sum (marks too: an upper bound); cached_bytes is that of the sum. */
void figures_add(figures_t *sum, const figures_t *part);

/* 1 - largest free / free in thousandths; 0 if nothing is free, FIGURE_UNKNOWN. */
uint64_t figures_fragmentation(const figures_t *figures);

/* a + b; unknown if one is; saturates. */
uint64_t figure_add(uint64_t a, uint64_t b);
/* The same without what is unknown; unknown if both are. */
uint64_t figure_add_known(uint64_t a, uint64_t b);

/* False: no process can have reached it. kind: RMM_KIND_*. */
bool figure_is_plausible(uint16_t kind, uint64_t value);

#endif /* RMM_FUSEFS_FIGURES_H */
