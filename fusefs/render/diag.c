/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files of proc/<pid>/diag, from the side file that a diagnosis library keeps. Without
 * one `cupti` says off and the tables have no rows.
 *
 * Tables here are separated by tabs, and names of kernels stand last: they have spaces.
 * The side file is opened for each look: it appears when diagnosis is switched on, and
 * a look at it is rare.
 */
#include <inttypes.h>
#include <stddef.h>
#include <time.h>

#include "diag/diag_names.h"
#include "diag/modes.h"
#include "programs/found.h"
#include "render/parts.h"
#include "render/printers.h"

static uint64_t since(uint64_t now, uint64_t then)
{
    return now > then ? now - then : 0;
}

void render_block_user(const rmm_diag_file_t *file, uint32_t user, text_t *text)
{
    char name[RMM_DIAG_NAME_BYTES];
    if (file != NULL && rmm__diag_read_user(file, user, name)) {
        text_put_foreign(text, name);
    } else {
        text_puts(text, "-");
    }
}

/* The side file has them, because the resource may have ended. */
void render_block_resource(const rmm_diag_resource_name_t *resource, text_t *text)
{
    text_puts(text, "\t");
    text_put_foreign(text, resource->type[0] != '\0' ? resource->type : "-");
    text_puts(text, "\t");
    text_put_foreign(text, resource->name[0] != '\0' ? resource->name : "-");
    text_puts(text, "\n");
}

typedef struct usage {
    const rmm_diag_file_t *file;
    text_t *text;
    uint64_t now_ns;
    uint32_t seen;
} usage_t;

static bool put_row(const rmm_diag_row_info_t *row, void *arg)
{
    usage_t *usage = arg;
    uint64_t used_ns = row->last_use_ns != 0 ? row->last_use_ns : row->allocated_ns;
    usage->seen++;
    text_begin_row(usage->text);
    text_printf(
        usage->text,
        "0x%" PRIx64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu32 "\t%" PRId32 "\t%" PRIu64
        "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 "\t",
        row->address, row->bytes, row->stream_id, row->resource_id, row->device,
        since(usage->now_ns, row->allocated_ns), since(usage->now_ns, used_ns),
        row->launches, row->copies, row->fills, row->prefetches);
    render_block_user(usage->file, row->first_user, usage->text);
    text_puts(usage->text, "\t");
    render_block_user(usage->file, row->last_user, usage->text);
    text_puts(usage->text, "\n");
    return text_end_row(usage->text);
}

static void put_usage(const rmm_diag_file_t *file, text_t *text)
{
    usage_t usage = {file, text, rmm__clock_ns(CLOCK_MONOTONIC), 0};
    uint32_t left_out = rmm__diag_each_row(file, put_row, &usage);
    if (text->rows_left_out > 0) { /* free rows among the rest count, too */
        text_leave_out(text, rmm__diag_row_count(file) - usage.seen);
    }
    text_end_rows(text);
    if (left_out > 0) {
        text_printf(text, "# %u more were being changed\n", left_out);
    }
}

void print_usage(const subject_t *subject, text_t *text)
{
    text_puts(
        text, "#addr\tsize\tstream\tresource\tdevice\tage_ns\tidle_ns\tlaunches\t"
              "copies\tfills\tprefetches\tfirst_use\tlast_use\n");
    if (subject->has_diag) {
        put_usage(&subject->diag, text);
    }
}

void print_kernels(const subject_t *subject, text_t *text)
{
    const rmm_diag_file_t *file = &subject->diag;
    rmm_diag_kernel_info_t kernel;
    uint32_t count = subject->has_diag ? rmm__diag_kernel_count(file) : 0, at = 0;
    bool fits = true;
    text_puts(text, "#kernel\tlaunches\tname\n");
    for (; at < count && fits; at++) {
        if (rmm__diag_read_kernel(file, at, &kernel)) {
            text_begin_row(text);
            text_printf(text, "%u\t%" PRIu64 "\t", at, kernel.launches);
            text_put_foreign(text, kernel.name);
            text_puts(text, "\n");
            fits = text_end_row(text);
        }
    }
    text_leave_out(text, count - at);
    text_end_rows(text);
}

typedef struct findings {
    text_t *text;
    uint64_t now_ns;
} findings_t;

static void put_stream(text_t *text, uint64_t stream_id)
{
    if (stream_id == UINT64_MAX) {
        text_puts(text, "\t-");
    } else {
        text_printf(text, "\t%" PRIu64, stream_id);
    }
}

/* The work that the call is not ordered after, or the free that it comes behind; and how sure that
 * is. */
