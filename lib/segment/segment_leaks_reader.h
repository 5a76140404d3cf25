/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads another process's "<segment>.leaks" and trusts nothing in it: sizes, offsets x
 * counts are checked before use. Reads with pread only. Fuzzed: tests/fuzz.
 *
 * Threads: a file may be read from several threads at once; open and close may not race
 * with reads.
 */
#ifndef RMM_SEGMENT_LEAKS_READER_H
#define RMM_SEGMENT_LEAKS_READER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "segment/segment_leaks.h"

#define RMM_LEAKS_FILE_BYTES_MAX (16u << 20)
#define RMM_LEAKS_MODULES_MAX 4096u /* more are not read */
#define RMM_LEAKS_ROWS_MAX 16384u   /* likewise; as many as a writer has room for */

typedef struct rmm_leaks_file {
    int fd;
    rmm_leaks_header_t header; /* checked copy */
} rmm_leaks_file_t;

/*
 * Open the side file of `segment` in dirfd. Refuses what is not a regular file of
 * `owner` with one link, or is inconsistent. Returns 0 or a negative errno:
 * -ENOENT if there is none, -EAGAIN while it is being made, -EPROTO if it is refused.
 */
int rmm__leaks_open(
    rmm_leaks_file_t *file, int dirfd, const char *segment, uid_t owner);

/* The same on an open descriptor, which is kept on success (tests, fuzzing: any owner). */
int rmm__leaks_attach(rmm_leaks_file_t *file, int fd);

void rmm__leaks_close(rmm_leaks_file_t *file);

/* A live block, as it was at one moment. */
typedef struct rmm_leak_info {
    uint64_t address, bytes, stream, allocated_ns; /* CLOCK_MONOTONIC */
    uint32_t resource_id, thread;
    int32_t device;
    uint32_t frame_count; /* at most RMM_LEAKS_FRAMES */
    uint64_t frames[RMM_LEAKS_FRAMES];
} rmm_leak_info_t;

/* False ends the walk. */
typedef bool (*rmm_leak_fn)(const rmm_leak_info_t *leak, void *arg);

/*
 * Calls the function for every block of the list. A row that its writer changes during every
 * attempt to read it is left out. Returns the number of those.
 */
uint32_t rmm__leaks_each(const rmm_leaks_file_t *file, rmm_leak_fn visit, void *arg);

/* Rows in use that rmm__leaks_each() reads (at most RMM_LEAKS_ROWS_MAX), and those it does not. */
uint32_t rmm__leaks_row_count(const rmm_leaks_file_t *file);
uint32_t rmm__leaks_rows_unread(const rmm_leaks_file_t *file);

/* False ends the walk. */
typedef bool (*rmm_leaks_module_fn)(const rmm_leaks_module_t *module, void *arg);

/*
 * Calls the function for every module that the file lists, in the order in which they were loaded:
 * the last module that contains an address is the right one. begin < end, and the path is clean
 * text. To be called after rmm__leaks_each(): then the modules of all those blocks are listed.
 */
void rmm__leaks_each_module(
    const rmm_leaks_file_t *file, rmm_leaks_module_fn visit, void *arg);

#endif /* RMM_SEGMENT_LEAKS_READER_H */
