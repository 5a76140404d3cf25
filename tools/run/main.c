/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-run: runs a program with the diagnosis library in it.
 *
 * It sets environment variables, runs the program as a child, waits for its end, prints or writes
 * the results, and ends with the same status. With --no-summary and no other result it replaces
 * itself by the program instead, so that no process is between the shell and the program. For its
 * own failures it uses the statuses of env(1) and timeout(1).
 */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"
#include "common/numbers.h"
#include "common/options.h"
#include "common/output.h"
#include "common/standard_output.h"
#include "core/clock.h"
#include "diag/modes.h"
#include "run/child.h"
#include "run/files.h"
#include "run/inject_path.h"
#include "run/job.h"
#include "run/left.h"
#include "run/privileged.h"
#include "run/quick.h"
#include "run/suppressions.h"
#include "run/tell.h"
#include "run/timeline.h"
#include "segment/runtime_dir.h"
#include "timeline/pictures.h"

#define EXIT_FINDING 86
#define EXIT_OWN_FAILURE 125
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

#define USUAL_MODES "usage,bounds,driver"

#define INJECTION_VARIABLE "CUDA_INJECTION64_PATH"
#define MODE_VARIABLE "RMM_DIAG"
#define QUARANTINE_VARIABLE "RMM_DIAG_QUARANTINE"
#define TIMELINE_VARIABLE "RMM_TIMELINE"

const char *const tool_name = "rmm-run";

typedef struct run_options {
    const char *diag;         /* NULL: the usual ones */
    const char *report;       /* NULL: none */
    const char *junit;        /* the same */
    const char *sarif;        /* the same */
    const char *suppressions; /* the same */
    const char *timeline;     /* the same */
    const char *trace;        /* the same */
    const char *only;         /* a glob; NULL: all */
    const char *quarantine;   /* bytes; NULL: as the environment says */
    uint64_t timeline_events;
    bool summary;
    bool no_summary;
    bool is_implied; /* the summary: nobody asked for it */
    bool fail_on_finding;
    bool fail_on_leak;
    bool quick;
    bool is_brief; /* the summary: that of quick */
    bool help;
    bool version;
} run_options_t;

static const char *parse_diag(const char *text, void *field)
{
    const char **diag = field;
    static char expected[128];
    char unknown[RMM_DIAG_MODE_WORD_BYTES];
    uint32_t modes;
    if (text[0] == '\0') { /* RMM_DIAG="" would diagnose nothing, and say nothing */
        return "a list of modes, such as usage,bounds";
    }
    if (!rmm__diag_modes_parse(text, &modes, unknown)) {
        snprintf(
            expected, sizeof(expected),
            "a list of modes: there is no \"%s\"; they are " RMM_DIAG_MODE_WORDS,
            unknown);
        return expected;
    }
    *diag = text;
    return NULL;
}

static const char *parse_path(const char *text, void *field)
{
    const char **path = field;
    if (text[0] == '\0') {
        return "the name of a file";
    }
    *path = text;
    return NULL;
}

static const char *parse_bytes(const char *text, void *field)
{
    const char **bytes = field;
    uint64_t number;
    if (rmm__number_parse_bytes(text, strlen(text), &number) != RMM_NUMBER_OK) {
        return "a number of bytes such as 64MiB";
    }
    *bytes = text;
    return NULL;
}

static const char *parse_events(const char *text, void *field)
{
    uint64_t *events = field;
    return rmm__number_parse(text, strlen(text), events) == RMM_NUMBER_OK &&
                   *events >= RUN_TIMELINE_EVENTS_LEAST &&
                   *events <= RMM_TIMELINE_EVENTS_MAX
               ? NULL
               : "a number of events from 16 to 4194304";
}

