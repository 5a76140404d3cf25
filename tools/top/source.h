/* SPDX-License-Identifier: Apache-2.0 */
/* Where snapshots come from: the programs that run, or a recording; and into which they go. */
#ifndef RMM_TOP_SOURCE_H
#define RMM_TOP_SOURCE_H

#include "top/options.h"
#include "top/recording.h"
#include "top/sample.h"

typedef struct source {
    bool is_recorded; /* from the player, else from the sampler */
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
/* The next one; false: source_failure(). */
bool source_take(source_t *source, node_t *node);
/* The only one that is wanted: of a recording the last. */
bool source_take_one(source_t *source, node_t *node);

/* Why none could be taken. */
const char *source_failure(const source_t *source);

/* NULL: a recording, whose programs cannot be asked for anything. */
const sampler_t *source_sampler(const source_t *source);

#endif /* RMM_TOP_SOURCE_H */
