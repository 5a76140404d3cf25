/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unknown is null in JSON and a missing line in the table, never 0.
 */
#include "replay/report.h"

#include <inttypes.h>
#include <string.h>

#include "common/foreign_text.h"
#include "common/json.h"

#define LABEL "%-24s"
#define CURVE_LAST (100 + CAPACITY_CURVE_COUNT - 1) /* in hundredths of the peak */

static double capacity_over_peak(const report_t *report)
{
    return (double)report->capacity_bytes / (double)report->log_peak_bytes;
}

static bool capacity_is_known(const report_t *report)
{
    return report->capacity_bytes > 0 && report->log_peak_bytes > 0;
}

static void print_count(FILE *out, const char *label, uint64_t value)
{
    fprintf(out, LABEL "%" PRIu64 "\n", label, value);
}

static void print_nonzero(FILE *out, const char *label, uint64_t value)
{
    if (value > 0) {
        print_count(out, label, value);
    }
}

static void print_curve(FILE *out, const capacity_curve_t *curve)
{
    unsigned safe = capacity_curve_safe(curve);
    for (unsigned i = 0; i < CAPACITY_CURVE_COUNT; i++) {
        fprintf(
            out, "capacity %.2f %10s%s\n", (100 + i) / 100.0, "",
            curve->fits[i] ? "fits" : "does not fit");
    }
    if (safe > 0) {
        fprintf(out, LABEL "%.2f\n", "safe capacity", safe / 100.0);
    } else {
        fprintf(out, LABEL ">%.2f\n", "safe capacity", CURVE_LAST / 100.0);
    }
    print_count(out, "holes", capacity_curve_holes(curve));
}

void report_print_table(const report_t *report, FILE *out)
{
    fprintf(out, LABEL, "log");
    foreign_text_print(report->log, out);
    fputc('\n', out);
    fprintf(out, LABEL "%s\n", "resource", report->resource);
    fprintf(
        out, LABEL "%s\n", "gpu",
        strcmp(report->driver, "sim") == 0   ? "simulated (RMM_DRIVER=sim)"
        : strcmp(report->driver, "hip") == 0 ? "real (RMM_DRIVER=hip)"
                                             : "real");
    print_count(out, "operations", report->operations);
    print_count(out, "repeats", report->repeats);
    print_count(out, "threads", report->threads);
    print_count(out, "streams", report->streams);
    if (report->ns_per_operation >= 0) {
        fprintf(out, LABEL "%.1f\n", "ns per operation", report->ns_per_operation);
        fprintf(
            out, LABEL "%.1f\n", "ns in the best run", report->best_ns_per_operation);
    }
    print_count(out, "peak bytes", report->peak_bytes);
    print_count(out, "reserved bytes", report->reserved_bytes);
    print_nonzero(out, "left allocated, bytes", report->left_bytes);
    print_nonzero(out, "left allocated, blocks", report->left_count);
    if (capacity_is_known(report)) {
        print_count(out, "smallest capacity", report->capacity_bytes);
        fprintf(out, LABEL "%.4f\n", "capacity over peak", capacity_over_peak(report));
    }
    if (report->curve_is_known) {
        print_curve(out, &report->curve);
    }
    print_nonzero(out, "failed allocations", report->failed_allocations);
    print_nonzero(out, "failures in the log", report->logged_failures);
    print_nonzero(out, "rows skipped", report->skipped_rows);
    if (report->verified) {
        print_count(out, "words that differ", report->mismatched_words);
    }
}

/* NULL: no memory. */
static json_t *curve_row(const void *from, size_t i)
{
    const capacity_curve_t *curve = from;
    json_t *row = json_object();
    return json_whole_or_null(
        row, json_put(row, "over_peak", json_real((double)(100 + i) / 100.0)) &&
                 json_put(row, "bytes", json_count(curve->bytes[i])) &&
                 json_put(row, "fits", json_boolean(curve->fits[i])));
}

static bool fill_curve(const report_t *report, json_t *object)
{
    bool known = report->curve_is_known;
    unsigned safe = known ? capacity_curve_safe(&report->curve) : 0;
    unsigned holes = known ? capacity_curve_holes(&report->curve) : 0;
    return json_put(
               object, "capacity_curve",
               known ? json_array_of(CAPACITY_CURVE_COUNT, curve_row, &report->curve)
                     : json_null()) &&
           json_put(
               object, "safe_over_peak", json_real_or_null(safe > 0, safe / 100.0)) &&
           json_put(object, "holes", json_count_or_null(known, holes));
}

static bool fill_object(const report_t *report, json_t *object)
{
    bool timed = report->ns_per_operation >= 0;
    bool capacity = capacity_is_known(report);
    return json_put(object, "log", json_text_or_null(report->log)) &&
           json_put(object, "resource", json_string(report->resource)) &&
           json_put(object, "driver", json_string(report->driver)) &&
           json_put(object, "operations", json_count(report->operations)) &&
           json_put(object, "repeats", json_count(report->repeats)) &&
           json_put(object, "threads", json_count(report->threads)) &&
           json_put(object, "streams", json_count(report->streams)) &&
           json_put(
               object, "ns_per_operation",
               json_real_or_null(timed, report->ns_per_operation)) &&
           json_put(
               object, "best_ns_per_operation",
               json_real_or_null(timed, report->best_ns_per_operation)) &&
           json_put(object, "peak_bytes", json_count(report->peak_bytes)) &&
           json_put(object, "log_peak_bytes", json_count(report->log_peak_bytes)) &&
           json_put(object, "reserved_bytes", json_count(report->reserved_bytes)) &&
           json_put(object, "left_bytes", json_count(report->left_bytes)) &&
           json_put(object, "left_count", json_count(report->left_count)) &&
           json_put(
               object, "capacity_bytes",
               json_count_or_null(capacity, report->capacity_bytes)) &&
           json_put(
               object, "capacity_over_peak",
               json_real_or_null(
                   capacity, capacity ? capacity_over_peak(report) : 0)) &&
           fill_curve(report, object) &&
           json_put(
               object, "failed_allocations", json_count(report->failed_allocations)) &&
           json_put(object, "logged_failures", json_count(report->logged_failures)) &&
           json_put(object, "skipped_rows", json_count(report->skipped_rows)) &&
           json_put(
               object, "verify_mismatches",
               json_count_or_null(report->verified, report->mismatched_words));
}

bool report_print_json(const report_t *report, FILE *out)
{
    json_t *object = json_object();
    bool printed = object != NULL && fill_object(report, object) &&
                   json_dumpf(object, out, JSON_REAL_PRECISION(9)) == 0;
    if (printed) {
        fputc('\n', out);
    }
    json_decref(object);
    return printed;
}
