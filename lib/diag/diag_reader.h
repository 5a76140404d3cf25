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

#include "diag/diag_format.h"

#define RMM_DIAG_FILE_BYTES_MAX (64u << 20)

typedef struct rmm_diag_file {
    int fd;
    rmm_diag_header_t header; /* checked copy; strings are terminated and clean */
} rmm_diag_file_t;

/*
 * Open the side file of `segment` in dirfd. Refuses what is not a regular file of
 * `owner` with one link, or does not hold together. Returns 0 or a negative errno:
 * -ENOENT if there is none, -EAGAIN while it is being made, -EPROTO if it is refused.
 */
int rmm_diag_open(rmm_diag_file_t *file, int dirfd, const char *segment, uid_t owner);

/* The same on an open descriptor, which is kept on success (tests, fuzzing: any owner). */
int rmm_diag_attach(rmm_diag_file_t *file, int fd);

void rmm_diag_close(rmm_diag_file_t *file);

/* Kernels and rows that may be read, at most what the file has room for. */
uint32_t rmm_diag_kernel_count(const rmm_diag_file_t *file);
uint32_t rmm_diag_row_count(const rmm_diag_file_t *file);

typedef struct rmm_diag_kernel_info {
    uint64_t launches;
    char name[248];
} rmm_diag_kernel_info_t;

/* False: there is none of that index. */
bool rmm_diag_read_kernel(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_kernel_info_t *out);

/* A live block, as it was at one moment. */
typedef struct rmm_diag_row_info {
    uint64_t address, bytes, stream_id, launches;
    uint64_t allocated_ns, first_use_ns, last_use_ns; /* CLOCK_MONOTONIC; 0: none yet */
    uint32_t resource_id;
    int32_t device;
    uint32_t first_kernel, last_kernel; /* RMM_DIAG_NO_KERNEL: none */
} rmm_diag_row_info_t;

/* False ends the walk. */
typedef bool (*rmm_diag_row_fn)(const rmm_diag_row_info_t *row, void *arg);

/*
 * Every live block. One that its writer is changing all the while is left out; returns
 * how many were, so that nothing is missing silently.
 */
uint32_t
rmm_diag_each_row(const rmm_diag_file_t *file, rmm_diag_row_fn visit, void *arg);

#endif /* RMM_DIAG_DIAG_READER_H */
