/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-top: GPUs and the programs that use rmm-c, live, printed once, as JSON, or as a page. Reads
 * what programs publish; needs neither a GPU nor a daemon.
 */
#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "common/error.h"
#include "common/output.h"
#include "common/standard_output.h"
#include "top/once.h"
#include "top/options.h"
#include "top/screen.h"

const char *const tool_name = "rmm-top";

/* A descriptor a program; the usual limit of 1024 may be too few. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static int show(const options_t *options)
{
    static source_t source;
    char message[TOOL_MESSAGE_MAX];
    bool is_good;
    bool is_live = !options->once && !options->json && options->html == NULL;
    if (is_live && (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO))) {
        tool_error("not a terminal: use --once, --json or --html");
        return TOOL_EXIT_USAGE;
    }
    raise_descriptor_limit();
    if (!source_open(&source, options, message, sizeof(message))) {
        tool_error("%s", message);
        return EXIT_FAILURE;
    }
    if (options->json) {
        is_good = once_print_json(&source);
    } else if (options->html != NULL) {
        is_good = once_write_html(options, &source);
    } else if (options->once) {
        is_good = once_print_page(options, &source);
    } else {
        is_good = screen_run(options, &source);
    }
    source_close(&source);
    return is_good ? EXIT_SUCCESS : EXIT_FAILURE;
}

/* Operands are further nodes. False: there is none before them. */
static bool take_nodes(options_t *options, char **argv, int operands)
{
    const char *expected = NULL;
    if (operands > 0 && options->nodes.count == 0) {
        tool_error("unexpected argument \"%s\"; see --help", argv[1]);
        return false;
    }
    for (int i = 1; i <= operands && expected == NULL; i++) {
        expected = options_add_node(argv[i], &options->nodes);
    }
    if (expected != NULL) {
        tool_error("more is not %s", expected);
    }
    return expected == NULL;
}

int main(int argc, char **argv)
{
    static options_t options;
    char message[TOOL_MESSAGE_MAX];
    (void)argc;
    standard_output_begin();
    (void)setlocale(LC_CTYPE, "");
    options_init(&options);
    int operands = tool_options_parse(&top_command, argv, &options, message);
    if (operands < 0) {
        tool_error("%s", message);
        return TOOL_EXIT_USAGE;
    }
    if (options.help) {
        tool_options_help(&top_command, stdout);
        return standard_output_end(true) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (options.version) {
        puts("rmm-top " RMM_TOP_VERSION);
        return standard_output_end(true) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (!take_nodes(&options, argv, operands)) {
        return TOOL_EXIT_USAGE;
    }
    if (options.once + options.json + (options.html != NULL) > 1) {
        tool_error("--once, --json and --html exclude each other");
        return TOOL_EXIT_USAGE;
    }
    if (options.record != NULL && (options.once || options.json ||
                                   options.html != NULL || options.replay != NULL)) {
        tool_error("--record works only in the interactive mode");
        return TOOL_EXIT_USAGE;
    }
    if (options.mount != NULL && options.replay != NULL) {
        tool_error("--mount and --replay exclude each other");
        return TOOL_EXIT_USAGE;
    }
    if (options.nodes.count > 0 && (options.mount != NULL || options.replay != NULL ||
                                    options.record != NULL || options.html != NULL)) {
        tool_error("--host and --from exclude --mount, --record, --replay and --html");
        return TOOL_EXIT_USAGE;
    }
    if (output_is_same(options.html, options.replay)) {
        tool_error("--html names the recording itself");
        return TOOL_EXIT_USAGE;
    }
    return show(&options);
}
