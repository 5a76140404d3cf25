/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report as text and as JSON. In the text each finding is one paragraph: what was done, to
 * which block, and what would be right.
 */
#include <inttypes.h>

#include "common/foreign_text.h"
#include "common/json.h"
#include "diag/diag_names.h"
#include "run/names.h"
#include "run/report.h"

/* From the block's first byte; negative: before it. */
static int64_t offset_of(const rmm_diag_finding_info_t *finding)
{
    return (int64_t)(finding->address - finding->block_address);
}

/* --- for people ------------------------------------------------------------------------- */

/* A stream without an id is named by its handle, which is an address. */
static void print_stream(uint64_t stream_id, FILE *out)
{
    if (stream_id == UINT64_MAX) {
        fputs("a stream", out);
    } else if (stream_id > UINT32_MAX) {
        fprintf(out, "stream 0x%" PRIx64, stream_id);
    } else {
        fprintf(out, "stream %" PRIu64, stream_id);
    }
}

static void print_block(const rmm_diag_finding_info_t *finding, FILE *out)
{
    fprintf(
        out, "a block of %" PRIu64 " %s at 0x%" PRIx64 " of ", finding->block_bytes,
        finding->block_bytes == 1 ? "byte" : "bytes", finding->block_address);
    run_resource_print(finding->resource_id, &finding->resource, out);
    if (finding->device < 0) {
        fputs(" in host memory", out);
    } else {
        fprintf(out, " on device %d", finding->device);
    }
}

/* What the call was not ordered after. */
static void print_other(const rmm_diag_finding_info_t *finding, FILE *out)
{
    if (finding->other_call == 0) {
        fputs("the allocation of its block on ", out);
    } else {
        fputs("the use of its block by ", out);
        run_name_print(finding->other_function, "an unnamed kernel", out);
        fputs(" on ", out);
    }
    print_stream(finding->other_stream_id, out);
}

static void print_unordered(const rmm_diag_finding_info_t *finding, FILE *out)
{
    bool is_free = finding->kind == RMM_DIAG_FREE_UNORDERED;
    fprintf(out, "  %s: ", rmm_diag_finding_name(finding->kind));
    run_name_print(
        is_free ? "" : finding->function, is_free ? "a free" : "an unnamed kernel",
        out);
    fputs(" on ", out);
    print_stream(finding->stream_id, out);
    fputs(" is not ordered after ", out);
    print_other(finding, out);
    fprintf(
        out, ", %" PRIu64 " %s (%s)\n    ", finding->count,
        finding->count == 1 ? "time" : "times",
        rmm_diag_confidence_name(finding->confidence));
    print_block(finding, out);
    fputs("\n    record an event on ", out);
    print_stream(finding->other_stream_id, out);
    fputs(" after that, and let ", out);
    print_stream(finding->stream_id, out);
    fputs(is_free ? " wait for it before the free\n" : " wait for it\n", out);
}

/* Something broke the guard behind a block: a kernel, or what no check has followed. */
static bool is_of_guard(const rmm_diag_finding_info_t *finding)
{
    return finding->call == 0 || finding->call == RMM_DIAG_CALL_LAUNCH;
}

static void print_guard(const rmm_diag_finding_info_t *finding, FILE *out)
{
    int64_t offset = offset_of(finding);
    bool is_before = offset < 0;
    fprintf(out, "  %s: ", rmm_diag_finding_name(finding->kind));
    run_name_print(
        finding->function,
        finding->call == 0 ? "something before the free" : "an unnamed kernel", out);
    fprintf(
        out, " wrote %s a block, %" PRIu64 " %s\n    ",
        is_before ? "before" : "past the end of", finding->count,
        finding->count == 1 ? "time" : "times");
    print_block(finding, out);
    fprintf(
        out, ", first changed byte: %" PRIu64 " %s\n",
        is_before ? (uint64_t)-offset : (uint64_t)offset - finding->block_bytes,
        is_before ? "before its begin" : "past its end");
    fputs(
        finding->call == 0
            ? "    a kernel that is not given the block, or one of a graph: "
              "run the program under compute-sanitizer\n"
            : "    check the index of the kernel's last threads; "
              "compute-sanitizer names the line\n",
        out);
}

