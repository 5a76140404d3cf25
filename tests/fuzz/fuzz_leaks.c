/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of the list of leaks on hostile files. */
#include "fuzz/changes.h"

#include "segment/segment_leaks_reader.h"

#define ROWS 70
#define MODULES 4

typedef struct sample {
    rmm_leaks_header_t header;
    rmm_leaks_module_t modules[MODULES];
    rmm_leaks_row_t rows[ROWS];
} sample_t;

static void make(sample_t *sample)
{
    rmm_leaks_header_t *header = &sample->header;

    memset(sample, 0, sizeof(*sample));
    header->magic = RMM_LEAKS_MAGIC;
    header->version_major = RMM_LEAKS_MAJOR;
    header->header_bytes = sizeof(*header);
    header->file_bytes = sizeof(*sample);
    header->rows_offset = offsetof(sample_t, rows);
    header->rows_stride = sizeof(rmm_leaks_row_t);
    header->rows_count = ROWS;
    header->rows_used = ROWS;
    header->modules_offset = offsetof(sample_t, modules);
    header->modules_stride = sizeof(rmm_leaks_module_t);
    header->modules_count = MODULES;
    header->modules_used = MODULES;
    header->ready = 1;
    for (uint32_t i = 0; i < MODULES; i++) {
        sample->modules[i] = (rmm_leaks_module_t){
            .begin = 4096 * i, .end = 4096 * (i + 1), .path = "/lib/one.so"};
    }
    for (uint32_t i = 0; i < ROWS; i++) {
        sample->rows[i].resource_id = 1;
        sample->rows[i].frame_count = i % (RMM_LEAKS_FRAMES + 1);
    }
}

static bool see(const rmm_leak_info_t *leak, void *arg)
{
    uint64_t *sum = arg;

    if (leak->frame_count > RMM_LEAKS_FRAMES || leak->resource_id == 0) {
        abort();
    }
    for (uint32_t i = 0; i < leak->frame_count; i++) {
        *sum += leak->frames[i];
    }
    return true;
}

static bool see_module(const rmm_leaks_module_t *module, void *arg)
{
    uint64_t *sum = arg;

    if (module->begin >= module->end) {
        abort();
    }
    *sum += strlen(module->path);
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    sample_t sample;
    rmm_leaks_file_t file;
    uint64_t sum = 0;
    int fd;

    make(&sample);
    fd = changed_file(&sample, sizeof(sample), data, bytes);
    if (rmm__leaks_attach(&file, fd) == 0) {
        (void)rmm__leaks_each(&file, see, &sum);
        rmm__leaks_each_module(&file, see_module, &sum);
    }
    (void)close(fd);
    return 0;
}