static const tool_option_t table[] = {
    {"diag", 0, "MODES", parse_diag, offsetof(run_options_t, diag),
     "comma-separated list: usage (which kernel used which\n"
     "allocation), bounds (copies, fills and prefetches that\n"
     "go past the end of their allocation, uses after free),\n"
     "order (unordered uses and frees), guards (kernels that\n"
     "write past the end of their allocation), driver (memory\n"
     "that the program takes from the driver directly);\n"
     "default: usage,bounds,driver; off: none until a mode is\n"
     "written to diag/mode of the process"},
    {"quarantine", 0, "BYTES", parse_bytes, offsetof(run_options_t, quarantine),
     "with bounds: keep up to BYTES (64MiB, ...) of freed\n"
     "memory in each pool from being reused, so that more uses\n"
     "after free are found (default: 0)"},
    {"summary", 0, NULL, NULL, offsetof(run_options_t, summary),
     "print the findings on stderr when the program has ended:\n"
     "the default if no other result is asked for and --diag\n"
     "is not off"},
    {"no-summary", 0, NULL, NULL, offsetof(run_options_t, no_summary),
     "do not; without another result, rmm-run replaces itself\n"
     "by the program, and /rmm shows the findings"},
    {"quick", 0, NULL, NULL, offsetof(run_options_t, quick),
     "for a CI: the cheap checks (--diag bounds), 86 if there\n"
     "are findings or leaks, and a summary of one line if not"},
    {"report", 0, "FILE", parse_path, offsetof(run_options_t, report),
     "write the findings to FILE as JSON when the program has\n"
     "ended; a folder, or a name that ends with /, gets a file\n"
     "for each process and summary.json"},
    {"junit", 0, "FILE", parse_path, offsetof(run_options_t, junit),
     "write them to FILE as a test report in XML (JUnit)"},
    {"sarif", 0, "FILE", parse_path, offsetof(run_options_t, sarif),
     "write them to FILE as SARIF, which forges show beside\n"
     "the source"},
    {"only", 0, "GLOB", parse_path, offsetof(run_options_t, only),
     "report only on processes, of those that the program\n"
     "starts, whose command matches GLOB"},
    {"fail-on-finding", 0, NULL, NULL, offsetof(run_options_t, fail_on_finding),
     "exit with 86 if there are findings other than hints"},
    {"fail-on-leak", 0, NULL, NULL, offsetof(run_options_t, fail_on_leak),
     "exit with 86 if a block was never freed, even if its\n"
     "resource has ended"},
    {"timeline", 0, "FILE", parse_path, offsetof(run_options_t, timeline),
     "write an HTML page to FILE when the program has ended:\n"
     "its memory over time, its kernels, and the blocks that\n"
     "made up the peak"},
    {"trace", 0, "FILE", parse_path, offsetof(run_options_t, trace),
     "write the same events to FILE as JSON for Perfetto"},
    {"timeline-events", 0, "N", parse_events, offsetof(run_options_t, timeline_events),
     "keep the last N events for --timeline and --trace, 64\n"
     "bytes each (default: 262144)"},
    {"suppressions", 0, "FILE", parse_path, offsetof(run_options_t, suppressions),
     "ignore known findings: FILE has lines CLASS:GLOB, where\n"
     "GLOB matches a function, kernel or file (see rmm-run(1))"},
    {"help", 'h', NULL, NULL, offsetof(run_options_t, help), "print this and exit"},
    {"version", 'V', NULL, NULL, offsetof(run_options_t, version),
     "print the version and exit"},
};

static const tool_command_t command = {
    .usage = "rmm-run [OPTION]... -- PROGRAM [ARGUMENT]...",
    .about = "Run an unchanged program under the diagnosis of rmm-c.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .notes =
        "While the program runs, rmmfs shows the findings in /rmm/proc/<pid>/diag.\n"
        "Exit status: that of the program; 86 with --fail-on-finding if there are\n"
        "findings, with --fail-on-leak if there are leaks, with --quick if either; 2\n"
        "after wrong usage; 125 if rmm-run itself fails or, with one of these, "
        "nothing\n"
        "was diagnosed; 126 if the program cannot be executed; 127 if it is not found.",
    .options_come_first = true,
};

