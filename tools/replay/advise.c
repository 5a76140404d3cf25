/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Each candidate runs the log in three ways: in every capacity of the curve, growing from nothing,
 * and under the clock at its safe capacity. Each run has a resource of its own, so that it does
 * not find what another has left.
 */
#include "replay/advise.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rmm/rmm.h>

#include "common/error.h"
#include "common/standard_output.h"
#include "replay/advice_report.h"
#include "replay/held.h"
#include "replay/pool.h"
#include "replay/replay.h"
#include "replay/simulated.h"

#define TIMED_RUNS 5
#define GIB ((uint64_t)1 << 30)
#define DEVICE_BYTES (80 * GIB) /* as the simulated GPU has without RMM_SIM_MEMORY */
#define DEVICE_OVER_PEAK                                                               \
    4 /* room for every capacity, and for the chunks of a growing pool */

/* The resources that a program can choose by RMM_RESOURCE and that divide memory themselves: those
 * of the driver would be judged by the simulated GPU's ways, which are not its. */
static const char *const resources[] = {"pool", "pool_virtual", "arena", "binning"};
#define RESOURCE_COUNT (sizeof resources / sizeof *resources)

typedef struct run {
    double ns;               /* of an operation */
    uint64_t reserved_bytes; /* held at the end */
} run_t;

/* Keeps runs on the simulated GPU out of the list of this machine's programs. */
bool advise_prepare(void)
{
    const char *driver = getenv("RMM_DRIVER");
    if (driver != NULL && strcmp(driver, "sim") != 0) {
        tool_error(
            "--advise runs on the simulated GPU: unset RMM_DRIVER (it is %.20s)",
            driver);
        return false;
    }
    return setenv("RMM_DRIVER", "sim", 1) == 0 && setenv("RMM_PUBLISH", "0", 1) == 0;
}

/* A log of a larger GPU needs a larger simulated one. */
static bool make_room(uint64_t peak_bytes)
{
    char text[32];
    if (peak_bytes <= DEVICE_BYTES / DEVICE_OVER_PEAK) {
        return true;
    }
    snprintf(
        text, sizeof text, "%" PRIu64, peak_bytes / GIB * GIB * DEVICE_OVER_PEAK + GIB);
    return setenv("RMM_SIM_MEMORY", text, 0) == 0;
}

/* One run on a fresh resource. */
static capacity_trial_t play_on(const plan_t *plan, rmm_resource_t *mr, run_t *out)
{
    replay_t replay;
    rmm_stats_t stats;
    capacity_trial_t answer = CAPACITY_TRIAL_FAILED;
    if (!replay_open(&replay, plan, mr, 0, NULL)) {
        tool_error("%s", replay.error);
        return answer;
    }
    if (!replay_run(&replay)) {
        tool_error("%s", replay.error);
    } else if (replay.failure_count > 0) {
        answer = CAPACITY_TOO_SMALL;
    } else if (!held_stats(mr, &stats)) {
        tool_error("%s", rmm_last_error_message());
    } else {
        *out = (run_t){
            .ns = (double)replay.best_elapsed_ns / (double)plan->op_count,
            .reserved_bytes = stats.reserved_bytes};
        answer = CAPACITY_FITS;
    }
    replay_close(&replay);
    return answer;
}

/* One run on a resource of so many bytes (0: its default). */
static capacity_trial_t
play(const plan_t *plan, const char *resource, uint64_t bytes, run_t *out)
{
    rmm_resource_t *mr;
    if (!pool_open(resource, bytes, &mr)) {
        tool_error("%s: %s", resource, rmm_last_error_message());
        return CAPACITY_TRIAL_FAILED;
    }
    capacity_trial_t answer = play_on(plan, mr, out);
    rmm_resource_release(mr);
    return answer;
}

/*
 * The safe capacity as an advice would name it, rounded, and played in that form with the log's
 * threads: it may be a hole between two capacities of the curve, which is tried on one thread, and
 * an arena divides its memory among threads.
 */
static bool find_safe(
    const plan_t *plan, progress_t *progress, advice_candidate_t *candidate, run_t *out)
{
    capacity_curve_t curve;
    if (!pool_measure_curve(candidate->resource, plan, progress, &curve)) {
        return false;
    }
    unsigned first = capacity_curve_safe(&curve);
    for (unsigned i = first; i > 0 && i < 100 + CAPACITY_CURVE_COUNT; i++) {
        uint64_t bytes = advice_round(curve.bytes[i - 100]);
        capacity_trial_t answer = play(plan, candidate->resource, bytes, out);
        if (answer == CAPACITY_TRIAL_FAILED) {
            return false;
        }
        if (answer == CAPACITY_FITS) {
            candidate->safe = i;
            candidate->safe_bytes = bytes;
            return true;
        }
    }
    return true;
}

