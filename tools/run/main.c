/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-run: runs a program with the diagnosis library in it.
 *
 * Sets two variables and becomes the program: no process stays between the shell and it,
 * so that signals, the exit status and the terminal are the program's own. Only where a report
 * is wanted it runs the program as a child, waits, and ends as the program did. Failures of its
 * own end with the statuses that env(1) and timeout(1) use.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "common/error.h"
#include "common/options.h"
#include "core/clock.h"
#include "diag/modes.h"
#include "run/child.h"
#include "run/inject_path.h"
#include "run/report.h"
#include "run/suppressions.h"

#define EXIT_FINDING 86
#define EXIT_OWN_FAILURE 125
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

#define INJECTION_VARIABLE "CUDA_INJECTION64_PATH"
#define MODE_VARIABLE "RMM_DIAG"

const char *const tool_name = "rmm-run";

typedef struct run_options {
    const char *diag;
    const char *report;       /* NULL: none */
    const char *suppressions; /* the same */
    bool summary;
    bool fail_on_finding;
    bool help;
    bool version;
} run_options_t;

static const char *parse_diag(const char *text, void *field)
{
    const char **diag = field;
    static char expected[128];
    char unknown[RMM_DIAG_MODE_WORD_BYTES];
    uint32_t modes;
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

static const tool_option_t table[] = {
    {"diag", "MODES", parse_diag, offsetof(run_options_t, diag),
     "what to find out, joined by commas: usage, which kernel\n"
     "used which allocation; bounds, copies, fills and\n"
     "prefetches that leave their allocation; order, uses and\n"
     "frees that nothing orders; driver, what the program takes\n"
     "from the driver itself (default: usage,bounds,driver);\n"
     "off: nothing until diag/mode of the process is written"},
    {"summary", NULL, NULL, offsetof(run_options_t, summary),
     "print the findings on stderr when the program has ended"},
    {"report", "FILE", parse_path, offsetof(run_options_t, report),
     "write the findings to FILE as JSON when the program has ended"},
    {"fail-on-finding", NULL, NULL, offsetof(run_options_t, fail_on_finding),
     "exit with 86 if there are findings"},
    {"suppressions", "FILE", parse_path, offsetof(run_options_t, suppressions),
     "findings that are known and do not count: lines CLASS:GLOB,\n"
     "of a function, kernel or file (see rmm-run(1))"},
    {"help", NULL, NULL, offsetof(run_options_t, help),
     "print this and exit (also -h)"},
    {"version", NULL, NULL, offsetof(run_options_t, version),
     "print the version and exit (also -V)"},
};

static const tool_command_t command = {
    .usage = "rmm-run [OPTION]... -- PROGRAM [ARGUMENT]...",
    .about = "Run a program, unchanged, with the diagnosis of rmm-c switched on.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .notes =
        "What it finds is in /rmm/proc/<pid>/diag while the program runs (see rmmfs).\n"
        "Exit status: the program's; 86 with --fail-on-finding, 2 after wrong usage, "
        "125 where rmm-run\n"
        "itself fails or cannot diagnose, 126 where the program cannot be executed, "
        "127 where it is not\n"
        "found.",
    .options_come_first = true,
};

/* Another tool's library would be pushed out without a word: refuse. */
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

static bool set_environment(const char *diag)
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
    if (setenv(INJECTION_VARIABLE, library, 1) != 0 ||
        setenv(MODE_VARIABLE, diag, 1) != 0) {
        tool_error("cannot set the environment: %s", strerror(errno));
        return false;
    }
    return true;
}

/* --- running -------------------------------------------------------------------------- */

static int cannot_run(const char *program, int error)
{
    tool_error("cannot run %s: %s", program, strerror(error));
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}

/* Before the program runs, so that it does not run in vain. */
static bool open_report(const run_options_t *options, FILE **out)
{
    *out = NULL;
    if (options->report == NULL) {
        return true;
    }
    *out = fopen(options->report, "we");
    if (*out == NULL) {
        tool_error("--report: cannot write %s: %s", options->report, strerror(errno));
    }
    return *out != NULL;
}

