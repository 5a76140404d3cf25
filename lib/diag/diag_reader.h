/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads another process's "<segment>.diag" and trusts nothing in it: sizes, offsets x
 * counts, indexes and strings are checked before use. Reads with pread only.
 *
 * Own static library (rmm_diag_reader): no CUDA, no librmm-c.
 *
 * Threads: a file may be read from several threads at once; open and close may not race
 * with reads.
 */
#ifndef RMM_DIAG_DIAG_READER_H
#define RMM_DIAG_DIAG_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag/block_groups.h"
#include "diag/diag_format.h"
#include "diag/modes.h"
#include "segment/segment_side.h"

#define RMM_DIAG_FILE_BYTES_MAX (64u << 20)

typedef struct rmm_diag_file {
    int fd;
    rmm_diag_header_t header; /* checked copy; strings are terminated and clean */
    char modes[RMM_DIAG_MODES_TEXT]; /* in force */
} rmm_diag_file_t;

/* The section as the readers of side files read it. */
static inline rmm_side_table_t
rmm__diag_table(const rmm_diag_section_t *section, uint32_t bytes)
{
    return (rmm_side_table_t){
        .offset = section->offset,
        .stride = section->stride,
        .count = section->count,
        .least_stride = bytes};
}

/* Entries that may be read, of a section that is used in order. */
static inline uint32_t rmm__diag_used(const rmm_diag_section_t *section)
{
    uint32_t used = atomic_load_explicit(&section->used, memory_order_relaxed);

    return used < section->count ? used : section->count;
}

/*
 * Open the side file of `segment` in dirfd. Refuses what is not a regular file of
 * `owner` with one link, or is inconsistent. Returns 0 or a negative errno:
 * -ENOENT if there is none, -EAGAIN while it is being made, -EPROTO if it is refused.
 */
int rmm__diag_open(rmm_diag_file_t *file, int dirfd, const char *segment, uid_t owner);

/* The same on an open descriptor, which is kept on success (tests, fuzzing: any owner). */
int rmm__diag_attach(rmm_diag_file_t *file, int fd);

/* The same, also open for writing the requested modes. */
int rmm__diag_open_to_switch(
    rmm_diag_file_t *file, int dirfd, const char *segment, uid_t owner);

void rmm__diag_close(rmm_diag_file_t *file);

/* The modes (diag/modes.h) as they were when the file was opened; `modes` has those in
 * force as a text. A file of an older writer has no switch: requests are ignored. */
bool rmm__diag_has_switch(const rmm_diag_file_t *file);
uint32_t rmm__diag_modes_on(const rmm_diag_file_t *file);
uint32_t rmm__diag_modes_wanted(const rmm_diag_file_t *file);
/* The last request was applied. Modes that are not available are still missing from
 * modes_on. */
bool rmm__diag_modes_are_applied(const rmm_diag_file_t *file);
/* Request these modes, in a file opened for that. False: it cannot be written. */
bool rmm__diag_want_modes(const rmm_diag_file_t *file, uint32_t modes);

/* Kernels and rows that may be read, at most what the file has room for. */
uint32_t rmm__diag_kernel_count(const rmm_diag_file_t *file);
uint32_t rmm__diag_row_count(const rmm_diag_file_t *file);

#define RMM_DIAG_NAME_BYTES 248u

typedef struct rmm_diag_kernel_info {
    uint64_t launches;
    char name[RMM_DIAG_NAME_BYTES];
} rmm_diag_kernel_info_t;

/* False: there is none of that index. */
bool rmm__diag_read_kernel(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_kernel_info_t *out);

/* The name of a kernel or function; false, and an empty name: there is none. */
bool rmm__diag_read_user(
    const rmm_diag_file_t *file, uint32_t user, char name[RMM_DIAG_NAME_BYTES]);

/* Type and name of a resource; both are clean. */
typedef struct rmm_diag_resource_name {
    char type[24]; /* empty: not known */
    char name[64];
} rmm_diag_resource_name_t;

/* A live block, as it was at one moment. */
typedef struct rmm_diag_row_info {
    uint64_t address, bytes, stream_id;
    uint64_t launches, copies, fills, prefetches;     /* that used it */
    uint64_t allocated_ns, first_use_ns, last_use_ns; /* CLOCK_MONOTONIC; 0: none yet */
    uint64_t allocated_at, first_use_at, last_use_at; /* launches until then */
    uint32_t resource_id;
    int32_t device;
    uint32_t first_user, last_user; /* RMM_DIAG_NO_USER: none */
    uint32_t site;                  /* see rmm__diag_read_site(); 0: not known */
} rmm_diag_row_info_t;

