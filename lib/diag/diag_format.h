/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bytes of "<segment>.diag", made when a diagnosis library attaches: which live block was
 * used by which kernels, and which errors were found. The same rules as in
 * segment/segment_format.h: fixed-width integers, offsets, a reader that trusts nothing
 * (diag_reader.h), minor versions add.
 *
 * One writer process, its threads serialised by the engine's lock. Each row and each finding
 * has its own sequence lock, so that a reader never mixes two of them.
 */
#ifndef RMM_DIAG_DIAG_FORMAT_H
#define RMM_DIAG_DIAG_FORMAT_H

#include <assert.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define RMM_DIAG_MAGIC 0x314741494d4d5252ull
#define RMM_DIAG_MAJOR 1u
#define RMM_DIAG_MINOR                                                                 \
    12u /* 1: findings; 2: functions as users; 3: peaks; 4: order; 5: mode switch;       \
           6: stacks; 7: verdicts; 8: guards; 9: freed blocks; 10: allocation sites;  \
           11: names of resources; 12: refused frees, what is left */
#define RMM_DIAG_SUFFIX "diag"
#define RMM_DIAG_PEAKS_COUNT 16u       /* locations; a reader looks at no more */
#define RMM_DIAG_ROWS_MAX 65536u       /* the same of live blocks; a writer has fewer */
#define RMM_DIAG_HEADER_BYTES_MIN 256u /* of minor 0 */
#define RMM_DIAG_ROW_BYTES_MIN 96u     /* the same */
#define RMM_DIAG_ROW_BYTES_2 128u      /* of minor 2 to 9 */
#define RMM_DIAG_VERDICT_BYTES_MIN 56u /* of minor 7 */
#define RMM_DIAG_FINDING_BYTES_MIN 128u /* of minor 1 */

/* A user of a block: a kernel's entry, a function's entry with this bit, or none. */
#define RMM_DIAG_FUNCTION 0x80000000u
#define RMM_DIAG_NO_USER UINT32_MAX

#define RMM_DIAG_MODES_SET 0x80000000u /* in a word of modes: it is one */

