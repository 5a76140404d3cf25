/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-replay: replays an allocation log on a resource of rmm-c.
 *
 * Uses the public API only, through the shared library, so that a diagnosis library
 * injected into it sees what it would see of any program.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rmm/rmm.h>

#include "common/error.h"
#include "common/library_log.h"
#include "common/standard_output.h"
#include "replay/advise.h"
#include "replay/held.h"
#include "replay/hold.h"
#include "replay/load.h"
#include "replay/options.h"
#include "replay/pool.h"
#include "replay/replay.h"
#include "replay/report.h"
#include "replay/simulated.h"
#include "segment/clean_text.h"

const char *const tool_name = "rmm-replay";

typedef struct session {
    replay_options_t options;
    plan_t plan;
    load_counts_t counts;
    replay_t replay;
    report_t report;
    csv_t csv;
    bool measured; /* the report is filled */
} session_t;

static bool open_resource(const replay_options_t *options, rmm_resource_t **out)
{
    bool opened = pool_open(options->resource, options->pool_bytes, out);
    if (!opened) {
        tool_error("%s", rmm_last_error_message());
    }
    return opened;
}

static void print_failures(const replay_t *replay, const char *log)
{
    for (uint64_t i = 0; i < replay->failure_count && i < REPLAY_FAILURES_SHOWN; i++) {
        const replay_failure_t *failure = &replay->failures[i];
        tool_error(
            "%s:%" PRIu32 ": allocating %" PRIu64 " bytes failed: %s", log,
            failure->line, failure->bytes, failure->message);
    }
    if (replay->failure_count > REPLAY_FAILURES_SHOWN) {
        tool_error(
            "%s: %" PRIu64 " allocations failed, the first %d are shown", log,
            replay->failure_count, REPLAY_FAILURES_SHOWN);
    }
}

static void print_mismatches(const replay_t *replay, const verify_report_t *found)
{
    for (uint64_t i = 0; i < found->count && i < VERIFY_SHOWN_MAX; i++) {
        const verify_mismatch_t *m = &found->shown[i];
        const plan_op_t *op = replay_op(replay, m->op);
        tool_error(
            "verify: the block of line %" PRIu32 " (%" PRIu64 " bytes at 0x%" PRIx64
            ") holds 0x%016" PRIx64 " at offset %" PRIu64 ", expected 0x%016" PRIx64,
            op->line, op->bytes, m->address, m->found, m->offset, m->expected);
    }
    if (found->count > 0) {
        tool_error("verify: %llu 8-byte words differ", found->count);
    }
}

/* The resource's own count of the peak must be the log's: else one of them lies. */
static bool peaks_agree(const session_t *session)
{
    const report_t *report = &session->report;
    if (report->peak_bytes == report->log_peak_bytes) {
        return true;
    }
    tool_error(
        "the resource counted a peak of %" PRIu64 " bytes, the log has %" PRIu64,
        report->peak_bytes, report->log_peak_bytes);
    return false;
}

static bool run_all(session_t *session)
{
    replay_t *replay = &session->replay;
    for (uint64_t i = 0; i < session->options.repeat; i++) {
        if (!replay_run(replay)) {
            tool_error("%s", replay->error);
            return false;
        }
    }
    print_failures(replay, session->options.log_path);
    if (replay->verify == NULL) {
        return replay->failure_count == 0;
    }
    verify_report_t found;
    if (!replay_verify_finish(replay, &found)) {
        tool_error("%s", replay->error);
        return false;
    }
    print_mismatches(replay, &found);
    session->report.verified = true;
    session->report.mismatched_words = found.count;
    return replay->failure_count == 0 && found.count == 0;
}

static void fill_report(session_t *session, const rmm_stats_t *stats)
{
    const replay_t *replay = &session->replay;
    const plan_t *plan = &session->plan;
    report_t *report = &session->report;
    double operations = (double)plan->op_count;
    bool timed = replay->speed == 0 && replay->verify == NULL &&
                 session->options.csv_path == NULL && replay->run_count > 0;

    report->log = session->options.log_path;
    report->resource = session->options.resource;
    report->driver = rmm_driver_name();
    report->operations = plan->op_count;
    report->repeats = replay->run_count;
    report->threads = plan->thread_count;
    report->streams = plan->stream_count;
    report->ns_per_operation =
        timed ? (double)replay->elapsed_ns / operations / (double)replay->run_count
              : -1;
    report->best_ns_per_operation =
        timed ? (double)replay->best_elapsed_ns / operations : -1;
    report->peak_bytes = stats->peak_bytes;
    report->log_peak_bytes = plan->peak_bytes;
    report->reserved_bytes = stats->reserved_bytes;
    report->left_bytes = stats->current_bytes;
    report->left_count = stats->current_count;
    report->failed_allocations = replay->failure_count;
    report->logged_failures = plan->failure_count;
    report->skipped_rows = session->counts.skipped_rows;
}

static bool print_report(const session_t *session)
{
    bool printed = true;
    if (session->options.json) {
        printed = report_print_json(&session->report, stdout);
    } else {
        report_print_table(&session->report, stdout);
    }
    return standard_output_end(printed);
}

