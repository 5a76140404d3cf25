/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model that sleeps while another program has the GPU: its weights go to host memory and come
 * back at the same addresses; its cache is dropped.
 */
#include <rmm/rmm.h>
#include <stdio.h>

#define GIB (RMM_CAST(uint64_t, 1) << 30)
#define WEIGHTS ((size_t)1 << 20)
#define CACHE ((size_t)64 << 20)

static int fail(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, rmm_last_error_message());
    return 1;
}

/* What the other program does: it takes most of the GPU, and gives it back. */
static rmm_status_t other_program(uint64_t bytes)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool;
    rmm_status_t status;

    options.initial_bytes = bytes;
    options.flags = RMM_POOL_VIRTUAL;
    status = rmm_pool_resource_create(NULL, &options, &pool);
    if (status == RMM_OK) {
        rmm_resource_release(pool);
    }
    return status;
}

int main(void)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_pool_sleep_options_t sleep = RMM_POOL_SLEEP_OPTIONS_INIT;
    rmm_stats_t stats = RMM_STATS_INIT;
    rmm_resource_t *pool;
    void *weights, *cache;
    unsigned char last = 0;

    options.initial_bytes = 2 * GIB;
    options.flags = RMM_POOL_VIRTUAL;
    if (rmm_pool_resource_create(NULL, &options, &pool) ||
        rmm_resource_alloc(pool, WEIGHTS, 0, RMM_STREAM_LEGACY, &weights) ||
        rmm_resource_alloc(pool, CACHE, 0, RMM_STREAM_LEGACY, &cache) ||
        rmm_memset_async(weights, 42, WEIGHTS, RMM_STREAM_LEGACY)) {
        return fail("the model");
    }

    sleep.discarded = (const void *const *)&cache; /* its contents are not needed */
    sleep.discarded_count = 1;
    if (rmm_pool_sleep(pool, &sleep) || rmm_resource_get_stats(pool, &stats)) {
        return fail("sleep");
    }
    printf(
        "asleep: the pool holds %llu GiB, and will take %llu GiB to wake\n",
        (unsigned long long)(stats.reserved_bytes / GIB),
        (unsigned long long)(stats.asleep_bytes / GIB));
    if (other_program(2 * GIB)) {
        return fail("the other program");
    }
    if (rmm_pool_wake(pool) ||
        rmm_memcpy_async(&last, (char *)weights + WEIGHTS - 1, 1, RMM_STREAM_LEGACY) ||
        rmm_stream_synchronize(RMM_STREAM_LEGACY)) {
        return fail("wake");
    }
    printf("awake: the last byte of the weights is %d\n", last);

    rmm_resource_dealloc(pool, cache, CACHE, 0, RMM_STREAM_LEGACY);
    rmm_resource_dealloc(pool, weights, WEIGHTS, 0, RMM_STREAM_LEGACY);
    rmm_resource_release(pool);
    return 0;
}
