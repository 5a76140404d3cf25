/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A result with a problem is tried no further: its figures would be of fewer repetitions
 * than the others'.
 */
#include "bench/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/device.h>

#include "bench/subject.h"

#define GIB (1024.0 * 1024.0 * 1024.0)

bool bench_add(bench_t *bench, const workload_t *workload, const char *resource)
{
    if (bench->result_count == bench->capacity) {
        size_t capacity = bench->capacity > 0 ? 2 * bench->capacity : 64;
        bench_result_t *results =
            realloc(bench->results, capacity * sizeof *bench->results);
        if (results == NULL) {
            return false;
        }
        bench->results = results;
        bench->capacity = capacity;
    }
    bench_result_t *result = &bench->results[bench->result_count];
    *result = (bench_result_t){.workload = workload, .resource = resource};
    result->values = calloc(bench->repetitions, sizeof *result->values);
    result->p99_ns = calloc(bench->repetitions, sizeof *result->p99_ns);
    if (result->values == NULL || result->p99_ns == NULL) {
        free(result->values);
        free(result->p99_ns);
        return false;
    }
    bench->result_count++;
    return true;
}

/* The resource of a trial, under the adaptor that the workload puts on it. */
static bool
open_wrapped(const bench_t *bench, const bench_result_t *result, rmm_resource_t **out)
{
    const workload_t *workload = result->workload;
    rmm_resource_t *base;
    if (!subject_open(result->resource, workload, &bench->scale, &base)) {
        return false;
    }
    if (workload->wrap == NULL) {
        *out = base;
        return true;
    }
    bool wrapped = workload->wrap(base, out);
    rmm_resource_release(base);
    return wrapped;
}

static bool has_room(const workload_t *workload, trial_t *trial)
{
    size_t free_bytes, total_bytes;
    rmm_status_t status = rmm_available_device_memory(&free_bytes, &total_bytes);
    trial_fail(trial, status);
    if (status == RMM_OK && free_bytes < workload->device_bytes) {
        snprintf(
            trial->problem, sizeof trial->problem,
            "needs %.1f GiB of device memory, %.1f are free",
            (double)workload->device_bytes / GIB, (double)free_bytes / GIB);
        trial->unsupported = true;
    }
    return trial->problem[0] == '\0';
}

/* The p99 of the latencies from number `begin` on. */
static uint32_t p99_since(const latencies_t *latencies, size_t begin)
{
    latencies_t last = {.ns = latencies->ns + begin, .count = latencies->count - begin};
    latencies_sort(&last);
    return latencies_percentile(&last, 0.99);
}

static void run_trial(const bench_t *bench, bench_result_t *result)
{
    size_t latencies_before = result->latencies.count;
    trial_t trial = {
        .scale = &bench->scale,
        .seed = bench->seed,
        .latencies = &result->latencies,
        .cut_ops = result->cut_ops};
    if (has_room(result->workload, &trial)) {
        if (open_wrapped(bench, result, &trial.resource)) {
            result->workload->run(result->workload, &trial);
            rmm_resource_release(trial.resource);
        } else {
            trial_refuse(&trial, rmm_last_error_message());
        }
    }
    if (trial.problem[0] != '\0') {
        memcpy(result->problem, trial.problem, sizeof result->problem);
        result->unsupported = trial.unsupported;
        return;
    }
    if (result->latencies.count > latencies_before) {
        result->p99_ns[result->value_count] =
            p99_since(&result->latencies, latencies_before);
    }
    result->values[result->value_count++] = trial.value;
    result->operations = trial.operations;
    result->cut_ops = trial.cut_to_ops;
}

static size_t group_end(const bench_t *bench, size_t begin)
{
    size_t end = begin + 1;
    while (end < bench->result_count &&
           strcmp(
               bench->results[end].workload->group,
               bench->results[begin].workload->group) == 0) {
        end++;
    }
    return end;
}

static void run_group(bench_t *bench, size_t begin, size_t end)
{
    size_t count = end - begin;
    for (uint64_t i = 0; i < bench->repetitions; i++) {
        for (size_t j = 0; j < count; j++) { /* each is once the first */
            bench_result_t *result = &bench->results[begin + (i + j) % count];
            progress_step(&bench->progress, result->workload->name, result->resource);
            if (result->problem[0] == '\0') {
                run_trial(bench, result);
            }
        }
    }
}

bool bench_run(bench_t *bench)
{
    bool complete = true;
    for (size_t begin = 0, end; begin < bench->result_count; begin = end) {
        end = group_end(bench, begin);
        progress_group(&bench->progress, bench->results[begin].workload->group);
        run_group(bench, begin, end);
    }
    progress_end(&bench->progress);
    for (size_t i = 0; i < bench->result_count; i++) {
        bench_result_t *result = &bench->results[i];
        complete = complete && (result->problem[0] == '\0' || result->unsupported);
        latencies_sort(&result->latencies);
    }
    return complete;
}

const bench_result_t *
bench_result_of(const bench_t *bench, const char *workload, const char *resource)
{
    for (size_t i = 0; i < bench->result_count; i++) {
        const bench_result_t *result = &bench->results[i];
        if (strcmp(result->workload->name, workload) == 0 &&
            strcmp(result->resource, resource) == 0) {
            return result;
        }
    }
    return NULL;
}

bool bench_difference(
    const bench_t *bench, const bench_result_t *result, double *difference)
{
    double differences[BENCH_REPETITIONS_MAX];
    const char *against = result->workload->against;
    const bench_result_t *base =
        against != NULL ? bench_result_of(bench, against, result->resource) : NULL;
    if (base == NULL || base->problem[0] != '\0' || result->problem[0] != '\0') {
        return false;
    }
    for (size_t i = 0; i < result->value_count; i++) {
        differences[i] = result->values[i] - base->values[i];
    }
    *difference = sample_median(differences, result->value_count);
    return true;
}

void bench_fini(bench_t *bench)
{
    for (size_t i = 0; i < bench->result_count; i++) {
        free(bench->results[i].values);
        free(bench->results[i].p99_ns);
        latencies_fini(&bench->results[i].latencies);
    }
    free(bench->results);
    *bench = (bench_t){0};
}