static void print_out_of_bounds(const rmm_diag_finding_info_t *finding, FILE *out)
{
    uint64_t beyond = rmm_diag_bytes_beyond(finding);
    fprintf(out, "  %s: ", rmm_diag_finding_name(finding->kind));
    run_name_print(finding->function, "a call", out);
    fprintf(
        out, " %ss %" PRIu64 " %s, %" PRIu64 " %s\n",
        rmm_diag_access_name(finding->access), finding->bytes,
        finding->bytes == 1 ? "byte" : "bytes", finding->count,
        finding->count == 1 ? "time" : "times");
    fputs("    in ", out);
    print_block(finding, out);
    fprintf(out, ", from byte %" PRId64, offset_of(finding));
    if (beyond > 0 && beyond < finding->bytes) {
        fprintf(
            out,
            " to %" PRIu64 " %s past its end\n    allocate %" PRIu64
            " bytes, or pass at most %" PRIu64 "\n",
            beyond, beyond == 1 ? "byte" : "bytes", finding->block_bytes + beyond,
            finding->bytes - beyond);
    } else if (offset_of(finding) >= (int64_t)finding->block_bytes) {
        fprintf(
            out,
            ", %" PRIu64 " %s behind its end\n"
            "    check the index: an array of n elements ends before element n\n",
            (uint64_t)offset_of(finding) - finding->block_bytes,
            (uint64_t)offset_of(finding) - finding->block_bytes == 1 ? "byte"
                                                                     : "bytes");
    } else {
        fputs(
            "\n    the range begins outside of the block: "
            "check the pointer's offset, and that its own block is not freed\n",
            out);
    }
}

static const char *remedy_after_free(const rmm_diag_finding_info_t *finding)
{
    if (finding->is_in_graph) {
        return "free the block when the graph is not launched any more";
    }
    if (finding->access == RMM_DIAG_USES) {
        return "free the block after its last use; "
               "no error if the kernel does not follow the pointer: "
               "then clear the pointer, or suppress the finding";
    }
    return "free the block after its last use";
}

static void print_after_free(const rmm_diag_finding_info_t *finding, FILE *out)
{
    fprintf(out, "  %s: ", rmm_diag_finding_name(finding->kind));
    run_name_print(finding->function, "an unnamed kernel", out);
    fputs(finding->is_in_graph ? " in a graph on " : " on ", out);
    print_stream(finding->stream_id, out);
    fprintf(
        out, " %s freed memory, %" PRIu64 " %s (%s)\n    ",
        finding->access == RMM_DIAG_USES ? "was passed" : "uses", finding->count,
        finding->count == 1 ? "time" : "times",
        rmm_diag_confidence_name(finding->confidence));
    print_block(finding, out);
    fprintf(out, ", at byte %" PRId64 ", freed before on ", offset_of(finding));
    print_stream(finding->other_stream_id, out);
    fprintf(out, "\n    %s\n", remedy_after_free(finding));
}

static void print_under_graph(const rmm_diag_finding_info_t *finding, FILE *out)
{
    fprintf(out, "  %s: a free on ", rmm_diag_finding_name(finding->kind));
    print_stream(finding->stream_id, out);
    fputs(" while a graph can be launched whose ", out);
    run_name_print(finding->other_function, "unnamed kernel", out);
    fprintf(
        out, " uses the block, %" PRIu64 " %s (%s)\n    ", finding->count,
        finding->count == 1 ? "time" : "times",
        rmm_diag_confidence_name(finding->confidence));
    print_block(finding, out);
    fputs("\n    destroy the graph before the free, or do not launch it again\n", out);
}

static bool is_refused_free(const rmm_diag_finding_info_t *finding)
{
    return finding->kind == RMM_DIAG_DOUBLE_FREE ||
           finding->kind == RMM_DIAG_WRONG_SIZE_FREE ||
           finding->kind == RMM_DIAG_INVALID_FREE;
}

/* Of which block, if any; and what is wrong. */
static void print_refused_block(const rmm_diag_finding_info_t *finding, FILE *out)
{
    if (finding->block_bytes == 0) {
        fputs("no block of ", out);
        run_resource_print(finding->resource_id, &finding->resource, out);
        fputs(" is known there\n", out);
        return;
    }
    print_block(finding, out);
    if (finding->kind == RMM_DIAG_DOUBLE_FREE) {
        fputs(", freed before on ", out);
        print_stream(finding->other_stream_id, out);
    } else if (finding->kind == RMM_DIAG_INVALID_FREE) {
        fprintf(out, ", at byte %" PRId64, offset_of(finding));
    }
    fputc('\n', out);
}

