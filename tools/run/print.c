/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report as text, with a paragraph for each finding (finding_text.c), and as JSON.
 */
#include <inttypes.h>

#include "common/foreign_text.h"
#include "common/json.h"
#include "diag/diag_names.h"
#include "run/finding_text.h"
#include "run/names.h"
#include "run/report.h"
#include "run/torch.h"

/* --- for people ------------------------------------------------------------------------- */

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

void run_report_print_name(const run_report_t *report, FILE *out)
{
    fputs("rmm-run: ", out);
    foreign_text_print(report->program, out);
    if (report->rank[0] != '\0') {
        fputs(", rank ", out);
        foreign_text_print(report->rank, out);
    }
    fprintf(
        out, " (pid %d%s)", (int)report->pid, report->is_live ? ", still running" : "");
}

bool run_report_print_title(const run_report_t *report, FILE *out)
{
    if (report->missing[0] != '\0') {
        fputs("rmm-run: ", out);
        foreign_text_print(report->program, out);
        fprintf(out, ": nothing was diagnosed: %s\n", report->missing);
        return fflush(out) == 0 && ferror(out) == 0;
    }
    run_report_print_name(report, out);
    fprintf(
        out, ": %" PRIu64 " %s (modes %s: %s; %" PRIu64 " %s)\n",
        report->findings_total, report->findings_total == 1 ? "finding" : "findings",
        report->modes, report->source, report->launches,
        report->launches == 1 ? "launch" : "launches");
    return fflush(out) == 0 && ferror(out) == 0;
}

void run_report_print_findings(const run_report_t *report, FILE *out)
{
    for (uint32_t i = 0; i < report->finding_count; i++) {
        run_finding_print(&report->findings[i], out);
        run_torch_print(report->findings[i].kind, &report->stacks[i].call, out);
        run_stacks_print(&report->stacks[i], out);
    }
    print_not_shown(report, out);
}

bool run_report_print(const run_report_t *report, FILE *out)
{
    if (!run_report_print_title(report, out) || report->missing[0] != '\0') {
        return ferror(out) == 0;
    }
    run_report_print_findings(report, out);
    run_usage_print(&report->usage, out);
    if (report->finding_count > 0 || report->usage.sites.count > 0) {
        run_python_print_missing(&report->python, out);
    }
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

/* The work that the call was not ordered after; null where it is not about order. */
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
    if (rmm__diag_finding_class(finding->kind)->other != RMM_DIAG_OTHER_FREE) {
        return json_null();
    }
    json_t *object = json_object();
    return json_whole_or_null(
        object,
        json_put(object, "stream", json_of_stream(finding->other_stream_id)) &&
            json_put(object, "python", run_python_json(&stacks->freed.python)) &&
            json_put(object, "stack", run_stack_json(&stacks->freed)));
}

static json_t *json_of_operator(const run_stack_t *stack)
{
    char name[RUN_OPERATOR_BYTES];
    return run_torch_operator(stack, name) ? json_text_or_null(name) : json_null();
}

static json_t *json_of_finding(const void *from, size_t i)
{
    const run_report_t *report = from;
    const rmm_diag_finding_info_t *finding = &report->findings[i];
    json_t *object = json_object();
    return json_whole_or_null(
        object,
        json_put(object, "class", json_string(rmm__diag_finding_name(finding->kind))) &&
            json_put(
                object, "access",
                json_string(rmm__diag_access_name(finding->access))) &&
            run_name_put_json(object, "call", finding->function) &&
            json_put(object, "count", json_count(finding->count)) &&
            json_put(object, "block", json_of_block(finding)) &&
            json_put(
                object, "offset_bytes", json_integer(run_finding_offset(finding))) &&
            json_put(object, "length_bytes", json_count(finding->bytes)) &&
            json_put(
                object, "beyond_bytes", json_count(rmm__diag_bytes_beyond(finding))) &&
            json_put(object, "stream", json_of_stream(finding->stream_id)) &&
            json_put(object, "other", json_of_other(finding)) &&
            json_put(
                object, "confidence",
                json_string(rmm__diag_confidence_name(finding->confidence))) &&
            json_put(object, "freed", json_of_free(finding, &report->stacks[i])) &&
            json_put(
                object, "allocated_python",
                run_python_json(&report->stacks[i].origin.python)) &&
            json_put(
                object, "allocated_stack", run_stack_json(&report->stacks[i].origin)) &&
            json_put(object, "operator", json_of_operator(&report->stacks[i].call)) &&
            json_put(
                object, "python", run_python_json(&report->stacks[i].call.python)) &&
            json_put(object, "stack", run_stack_json(&report->stacks[i].call)));
}

static bool fill(const run_report_t *report, json_t *object)
{
    bool is_known = report->missing[0] == '\0';
    return json_put(object, "schema_version", json_integer(RUN_REPORT_SCHEMA)) &&
           json_put(object, "program", json_text_or_null(report->program)) &&
           json_put(object, "pid", json_integer(report->pid)) &&
           json_put(object, "rank", json_text_or_null(report->rank)) &&
           json_put(object, "ended", json_boolean(!report->is_live)) &&
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

json_t *run_report_json(const run_report_t *report)
{
    json_t *object = json_object();
    return json_whole_or_null(object, fill(report, object));
}
