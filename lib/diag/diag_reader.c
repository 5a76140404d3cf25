/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reader of the diagnosis side file; see diag_reader.h.
 *
 * A consistent row: its copy lies between two looks at its sequence number that agree.
 * Rows are many, so the three reads are made for a piece of the table at once; only rows
 * that moved meanwhile are read again one by one, a bounded number of times.
 */
#include "diag/diag_reader.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segment/segment_side.h"

#define PIECE_ROWS 64u
#define STRIDE_MAX 1024u
#define ROW_TRIES 8

static bool read_at(int fd, void *to, size_t bytes, uint64_t offset)
{
    ssize_t got;
    do {
        got = pread(fd, to, bytes, (off_t)offset);
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)bytes;
}

/* Terminated, and without what would break a line of text. */
static void clean(char *text, size_t bytes)
{
    text[bytes - 1] = '\0';
    for (char *c = text; *c != '\0'; c++) {
        if ((unsigned char)*c < 0x20 || *c == 0x7f) {
            *c = '?';
        }
    }
}

/* --- opening -------------------------------------------------------------------------- */

static bool table_fits(
    const rmm_diag_header_t *header, uint32_t offset, uint32_t stride, uint32_t count,
    size_t record_bytes)
{
    return stride >= record_bytes && stride <= STRIDE_MAX && stride % 8 == 0 &&
           offset >= header->header_bytes && offset % 8 == 0 &&
           offset + (uint64_t)stride * count <= header->file_bytes;
}

static bool header_holds(const rmm_diag_header_t *header, uint64_t file_bytes)
{
    return header->magic == RMM_DIAG_MAGIC && header->version_major == RMM_DIAG_MAJOR &&
           header->header_bytes >= sizeof(*header) &&
           header->file_bytes <= file_bytes && file_bytes <= RMM_DIAG_FILE_BYTES_MAX &&
           table_fits(
               header, header->kernels_offset, header->kernels_stride,
               header->kernels_count, sizeof(rmm_diag_kernel_t)) &&
           table_fits(
               header, header->rows_offset, header->rows_stride, header->rows_count,
               sizeof(rmm_diag_row_t));
}

int rmm_diag_attach(rmm_diag_file_t *file, int fd)
{
    struct stat status;
    rmm_diag_header_t *header = &file->header;
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
    clean(header->mode, sizeof(header->mode));
    clean(header->source, sizeof(header->source));
    file->fd = fd;
    return 0;
}

int rmm_diag_open(rmm_diag_file_t *file, int dirfd, const char *segment, uid_t owner)
{
    int fd = rmm_side_file_open(dirfd, segment, RMM_DIAG_SUFFIX, owner);
    int error;

    file->fd = -1;
    if (fd < 0) {
        return fd;
    }
    error = rmm_diag_attach(file, fd);
    if (error != 0) {
        (void)close(fd);
    }
    return error;
}

void rmm_diag_close(rmm_diag_file_t *file)
{
    if (file->fd >= 0) {
        (void)close(file->fd);
        file->fd = -1;
    }
}

/* --- kernels -------------------------------------------------------------------------- */

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

uint32_t rmm_diag_kernel_count(const rmm_diag_file_t *file)
{
    uint32_t used =
        atomic_load_explicit(&file->header.kernels_used, memory_order_relaxed);
    return least(used, file->header.kernels_count);
}

uint32_t rmm_diag_row_count(const rmm_diag_file_t *file)
{
    uint32_t used = atomic_load_explicit(&file->header.rows_used, memory_order_relaxed);
    return least(used, file->header.rows_count);
}

bool rmm_diag_read_kernel(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_kernel_info_t *out)
{
    rmm_diag_kernel_t kernel;
    const rmm_diag_header_t *header = &file->header;
    if (index >= rmm_diag_kernel_count(file) ||
        !read_at(
            file->fd, &kernel, sizeof(kernel),
            header->kernels_offset + (uint64_t)header->kernels_stride * index)) {
        return false;
    }
    out->launches = atomic_load_explicit(&kernel.launches, memory_order_relaxed);
    memcpy(out->name, kernel.name, sizeof(out->name));
    clean(out->name, sizeof(out->name));
    return true;
}

/* --- rows ----------------------------------------------------------------------------- */

#define GET(row, field) atomic_load_explicit(&(row)->field, memory_order_relaxed)

