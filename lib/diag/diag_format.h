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
#define RMM_DIAG_MINOR 0u
#define RMM_DIAG_SUFFIX "diag"
#define RMM_DIAG_PEAKS_COUNT 16u /* locations; a reader looks at no more */
#define RMM_DIAG_ROWS_MAX 65536u /* the same of live blocks; a writer has fewer */

/* A user of a block: a kernel's entry, a function's entry with this bit, or none. */
#define RMM_DIAG_FUNCTION 0x80000000u
#define RMM_DIAG_NO_USER UINT32_MAX

#define RMM_DIAG_MODES_SET 0x80000000u /* in a word of modes: it is one */

/* A part of the file: entries, one behind the other. */
typedef struct rmm_diag_section {
    uint32_t offset, stride, count; /* count 0: there is none */
    /* Entries that were ever used, where they are used in order; none beyond is read. Of names
     * those that are complete. Release store. */
    _Atomic(uint32_t) used;
} rmm_diag_section_t;

/* X(section, type of an entry, its bytes): the directory, in this order. Append only. */
#define RMM_DIAG_SECTION_MAP(X)                                                        \
    X(kernels, rmm_diag_kernel_t, 256)                                                 \
    X(rows, rmm_diag_row_t, 136) /* live blocks */                                     \
    X(findings, rmm_diag_finding_t, 160)                                               \
    X(functions, rmm_diag_function_t, 64)                                              \
    X(peaks, rmm_diag_peak_t, 56)                                                      \
    X(parts, rmm_diag_part_t, 40)    /* as many for each peak */                       \
    X(stacks, rmm_diag_stack_t, 240) /* of the finding of that index */                \
    X(modules, rmm_diag_module_t, 256)                                                 \
    X(verdicts, rmm_diag_verdict_entry_t, 64)                                          \
    X(origins, rmm_diag_stack_t, 240) /* of the allocation of that finding's block */  \
    X(frees, rmm_diag_stack_t, 240)   /* of the free of that finding's block */        \
    X(sites, rmm_diag_stack_t, 240)   /* that blocks were allocated from */            \
    X(resources, rmm_diag_resource_t, 96)                                              \
    X(lines, rmm_diag_line_t, 192) /* of Python, that stacks have */

/* X(counter): 64 bits each, in this order, which is that of diag/stat in the tree. */
#define RMM_DIAG_COUNTER_MAP(X)                                                        \
    X(launches)         /* of kernels */                                               \
    X(launches_unnamed) /* whose kernel found no free entry */                         \
    X(graph_launches)                                                                  \
    X(graphs_unseen) /* of these, those of which no node is known */                   \
    X(copies)        /* that succeeded, as the next two */                             \
    X(fills)                                                                           \
    X(prefetches)                                                                      \
    X(parameter_failures) /* launches whose parameters are unknown */                  \
    X(blocks_dropped)     /* allocations that found no free row */                     \
    X(peaks_dropped)      /* allocations in locations that have no peak */             \
    X(verdicts_dropped)   /* on freed blocks, that found no entry */                   \
    X(findings_dropped)   /* occurrences that found no free entry */                   \
    X(freed_dropped)      /* freed blocks that were forgotten: no room */              \
    X(sites_dropped)      /* allocations whose stack found no free entry */            \
    X(unjudged)           /* launches, copies and fills whose order was not judged */  \
    X(guard_checks)       /* queued behind launches and before frees */                \
    X(guards_missing)     /* blocks of a GPU that got none */                          \
    X(guards_unchecked)   /* launches and frees that were not checked */               \
    X(guards_error)       /* of the driver, for which guards were switched off */      \
    X(device_resets)      /* of GPUs, by the program */                                \
    X(blocks_reset)       /* that were live then, and are forgotten */

/* Whether stacks have the lines of Python, and if not why. Append only. */
typedef enum rmm_diag_python {
    RMM_DIAG_PYTHON_NONE = 0, /* no Python */
    RMM_DIAG_PYTHON_HAS = 1,
    RMM_DIAG_PYTHON_UNPROVED = 2, /* no call came while a thread had the GIL */
    RMM_DIAG_PYTHON_NO_GIL = 3,   /* it is built without one */
    RMM_DIAG_PYTHON_UNKNOWN = 4,  /* a version that is not known */
    RMM_DIAG_PYTHON_DIFFERS = 5,  /* its frames are not what its version should have */
    RMM_DIAG_PYTHON_REFUSES = 6   /* its atexit has refused a function */
} rmm_diag_python_t;

