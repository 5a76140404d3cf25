/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads files beside a segment; see segment_side.h. Rows are many, so the three reads of a row
 * are made for a piece of the table at once; only rows that changed meanwhile are read again,
 * one by one, a bounded number of times.
 */
#include "segment/segment_side.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segment/open_in.h"

#define PIECE_ROWS 64u
#define PIECE_BYTES (PIECE_ROWS * RMM_SIDE_STRIDE_MAX)
#define ROW_TRIES 8

bool rmm__read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    ssize_t got;

    do {
        got = pread(fd, to, bytes, (off_t)offset);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes;
}

void rmm__file_read_often(int fd)
{
    int flags = fcntl(fd, F_GETFL);

    if (flags >= 0) {
        (void)fcntl(fd, F_SETFL, flags | O_NOATIME);
    }
}

void rmm__file_close(int *fd)
{
    if (*fd >= 0) {
        (void)close(*fd);
        *fd = -1;
    }
}

/* --- opening ------------------------------------------------------------------------ */

static int check_owner(int fd, uid_t owner)
{
    struct stat status;

    if (fstat(fd, &status) != 0) {
        return -errno;
    }
    return status.st_uid == owner && status.st_nlink == 1 ? 0 : -EPROTO;
}

static int
open_file(int dirfd, const char *segment, const char *suffix, uid_t owner, int flags)
{
    char name[128];
    int length = snprintf(name, sizeof(name), "%s.%s", segment, suffix);
    int error;
    int fd;

    if (length < 0 || (size_t)length >= sizeof(name)) {
        return -ENAMETOOLONG;
    }
    fd = rmm__open_in(dirfd, name, flags | O_NONBLOCK);
    if (fd < 0) {
        return -errno;
    }
    error = check_owner(fd, owner);
    if (error != 0) {
        (void)close(fd);
        return error;
    }
    return fd;
}

int rmm__side_file_open(int dirfd, const char *segment, const char *suffix, uid_t owner)
{
    return open_file(dirfd, segment, suffix, owner, O_RDONLY);
}

int rmm__side_file_open_to_write(
    int dirfd, const char *segment, const char *suffix, uid_t owner)
{
    return open_file(dirfd, segment, suffix, owner, O_RDWR);
}

int rmm__side_file_keep(int *kept, int fd, int error)
{
    if (error != 0) {
        rmm__file_close(&fd);
    }
    *kept = error == 0 ? fd : -1;
    return error;
}

int rmm__side_file_header(
    int fd, void *header, size_t bytes, size_t ready_at, uint64_t *file_bytes_out)
{
    struct stat status;
    uint32_t ready;

    if (fstat(fd, &status) != 0) {
        return -errno;
    }
    /* Twice: words of the copy that first showed `ready` may be older than it. */
    for (int i = 0; i < 2; i++) {
        if (!S_ISREG(status.st_mode) || !rmm__read_at(fd, header, bytes, 0)) {
            return -EPROTO;
        }
        memcpy(&ready, (const char *)header + ready_at, sizeof(ready));
        if (ready == 0) {
            return -EAGAIN;
        }
    }
    *file_bytes_out = (uint64_t)status.st_size;
    return 0;
}

/* --- tables ------------------------------------------------------------------------- */

bool rmm__side_table_fits(
    const rmm_side_table_t *table, uint32_t header_bytes, uint64_t file_bytes)
{
    return table->stride >= table->least_stride &&
           table->stride <= RMM_SIDE_STRIDE_MAX && table->stride % 8 == 0 &&
           table->offset >= header_bytes && table->offset % 8 == 0 &&
           table->offset + (uint64_t)table->stride * table->count <= file_bytes;
}

/* One piece of the table, read three times; the middle one is shown. */
typedef struct piece {
    _Alignas(8) unsigned char before[PIECE_BYTES];
    _Alignas(8) unsigned char rows[PIECE_BYTES];
    _Alignas(8) unsigned char after[PIECE_BYTES];
} piece_t;

/* Rows of the table from `first` on, to `at` of the piece. */
static bool read_rows(
    int fd, const rmm_side_table_t *table, uint32_t first, uint32_t count,
    piece_t *piece, size_t at)
{
    size_t bytes = (size_t)count * table->stride;
    uint64_t offset = table->offset + (uint64_t)first * table->stride;

    return rmm__read_at(fd, piece->before + at, bytes, offset) &&
           rmm__read_at(fd, piece->rows + at, bytes, offset) &&
           rmm__read_at(fd, piece->after + at, bytes, offset);
}

static bool is_whole(const piece_t *piece, size_t at)
{
    uint32_t before, after;

    memcpy(&before, piece->before + at, sizeof(before));
    memcpy(&after, piece->after + at, sizeof(after));
    return before == after && before % 2 == 0;
}

/* The row `index` of the table, which is at `at` of the piece. */
static bool become_whole(
    int fd, const rmm_side_table_t *table, uint32_t index, piece_t *piece, size_t at)
{
    for (int i = 0; i < ROW_TRIES && !is_whole(piece, at); i++) {
        if (!read_rows(fd, table, index, 1, piece, at)) {
            return false;
        }
    }
    return is_whole(piece, at);
}

uint32_t rmm__side_rows_each(
    int fd, const rmm_side_table_t *table, rmm_side_row_fn visit, void *arg)
{
    uint32_t left_out = 0;
    piece_t piece;

    for (uint32_t first = 0; first < table->count; first += PIECE_ROWS) {
        uint32_t rest = table->count - first;
        uint32_t count = rest < PIECE_ROWS ? rest : PIECE_ROWS;

        if (!read_rows(fd, table, first, count, &piece, 0)) {
            return left_out;
        }
        for (uint32_t i = 0; i < count; i++) {
            size_t at = (size_t)i * table->stride;

            if (!become_whole(fd, table, first + i, &piece, at)) {
                left_out++;
            } else if (!visit(piece.rows + at, first + i, arg)) {
                return left_out;
            }
        }
    }
    return left_out;
}
