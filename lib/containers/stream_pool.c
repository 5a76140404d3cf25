/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams handed out in turn.
 *
 * Locking: none. Only `next` changes after the creation, and it is atomic; it may wrap.
 */
#include <rmm/stream_pool.h>

#include <stdatomic.h>

#include "core/assert.h"
#include "core/host_memory.h"
#include "log/log.h"

struct rmm_stream_pool {
    _Atomic(size_t) next;
    size_t count;
    rmm_stream_t *streams;
};

static void destroy_streams(rmm_stream_pool_t *pool, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        if (rmm_stream_destroy(pool->streams[i]) != RMM_OK) {
            rmm__log_error("stream pool: %s", rmm_last_error_message());
        }
    }
}

static void free_pool(rmm_stream_pool_t *pool)
{
    rmm__free(pool->streams);
    rmm__free(pool);
}

rmm_status_t
rmm_stream_pool_create(size_t count, uint32_t flags, rmm_stream_pool_t **pool_out)
{
    rmm_stream_pool_t *pool;
    rmm_status_t status = RMM_ERR_OUT_OF_HOST_MEMORY;
    size_t made = 0;

    RMM_CHECK_ARG(count != 0, "count is 0");
    RMM_CHECK_ARG(pool_out != NULL, "pool_out is NULL");
    pool = rmm__calloc(1, sizeof(*pool));
    if (pool == NULL) {
        return status;
    }
    atomic_init(&pool->next, 0);
    pool->count = count;
    pool->streams = rmm__calloc(count, sizeof(*pool->streams));
    if (pool->streams == NULL) {
        goto err_free;
    }
    for (; made < count; made++) {
        status = rmm_stream_create(flags, &pool->streams[made]);
        if (status != RMM_OK) {
            goto err_destroy;
        }
    }
    *pool_out = pool;
    return RMM_OK;

err_destroy:
    destroy_streams(pool, made);
err_free:
    free_pool(pool);
    return status;
}

void rmm_stream_pool_destroy(rmm_stream_pool_t *pool)
{
    if (pool != NULL) {
        destroy_streams(pool, pool->count);
        free_pool(pool);
    }
}

rmm_stream_t rmm_stream_pool_get(rmm_stream_pool_t *pool)
{
    /* relaxed: the turn orders nothing else */
    size_t turn = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);

    return pool->streams[turn % pool->count];
}

rmm_stream_t rmm_stream_pool_get_at(const rmm_stream_pool_t *pool, size_t index)
{
    return pool->streams[index % pool->count];
}

size_t rmm_stream_pool_size(const rmm_stream_pool_t *pool)
{
    return pool->count;
}