static void put_other(text_t *text, const rmm_diag_finding_info_t *finding)
{
    put_stream(text, finding->stream_id);
    put_stream(text, finding->other_stream_id);
    text_puts(text, "\t");
    if (finding->other_call == 0) {
        text_puts(text, "allocation");
    } else if (rmm__diag_finding_class(finding->kind)->other == RMM_DIAG_OTHER_FREE) {
        text_puts(text, "free");
    } else {
        text_put_foreign(
            text, finding->other_function[0] != '\0' ? finding->other_function : "-");
    }
    text_printf(text, "\t%s", rmm__diag_confidence_name(finding->confidence));
}

void render_finding(
    const rmm_diag_finding_info_t *finding, uint64_t now_ns, text_t *text)
{
    text_printf(
        text, "%s\t%s\t", rmm__diag_finding_name(finding->kind),
        rmm__diag_access_name(finding->access));
    text_put_foreign(text, finding->function[0] != '\0' ? finding->function : "-");
    text_printf(
        text,
        "\t%" PRIu64 "\t0x%" PRIx64 "\t%" PRIu64 "\t%" PRId64 "\t%" PRIu64 "\t%" PRIu64
        "\t%" PRIu64 "\t%" PRIu32 "\t%" PRId32 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu32,
        finding->count, finding->block_address, finding->block_bytes,
        (int64_t)(finding->address - finding->block_address), finding->bytes,
        rmm__diag_bytes_beyond(finding), finding->block_stream_id, finding->resource_id,
        finding->device, since(now_ns, finding->first_ns),
        since(now_ns, finding->last_ns), finding->index);
    put_other(text, finding);
    render_block_resource(&finding->resource, text);
}

static bool put_finding(const rmm_diag_finding_info_t *finding, void *arg)
{
    const findings_t *findings = arg;
    text_begin_row(findings->text);
    render_finding(finding, findings->now_ns, findings->text);
    return text_end_row(findings->text);
}

static void put_findings(const rmm_diag_file_t *file, text_t *text)
{
    findings_t findings = {text, rmm__clock_ns(CLOCK_MONOTONIC)};
    uint32_t left_out = rmm__diag_each_finding(file, put_finding, &findings);
    text_end_rows(text);
    if (left_out > 0) {
        text_printf(text, "# %u more were being changed\n", left_out);
    }
}

void render_findings_header(text_t *text)
{
    text_puts(
        text, "#finding\taccess\tcall\tcount\taddr\tsize\toffset\tlength\tbeyond\t"
              "stream\tresource\tdevice\tfirst_ns_ago\tlast_ns_ago\tid\ton_stream\t"
              "other_stream\tother\tconfidence\tresource_type\tresource_name\n");
}

void print_findings(const subject_t *subject, text_t *text)
{
    render_findings_header(text);
    if (subject->has_diag) {
        put_findings(&subject->diag, text);
    }
}

void print_findings_total(const subject_t *subject, text_t *text)
{
    render_value(
        text, subject->has_diag
                  ? atomic_load_explicit(
                        &subject->diag.header.findings_total, memory_order_relaxed)
                  : FIGURE_UNKNOWN);
}

static const struct {
    const char *key;
    size_t at; /* in the header: an atomic of 8 bytes */
} stats[] = {
#define STAT(field) {.key = #field, .at = offsetof(rmm_diag_header_t, field)},
    RMM_DIAG_COUNTER_MAP(STAT)
#undef STAT
};

static uint64_t header_count(const rmm_diag_file_t *file, size_t at)
{
    const void *where = (const char *)&file->header + at;
    return atomic_load_explicit((const _Atomic(uint64_t) *)where, memory_order_relaxed);
}

/* Events that the library saw, and those that it could not note. */
void print_diag_stat(const subject_t *subject, text_t *text)
{
    const rmm_diag_file_t *file = &subject->diag;
    render_key(
        text, "kernels",
        subject->has_diag ? rmm__diag_kernel_count(file) : FIGURE_UNKNOWN);
    for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++) {
        render_key(
            text, stats[i].key,
            subject->has_diag ? header_count(file, stats[i].at) : FIGURE_UNKNOWN);
    }
}

void print_cupti(const subject_t *subject, text_t *text)
{
    render_string(text, subject->has_diag ? subject->diag.header.source : "off");
}

/* Modes that are not in force yet have a second line. */
void print_mode(const subject_t *subject, text_t *text)
{
    const rmm_diag_file_t *file = &subject->diag;
    char wanted[RMM_DIAG_MODES_TEXT];
    render_string(text, subject->has_diag ? file->modes : "off");
    if (subject->has_diag && rmm__diag_has_switch(file) &&
        !rmm__diag_modes_are_applied(file)) {
        rmm__diag_modes_print(rmm__diag_modes_wanted(file), wanted);
        text_printf(text, "pending %s\n", wanted);
    }
}
