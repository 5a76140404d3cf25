/* SPDX-License-Identifier: Apache-2.0 */
/* The command line of rmm-exporter. */
#ifndef RMM_EXPORTER_OPTIONS_H
#define RMM_EXPORTER_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>

#include "common/options.h"
#include "exporter/listen.h"

typedef struct listen_list {
    const char *addresses[LISTEN_MAX];
    size_t count;
} listen_list_t;

typedef struct options {
    const char *mount;
    listen_list_t listen;
    double timeout_seconds;
    bool help, version;
} options_t;

extern const tool_command_t exporter_command;

/* The defaults; no address: the one of LISTEN_DEFAULT, unless sockets are inherited. */
void options_init(options_t *options);

#endif /* RMM_EXPORTER_OPTIONS_H */
