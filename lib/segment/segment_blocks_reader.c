/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of reports of blocks; see segment_blocks_reader.h. */
#include "segment/segment_blocks_reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "segment/segment_side.h"

#define PIECE_BYTES 16384u

static rmm_side_table_t rows_of(const rmm_blocks_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->rows_offset,
        .stride = header->rows_stride,
        .count = header->rows_count,
        .least_stride = sizeof(rmm_blocks_row_t)};
}

static bool header_holds(const rmm_blocks_header_t *header, uint64_t file_bytes)
{
    const rmm_side_table_t rows = rows_of(header);
    const rmm_side_table_t resources = {
        header->resources_offset, header->resources_stride, header->resources_count,
        sizeof(rmm_blocks_resource_t)};

    return header->magic == RMM_BLOCKS_MAGIC &&
           header->version_major == RMM_BLOCKS_MAJOR &&
           header->header_bytes >= sizeof(*header) &&
           header->file_bytes <= file_bytes &&
           file_bytes <= RMM_BLOCKS_FILE_BYTES_MAX &&
           header->rows_count <= RMM_BLOCKS_ROWS_MAX &&
           header->resources_count <= RMM_BLOCKS_RESOURCES_MAX &&
           rmm__side_table_fits(&rows, header->header_bytes, header->file_bytes) &&
           rmm__side_table_fits(&resources, header->header_bytes, header->file_bytes);
}

int rmm__block_report_attach(rmm_blocks_file_t *file, int fd)
{
    uint64_t file_bytes;
    int error = rmm__side_file_header(
        fd, &file->header, sizeof(file->header), offsetof(rmm_blocks_header_t, ready),
        &file_bytes);

    if (error == 0 && !header_holds(&file->header, file_bytes)) {
        error = -EPROTO;
    }
    file->fd = error == 0 ? fd : -1;
    return error;
}

int rmm__block_report_open(
    rmm_blocks_file_t *file, int dirfd, const char *segment, uid_t owner)
{
    int fd = rmm__side_file_open(dirfd, segment, RMM_BLOCKS_SUFFIX, owner);
    int error = fd < 0 ? fd : rmm__block_report_attach(file, fd);

    return rmm__side_file_keep(&file->fd, fd, error);
}

void rmm__block_report_close(rmm_blocks_file_t *file)
{
    rmm__file_close(&file->fd);
}

bool rmm__block_report_resource_at(
    const rmm_blocks_file_t *file, uint32_t index, rmm_blocks_resource_t *out)
{
    const rmm_blocks_header_t *header = &file->header;

    return index < header->resources_count &&
           rmm__read_at(
               file->fd, out, sizeof(*out),
               header->resources_offset + (uint64_t)index * header->resources_stride) &&
           out->first_row <= header->rows_count &&
           out->row_count <= header->rows_count - out->first_row;
}

bool rmm__block_report_find(
    const rmm_blocks_file_t *file, uint32_t resource_id, rmm_blocks_resource_t *out)
{
    for (uint32_t i = 0; i < file->header.resources_count; i++) {
        if (rmm__block_report_resource_at(file, i, out) &&
            out->resource_id == resource_id) {
            return true;
        }
    }
    return false;
}

static bool is_sound(const rmm_blocks_row_t *row)
{
    return row->state > 0 && row->state < RMM_BLOCK_STATES && row->bytes != 0 &&
           row->address <= UINT64_MAX - row->bytes && row->padding <= row->bytes;
}

uint32_t rmm__block_report_read(
    const rmm_blocks_file_t *file, const rmm_blocks_resource_t *resource,
    rmm_blocks_row_t *rows_out)
{
    const uint32_t stride = file->header.rows_stride;
    const uint32_t at_once = PIECE_BYTES / stride;
    unsigned char piece[PIECE_BYTES];
    uint32_t count = 0;

    for (uint32_t first = 0; first < resource->row_count; first += at_once) {
        uint32_t rest = resource->row_count - first;
        uint32_t rows = rest < at_once ? rest : at_once;

        if (!rmm__read_at(
                file->fd, piece, (size_t)rows * stride,
                file->header.rows_offset +
                    ((uint64_t)resource->first_row + first) * stride)) {
            return count;
        }
        for (uint32_t i = 0; i < rows; i++) {
            memcpy(&rows_out[count], piece + (size_t)i * stride, sizeof(rows_out[0]));
            count += is_sound(&rows_out[count]);
        }
    }
    return count;
}

static int by_address(const void *left, const void *right)
{
    const rmm_blocks_row_t *a = left, *b = right;

    if (a->address != b->address) {
        return a->address < b->address ? -1 : 1;
    }
    return (a->state > b->state) - (a->state < b->state);
}

void rmm__block_report_sort(rmm_blocks_row_t *rows, uint32_t count)
{
    if (count > 1) {
        qsort(rows, count, sizeof(rows[0]), by_address);
    }
}

const char *rmm__block_state_name(uint32_t state)
{
    static const char *const names[RMM_BLOCK_STATES] = {
        [RMM_BLOCK_CHUNK] = "chunk", [RMM_BLOCK_USED] = "used",
        [RMM_BLOCK_FREE] = "free",   [RMM_BLOCK_CACHED] = "cached",
        [RMM_BLOCK_GRAPH] = "graph", [RMM_BLOCK_LOST] = "lost"};

    return state < RMM_BLOCK_STATES && names[state] != NULL ? names[state] : "-1";
}