/* False: the environment names another tool's library, which would not be loaded then. */
static bool injection_is_free(const char *library)
{
    const char *other = getenv(INJECTION_VARIABLE);
    if (other == NULL || other[0] == '\0' || strcmp(other, library) == 0) {
        return true;
    }
    tool_error(
        INJECTION_VARIABLE
        " is already set, to %s: one tool at a time can be injected; "
        "unset it first",
        other);
    return false;
}

static bool draws(const run_options_t *options)
{
    return options->timeline != NULL || options->trace != NULL;
}

/* A timeline that the environment asks for already is left alone. */
static bool set_variables(const run_options_t *options, const char *library)
{
    char events[32];
    snprintf(events, sizeof(events), "%" PRIu64, options->timeline_events);
    return setenv(INJECTION_VARIABLE, library, 1) == 0 &&
           setenv(MODE_VARIABLE, options->diag, 1) == 0 &&
           (options->quarantine == NULL ||
            setenv(QUARANTINE_VARIABLE, options->quarantine, 1) == 0) &&
           (!draws(options) || setenv(TIMELINE_VARIABLE, events, 1) == 0);
}

static bool set_environment(const run_options_t *options)
{
    char library[PATH_MAX];
    char message[INJECT_MESSAGE_MAX];
    if (!inject_path_find(library, message)) {
        tool_error("%s", message);
        return false;
    }
    if (!injection_is_free(library)) {
        return false;
    }
    if (!set_variables(options, library)) {
        tool_error("cannot set the environment: %s", strerror(errno));
        return false;
    }
    return true;
}

/* --- running -------------------------------------------------------------------------- */

