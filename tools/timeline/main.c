/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-timeline: shows a program's memory over time, from its allocation log, as a page and as a
 * trace. rmm-run makes the same of a program while it runs, with kernels.
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/error.h"
#include "common/options.h"
#include "common/output.h"
#include "common/standard_output.h"
#include "timeline/log_history.h"
#include "timeline/pictures.h"

const char *const tool_name = "rmm-timeline";

typedef struct options {
    const char *timeline; /* NULL: not wanted */
    const char *trace;    /* the same */
    bool strict;
    bool help;
    bool version;
} options_t;

static const char *parse_path(const char *text, void *field)
{
    const char **path = field;
    *path = text;
    return *text != '\0' ? NULL : "the name of a file";
}

static const tool_option_t table[] = {
    {"timeline", 0, "FILE", parse_path, offsetof(options_t, timeline),
     "write an HTML page to FILE: memory over time, and the\n"
     "blocks that made up the peak"},
    {"trace", 0, "FILE", parse_path, offsetof(options_t, trace),
     "write the same events to FILE as JSON for Perfetto"},
    {"strict", 0, NULL, NULL, offsetof(options_t, strict),
     "stop at the first row that cannot be read"},
    {"help", 'h', NULL, NULL, offsetof(options_t, help), "print this and exit"},
    {"version", 'V', NULL, NULL, offsetof(options_t, version),
     "print the version and exit"},
};

static const tool_command_t command = {
    .usage = "rmm-timeline [OPTION]... LOG",
    .about = "Show an allocation log (CSV), or PyTorch's memory snapshot as JSON, over "
             "time. "
             "Both may\nbe compressed with gzip; - is standard input.",
    .options = table,
    .option_count = sizeof table / sizeof *table,
    .notes = "Give --timeline, --trace or both. Exit status: 0; 1 if a file cannot be "
             "read or\nwritten; 2 after wrong usage.",
};

static int show(const options_t *options, const char *log_path)
{
    history_t history;
    pictures_t pictures;
    if (!pictures_open(&pictures, options->timeline, options->trace)) {
        return EXIT_FAILURE;
    }
    history_init(&history);
    bool good = log_history_read(&history, log_path, options->strict);
    if (good) {
        good = pictures_write(&pictures, &history);
    } else {
        pictures_discard(&pictures);
    }
    history_fini(&history);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int main(int argc, char **argv)
{
    options_t options = {.timeline = NULL};
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
        return standard_output_end(true) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (options.version) {
        puts("rmm-timeline " RMM_TIMELINE_VERSION);
        return standard_output_end(true) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (operands != 1) {
        tool_error(
            "%s; see --help",
            operands == 0 ? "which log? Name one file" : "more than one log is named");
        return TOOL_EXIT_USAGE;
    }
    if (options.timeline == NULL && options.trace == NULL) {
        tool_error("nothing to write: give --timeline FILE or --trace FILE");
        return TOOL_EXIT_USAGE;
    }
    if (output_is_same(options.timeline, argv[1]) ||
        output_is_same(options.trace, argv[1]) ||
        output_is_same(options.timeline, options.trace)) {
        tool_error("the log, --timeline and --trace must be different files");
        return TOOL_EXIT_USAGE;
    }
    return show(&options, argv[1]);
}
