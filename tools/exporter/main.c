/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-exporter: the figures of a tree of rmmfs over HTTP. Reads the files of the tree as any user;
 * needs neither a GPU nor the library. See rmm-exporter(8).
 */
#include <stdio.h>
#include <stdlib.h>

#include "common/error.h"
#include "common/standard_output.h"
#include "exporter/options.h"
#include "exporter/server.h"

const char *const tool_name = "rmm-exporter";

static bool open_sockets(options_t *options, listen_sockets_t *sockets)
{
    const char *wrong = listen_inherit(sockets);
    if (wrong != NULL) {
        tool_error("the sockets in LISTEN_FDS cannot be used: %s", wrong);
        return false;
    }
    if (sockets->count == 0 && options->listen.count == 0) {
        options->listen.addresses[options->listen.count++] = LISTEN_DEFAULT;
    }
    if (sockets->count + options->listen.count > LISTEN_MAX) {
        tool_error("more than 8 addresses with those in LISTEN_FDS");
        return false;
    }
    for (size_t i = 0; i < options->listen.count; i++) {
        const char *address = options->listen.addresses[i];
        wrong = listen_open(sockets, address);
        if (wrong != NULL) {
            tool_error("cannot listen on %s: %s", tool_shown(address), wrong);
            return false;
        }
    }
    return true;
}

int main(int argc, char **argv)
{
    options_t options;
    listen_sockets_t sockets = {.count = 0};
    char message[TOOL_MESSAGE_MAX];
    (void)argc;
    standard_output_begin();
    options_init(&options);
    int operands = tool_options_parse(&exporter_command, argv, &options, message);
    if (operands < 0) {
        tool_error("%s", message);
        return TOOL_EXIT_USAGE;
    }
    if (options.help) {
        tool_options_help(&exporter_command, stdout);
        return standard_output_end(true) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (options.version) {
        puts("rmm-exporter " RMM_EXPORTER_VERSION);
        return standard_output_end(true) ? EXIT_SUCCESS : EXIT_FAILURE;
    }
    if (operands > 0) {
        tool_error("unexpected argument \"%s\"; see --help", argv[1]);
        return TOOL_EXIT_USAGE;
    }
    if (!open_sockets(&options, &sockets)) {
        return EXIT_FAILURE;
    }
    return server_run(&sockets, options.mount, options.timeout_seconds) ? EXIT_SUCCESS
                                                                        : EXIT_FAILURE;
}
