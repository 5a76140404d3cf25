/* SPDX-License-Identifier: Apache-2.0 */
#include "top/options.h"

#include <string.h>

#include "common/numbers.h"

static const char *parse_interval(const char *text, void *field)
{
    double seconds;
    if (!number_parse_fraction(text, &seconds) || seconds < 0.1 || seconds > 3600.0) {
        return "a number of seconds from 0.1 to 3600";
    }
    *(double *)field = seconds;
    return NULL;
}

static const char *parse_sort(const char *text, void *field)
{
    for (int i = 0; i < UI_SORT_COUNT; i++) {
        if (strcmp(text, ui_sort_names[i]) == 0) {
            *(ui_sort_t *)field = (ui_sort_t)i;
            return NULL;
        }
    }
    return "one of current, reserved, peak, rate, pid, user, command, node";
}

static const char *parse_filter(const char *text, void *field)
{
    *(const char **)field = text;
    return strlen(text) < UI_FILTER_BYTES ? NULL : "a text of at most 63 bytes";
}

static const char *parse_path(const char *text, void *field)
{
    *(const char **)field = text;
    return text[0] != '\0' ? NULL : "the name of a file";
}

const char *options_add_node(const char *text, void *field)
{
    node_list_t *list = field;
    if (list->count == NODES_MAX) {
        return "possible: 1024 nodes at most";
    }
    list->texts[list->count++] = text;
    return NULL;
}

#define FIELD(name) offsetof(options_t, name)
static const tool_option_t table[] = {
    {"once", 0, NULL, NULL, FIELD(once), "print the first page as text and exit"},
    {"json", 0, NULL, NULL, FIELD(json), "print all figures as JSON and exit"},
    {"html", 0, "FILE", parse_path, FIELD(html),
     "write one HTML file without scripts and exit"},
    {"record", 0, "FILE", parse_path, FIELD(record),
     "record what is shown live to FILE, at most 256 MiB"},
    {"replay", 0, "FILE", parse_path, FIELD(replay),
     "show a recorded FILE; with --once, --json and --html the\n"
     "end of it"},
    {"mount", 0, "DIR", parse_path, FIELD(mount),
     "read the tree of rmmfs mounted on DIR, such as /rmm,\n"
     "instead of the programs' segments"},
    {"host", 0, "NODE", options_add_node, FIELD(nodes),
     "show this node and further ones, all named behind it or\n"
     "by --host again, by their rmm-exporters (port 19400)"},
    {"from", 0, "URL", options_add_node, FIELD(nodes),
     "the same by the whole address, such as\nhttp://node1:19400/json"},
    {"interval", 0, "SECONDS", parse_interval, FIELD(interval_seconds),
     "time between two updates; default 1"},
    {"sort", 0, "COLUMN", parse_sort, FIELD(sort),
     "current (default), reserved, peak, rate, pid, user,\ncommand or node"},
    {"filter", 0, "TEXT", parse_filter, FIELD(filter),
     "show programs whose command, user, node, device or pid\nmatches"},
    {"no-color", 0, NULL, NULL, FIELD(no_color),
     "no colours; also if NO_COLOR is set and not empty"},
    {"help", 'h', NULL, NULL, FIELD(help), "print this and exit"},
    {"version", 'V', NULL, NULL, FIELD(version), "print the version and exit"},
};

const tool_command_t top_command = {
    .usage = "rmm-top [OPTION]... [NODE]...",
    .about = "Show GPUs and the programs that use rmm-c, live. Press h for the keys.",
    .options = table,
    .option_count = sizeof(table) / sizeof(table[0]),
    .notes = "Reads the segments in $RMM_RUNTIME_DIR; if it is not set, those in the "
             "user's runtime\n"
             "directory and in /run/rmm. Exit status: 0; 1 if nothing can be read or "
             "the terminal cannot\n"
             "be used; 2 after wrong usage.",
};

void options_init(options_t *options)
{
    memset(options, 0, sizeof(*options));
    options->interval_seconds = 1.0;
    options->filter = "";
}