static bool
write_report(const run_options_t *options, const run_report_t *report, FILE *out)
{
    bool written = run_report_print_json(report, out);
    int error = errno;
    bool closed = fclose(out) == 0;
    if (written && !closed) {
        error = errno;
    }
    if (!written || !closed) {
        tool_error("--report: cannot write %s: %s", options->report, strerror(error));
    }
    return written && closed;
}

/* Nothing found means something only if something was looked at. */
static bool has_looked(const run_report_t *report)
{
    bool looked = report->missing[0] == '\0' && strcmp(report->source, "active") == 0;
    if (!looked) {
        tool_error(
            "--fail-on-finding: nothing was diagnosed: %s",
            report->missing[0] != '\0' ? report->missing : report->source);
    }
    return looked;
}

/* 0: as the program ended. */
static int tell(const run_options_t *options, const run_report_t *report, FILE *out)
{
    if (out != NULL && !write_report(options, report, out)) {
        return EXIT_OWN_FAILURE;
    }
    if (options->summary) {
        (void)run_report_print(report, stderr);
    }
    if (!options->fail_on_finding) {
        return 0;
    }
    if (!has_looked(report)) {
        return EXIT_OWN_FAILURE;
    }
    return report->findings_total > 0 ? EXIT_FINDING : 0;
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

/* 0: as the program ended. */
static int report_on(
    const run_options_t *options, const char *program, const run_child_t *child,
    run_suppressions_t *suppressions, FILE *out)
{
    run_report_t report;
    if (!run_report_read(&report, program, child->pid, child->since_ns)) {
        tool_error("no memory for the report");
        return EXIT_OWN_FAILURE;
    }
    run_suppressions_apply(suppressions, &report);
    int status = tell(options, &report, out);
    if (report.missing[0] == '\0') {
        run_suppressions_print(suppressions, stderr);
    }
    run_report_free(&report);
    return status;
}

static int run_and_report(const run_options_t *options, char **argv)
{
    run_child_t child = {.since_ns = rmm__clock_ns(CLOCK_REALTIME)};
    run_suppressions_t suppressions;
    FILE *out;
    int status;
    if (!read_suppressions(options, &suppressions, &status)) {
        return status;
    }
    if (!open_report(options, &out)) {
        run_suppressions_free(&suppressions);
        return EXIT_OWN_FAILURE;
    }
    int error = run_child(argv, &child);
    if (error != 0) {
        run_suppressions_free(&suppressions);
        return cannot_run(argv[0], error);
    }
    status = report_on(options, argv[0], &child, &suppressions, out);
    run_suppressions_free(&suppressions);
    if (status != 0 && !WIFSIGNALED(child.status)) {
        return status;
    }
    run_end_like(&child);
}

int main(int argc, char **argv)
{
    run_options_t options = {.diag = "usage,bounds,driver"};
    char message[TOOL_MESSAGE_MAX];
    (void)argc;
    int operands = tool_options_parse(&command, argv, &options, message);
    if (operands < 0) {
        tool_error("%s", message);
        return TOOL_EXIT_USAGE;
    }
    if (options.help) {
        tool_options_help(&command, stdout);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_OWN_FAILURE;
    }
    if (options.version) {
        puts("rmm-run " RMM_RUN_VERSION);
        return fflush(stdout) == 0 ? EXIT_SUCCESS : EXIT_OWN_FAILURE;
    }
    if (operands == 0) {
        tool_error("which program? rmm-run -- PROGRAM [ARGUMENT]...; see --help");
        return TOOL_EXIT_USAGE;
    }
    bool reports = options.summary || options.report != NULL || options.fail_on_finding;
    if (options.suppressions != NULL && !reports) {
        tool_error("--suppressions is for --summary, --report or --fail-on-finding");
        return TOOL_EXIT_USAGE;
    }
    if (!set_environment(options.diag)) {
        return EXIT_OWN_FAILURE;
    }
    if (reports) {
        return run_and_report(&options, argv + 1);
    }
    execvp(argv[1], argv + 1);
    return cannot_run(argv[1], errno);
}
