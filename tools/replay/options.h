/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The options of rmm-replay.
 */
#ifndef RMM_TOOLS_REPLAY_OPTIONS_H
#define RMM_TOOLS_REPLAY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/options.h"

typedef struct replay_options {
    const char *resource; /* as rmm/resource_spec.h has it; borrowed from argv */
    uint64_t pool_bytes;  /* 0: a pool grows from nothing, an arena takes half */
    double speed;         /* 0: as fast as it goes */
    uint64_t repeat;
    double hold_seconds;
    bool hold;
    bool verify;
    bool strict;
    bool find_capacity;
    bool capacity_curve;
    bool advise;
    const char *csv_path; /* NULL: none; borrowed from argv */
    bool json;
    bool help;
    bool version;
    const char *log_path; /* borrowed from argv */
} replay_options_t;

extern const tool_command_t replay_command;

#define REPLAY_RESOURCE_MAX 128 /* longest --resource */

/* How many sizes say how large this resource is in all: 2 of a pool (initial and maximum),
 * 1 of an arena; 0: it has no such size, or has been given one. */
unsigned replay_resource_sizes(const char *resource);

/* False: one line in message. */
bool replay_options_parse(
    char **argv, replay_options_t *options, char message[TOOL_MESSAGE_MAX]);

#endif /* RMM_TOOLS_REPLAY_OPTIONS_H */
