/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of blocks made by hand, and the texts of the files that show them. What holds of any
 * text, however hostile its report, is checked here and ends the test at once.
 */
#ifndef RMM_TESTS_FUSE_BLOCKS_FIXTURE_H
#define RMM_TESTS_FUSE_BLOCKS_FIXTURE_H

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "render/parts.h"

#define FIXTURE_RESOURCES 3
#define FIXTURE_ROWS 60

static const uint8_t block_files[] = {
    FILE_map, FILE_map_svg, FILE_streams, FILE_size_histogram, FILE_allocations};
#define BLOCK_FILES (sizeof(block_files) / sizeof(block_files[0]))

/* A report with so many rows behind it; the resources share them. */
static inline void blocks_header(rmm_blocks_header_t *header, uint32_t rows)
{
    *header = (rmm_blocks_header_t){
        .magic = RMM_BLOCKS_MAGIC,
        .version_major = RMM_BLOCKS_MAJOR,
        .header_bytes = sizeof(*header),
        .ready = 1,
        .resources_offset = sizeof(*header),
        .resources_stride = sizeof(rmm_blocks_resource_t),
        .resources_count = FIXTURE_RESOURCES,
        .rows_offset =
            sizeof(*header) + FIXTURE_RESOURCES * sizeof(rmm_blocks_resource_t),
        .rows_stride = sizeof(rmm_blocks_row_t),
        .rows_count = rows};
    header->file_bytes = header->rows_offset + (uint64_t)rows * header->rows_stride;
}

static inline void blocks_resources(rmm_blocks_resource_t *resources, uint32_t rows)
{
    for (uint32_t i = 0; i < FIXTURE_RESOURCES; i++) {
        resources[i] = (rmm_blocks_resource_t){
            .resource_id = i + 1,
            .first_row = i * (rows / FIXTURE_RESOURCES),
            .row_count = rows / FIXTURE_RESOURCES};
    }
}

static inline void blocks_check(const text_t *text, uint8_t file)
{
    static const char end[] = "</svg>\n";
    if (text->failed != TEXT_GOOD || text->length > TEXT_BYTES_MAX + 1024 ||
        text->length == 0 || text->data[text->length - 1] != '\n' ||
        (file == FILE_map_svg &&
         (text->length < sizeof(end) ||
          memcmp(text->data + text->length - strlen(end), end, strlen(end)) != 0))) {
        abort();
    }
}

/* The text of one of the files, for resource 1, which stands on resource 2. The caller frees
 * it. */
static inline void
blocks_render(const rmm_blocks_file_t *file, uint8_t id, text_t *text)
{
    subject_t subject = {
        .node =
            {.dir = id == FILE_allocations ? DIR_PROCESS : DIR_RESOURCE, .file = id},
        .blocks_count = 1,
        .blocks = {*file},
        .resource_id = 1,
        .places_count = 2,
        .places = {{1, 2, 0}, {2, 0, -1}}};
    subject.blocks[0].fd = dup(file->fd);
    text_init(text);
    (void)render_end(&subject, text);
    blocks_check(text, id);
}

/* What the reader gives of each row, in whatever file. */
static inline void blocks_check_rows(const rmm_blocks_file_t *file)
{
    static rmm_blocks_row_t rows[RMM_BLOCKS_ROWS_MAX];
    rmm_blocks_resource_t resource;
    for (uint32_t i = 0; i < RMM_BLOCKS_RESOURCES_MAX; i++) {
        uint32_t count = 0;
        if (rmm__block_report_resource_at(file, i, &resource)) {
            count = rmm__block_report_read(file, &resource, rows);
        }
        if (count > RMM_BLOCKS_ROWS_MAX) {
            abort();
        }
        for (uint32_t j = 0; j < count; j++) {
            if (rows[j].bytes == 0 || rows[j].address + rows[j].bytes < rows[j].bytes ||
                rows[j].padding > rows[j].bytes || rows[j].state == 0 ||
                rows[j].state >= RMM_BLOCK_STATES) {
                abort();
            }
        }
    }
}

#endif /* RMM_TESTS_FUSE_BLOCKS_FIXTURE_H */
