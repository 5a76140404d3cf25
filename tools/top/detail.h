/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Details of the one program that the user looks at: the end of its log, findings of its
 * diagnosis, and the blocks of the selected resource. Users see those of their own programs, root
 * those of all, as in the tree of rmmfs.
 *
 * Plain data. Texts are clean (segment/clean_text.h).
 */
#ifndef RMM_TOP_DETAIL_H
#define RMM_TOP_DETAIL_H

#include <stdbool.h>
#include <stdint.h>

#include "segment/segment_blocks.h"

#define DETAIL_LOG_LINES 32u
#define DETAIL_FINDINGS 16u
#define DETAIL_LINE_BYTES 256

typedef struct detail_line {
    char text[DETAIL_LINE_BYTES];
    bool is_warning; /* and worse */
} detail_line_t;

typedef struct detail {
    uint64_t id;    /* of the program; 0: none is looked at */
    bool is_hidden; /* another user's: all else is empty */
    bool is_diagnosed, has_limits;
    uint64_t limit_bytes;         /* of the resource; RMM_SEGMENT_NO_LIMIT: none */
    uint64_t program_limit_bytes; /* on the resource's device */
    uint64_t findings_total;      /* repetitions included */
    uint32_t finding_count, log_count;
    detail_line_t findings[DETAIL_FINDINGS]; /* the last ones, oldest first */
    detail_line_t log[DETAIL_LOG_LINES];     /* the same */
    uint32_t resource_id;                    /* whose blocks these are */
    rmm_blocks_row_t *blocks;                /* sorted; NULL: none were reported */
    uint32_t block_count;
    uint64_t blocks_age_ns;
} detail_t;

#endif /* RMM_TOP_DETAIL_H */