typedef struct rmm_diag_header {
    uint64_t magic;
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t header_bytes;
    uint64_t file_bytes;
    uint32_t kernels_offset, kernels_stride, kernels_count;
    uint32_t rows_offset, rows_stride, rows_count;
    _Atomic(uint32_t) ready; /* 0 until all else is written; release store */
    /* minor 5: the requested modes (diag/modes.h) and RMM_DIAG_MODES_SET. A user who may write
     * the file requests modes here. */
    _Atomic(uint32_t) modes_wanted;
    _Atomic(uint32_t)
        kernels_used;            /* entries from 0 that are complete; release store */
    _Atomic(uint32_t) rows_used; /* rows ever used: none beyond is live */
    _Atomic(uint64_t) launches;  /* kernel launches seen */
    _Atomic(uint64_t) launches_unnamed;   /* whose kernel found no free entry */
    _Atomic(uint64_t) blocks_dropped;     /* allocations that found no free row */
    _Atomic(uint64_t) parameter_failures; /* launches whose parameters are unknown */
    char mode[32];                        /* "usage,bounds": at the start */
    char source[96]; /* "active", "conflict:<name>", "error:<text>" */
    uint32_t findings_offset, findings_stride, findings_count; /* minor 0: all 0 */
    _Atomic(uint32_t) findings_used;    /* entries ever used; release store */
    _Atomic(uint64_t) findings_total;   /* every occurrence */
    _Atomic(uint64_t) findings_dropped; /* occurrences that found no free entry */
    /* since minor 2 */
    _Atomic(uint64_t) copies, fills, prefetches; /* that succeeded */
    uint32_t functions_offset, functions_stride, functions_count;
    _Atomic(uint32_t) functions_used; /* entries that are complete; release store */
    /* since minor 3 */
    uint32_t peaks_offset, peaks_stride, peaks_count;
    _Atomic(uint32_t) peaks_used; /* entries that are complete; release store */
    uint32_t parts_offset, parts_stride, parts_count; /* as many for each peak */
    uint32_t reserved1;
    _Atomic(uint64_t) peaks_dropped; /* allocations in locations that have no peak */
    /* since minor 4: launches, copies and fills whose order was not judged */
    _Atomic(uint64_t) unjudged;
    /* since minor 5 */
    _Atomic(uint32_t) modes_on; /* in force */
    _Atomic(uint32_t)
        modes_applied; /* the modes_wanted that was applied last; release store */
    /* since minor 6 */
    uint32_t stacks_offset, stacks_stride,
        stacks_count; /* of the finding of that index */
    uint32_t reserved2;
    uint32_t modules_offset, modules_stride, modules_count;
    _Atomic(uint32_t) modules_used; /* entries that are complete; release store */
    /* since minor 7 */
    uint32_t verdicts_offset, verdicts_stride, verdicts_count;
    uint32_t reserved3;
    _Atomic(uint64_t) verdicts_dropped; /* on freed blocks, that found no entry */
    _Atomic(uint64_t)
        judged_since_ns;              /* blocks allocated earlier are not judged because
                                           uses may be missing; 0: no block is judged */
    _Atomic(uint64_t) graph_launches; /* before minor 9 their uses are not seen */
    /* since minor 8 */
    uint32_t origins_offset, origins_stride,
        origins_count; /* stacks of the allocation of the block of the finding of that index */
    uint32_t reserved4;
    _Atomic(uint64_t) guard_checks;     /* queued behind launches and before frees */
    _Atomic(uint64_t) guards_missing;   /* blocks of a GPU that got none */
    _Atomic(uint64_t) guards_unchecked; /* launches and frees that were not checked */
    _Atomic(uint64_t)
        guards_error; /* of the driver, for which guards were switched off */
    /* since minor 9 */
    uint32_t frees_offset, frees_stride,
        frees_count; /* stacks of the free of the block of the finding of that index */
    uint32_t reserved5;
    _Atomic(uint64_t) freed_dropped; /* freed blocks that were forgotten: no room */
    _Atomic(uint64_t)
        graphs_unseen; /* of graph_launches, those of which no node is known */
    /* since minor 10: stacks that blocks were allocated from */
    uint32_t sites_offset, sites_stride, sites_count;
    uint32_t reserved6;
    _Atomic(uint64_t) sites_dropped; /* allocations whose stack found no free entry */
    _Atomic(uint64_t) device_resets; /* of GPUs, by the program */
    _Atomic(uint64_t) blocks_reset;  /* that were live then, and are forgotten */
    /* since minor 11 */
    uint32_t resources_offset, resources_stride, resources_count;
    uint32_t reserved7;
    /* since minor 12: blocks that a resource freed at its end, as the program had not */
    _Atomic(uint64_t) left_count, left_bytes;
} rmm_diag_header_t;

typedef struct rmm_diag_kernel {
    _Atomic(uint64_t) launches;
    char name[248]; /* demangled where possible; cut; NUL-terminated */
} rmm_diag_kernel_t;

/* A function of the driver that copies, fills or prefetches. */
typedef struct rmm_diag_function {
    _Atomic(uint64_t) calls;
    char name[56]; /* cut; NUL-terminated */
} rmm_diag_function_t;

typedef struct rmm_diag_row {
    _Atomic(uint32_t) sequence; /* odd: in flux */
    _Atomic(uint32_t) live;
    _Atomic(uint64_t) address;
    _Atomic(uint64_t) bytes;
    _Atomic(uint64_t) stream_id;
    _Atomic(uint32_t) resource_id;
    _Atomic(int32_t) device;
    _Atomic(uint32_t) first_user; /* RMM_DIAG_NO_USER: none yet, or it has no entry */
    _Atomic(uint32_t) last_user;
    _Atomic(uint64_t) launches;
    _Atomic(uint64_t) allocated_ns; /* CLOCK_MONOTONIC; grows from block to block */
    _Atomic(uint64_t) first_use_ns; /* 0: none yet */
    _Atomic(uint64_t) last_use_ns;
    _Atomic(uint64_t) copies, fills, prefetches; /* since minor 2 */
    /* How many launches there were before: the allocation, the first use, and up to the
     * last use, it included. */
    _Atomic(uint64_t) allocated_at, first_use_at, last_use_at;
    /* since minor 10 */
    _Atomic(uint32_t) site; /* entry of the allocation's stack + 1; 0: not known */
    uint32_t reserved0;
} rmm_diag_row_t;

