/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads where findings were made and blocks allocated (stacks.h) out of a side file, and trusts
 * nothing in it.
 */
#ifndef RMM_DIAG_STACKS_READER_H
#define RMM_DIAG_STACKS_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "diag/diag_reader.h"

typedef struct rmm_diag_stack_info {
    uint32_t frame_count; /* at most RMM_DIAG_FRAMES_COUNT */
    uint64_t
        offsets[RMM_DIAG_FRAMES_COUNT]; /* innermost first; an address without module */
    uint32_t modules[RMM_DIAG_FRAMES_COUNT]; /* or RMM_DIAG_NO_MODULE */
    uint32_t line_count;                     /* at most RMM_DIAG_STACK_LINES */
    uint32_t lines[RMM_DIAG_STACK_LINES];    /* of Python, the same order */
} rmm_diag_stack_info_t;

/* The call stack of a finding. False: it was not captured, or is being written. */
bool rmm__diag_read_stack(
    const rmm_diag_file_t *file, uint32_t finding, rmm_diag_stack_info_t *out);

/* The same: where its block was allocated, and where it was freed. Only findings by guards and of
 * freed blocks have the first, and only those of freed blocks the second. */
bool rmm__diag_read_origin(
    const rmm_diag_file_t *file, uint32_t finding, rmm_diag_stack_info_t *out);
bool rmm__diag_read_free(
    const rmm_diag_file_t *file, uint32_t finding, rmm_diag_stack_info_t *out);

/* The stack that a block with this `site` was allocated from. False: it is not known, or is being
 * written. */
bool rmm__diag_read_site(
    const rmm_diag_file_t *file, uint32_t site, rmm_diag_stack_info_t *out);

typedef struct rmm_diag_module_info {
    char path[RMM_DIAG_PATH_BYTES]; /* clean */
    uint32_t build_id_bytes;        /* at most there is room for */
    unsigned char build_id[20];
} rmm_diag_module_info_t;

/* False: there is none of that index. */
bool rmm__diag_read_module(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_module_info_t *out);

/* A line of Python. False: there is none of that index. */
bool rmm__diag_read_line(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_line_t *out);

#endif /* RMM_DIAG_STACKS_READER_H */
