/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses between programs, a tree, several nodes and a recording; see source.h. */
#include "top/source.h"

#include <stdio.h>
#include <string.h>

#include "common/clock.h"

/* How long a tree may take: live the keys wait meanwhile. */
#define LIVE_WAIT_NS UINT64_C(500000000)
#define ONCE_WAIT_NS UINT64_C(4000000000)

#ifdef RMM_TOP_HAS_CURL
static bool open_fleet(
    source_t *source, const node_list_t *list, char *message, size_t message_bytes)
{
    return fleet_open(&source->fleet, list->texts, list->count, message, message_bytes);
}

static void close_fleet(source_t *source)
{
    fleet_close(&source->fleet);
}

static bool take_fleet(source_t *source, node_t *node, bool is_patient)
{
    return fleet_take(
        &source->fleet, node, is_patient ? ONCE_WAIT_NS : LIVE_WAIT_NS, is_patient);
}

static const char *fleet_failure(const source_t *source)
{
    return source->fleet.failure;
}
#else
static bool open_fleet(
    source_t *source, const node_list_t *list, char *message, size_t message_bytes)
{
    (void)source;
    (void)list;
    snprintf(message, message_bytes, "--host and --from: built without libcurl");
    return false;
}

static void close_fleet(source_t *source)
{
    (void)source;
}

static bool take_fleet(source_t *source, node_t *node, bool is_patient)
{
    (void)source;
    (void)node;
    (void)is_patient;
    return false;
}

static const char *fleet_failure(const source_t *source)
{
    (void)source;
    return "";
}
#endif

static bool open_kind(
    source_t *source, const options_t *options, char *message, size_t message_bytes)
{
    if (options->replay != NULL) {
        source->kind = SOURCE_RECORDING;
        return player_open(&source->player, options->replay, message, message_bytes);
    }
    if (options->mount != NULL) {
        source->kind = SOURCE_MOUNT;
        return mount_open(&source->mount, options->mount, message, message_bytes);
    }
    if (options->nodes.count > 0) {
        source->kind = SOURCE_FLEET;
        return open_fleet(source, &options->nodes, message, message_bytes);
    }
    source->kind = SOURCE_PROGRAMS;
    return sampler_init(&source->sampler, message, message_bytes);
}

static void close_kind(source_t *source)
{
    switch (source->kind) {
    case SOURCE_PROGRAMS:
        sampler_fini(&source->sampler);
        break;
    case SOURCE_MOUNT:
        mount_close(&source->mount);
        break;
    case SOURCE_FLEET:
        close_fleet(source);
        break;
    case SOURCE_RECORDING:
        player_close(&source->player);
        break;
    }
}

bool source_open(
    source_t *source, const options_t *options, char *message, size_t message_bytes)
{
    memset(source, 0, sizeof(*source));
    if (!open_kind(source, options, message, message_bytes)) {
        return false;
    }
    if (options->record != NULL &&
        !recorder_open(&source->recorder, options->record, message, message_bytes)) {
        close_kind(source);
        return false;
    }
    return true;
}

void source_close(source_t *source)
{
    recorder_close(&source->recorder);
    close_kind(source);
}

bool source_is_over(const source_t *source)
{
    return source->kind == SOURCE_RECORDING && player_is_over(&source->player);
}

/* Once it was silent, no later call waits for it. */
static bool take_from_mount(source_t *source, node_t *node)
{
    bool was_silent = source->mount.reason[0] != '\0';
    return mount_take(
        &source->mount, node, was_silent ? LIVE_WAIT_NS / 10 : LIVE_WAIT_NS);
}

static bool take_programs(source_t *source, node_t *node)
{
    node->time_ns = clock_ns();
    return sampler_take(&source->sampler, node);
}

bool source_take(source_t *source, node_t *node)
{
    if (source->kind == SOURCE_RECORDING) {
        return player_take(&source->player, node);
    }
    if (source->kind == SOURCE_FLEET) {
        return take_fleet(source, node, false);
    }
    bool is_whole = source->kind == SOURCE_MOUNT ? take_from_mount(source, node)
                                                 : take_programs(source, node);
    if (is_whole && source_silence(source)[0] == '\0') {
        recorder_add(&source->recorder, node);
    }
    return is_whole;
}

bool source_take_one(source_t *source, node_t *node)
{
    switch (source->kind) {
    case SOURCE_RECORDING:
        return player_take_last(&source->player, node);
    case SOURCE_MOUNT:
        return mount_take(&source->mount, node, ONCE_WAIT_NS) &&
               source_silence(source)[0] == '\0';
    case SOURCE_FLEET:
        return take_fleet(source, node, true);
    case SOURCE_PROGRAMS:
        break;
    }
    return source_take(source, node);
}

const char *source_silence(const source_t *source)
{
    return source->kind == SOURCE_MOUNT ? source->mount.reason : "";
}

const char *source_failure(const source_t *source)
{
    if (source->kind == SOURCE_RECORDING) {
        return "the recording has changed, or there is no host memory";
    }
    const char *silence =
        source->kind == SOURCE_FLEET ? fleet_failure(source) : source_silence(source);
    return silence[0] != '\0' ? silence : "no host memory";
}

const sampler_t *source_sampler(const source_t *source)
{
    return source->kind == SOURCE_PROGRAMS ? &source->sampler : NULL;
}
