/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks that made a peak, put together from a side file: live blocks that are as old as the
 * peak, and those freed since (peak.h). Exact for a program that has ended; of one that runs,
 * blocks that are freed during the read may be missing, which the result states.
 */
#ifndef RMM_DIAG_PEAK_READER_H
#define RMM_DIAG_PEAK_READER_H

#include "diag/block_groups.h"
#include "diag/diag_reader.h"

typedef struct rmm_diag_composition {
    rmm_diag_peak_info_t peak;
    uint64_t missing_bytes; /* of the peak that no group has */
} rmm_diag_composition_t;

/*
 * Groups are by resource, first user and site, most bytes first; what was in `groups` is cleared.
 * False: there is no peak of that index, or a new one came at each of several looks.
 */
bool rmm__diag_read_composition(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_groups_t *groups,
    rmm_diag_composition_t *out);

#endif /* RMM_DIAG_PEAK_READER_H */
