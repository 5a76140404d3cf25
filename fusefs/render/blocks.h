/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the files that print blocks. Only for this folder.
 */
#ifndef RMM_FUSEFS_RENDER_BLOCKS_H
#define RMM_FUSEFS_RENDER_BLOCKS_H

#include "render/parts.h"
#include "render/printers.h"

/* The rows of one resource, by address; chunks are among them, each before its blocks. */
typedef struct block_rows {
    uint64_t taken_ns; /* CLOCK_MONOTONIC */
    bool is_there;     /* the resource is in the report */
    rmm_blocks_resource_t resource;
    rmm_blocks_row_t *rows;
    uint32_t count;
    size_t scratch; /* charged */
} block_rows_t;

/* False: no memory, or none for this user; the text has failed. */
bool block_rows_read(
    const rmm_blocks_file_t *file, const rmm_blocks_resource_t *resource,
    block_rows_t *out, text_t *text);
void block_rows_free(block_rows_t *rows, text_t *text);

/* "# taken_ns_ago 12" */
void render_taken(uint64_t taken_ns, text_t *text);

#endif /* RMM_FUSEFS_RENDER_BLOCKS_H */
