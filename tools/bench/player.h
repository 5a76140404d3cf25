/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays a script on a resource, on one stream.
 *
 * The loops hold nothing but the allocator's calls, since they are what the clock runs
 * around.
 *
 * Threads: one a player; players may share resource, stream and script.
 */
#ifndef RMM_TOOLS_BENCH_PLAYER_H
#define RMM_TOOLS_BENCH_PLAYER_H

#include <rmm/resource.h>

#include "bench/sample.h"
#include "bench/script.h"

typedef struct player_handle {
    void *ptr; /* NULL: not in use */
    size_t bytes;
} player_handle_t;

typedef struct player {
    const script_t *script;
    rmm_resource_t *resource;
    rmm_stream_t stream;
    player_handle_t *handles;
} player_t;

/* Makes the handles; the rest is borrowed. False: no host memory. */
bool player_init(
    player_t *player, const script_t *script, rmm_resource_t *resource,
    rmm_stream_t stream);

/* Operations begin to end - 1. The status of the first that failed. */
rmm_status_t player_play(player_t *player, size_t begin, size_t end);

/* The same until the clock shows `until_ns`, asked now and then; *reached is the first that
 * was not played. */
rmm_status_t player_play_until(
    player_t *player, size_t begin, size_t end, uint64_t until_ns, size_t *reached);

/* The same with the time of each. */
rmm_status_t
player_play_timed(player_t *player, size_t begin, size_t end, latencies_t *latencies);

/* Frees the handles in use. */
void player_clear(player_t *player);

/* Clears, and gives the handles back. */
void player_fini(player_t *player);

#endif /* RMM_TOOLS_BENCH_PLAYER_H */