static int cannot_run(const char *program, int error)
{
    tool_error("cannot run %s: %s", tool_shown(program), strerror(error));
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

static bool wants_report(const run_options_t *options)
{
    return options->summary || options->report != NULL || options->junit != NULL ||
           options->sarif != NULL || options->fail_on_finding || options->fail_on_leak;
}

static bool read_suppressions(
    const run_options_t *options, run_suppressions_t *suppressions, int *status_out)
{
    char message[RUN_SUPPRESSION_MESSAGE];
    *status_out = run_suppressions_read(suppressions, options->suppressions, message);
    if (*status_out != 0) {
        tool_error("%s", message);
    }
    return *status_out == 0;
}

/* The results that are written when the program has ended. */
typedef struct results {
    run_about_t about;
    run_left_t left;
    run_job_t job;
    run_suppressions_t suppressions;
    run_files_t files;
    pictures_t pictures; /* not open where none are wanted */
} results_t;

/* 0: as the program ended. */
static int judge(const run_options_t *options, const run_told_t *told)
{
    bool is_wanted = options->fail_on_finding || options->fail_on_leak;
    if (is_wanted && told->processes == 0) {
        return EXIT_OWN_FAILURE;
    }
    return (options->fail_on_finding && told->findings > 0) ||
                   (options->fail_on_leak && told->leaks > 0)
               ? EXIT_FINDING
               : 0;
}

static void say_undiagnosed(const run_options_t *options, const run_told_t *told)
{
    const char *option =
        options->fail_on_finding ? "--fail-on-finding" : "--fail-on-leak";
    tool_error(
        "%s: nothing was diagnosed: %s", options->quick ? "--quick" : option,
        told->why);
}

/* The same. */
static int report_on(const run_options_t *options, results_t *results)
{
    const run_tell_t tell = {
        .program = results->about.program,
        .pid = results->about.pid,
        .left = &results->left,
        .job = &results->job,
        .only = options->only,
        .suppressions = &results->suppressions,
        .summary = options->summary,
        .is_brief = options->is_brief,
        .files = &results->files};
    run_told_t told;
    run_files_begin(&results->files, &results->about);
    if (!run_tell(&tell, &told)) {
        tool_error("no memory for the report");
        run_files_discard(&results->files);
        return EXIT_OWN_FAILURE;
    }
    const run_end_t end = {
        .why = told.processes == 0 ? told.why : NULL,
        .status = judge(options, &told),
        .left_out = results->job.left_out};
    if (!run_files_end(&results->files, &end) || !told.has_summary) {
        return EXIT_OWN_FAILURE;
    }
    if (told.processes > 0) {
        run_suppressions_print(&results->suppressions);
    } else if (end.status != 0) {
        say_undiagnosed(options, &told);
    }
    return end.status;
}

/* The same. */
static int draw(results_t *results)
{
    history_t history;
    char why[160];
    history_init(&history);
    bool good = run_timeline_read(
        &history, results->about.program, results->about.pid, &results->left, why);
    run_timeline_remove(&results->left);
    if (good) {
        good = pictures_write(&results->pictures, &history);
    } else {
        tool_error("no timeline: nothing was recorded: %s", why);
        pictures_discard(&results->pictures);
    }
    history_fini(&history);
    return good ? 0 : EXIT_OWN_FAILURE;
}

static bool open_results(const run_options_t *options, results_t *results)
{
    const char *const paths[RUN_FORMATS] = {
        [RUN_JSON] = options->report,
        [RUN_JUNIT] = options->junit,
        [RUN_SARIF] = options->sarif};
    if (!run_files_open(&results->files, paths)) {
        return false;
    }
    if (!pictures_open(&results->pictures, options->timeline, options->trace)) {
        run_files_discard(&results->files);
        return false;
    }
    return true;
}

/* 0: as the program ended. */
static int tell_all(const run_options_t *options, results_t *results)
{
    int status = wants_report(options) ? report_on(options, results) : 0;
    int drawn = draws(options) ? draw(results) : 0;
    return drawn != 0 ? drawn : status;
}

/* Before the program runs, so that it does not run in vain. */
static bool can_find_results(void)
{
    char path[RMM_RUNTIME_DIR_BYTES], reason[RMM_RUNTIME_DIR_BYTES + 128];
    if (!rmm__runtime_dir(path, reason, sizeof(reason))) {
        tool_error("nothing can be diagnosed: %s", reason);
        return false;
    }
    return true;
}

static int become_program(char **argv)
{
    execvp(argv[0], argv);
    return cannot_run(argv[0], errno);
}

static void look(void *job)
{
    run_job_look(job);
}

static void close_results(results_t *results)
{
    run_job_close(&results->job);
    run_suppressions_free(&results->suppressions);
}

/* What is known before it has run; the rest follows. */
static run_about_t
about_program(const run_options_t *options, char **argv, uint64_t since_ns)
{
    run_about_t about = {
        .program = argv[0],
        .since_ns = since_ns,
        .fails_on_finding = options->fail_on_finding,
        .fails_on_leak = options->fail_on_leak};
    run_about_command(argv, about.command);
    return about;
}

static void note_end(run_about_t *about, const run_child_t *child, uint64_t started_ns)
{
    about->pid = child->pid;
    about->wait_status = child->status;
    about->seconds = (double)(rmm__clock_ns(CLOCK_MONOTONIC) - started_ns) / 1e9;
}

static int run_and_report(const run_options_t *options, char **argv)
{
    run_child_t child = {.since_ns = rmm__clock_ns(CLOCK_REALTIME)};
    uint64_t started_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    results_t results = {
        .about = about_program(options, argv, child.since_ns), .job.dirfd = -1};
    int status;
    if (!read_suppressions(options, &results.suppressions, &status)) {
        return status;
    }
    if (!can_find_results() || !run_job_open(&results.job, child.since_ns) ||
        !open_results(options, &results)) {
        close_results(&results);
        return options->is_implied ? become_program(argv) : EXIT_OWN_FAILURE;
    }
    int error = run_child(argv, &child, look, &results.job);
    if (error != 0) {
        run_files_discard(&results.files);
        pictures_discard(&results.pictures);
        close_results(&results);
        return cannot_run(argv[0], error);
    }
    note_end(&results.about, &child, started_ns);
    (void)signal(SIGPIPE, SIG_IGN); /* a closed stderr costs no other result */
    run_left_open(&results.left, child.pid, child.since_ns);
    run_job_settle(&results.job);
    status = tell_all(options, &results);
    run_left_close(&results.left);
    close_results(&results);
    if (status != 0 && !WIFSIGNALED(child.status)) {
        return status;
    }
    run_end_like(&child);
}

/* No result may replace another one, or a file that is read. */
static bool files_differ(const run_options_t *options)
{
    const char *const paths[] = {options->suppressions, options->report,
                                 options->junit,        options->sarif,
                                 options->timeline,     options->trace};
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        for (size_t j = 0; j < i; j++) {
            if (output_is_same(paths[i], paths[j])) {
                return false;
            }
        }
    }
    return true;
}

