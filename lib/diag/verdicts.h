/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts on blocks that were freed, in the side file: sums over blocks that have verdict,
 * resource, location, first user, size class and allocation site in common. A table of fixed size:
 * a block that finds no entry for its site adds to one without a site, and what finds no entry at
 * all is counted. (Of a block that is live a reader judges itself.)
 *
 * Not locked: the engine's lock protects it.
 */
#ifndef RMM_DIAG_VERDICTS_H
#define RMM_DIAG_VERDICTS_H

#include <stdbool.h>
#include <stdint.h>

#include "diag/diag_format.h"

#define RMM_DIAG_VERDICTS_COUNT 2048u /* a power of two */

typedef struct rmm_verdicts {
    /* in the side file; borrowed */
    rmm_diag_header_t *header;
    rmm_diag_verdict_entry_t *entries;
} rmm_verdicts_t;

/* The block of this row is freed now; is_left: by the end of its resource, as the program has not.
 * No other verdict than that if it is older than since_ns: its uses were not all seen; 0: none
 * are. */
void rmm__verdicts_freed(
    rmm_verdicts_t *verdicts, const rmm_diag_row_t *row, bool is_left,
    uint64_t since_ns);

#endif /* RMM_DIAG_VERDICTS_H */
