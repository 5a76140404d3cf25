/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of "<segment>.blocks", a report of the blocks in a process's pools at one moment, made
 * when the daemon asks for one. The same rules as segment_format.h: fixed-width integers,
 * offsets, a reader that trusts nothing (segment_blocks_reader.h), minor versions add.
 *
 * The file is written whole before it gets its name, and never changes: the next report is
 * another file under the same name.
 */
#ifndef RMM_SEGMENT_BLOCKS_H
#define RMM_SEGMENT_BLOCKS_H

#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#define RMM_BLOCKS_MAGIC 0x314b4c42434d4d52ull /* "RMMCBLK1" */
#define RMM_BLOCKS_MAJOR 1u
#define RMM_BLOCKS_MINOR 0u
#define RMM_BLOCKS_SUFFIX "blocks"
#define RMM_BLOCKS_ROWS_MAX 65536u /* of one report */
#define RMM_BLOCKS_RESOURCES_MAX 256u
#define RMM_BLOCKS_NO_STREAM UINT64_MAX

typedef enum rmm_block_state {
    RMM_BLOCK_CHUNK =
        1,            /* contiguous memory from one source: the blocks in it follow */
    RMM_BLOCK_USED,   /* handed out */
    RMM_BLOCK_FREE,   /* every stream may take it */
    RMM_BLOCK_CACHED, /* freed on a stream: until the GPU is done only that one's */
    RMM_BLOCK_GRAPH,  /* free, for a captured graph as long as that exists */
    RMM_BLOCK_LOST,   /* held, but never handed out again */
    RMM_BLOCK_STATES  /* how many, with 0, which is none */
} rmm_block_state_t;

typedef struct rmm_blocks_header {
    uint64_t magic;
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t header_bytes;
    uint64_t file_bytes;
    uint64_t taken_ns; /* CLOCK_MONOTONIC */
    uint32_t number;   /* the control page's report_number that was obeyed */
    uint32_t ready;    /* 1 */
    uint32_t resources_offset, resources_stride, resources_count;
    uint32_t rows_offset, rows_stride, rows_count;
    uint64_t reserved0[8];
} rmm_blocks_header_t;

/* A resource that was reported: its rows, and what did not fit. */
typedef struct rmm_blocks_resource {
    uint32_t resource_id; /* instance_id */
    uint32_t reserved0;
    uint32_t first_row, row_count;
    uint64_t left_out_count; /* blocks that have no row */
    uint64_t left_out_bytes; /* of these */
    uint64_t moving_bytes;   /* being mapped elsewhere, or given back: no row */
    uint64_t reserved1[3];
} rmm_blocks_resource_t;

typedef struct rmm_blocks_row {
    uint64_t address;
    uint64_t bytes; /* of the block, padding included */
    uint64_t
        stream; /* as cudaStreamGetId() says; RMM_BLOCKS_NO_STREAM: unknown, or none */
    uint32_t padding;
    uint32_t state; /* rmm_block_state_t */
} rmm_blocks_row_t;

static_assert(sizeof(rmm_blocks_header_t) == 128, "blocks header layout is ABI");
static_assert(offsetof(rmm_blocks_header_t, ready) == 36, "layout is ABI");
static_assert(offsetof(rmm_blocks_header_t, rows_offset) == 52, "layout is ABI");
static_assert(sizeof(rmm_blocks_resource_t) == 64, "blocks resource layout is ABI");
static_assert(sizeof(rmm_blocks_row_t) == 32, "blocks row layout is ABI");

#endif /* RMM_SEGMENT_BLOCKS_H */
