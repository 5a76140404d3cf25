/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads another process's "<segment>.blocks" and trusts nothing in it: sizes, offsets x
 * counts are checked before use, each row when it is read. Reads with pread only. Fuzzed:
 * tests/fuzz.
 *
 * Threads: a file may be read from several threads at once; open and close may not race
 * with reads.
 */
#ifndef RMM_SEGMENT_BLOCKS_READER_H
#define RMM_SEGMENT_BLOCKS_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "segment/segment_blocks.h"

#define RMM_BLOCKS_FILE_BYTES_MAX (64u << 20) /* rows of later versions may be longer */

typedef struct rmm_blocks_file {
    int fd;
    rmm_blocks_header_t header; /* checked copy */
} rmm_blocks_file_t;

/*
 * Open the report of `segment` in dirfd. Refuses what is not a regular file of `owner` with
 * one link, or is inconsistent. Returns 0 or a negative errno: -ENOENT if there is
 * none, -EPROTO if it is refused, -EAGAIN if it was never completed.
 */
int rmm__block_report_open(
    rmm_blocks_file_t *file, int dirfd, const char *segment, uid_t owner);

/* The same on an open descriptor, which is kept on success (tests, fuzzing: any owner). */
int rmm__block_report_attach(rmm_blocks_file_t *file, int fd);

void rmm__block_report_close(rmm_blocks_file_t *file);

/* A resource of the report by its place; false: there is none. Its rows are in the table. */
bool rmm__block_report_resource_at(
    const rmm_blocks_file_t *file, uint32_t index, rmm_blocks_resource_t *out);

/* The same by its id. */
bool rmm__block_report_find(
    const rmm_blocks_file_t *file, uint32_t resource_id, rmm_blocks_resource_t *out);

/*
 * Its rows, at most row_count of it. Of a row that is shown the state is known, bytes are not
 * 0, and address + bytes does not wrap. Returns how many there are.
 */
uint32_t rmm__block_report_read(
    const rmm_blocks_file_t *file, const rmm_blocks_resource_t *resource,
    rmm_blocks_row_t *rows_out);

/* By address, a chunk before the block at its address. */
void rmm__block_report_sort(rmm_blocks_row_t *rows, uint32_t count);

/* "used", ...; "-1" for no state. */
const char *rmm__block_state_name(uint32_t state);

#endif /* RMM_SEGMENT_BLOCKS_READER_H */
