/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The findings in the side file. A loop that makes the same error with a new block each time
 * is one finding that counts: occurrences share an entry if they differ in nothing but the
 * block's address, of those about order or freed blocks in nothing but the block and the
 * streams, and refused frees in nothing but what was passed. Entries are never freed; when all are
 * taken, occurrences of other findings are counted as dropped.
 *
 * Not locked: the engine's lock protects it.
 */
#ifndef RMM_DIAG_FINDINGS_H
#define RMM_DIAG_FINDINGS_H

#include <stdbool.h>
#include <stdint.h>

#include <rmm/sys/diag.h>

#include "diag/diag_format.h"

#define RMM_DIAG_FINDINGS_COUNT 256u

typedef struct rmm_finding {
    rmm_diag_finding_kind_t kind;
    uint32_t call;   /* rmm_diag_event_kind_t */
    uint32_t access; /* RMM_DIAG_READS and so on */
    rmm_diag_block_v1_t block;
    uint64_t address, bytes; /* the range that was passed */
    bool tells_range;        /* another range makes another finding */
    const char *function;    /* that was called; NULL: unknown, or `user` names it */
    uint32_t user;           /* RMM_DIAG_NO_USER: unknown, or `function` names it */
    uint64_t stream_id;      /* of the call; UINT64_MAX: not noted */
    /* of order: what was before */
    uint32_t other_user, other_call;
    uint64_t other_stream_id;
    rmm_diag_confidence_level_t confidence;
    /* of the first occurrence: stacks of the block's allocation and free (stack_depot.h) */
    uint32_t origin, freed;
    uint32_t site; /* stack of the call, where that tells two findings apart; else 0 */
} rmm_finding_t;

typedef struct rmm_findings {
    rmm_diag_header_t *header; /* both in the side file; borrowed */
    rmm_diag_finding_t *entries;
    uint32_t origins[RMM_DIAG_FINDINGS_COUNT]; /* by entry; 0: none */
    uint32_t frees[RMM_DIAG_FINDINGS_COUNT];
    uint32_t sites[RMM_DIAG_FINDINGS_COUNT];
} rmm_findings_t;

void rmm__findings_add(rmm_findings_t *findings, const rmm_finding_t *finding);

#endif /* RMM_DIAG_FINDINGS_H */
