/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-bench: measures the resources of rmm-c beside each other.
 *
 * Uses the public API through the shared library, as a program does; only the segment is
 * read with its reader.
 */
#include <stdio.h>
#include <stdlib.h>

#include <rmm/rmm.h>

#include "bench/bench.h"
#include "bench/machine.h"
#include "bench/options.h"
#include "bench/report.h"
#include "bench/subject.h"
#include "common/error.h"
#include "common/library_log.h"
#include "common/standard_output.h"

const char *const tool_name = "rmm-bench";

#define MS UINT64_C(1000000)

static const trial_scale_t full_scale = {
    .warm_ns = 60 * MS,
    .run_ns = 40 * MS,
    .setup_ns = 1000 * MS,
    .churn_steps = 20000,
    .mix_allocations = 20000,
    .full_blocks = 100000,
    .growth_bytes = UINT64_C(1) << 30,
};

static const trial_scale_t quick_scale = {
    .warm_ns = 20 * MS,
    .run_ns = 5 * MS,
    .setup_ns = 300 * MS,
    .churn_steps = 2000,
    .mix_allocations = 2000,
    .full_blocks = 10000,
    .growth_bytes = UINT64_C(64) << 20,
};

static void print_list(void)
{
    for (size_t i = 0; i < workload_count; i++) {
        printf(
            "%-24s %-16s %s\n", workloads[i].name, workloads[i].unit,
            workloads[i].about);
    }
}

/* Each workload that is taken, on each resource that it suits. False: said why. */
static bool choose(const bench_options_t *options, bench_t *bench)
{
    bool was_named = options->resources.words[0] != NULL;
    const char *const *resources =
        was_named ? options->resources.words : subjects_usual;
    for (size_t i = 0; i < workload_count; i++) {
        for (size_t j = 0; resources[j] != NULL; j++) {
            if (bench_options_take(options, workloads[i].name) &&
                subject_suits(resources[j], &workloads[i], was_named) &&
                !bench_add(bench, &workloads[i], resources[j])) {
                tool_error("no host memory for the figures");
                return false;
            }
        }
    }
    if (bench->result_count == 0) {
        tool_error("no workload matches: --list shows their names, and rmm-bench(1) "
                   "which resources each supports");
    }
    return bench->result_count > 0;
}

static bool print_report(
    const bench_options_t *options, const machine_t *machine, const bench_t *bench)
{
    const bench_report_t report = {
        .version = rmm_version_string(),
        .machine = machine,
        .bench = bench,
        .quick = options->quick};
    bool printed = true;
    if (options->json) {
        printed = bench_print_json(&report, stdout);
    } else {
        bench_print_table(&report, stdout);
    }
    return standard_output_end(printed);
}

static void print_problems(const bench_t *bench)
{
    for (size_t i = 0; i < bench->result_count; i++) {
        const bench_result_t *result = &bench->results[i];
        if (result->problem[0] != '\0' && !result->unsupported) {
            tool_error(
                "%s on %s: %s", result->workload->name, result->resource,
                result->problem);
        }
    }
}

static bool measure(const bench_options_t *options, bench_t *bench)
{
    machine_t machine;
    if (!machine_ask(&machine)) {
        tool_error("%s", rmm_last_error_message());
        return false;
    }
    progress_begin(
        &bench->progress, bench->repetitions * bench->result_count, options->quiet);
    bool complete = bench_run(bench);
    print_problems(bench);
    return print_report(options, &machine, bench) && complete;
}

/* False: one of the resources is none; said so. */
static bool check_resources(const bench_options_t *options)
{
    for (size_t i = 0; options->resources.words[i] != NULL; i++) {
        if (rmm_resource_check_spec(options->resources.words[i]) != RMM_OK) {
            tool_error("--resource: %s", rmm_last_error_message());
            return false;
        }
    }
    return true;
}

static bool is_workload(const char *word)
{
    bool is = false;
    for (size_t i = 0; i < workload_count; i++) {
        is = is || bench_word_takes(word, workloads[i].name);
    }
    return is;
}

/* False: a word of the filter stands for no workload; said so. */
static bool check_filter(const bench_options_t *options)
{
    char known[1600] = "";
    size_t used = 0;
    for (size_t i = 0; i < workload_count && used < sizeof known; i++) {
        used += (size_t)snprintf(
            known + used, sizeof known - used, " %s", workloads[i].name);
    }
    for (size_t i = 0; options->filter.words[i] != NULL; i++) {
        if (!is_workload(options->filter.words[i])) {
            tool_error(
                "--filter: no workload has \"%s\" in its name; they are%s",
                options->filter.words[i], known);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    static bench_options_t options;
    char message[TOOL_MESSAGE_MAX];
    (void)argc;
    standard_output_begin();
    if (!bench_options_parse(argv, &options, message)) {
        tool_error("%s", message);
        return TOOL_EXIT_USAGE;
    }
    if (options.help || options.version || options.list) {
        if (options.help) {
            tool_options_help(&bench_command, stdout);
        } else if (options.version) {
            printf("rmm-bench %s\n", rmm_version_string());
        } else {
            print_list();
        }
        return standard_output_end(true) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    bench_t bench = {
        .scale = options.quick ? quick_scale : full_scale,
        .repetitions = options.repetitions != 0 ? options.repetitions
                       : options.quick          ? 3
                                                : 9,
        .seed = options.seed};
    if (!check_filter(&options) || !check_resources(&options)) {
        return TOOL_EXIT_USAGE;
    }
    bool worked =
        library_log_open() && choose(&options, &bench) && measure(&options, &bench);
    bench_fini(&bench);
    return worked ? EXIT_SUCCESS : EXIT_FAILURE;
}
