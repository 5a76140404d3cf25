/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of pools, from reports that programs make (lib/segment/segment_blocks.h). A user can
 * ask only programs of their own; root can ask all.
 *
 * A program makes a report at its next allocation. A program that does not allocate makes none;
 * then its last report is shown, if there is one. If rmmfs asks the same program at the same
 * moment, it may have to ask again.
 */
#ifndef RMM_TOP_BLOCKS_H
#define RMM_TOP_BLOCKS_H

#include "node/segments.h"
#include "segment/segment_blocks_reader.h"

#define BLOCKS_WAIT_NS 100000000u
#define BLOCKS_PROGRAMS_MAX 64u /* programs with a request at a time */

/* Whether this user may ask the program, and see its blocks. */
bool blocks_are_shown_of(const open_segment_t *one);

/* Ask these programs, at most BLOCKS_PROGRAMS_MAX, and wait until all have answered, at most
 * BLOCKS_WAIT_NS. */
void blocks_ask(
    const segments_t *segments, open_segment_t *const *programs, uint32_t count);

/* Opens a program's last report. False: there is none, or it is inconsistent. */
bool blocks_open(
    const segments_t *segments, const open_segment_t *one, rmm_blocks_file_t *file);

/* The blocks of a resource, sorted; to be freed with free(). NULL: the report has none, or there
 * is no memory. */
rmm_blocks_row_t *
blocks_read(const rmm_blocks_file_t *file, uint32_t resource_id, uint32_t *count_out);

#endif /* RMM_TOP_BLOCKS_H */