/* Findings so far, repetitions included; one pread. False: it cannot be read any more. */
bool rmm__diag_read_findings_total(const rmm_diag_file_t *file, uint64_t *total_out);

/* A finding, as it was at one moment. */
typedef struct rmm_diag_finding_info {
    uint32_t index;  /* of its entry, which stays its own */
    uint32_t kind;   /* rmm_diag_finding_kind_t, or what a newer writer knows */
    uint32_t call;   /* rmm_diag_event_kind_t, the same */
    uint32_t access; /* RMM_DIAG_READS and so on */
    uint32_t resource_id;
    int32_t device;
    uint64_t count, first_ns, last_ns; /* CLOCK_MONOTONIC */
    uint64_t block_address, block_bytes, block_stream_id;
    uint64_t address, bytes; /* the range that was passed */
    uint64_t stream_id;      /* of the call; UINT64_MAX: not noted */
    /* of order: what was before. RMM_DIAG_NO_CALL: nothing, it is not about order */
    uint32_t other_call;      /* rmm_diag_event_kind_t; 0: the allocation */
    uint64_t other_stream_id; /* of a freed block: of its free */
    uint32_t confidence;      /* rmm_diag_confidence_level_t */
    bool is_in_graph;         /* `function` is a part of a graph that was launched */
    rmm_diag_resource_name_t resource;
    /* kernels, or functions that were called; clean, may be empty */
    char function[RMM_DIAG_NAME_BYTES];
    char other_function[RMM_DIAG_NAME_BYTES];
} rmm_diag_finding_info_t;

#define RMM_DIAG_NO_CALL UINT32_MAX

/* Bytes of the range that are behind the end of the block. */
uint64_t rmm__diag_bytes_beyond(const rmm_diag_finding_info_t *finding);

/* False ends the walk. */
typedef bool (*rmm_diag_finding_fn)(const rmm_diag_finding_info_t *finding, void *arg);

/* Every finding, oldest first; returns how many were left out because they kept changing. */
uint32_t rmm__diag_each_finding(
    const rmm_diag_file_t *file, rmm_diag_finding_fn visit, void *arg);

/* False ends the walk. */
typedef bool (*rmm_diag_row_fn)(const rmm_diag_row_info_t *row, void *arg);

/*
 * Every live block. One that its writer is changing all the while is left out; returns
 * how many were, so that nothing is missing silently.
 */
uint32_t
rmm__diag_each_row(const rmm_diag_file_t *file, rmm_diag_row_fn visit, void *arg);

/* The most bytes that were live in a location. */
typedef struct rmm_diag_peak_info {
    int32_t device; /* -1: host memory */
    uint64_t bytes, count;
    uint64_t when_ns; /* CLOCK_MONOTONIC */
} rmm_diag_peak_info_t;

uint32_t rmm__diag_peak_count(const rmm_diag_file_t *file);

/* False: there is none of that index, or it kept changing. */
bool rmm__diag_read_peak(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_peak_info_t *out);

/* Blocks of a peak that were freed since. */
typedef struct rmm_diag_part_info {
    uint32_t resource_id;
    uint32_t first_user;
    uint32_t site;
    uint64_t bytes, count;
} rmm_diag_part_info_t;

/* False ends the walk. */
typedef bool (*rmm_diag_part_fn)(const rmm_diag_part_info_t *part, void *arg);

/* Every part of the peak `index` that was at when_ns; returns how many kept changing. */
uint32_t rmm__diag_each_part(
    const rmm_diag_file_t *file, uint32_t index, uint64_t when_ns,
    rmm_diag_part_fn visit, void *arg);

/* False ends the walk. */
typedef bool (*rmm_diag_verdict_fn)(const rmm_diag_group_t *group, void *arg);

/* Every verdict on freed blocks; returns how many kept changing. */
uint32_t rmm__diag_each_verdict(
    const rmm_diag_file_t *file, rmm_diag_verdict_fn visit, void *arg);

#endif /* RMM_DIAG_DIAG_READER_H */
