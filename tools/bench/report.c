/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unknown is null in JSON and a dash in the table, never 0.
 */
#include "bench/report.h"

#include <inttypes.h>

#include "common/json.h"
#include "segment/stat_fields.h"

#define NAME "%-24s %-16s"
#define TOP_ROW NAME " %11s %11s %11s %9s %9s %9s  %s\n"
#define PERCENTILES 3

static const double parts[PERCENTILES] = {0.5, 0.99, 0.999};
static const char *const part_names[PERCENTILES] = {"p50_ns", "p99_ns", "p999_ns"};

static const char *known(const char *text)
{
    return text[0] != '\0' ? text : "unknown";
}

static void print_machine(const bench_report_t *report, FILE *out)
{
    const machine_t *machine = report->machine;
    fprintf(out, "rmm-bench %s\n", report->version);
    fprintf(
        out, "machine  %s, %ld cores, %s\n", known(machine->cpu), machine->cores,
        known(machine->kernel));
    if (machine->is_simulated) {
        fprintf(out, "gpu      simulated (RMM_DRIVER=sim): times of the CPU only\n");
    } else {
        fprintf(
            out, "gpu      %s, driver %s\n", known(machine->gpu),
            known(machine->gpu_driver));
    }
    fprintf(
        out,
        "each     %" PRIu64 " times%s; p: single operations, each with %.0f ns for "
        "the clock\n",
        report->bench->repetitions, report->quick ? ", quick" : "", machine->clock_ns);
}

static void print_percentiles(const bench_result_t *result, FILE *out)
{
    for (size_t i = 0; i < PERCENTILES; i++) {
        if (result->latencies.count > 0) {
            fprintf(
                out, " %9" PRIu32, latencies_percentile(&result->latencies, parts[i]));
        } else {
            fprintf(out, " %9s", "-");
        }
    }
}

/* Throughputs are small numbers. */
static void print_value(double value, FILE *out)
{
    fprintf(out, " %11.*f", value < 10 ? 3 : 1, value);
}

static void print_result(const bench_t *bench, const bench_result_t *result, FILE *out)
{
    const double *values = result->values;
    double difference;
    fprintf(out, NAME, result->workload->name, result->resource);
    if (result->problem[0] != '\0') {
        fprintf(out, "%12s  %s\n", "-", result->problem);
        return;
    }
    print_value(sample_median(values, result->value_count), out);
    print_value(sample_min(values, result->value_count), out);
    print_value(sample_max(values, result->value_count), out);
    print_percentiles(result, out);
    fprintf(out, "  %s", result->workload->unit);
    if (bench_difference(bench, result, &difference)) {
        fprintf(out, ", %+.1f over %s", difference, result->workload->against);
    }
    fprintf(out, "%s\n", result->cut_ops != 0 ? ", cut" : "");
}

void bench_print_table(const bench_report_t *report, FILE *out)
{
    const bench_t *bench = report->bench;
    print_machine(report, out);
    fputc('\n', out);
    fprintf(
        out, TOP_ROW, "workload", "resource", "median", "min", "max", "p50", "p99",
        "p99.9", "unit");
    for (size_t i = 0; i < bench->result_count; i++) {
        print_result(bench, &bench->results[i], out);
    }
}

static bool put_machine(const bench_report_t *report, json_t *object)
{
    const machine_t *machine = report->machine;
    return json_put(object, "version", json_string(report->version)) &&
           json_put(object, "cpu", json_text_or_null(machine->cpu)) &&
           json_put(object, "cores", json_integer(machine->cores)) &&
           json_put(object, "kernel", json_text_or_null(machine->kernel)) &&
           json_put(object, "driver", json_string(machine->driver)) &&
           json_put(object, "gpu", json_text_or_null(machine->gpu)) &&
           json_put(object, "gpu_driver", json_text_or_null(machine->gpu_driver)) &&
           json_put(object, "gpu_bytes", json_count(machine->gpu_bytes)) &&
           json_put(object, "clock_ns", json_real(machine->clock_ns)) &&
           json_put(object, "quick", json_boolean(report->quick)) &&
           json_put(object, "seed", json_count(report->bench->seed)) &&
           json_put(object, "repetitions", json_count(report->bench->repetitions));
}

