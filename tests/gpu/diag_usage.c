/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The diagnosis on a real GPU: kernels touch known blocks of a pool a known number of
 * times, then the side file must say exactly that. Run it under rmm-run:
 *
 *   rmm-run -- diag_usage
 *
 * One line "PASS what" or "FAIL what: why" for each check. Exit 0 all passed, 1 not, 77
 * where there is no GPU (and then says so).
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <rmm/rmm.h>

#include "gpu/diag_kernels.h"
#include "gpu/diagnosed.h"

#define BLOCK_BYTES 4096u

static uint64_t launches_made;

/* --- doing ------------------------------------------------------------------------- */

/* A call that must succeed, and launches kernels of ours `launches` times. */
static void did(int error, uint64_t launches, const char *what)
{
    if (error != 0) {
        printf("FAIL %s: CUDA error %d\n", what, error);
        diagnosed_leave(EXIT_FAILURE);
    }
    launches_made += launches;
}

#define LAUNCH(call) did((call), 1, #call)

/* --- looking ----------------------------------------------------------------------- */

typedef struct expected {
    const char *what;
    const void *block;
    const char *first, *last; /* kernels or functions; NULL: none */
    uint64_t launches;
} expected_t;

static bool is_user(const diag_file_t *file, uint32_t index, const char *name)
{
    if (name == NULL) {
        return index == RMM_DIAG_NO_USER;
    }
    return strstr(diag_file_user(file, index), name) != NULL;
}

static void check_block(const diag_file_t *file, const expected_t *expected)
{
    const rmm_diag_row_t *row =
        diag_file_row(file, (uint64_t)(uintptr_t)expected->block);

    if (row == NULL) {
        check(false, expected->what, "no row for %p", expected->block);
        return;
    }
    check(
        row->launches == expected->launches &&
            is_user(file, row->first_user, expected->first) &&
            is_user(file, row->last_user, expected->last) &&
            (row->first_use_ns != 0) == (expected->first != NULL),
        expected->what,
        "%" PRIu64 " launches from %s to %s; expected %" PRIu64 " from %s to %s",
        row->launches, diag_file_user(file, row->first_user),
        diag_file_user(file, row->last_user), expected->launches,
        expected->first != NULL ? expected->first : "none",
        expected->last != NULL ? expected->last : "none");
}

static void check_totals(uint32_t live)
{
    diag_file_t file;

    read_file(&file);
    check(
        strcmp(file.header->source, "active") == 0, "the source is active", "it is %s",
        file.header->source);
    check(
        file.header->launches == launches_made, "every launch was seen, once",
        "%" PRIu64 " seen, %" PRIu64 " made", file.header->launches, launches_made);
    check(
        file.header->parameter_failures == 0, "all parameters could be read",
        "%" PRIu64 " launches could not", file.header->parameter_failures);
    check(
        file.header->launches_unnamed == 0 && file.header->blocks_dropped == 0,
        "nothing was dropped", "%" PRIu64 " launches, %" PRIu64 " blocks",
        file.header->launches_unnamed, file.header->blocks_dropped);
    check(
        diag_file_live(&file) == live, "one row a live block", "%u rows, %u blocks",
        diag_file_live(&file), live);
    diag_file_close(&file);
}

static rmm_resource_t *pool;
static rmm_stream_t streams[2];

static float *take(rmm_stream_t stream)
{
    void *block = NULL;

    if (rmm_resource_alloc(pool, BLOCK_BYTES, 0, stream, &block) != RMM_OK) {
        give_up(rmm_last_error_message());
    }
    return block;
}

static void open_pool(void)
{
    rmm_resource_t *cuda = NULL;

    if (rmm_cuda_resource_create(&cuda) != RMM_OK ||
        rmm_pool_resource_create(cuda, NULL, &pool) != RMM_OK ||
        rmm_stream_create(RMM_STREAM_NON_BLOCKING, &streams[0]) != RMM_OK ||
        rmm_stream_create(RMM_STREAM_NON_BLOCKING, &streams[1]) != RMM_OK) {
        give_up(rmm_last_error_message());
    }
    rmm_resource_release(cuda);
}

static void check_pointers(void)
{
    float *plain = take(NULL), *inside = take(NULL), *twice = take(NULL);
    float *unused = take(NULL);
    diag_file_t file;

    for (int i = 0; i < 5; i++) {
        LAUNCH(diag_fill(plain, 1024, NULL));
    }
    LAUNCH(diag_scale(plain, inside + 900, NULL));
    LAUNCH(diag_scale(twice, twice + 32, NULL));
    LAUNCH(diag_fill(inside + 1023, 1, NULL));
    LAUNCH(diag_nothing(NULL));
    did(diag_synchronize(), 0, "cudaDeviceSynchronize");
    read_file(&file);
    check_block(
        &file, &(expected_t){"plain pointer", plain, "fill_kernel", "scale_kernel", 6});
    check_block(
        &file,
        &(expected_t){"pointer inside", inside, "scale_kernel", "fill_kernel", 2});
    check_block(
        &file,
        &(expected_t){"twice in one launch", twice, "scale_kernel", "scale_kernel", 1});
    check_block(&file, &(expected_t){"never used", unused, NULL, NULL, 0});
    diag_file_close(&file);
}

