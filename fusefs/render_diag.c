/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of proc/<pid>/diag, from the side file that a diagnosis library keeps. Without
 * one `cupti` says off and the tables have no rows.
 *
 * Tables here are separated by tabs, and names of kernels stand last: they have spaces.
 * The side file is opened for each look: it appears when diagnosis is switched on, and
 * a look at it is rare.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <time.h>

#include "diag/diag_reader.h"
#include "dirs.h"
#include "render_parts.h"

static uint64_t since(uint64_t now, uint64_t then)
{
    return now > then ? now - then : 0;
}

static void put_kernel(const rmm_diag_file_t *file, uint32_t index, text_t *text)
{
    rmm_diag_kernel_info_t kernel;
    if (index != RMM_DIAG_NO_KERNEL && rmm_diag_read_kernel(file, index, &kernel) &&
        kernel.name[0] != '\0') {
        text_put_foreign(text, kernel.name);
    } else {
        text_puts(text, "-");
    }
}

typedef struct usage {
    const rmm_diag_file_t *file;
    text_t *text;
    uint64_t now_ns;
} usage_t;

static bool put_row(const rmm_diag_row_info_t *row, void *arg)
{
    const usage_t *usage = arg;
    uint64_t used_ns = row->last_use_ns != 0 ? row->last_use_ns : row->allocated_ns;
    text_printf(
        usage->text,
        "0x%" PRIx64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu32 "\t%" PRId32 "\t%" PRIu64
        "\t%" PRIu64 "\t%" PRIu64 "\t",
        row->address, row->bytes, row->stream_id, row->resource_id, row->device,
        since(usage->now_ns, row->allocated_ns), since(usage->now_ns, used_ns),
        row->launches);
    put_kernel(usage->file, row->first_kernel, usage->text);
    text_puts(usage->text, "\t");
    put_kernel(usage->file, row->last_kernel, usage->text);
    text_puts(usage->text, "\n");
    return true;
}

static void render_usage(const rmm_diag_file_t *file, text_t *text)
{
    usage_t usage = {file, text, clock_read_ns(CLOCK_MONOTONIC)};
    uint32_t left_out = rmm_diag_each_row(file, put_row, &usage);
    if (left_out > 0) {
        text_printf(text, "# %u more were being changed\n", left_out);
    }
}

static void render_kernels(const rmm_diag_file_t *file, text_t *text)
{
    rmm_diag_kernel_info_t kernel;
    for (uint32_t i = 0; i < rmm_diag_kernel_count(file); i++) {
        if (rmm_diag_read_kernel(file, i, &kernel)) {
            text_printf(text, "%u\t%" PRIu64 "\t", i, kernel.launches);
            text_put_foreign(text, kernel.name);
            text_puts(text, "\n");
        }
    }
}

/* What the library saw, and what it could not note. file NULL: there is none. */
static void render_stat(const rmm_diag_file_t *file, text_t *text)
{
    static const rmm_diag_header_t none = {
        .launches = FIGURE_UNKNOWN,
        .launches_unnamed = FIGURE_UNKNOWN,
        .parameter_failures = FIGURE_UNKNOWN,
        .blocks_dropped = FIGURE_UNKNOWN};
    const rmm_diag_header_t *header = file != NULL ? &file->header : &none;
    uint64_t kernels = file != NULL ? rmm_diag_kernel_count(file) : FIGURE_UNKNOWN;
    render_key(text, "kernels", kernels);
    render_key(text, "launches", header->launches);
    render_key(text, "launches_unnamed", header->launches_unnamed);
    render_key(text, "parameter_failures", header->parameter_failures);
    render_key(text, "blocks_dropped", header->blocks_dropped);
}

static void render_none(uint8_t file, text_t *text)
{
    if (file == FILE_CUPTI) {
        text_puts(text, "off\n");
    } else if (file == FILE_STAT) {
        render_stat(NULL, text);
    }
}

static void render_header(uint8_t file, text_t *text)
{
    if (file == FILE_USAGE) {
        text_puts(
            text, "# addr\tsize\tstream\tresource\tdevice\tage_ns\tidle_ns\tuses\t"
                  "first_use\tlast_use\n");
    } else if (file == FILE_KERNELS) {
        text_puts(text, "# kernel\tlaunches\tname\n");
    }
}

static void render_member(const rmm_diag_file_t *file, uint8_t id, text_t *text)
{
    switch (id) {
    case FILE_CUPTI:
        render_string(text, file->header.source);
        break;
    case FILE_STAT:
        render_stat(file, text);
        break;
    case FILE_USAGE:
        render_usage(file, text);
        break;
    case FILE_KERNELS:
        render_kernels(file, text);
        break;
    default:
        break;
    }
}

int render_diag(model_t *model, node_t node, text_t *text)
{
    const process_t *process = model_process(model, node.serial);
    if (process == NULL) {
        return -ENOENT;
    }
    bool found = false;
    render_header(node.file, text);
    for (uint32_t i = 0; i < process->member_count && !found; i++) {
        const member_t *member = process->members[i];
        rmm_diag_file_t file;
        if (member_counts(member) && member->dir != NULL &&
            rmm_diag_open(
                &file, member->dir->fd, member->segment.name, member->segment.uid) ==
                0) {
            render_member(&file, node.file, text);
            rmm_diag_close(&file);
            found = true; /* a process has one diagnosis library */
        }
    }
    if (!found) {
        render_none(node.file, text);
    }
    return 0;
}
