/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of the diagnosis side file on hostile files. */
#include "fuzz/changes.h"

#include "diag/diag_names.h"
#include "diag/diag_reader.h"
#include "diag/peak_reader.h"
#include "diag/resource_reader.h"
#include "diag/stacks_reader.h"
#include "diag/verdict_reader.h"

#define KERNELS 2
#define ROWS 70
#define STACKS 3
#define MODULES 2
#define FUNCTIONS 3
#define PEAKS 3
#define PARTS 12
#define VERDICTS 5
#define SITES 3
#define RESOURCES 2

typedef struct sample {
    rmm_diag_header_t header;
    rmm_diag_kernel_t kernels[KERNELS];
    rmm_diag_row_t rows[ROWS];
    rmm_diag_function_t functions[FUNCTIONS];
    rmm_diag_peak_t peaks[PEAKS];
    rmm_diag_part_t parts[PARTS];
    rmm_diag_stack_t stacks[STACKS];
    rmm_diag_module_t modules[MODULES];
    rmm_diag_verdict_entry_t verdicts[VERDICTS];
    rmm_diag_stack_t sites[SITES];
    rmm_diag_resource_t resources[RESOURCES];
} sample_t;

static void make_verdicts(sample_t *sample)
{
    rmm_diag_header_t *header = &sample->header;
    header->verdicts.offset = offsetof(sample_t, verdicts);
    header->verdicts.stride = sizeof(rmm_diag_verdict_entry_t);
    header->verdicts.count = VERDICTS;
    header->judged_since_ns = 1;
    for (uint32_t i = 0; i < VERDICTS; i++) {
        sample->verdicts[i].verdict = i;
        sample->verdicts[i].byte_ms = UINT64_MAX / 2;
        sample->verdicts[i].site = i;
    }
    header->sites.offset = offsetof(sample_t, sites);
    header->sites.stride = sizeof(rmm_diag_stack_t);
    header->sites.count = SITES;
    sample->sites[1].frame_count = 2;
    header->resources.offset = offsetof(sample_t, resources);
    header->resources.stride = sizeof(rmm_diag_resource_t);
    header->resources.count = RESOURCES;
    sample->resources[1].id = 1;
}

static void make(sample_t *sample)
{
    rmm_diag_header_t *header = &sample->header;
    memset(sample, 0, sizeof(*sample));
    header->magic = RMM_DIAG_MAGIC;
    header->version_major = RMM_DIAG_MAJOR;
    header->version_minor = RMM_DIAG_MINOR;
    header->header_bytes = sizeof(*header);
    header->file_bytes = sizeof(*sample);
    header->kernels.offset = offsetof(sample_t, kernels);
    header->kernels.stride = sizeof(rmm_diag_kernel_t);
    header->kernels.count = KERNELS;
    header->rows.offset = offsetof(sample_t, rows);
    header->rows.stride = sizeof(rmm_diag_row_t);
    header->rows.count = ROWS;
    header->functions.offset = offsetof(sample_t, functions);
    header->functions.stride = sizeof(rmm_diag_function_t);
    header->functions.count = FUNCTIONS;
    header->functions.used = FUNCTIONS;
    memset(sample->functions[0].name, 'f', sizeof(sample->functions[0].name));
    header->peaks.offset = offsetof(sample_t, peaks);
    header->peaks.stride = sizeof(rmm_diag_peak_t);
    header->peaks.count = PEAKS;
    header->peaks.used = PEAKS;
    header->parts.offset = offsetof(sample_t, parts);
    header->parts.stride = sizeof(rmm_diag_part_t);
    header->parts.count = PARTS;
    for (uint32_t i = 0; i < PEAKS; i++) {
        sample->peaks[i].when_ns = 1;
        sample->peaks[i].bytes = 100;
    }
    for (uint32_t i = 0; i < PARTS; i++) {
        sample->parts[i].when_ns = 1;
        sample->parts[i].first_user = i;
        sample->parts[i].site = i;
    }
    header->stacks.offset = offsetof(sample_t, stacks);
    header->stacks.stride = sizeof(rmm_diag_stack_t);
    header->stacks.count = STACKS;
    header->modules.offset = offsetof(sample_t, modules);
    header->modules.stride = sizeof(rmm_diag_module_t);
    header->modules.count = MODULES;
    header->modules.used = MODULES;
    memset(sample->modules[1].path, 'm', sizeof(sample->modules[1].path));
    sample->stacks[1].frame_count = RMM_DIAG_FRAMES_COUNT;
    make_verdicts(sample);
    header->ready = 1;
    header->kernels.used = KERNELS;
    header->rows.used = ROWS;
    memset(sample->kernels[0].name, 'k', sizeof(sample->kernels[0].name));
    for (uint32_t i = 0; i < ROWS; i++) {
        sample->rows[i].live = 1;
        sample->rows[i].site = i;
    }
}

