/* SPDX-License-Identifier: Apache-2.0 */
/* Where snapshots come from: the programs that run, the tree of rmmfs, exporters of several
 * nodes, or a recording; and into which they go. */
#ifndef RMM_TOP_SOURCE_H
#define RMM_TOP_SOURCE_H

#include "node/sampler.h"
#ifdef RMM_TOP_HAS_CURL
#include "top/fleet.h"
#endif
#include "top/mount.h"
#include "top/options.h"
#include "top/recording.h"

typedef enum source_kind {
    SOURCE_PROGRAMS,
    SOURCE_MOUNT,
    SOURCE_FLEET,
    SOURCE_RECORDING
} source_kind_t;

typedef struct source {
    source_kind_t kind;
    mount_t mount;
#ifdef RMM_TOP_HAS_CURL
    fleet_t fleet;
#endif
    sampler_t sampler;
    player_t player;
    recorder_t recorder;
} source_t;

/* False with one line in message. */
bool source_open(
    source_t *source, const options_t *options, char *message, size_t message_bytes);
void source_close(source_t *source);

/* True: there will be no other snapshot than the last. */
bool source_is_over(const source_t *source);
/* The next one, or with source_silence() the last one as it was; false: source_failure(). */
bool source_take(source_t *source, node_t *node);
/* The only one that is wanted: of a recording the last. */
bool source_take_one(source_t *source, node_t *node);

/* Why the tree gave no snapshot to source_take(); "": it gave one. */
const char *source_silence(const source_t *source);

/* Why none could be taken. */
const char *source_failure(const source_t *source);

/* NULL: a tree or a recording, whose programs take no requests. */
const sampler_t *source_sampler(const source_t *source);

#endif /* RMM_TOP_SOURCE_H */
