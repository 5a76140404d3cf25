/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader of the list of leaks; see segment_leaks_reader.h.
 *
 * A consistent row: its copy lies between two looks at its sequence number that agree.
 * Rows are many, so the three reads are made for a piece of the table at once; only rows
 * that moved meanwhile are read again one by one, a bounded number of times.
 */
#include "segment/segment_leaks_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segment/segment_side.h"
#include "segment/text.h"

#define PIECE_ROWS 32u
#define STRIDE_MAX 512u
#define ROW_TRIES 8

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    ssize_t got;

    do {
        got = pread(fd, to, bytes, (off_t)offset);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes;
}

/* --- opening ------------------------------------------------------------------------ */

static bool table_fits(
    const rmm_leaks_header_t *header, uint32_t offset, uint32_t stride, uint32_t count)
{
    return offset >= header->header_bytes && offset % 8 == 0 && stride % 8 == 0 &&
           offset + (uint64_t)stride * count <= header->file_bytes;
}

static bool header_holds(const rmm_leaks_header_t *header, uint64_t file_bytes)
{
    return header->magic == RMM_LEAKS_MAGIC &&
           header->version_major == RMM_LEAKS_MAJOR &&
           header->header_bytes >= sizeof(*header) &&
           header->file_bytes <= file_bytes && file_bytes <= RMM_LEAKS_FILE_BYTES_MAX &&
           header->rows_stride >= sizeof(rmm_leaks_row_t) &&
           header->rows_stride <= STRIDE_MAX &&
           header->modules_stride >= sizeof(rmm_leaks_module_t) &&
           table_fits(
               header, header->rows_offset, header->rows_stride, header->rows_count) &&
           table_fits(
               header, header->modules_offset, header->modules_stride,
               header->modules_count);
}

int rmm_leaks_attach(rmm_leaks_file_t *file, int fd)
{
    rmm_leaks_header_t *header = &file->header;
    struct stat status;

    file->fd = -1;
    if (fstat(fd, &status) != 0) {
        return -errno;
    }
    /* Twice: words of the copy that first showed `ready` may be older than it. */
    for (int i = 0; i < 2; i++) {
        if (!S_ISREG(status.st_mode) || !read_at(fd, header, sizeof(*header), 0)) {
            return -EPROTO;
        }
        if (atomic_load_explicit(&header->ready, memory_order_relaxed) == 0) {
            return -EAGAIN;
        }
    }
    if (!header_holds(header, (uint64_t)status.st_size)) {
        return -EPROTO;
    }
    file->fd = fd;
    return 0;
}

int rmm_leaks_open(rmm_leaks_file_t *file, int dirfd, const char *segment, uid_t owner)
{
    int fd = rmm_side_file_open(dirfd, segment, RMM_LEAKS_SUFFIX, owner);
    int error;

    file->fd = -1;
    if (fd < 0) {
        return fd;
    }
    error = rmm_leaks_attach(file, fd);
    if (error != 0) {
        (void)close(fd);
    }
    return error;
}

void rmm_leaks_close(rmm_leaks_file_t *file)
{
    if (file->fd >= 0) {
        (void)close(file->fd);
        file->fd = -1;
    }
}

/* --- rows --------------------------------------------------------------------------- */

#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)

/* One piece of the table, read three times; the middle one is shown. */
typedef struct piece {
    _Alignas(8) unsigned char before[PIECE_ROWS * STRIDE_MAX];
    _Alignas(8) unsigned char rows[PIECE_ROWS * STRIDE_MAX];
    _Alignas(8) unsigned char after[PIECE_ROWS * STRIDE_MAX];
} piece_t;

static const rmm_leaks_row_t *row_in(const unsigned char *rows, size_t offset)
{
    return (const rmm_leaks_row_t *)(const void *)(rows + offset);
}

