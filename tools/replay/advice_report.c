/* SPDX-License-Identifier: Apache-2.0 */
/* See advice_report.h. Parts of the peak have two digits, as capacities are tried. */
#include "replay/advice_report.h"

#include <inttypes.h>

#include "common/foreign_text.h"
#include "common/json.h"

#define LABEL "%-24s"

static double over_peak(const advice_report_t *report, uint64_t bytes)
{
    return (double)bytes / (double)report->plan->peak_bytes;
}

static void print_candidate(
    const advice_report_t *report, const advice_candidate_t *candidate, FILE *out)
{
    char safe[16] = ">1.40", grown[16] = "-";
    if (candidate->safe > 0) {
        snprintf(safe, sizeof safe, "%.2f", candidate->safe / 100.0);
    }
    if (candidate->grows) {
        snprintf(
            grown, sizeof grown, "%.2f", over_peak(report, candidate->grown_bytes));
    }
    fprintf(
        out, LABEL "%14s %12s %10.1f\n", candidate->resource, safe, grown,
        candidate->ns_per_operation);
}

/* Prints facts that the figures do not show. */
static void print_notes(const plan_t *plan, FILE *out)
{
    if (plan->thread_count > 1) {
        fprintf(
            out,
            LABEL "%zu threads ran one at a time: their contention is not measured\n",
            "note", plan->thread_count);
    }
    if (plan->failure_count > 0) {
        fprintf(
            out,
            LABEL "%" PRIu64 " requests of the log failed: the program needed more\n",
            "note", plan->failure_count);
    }
}

void advice_print_table(const advice_report_t *report, FILE *out)
{
    const plan_t *plan = report->plan;
    fprintf(out, LABEL, "log");
    foreign_text_print(report->log, out);
    fputc('\n', out);
    fprintf(out, LABEL "simulated\n", "gpu");
    fprintf(out, LABEL "%zu\n", "operations", plan->op_count);
    fprintf(out, LABEL "%" PRIu64 "\n", "peak bytes", plan->peak_bytes);
    fprintf(
        out, "\n" LABEL "%14s %12s %10s\n", "resource", "safe capacity", "when grown",
        "ns per op");
    for (size_t i = 0; i < report->count; i++) {
        print_candidate(report, &report->candidates[i], out);
    }
    fprintf(out, "\n" LABEL "RMM_RESOURCE=%s\n", "advice", report->advice->spec);
    fprintf(out, LABEL "%s\n", "because", report->advice->why);
    print_notes(plan, out);
}

/* NULL: no memory. */
static json_t *candidate_row(const void *from, size_t i)
{
    const advice_report_t *report = from;
    const advice_candidate_t *c = &report->candidates[i];
    json_t *row = json_object();
    return json_whole_or_null(
        row,
        json_put(row, "resource", json_string(c->resource)) &&
            json_put(
                row, "safe_over_peak",
                json_real_or_null(c->safe > 0, c->safe / 100.0)) &&
            json_put(
                row, "safe_bytes", json_count_or_null(c->safe > 0, c->safe_bytes)) &&
            json_put(
                row, "grown_bytes", json_count_or_null(c->grows, c->grown_bytes)) &&
            json_put(row, "ns_per_operation", json_real(c->ns_per_operation)));
}

bool advice_print_json(const advice_report_t *report, FILE *out)
{
    const plan_t *plan = report->plan;
    json_t *object = json_object();
    bool printed =
        object != NULL && json_put(object, "log", json_text_or_null(report->log)) &&
        json_put(object, "driver", json_string("sim")) &&
        json_put(object, "operations", json_count(plan->op_count)) &&
        json_put(object, "threads", json_count(plan->thread_count)) &&
        json_put(object, "log_peak_bytes", json_count(plan->peak_bytes)) &&
        json_put(object, "logged_failures", json_count(plan->failure_count)) &&
        json_put(
            object, "candidates",
            json_array_of(report->count, candidate_row, report)) &&
        json_put(object, "resource", json_string(report->advice->spec)) &&
        json_put(object, "why", json_string(report->advice->why)) &&
        json_dumpf(object, out, JSON_REAL_PRECISION(9)) == 0 && fputc('\n', out) != EOF;
    json_decref(object);
    return printed;
}
