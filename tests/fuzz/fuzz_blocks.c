/* SPDX-License-Identifier: Apache-2.0 */
/* Reports of blocks that are hostile files: the reader, and all texts made from one. */
#include "fuzz/changes.h"

#include "fuse/blocks_fixture.h"

typedef struct sample {
    rmm_blocks_header_t header;
    rmm_blocks_resource_t resources[FIXTURE_RESOURCES];
    rmm_blocks_row_t rows[FIXTURE_ROWS];
} sample_t;

static void make(sample_t *sample)
{
    memset(sample, 0, sizeof(*sample));
    blocks_header(&sample->header, FIXTURE_ROWS);
    blocks_resources(sample->resources, FIXTURE_ROWS);
    for (uint32_t i = 0; i < FIXTURE_ROWS; i++) {
        bool is_chunk = i % (FIXTURE_ROWS / FIXTURE_RESOURCES) == 0;

        sample->rows[i] = (rmm_blocks_row_t){
            .address = 0x700000000000 + i * 4096,
            .bytes = is_chunk ? 20 * 4096 : 4096,
            .stream = i % 2 == 0 ? RMM_BLOCKS_NO_STREAM : i,
            .padding = i,
            .state = is_chunk ? RMM_BLOCK_CHUNK : 2 + i % (RMM_BLOCK_STATES - 2)};
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    sample_t sample;
    rmm_blocks_file_t file;
    int fd;

    make(&sample);
    fd = changed_file(&sample, sizeof(sample), data, bytes);
    if (rmm__block_report_attach(&file, fd) == 0) {
        blocks_check_rows(&file);
        for (size_t i = 0; i < BLOCK_FILES; i++) {
            text_t text;

            blocks_render(&file, block_files[i], &text);
            text_fini(&text);
        }
    }
    (void)close(fd);
    return 0;
}