static bool begin_csv(session_t *session)
{
    const replay_options_t *options = &session->options;
    char heading[TOOL_MESSAGE_MAX];
    const char *slash = strrchr(options->log_path, '/');
    if (options->csv_path == NULL) {
        return true;
    }
    snprintf(
        heading, sizeof heading, "log %.100s resource %s driver %s",
        slash != NULL ? slash + 1 : options->log_path, options->resource,
        rmm_driver_name());
    rmm__text_clean(heading, sizeof heading);
    if (!csv_open(&session->csv, options->csv_path, heading, session->plan.op_count)) {
        tool_error("cannot write %s: %s", options->csv_path, strerror(errno));
        return false;
    }
    session->replay.csv = &session->csv;
    return true;
}

static bool end_csv(session_t *session)
{
    if (session->replay.csv == NULL) {
        return true;
    }
    session->replay.csv = NULL;
    bool written = csv_close(&session->csv);
    if (!written) {
        tool_error("cannot write %s: %s", session->options.csv_path, strerror(errno));
    }
    return written;
}

/* With a resource and a replay open: run, and say what happened. */
static bool measure(session_t *session)
{
    rmm_stats_t stats;
    bool worked = run_all(session);
    worked = end_csv(session) && worked;
    if (!held_stats(session->replay.resource, &stats)) {
        tool_error("%s", rmm_last_error_message());
        return false;
    }
    fill_report(session, &stats);
    session->measured = true;
    return worked && peaks_agree(session);
}

static bool tries_capacities(const replay_options_t *options)
{
    return options->find_capacity || options->capacity_curve;
}

/* The report comes before the hold, so that a reader that waits for it can look at the files. */
static bool use(session_t *session)
{
    const replay_options_t *options = &session->options;
    bool worked = measure(session);
    if (options->hold) {
        hold_prepare();
    }
    if (session->measured && !tries_capacities(options)) {
        worked = print_report(session) && worked;
    }
    if (options->hold) {
        hold_for(options->hold_seconds);
    }
    return worked;
}

static bool open_and_use(session_t *session, rmm_resource_t *resource)
{
    const replay_options_t *options = &session->options;
    const verify_backend_t *verify = options->verify ? verify_backend_select() : NULL;
    if (options->verify && verify == NULL) {
        tool_error("--verify on a real GPU needs a build with nvcc, and AMD GPUs have "
                   "none; RMM_DRIVER=sim verifies on the simulated GPU");
        return false;
    }
    if (!replay_open(
            &session->replay, &session->plan, resource, options->speed, verify)) {
        tool_error("%s", session->replay.error);
        return false;
    }
    bool worked = begin_csv(session) && use(session);
    replay_close(&session->replay);
    return worked;
}

static bool try_capacities(session_t *session)
{
    const replay_options_t *options = &session->options;
    report_t *report = &session->report;
    bool worked = true;
    const simulated_t *gpu = simulated();
    if (gpu != NULL &&
        !options->verify) { /* nothing runs on the GPU, so nothing is late */
        gpu->run_promptly();
    }
    if (options->find_capacity) {
        worked = pool_find_capacity(
            options->resource, &session->plan, &report->capacity_bytes);
    }
    if (options->capacity_curve) {
        progress_t progress;
        progress_begin(&progress, CAPACITY_CURVE_COUNT, !isatty(STDERR_FILENO));
        report->curve_is_known = pool_measure_curve(
            options->resource, &session->plan, &progress, &report->curve);
        progress_end(&progress);
    }
    return worked && report->curve_is_known == options->capacity_curve;
}

/* Capacities are tried when the first resource is gone: their pools need the room. */
static bool run_session(session_t *session)
{
    rmm_resource_t *resource;
    if (!open_resource(&session->options, &resource)) {
        return false;
    }
    bool worked = open_and_use(session, resource);
    rmm_resource_release(resource);
    if (tries_capacities(&session->options) && session->measured) {
        worked = try_capacities(session) && worked;
        worked = print_report(session) && worked;
    }
    return worked;
}

/* With the log loaded. */
static bool serve(session_t *session)
{
    const replay_options_t *options = &session->options;
    return options->advise ? advise(&session->plan, options->log_path, options->json)
                           : run_session(session);
}

int main(int argc, char **argv)
{
    static session_t session;
    char message[TOOL_MESSAGE_MAX];
    (void)argc;
    standard_output_begin();
    if (!replay_options_parse(argv, &session.options, message)) {
        tool_error("%s", message);
        return TOOL_EXIT_USAGE;
    }
    if (rmm_resource_check_spec(session.options.resource) != RMM_OK) {
        tool_error("--resource: %s", rmm_last_error_message());
        return TOOL_EXIT_USAGE;
    }
    if (session.options.help) {
        tool_options_help(&replay_command, stdout);
        return standard_output_end(true) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (session.options.version) {
        printf("rmm-replay %s\n", rmm_version_string());
        return standard_output_end(true) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    bool worked = (!session.options.advise || advise_prepare()) && library_log_open() &&
                  load_log(
                      session.options.log_path, session.options.strict, &session.plan,
                      &session.counts) &&
                  serve(&session);
    plan_fini(&session.plan);
    return worked ? EXIT_SUCCESS : EXIT_FAILURE;
}
