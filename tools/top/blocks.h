/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of pools, from reports that programs make (lib/segment/segment_blocks.h): only of this
 * user's own programs, and for root of all.
 *
 * A program makes a report at its next allocation. One that does not allocate makes none, and is
 * shown by its last one, if it has made one. A daemon that asks the same program at the same
 * moment may have to ask again.
 */
#ifndef RMM_TOP_BLOCKS_H
#define RMM_TOP_BLOCKS_H

#include "segment/segment_blocks_reader.h"
#include "top/segments.h"

#define BLOCKS_WAIT_NS 100000000u
#define BLOCKS_PROGRAMS_MAX 64u /* that are asked at a time */

/* Whether this user may ask it, and see its blocks. */
bool blocks_are_shown_of(const open_segment_t *one);

/* Ask these programs, at most BLOCKS_PROGRAMS_MAX, and wait until all have answered, at most
 * BLOCKS_WAIT_NS. */
void blocks_ask(
    const segments_t *segments, open_segment_t *const *programs, uint32_t count);

/* A program's last report. False: there is none that holds together. */
bool blocks_open(
    const segments_t *segments, const open_segment_t *one, rmm_blocks_file_t *file);

/* Those of a resource, sorted; free() them. NULL: the report has none, or there is no memory. */
rmm_blocks_row_t *
blocks_read(const rmm_blocks_file_t *file, uint32_t resource_id, uint32_t *count_out);

#endif /* RMM_TOP_BLOCKS_H */
