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
#include "found.h"
#include "render_parts.h"

static uint64_t since(uint64_t now, uint64_t then)
{
    return now > then ? now - then : 0;
}

void render_block_user(const rmm_diag_file_t *file, uint32_t user, text_t *text)
{
    char name[RMM_DIAG_NAME_BYTES];
    if (file != NULL && rmm_diag_read_user(file, user, name)) {
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

static void render_usage(const render_rest_t *rest, text_t *text)
{
    const rmm_diag_file_t *file = &rest->diag;
    usage_t usage = {file, text, rmm__clock_ns(CLOCK_MONOTONIC), 0};
    uint32_t left_out = rmm_diag_each_row(file, put_row, &usage);
    if (text->rows_left_out > 0) { /* free rows among the rest count, too */
        text_leave_out(text, rmm_diag_row_count(file) - usage.seen);
    }
    text_end_rows(text);
    if (left_out > 0) {
        text_printf(text, "# %u more were being changed\n", left_out);
    }
}

static void render_kernels(const render_rest_t *rest, text_t *text)
{
    const rmm_diag_file_t *file = &rest->diag;
    rmm_diag_kernel_info_t kernel;
    uint32_t count = rmm_diag_kernel_count(file), at = 0;
    bool fits = true;
    for (; at < count && fits; at++) {
        if (rmm_diag_read_kernel(file, at, &kernel)) {
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

/* What the call is not ordered after, or what it comes behind; and how sure that is. */
static void put_other(text_t *text, const rmm_diag_finding_info_t *finding)
{
    put_stream(text, finding->stream_id);
    put_stream(text, finding->other_stream_id);
    text_puts(text, "\t");
    if (finding->other_call == 0) {
        text_puts(text, "allocation");
    } else if (
        finding->kind == RMM_DIAG_USE_AFTER_FREE ||
        finding->kind == RMM_DIAG_DOUBLE_FREE) {
        text_puts(text, "free");
    } else {
        text_put_foreign(
            text, finding->other_function[0] != '\0' ? finding->other_function : "-");
    }
    text_printf(text, "\t%s", rmm_diag_confidence_name(finding->confidence));
}

void render_finding(
    const rmm_diag_finding_info_t *finding, uint64_t now_ns, text_t *text)
{
    text_printf(
        text, "%s\t%s\t", rmm_diag_finding_name(finding->kind),
        rmm_diag_access_name(finding->access));
    text_put_foreign(text, finding->function[0] != '\0' ? finding->function : "-");
    text_printf(
        text,
        "\t%" PRIu64 "\t0x%" PRIx64 "\t%" PRIu64 "\t%" PRId64 "\t%" PRIu64 "\t%" PRIu64
        "\t%" PRIu64 "\t%" PRIu32 "\t%" PRId32 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu32,
        finding->count, finding->block_address, finding->block_bytes,
        (int64_t)(finding->address - finding->block_address), finding->bytes,
        rmm_diag_bytes_beyond(finding), finding->block_stream_id, finding->resource_id,
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

static void render_findings(const render_rest_t *rest, text_t *text)
{
    const rmm_diag_file_t *file = &rest->diag;
    findings_t findings = {text, rmm__clock_ns(CLOCK_MONOTONIC)};
    uint32_t left_out = rmm_diag_each_finding(file, put_finding, &findings);
    text_end_rows(text);
    if (left_out > 0) {
        text_printf(text, "# %u more were being changed\n", left_out);
    }
}

static void render_total(const render_rest_t *rest, text_t *text)
{
    render_value(
        text, rest->has_diag
                  ? atomic_load_explicit(
                        &rest->diag.header.findings_total, memory_order_relaxed)
                  : FIGURE_UNKNOWN);
}

#define STAT(field)                                                                    \
    {                                                                                  \
        .key = #field, .at = offsetof(rmm_diag_header_t, field)                        \
    }

static const struct {
    const char *key;
    size_t at; /* in the header: an atomic of 8 bytes */
} stats[] = {STAT(launches),         STAT(launches_unnamed),
             STAT(graph_launches),   STAT(graphs_unseen),
             STAT(copies),           STAT(fills),
             STAT(prefetches),       STAT(parameter_failures),
             STAT(blocks_dropped),   STAT(peaks_dropped),
             STAT(verdicts_dropped), STAT(findings_dropped),
             STAT(freed_dropped),    STAT(sites_dropped),
             STAT(unjudged),         STAT(guard_checks),
             STAT(guards_missing),   STAT(guards_unchecked),
             STAT(guards_error),     STAT(device_resets),
             STAT(blocks_reset)};

static uint64_t header_count(const rmm_diag_file_t *file, size_t at)
{
    const void *where = (const char *)&file->header + at;
    return atomic_load_explicit((const _Atomic(uint64_t) *)where, memory_order_relaxed);
}

/* What the library saw, and what it could not note. */
static void render_stat(const render_rest_t *rest, text_t *text)
{
    const rmm_diag_file_t *file = &rest->diag;
    render_key(
        text, "kernels", rest->has_diag ? rmm_diag_kernel_count(file) : FIGURE_UNKNOWN);
    for (size_t i = 0; i < sizeof(stats) / sizeof(stats[0]); i++) {
        render_key(
            text, stats[i].key,
            rest->has_diag ? header_count(file, stats[i].at) : FIGURE_UNKNOWN);
    }
}

static void render_source(const render_rest_t *rest, text_t *text)
{
    render_string(text, rest->diag.header.source);
}

/* What is not in force yet has a second line. */
static void render_mode(const render_rest_t *rest, text_t *text)
{
    const rmm_diag_file_t *file = &rest->diag;
    char wanted[RMM_DIAG_MODES_TEXT];
    render_string(text, file->modes);
    if (rmm_diag_has_switch(file) && !rmm_diag_modes_are_applied(file)) {
        rmm__diag_modes_print(rmm_diag_modes_wanted(file), wanted);
        text_printf(text, "pending %s\n", wanted);
    }
}

#define FINDINGS_HEADER                                                                \
    "#finding\taccess\tcall\tcount\taddr\tsize\toffset\tlength\tbeyond\t"              \
    "stream\tresource\tdevice\tfirst_ns_ago\tlast_ns_ago\tid\ton_stream\t"             \
    "other_stream\tother\tconfidence\tresource_type\tresource_name\n"

void render_findings_header(text_t *text)
{
    text_puts(text, FINDINGS_HEADER);
}

static const struct {
    const char *header; /* the first line; NULL: none */
    void (*render)(const render_rest_t *rest, text_t *text); /* NULL: not a file here */
    const char *without; /* all of it without a side file; NULL: nothing more */
    bool shows_unknown;  /* render() is called without one, too */
} files[] = {
    [FILE_CUPTI] = {.render = render_source, .without = "off\n"},
    [FILE_MODE] = {.render = render_mode, .without = "off\n"},
    [FILE_STAT] = {.render = render_stat, .shows_unknown = true},
    [FILE_FINDINGS_TOTAL] = {.render = render_total, .shows_unknown = true},
    [FILE_FINDINGS] = {FINDINGS_HEADER, render_findings, NULL, false},
    [FILE_STACKS] = {"#id\tstack\n", render_stacks, NULL, false},
    [FILE_KERNELS] = {"#kernel\tlaunches\tname\n", render_kernels, NULL, false},
    [FILE_PEAK] =
        {"#device\tbytes\tcount\tshare\tresource\tfirst_use\tstack\t"
         "resource_type\tresource_name\n",
         render_peaks, NULL, false},
    [FILE_USAGE] =
        {"#addr\tsize\tstream\tresource\tdevice\tage_ns\tidle_ns\tlaunches\t"
         "copies\tfills\tprefetches\tfirst_use\tlast_use\n",
         render_usage, NULL, false},
    [FILE_VERDICTS] = {
        "#verdict\tconfidence\tdevice\tresource\tcount\tbytes\tlargest\t"
        "byte_ms\tfirst_use\tstack\tresource_type\tresource_name\n",
        render_verdicts, NULL, false}};

/* A process has one diagnosis library. */
void render_diag_begin(const process_t *process, render_rest_t *rest)
{
    for (uint32_t i = 0; i < process->member_count && !rest->has_diag; i++) {
        const member_t *member = process->members[i];
        rest->has_diag = member_counts(member) && member_open_diag(member, &rest->diag);
        if (rest->has_diag && member->exited_ns != 0) {
            rest->has_ended = true;
            rest->ended_ns_ago =
                since(rmm__clock_ns(CLOCK_BOOTTIME), member->exited_ns);
        }
    }
}

void render_diag(render_rest_t *rest, text_t *text)
{
    uint8_t file = rest->node.file;
    if (file < sizeof(files) / sizeof(files[0]) && files[file].render != NULL) {
        text_puts(text, files[file].header != NULL ? files[file].header : "");
        if (rest->has_diag || files[file].shows_unknown) {
            files[file].render(rest, text);
        } else if (files[file].without != NULL) {
            text_puts(text, files[file].without);
        }
    }
    if (rest->has_diag) {
        rmm_diag_close(&rest->diag);
    }
}