/* What --quick stands for, where no other option says something else; and the usual modes. */
static void settle_quick(run_options_t *options)
{
    if (options->diag == NULL) {
        options->diag = options->quick ? RUN_QUICK_MODES : USUAL_MODES;
    }
    if (options->quick) {
        options->fail_on_finding = options->fail_on_leak = true;
        options->is_brief = !options->summary;
        options->summary = !options->no_summary;
    }
}

/* NULL: the options go together, and the summary is on where they ask for nothing else. */
static const char *settle_options(run_options_t *options)
{
    if (options->summary && options->no_summary) {
        return "--summary and --no-summary exclude each other";
    }
    settle_quick(options);
    if (!options->no_summary && !wants_report(options) && !draws(options)) {
        options->is_implied = strcmp(options->diag, "off") != 0;
        options->summary = options->is_implied;
    }
    if (options->suppressions != NULL && !wants_report(options)) {
        return "--suppressions needs --summary, --quick, --report, --junit, --sarif, "
               "--fail-on-finding or --fail-on-leak";
    }
    return files_differ(options)
               ? NULL
               : "--report, --junit, --sarif, --timeline, --trace and --suppressions "
                 "must name different files";
}

/* With what rmm-run is to do and a program: an exit status, if the program does not replace it. */
static int run_program(const run_options_t *options, char **argv)
{
    if (run_is_privileged(argv[0])) {
        tool_error(
            "%s runs with more privileges than its caller (set-user-ID, "
            "set-group-ID or capabilities): it loads no library from the environment, "
            "so it cannot be diagnosed",
            argv[0]);
        return EXIT_OWN_FAILURE;
    }
    if (!set_environment(options)) {
        return EXIT_OWN_FAILURE;
    }
    if (wants_report(options) || draws(options)) {
        return run_and_report(options, argv);
    }
    return become_program(argv);
}

int main(int argc, char **argv)
{
    run_options_t options = {.timeline_events = RUN_TIMELINE_EVENTS};
    char message[TOOL_MESSAGE_MAX];
    (void)argc;
    standard_output_begin();
    int operands = tool_options_parse(&command, argv, &options, message);
    if (operands < 0) {
        tool_error("%s", message);
        return TOOL_EXIT_USAGE;
    }
    if (options.help) {
        tool_options_help(&command, stdout);
        return standard_output_end(true) ? EXIT_SUCCESS : EXIT_OWN_FAILURE;
    }
    if (options.version) {
        puts("rmm-run " RMM_RUN_VERSION);
        return standard_output_end(true) ? EXIT_SUCCESS : EXIT_OWN_FAILURE;
    }
    if (operands == 0) {
        tool_error("no program given: rmm-run -- PROGRAM [ARGUMENT]...; see --help");
        return TOOL_EXIT_USAGE;
    }
    const char *conflict = settle_options(&options);
    if (conflict != NULL) {
        tool_error("%s", conflict);
        return TOOL_EXIT_USAGE;
    }
    return run_program(&options, argv + 1);
}
