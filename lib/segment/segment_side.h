/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Side files, which a program keeps beside its segment as "<segment>.<suffix>", and how readers of
 * such files begin: a header whose `ready` word is written last, tables behind it, and rows that
 * change while they are read. Part of the readers, which trust no file: sizes and places are
 * checked here, what a row means is its reader's.
 *
 * A row begins with its sequence number, which is odd while the row changes. A copy of it is
 * consistent if it lies between two looks at that number that agree.
 */
#ifndef RMM_SEGMENT_SIDE_H
#define RMM_SEGMENT_SIDE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#define RMM_SIDE_STRIDE_MAX 1024u /* largest stride that a reader accepts */

/* Reads all the bytes. False: the file is too short, or cannot be read. */
bool rmm__read_at(int fd, void *to, size_t bytes, uint64_t offset);

/* Stops updates of the file's access time, because a daemon reads it many times a second. Works
 * only for the owner of the file and for privileged processes; otherwise it changes nothing. */
void rmm__file_read_often(int fd);

/* Closes *fd if it is open; it is -1 afterwards. */
void rmm__file_close(int *fd);

/*
 * A descriptor to read it with, or a negative errno: -ENOENT it was never made, -EPROTO
 * it is not `owner`'s or has another name besides, -ENAMETOOLONG. Never waits for a FIFO.
 */
int rmm__side_file_open(
    int dirfd, const char *segment, const char *suffix, uid_t owner);

/* The same, to write it as well. */
int rmm__side_file_open_to_write(
    int dirfd, const char *segment, const char *suffix, uid_t owner);

/* Completes an open: sets *kept to fd; after an error closes fd and sets *kept to -1. Returns
 * `error`. */
int rmm__side_file_keep(int *kept, int fd, int error);

/*
 * The header, whose 32-bit word at `ready_at` says that all else is written. 0, or a negative
 * errno: -EAGAIN being made, -EPROTO no regular file or too short.
 */
int rmm__side_file_header(
    int fd, void *header, size_t bytes, size_t ready_at, uint64_t *file_bytes_out);

typedef struct rmm_side_table {
    uint32_t offset, stride, count;
    uint32_t least_stride; /* what is read of a row */
} rmm_side_table_t;

/* True if it lies in the file behind the header. */
bool rmm__side_table_fits(
    const rmm_side_table_t *table, uint32_t header_bytes, uint64_t file_bytes);

/* `row`, the index'th, is a consistent copy, aligned to 8. False ends the walk. */
typedef bool (*rmm_side_row_fn)(const void *row, uint32_t index, void *arg);

/* Returns how many rows were left out, because they changed during every attempt to read them. */
uint32_t rmm__side_rows_each(
    int fd, const rmm_side_table_t *table, rmm_side_row_fn visit, void *arg);

#endif /* RMM_SEGMENT_SIDE_H */
