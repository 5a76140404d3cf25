/* SPDX-License-Identifier: Apache-2.0 */
#include "exporter/options.h"

#include <string.h>

#include "common/numbers.h"

static const char *parse_mount(const char *text, void *field)
{
    *(const char **)field = text;
    return text[0] == '/' && strlen(text) < 4000 ? NULL : "an absolute path";
}

/* Whether it is an address is found out when it is opened. */
static const char *add_address(const char *text, void *field)
{
    listen_list_t *list = field;
    if (list->count == LISTEN_MAX) {
        return "possible: 8 addresses at most";
    }
    list->addresses[list->count++] = text;
    return NULL;
}

static const char *parse_timeout(const char *text, void *field)
{
    double seconds;
    if (!number_parse_fraction(text, &seconds) || seconds < 0.1 || seconds > 60.0) {
        return "a number of seconds from 0.1 to 60";
    }
    *(double *)field = seconds;
    return NULL;
}

#define FIELD(name) offsetof(options_t, name)
static const tool_option_t table[] = {
    {"mount", 0, "DIR", parse_mount, FIELD(mount), "the tree of rmmfs; default /rmm"},
    {"listen", 0, "ADDRESS:PORT", add_address, FIELD(listen),
     "where to listen, such as 127.0.0.1:19400 (default),\n"
     "[::1]:19400, or :19400 for all addresses; up to 8 times"},
    {"timeout", 0, "SECONDS", parse_timeout, FIELD(timeout_seconds),
     "how long rmmfs may take to answer; default 3"},
    {"help", 'h', NULL, NULL, FIELD(help), "print this and exit"},
    {"version", 'V', NULL, NULL, FIELD(version), "print the version and exit"},
};

const tool_command_t exporter_command = {
    .usage = "rmm-exporter [OPTION]...",
    .about = "Serve the figures of a tree of rmmfs over HTTP, for Prometheus and for "
             "browsers:\n/metrics, /metrics.all, /json, / (the page of the node) and "
             "/healthz.",
    .options = table,
    .option_count = sizeof(table) / sizeof(table[0]),
    .notes =
        "Sockets of systemd (LISTEN_FDS) are used instead of the default address.\n"
        "Exit status: 0 after SIGTERM or SIGINT; 1 if it cannot listen; 2 after wrong "
        "usage.",
};

void options_init(options_t *options)
{
    memset(options, 0, sizeof(*options));
    options->mount = "/rmm";
    options->timeout_seconds = 3.0;
}
