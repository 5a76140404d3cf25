/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Unknown is null in JSON and a dash in the table, never 0.
 */
#include "bench/report.h"

#include <inttypes.h>

#include <jansson.h>

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
    if (!RMM_ACCOUNTING_ON) {
        fprintf(out, "accounting    off: this build keeps no statistics\n");
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

/* Takes over value; false: no memory for the value or for the object. */
static bool put(json_t *object, const char *key, json_t *value)
{
    return json_object_set_new(object, key, value) == 0;
}

/* "" is unknown; what is no UTF-8 is left out as well. */
static json_t *text_or_null(const char *text)
{
    json_t *value = text[0] != '\0' ? json_string(text) : NULL;
    return value != NULL ? value : json_null();
}

static json_t *real_or_null(bool is_known, double value)
{
    return is_known ? json_real(value) : json_null();
}

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

static bool put_machine(const bench_report_t *report, json_t *object)
{
    const machine_t *machine = report->machine;
    return put(object, "version", json_string(report->version)) &&
           put(object, "cpu", text_or_null(machine->cpu)) &&
           put(object, "cores", json_integer(machine->cores)) &&
           put(object, "kernel", text_or_null(machine->kernel)) &&
           put(object, "driver", json_string(machine->is_simulated ? "sim" : "cuda")) &&
           put(object, "gpu", text_or_null(machine->gpu)) &&
           put(object, "gpu_driver", text_or_null(machine->gpu_driver)) &&
           put(object, "gpu_bytes", integer(machine->gpu_bytes)) &&
           put(object, "clock_ns", json_real(machine->clock_ns)) &&
           put(object, "accounting", json_boolean(RMM_ACCOUNTING_ON)) &&
           put(object, "quick", json_boolean(report->quick)) &&
           put(object, "seed", integer(report->bench->seed)) &&
           put(object, "repetitions", integer(report->bench->repetitions));
}

static json_t *values_array(const bench_result_t *result)
{
    json_t *array = json_array();
    for (size_t i = 0; i < result->value_count && array != NULL; i++) {
        if (json_array_append_new(array, json_real(result->values[i])) != 0) {
            json_decref(array);
            array = NULL;
        }
    }
    return array;
}

/* Of each repetition; empty where no single operations were timed. */
static json_t *p99_array(const bench_result_t *result)
{
    json_t *array = json_array();
    for (size_t i = 0; i < result->value_count && array != NULL; i++) {
        if (result->p99_ns[i] > 0 &&
            json_array_append_new(array, integer(result->p99_ns[i])) != 0) {
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
        put(object, "median", real_or_null(measured, sample_median(values, count))) &&
        put(object, "min", real_or_null(measured, sample_min(values, count))) &&
        put(object, "max", real_or_null(measured, sample_max(values, count))) &&
        put(object, "values", values_array(result)) &&
        put(object, "latencies", integer(result->latencies.count));
    for (size_t i = 0; i < PERCENTILES && put_all; i++) {
        json_t *value = json_null();
        if (measured && result->latencies.count > 0) {
            value = integer(latencies_percentile(&result->latencies, parts[i]));
        }
        put_all = put(object, part_names[i], value);
    }
    return put_all && put(object, "p99_values", p99_array(result));
}

static bool
put_result(const bench_t *bench, const bench_result_t *result, json_t *array)
{
    json_t *object = json_object();
    double difference = 0;
    bool compared = bench_difference(bench, result, &difference);
    const char *against = compared ? result->workload->against : "";
    bool put_all = json_array_append_new(array, object) == 0 &&
                   put(object, "workload", json_string(result->workload->name)) &&
                   put(object, "resource", text_or_null(result->resource)) &&
                   put(object, "unit", json_string(result->workload->unit)) &&
                   put(object, "operations", integer(result->operations)) &&
                   put(object, "cut", json_boolean(result->cut_ops != 0)) &&
                   put(object, "against", text_or_null(against)) &&
                   put(object, "difference", real_or_null(compared, difference)) &&
                   put(object, "problem", text_or_null(result->problem)) &&
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
