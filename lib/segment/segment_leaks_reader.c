/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of the list of leaks; see segment_leaks_reader.h. */
#include "segment/segment_leaks_reader.h"

#include <errno.h>

#include "segment/clean_text.h"
#include "segment/segment_side.h"

#define GET(field) atomic_load_explicit(&(field), memory_order_relaxed)

static uint32_t least(uint32_t a, uint32_t b)
{
    return a < b ? a : b;
}

/* --- opening ------------------------------------------------------------------------ */

static rmm_side_table_t rows_of(const rmm_leaks_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->rows_offset,
        .stride = header->rows_stride,
        .count = header->rows_count,
        .least_stride = sizeof(rmm_leaks_row_t)};
}

static bool header_holds(const rmm_leaks_header_t *header, uint64_t file_bytes)
{
    const rmm_side_table_t rows = rows_of(header);
    const rmm_side_table_t modules = {
        header->modules_offset, header->modules_stride, header->modules_count,
        sizeof(rmm_leaks_module_t)};

    return header->magic == RMM_LEAKS_MAGIC &&
           header->version_major == RMM_LEAKS_MAJOR &&
           header->header_bytes >= sizeof(*header) &&
           header->file_bytes <= file_bytes && file_bytes <= RMM_LEAKS_FILE_BYTES_MAX &&
           rmm__side_table_fits(&rows, header->header_bytes, header->file_bytes) &&
           rmm__side_table_fits(&modules, header->header_bytes, header->file_bytes);
}

int rmm__leaks_attach(rmm_leaks_file_t *file, int fd)
{
    uint64_t file_bytes;
    int error = rmm__side_file_header(
        fd, &file->header, sizeof(file->header), offsetof(rmm_leaks_header_t, ready),
        &file_bytes);

    if (error == 0 && !header_holds(&file->header, file_bytes)) {
        error = -EPROTO;
    }
    file->fd = error == 0 ? fd : -1;
    return error;
}

int rmm__leaks_open(rmm_leaks_file_t *file, int dirfd, const char *segment, uid_t owner)
{
    int fd = rmm__side_file_open(dirfd, segment, RMM_LEAKS_SUFFIX, owner);
    int error = fd < 0 ? fd : rmm__leaks_attach(file, fd);

    return rmm__side_file_keep(&file->fd, fd, error);
}

void rmm__leaks_close(rmm_leaks_file_t *file)
{
    rmm__file_close(&file->fd);
}

/* --- rows --------------------------------------------------------------------------- */

typedef struct leak_visitor {
    rmm_leak_fn visit;
    void *arg;
} leak_visitor_t;

static bool visit_leak(const void *bytes, uint32_t index, void *arg)
{
    const leak_visitor_t *visitor = arg;
    const rmm_leaks_row_t *row = bytes;
    rmm_leak_info_t leak = {
        .resource_id = GET(row->resource_id),
        .address = GET(row->address),
        .bytes = GET(row->bytes),
        .allocated_ns = GET(row->allocated_ns),
        .stream = GET(row->stream),
        .thread = GET(row->thread),
        .device = GET(row->device),
        .frame_count = least(GET(row->frame_count), RMM_LEAKS_FRAMES),
    };
    (void)index;

    for (uint32_t i = 0; i < leak.frame_count; i++) {
        leak.frames[i] = GET(row->frames[i]);
    }
    return leak.resource_id == 0 || visitor->visit(&leak, visitor->arg);
}

static uint32_t rows_used(const rmm_leaks_file_t *file)
{
    return least(file->header.rows_count, GET(file->header.rows_used));
}

uint32_t rmm__leaks_row_count(const rmm_leaks_file_t *file)
{
    return least(rows_used(file), RMM_LEAKS_ROWS_MAX);
}

uint32_t rmm__leaks_rows_unread(const rmm_leaks_file_t *file)
{
    return rows_used(file) - rmm__leaks_row_count(file);
}

uint32_t rmm__leaks_each(const rmm_leaks_file_t *file, rmm_leak_fn visit, void *arg)
{
    leak_visitor_t visitor = {visit, arg};
    rmm_side_table_t rows = rows_of(&file->header);

    rows.count = rmm__leaks_row_count(file);
    return rmm__side_rows_each(file->fd, &rows, visit_leak, &visitor);
}

/* --- modules ------------------------------------------------------------------------ */

/* How many there are by now: the header's copy may be older than the rows. */
static uint32_t count_modules(const rmm_leaks_file_t *file)
{
    uint32_t used;

    if (!rmm__read_at(
            file->fd, &used, sizeof(used),
            offsetof(rmm_leaks_header_t, modules_used))) {
        return 0;
    }
    return least(least(used, file->header.modules_count), RMM_LEAKS_MODULES_MAX);
}

void rmm__leaks_each_module(
    const rmm_leaks_file_t *file, rmm_leaks_module_fn visit, void *arg)
{
    const rmm_leaks_header_t *header = &file->header;
    uint32_t count = count_modules(file);

    for (uint32_t i = 0; i < count; i++) {
        rmm_leaks_module_t module;

        if (!rmm__read_at(
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