static void copy_row(const rmm_diag_row_t *row, rmm_diag_row_info_t *out)
{
    out->address = GET(row, address);
    out->bytes = GET(row, bytes);
    out->stream_id = GET(row, stream_id);
    out->launches = GET(row, launches);
    out->allocated_ns = GET(row, allocated_ns);
    out->first_use_ns = GET(row, first_use_ns);
    out->last_use_ns = GET(row, last_use_ns);
    out->resource_id = GET(row, resource_id);
    out->device = GET(row, device);
    out->first_kernel = GET(row, first_kernel);
    out->last_kernel = GET(row, last_kernel);
}

/* One piece of the table, read three times; the middle one is shown. */
typedef struct piece {
    _Alignas(8) unsigned char before[PIECE_ROWS * STRIDE_MAX];
    _Alignas(8) unsigned char rows[PIECE_ROWS * STRIDE_MAX];
    _Alignas(8) unsigned char after[PIECE_ROWS * STRIDE_MAX];
} piece_t;

static bool
read_piece(const rmm_diag_file_t *file, piece_t *piece, uint32_t first, uint32_t count)
{
    const rmm_diag_header_t *header = &file->header;
    size_t bytes = (size_t)count * header->rows_stride;
    uint64_t offset = header->rows_offset + (uint64_t)first * header->rows_stride;
    return read_at(file->fd, piece->before, bytes, offset) &&
           read_at(file->fd, piece->rows, bytes, offset) &&
           read_at(file->fd, piece->after, bytes, offset);
}

static const rmm_diag_row_t *row_in(const unsigned char *rows, size_t offset)
{
    return (const rmm_diag_row_t *)(const void *)(rows + offset);
}

/* True if the row at `offset` of the piece did not move between the reads. */
static bool is_whole(const piece_t *piece, size_t offset)
{
    uint32_t before = GET(row_in(piece->before, offset), sequence);
    uint32_t after = GET(row_in(piece->after, offset), sequence);
    return before == after && before % 2 == 0;
}

typedef enum look { LOOK_EMPTY, LOOK_LIVE, LOOK_MOVING } look_t;

static look_t look_again(
    const rmm_diag_file_t *file, piece_t *piece, uint32_t index,
    rmm_diag_row_info_t *out)
{
    for (int i = 0; i < ROW_TRIES; i++) {
        if (!read_piece(file, piece, index, 1)) {
            return LOOK_EMPTY;
        }
        if (is_whole(piece, 0)) {
            const rmm_diag_row_t *row = row_in(piece->rows, 0);
            copy_row(row, out);
            return GET(row, live) != 0 ? LOOK_LIVE : LOOK_EMPTY;
        }
    }
    return LOOK_MOVING;
}

/* The walk goes by what did not move in the piece first, so that a second buffer is not
 * needed for those that did. */
static bool visit_whole(
    const rmm_diag_file_t *file, const piece_t *piece, uint32_t count, uint64_t *moved,
    rmm_diag_row_fn visit, void *arg)
{
    *moved = 0;
    for (uint32_t i = 0; i < count; i++) {
        size_t offset = (size_t)i * file->header.rows_stride;
        const rmm_diag_row_t *row = row_in(piece->rows, offset);
        if (!is_whole(piece, offset)) {
            *moved |= UINT64_C(1) << i;
        } else if (GET(row, live) != 0) {
            rmm_diag_row_info_t info;
            copy_row(row, &info);
            if (!visit(&info, arg)) {
                return false;
            }
        }
    }
    return true;
}

static_assert(PIECE_ROWS <= 64, "one bit each in `moved`");

uint32_t
rmm_diag_each_row(const rmm_diag_file_t *file, rmm_diag_row_fn visit, void *arg)
{
    piece_t piece;
    uint32_t rows = rmm_diag_row_count(file), left_out = 0;
    for (uint32_t first = 0; first < rows; first += PIECE_ROWS) {
        uint32_t count = least(PIECE_ROWS, rows - first);
        uint64_t moved;
        if (!read_piece(file, &piece, first, count) ||
            !visit_whole(file, &piece, count, &moved, visit, arg)) {
            return left_out;
        }
        for (uint32_t i = 0; i < count; i++) {
            rmm_diag_row_info_t info;
            if ((moved >> i & 1) == 0) {
                continue;
            }
            look_t look = look_again(file, &piece, first + i, &info);
            left_out += look == LOOK_MOVING;
            if (look == LOOK_LIVE && !visit(&info, arg)) {
                return left_out;
            }
        }
    }
    return left_out;
}