typedef struct rmm_diag_header {
    uint64_t magic;
    uint16_t version_major;
    uint16_t version_minor;
    uint32_t header_bytes;
    uint64_t file_bytes;
    _Atomic(uint32_t) ready; /* 0 until all else is written; release store */
    /* The requested modes (diag/modes.h) and RMM_DIAG_MODES_SET. A user who may write the file
     * requests modes here. */
    _Atomic(uint32_t) modes_wanted;
    _Atomic(uint32_t) modes_on; /* in force */
    _Atomic(uint32_t)
        modes_applied; /* the modes_wanted that was applied last; release store */
    char mode[32];     /* "usage,bounds": at the start */
    char source[96];   /* "active", "conflict:<name>", "error:<text>" */
#define RMM_DIAG_SECTION(name, type, bytes) rmm_diag_section_t name;
    RMM_DIAG_SECTION_MAP(RMM_DIAG_SECTION)
#undef RMM_DIAG_SECTION
#define RMM_DIAG_COUNTER(name) _Atomic(uint64_t) name;
    RMM_DIAG_COUNTER_MAP(RMM_DIAG_COUNTER)
#undef RMM_DIAG_COUNTER
    _Atomic(uint64_t) findings_total; /* every occurrence */
    _Atomic(uint64_t)
        judged_since_ns; /* blocks allocated earlier are not judged because uses may be
                            missing; 0: no block is judged */
    _Atomic(uint64_t) left_count,
        left_bytes;  /* of blocks that their resource freed at its end */
    char run[40];    /* which rmm-run the process belongs to: its RMM_RUN; "": none */
    char rank[24];   /* as its launcher says; "": none */
    char python[20]; /* its version; "": no Python */
    _Atomic(uint32_t) python_lines; /* rmm_diag_python_t */
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
    _Atomic(uint64_t) copies, fills, prefetches;
    /* How many launches there were before: the allocation, the first use, and up to the
     * last use, it included. */
    _Atomic(uint64_t) allocated_at, first_use_at, last_use_at;
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
    _Atomic(uint32_t) site;    /* as of a row */
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
    _Atomic(uint32_t) site;    /* as of a row */
    uint32_t reserved0;
} rmm_diag_verdict_entry_t;

typedef enum rmm_diag_finding_kind {
#define FINDING(name, number, word, other, text) RMM_DIAG_##name = (number),
#include "diag/finding_classes.def"
#undef FINDING
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
    /* Ids as cudaStreamGetId, or the handle where the id is not known */
    _Atomic(uint64_t) stream_id;       /* of the call; all ones: not noted */
    _Atomic(uint64_t) other_stream_id; /* of the one that was before, the same */
    _Atomic(uint32_t) user;       /* that was called or launched; or RMM_DIAG_NO_USER */
    _Atomic(uint32_t) other_user; /* that was before, the same */
    _Atomic(uint32_t) other_call; /* rmm_diag_event_kind_t; 0: the allocation */
    _Atomic(uint32_t) confidence; /* rmm_diag_confidence_level_t */
} rmm_diag_finding_t;

#define RMM_DIAG_FRAMES_COUNT 16u
#define RMM_DIAG_PATH_BYTES 232u
#define RMM_DIAG_NO_MODULE UINT32_MAX
#define RMM_DIAG_STACK_LINES 8u
#define RMM_DIAG_LINES_COUNT 2048u

/* Who made the call, innermost frame first. An offset is that of the call in its file as the loader
 * placed it, the last byte of it; without a module the address. */
typedef struct rmm_diag_stack {
    _Atomic(uint32_t) sequence;    /* odd: in flux */
    _Atomic(uint32_t) frame_count; /* 0: not captured */
    _Atomic(uint64_t) offsets[RMM_DIAG_FRAMES_COUNT];
    _Atomic(uint32_t) modules[RMM_DIAG_FRAMES_COUNT]; /* entry; RMM_DIAG_NO_MODULE */
    _Atomic(uint32_t)
        lines[RMM_DIAG_STACK_LINES]; /* of Python, the same order; entry */
    _Atomic(uint32_t) line_count;    /* 0: none */
    uint32_t reserved0;
} rmm_diag_stack_t;

/* A line of Python; never changes once it counts. Both texts are UTF-8 with a NUL; the front is cut
 * off. */
typedef struct rmm_diag_line {
    char file[124];
    char function[64]; /* with its classes, from Python 3.11 on */
    uint32_t number;   /* 0: not known */
} rmm_diag_line_t;

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

#define RMM_DIAG_SECTION(name, type, bytes)                                            \
    static_assert(sizeof(type) == (bytes), #name ": docs/diag-format.md");
RMM_DIAG_SECTION_MAP(RMM_DIAG_SECTION)
#undef RMM_DIAG_SECTION
static_assert(sizeof(rmm_diag_header_t) == 680, "diag header layout is ABI");
static_assert(
    offsetof(rmm_diag_header_t, ready) == 24 &&
        offsetof(rmm_diag_header_t, mode) == 40 &&
        offsetof(rmm_diag_header_t, source) == 72 &&
        offsetof(rmm_diag_header_t, kernels) == 168 &&
        offsetof(rmm_diag_header_t, launches) == 392 &&
        offsetof(rmm_diag_header_t, left_bytes) == 584 &&
        offsetof(rmm_diag_header_t, python) == 656,
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