/* The most bytes that were live in a location, and when. It is made of the live rows with
 * allocated_ns <= when_ns, of its parts with the same when_ns, and of the rest. */
typedef struct rmm_diag_peak {
    _Atomic(uint32_t) sequence; /* odd: in flux */
    _Atomic(int32_t) device;    /* -1: host memory */
    _Atomic(uint64_t) bytes;
    _Atomic(uint64_t) count;   /* blocks */
    _Atomic(uint64_t) when_ns; /* allocated_ns of the block that made it */
    _Atomic(uint64_t) rest_bytes, rest_count; /* freed since, and no part was left */
    uint64_t reserved0;
} rmm_diag_peak_t;

/* Blocks of a peak that were freed since. */
typedef struct rmm_diag_part {
    _Atomic(uint32_t) sequence; /* odd: in flux */
    _Atomic(uint32_t) resource_id;
    _Atomic(uint32_t) first_user;
    _Atomic(uint32_t) site;    /* as of a row; 0 before minor 10 */
    _Atomic(uint64_t) when_ns; /* of the peak that it is of; of another: stale */
    _Atomic(uint64_t) bytes, count;
} rmm_diag_part_t;

/* Append only. The first three are on blocks that were freed, too; the others on those that were
 * not, also where their resource has ended. */
typedef enum rmm_diag_verdict {
    RMM_DIAG_NEVER_USED = 1,
    RMM_DIAG_ALLOCATED_EARLY = 2, /* other launches before its first use */
    RMM_DIAG_FREED_LATE = 3,      /* other launches after its last use */
    RMM_DIAG_IDLE = 4,            /* live, and the same for long */
    RMM_DIAG_LEAKED = 5 /* its resource or the program ended without a free of it */
} rmm_diag_verdict_t;

/* Freed blocks that have what is above `count` in common. */
typedef struct rmm_diag_verdict_entry {
    _Atomic(uint32_t) sequence; /* odd: in flux */
    _Atomic(uint32_t) verdict;  /* rmm_diag_verdict_t; 0: none */
    _Atomic(uint32_t) resource_id;
    _Atomic(uint32_t) first_user;
    _Atomic(int32_t) device;
    _Atomic(uint32_t) size_class; /* bits of the size */
    _Atomic(uint64_t) count;
    _Atomic(uint64_t) bytes;
    _Atomic(uint64_t) largest;
    _Atomic(uint64_t) byte_ms; /* wasted memory: bytes x milliseconds */
    _Atomic(uint32_t) site;    /* since minor 10: as of a row */
    uint32_t reserved0;
} rmm_diag_verdict_entry_t;

/* Append only. */
typedef enum rmm_diag_finding_kind {
    RMM_DIAG_OUT_OF_BOUNDS = 1, /* a call's range leaves the block that it begins in, or
                                    begins in none and reaches into this one */
    RMM_DIAG_USE_UNORDERED = 2, /* not ordered after the allocation, or behind another
                                    use; the other is described as well */
    RMM_DIAG_FREE_UNORDERED = 3, /* not ordered after a use */
    RMM_DIAG_USE_AFTER_FREE = 4, /* of a block that was freed, in memory that no block
                                     has taken since, or by a graph; other_stream_id is of
                                     the free */
    RMM_DIAG_FREE_UNDER_GRAPH =
        5, /* of a block that a graph uses, which can be launched */
    /* since minor 12: frees that a resource refused; `address` and `bytes` as passed */
    RMM_DIAG_DOUBLE_FREE =
        6, /* of a block that was freed before; other_stream_id is of that
                                 free */
    RMM_DIAG_WRONG_SIZE_FREE = 7, /* of a live block, with another size than it has */
    RMM_DIAG_INVALID_FREE =
        8 /* no block of the resource begins there. The block is the one that the address is in, or
             what was passed */
} rmm_diag_finding_kind_t;