static bool
read_piece(const rmm_leaks_file_t *file, piece_t *piece, uint32_t first, uint32_t count)
{
    const rmm_leaks_header_t *header = &file->header;
    size_t bytes = (size_t)count * header->rows_stride;
    uint64_t offset = header->rows_offset + (uint64_t)first * header->rows_stride;

    return read_at(file->fd, piece->before, bytes, offset) &&
           read_at(file->fd, piece->rows, bytes, offset) &&
           read_at(file->fd, piece->after, bytes, offset);
}

typedef enum look { LOOK_EMPTY, LOOK_LIVE, LOOK_MOVING } look_t;

/* The row at `offset` of the piece. */
static look_t look_at(const piece_t *piece, size_t offset, rmm_leak_info_t *out)
{
    const rmm_leaks_row_t *row = row_in(piece->rows, offset);
    uint32_t before = GET(row_in(piece->before, offset)->sequence);

    if (before % 2 != 0 || before != GET(row_in(piece->after, offset)->sequence)) {
        return LOOK_MOVING;
    }
    out->resource_id = GET(row->resource_id);
    out->address = GET(row->address);
    out->bytes = GET(row->bytes);
    out->allocated_ns = GET(row->allocated_ns);
    out->stream = GET(row->stream);
    out->thread = GET(row->thread);
    out->device = GET(row->device);
    out->frame_count = GET(row->frame_count);
    if (out->frame_count > RMM_LEAKS_FRAMES) {
        out->frame_count = RMM_LEAKS_FRAMES;
    }
    for (uint32_t i = 0; i < out->frame_count; i++) {
        out->frames[i] = GET(row->frames[i]);
    }
    return out->resource_id != 0 ? LOOK_LIVE : LOOK_EMPTY;
}

static look_t
look_again(const rmm_leaks_file_t *file, uint32_t index, rmm_leak_info_t *out)
{
    piece_t piece;

    for (int i = 0; i < ROW_TRIES; i++) {
        look_t look;

        if (!read_piece(file, &piece, index, 1)) {
            return LOOK_EMPTY;
        }
        look = look_at(&piece, 0, out);
        if (look != LOOK_MOVING) {
            return look;
        }
    }
    return LOOK_MOVING;
}

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t rmm_leaks_each(const rmm_leaks_file_t *file, rmm_leak_fn visit, void *arg)
{
    uint32_t rows = least(GET(file->header.rows_used), file->header.rows_count);
    uint32_t left_out = 0;
    piece_t piece;

    for (uint32_t first = 0; first < rows; first += PIECE_ROWS) {
        uint32_t count = least(PIECE_ROWS, rows - first);

        if (!read_piece(file, &piece, first, count)) {
            return left_out;
        }
        for (uint32_t i = 0; i < count; i++) {
            rmm_leak_info_t leak;
            look_t look = look_at(&piece, (size_t)i * file->header.rows_stride, &leak);

            if (look == LOOK_MOVING) {
                look = look_again(file, first + i, &leak);
            }
            left_out += look == LOOK_MOVING;
            if (look == LOOK_LIVE && !visit(&leak, arg)) {
                return left_out;
            }
        }
    }
    return left_out;
}

/* --- modules ------------------------------------------------------------------------ */

/* How many there are by now: the header's copy may be older than the rows. */
static uint32_t count_modules(const rmm_leaks_file_t *file)
{
    uint32_t used;

    if (!read_at(
            file->fd, &used, sizeof(used),
            offsetof(rmm_leaks_header_t, modules_used))) {
        return 0;
    }
    return least(least(used, file->header.modules_count), RMM_LEAKS_MODULES_MAX);
}

void rmm_leaks_each_module(
    const rmm_leaks_file_t *file, rmm_leaks_module_fn visit, void *arg)
{
    const rmm_leaks_header_t *header = &file->header;
    uint32_t count = count_modules(file);

    for (uint32_t i = 0; i < count; i++) {
        rmm_leaks_module_t module;

        if (!read_at(
                file->fd, &module, sizeof(module),
                header->modules_offset + (uint64_t)i * header->modules_stride)) {
            return;
        }
        rmm__text_clean(module.path, sizeof(module.path));
        if (module.begin < module.end && !visit(&module, arg)) {
            return;
        }
    }
}