static void print_refused_free(const rmm_diag_finding_info_t *finding, FILE *out)
{
    static const char *const remedies[] = {
        [RMM_DIAG_DOUBLE_FREE] = "free it once; the second free was refused",
        [RMM_DIAG_WRONG_SIZE_FREE] =
            "pass the size of the allocation; unless a tracking adaptor mended it, "
            "the free was refused, and the block stays allocated",
        [RMM_DIAG_INVALID_FREE] =
            "free a block through the resource that it came from, "
            "by its first byte; the free was refused"};
    fprintf(out, "  %s: a free on ", rmm_diag_finding_name(finding->kind));
    print_stream(finding->stream_id, out);
    fprintf(
        out, " of 0x%" PRIx64 " with %" PRIu64 " %s, %" PRIu64 " %s\n    ",
        finding->address, finding->bytes, finding->bytes == 1 ? "byte" : "bytes",
        finding->count, finding->count == 1 ? "time" : "times");
    print_refused_block(finding, out);
    fprintf(out, "    %s\n", remedies[finding->kind]);
}

static void print_finding(const rmm_diag_finding_info_t *finding, FILE *out)
{
    if (is_refused_free(finding)) {
        print_refused_free(finding, out);
    } else if (finding->kind == RMM_DIAG_USE_AFTER_FREE) {
        print_after_free(finding, out);
    } else if (finding->kind == RMM_DIAG_FREE_UNDER_GRAPH) {
        print_under_graph(finding, out);
    } else if (finding->other_call != RMM_DIAG_NO_CALL) {
        print_unordered(finding, out);
    } else if (is_of_guard(finding)) {
        print_guard(finding, out);
    } else {
        print_out_of_bounds(finding, out);
    }
}

static void print_not_shown(const run_report_t *report, FILE *out)
{
    if (report->findings_dropped > 0) {
        fprintf(
            out, "  not shown: %" PRIu64 " %s of further kinds: the table is full\n",
            report->findings_dropped,
            report->findings_dropped == 1 ? "finding" : "findings");
    }
    if (report->unreadable > 0) {
        fprintf(
            out, "  not shown: %u %s that the program did not finish writing\n",
            report->unreadable, report->unreadable == 1 ? "finding" : "findings");
    }
}

bool run_report_print(const run_report_t *report, FILE *out)
{
    if (report->missing[0] != '\0') {
        fputs("rmm-run: ", out);
        foreign_text_print(report->program, out);
        fprintf(out, ": nothing was diagnosed: %s\n", report->missing);
        return fflush(out) == 0 && ferror(out) == 0;
    }
    fputs("rmm-run: ", out);
    foreign_text_print(report->program, out);
    fprintf(
        out, " (pid %d): %" PRIu64 " %s (modes %s: %s; %" PRIu64 " %s)\n",
        (int)report->pid, report->findings_total,
        report->findings_total == 1 ? "finding" : "findings", report->modes,
        report->source, report->launches,
        report->launches == 1 ? "launch" : "launches");
    for (uint32_t i = 0; i < report->finding_count; i++) {
        print_finding(&report->findings[i], out);
        run_stacks_print(&report->stacks[i], out);
    }
    print_not_shown(report, out);
    run_usage_print(&report->usage, out);
    run_unseen_print(&report->unseen, out);
    return fflush(out) == 0 && ferror(out) == 0;
}

/* --- JSON -------------------------------------------------------------------------------- */

static json_t *json_of_stream(uint64_t stream_id)
{
    return json_count_or_null(stream_id <= INT64_MAX, stream_id);
}

static json_t *json_of_block(const rmm_diag_finding_info_t *finding)
{
    char address[32];
    json_t *block = json_object();
    snprintf(address, sizeof(address), "0x%" PRIx64, finding->block_address);
    return json_whole_or_null(
        block,
        json_put(block, "address", json_string(address)) &&
            json_put(block, "size_bytes", json_count(finding->block_bytes)) &&
            run_resource_put_json(block, finding->resource_id, &finding->resource) &&
            json_put(block, "device", json_integer(finding->device)) &&
            json_put(block, "stream", json_of_stream(finding->block_stream_id)));
}

