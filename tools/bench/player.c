/* SPDX-License-Identifier: Apache-2.0 */
/* Three loops over the same operation; only the first is what a figure comes from. */
#include "bench/player.h"

#include <stdlib.h>

#include "common/clock.h"

#define OPS_BETWEEN_LOOKS 64 /* at the clock */

bool player_init(
    player_t *player, const script_t *script, rmm_resource_t *resource,
    rmm_stream_t stream)
{
    *player = (player_t){.script = script, .resource = resource, .stream = stream};
    player->handles = calloc(script->handle_count, sizeof *player->handles);
    return player->handles != NULL;
}

static inline rmm_status_t play(player_t *player, const script_op_t *op)
{
    player_handle_t *handle = &player->handles[op->handle];
    if (op->bytes != 0) {
        handle->bytes = op->bytes;
        return rmm_resource_alloc(
            player->resource, op->bytes, 0, player->stream, &handle->ptr);
    }
    rmm_resource_dealloc(
        player->resource, handle->ptr, handle->bytes, 0, player->stream);
    handle->ptr = NULL;
    return RMM_OK;
}

rmm_status_t player_play(player_t *player, size_t begin, size_t end)
{
    const script_op_t *ops = player->script->ops;
    rmm_status_t status = RMM_OK;
    for (size_t i = begin; i < end && status == RMM_OK; i++) {
        status = play(player, &ops[i]);
    }
    return status;
}

rmm_status_t player_play_until(
    player_t *player, size_t begin, size_t end, uint64_t until_ns, size_t *reached)
{
    rmm_status_t status = RMM_OK;
    bool in_time = true; /* some are played in any case, or a busy machine plays none */
    while (begin < end && status == RMM_OK && in_time) {
        size_t next = end - begin > OPS_BETWEEN_LOOKS ? begin + OPS_BETWEEN_LOOKS : end;
        status = player_play(player, begin, next);
        begin = next;
        in_time = clock_ns() < until_ns;
    }
    *reached = begin;
    return status;
}

rmm_status_t
player_play_timed(player_t *player, size_t begin, size_t end, latencies_t *latencies)
{
    const script_op_t *ops = player->script->ops;
    rmm_status_t status = RMM_OK;
    uint64_t before = clock_ns();
    for (size_t i = begin; i < end && status == RMM_OK; i++) {
        status = play(player, &ops[i]);
        uint64_t after = clock_ns();
        latencies_add(latencies, after - before);
        before = after;
    }
    return status;
}

void player_clear(player_t *player)
{
    for (size_t i = 0; i < player->script->handle_count; i++) {
        player_handle_t *handle = &player->handles[i];
        if (handle->ptr != NULL) {
            rmm_resource_dealloc(
                player->resource, handle->ptr, handle->bytes, 0, player->stream);
            handle->ptr = NULL;
        }
    }
}

void player_fini(player_t *player)
{
    if (player->handles != NULL) {
        player_clear(player);
    }
    free(player->handles);
    player->handles = NULL;
}
