/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A limit, and a function that is called before an allocation fails. This one drops a cache, so the
 * allocation is tried again and succeeds. The next one finds no cache any more and fails.
 */
#include <rmm/rmm.h>
#include <stdio.h>
#include <stdlib.h>

#define MIB ((size_t)1 << 20)

typedef struct cache {
    rmm_resource_t *mr;
    void *block; /* NULL: dropped */
} cache_t;

static void must(rmm_status_t status)
{
    if (status != RMM_OK) {
        fprintf(stderr, "%s\n", rmm_last_error_message());
        exit(1);
    }
}

/* True: something was freed, try again. */
static bool drop_cache(size_t bytes, void *arg)
{
    cache_t *cache = arg;
    printf("no room for %zu MiB: ", bytes / MIB);
    if (cache->block == NULL) {
        printf("nothing to drop\n");
        return false;
    }
    printf("the cache is dropped\n");
    rmm_resource_dealloc(cache->mr, cache->block, 20 * MIB, 0, RMM_STREAM_DEFAULT);
    cache->block = NULL;
    return true;
}

int main(void)
{
    rmm_limiting_options_t limit = RMM_LIMITING_OPTIONS_INIT;
    rmm_failure_callback_options_t failure = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *cuda, *pool, *limited, *mr;
    cache_t cache = {NULL, NULL};
    void *block, *more;

    limit.limit_bytes = 32 * MIB;
    failure.callback = drop_cache;
    failure.arg = &cache;
    must(rmm_cuda_resource_create(&cuda));
    must(rmm_pool_resource_create(cuda, NULL, &pool));
    must(rmm_limiting_adaptor_create(pool, &limit, &limited));
    must(rmm_failure_callback_adaptor_create(limited, &failure, &mr));

    cache.mr = mr;
    must(rmm_resource_alloc(mr, 20 * MIB, 0, RMM_STREAM_DEFAULT, &cache.block));
    must(rmm_resource_alloc(mr, 30 * MIB, 0, RMM_STREAM_DEFAULT, &block));
    printf("30 MiB are allocated\n");
    if (rmm_resource_alloc(mr, 10 * MIB, 0, RMM_STREAM_DEFAULT, &more) != RMM_OK) {
        printf("10 MiB more: %s\n", rmm_last_error_message());
    }

    rmm_resource_dealloc(mr, block, 30 * MIB, 0, RMM_STREAM_DEFAULT);
    rmm_resource_release(mr);
    rmm_resource_release(limited);
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
    return 0;
}
