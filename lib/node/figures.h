/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The figures of one level: a resource, a program on a device, a device. They are read from the
 * records of segments and added up here, for all who show the node: rmmfs, rmm-top and the Python
 * package. Each statistic of segment/stat_fields.h has a field of its name.
 *
 * A figure that a program does not publish is FIGURE_UNKNOWN. It is not 0, and it makes the sums
 * of that program unknown. A figure that no address space can hold is unknown, too. A sum over
 * programs leaves out unknown figures and counts the programs left out: otherwise any user could
 * make all sums unknown.
 *
 * The counters of a record are independent: what a formula takes from two of them is at least 0,
 * never a huge number.
 *
 * This library is linked into programs and modules of ours only, so its names have no prefix.
 * Threads: any; there is no state.
 */
#ifndef RMM_NODE_FIGURES_H
#define RMM_NODE_FIGURES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/segment_reader.h"

#define FIGURE_UNKNOWN UINT64_MAX
/* Bytes at one time: more than 57 bits of address space hold. What is added up for a program's
 * life may be more, but no pool hands out so much. */
#define FIGURE_GAUGE_MAX (UINT64_C(1) << 57)

typedef struct figures {
#define X(field, kind, unit, help) uint64_t field;
    RMM_EACH_STAT(X)
#undef X
    uint64_t current_count, cached_bytes, peak_upper_bytes;
    uint64_t largest_free_sum; /* over pools: what fragmentation is made of */
    uint64_t device_free_bytes;
    uint32_t left_out; /* of a device: programs that are not in all sums */
    bool torn;
} figures_t;

/* --- reading ------------------------------------------------------------------------------ */

/* A figure that cannot be true. */
typedef struct figure_lie {
    const char *name; /* NULL: there is none */
    uint64_t value;
} figure_lie_t;

/* The figures of a record. Returns the first that cannot be true; all such are unknown. What
 * is free is not in the record of a location: figures_add_free(). */
figure_lie_t figures_of_location(
    const rmm_segment_t *segment, const rmm_record_t *record, figures_t *out);
figure_lie_t figures_of_slot(
    const rmm_segment_t *segment, const rmm_record_t *record, figures_t *out);

/* False: no program can have reached it. kind: RMM_KIND_*. */
bool figure_is_plausible(uint16_t kind, uint64_t value);

/* --- by name ------------------------------------------------------------------------------ */

/* A figure that is shown, for lists of all of a level. */
typedef struct figure_name {
    const char *name;
    size_t offset; /* in figures_t */
} figure_name_t;

/* The figures of a location or a device, and of a resource; a NULL name ends the list. */
extern const figure_name_t figures_of_locations[], figures_of_resources[];

uint64_t figure_value(const figures_t *figures, size_t offset);
uint64_t *figure_at(figures_t *figures, size_t offset);

/* --- statistics of newer programs --------------------------------------------------------- */

/* Whether the schema of a segment has statistics that this version does not know; most have
 * none. */
bool figures_has_newer(const rmm_segment_t *segment);

/* Those of a record of a location or a resource (RMM_SCHEMA_*), as far as they can be true. */
typedef void (*newer_figure_fn)(
    const rmm_segment_schema_t *entry, uint64_t value, void *arg);
void figures_each_newer(
    const rmm_segment_t *segment, uint16_t scope, const rmm_record_t *record,
    newer_figure_fn visit, void *arg);

/* --- adding ------------------------------------------------------------------------------- */

/* a + b; unknown if one is; saturates. */
uint64_t figure_add(uint64_t a, uint64_t b);
/* The same without what is unknown; unknown if both are. */
uint64_t figure_add_known(uint64_t a, uint64_t b);
/* a - b, at least 0; unknown if one is. */
uint64_t figure_subtract(uint64_t a, uint64_t b);

/* Add a part to a sum (marks too: an upper bound); cached_bytes is that of the sum. */
void figures_add(figures_t *sum, const figures_t *part);
/* Add what is free in a resource to its location. */
void figures_add_free(figures_t *location, const figures_t *resource);
/* Mark the free memory of a location as unknown. */
void figures_forget_free(figures_t *figures);
/* A sum of several programs has no marks. */
void figures_forget_marks(figures_t *figures);
/* Keep only what a program that has ended contributes: its counters, and its highest mark. */
void figures_leave_counters(figures_t *figures);

/* The live programs on a device, and what makes its marks. All zero before the first part. */
typedef struct device_sum {
    figures_t figures;       /* sums; marks in it mean nothing */
    uint32_t member_count;   /* that were read */
    uint32_t left_out;       /* of these, not all figures are in the sums */
    uint32_t known, unknown; /* a bit for each sum: some program's figure is */
    uint64_t largest_peak_bytes, largest_peak_count; /* of one program, since reset */
    uint64_t largest_lifetime_bytes;
    uint64_t upper_bytes; /* sum of the programs' marks */
} device_sum_t;

void figures_add_to_device(device_sum_t *sum, const figures_t *part);
/* After the last part: a figure that no part has is unknown; without programs all is 0. */
void figures_end_device(device_sum_t *sum);

/* 1 - largest free / free in thousandths; 0 if nothing is free, FIGURE_UNKNOWN. */
uint64_t figures_fragmentation(const figures_t *figures);

#endif /* RMM_NODE_FIGURES_H */
