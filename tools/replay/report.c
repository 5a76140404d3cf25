/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unknown is null in JSON and a missing line in the table, never 0.
 */
#include "replay/report.h"

#include <inttypes.h>

#include <jansson.h>

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
    fprintf(out, LABEL "%s\n", "log", report->log);
    fprintf(out, LABEL "%s\n", "resource", report->resource);
    fprintf(
        out, LABEL "%s\n", "gpu",
        report->driver[0] == 's' ? "simulated (RMM_DRIVER=sim)" : "real");
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

static json_t *count_or_null(bool known, uint64_t value)
{
    return known ? json_integer((json_int_t)value) : json_null();
}

static json_t *real_or_null(bool known, double value)
{
    return known ? json_real(value) : json_null();
}

/* Takes over value; false: no memory for the value or for the object. */
static bool put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

/* A path is bytes, JSON is UTF-8: what is not is left out of the answer. */
static json_t *text_or_null(const char *text)
{
    json_t *value = json_string(text);
    return value != NULL ? value : json_null();
}

/* NULL: no memory. */
static json_t *curve_rows(const capacity_curve_t *curve)
{
    json_t *rows = json_array();
    for (unsigned i = 0; rows != NULL && i < CAPACITY_CURVE_COUNT; i++) {
        json_t *row = json_object();
        bool filled = row != NULL &&
                      put(row, "over_peak", json_real((100 + i) / 100.0)) &&
                      put(row, "bytes", json_integer((json_int_t)curve->bytes[i])) &&
                      put(row, "fits", json_boolean(curve->fits[i]));
        /* takes row over in any case */
        if (json_array_append_new(rows, row) != 0 || !filled) {
            json_decref(rows);
            rows = NULL;
        }
    }
    return rows;
}

static bool fill_curve(const report_t *report, json_t *object)
{
    bool known = report->curve_is_known;
    unsigned safe = known ? capacity_curve_safe(&report->curve) : 0;
    unsigned holes = known ? capacity_curve_holes(&report->curve) : 0;
    return put(object, "capacity_curve",
               known ? curve_rows(&report->curve) : json_null()) &&
           put(object, "safe_over_peak", real_or_null(safe > 0, safe / 100.0)) &&
           put(object, "holes", count_or_null(known, holes));
}

static bool fill_object(const report_t *report, json_t *object)
{
    bool timed = report->ns_per_operation >= 0;
    bool capacity = capacity_is_known(report);
    return put(object, "log", text_or_null(report->log)) &&
           put(object, "resource", json_string(report->resource)) &&
           put(object, "driver", json_string(report->driver)) &&
           put(object, "operations", count_or_null(true, report->operations)) &&
           put(object, "repeats", count_or_null(true, report->repeats)) &&
           put(object, "threads", count_or_null(true, report->threads)) &&
           put(object, "streams", count_or_null(true, report->streams)) &&
           put(object, "ns_per_operation",
               real_or_null(timed, report->ns_per_operation)) &&
           put(object, "best_ns_per_operation",
               real_or_null(timed, report->best_ns_per_operation)) &&
           put(object, "peak_bytes", count_or_null(true, report->peak_bytes)) &&
           put(object, "log_peak_bytes", count_or_null(true, report->log_peak_bytes)) &&
           put(object, "reserved_bytes", count_or_null(true, report->reserved_bytes)) &&
           put(object, "left_bytes", count_or_null(true, report->left_bytes)) &&
           put(object, "left_count", count_or_null(true, report->left_count)) &&
           put(object, "capacity_bytes",
               count_or_null(capacity, report->capacity_bytes)) &&
           put(object, "capacity_over_peak",
               real_or_null(capacity, capacity ? capacity_over_peak(report) : 0)) &&
           fill_curve(report, object) &&
           put(object, "failed_allocations",
               count_or_null(true, report->failed_allocations)) &&
           put(object, "logged_failures",
               count_or_null(true, report->logged_failures)) &&
           put(object, "skipped_rows", count_or_null(true, report->skipped_rows)) &&
           put(object, "verify_mismatches",
               count_or_null(report->verified, report->mismatched_words));
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
