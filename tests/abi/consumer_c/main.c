/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A user's program in C: takes a block from a pool, writes and reads it on the GPU, and
 * says what the accounting says. Knows nothing but what is installed.
 */
#include <stdio.h>
#include <string.h>

#include <rmm/rmm.h>
#include <rmm/sim.h>

#define BLOCK_BYTES ((size_t)1 << 20)

static int failed(const char *what)
{
    fprintf(stderr, "%s: %s\n", what, rmm_last_error_message());
    return 1;
}

static int use_block(void *block, rmm_stream_t stream)
{
    unsigned char last = 0;
    if (rmm_sim_memset_async(block, 7, BLOCK_BYTES, stream) != 0 ||
        rmm_sim_memcpy_async(&last, (char *)block + BLOCK_BYTES - 1, 1, stream) != 0 ||
        rmm_stream_synchronize(stream) != RMM_OK) {
        return failed("use of the block");
    }
    return last == 7 ? 0 : failed("data of the block");
}

int main(void)
{
    rmm_resource_t *cuda = NULL, *pool = NULL;
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_stats_t stats = RMM_STATS_INIT;
    void *block = NULL;

    if (rmm_version() !=
        RMM_C_VERSION_MAJOR * 10000 + RMM_C_VERSION_MINOR * 100 + RMM_C_VERSION_PATCH) {
        return failed("headers and library differ");
    }
    options.name = "consumer";
    if (rmm_cuda_resource_create(&cuda) != RMM_OK ||
        rmm_pool_resource_create(cuda, &options, &pool) != RMM_OK) {
        return failed("create");
    }
    rmm_resource_release(cuda);
    if (strcmp(rmm_resource_type(pool), "pool") != 0 ||
        strcmp(rmm_resource_name(pool), "consumer") != 0) {
        return failed("type and name");
    }
    if (rmm_resource_alloc(pool, BLOCK_BYTES, 0, RMM_STREAM_DEFAULT, &block) !=
        RMM_OK) {
        return failed("alloc");
    }
    if (use_block(block, RMM_STREAM_DEFAULT) != 0) {
        return 1;
    }
    rmm_resource_dealloc(pool, block, BLOCK_BYTES, 0, RMM_STREAM_DEFAULT);
    if (rmm_resource_get_stats(pool, &stats) != RMM_OK) {
        return failed("stats");
    }
    printf(
        "rmm-c %s: peak %llu bytes, current %llu bytes, driver %s\n",
        rmm_version_string(), (unsigned long long)stats.peak_bytes,
        (unsigned long long)stats.current_bytes,
        rmm_sim_active() ? "simulated" : "real");
    rmm_resource_release(pool);
    return 0;
}