static bool see(const rmm_diag_row_info_t *row, void *arg)
{
    uint64_t *sum = arg;
    *sum += row->bytes + row->first_user;
    return true;
}

/* The site that a row names may be any number. */
static void exercise_sites(const rmm_diag_file_t *file, const rmm_diag_groups_t *groups)
{
    rmm_diag_stack_info_t stack;
    for (uint32_t i = 0; i < groups->count; i++) {
        if (rmm__diag_read_site(file, groups->entries[i].site, &stack) &&
            stack.frame_count > RMM_DIAG_FRAMES_COUNT) {
            abort();
        }
        rmm_diag_resource_name_t name;
        rmm__diag_read_resource(file, groups->entries[i].resource_id, &name);
        if (strnlen(name.name, sizeof(name.name)) == sizeof(name.name)) {
            abort();
        }
    }
}

static void exercise_groups(const rmm_diag_file_t *file)
{
    static rmm_diag_groups_t groups;
    rmm_diag_composition_t composition;
    for (uint32_t i = 0; i < 5; i++) {
        if (rmm__diag_read_composition(file, i, &groups, &composition) &&
            groups.count > RMM_DIAG_GROUPS_MAX) {
            abort();
        }
        exercise_sites(file, &groups);
    }
    rmm__diag_read_verdicts(file, 1000, true, &groups);
    exercise_sites(file, &groups);
    for (uint32_t i = 0; i < groups.count; i++) {
        if (rmm__diag_verdict_name(groups.entries[i].verdict)[0] == '\0' ||
            rmm__diag_confidence(file, groups.entries[i].verdict)[0] == '\0') {
            abort();
        }
    }
}

static void exercise_stacks(const rmm_diag_file_t *file)
{
    rmm_diag_stack_info_t stack;
    rmm_diag_module_info_t module;
    for (uint32_t i = 0; i < STACKS + 2; i++) {
        if (rmm__diag_read_stack(file, i, &stack) &&
            stack.frame_count > RMM_DIAG_FRAMES_COUNT) {
            abort();
        }
        if (rmm__diag_read_module(file, i, &module) &&
            (strnlen(module.path, sizeof(module.path)) == sizeof(module.path) ||
             module.build_id_bytes > sizeof(module.build_id))) {
            abort();
        }
    }
}

static void exercise(const rmm_diag_file_t *file)
{
    rmm_diag_kernel_info_t kernel;
    uint64_t sum = 0;
    exercise_stacks(file);
    (void)rmm__diag_each_row(file, see, &sum);
    exercise_groups(file);
    for (uint32_t i = 0; i < 4; i++) {
        if (rmm__diag_read_kernel(file, i, &kernel) &&
            strlen(kernel.name) >= sizeof(kernel.name)) {
            abort();
        }
    }
    for (uint32_t i = 0; i < 5; i++) {
        char name[RMM_DIAG_NAME_BYTES];
        (void)rmm__diag_read_user(file, RMM_DIAG_FUNCTION | i, name);
        if (strnlen(name, sizeof(name)) == sizeof(name)) {
            abort();
        }
    }
    if (strnlen(file->header.source, sizeof(file->header.source)) ==
        sizeof(file->header.source)) {
        abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    sample_t sample;
    rmm_diag_file_t file;
    int fd;

    make(&sample);
    fd = changed_file(&sample, sizeof(sample), data, bytes);
    if (rmm__diag_attach(&file, fd) == 0) {
        exercise(&file);
    }
    (void)close(fd);
    return 0;
}