static json_t *value_at(const void *result, size_t i)
{
    return json_real(((const bench_result_t *)result)->values[i]);
}

/* The p99 of each repetition; empty where no single operations were timed. */
static json_t *p99_array(const bench_result_t *result)
{
    json_t *array = json_array();
    for (size_t i = 0; i < result->value_count && array != NULL; i++) {
        if (result->p99_ns[i] > 0 &&
            json_array_append_new(array, json_count(result->p99_ns[i])) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

static bool put_figures(const bench_result_t *result, json_t *object)
{
    const double *values = result->values;
    size_t count = result->value_count;
    bool measured = result->problem[0] == '\0';
    bool put_all =
        json_put(
            object, "median",
            json_real_or_null(measured, sample_median(values, count))) &&
        json_put(
            object, "min", json_real_or_null(measured, sample_min(values, count))) &&
        json_put(
            object, "max", json_real_or_null(measured, sample_max(values, count))) &&
        json_put(object, "values", json_array_of(count, value_at, result)) &&
        json_put(object, "latencies", json_count(result->latencies.count));
    for (size_t i = 0; i < PERCENTILES && put_all; i++) {
        json_t *value = json_null();
        if (measured && result->latencies.count > 0) {
            value = json_count(latencies_percentile(&result->latencies, parts[i]));
        }
        put_all = json_put(object, part_names[i], value);
    }
    return put_all && json_put(object, "p99_values", p99_array(result));
}

static bool
put_result(const bench_t *bench, const bench_result_t *result, json_t *array)
{
    json_t *object = json_object();
    double difference = 0;
    bool compared = bench_difference(bench, result, &difference);
    const char *against = compared ? result->workload->against : "";
    bool put_all =
        json_array_append_new(array, object) == 0 &&
        json_put(object, "workload", json_string(result->workload->name)) &&
        json_put(object, "resource", json_text_or_null(result->resource)) &&
        json_put(object, "unit", json_string(result->workload->unit)) &&
        json_put(object, "operations", json_count(result->operations)) &&
        json_put(object, "cut", json_boolean(result->cut_ops != 0)) &&
        json_put(object, "against", json_text_or_null(against)) &&
        json_put(object, "difference", json_real_or_null(compared, difference)) &&
        json_put(object, "problem", json_text_or_null(result->problem)) &&
        put_figures(result, object);
    return put_all;
}

/* On one line. */
static bool print_value_of(const json_t *value, FILE *out)
{
    return json_dumpf(value, out, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9)) == 0;
}

static bool print_machine_keys(const bench_report_t *report, FILE *out)
{
    const char *key;
    json_t *value, *machine = json_object();
    bool printed = machine != NULL && put_machine(report, machine);
    json_object_foreach(machine, key, value)
    {
        fprintf(out, "  \"%s\": ", key);
        printed = printed && print_value_of(value, out);
        fputs(",\n", out);
    }
    json_decref(machine);
    return printed;
}

static bool print_result_lines(const bench_t *bench, FILE *out)
{
    json_t *array = json_array();
    bool printed = array != NULL;
    for (size_t i = 0; i < bench->result_count && printed; i++) {
        fputs(i > 0 ? ",\n    " : "    ", out);
        printed = put_result(bench, &bench->results[i], array) &&
                  print_value_of(json_array_get(array, i), out);
    }
    json_decref(array);
    return printed;
}

/* One result on each line, so that a recorded run stays short and its changes readable. */
bool bench_print_json(const bench_report_t *report, FILE *out)
{
    fputs("{\n", out);
    bool printed = print_machine_keys(report, out);
    fputs("  \"results\": [\n", out);
    printed = printed && print_result_lines(report->bench, out);
    fputs("\n  ]\n}\n", out);
    return printed;
}