enum { RMM_DIAG_READS = 1, RMM_DIAG_WRITES = 2, RMM_DIAG_USES = 3, RMM_DIAG_FREES = 4 };

/* of a finding: RMM_DIAG_GRAPH_LAUNCH and RMM_DIAG_LAUNCH, for readers */
#define RMM_DIAG_CALL_GRAPH 17u
#define RMM_DIAG_CALL_LAUNCH 1u

/* Append only. */
typedef enum rmm_diag_confidence_level {
    RMM_DIAG_CERTAIN = 0,
    RMM_DIAG_LIKELY =
        1, /* a kernel may have been given a pointer that it does not follow */
    RMM_DIAG_HINT = 2 /* no error, if the program never does what would make it one */
} rmm_diag_confidence_level_t;

/* Occurrences that differ only in the block's address share an entry. */
typedef struct rmm_diag_finding {
    _Atomic(uint32_t) sequence; /* odd: in flux */
    _Atomic(uint32_t) kind;     /* rmm_diag_finding_kind_t; 0: none */
    _Atomic(uint32_t) call;     /* rmm_diag_event_kind_t */
    _Atomic(uint32_t) access;   /* RMM_DIAG_READS, ..._WRITES, ..._USES, ..._FREES */
    _Atomic(uint64_t) count;
    _Atomic(uint64_t) first_ns, last_ns; /* CLOCK_MONOTONIC */
    _Atomic(uint64_t) block_address;     /* of the last occurrence, as what follows */
    _Atomic(uint64_t) block_bytes;
    _Atomic(uint64_t) block_stream_id;
    _Atomic(uint32_t) resource_id;
    _Atomic(int32_t) device;
    _Atomic(uint64_t) address; /* of the range that was passed */
    _Atomic(uint64_t) bytes;
    _Atomic(uint64_t) function[5]; /* name of the function called, NUL-padded, cut */
    /* since minor 4. Ids as cudaStreamGetId, or the handle where the id is not known */
    _Atomic(uint64_t) stream_id;       /* of the call; all ones: not noted */
    _Atomic(uint64_t) other_stream_id; /* of the one that was before, the same */
    _Atomic(uint32_t) user;       /* that was called or launched; or RMM_DIAG_NO_USER */
    _Atomic(uint32_t) other_user; /* that was before, the same */
    _Atomic(uint32_t) other_call; /* rmm_diag_event_kind_t; 0: the allocation */
    _Atomic(uint32_t) confidence; /* since minor 9: rmm_diag_confidence_level_t */
} rmm_diag_finding_t;

#define RMM_DIAG_FRAMES_COUNT 16u
#define RMM_DIAG_PATH_BYTES 232u
#define RMM_DIAG_NO_MODULE UINT32_MAX

/* Who made the call, innermost frame first. An offset is that of the call in its file as the loader
 * placed it, the last byte of it; without a module the address. */
typedef struct rmm_diag_stack {
    _Atomic(uint32_t) sequence;    /* odd: in flux */
    _Atomic(uint32_t) frame_count; /* 0: not captured */
    _Atomic(uint64_t) offsets[RMM_DIAG_FRAMES_COUNT];
    _Atomic(uint32_t) modules[RMM_DIAG_FRAMES_COUNT]; /* entry; RMM_DIAG_NO_MODULE */
} rmm_diag_stack_t;

/* A file that frames are in; never changes once it counts. */
typedef struct rmm_diag_module {
    char path[RMM_DIAG_PATH_BYTES]; /* as loaded; the front is cut; NUL-terminated */
    uint32_t build_id_bytes;        /* 0: it has none */
    unsigned char build_id[20];
} rmm_diag_module_t;

/* A resource whose blocks are followed; at its id modulo the number of entries. Never changes once
 * it has an id. */