/* An arena has a least size: it is no candidate for a log that needs less. */
static bool is_too_small(const plan_t *plan, const char *resource)
{
    rmm_resource_t *mr;
    if (pool_open(resource, advice_round(plan->peak_bytes), &mr)) {
        rmm_resource_release(mr);
        return false;
    }
    return strcmp(resource, "arena") == 0;
}

/* It holds more than was requested where memory is mapped in larger pieces. */
static void count_held(const plan_t *plan, uint64_t held_bytes, advice_candidate_t *out)
{
    if (out->safe > 0 && held_bytes > out->safe_bytes) {
        double parts = 100.0 * (double)held_bytes / (double)plan->peak_bytes;
        out->safe = parts < UINT32_MAX / 2 ? (unsigned)parts + 1 : UINT32_MAX / 2;
        out->safe_bytes = held_bytes;
    }
}

/* One run that has the room it needs; false: said why on stderr. */
static bool
play_whole(const plan_t *plan, const char *resource, uint64_t bytes, run_t *out)
{
    capacity_trial_t answer = play(plan, resource, bytes, out);
    if (answer == CAPACITY_TOO_SMALL) {
        tool_error("%s cannot replay the log: %s", resource, rmm_last_error_message());
    }
    return answer == CAPACITY_FITS;
}

static bool measure(
    const plan_t *plan, const char *resource, progress_t *progress,
    advice_candidate_t *out)
{
    run_t grown = {0}, safe = {0};
    *out = (advice_candidate_t){
        .resource = resource, .grows = replay_resource_sizes(resource) == 2};
    if (!find_safe(plan, progress, out, &safe) ||
        (out->grows && !play_whole(plan, resource, 0, &grown))) {
        return false;
    }
    out->grown_bytes = grown.reserved_bytes;
    count_held(plan, safe.reserved_bytes, out);
    return true;
}

/* In turns, so that a moment in which the machine is busy does not slow one candidate alone. */
static bool time_all(const plan_t *plan, advice_candidate_t *candidates, size_t count)
{
    for (size_t i = 0; i < TIMED_RUNS * count; i++) {
        advice_candidate_t *candidate = &candidates[i % count];
        run_t run;
        if (!play_whole(plan, candidate->resource, candidate->safe_bytes, &run)) {
            return false;
        }
        if (i < count || run.ns < candidate->ns_per_operation) {
            candidate->ns_per_operation = run.ns;
        }
    }
    return true;
}

/* Measures the resources that can run the plan; false: stderr says why. */
static bool
measure_all(const plan_t *plan, advice_candidate_t *candidates, size_t *count_out)
{
    progress_t progress;
    bool good = true;
    size_t count = 0;
    progress_begin(
        &progress, RESOURCE_COUNT * CAPACITY_CURVE_COUNT, !isatty(STDERR_FILENO));
    for (size_t i = 0; good && i < RESOURCE_COUNT; i++) {
        if (!is_too_small(plan, resources[i])) {
            good = measure(plan, resources[i], &progress, &candidates[count++]);
        }
    }
    progress_end(&progress);
    *count_out = count;
    return good;
}

bool advise(const plan_t *plan, const char *log, bool json)
{
    advice_candidate_t candidates[RESOURCE_COUNT];
    advice_t advice;
    if (plan->peak_bytes == 0) {
        tool_error("%s allocates nothing: there is nothing to advise", log);
        return false;
    }
    if (!make_room(plan->peak_bytes)) {
        tool_error("no host memory");
        return false;
    }
    const simulated_t *gpu = simulated();
    if (gpu == NULL) {
        tool_error("%s", rmm_last_error_message());
        return false;
    }
    gpu->run_promptly(); /* no work runs on the GPU, so nothing is late */
    size_t count;
    if (!measure_all(plan, candidates, &count) || !time_all(plan, candidates, count)) {
        return false;
    }
    advice_report_t report = {log, plan, candidates, count, &advice};
    bool printed = true;
    if (!advice_decide(candidates, count, plan->peak_bytes, &advice)) {
        tool_error("no resource can replay %s: there is nothing to advise", log);
        return false;
    }
    if (json) {
        printed = advice_print_json(&report, stdout);
    } else {
        advice_print_table(&report, stdout);
    }
    return standard_output_end(printed);
}