/* What the call was not ordered after; null where it is not about order. */
static json_t *json_of_other(const rmm_diag_finding_info_t *finding)
{
    if (finding->other_call == RMM_DIAG_NO_CALL) {
        return json_null();
    }
    bool is_allocation = finding->other_call == 0;
    json_t *other = json_object();
    return json_whole_or_null(
        other, json_put(other, "is_allocation", json_boolean(is_allocation)) &&
                   run_name_put_json(other, "call", finding->other_function) &&
                   json_put(other, "stream", json_of_stream(finding->other_stream_id)));
}

/* The free that the call, or second free, came behind; null where it is not about that. */
static json_t *
json_of_free(const rmm_diag_finding_info_t *finding, const run_stacks_t *stacks)
{
    if (finding->kind != RMM_DIAG_USE_AFTER_FREE &&
        finding->kind != RMM_DIAG_DOUBLE_FREE) {
        return json_null();
    }
    json_t *object = json_object();
    return json_whole_or_null(
        object, json_put(object, "stream", json_of_stream(finding->other_stream_id)) &&
                    json_put(object, "stack", run_stack_json(&stacks->freed)));
}

static json_t *json_of_finding(const void *from, size_t i)
{
    const run_report_t *report = from;
    const rmm_diag_finding_info_t *finding = &report->findings[i];
    json_t *object = json_object();
    return json_whole_or_null(
        object,
        json_put(object, "class", json_string(rmm_diag_finding_name(finding->kind))) &&
            json_put(
                object, "access", json_string(rmm_diag_access_name(finding->access))) &&
            run_name_put_json(object, "call", finding->function) &&
            json_put(object, "count", json_count(finding->count)) &&
            json_put(object, "block", json_of_block(finding)) &&
            json_put(object, "offset_bytes", json_integer(offset_of(finding))) &&
            json_put(object, "length_bytes", json_count(finding->bytes)) &&
            json_put(
                object, "beyond_bytes", json_count(rmm_diag_bytes_beyond(finding))) &&
            json_put(object, "stream", json_of_stream(finding->stream_id)) &&
            json_put(object, "other", json_of_other(finding)) &&
            json_put(
                object, "confidence",
                json_string(rmm_diag_confidence_name(finding->confidence))) &&
            json_put(object, "freed", json_of_free(finding, &report->stacks[i])) &&
            json_put(
                object, "allocated_stack", run_stack_json(&report->stacks[i].origin)) &&
            json_put(object, "stack", run_stack_json(&report->stacks[i].call)));
}

static bool fill(const run_report_t *report, json_t *object)
{
    bool is_known = report->missing[0] == '\0';
    return json_put(object, "schema_version", json_integer(RUN_REPORT_SCHEMA)) &&
           json_put(object, "program", json_text_or_null(report->program)) &&
           json_put(object, "pid", json_integer(report->pid)) &&
           json_put(object, "missing", json_text_or_null(report->missing)) &&
           json_put(object, "modes", json_text_or_null(report->modes)) &&
           json_put(object, "source", json_text_or_null(report->source)) &&
           json_put(
               object, "launches", json_count_or_null(is_known, report->launches)) &&
           json_put(
               object, "findings_total",
               json_count_or_null(is_known, report->findings_total)) &&
           json_put(
               object, "findings_dropped",
               json_count_or_null(is_known, report->findings_dropped)) &&
           json_put(
               object, "findings_suppressed",
               json_count_or_null(is_known, report->suppressed)) &&
           json_put(
               object, "findings",
               json_array_of(report->finding_count, json_of_finding, report)) &&
           run_usage_put_json(&report->usage, object) &&
           json_put(
               object, "not_seen",
               is_known ? run_unseen_json(&report->unseen) : json_null());
}

bool run_report_print_json(const run_report_t *report, FILE *out)
{
    json_t *object = json_object();
    bool printed = object != NULL && fill(report, object) &&
                   json_dumpf(object, out, JSON_INDENT(2)) == 0;
    if (printed) {
        fputc('\n', out);
    }
    json_decref(object);
    return printed && fflush(out) == 0 && ferror(out) == 0;
}
