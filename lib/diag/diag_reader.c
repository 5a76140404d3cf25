/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of the diagnosis side file; see diag_reader.h. */
#include "diag/diag_reader.h"

#include <errno.h>
#include <string.h>

#include "segment/segment_side.h"
#include "segment/text.h"

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* --- opening -------------------------------------------------------------------------- */

static rmm_side_table_t rows_of(const rmm_diag_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->rows_offset,
        .stride = header->rows_stride,
        .count = header->rows_count,
        .least_stride = sizeof(rmm_diag_row_t)};
}

static bool header_holds(const rmm_diag_header_t *header, uint64_t file_bytes)
{
    const rmm_side_table_t rows = rows_of(header);
    const rmm_side_table_t kernels = {
        header->kernels_offset, header->kernels_stride, header->kernels_count,
        sizeof(rmm_diag_kernel_t)};
    return header->magic == RMM_DIAG_MAGIC && header->version_major == RMM_DIAG_MAJOR &&
           header->header_bytes >= sizeof(*header) &&
           header->file_bytes <= file_bytes && file_bytes <= RMM_DIAG_FILE_BYTES_MAX &&
           rmm_side_table_fits(&rows, header->header_bytes, header->file_bytes) &&
           rmm_side_table_fits(&kernels, header->header_bytes, header->file_bytes);
}

int rmm_diag_attach(rmm_diag_file_t *file, int fd)
{
    rmm_diag_header_t *header = &file->header;
    uint64_t file_bytes;
    file->fd = -1;
    int error = rmm_side_file_header(
        fd, header, sizeof(*header), offsetof(rmm_diag_header_t, ready), &file_bytes);
    if (error != 0 || !header_holds(header, file_bytes)) {
        return error != 0 ? error : -EPROTO;
    }
    rmm__text_clean(header->mode, sizeof(header->mode));
    rmm__text_clean(header->source, sizeof(header->source));
    file->fd = fd;
    return 0;
}

int rmm_diag_open(rmm_diag_file_t *file, int dirfd, const char *segment, uid_t owner)
{
    int fd = rmm_side_file_open(dirfd, segment, RMM_DIAG_SUFFIX, owner);
    int error = fd < 0 ? fd : rmm_diag_attach(file, fd);

    return rmm_side_file_keep(&file->fd, fd, error);
}

void rmm_diag_close(rmm_diag_file_t *file)
{
    rmm__file_close(&file->fd);
}

/* --- kernels -------------------------------------------------------------------------- */

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
        !rmm__read_at(
            file->fd, &kernel, sizeof(kernel),
            header->kernels_offset + (uint64_t)header->kernels_stride * index)) {
        return false;
    }
    out->launches = atomic_load_explicit(&kernel.launches, memory_order_relaxed);
    memcpy(out->name, kernel.name, sizeof(out->name));
    rmm__text_clean(out->name, sizeof(out->name));
    return true;
}

/* --- rows ----------------------------------------------------------------------------- */

#define GET(row, field) atomic_load_explicit(&(row)->field, memory_order_relaxed)

typedef struct row_visitor {
    rmm_diag_row_fn visit;
    void *arg;
} row_visitor_t;

static bool visit_row(const void *bytes, void *arg)
{
    const row_visitor_t *visitor = arg;
    const rmm_diag_row_t *row = bytes;
    const rmm_diag_row_info_t info = {
        .address = GET(row, address),
        .bytes = GET(row, bytes),
        .stream_id = GET(row, stream_id),
        .launches = GET(row, launches),
        .allocated_ns = GET(row, allocated_ns),
        .first_use_ns = GET(row, first_use_ns),
        .last_use_ns = GET(row, last_use_ns),
        .resource_id = GET(row, resource_id),
        .device = GET(row, device),
        .first_kernel = GET(row, first_kernel),
        .last_kernel = GET(row, last_kernel)};
    return GET(row, live) == 0 || visitor->visit(&info, visitor->arg);
}

uint32_t
rmm_diag_each_row(const rmm_diag_file_t *file, rmm_diag_row_fn visit, void *arg)
{
    row_visitor_t visitor = {visit, arg};
    rmm_side_table_t rows = rows_of(&file->header);
    rows.count = rmm_diag_row_count(file);
    return rmm_side_rows_each(file->fd, &rows, visit_row, &visitor);
}
