/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-run: runs a program with the diagnosis library in it.
 *
 * Sets two variables and becomes the program: no process stays between the shell and it,
 * so that signals, the exit status and the terminal are the program's own. Failures of
 * its own end with the statuses that env(1) and timeout(1) use.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"
#include "common/options.h"
#include "run/inject_path.h"

#define EXIT_OWN_FAILURE 125
#define EXIT_NOT_EXECUTABLE 126
#define EXIT_NOT_FOUND 127

#define INJECTION_VARIABLE "CUDA_INJECTION64_PATH"
#define MODE_VARIABLE "RMM_DIAG"

const char *const tool_name = "rmm-run";

typedef struct run_options {
    const char *diag;
    bool help;
    bool version;
} run_options_t;

static const char *parse_diag(const char *text, void *field)
{
    const char **diag = field;
    if (strcmp(text, "usage") != 0) {
        return "a kind of diagnosis; this version has usage";
    }
    *diag = text;
    return NULL;
}

static const tool_option_t table[] = {
    {"diag", "usage", parse_diag, offsetof(run_options_t, diag),
     "what to find out: usage (default), which kernel used\n"
     "which allocation"},
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
        "Exit status: the program's; 2 after wrong usage, 125 where rmm-run itself "
        "fails, 126 where the\n"
        "program cannot be executed, 127 where it is not found.",
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

int main(int argc, char **argv)
{
    run_options_t options = {.diag = "usage"};
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
    if (!set_environment(options.diag)) {
        return EXIT_OWN_FAILURE;
    }
    execvp(argv[1], argv + 1);
    int error = errno;
    tool_error("cannot run %s: %s", argv[1], strerror(error));
    return error == ENOENT ? EXIT_NOT_FOUND : EXIT_NOT_EXECUTABLE;
}
