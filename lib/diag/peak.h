/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks that made up the peak of live bytes, for each location (a GPU, or the host's
 * memory).
 *
 * While a program grows, nearly every allocation is a new peak, so recording one must be cheap:
 * only its time is stored. A block belongs to the peak if it was allocated before that time
 * (allocation times rise from block to block) and is live or was freed since; in the latter case
 * its free added it to a part. A new peak makes all parts stale, and a stale part can be reused.
 *
 * The parts of a location are a hash table of fixed size. A block for whose allocation site no
 * part is left is added to a part without a site; if that fails, it counts as not attributed.
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