static void check_structs(void)
{
    float *first = take(NULL), *second = take(NULL), *last = take(NULL);
    diag_pair_t pair = {32, first, 7, second};
    diag_large_t *large = calloc(1, sizeof(*large));
    diag_file_t file;

    if (large == NULL) {
        give_up("no host memory");
    }
    LAUNCH(diag_fill(first, 1024, NULL));
    LAUNCH(diag_fill(second, 1024, NULL));
    for (int i = 0; i < 3; i++) {
        LAUNCH(diag_mix(&pair, NULL));
    }
    large->last = last;
    LAUNCH(diag_big(large, NULL));
    LAUNCH(diag_big(large, NULL));
    free(large);
    did(diag_synchronize(), 0, "cudaDeviceSynchronize");
    read_file(&file);
    check_block(
        &file,
        &(expected_t){"first of a struct", first, "fill_kernel", "mix_kernel", 4});
    check_block(
        &file,
        &(expected_t){"second of a struct", second, "fill_kernel", "mix_kernel", 4});
    check_block(
        &file,
        &(expected_t){"8 KiB of parameters", last, "big_kernel", "big_kernel", 2});
    diag_file_close(&file);
}

static void check_calls(void)
{
    float *ways = take(NULL), *own = take(NULL);
    float *typed = take(NULL), *packed = take(NULL);
    diag_file_t file;

    LAUNCH(diag_group(ways, NULL));
    LAUNCH(diag_extended(ways, NULL));
    LAUNCH(diag_packed(packed, NULL));
    LAUNCH(diag_typed((double *)(void *)typed, NULL));
    did(diag_synchronize(), 0, "cudaDeviceSynchronize");
    LAUNCH(diag_own_stream(own));
    did(diag_synchronize(), 0, "cudaDeviceSynchronize");
    read_file(&file);
    check_block(
        &file,
        &(expected_t){
            "cooperative and extended", ways, "group_kernel", "extended_kernel", 2});
    check_block(
        &file,
        &(expected_t){"packed buffer", packed, "packed_kernel", "packed_kernel", 1});
    check_block(
        &file, &(expected_t){"C++ template", typed, "typed_kernel", "typed_kernel", 1});
    check_block(
        &file, &(expected_t){
                   "per-thread default stream", own, "own_stream_kernel",
                   "own_stream_kernel", 1});
    diag_file_close(&file);
}

static void check_streams(void)
{
    float *block = take(streams[0]);
    float *other = take(streams[1]);
    diag_file_t file;

    for (int i = 0; i < 4; i++) {
        LAUNCH(diag_fill(block, 1024, streams[0]));
        LAUNCH(diag_fill(other, 1024, streams[1]));
    }
    did(diag_synchronize(), 0, "cudaDeviceSynchronize");
    LAUNCH(diag_scale(other, block, streams[1]));
    did(diag_synchronize(), 0, "cudaDeviceSynchronize");
    read_file(&file);
    check_block(
        &file, &(expected_t){"one stream", block, "fill_kernel", "scale_kernel", 5});
    check_block(
        &file,
        &(expected_t){"another stream", other, "fill_kernel", "scale_kernel", 5});
    check(
        diag_file_row(&file, (uint64_t)(uintptr_t)block)->stream_id !=
            diag_file_row(&file, (uint64_t)(uintptr_t)other)->stream_id,
        "streams are told apart", "both rows have the same one");
    diag_file_close(&file);
}

static void check_what_is_no_launch(void)
{
    float *moved = take(NULL), *refused = take(NULL), *graphed = take(NULL);
    diag_file_t file;

    did(diag_set(moved, BLOCK_BYTES, NULL), 0, "cudaMemsetAsync");
    did(diag_copy(moved, refused, BLOCK_BYTES, NULL), 0, "cudaMemcpyAsync");
    if (diag_refused(refused, NULL) == 0) {
        give_up("a launch of 4096 threads a block is refused");
    }
    /* at each replay, not the capture */
    did(diag_graph(graphed, 3, 10), 30, "a graph");
    read_file(&file);
    check_block(&file, &(expected_t){"copies and fills", moved, "Memset", "Memcpy", 0});
    check_block(&file, &(expected_t){"refused launch", refused, "Memcpy", "Memcpy", 0});
    check_block(
        &file,
        &(expected_t){"captured, replayed", graphed, "fill_kernel", "fill_kernel", 30});
    diag_file_close(&file);
}

static void check_reuse(void)
{
    float *block = take(streams[0]);
    float *again = NULL;
    diag_file_t file;

    LAUNCH(diag_fill(block, 1024, streams[0]));
    rmm_resource_dealloc(pool, block, BLOCK_BYTES, 0, streams[0]);
    read_file(&file);
    check(
        diag_file_row(&file, (uint64_t)(uintptr_t)block) == NULL,
        "a freed block has no row", "%p is still there", (void *)block);
    diag_file_close(&file);
    again = take(streams[0]);
    LAUNCH(diag_scale(again, again, streams[0]));
    did(diag_synchronize(), 0, "cudaDeviceSynchronize");
    read_file(&file);
    check_block(
        &file, &(expected_t){"taken again", again, "scale_kernel", "scale_kernel", 1});
    diag_file_close(&file);
}

int main(void)
{
    diagnosed_begin("diag_usage", diag_gpu_count());
    open_pool();
    check_pointers();
    check_structs();
    check_calls();
    check_streams();
    check_what_is_no_launch();
    check_reuse();
    check_totals(4 + 3 + 4 + 2 + 3 + 1);
    return diagnosed_end();
}
