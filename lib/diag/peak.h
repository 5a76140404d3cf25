/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the most bytes that were ever live were made of, for each location (a GPU, or the host's
 * memory).
 *
 * A new peak comes with nearly every allocation while a program grows, so it must cost nothing: it
 * notes when it was. A block belongs to the peak if it was allocated by then (allocation times
 * grow from block to block) and is live, or was freed since: then it was added to a part when it
 * was freed. A new peak makes all parts stale, and a stale part is as good as free.
 *
 * Parts of a location are a hash table of fixed size. A block that finds none for its allocation
 * site adds to one without a site; what finds none at all is the rest.
 *
 * Not locked: the engine's lock protects it.
 */
#ifndef RMM_DIAG_PEAK_H
#define RMM_DIAG_PEAK_H

#include <stdint.h>

#include "diag/diag_format.h"

#define RMM_DIAG_PARTS_COUNT 512u /* of each location; a power of two */

typedef struct rmm_peak {
    int32_t device;
    uint64_t live_bytes, live_count;
    uint64_t bytes, when_ns; /* of the peak */
} rmm_peak_t;

typedef struct rmm_peaks {
    rmm_peak_t locations[RMM_DIAG_PEAKS_COUNT];
    uint32_t used;
    /* in the side file; borrowed */
    rmm_diag_header_t *header;
    rmm_diag_peak_t *entries;
    rmm_diag_part_t *parts;
} rmm_peaks_t;

/* The block of this row was allocated, or is about to be forgotten. */
void rmm__peaks_allocated(rmm_peaks_t *peaks, const rmm_diag_row_t *row);
void rmm__peaks_freed(rmm_peaks_t *peaks, const rmm_diag_row_t *row);

#endif /* RMM_DIAG_PEAK_H */
