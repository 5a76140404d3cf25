/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of "<segment>.diag", made when a diagnosis library attaches: which live block was
 * used by which kernels. The same rules as segment/segment_format.h: fixed-width
 * integers, offsets, a reader that trusts nothing (diag_reader.h), minor versions add.
 *
 * One writer process, its threads serialised by the engine's lock. Each row has its own
 * sequence lock, so that a reader never mixes two blocks.
 */
#ifndef RMM_DIAG_DIAG_FORMAT_H
#define RMM_DIAG_DIAG_FORMAT_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RMM_DIAG_MAGIC 0x314741494d4d5252ull
#define RMM_DIAG_MAJOR 1u
#define RMM_DIAG_MINOR 0u
#define RMM_DIAG_SUFFIX "diag"
#define RMM_DIAG_NO_KERNEL UINT32_MAX

typedef struct rmm_diag_header {
    uint64_t magic;
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t header_bytes;
    uint64_t file_bytes;
    uint32_t kernels_offset, kernels_stride, kernels_count;
    uint32_t rows_offset, rows_stride, rows_count;
    _Atomic(uint32_t) ready; /* 0 until all else is written; release store */
    uint32_t reserved0;
    _Atomic(uint32_t)
        kernels_used;            /* entries from 0 that are complete; release store */
    _Atomic(uint32_t) rows_used; /* rows ever used: none beyond is live */
    _Atomic(uint64_t) launches;  /* kernel launches seen */
    _Atomic(uint64_t) launches_unnamed;   /* whose kernel found no free entry */
    _Atomic(uint64_t) blocks_dropped;     /* allocations that found no free row */
    _Atomic(uint64_t) parameter_failures; /* launches whose parameters are unknown */
    char mode[32];                        /* "usage" */
    char source[96]; /* "active", "conflict:<name>", "error:<text>" */
    uint64_t reserved1[4];
} rmm_diag_header_t;

typedef struct rmm_diag_kernel {
    _Atomic(uint64_t) launches;
    char name[248]; /* demangled where possible; cut; NUL-terminated */
} rmm_diag_kernel_t;

typedef struct rmm_diag_row {
    _Atomic(uint32_t) sequence; /* odd: in flux */
    _Atomic(uint32_t) live;
    _Atomic(uint64_t) address;
    _Atomic(uint64_t) bytes;
    _Atomic(uint64_t) stream_id;
    _Atomic(uint32_t) resource_id;
    _Atomic(int32_t) device;
    _Atomic(uint32_t) first_kernel; /* index; RMM_DIAG_NO_KERNEL: none yet */
    _Atomic(uint32_t) last_kernel;
    _Atomic(uint64_t) launches;
    _Atomic(uint64_t) allocated_ns; /* CLOCK_MONOTONIC */
    _Atomic(uint64_t) first_use_ns; /* 0: none yet */
    _Atomic(uint64_t) last_use_ns;
    uint64_t reserved0[2];
} rmm_diag_row_t;

static_assert(sizeof(rmm_diag_header_t) == 256, "diag header layout is ABI");
static_assert(sizeof(rmm_diag_kernel_t) == 256, "diag kernel layout is ABI");
static_assert(sizeof(rmm_diag_row_t) == 96, "diag row layout is ABI");
static_assert(
    offsetof(rmm_diag_header_t, ready) == 48 &&
        offsetof(rmm_diag_header_t, launches) == 64 &&
        offsetof(rmm_diag_header_t, mode) == 96 &&
        offsetof(rmm_diag_header_t, source) == 128,
    "diag header fields are ABI: docs/diagnostics.md");
static_assert(
    offsetof(rmm_diag_row_t, address) == 8 &&
        offsetof(rmm_diag_row_t, resource_id) == 32 &&
        offsetof(rmm_diag_row_t, first_kernel) == 40 &&
        offsetof(rmm_diag_row_t, last_use_ns) == 72,
    "diag row fields are ABI: docs/diagnostics.md");

#endif /* RMM_DIAG_DIAG_FORMAT_H */
