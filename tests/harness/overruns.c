/* SPDX-License-Identifier: Apache-2.0 */
/* See overruns.h. */
#include "harness/overruns.h"

#include <stdio.h>
#include <string.h>

#include <rmm/rmm.h>

enum { PAST = false, FREED = true };

/* 1000 bytes leave padding behind them; a block of 1024 ends where the next one would begin. */
const overrun_t overruns[] = {
    {"pool_write_1_past", "pool:8MiB", 1000, 1000, 1, true, PAST},
    {"pool_read_1_past", "pool:8MiB", 1000, 1000, 1, false, PAST},
    {"pool_write_4_past", "pool:8MiB", 1000, 1000, 4, true, PAST},
    {"pool_read_4_past", "pool:8MiB", 1000, 1000, 4, false, PAST},
    {"pool_write_over_the_end", "pool:8MiB", 1002, 1000, 4, true, PAST},
    {"pool_write_at_the_neighbour", "pool:8MiB", 1024, 1024, 1, true, PAST},
    {"pool_read_at_the_neighbour", "pool:8MiB", 1024, 1024, 4, false, PAST},
    {"pool_write_200_past", "pool:8MiB", 1024, 1224, 4, true, PAST},
    {"pool_write_before", "pool:8MiB", 1000, -1, 1, true, PAST},
    {"pool_read_before", "pool:8MiB", 1024, -4, 4, false, PAST},
    {"pool_write_after_free", "pool:8MiB", 1000, 0, 4, true, FREED},
    {"pool_read_after_free", "pool:8MiB", 1000, 996, 4, false, FREED},
    {"pool_byte_write_1_past", "pool:8MiB", 1, 1, 1, true, PAST},
    {"pool_huge_read_1_past", "pool:64MiB", 16777216, 16777216, 1, false, PAST},
    {"arena_write_1_past", "arena:64MiB", 1000, 1000, 1, true, PAST},
    {"arena_read_at_the_neighbour", "arena:64MiB", 1024, 1024, 4, false, PAST},
    {"arena_write_before", "arena:64MiB", 1024, -4, 4, true, PAST},
    {"arena_read_after_free", "arena:64MiB", 1000, 0, 1, false, FREED},
    {"fixed_size_write_1_past", "fixed_size:1KiB", 1000, 1000, 1, true, PAST},
    {"fixed_size_write_at_the_neighbour", "fixed_size:1KiB", 1024, 1024, 4, true, PAST},
    {"fixed_size_read_before", "fixed_size:1KiB", 1024, -1, 1, false, PAST},
    {"fixed_size_write_after_free", "fixed_size:1KiB", 1024, 512, 4, true, FREED},
    {"binning_write_1_past", "binning:8MiB", 1000, 1000, 1, true, PAST},
    {"binning_read_4_past_a_large_block", "binning:8MiB", 1048576, 1048576, 4, false,
     PAST},
    {"binning_write_after_free", "binning:8MiB", 1000, 0, 1, true, FREED},
    {"managed_write_at_the_neighbour", "pool_managed:8MiB", 1024, 1024, 1, true, PAST},
    {"managed_read_after_free", "pool_managed:8MiB", 1000, 0, 4, false, FREED},
    {"virtual_write_1_past", "pool_virtual:8MiB", 1000, 1000, 1, true, PAST},
    {"virtual_read_after_free", "pool_virtual:8MiB", 1000, 0, 1, false, FREED},
    {"adaptors_write_1_past", "statistics+tracking+pool:8MiB", 1000, 1000, 1, true,
     PAST},
    {"aligned_read_at_the_neighbour", "aligned:4KiB+pool:8MiB", 4096, 4096, 4, false,
     PAST},
    {"pool_over_arena_write_1_past", "pool over arena", 1000, 1000, 1, true, PAST},
    {"pool_over_arena_read_after_free", "pool over arena", 1000, 0, 4, false, FREED},
    {"fixed_size_over_pool_write_4_past", "fixed_size over pool", 1024, 1024, 4, true,
     PAST},
};
const size_t overruns_count = sizeof(overruns) / sizeof(overruns[0]);

overrun_t overruns_twin(const overrun_t *overrun)
{
    overrun_t twin = *overrun;
    size_t last = (overrun->bytes - overrun->width) / overrun->width * overrun->width;

    twin.offset = overrun->offset > 0 && !overrun->after_free ? (long)last : 0;
    twin.after_free = false;
    return twin;
}

static rmm_status_t
make_over(rmm_resource_t *upstream, bool is_fixed_size, rmm_resource_t **out)
{
    rmm_fixed_size_options_t fixed_size = RMM_FIXED_SIZE_OPTIONS_INIT;
    rmm_pool_options_t pool = RMM_POOL_OPTIONS_INIT;
    rmm_status_t status;

    fixed_size.block_bytes = 1024;
    pool.initial_bytes = 1024 * 1024;
    status = is_fixed_size ? rmm_fixed_size_resource_create(upstream, &fixed_size, out)
                           : rmm_pool_resource_create(upstream, &pool, out);
    rmm_resource_release(upstream);
    return status;
}

static rmm_status_t make(const char *resource, rmm_resource_t **out)
{
    bool is_fixed_size = strcmp(resource, "fixed_size over pool") == 0;
    bool is_nested = is_fixed_size || strcmp(resource, "pool over arena") == 0;
    const char *spec = is_fixed_size ? "pool:8MiB"
                       : is_nested   ? "arena:64MiB"
                                     : resource;
    rmm_status_t status = rmm_resource_create_from_spec(spec, out);

    return status == RMM_OK && is_nested ? make_over(*out, is_fixed_size, out) : status;
}

/* The block in the middle is freed before or after the access; true if all could be made. */
static bool touch_one(
    rmm_resource_t *mr, const overrun_t *overrun, overruns_touch_fn touch,
    void *context)
{
    void *blocks[3] = {NULL, NULL, NULL};
    bool is_good = true;

    for (int i = 0; i < 3; i++) {
        is_good = is_good &&
                  rmm_resource_alloc(mr, overrun->bytes, 0, NULL, &blocks[i]) == RMM_OK;
    }
    if (is_good && overrun->after_free) {
        rmm_resource_dealloc(mr, blocks[1], overrun->bytes, 0, NULL);
    }
    if (is_good) {
        touch(context, overrun, (char *)blocks[1] + overrun->offset);
    }
    for (int i = 0; i < 3; i++) {
        if (blocks[i] != NULL && !(i == 1 && overrun->after_free)) {
            rmm_resource_dealloc(mr, blocks[i], overrun->bytes, 0, NULL);
        }
    }
    return is_good;
}

bool overruns_run(const overrun_t *overrun, overruns_touch_fn touch, void *context)
{
    rmm_resource_t *mr = NULL;
    bool is_good = make(overrun->resource, &mr) == RMM_OK;

    is_good = is_good && touch_one(mr, overrun, touch, context);
    if (!is_good) {
        fprintf(stderr, "%s: %s\n", overrun->name, rmm_last_error_message());
    }
    rmm_resource_release(mr);
    return is_good;
}
