/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of "<segment>.leaks", made when a process has its first tracking adaptor: which
 * blocks are out, and which calls allocated them. The same rules as segment_format.h: fixed-width
 * integers, offsets, a reader that trusts nothing (segment_leaks_reader.h), minor versions
 * add.
 *
 * Each row has its own sequence lock, so that a reader never mixes two blocks. Modules are
 * the files that frames are in, so that names can be found when the process is gone; an
 * entry never changes once it counts.
 */
#ifndef RMM_SEGMENT_LEAKS_H
#define RMM_SEGMENT_LEAKS_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RMM_LEAKS_MAGIC 0x314b41454c4d4d52ull
#define RMM_LEAKS_MAJOR 1u
#define RMM_LEAKS_MINOR 0u
#define RMM_LEAKS_SUFFIX "leaks"
#define RMM_LEAKS_FRAMES 16u
#define RMM_LEAKS_PATH_BYTES 232u

typedef struct rmm_leaks_header {
    uint64_t magic;
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t header_bytes;
    uint64_t file_bytes;
    uint32_t rows_offset, rows_stride, rows_count;
    _Atomic(uint32_t) ready;     /* 0 until all else is written; release store */
    _Atomic(uint32_t) rows_used; /* rows ever used: none beyond is live */
    uint32_t reserved0;
    _Atomic(uint64_t) unlisted; /* blocks that are out and found no free row */
    uint32_t modules_offset, modules_stride, modules_count;
    _Atomic(uint32_t)
        modules_used; /* entries from 0 that are complete; release store */
    uint64_t reserved1[7];
} rmm_leaks_header_t;

typedef struct rmm_leaks_module {
    uint64_t begin, end; /* addresses; end is the first behind */
    uint64_t base;       /* what to subtract from an address for addr2line */
    char path[RMM_LEAKS_PATH_BYTES]; /* as loaded; the front is cut; NUL-terminated */
} rmm_leaks_module_t;

typedef struct rmm_leaks_row {
    _Atomic(uint32_t) sequence;    /* odd: in flux */
    _Atomic(uint32_t) resource_id; /* instance_id of the adaptor; 0: no block */
    _Atomic(uint64_t) address;
    _Atomic(uint64_t) bytes;
    _Atomic(uint64_t) allocated_ns; /* CLOCK_MONOTONIC, to some milliseconds */
    _Atomic(uint64_t) stream;       /* the handle: of the allocation */
    _Atomic(uint32_t) thread;       /* gettid() of the allocating thread */
    _Atomic(int32_t) device;        /* CUDA ordinal; -1: host memory */
    _Atomic(uint32_t) frame_count;  /* 0: no stack was captured */
    uint32_t reserved0;
    _Atomic(uint64_t) frames[RMM_LEAKS_FRAMES]; /* return addresses, innermost first */
    uint64_t reserved1;
} rmm_leaks_row_t;

static_assert(sizeof(rmm_leaks_header_t) == 128, "leaks header layout is ABI");
static_assert(sizeof(rmm_leaks_module_t) == 256, "leaks module layout is ABI");
static_assert(sizeof(rmm_leaks_row_t) == 192, "leaks row layout is ABI");
static_assert(
    offsetof(rmm_leaks_header_t, ready) == 36 &&
        offsetof(rmm_leaks_header_t, unlisted) == 48 &&
        offsetof(rmm_leaks_header_t, modules_used) == 68,
    "leaks header fields are ABI: docs/segment-format.md");
static_assert(
    offsetof(rmm_leaks_row_t, address) == 8 &&
        offsetof(rmm_leaks_row_t, thread) == 40 &&
        offsetof(rmm_leaks_row_t, frames) == 56,
    "leaks row fields are ABI: docs/segment-format.md");

#endif /* RMM_SEGMENT_LEAKS_H */
