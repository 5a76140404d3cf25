/* SPDX-License-Identifier: Apache-2.0 */
/*
 * All verdicts of a side file: on blocks that were freed, which the writer has summed up, and on
 * live ones, which are judged here.
 */
#ifndef RMM_DIAG_VERDICT_READER_H
#define RMM_DIAG_VERDICT_READER_H

#include "diag/block_groups.h"
#include "diag/diag_reader.h"

/*
 * Groups by verdict, location, resource, first user, size class and site, most bytes x time first;
 * what was in `groups` is cleared. now_ns: CLOCK_MONOTONIC. has_ended: live blocks are leaked.
 */
void rmm__diag_read_verdicts(
    const rmm_diag_file_t *file, uint64_t now_ns, bool has_ended,
    rmm_diag_groups_t *groups);

/* "certain", "likely": pointers in device memory are not seen; "hint": besides, uses are known
 * to be missing, by replays of graphs or launches whose parameters could not be read. Static. */
const char *rmm__diag_confidence(const rmm_diag_file_t *file, uint32_t verdict);

/* Blocks that a program which has ended did not free. */
typedef struct rmm_diag_left {
    uint64_t count, bytes;
} rmm_diag_left_t;

rmm_diag_left_t rmm__diag_read_left(const rmm_diag_file_t *file);

#endif /* RMM_DIAG_VERDICT_READER_H */
