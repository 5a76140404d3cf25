/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of rmm-top. */
#ifndef RMM_TOP_OPTIONS_H
#define RMM_TOP_OPTIONS_H

#include <stdbool.h>

#include "common/options.h"
#include "top/ui.h"

typedef struct options {
    bool once, json, no_color, help, version;
    double interval_seconds;
    ui_sort_t sort;
    const char *filter;
    const char *html, *record, *replay; /* names of files; NULL: none */
    const char *mount;                  /* a directory; NULL: the segments */
} options_t;

extern const tool_command_t top_command;

void options_init(options_t *options);

#endif /* RMM_TOP_OPTIONS_H */
