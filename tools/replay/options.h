/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What rmm-replay was asked to do.
 */
#ifndef RMM_TOOLS_REPLAY_OPTIONS_H
#define RMM_TOOLS_REPLAY_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "common/options.h"

typedef enum replay_resource {
    REPLAY_POOL,
    REPLAY_POOL_VIRTUAL,
    REPLAY_ARENA,
    /* of no size: */
    REPLAY_ASYNC,
    REPLAY_ASYNC_MANAGED,
    REPLAY_CUDA,
    REPLAY_MANAGED,
    REPLAY_SYSTEM
} replay_resource_t;

static inline bool replay_resource_has_size(replay_resource_t resource)
{
    return resource <= REPLAY_ARENA;
}

typedef struct replay_options {
    replay_resource_t resource;
    uint64_t pool_bytes; /* 0: a pool grows from nothing, an arena takes half */
    double speed;        /* 0: as fast as it goes */
    uint64_t repeat;
    double hold_seconds;
    bool hold;
    bool verify;
    bool strict;
    bool find_capacity;
    bool json;
    bool help;
    bool version;
    const char *log_path; /* borrowed from argv */
} replay_options_t;

extern const tool_command_t replay_command;

/* As --resource takes it. */
const char *replay_resource_name(replay_resource_t resource);

/* False: one line in message. */
bool replay_options_parse(
    char **argv, replay_options_t *options, char message[TOOL_MESSAGE_MAX]);

#endif /* RMM_TOOLS_REPLAY_OPTIONS_H */
