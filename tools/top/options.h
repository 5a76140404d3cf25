/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of rmm-top. */
#ifndef RMM_TOP_OPTIONS_H
#define RMM_TOP_OPTIONS_H

#include <stdbool.h>

#include "common/options.h"
#include "top/ui.h"

#define NODES_MAX 1024

/* NODE, NODE:PORT or URL. */
typedef struct node_list {
    const char *texts[NODES_MAX];
    uint32_t count;
} node_list_t;

typedef struct options {
    bool once, json, no_color, help, version;
    double interval_seconds;
    ui_sort_t sort;
    const char *filter;
    const char *html, *record, *replay; /* names of files; NULL: none */
    const char *mount;                  /* a directory; NULL: the segments */
    node_list_t nodes;                  /* none: this one */
} options_t;

extern const tool_command_t top_command;

void options_init(options_t *options);

/* A node that is named by itself; a tool_parse_fn of a node_list_t. */
const char *options_add_node(const char *text, void *field);

#endif /* RMM_TOP_OPTIONS_H */
