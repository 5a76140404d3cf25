/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The arena resource's contract on one stream at a time: RMM's own cases for its arena,
 * sizes and alignment, what is refused, figures, and a model. Streams, threads and
 * captures: test_arena_order.c; what it says when it is full: test_arena_report.c.
 */
#include "sim/resources/arena_harness.h"

#include <pthread.h>

#include "core/host_memory.h"
#include "driver/sim/control.h"

#define PIB ((size_t)1 << 50)

/* --- create ------------------------------------------------------------------------- */

static rmm_status_t create_with(uint64_t arena_bytes, rmm_resource_t **out)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_status_t status;

    options.arena_bytes = arena_bytes;
    status = rmm_arena_resource_create(cuda, &options, out);
    rmm_resource_release(cuda);
    return status;
}

ARENA_CASE(refuses_a_size_smaller_than_a_superblock)
{
    rmm_resource_t *arena = NULL;

    assert_int_equal(create_with(256, &arena), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(create_with(MIB - 1, &arena), RMM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(rmm_last_error_message(), "1048576"));
    assert_null(arena);
    assert_ok(create_with(MIB, &arena));
    rmm_resource_release(arena);
}

ARENA_CASE(refuses_sizes_that_cannot_be)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *arena = NULL;
    rmm_resource_t *host;

    assert_int_equal(create_with(UINT64_MAX, &arena), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(create_with(PIB, &arena), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(create_with((uint64_t)1 << 39, &arena), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(
        rmm_arena_resource_create(NULL, NULL, &arena), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_arena_resource_create(cuda, NULL, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_ok(rmm_host_resource_create(&host));
    assert_int_equal(
        rmm_arena_resource_create(host, NULL, &arena), RMM_ERR_UNSUPPORTED);
    assert_null(arena);
    rmm_resource_release(host);
    rmm_resource_release(cuda);
}

ARENA_CASE(takes_half_of_free_memory_by_default)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *arena;
    uint64_t free_bytes;
    uint64_t total;

    assert_cuda(sim_driver()->memory_info(&free_bytes, &total));
    assert_ok(rmm_arena_resource_create(cuda, NULL, &arena));
    assert_int_equal(stats_of(arena).reserved_bytes, free_bytes / 2 / 256 * 256);
    assert_string_equal(rmm_resource_type(arena), "arena");
    assert_string_equal(rmm_resource_name(arena), "arena");
    assert_ptr_equal(rmm_resource_upstream(arena), cuda);
    rmm_resource_release(arena);
    rmm_resource_release(cuda);
}

ARENA_CASE(rounds_its_size_down_to_256)
{
    rmm_resource_t *arena = make_arena(MIB + 1000);

    assert_int_equal(stats_of(arena).reserved_bytes, MIB + 768);
    assert_true(has_room(arena, MIB + 768, NULL));
    rmm_resource_release(arena);
}

ARENA_CASE(takes_one_block_from_upstream_and_never_another)
{
    rmm_resource_t *arena = make_arena(8 * MIB);
    rmm_resource_t *cuda = rmm_resource_upstream(arena);

    assert_int_equal(stats_of(cuda).total_count, 1);
    assert_int_equal(stats_of(cuda).current_bytes, 8 * MIB);
    assert_false(has_room(arena, 9 * MIB, NULL));
    give(arena, take(arena, 8 * MIB, NULL), 8 * MIB, NULL);
    for (int i = 0; i < 100; i++) {
        give(arena, take(arena, 100 * KIB, NULL), 100 * KIB, NULL);
    }
    assert_int_equal(stats_of(cuda).total_count, 1);
    assert_int_equal(stats_of(arena).reserved_bytes, 8 * MIB);
    assert_int_equal(rmm_resource_trim(arena, 0), RMM_ERR_UNSUPPORTED);
    assert_int_equal(stats_of(arena).reserved_bytes, 8 * MIB);
    rmm_resource_release(arena);
}

/* --- RMM's cases -------------------------------------------------------------------- */

ARENA_CASE(allocates_ninety_percent_of_free_memory)
{
    rmm_resource_t *arena;
    uint64_t free_bytes;
    uint64_t total;

    assert_cuda(sim_driver()->memory_info(&free_bytes, &total));
    arena = make_arena(free_bytes / 10 * 9);
    assert_true(has_room(arena, free_bytes / 10 * 9 / 256 * 256, NULL));
    rmm_resource_release(arena);
}

ARENA_CASE(serves_small_medium_and_large)
{
    rmm_resource_t *arena = make_arena(0);
    size_t third = stats_of(arena).reserved_bytes / 3;
    void *small = take(arena, 256, NULL);
    void *medium = take(arena, 64 * MIB, NULL);
    void *large = take(arena, third, NULL);

    give(arena, small, 256, NULL);
    give(arena, medium, 64 * MIB, NULL);
    give(arena, large, third, NULL);
    assert_int_equal(stats_of(arena).current_bytes, 0);
    rmm_resource_release(arena);
}

/* Global arena: Acquire. */
ARENA_CASE(refills_four_times_of_four_superblocks)
{
    rmm_resource_t *arena = make_arena(4 * MIB);
    void *blocks[4];

    for (int i = 0; i < 4; i++) {
        blocks[i] = take(arena, MIB, NULL);
    }
    assert_false(has_room(arena, MIB, NULL));
    assert_false(has_room(arena, 1, NULL));
    for (int i = 0; i < 4; i++) {
        give(arena, blocks[i], MIB, NULL);
    }
    rmm_resource_release(arena);
}

/* Global arena: ReleaseMergeNext, ReleaseMergePrevious, ReleaseMergePreviousAndNext,
 * ReleaseMultiple, and the same of an arena's own blocks, in every order of freeing. */
ARENA_CASE(merges_what_is_freed_in_every_order)
{
    static const int orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                     {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const size_t sizes[2] = {2 * MIB, 256 * KIB};

    for (int size = 0; size < 2; size++) {
        for (int order = 0; order < 6; order++) {
            rmm_resource_t *arena = make_arena(size == 0 ? 6 * MIB : MIB);
            size_t whole = size == 0 ? 6 * MIB : MIB;
            void *blocks[3];

            for (int i = 0; i < 3; i++) {
                blocks[i] = take(arena, sizes[size], NULL);
            }
            for (int i = 0; i < 3; i++) {
                give(arena, blocks[orders[order][i]], sizes[size], NULL);
            }
            assert_true(has_room(arena, whole, NULL));
            assert_sound(arena);
            rmm_resource_release(arena);
        }
    }
}

/* Global arena and arena: Allocate, Deallocate; Superblock: FirstFit reuse. */
ARENA_CASE(gives_the_same_address_again_on_the_same_stream)
{
    rmm_resource_t *arena = make_arena(8 * MIB);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    static const size_t sizes[] = {1, 5000, MIB, 2 * MIB, 7 * MIB};

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        void *first = take(arena, sizes[i], stream);

        give(arena, first, sizes[i], stream);
        assert_ptr_equal(take(arena, sizes[i], stream), first);
        give(arena, first, sizes[i], stream);
    }
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(arena);
}

/* Global arena: AllocateExtraLarge. */
ARENA_CASE(refuses_a_pebibyte_twice)
{
    rmm_resource_t *arena = make_arena(MIB);

    assert_false(has_room(arena, PIB, NULL));
    assert_false(has_room(arena, PIB, NULL));
    assert_int_equal(stats_of(arena).oom_count, 2);
    assert_true(has_room(arena, MIB, NULL));
    rmm_resource_release(arena);
}

/* Global arena: DeallocateAlignUp. */
ARENA_CASE(frees_sizes_that_were_rounded_up)
{
    static const size_t sizes[] = {1, 255, 257, MIB - 1, MIB + 1, 3 * MIB - 255};
    rmm_resource_t *arena = make_arena(16 * MIB);
    void *blocks[6];

    for (size_t i = 0; i < 6; i++) {
        blocks[i] = take(arena, sizes[i], NULL);
        assert_int_equal((uintptr_t)blocks[i] % 256, 0);
    }
    assert_int_equal(padding_of(arena), 255 + 1 + 255 + 1 + 255 + 255);
    for (size_t i = 0; i < 6; i++) {
        give(arena, blocks[i], sizes[i], NULL);
    }
    assert_int_equal(padding_of(arena), 0);
    assert_int_equal(stats_of(arena).invalid_free_count, 0);
    assert_true(has_room(arena, 16 * MIB, NULL));
    rmm_resource_release(arena);
}

/* Global arena: DeallocateFromOtherArena. */
ARENA_CASE(frees_on_another_stream_than_it_allocated_on)
{
    rmm_resource_t *arena = make_arena(4 * MIB);
    rmm_stream_t one = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t other = make_stream(RMM_STREAM_NON_BLOCKING);
    void *small = take(arena, 300, one);
    void *large = take(arena, 2 * MIB, one);

    give(arena, small, 300, other);
    give(arena, large, 2 * MIB, other);
    assert_int_equal(stats_of(arena).current_bytes, 0);
    assert_int_equal(stats_of(arena).invalid_free_count, 0);
    assert_true(has_room(arena, 4 * MIB, one));
    assert_cuda(sim_driver()->stream_destroy(one));
    assert_cuda(sim_driver()->stream_destroy(other));
    rmm_resource_release(arena);
}

typedef struct thread_case {
    rmm_resource_t *arena;
    rmm_stream_t stream;
} thread_case_t;

static void *fill_a_share(void *argument)
{
    const thread_case_t *self = argument;
    void *blocks[64];

    for (int i = 0; i < 64; i++) {
        blocks[i] = take(self->arena, 32 * KIB, self->stream);
    }
    for (int i = 0; i < 64; i++) {
        give(self->arena, blocks[i], 32 * KIB, self->stream);
    }
    return NULL;
}

/* Arena and resource: Defragment. Four threads on four streams, then all in one piece. */
ARENA_CASE(gives_everything_in_one_piece_after_four_threads)
{
    rmm_resource_t *arena = make_arena(16 * MIB);
    thread_case_t cases[4];
    pthread_t threads[4];

    for (int i = 0; i < 4; i++) {
        cases[i] = (thread_case_t){arena, make_stream(RMM_STREAM_NON_BLOCKING)};
        assert_int_equal(pthread_create(&threads[i], NULL, fill_a_share, &cases[i]), 0);
    }
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    give(arena, take(arena, 16 * MIB, NULL), 16 * MIB, NULL);
    assert_sound(arena);
    for (int i = 0; i < 4; i++) {
        assert_cuda(sim_driver()->stream_destroy(cases[i].stream));
    }
    rmm_resource_release(arena);
}

/* --- beyond RMM's ------------------------------------------------------------------- */

/* A superblock with one small block left in it: all around it is for large requests. */
ARENA_CASE(gives_back_superblocks_that_are_partly_used)
{
    rmm_resource_t *arena = make_arena(4 * MIB);
    void *blocks[64];
    void *large;

    for (int i = 0; i < 64; i++) {
        blocks[i] = take(arena, 64 * KIB, NULL);
    }
    for (int i = 1; i < 63; i++) {
        give(arena, blocks[i], 64 * KIB, NULL);
    }
    large = take(arena, 62 * 64 * KIB, NULL);
    assert_sound(arena);
    give(arena, blocks[0], 64 * KIB, NULL);
    give(arena, blocks[63], 64 * KIB, NULL);
    give(arena, large, 62 * 64 * KIB, NULL);
    assert_true(has_room(arena, 4 * MIB, NULL));
    rmm_resource_release(arena);
}

/* The whole resource is one superblock, and it is another stream's. */
ARENA_CASE(serves_a_stream_from_another_ones_superblock)
{
    rmm_resource_t *arena = make_arena(MIB);
    rmm_stream_t streams[3];
    void *blocks[3];

    for (int i = 0; i < 3; i++) {
        streams[i] = make_stream(RMM_STREAM_NON_BLOCKING);
        blocks[i] = take(arena, 1000, streams[i]);
    }
    for (int i = 0; i < 3; i++) {
        give(arena, blocks[i], 1000, streams[i]);
        assert_cuda(sim_driver()->stream_destroy(streams[i]));
    }
    assert_true(has_room(arena, MIB, NULL));
    rmm_resource_release(arena);
}

enum { SUPERBLOCKS = 512 };

/* Two streams have every second superblock each, full of blocks; when these are free, all of
 * it makes one block. */
ARENA_CASE(gives_all_back_however_many_superblocks_are_out)
{
    enum { IN_EACH = MIB / (64 * KIB) };
    static void *blocks[SUPERBLOCKS * IN_EACH];
    rmm_resource_t *arena = make_arena(SUPERBLOCKS * MIB);
    rmm_stream_t streams[2] = {
        make_stream(RMM_STREAM_NON_BLOCKING), make_stream(RMM_STREAM_NON_BLOCKING)};

    for (int i = 0; i < SUPERBLOCKS * IN_EACH; i++) {
        blocks[i] = take(arena, 64 * KIB, streams[i / IN_EACH % 2]);
    }
    for (int i = 0; i < SUPERBLOCKS * IN_EACH; i++) {
        give(arena, blocks[i], 64 * KIB, streams[i / IN_EACH % 2]);
    }
    assert_true(has_room(arena, SUPERBLOCKS * MIB, NULL));
    for (int i = 0; i < 2; i++) {
        assert_cuda(sim_driver()->stream_destroy(streams[i]));
    }
    rmm_resource_release(arena);
}

enum { FILLED_MOST = 128 };

/* Half of the arena, as a superblock full of small blocks. */
static void
fill_superblock(rmm_resource_t *arena, void **blocks, size_t bytes, rmm_stream_t stream)
{
    for (size_t i = 0; i < MIB / bytes; i++) {
        blocks[i] = take(arena, bytes, stream);
    }
}

static void free_every_second(
    rmm_resource_t *arena, void **blocks, size_t bytes, rmm_stream_t stream)
{
    for (size_t i = 0; i < MIB / bytes; i += 2) {
        give(arena, blocks[i], bytes, stream);
        blocks[i] = NULL;
    }
}

/* The other half is freed with work queued. The shard gets a part of it, or not, for
 * want of host memory; then another one asks. */
static bool
refill_behind_work(uint64_t seed, size_t bytes, bool frees, uint64_t failing)
{
    rmm_resource_t *arena = make_arena(2 * MIB);
    rmm_stream_t giver = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t taker = make_stream(RMM_STREAM_NON_BLOCKING);
    void *blocks[FILLED_MOST] = {NULL};
    void *large = take(arena, MIB, giver);
    void *own = NULL;
    void *other;
    uint64_t mixups = 0;
    bool struck;

    rmm__sim_reseed(seed);
    fill_superblock(arena, blocks, bytes, giver);
    if (frees) {
        free_every_second(arena, blocks, bytes, giver);
    }
    for (uint64_t i = 0; i < 5; i++) {
        launch_fill(large, MIB, i, giver);
    }
    give(arena, large, MIB, giver);
    rmm__host_memory_fail(failing);
    if (rmm_resource_alloc(arena, 2 * bytes, 0, giver, &own) != RMM_OK) {
        own = NULL;
    }
    struck = rmm__host_memory_fail_struck();
    rmm__host_memory_fail(0);
    other = take(arena, 2 * bytes, taker);
    launch_fill(other, 2 * bytes, 9, taker);
    launch_check(other, 2 * bytes, 9, &mixups, taker);
    give(arena, other, 2 * bytes, taker);
    give(arena, own, own != NULL ? 2 * bytes : 0, giver);
    for (size_t i = 0; i < MIB / bytes; i++) {
        give(arena, blocks[i], blocks[i] != NULL ? bytes : 0, giver);
    }
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(mixups, 0);
    assert_cuda(sim_driver()->stream_destroy(giver));
    assert_cuda(sim_driver()->stream_destroy(taker));
    rmm_resource_release(arena);
    return struck;
}

/* An event covers the frees from before. */
ARENA_CASE(gives_nobody_else_what_a_stream_freed_with_work_queued)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        (void)refill_behind_work(seed, MIB / FILLED_MOST, true, 0);
    }
}

/* With so many blocks that there is room for all of them, but not for what is in superblocks. */
ARENA_CASE(refills_with_no_busy_memory_after_a_refill_lacked_host_memory)
{
    size_t step = getenv("RMM_TEST_QUICK") != NULL ? 7 : 1;

    for (size_t count = 32; count < FILLED_MOST; count += step) {
        size_t bytes = MIB / count / 256 * 256;
        bool struck = true;

        for (uint64_t nth = 1; struck; nth++) {
            struck = false;
            for (uint64_t seed = 1; seed <= 8; seed++) {
                struck |= refill_behind_work(seed, bytes, false, nth);
            }
            assert_true(nth < 100);
        }
    }
}

ARENA_CASE(gives_larger_alignments_on_request)
{
    static const size_t sizes[] = {1000, MIB, 2 * MIB};
    rmm_resource_t *arena = make_arena(64 * MIB);

    for (size_t i = 0; i < 3; i++) {
        for (size_t align = 1; align <= RMM_ALIGN_MAX; align *= 2) {
            void *small = take(arena, 300, NULL); /* moves the next free address */
            void *ptr;

            assert_ok(rmm_resource_alloc(arena, sizes[i], align, NULL, &ptr));
            assert_int_equal((uintptr_t)ptr % align, 0);
            rmm_resource_dealloc(arena, ptr, sizes[i], align, NULL);
            give(arena, small, 300, NULL);
        }
    }
    assert_int_equal(stats_of(arena).current_bytes, 0);
    assert_true(has_room(arena, 64 * MIB, NULL));
    rmm_resource_release(arena);
}

ARENA_CASE(counts_an_allocation_of_no_bytes)
{
    rmm_resource_t *arena = make_arena(MIB);
    void *ptr = &ptr;

    assert_ok(rmm_resource_alloc(arena, 0, 0, NULL, &ptr));
    assert_null(ptr);
    assert_int_equal(stats_of(arena).current_count, 1);
    rmm_resource_dealloc(arena, NULL, 0, 0, NULL);
    rmm_resource_dealloc(arena, NULL, 0, 0, NULL); /* one too many: ignored */
    assert_int_equal(stats_of(arena).current_count, 0);
    assert_int_equal(stats_of(arena).total_count, 1);
    rmm_resource_release(arena);
}

ARENA_CASE(refuses_frees_that_cannot_be_right)
{
    rmm_resource_t *arena = make_arena(8 * MIB);
    rmm_resource_t *other = make_arena(8 * MIB);
    char *small = take(arena, 5000, NULL);
    char *large = take(arena, 2 * MIB, NULL);
    char *foreign = take(other, 5000, NULL);

    give(arena, small + 256, 5000, NULL);
    give(arena, small + 1, 5000, NULL);
    give(arena, small, 5001, NULL);
    give(arena, large + MIB, 2 * MIB, NULL);
    give(arena, large, MIB, NULL);
    give(arena, foreign, 5000, NULL);
    give(arena, &small, 5000, NULL);
    give(arena, arena_from_base(arena)->memory + 8 * MIB, 5000, NULL);
    assert_int_equal(stats_of(arena).invalid_free_count, 8);
    assert_int_equal(stats_of(arena).current_count, 2);
    give(arena, small, 5000, NULL);
    give(arena, small, 5000, NULL);
    give(arena, large, 2 * MIB, NULL);
    give(arena, large, 2 * MIB, NULL);
    assert_int_equal(stats_of(arena).invalid_free_count, 10);
    assert_int_equal(stats_of(arena).current_bytes, 0);
    give(other, foreign, 5000, NULL);
    rmm_resource_release(other);
    rmm_resource_release(arena);
}

ARENA_CASE(keeps_its_figures)
{
    rmm_resource_t *arena = make_arena(8 * MIB);
    const rmm_segment_slot_t *slot = arena->accounting.slot;
    void *small = take(arena, 1000, NULL);
    void *large = take(arena, 2 * MIB, NULL);

    assert_int_equal(stats_of(arena).current_bytes, 1000 + 2 * MIB);
    assert_int_equal(stats_of(arena).peak_bytes, 1000 + 2 * MIB);
    assert_int_equal(stats_of(arena).peak_count, 2);
    assert_int_equal(rmm__accounting_free_bytes(&arena->accounting), 6 * MIB - 1024);
    assert_int_equal(figure_of(&slot->largest_free_bytes), 5 * MIB);
    give(arena, small, 1000, NULL);
    give(arena, large, 2 * MIB, NULL);
    assert_int_equal(rmm__accounting_free_bytes(&arena->accounting), 8 * MIB);
    assert_int_equal(stats_of(arena).current_count, 0);
    assert_int_equal(stats_of(arena).total_bytes, 1000 + 2 * MIB);
    assert_true(has_room(arena, 8 * MIB, NULL));
    assert_int_equal(figure_of(&slot->largest_free_bytes), 8 * MIB);
    rmm_resource_release(arena);
}

ARENA_CASE(ends_with_blocks_still_out)
{
    uint64_t before = rmm__location_live(0).bytes;
    rmm_resource_t *arena = make_arena(8 * MIB);

    (void)take(arena, 1000, NULL);
    (void)take(arena, 2 * MIB, NULL);
    assert_int_equal(rmm__location_live(0).bytes, before + 1000 + 2 * MIB);
    rmm_resource_release(arena);
    assert_int_equal(rmm__location_live(0).bytes, before);
}

/* --- model -------------------------------------------------------------------------- */

enum { MODEL_STEPS = 3000, MODEL_LIVE = 120, MODEL_STREAMS = 4, MODEL_SEEDS = 12 };

typedef struct model_block {
    char *ptr;
    size_t bytes;
} model_block_t;

typedef struct model {
    rmm_resource_t *arena;
    rmm_stream_t streams[MODEL_STREAMS];
    model_block_t live[MODEL_LIVE];
    size_t live_count;
    uint64_t live_bytes, peak_bytes, random;
} model_t;

static uint64_t draw(model_t *model, uint64_t bound)
{
    model->random = model->random * 6364136223846793005ull + 1442695040888963407ull;
    return (model->random >> 33) % bound;
}

static rmm_stream_t draw_stream(model_t *model)
{
    return model->streams[draw(model, MODEL_STREAMS)];
}

static void model_take(model_t *model)
{
    model_block_t fresh = {NULL, 1 + draw(model, (uint64_t)1 << (8 + draw(model, 15)))};
    size_t align = (size_t)256 << (draw(model, 16) == 0 ? draw(model, 8) : 0);
    void *ptr;

    if (rmm_resource_alloc(
            model->arena, fresh.bytes, align, draw_stream(model), &ptr) != RMM_OK) {
        return;
    }
    fresh.ptr = ptr;
    assert_int_equal((uintptr_t)ptr % align, 0);
    for (size_t i = 0; i < model->live_count; i++) {
        assert_true(
            fresh.ptr + fresh.bytes <= model->live[i].ptr ||
            model->live[i].ptr + model->live[i].bytes <= fresh.ptr);
    }
    model->live[model->live_count++] = fresh;
    model->live_bytes += fresh.bytes;
    if (model->live_bytes > model->peak_bytes) {
        model->peak_bytes = model->live_bytes;
    }
}

static void model_give(model_t *model)
{
    size_t index = draw(model, model->live_count);
    model_block_t block = model->live[index];

    give(model->arena, block.ptr, block.bytes, draw_stream(model));
    model->live[index] = model->live[--model->live_count];
    model->live_bytes -= block.bytes;
}

static void model_run(model_t *model)
{
    for (int i = 0; i < MODEL_STEPS; i++) {
        if (model->live_count > 0 &&
            (model->live_count == MODEL_LIVE || draw(model, 100) < 48)) {
            model_give(model);
        } else {
            model_take(model);
        }
        if (i % 100 == 0) {
            assert_sound(model->arena);
        }
        assert_int_equal(stats_of(model->arena).current_bytes, model->live_bytes);
    }
    while (model->live_count > 0) {
        model_give(model);
    }
}

ARENA_CASE(agrees_with_a_model_under_seeds)
{
    for (uint64_t seed = 1; seed <= MODEL_SEEDS; seed++) {
        model_t model = {.arena = make_arena(24 * MIB), .random = seed};

        print_message("seed %lu\n", (unsigned long)seed);
        for (int i = 1; i < MODEL_STREAMS; i++) {
            model.streams[i] = make_stream(RMM_STREAM_NON_BLOCKING);
        }
        model_run(&model);
        assert_int_equal(stats_of(model.arena).peak_bytes, model.peak_bytes);
        assert_int_equal(stats_of(model.arena).invalid_free_count, 0);
        assert_int_equal(
            rmm__accounting_free_bytes(&model.arena->accounting), 24 * MIB);
        assert_int_equal(padding_of(model.arena), 0);
        assert_true(has_room(model.arena, 24 * MIB, NULL));
        assert_sound(model.arena);
        for (int i = 1; i < MODEL_STREAMS; i++) {
            assert_cuda(sim_driver()->stream_destroy(model.streams[i]));
        }
        rmm_resource_release(model.arena);
    }
}

/* Its size alone is hopeless: less may well be there, of an arena that has nothing yet. */
ARENA_CASE(a_smaller_request_is_tried_after_a_larger_one_failed)
{
    rmm_resource_t *arena = make_arena(8 * MIB);
    rmm_stream_t stream;
    void *large[2], *none;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    for (int i = 0; i < 2; i++) {
        large[i] = take(arena, 3 * MIB, NULL);
    }
    for (int i = 0; i < 3; i++) {
        assert_int_equal(
            rmm_resource_alloc(arena, 3 * MIB, 0, NULL, &none), RMM_ERR_OUT_OF_MEMORY);
    }
    give(arena, take(arena, 1000, stream), 1000, stream);
    for (int i = 0; i < 2; i++) {
        give(arena, large[i], 3 * MIB, NULL);
    }
    assert_ok(rmm_stream_destroy(stream));
    rmm_resource_release(arena);
}

static rmm_resource_t *make_arena_over(rmm_resource_t *upstream)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.arena_bytes = 8 * MIB;
    assert_ok(rmm_arena_resource_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

ARENA_CASE(what_is_out_at_its_end_is_freed_behind_its_use)
{
    assert_int_equal(mixups_of_an_end_amid_work(make_arena_over), 0);
}