typedef struct rmm_diag_resource {
    _Atomic(uint32_t) id; /* 0: none; release store */
    uint32_t reserved0;
    char type[24]; /* NUL-terminated; so is the name */
    char name[64];
} rmm_diag_resource_t;

static_assert(sizeof(rmm_diag_resource_t) == 96, "diag resource layout is ABI");
static_assert(sizeof(rmm_diag_stack_t) == 200, "diag stack layout is ABI");
static_assert(sizeof(rmm_diag_module_t) == 256, "diag module layout is ABI");
static_assert(sizeof(rmm_diag_finding_t) == 160, "diag finding layout is ABI");
static_assert(sizeof(rmm_diag_header_t) == 576, "diag header layout is ABI");
static_assert(sizeof(rmm_diag_kernel_t) == 256, "diag kernel layout is ABI");
static_assert(sizeof(rmm_diag_function_t) == 64, "diag function layout is ABI");
static_assert(sizeof(rmm_diag_peak_t) == 56, "diag peak layout is ABI");
static_assert(sizeof(rmm_diag_part_t) == 40, "diag part layout is ABI");
static_assert(sizeof(rmm_diag_verdict_entry_t) == 64, "diag verdict layout is ABI");
static_assert(sizeof(rmm_diag_row_t) == 136, "diag row layout is ABI");
static_assert(
    offsetof(rmm_diag_header_t, ready) == 48 &&
        offsetof(rmm_diag_header_t, launches) == 64 &&
        offsetof(rmm_diag_header_t, mode) == 96 &&
        offsetof(rmm_diag_header_t, source) == 128 &&
        offsetof(rmm_diag_header_t, findings_offset) == 224 &&
        offsetof(rmm_diag_header_t, findings_total) == 240 &&
        offsetof(rmm_diag_header_t, copies) == 256 &&
        offsetof(rmm_diag_header_t, functions_offset) == 280 &&
        offsetof(rmm_diag_header_t, peaks_offset) == 296 &&
        offsetof(rmm_diag_header_t, parts_offset) == 312 &&
        offsetof(rmm_diag_header_t, unjudged) == 336 &&
        offsetof(rmm_diag_header_t, modes_wanted) == 52 &&
        offsetof(rmm_diag_header_t, modes_on) == 344 &&
        offsetof(rmm_diag_header_t, stacks_offset) == 352 &&
        offsetof(rmm_diag_header_t, verdicts_offset) == 384 &&
        offsetof(rmm_diag_header_t, origins_offset) == 424 &&
        offsetof(rmm_diag_header_t, frees_offset) == 472 &&
        offsetof(rmm_diag_header_t, sites_offset) == 504 &&
        offsetof(rmm_diag_header_t, resources_offset) == 544,
    "diag header fields are ABI: docs/diag-format.md");
static_assert(
    offsetof(rmm_diag_row_t, address) == 8 &&
        offsetof(rmm_diag_row_t, resource_id) == 32 &&
        offsetof(rmm_diag_row_t, first_user) == 40 &&
        offsetof(rmm_diag_row_t, last_use_ns) == 72 &&
        offsetof(rmm_diag_row_t, copies) == 80 &&
        offsetof(rmm_diag_row_t, allocated_at) == 104 &&
        offsetof(rmm_diag_row_t, site) == 128,
    "diag row fields are ABI: docs/diag-format.md");
static_assert(
    offsetof(rmm_diag_finding_t, count) == 16 &&
        offsetof(rmm_diag_finding_t, block_address) == 40 &&
        offsetof(rmm_diag_finding_t, resource_id) == 64 &&
        offsetof(rmm_diag_finding_t, address) == 72 &&
        offsetof(rmm_diag_finding_t, function) == 88 &&
        offsetof(rmm_diag_finding_t, stream_id) == 128 &&
        offsetof(rmm_diag_finding_t, user) == 144 &&
        offsetof(rmm_diag_finding_t, confidence) == 156,
    "diag finding fields are ABI: docs/diag-format.md");

#endif /* RMM_DIAG_DIAG_FORMAT_H */
