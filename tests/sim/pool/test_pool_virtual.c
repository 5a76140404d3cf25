/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool that maps physical memory into one range of addresses. What it shares with every
 * pool is in test_pool.c, the order of streams in test_pool_order.c, failures in
 * test_pool_virtual_faults.c.
 */
#include "sim/pool/virtual_harness.h"

#include <stddef.h>

#include "driver/sim/control.h"
#include "pool/range.h"
#include "resources/pool_resource.h"

static rmm_status_t
create_with(rmm_resource_t *upstream, uint64_t flags, rmm_resource_t **out)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;

    options.flags = flags;
    return rmm_pool_resource_create(upstream, &options, out);
}

static void
assert_refused(rmm_resource_t *upstream, uint64_t flags, const char *because)
{
    rmm_resource_t *out = NULL;

    assert_int_equal(create_with(upstream, flags, &out), RMM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(rmm_last_error_message(), because));
    assert_null(out);
}

#define CASE(name) TEST_CASE_WITH(name, NULL, nothing_is_left)

CASE(refuses_flags_that_do_not_go_together)
{
    rmm_resource_t *cuda = make_cuda();

    assert_refused(NULL, 0, "upstream is NULL");
    assert_refused(cuda, RMM_POOL_VIRTUAL, "pass NULL for upstream");
    assert_refused(cuda, RMM_POOL_PEER_ACCESS, "needs RMM_POOL_VIRTUAL");
    assert_refused(cuda, (uint64_t)1 << 40, "flags 0x10000000000");
    rmm_resource_release(cuda);
}

CASE(takes_options_of_before_there_were_flags)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *pool;

    options.struct_size = offsetof(rmm_pool_options_t, flags);
    options.flags = UINT64_MAX; /* not there in a caller of that age */
    assert_ok(rmm_pool_resource_create(cuda, &options, &pool));
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
}

CASE(is_a_base_resource_of_type_pool)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);

    assert_string_equal(rmm_resource_type(pool), "pool");
    assert_null(rmm_resource_upstream(pool));
    assert_int_equal(rmm_resource_properties(pool), RMM_DEVICE_ACCESSIBLE);
    assert_int_equal(reserved_of(pool), 0);
    rmm_resource_release(pool);
}

CASE(maps_whole_granules_at_the_start)
{
    rmm_resource_t *pool = make_virtual_pool(MIB + 1, MIB + 1);
    void *ptr = NULL;

    assert_int_equal(reserved_of(pool), PIECE);
    assert_accounting_agrees(pool);
    give(pool, take(pool, PIECE, NULL), PIECE, NULL);
    assert_int_equal(
        rmm_resource_alloc(pool, PIECE + 1, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rmm_last_error_message(), "its maximum of 2097152"));
    rmm_resource_release(pool);
}

CASE(grows_by_what_is_missing_beside_what_is_free)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    char *low = take(pool, 10 * MIB, NULL);
    char *high;

    give(pool, low, 10 * MIB, NULL);
    assert_ok(rmm_resource_trim(pool, SIZE_MAX)); /* makes it clean, keeps it */
    assert_int_equal(reserved_of(pool), 10 * MIB);
    high = take(pool, 15 * MIB, NULL);
    assert_ptr_equal(high, low);
    assert_int_equal(reserved_of(pool), 16 * MIB);
    assert_accounting_agrees(pool);
    give(pool, high, 15 * MIB, NULL);
    rmm_resource_release(pool);
}

CASE(stops_at_its_maximum)
{
    rmm_resource_t *pool = make_virtual_pool(0, 8 * MIB);
    void *blocks[4];
    void *ptr = NULL;

    for (int i = 0; i < 4; i++) {
        blocks[i] = take(pool, 2 * MIB, NULL);
    }
    assert_int_equal(
        rmm_resource_alloc(pool, 256, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_null(ptr);
    assert_int_equal(reserved_of(pool), 8 * MIB);
    for (int i = 0; i < 4; i++) {
        give(pool, blocks[i], 2 * MIB, NULL);
    }
    give(pool, take(pool, 8 * MIB, NULL), 8 * MIB, NULL);
    rmm_resource_release(pool);
}

CASE(gives_alignments_up_to_the_largest)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);

    for (size_t align = 256; align <= RMM_ALIGN_MAX; align *= 2) {
        void *odd = take(pool, 300, NULL);
        void *ptr = NULL;

        assert_ok(rmm_resource_alloc(pool, 3 * MIB, align, NULL, &ptr));
        assert_int_equal((uintptr_t)ptr % align, 0);
        rmm_resource_dealloc(pool, ptr, 3 * MIB, align, NULL);
        give(pool, odd, 300, NULL);
    }
    rmm_resource_release(pool);
}

static void *take_aligned(rmm_resource_t *pool, size_t bytes, size_t align)
{
    void *ptr = NULL;

    assert_ok(rmm_resource_alloc(pool, bytes, align, NULL, &ptr));
    assert_int_equal((uintptr_t)ptr % align, 0);
    return ptr;
}

/* Pieces are aligned as far as any request may ask: that takes no memory besides. */
CASE(an_alignment_leaves_the_maximum_to_blocks)
{
    const size_t half = BLOCKS / 2 * PIECE;

    for (size_t align = 256; align <= RMM_ALIGN_MAX; align *= 2) {
        rmm_resource_t *pool = make_virtual_pool(0, BLOCKS * PIECE);
        void *blocks[BLOCKS];
        void *front, *back;

        rmm_resource_dealloc(
            pool, take_aligned(pool, 2 * half, align), 2 * half, align, NULL);
        assert_ok(rmm_resource_trim(pool, 0));
        front = take_aligned(pool, half, align);
        assert_int_equal(reserved_of(pool), half);
        back = take_aligned(pool, half, align);
        rmm_resource_dealloc(pool, front, half, align, NULL);
        rmm_resource_dealloc(pool, back, half, align, NULL);
        fill_pool(pool, blocks);
        give_every_second(pool, blocks);
        front = take_aligned(pool, half, align); /* of pieces that were scattered */
        rmm_resource_dealloc(pool, front, half, align, NULL);
        check_and_give_others(pool, blocks);
        assert_int_equal(stats_of(pool).oom_count, 0);
        assert_accounting_agrees(pool);
        rmm_resource_release(pool);
    }
}

/* The free memory in front of what is mapped counts as far as the block can begin in it. */
CASE(an_aligned_block_grows_from_unaligned_memory)
{
    rmm_resource_t *pool = make_virtual_pool(0, 3 * PIECE);
    void *odd = take(pool, PIECE / 2 + 256, NULL);
    void *block = take_aligned(pool, 2 * PIECE + PIECE / 4, PIECE / 4);

    assert_int_equal(reserved_of(pool), 3 * PIECE);
    rmm_resource_dealloc(pool, block, 2 * PIECE + PIECE / 4, PIECE / 4, NULL);
    assert_int_equal(
        rmm_resource_alloc(pool, 2 * PIECE + PIECE / 2, PIECE / 4, NULL, &block),
        RMM_ERR_OUT_OF_MEMORY);
    give(pool, odd, PIECE / 2 + 256, NULL);
    rmm_resource_release(pool);
}

/* --- trim ---------------------------------------------------------------------------- */

CASE(trim_gives_back_pieces_between_blocks_in_use)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    void *blocks[BLOCKS];

    fill_pool(pool, blocks);
    give_every_second(pool, blocks);
    assert_int_equal(reserved_of(pool), BLOCKS * PIECE);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(reserved_of(pool), BLOCKS / 2 * PIECE);
    assert_accounting_agrees(pool);
    check_and_give_others(pool, blocks);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(reserved_of(pool), 0);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    give(pool, take(pool, MIB, NULL), MIB, NULL); /* still of use */
    rmm_resource_release(pool);
}

CASE(trim_keeps_the_requested_bytes)
{
    rmm_resource_t *pool = make_virtual_pool(BLOCKS * PIECE, 0);

    assert_ok(rmm_resource_trim(pool, 3 * PIECE + 1));
    assert_int_equal(reserved_of(pool), 4 * PIECE);
    assert_ok(rmm_resource_trim(pool, SIZE_MAX));
    assert_int_equal(reserved_of(pool), 4 * PIECE);
    assert_accounting_agrees(pool);
    rmm_resource_release(pool);
}

CASE(trim_leaves_a_piece_that_is_used_in_part)
{
    rmm_resource_t *pool = make_virtual_pool(2 * PIECE, 0);
    void *first = take(pool, 256, NULL);

    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(reserved_of(pool), PIECE);
    give(pool, first, 256, NULL);
    rmm_resource_release(pool);
}

CASE(growth_fills_holes_before_it_goes_on_at_the_tail)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    void *blocks[BLOCKS];
    void *again[BLOCKS];

    fill_pool(pool, blocks);
    give_every_second(pool, blocks);
    assert_ok(rmm_resource_trim(pool, 0));
    for (int i = 0; i < BLOCKS; i += 2) {
        again[i] = take(pool, PIECE, NULL);
        assert_ptr_equal(again[i], blocks[i]);
    }
    assert_int_equal(reserved_of(pool), BLOCKS * PIECE);
    check_and_give_others(pool, blocks);
    for (int i = 0; i < BLOCKS; i += 2) {
        give(pool, again[i], PIECE, NULL);
    }
    rmm_resource_release(pool);
}

/* --- pieces -------------------------------------------------------------------------- */

static uint32_t pieces_of(rmm_resource_t *pool)
{
    return pool_from_base(pool)->engine->range.piece_count;
}

/* As if the pool had begun long ago, or had spent all of its time on mapping. */
static void set_time(rmm_resource_t *pool, bool has_time)
{
    engine_range_t *range = &pool_from_base(pool)->engine->range;

    range->begun_ns = rmm__range_now_ns() - (has_time ? UINT64_C(3600000000000) : 0);
    range->mapping_ns = has_time ? 0 : UINT64_C(3600000000000);
}

/* A small block pins a small part of it, however much is held. */
CASE(pieces_are_a_small_share_of_what_is_held)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    void *large, *next;

    set_time(pool, true);
    large = take(pool, 100 * MIB, NULL);
    next = take(pool, 30 * MIB, NULL);
    assert_int_equal(pieces_of(pool), 130 / 2); /* none is smaller than 2 MiB */
    give(pool, large, 100 * MIB, NULL);
    give(pool, next, 30 * MIB, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(pieces_of(pool), 0);
    large = take(pool, 8192 * MIB, NULL);
    assert_int_equal(pieces_of(pool), 8192 / 2);
    give(pool, large, 8192 * MIB, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    large = take(pool, 16384 * MIB, NULL);
    assert_int_equal(pieces_of(pool), 16384 / 4);
    give(pool, large, 16384 * MIB, NULL);
    rmm_resource_release(pool);
}

/* Each piece takes the driver the same time: a program that grows quickly gets few, unless its
 * memory is short. */
CASE(pieces_are_few_far_below_the_maximum_without_time)
{
    const struct {
        uint64_t maximum; /* 0: the device's memory */
        bool has_time;
        uint32_t pieces;
    } pools[] = {
        {0, false, 4096 / 64},
        {0, true, 4096 / 2},
        {4096 * MIB, false, 4096 / 2},
    };

    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
        rmm_resource_t *pool = make_virtual_pool(0, pools[i].maximum);
        void *block;

        set_time(pool, pools[i].has_time);
        block = take(pool, 4096 * MIB, NULL);
        assert_int_equal(pieces_of(pool), pools[i].pieces);
        give(pool, block, 4096 * MIB, NULL);
        rmm_resource_release(pool);
    }
}

CASE(begins_with_pieces_that_can_be_given_back)
{
    rmm_resource_t *pool = make_virtual_pool(512 * MIB, 0);
    void *last = take(pool, 4 * MIB, NULL);

    assert_in_range(pieces_of(pool), 512 / 8, 512 / 2);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_in_range(reserved_of(pool), 4 * MIB, 8 * MIB);
    give(pool, last, 4 * MIB, NULL);
    rmm_resource_release(pool);
}

/* The same sizes each time. True: the pool synchronised, as it does before it maps free
 * memory anew, or grew. */
static bool play_mix(rmm_resource_t *pool, uint64_t seed)
{
    enum { LIVE = 256, STEPS = 4000 };
    const rmm_segment_slot_t *slot = pool->accounting.slot;
    const uint64_t syncs = rmm__figure_get(&slot->sync_count);
    const uint64_t growths = rmm__figure_get(&slot->growth_count);
    void *ptr[LIVE] = {NULL};
    size_t bytes[LIVE];

    for (int step = 0; step < STEPS + LIVE; step++) {
        size_t at = (size_t)(seed >> 33) % LIVE;

        at = step < STEPS ? at : (size_t)(step - STEPS);
        if (ptr[at] != NULL) {
            give(pool, ptr[at], bytes[at], NULL);
            ptr[at] = NULL;
        }
        seed = seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
        if (step < STEPS) {
            bytes[at] = 1 + (size_t)(seed >> 20) % (2 * MIB);
            ptr[at] = take(pool, bytes[at], NULL);
        }
    }
    return rmm__figure_get(&slot->sync_count) != syncs ||
           rmm__figure_get(&slot->growth_count) != growths;
}

CASE(a_steady_mix_comes_to_a_size_with_which_nothing_is_mapped)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    int rounds = 1;

    while (play_mix(pool, 7) && rounds < 16) {
        rounds++;
    }
    assert_in_range(rounds, 2, 12);
    assert_false(play_mix(pool, 7)); /* and stays there */
    assert_accounting_agrees(pool);
    rmm_resource_release(pool);
}

/* --- scattered free memory ----------------------------------------------------------- */

CASE(a_request_that_fits_the_free_total_is_served_though_scattered)
{
    rmm_resource_t *pool = make_virtual_pool(BLOCKS * PIECE, BLOCKS * PIECE);
    void *blocks[BLOCKS];
    void *large;
    const engine_t *engine = pool_from_base(pool)->engine;
    uint64_t mapped = engine->figures.map_count;

    fill_pool(pool, blocks);
    give_every_second(pool, blocks);
    large = take(pool, BLOCKS / 2 * PIECE, NULL); /* all that is free */
    launch_fill(large, BLOCKS / 2 * PIECE, 99, NULL);
    assert_true(engine->figures.map_count > mapped);
    assert_int_equal(reserved_of(pool), BLOCKS * PIECE);
    assert_accounting_agrees(pool);
    check_and_give_others(pool, blocks);
    give(pool, large, BLOCKS / 2 * PIECE, NULL);
    rmm_resource_release(pool);
}

/* The hole between its free pieces is larger than what it may grow by, and smaller than the
 * gap behind them. */
CASE(an_idle_pool_gives_its_maximum_whatever_is_mapped_where)
{
    rmm_resource_t *pool = make_virtual_pool(0, 12 * PIECE);
    void *first = take(pool, 2 * PIECE, NULL);
    void *hole = take(pool, 4 * PIECE, NULL);
    void *second = take(pool, 2 * PIECE, NULL);
    void *third;

    give(pool, hole, 4 * PIECE, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    third = take(pool, 5 * PIECE, NULL);
    assert_int_equal(reserved_of(pool), 9 * PIECE);
    give(pool, first, 2 * PIECE, NULL);
    give(pool, second, 2 * PIECE, NULL);
    give(pool, third, 5 * PIECE, NULL);
    first = take(pool, 12 * PIECE, NULL);
    give(pool, first, 12 * PIECE, NULL);
    assert_accounting_agrees(pool);
    rmm_resource_release(pool);
}

CASE(holes_without_a_free_piece_are_not_tidied)
{
    enum { COUNT = 128 };
    rmm_resource_t *pool = make_virtual_pool(8 * MIB, 8 * MIB);
    void *blocks[COUNT];
    void *large;

    for (int i = 0; i < COUNT; i++) {
        blocks[i] = take(pool, 64 * KIB, NULL);
    }
    for (int i = 0; i < COUNT; i += 2) {
        give(pool, blocks[i], 64 * KIB, NULL);
    }
    assert_int_equal(
        rmm_resource_alloc(pool, 128 * KIB, 0, NULL, &large), RMM_ERR_OUT_OF_MEMORY);
    /* the one before a refusal, and in a shared pool the one of compaction */
    assert_int_equal(
        rmm__figure_get(&pool->accounting.slot->sync_count), is_shared_run() ? 2 : 1);
    for (int i = 1; i < COUNT; i += 2) {
        give(pool, blocks[i], 64 * KIB, NULL);
    }
    rmm_resource_release(pool);
}

CASE(scattered_memory_and_a_little_growth_make_a_large_block)
{
    rmm_resource_t *pool = make_virtual_pool(0, (BLOCKS + 1) * PIECE);
    void *blocks[BLOCKS];
    void *large;

    fill_pool(pool, blocks);
    give_every_second(pool, blocks);
    large = take(pool, (BLOCKS / 2 + 1) * PIECE, NULL);
    assert_int_equal(reserved_of(pool), (BLOCKS + 1) * PIECE);
    give(pool, large, (BLOCKS / 2 + 1) * PIECE, NULL);
    check_and_give_others(pool, blocks);
    rmm_resource_release(pool);
}

/* The block at this address of those that lie side by side from `base`. */
static void give_range(rmm_resource_t *pool, char *base, uint64_t bytes, uint64_t block)
{
    for (uint64_t offset = 0; offset < bytes; offset += block) {
        give(pool, base + offset, block, NULL);
    }
}

/* The lowest address of so many blocks of one size, which are all there is. */
static char *take_all(rmm_resource_t *pool, uint64_t count, uint64_t block)
{
    char *lowest = take(pool, block, NULL);

    for (uint64_t i = 1; i < count; i++) {
        char *ptr = take(pool, block, NULL);

        lowest = ptr < lowest ? ptr : lowest;
    }
    return lowest;
}

static int
no_physical(size_t bytes, uint32_t flags, rmm_driver_physical_t *physical_out)
{
    return RMM_DRIVER_MEMORY_ALLOCATION;
}

/*
 * Pieces have 4 MiB. Where least is missing, behind 16 MiB that are free, there is room for 2;
 * and of 18 MiB elsewhere 2 would stay empty.
 */
CASE(pieces_too_large_for_two_gaps_are_used_all_the_same)
{
    rmm_resource_t *pool = make_virtual_pool(0, 2800 * MIB);
    rmm_driver_t full = *sim_driver();
    char *low;
    char *high[3];
    void *ptr;

    set_time(pool, false);
    give(pool, take(pool, 150 * MIB, NULL), 150 * MIB, NULL);
    low = take_all(pool, 75, 2 * MIB);
    give(pool, take(pool, 34 * MIB, NULL), 34 * MIB, NULL); /* the last piece has 2 */
    high[0] = take(pool, 16 * MIB, NULL);
    high[1] = take(pool, 18 * MIB, NULL);
    high[2] = take(pool, 64 * MIB, NULL);
    assert_ptr_equal(high[0], low + 150 * MIB);
    assert_ptr_equal(high[1], low + 166 * MIB);
    assert_ptr_equal(high[2], low + 184 * MIB);
    give(pool, low + 148 * MIB, 2 * MIB, NULL);
    give(pool, high[1], 18 * MIB, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(reserved_of(pool), 228 * MIB);

    full.physical_create = no_physical;
    pool_use_driver(pool, &full);
    give_range(pool, low + 132 * MIB, 16 * MIB, 2 * MIB);
    give_range(pool, low + 80 * MIB, 4 * MIB, 2 * MIB);
    ptr = take(pool, 18 * MIB, NULL);
    pool_use_driver(pool, sim_driver());
    assert_accounting_agrees(pool);
    give(pool, ptr, 18 * MIB, NULL);
    give_range(pool, low, 80 * MIB, 2 * MIB);
    give_range(pool, low + 84 * MIB, 48 * MIB, 2 * MIB);
    give(pool, high[0], 16 * MIB, NULL);
    give(pool, high[2], 64 * MIB, NULL);
    rmm_resource_release(pool);
}

/* The free pieces beside the gap are the highest ones. */
CASE(a_gap_is_filled_from_elsewhere)
{
    rmm_resource_t *pool = make_virtual_pool(BLOCKS * PIECE, BLOCKS * PIECE);
    const engine_t *engine = pool_from_base(pool)->engine;
    rmm_driver_t full = *sim_driver();
    void *blocks[BLOCKS];
    uint64_t mapped;
    char *ptr;

    for (int i = 0; i < BLOCKS; i++) {
        blocks[i] = take(pool, PIECE, NULL);
    }
    give(pool, blocks[3], PIECE, NULL);
    assert_ok(rmm_resource_trim(pool, 0)); /* the gap */
    full.physical_create = no_physical;
    pool_use_driver(pool, &full);
    give(pool, blocks[0], PIECE, NULL);
    give(pool, blocks[2], PIECE, NULL);
    give(pool, blocks[4], PIECE, NULL);
    give(pool, blocks[5], PIECE, NULL);
    mapped = engine->figures.map_count;
    ptr = take(pool, 4 * PIECE, NULL);
    assert_ptr_equal(ptr, blocks[2]);
    assert_int_equal(engine->figures.map_count - mapped, 1);
    pool_use_driver(pool, sim_driver());
    give(pool, ptr, 4 * PIECE, NULL);
    give(pool, blocks[1], PIECE, NULL);
    give(pool, blocks[6], PIECE, NULL);
    give(pool, blocks[7], PIECE, NULL);
    assert_accounting_agrees(pool);
    rmm_resource_release(pool);
}

/* A program that scatters the same memory for ever. */
CASE(grows_when_it_has_mapped_what_it_holds_several_times)
{
    enum { ROUNDS = 60 };
    rmm_resource_t *pool = make_virtual_pool(BLOCKS * PIECE, 0);
    const engine_t *engine = pool_from_base(pool)->engine;
    uint64_t mapped;
    void *blocks[BLOCKS];

    for (int round = 0; round < 2 * ROUNDS; round++) {
        if (round == ROUNDS) {
            mapped = engine->figures.map_count;
        }
        fill_pool(pool, blocks);
        give_every_second(pool, blocks);
        give(pool, take(pool, BLOCKS / 2 * PIECE, NULL), BLOCKS / 2 * PIECE, NULL);
        check_and_give_others(pool, blocks);
    }
    assert_in_range(reserved_of(pool), BLOCKS * PIECE + 1, 2 * BLOCKS * PIECE);
    assert_int_equal(engine->figures.map_count, mapped);
    rmm_resource_release(pool);
}

CASE(a_compaction_is_no_growth)
{
    rmm_resource_t *pool = make_virtual_pool(BLOCKS * PIECE, BLOCKS * PIECE);
    const rmm_segment_slot_t *slot = pool->accounting.slot;
    const uint64_t growths = rmm__figure_get(&slot->growth_count);
    void *blocks[BLOCKS];
    void *large;

    fill_pool(pool, blocks);
    give_every_second(pool, blocks);
    large = take(pool, BLOCKS / 2 * PIECE, NULL);
    assert_true(pool_from_base(pool)->engine->range.compacted_bytes > 0);
    assert_int_equal(rmm__figure_get(&slot->growth_count), growths);
    check_and_give_others(pool, blocks);
    give(pool, large, BLOCKS / 2 * PIECE, NULL);
    rmm_resource_release(pool);
}

/* It has paid for them. */
CASE(a_growth_makes_compactions_worth_their_cost_again)
{
    rmm_resource_t *pool = make_virtual_pool(BLOCKS * PIECE, 0);
    const engine_range_t *range = &pool_from_base(pool)->engine->range;
    void *blocks[BLOCKS];
    void *large, *more;

    fill_pool(pool, blocks);
    give_every_second(pool, blocks);
    large = take(pool, BLOCKS / 2 * PIECE, NULL);
    assert_int_equal(reserved_of(pool), BLOCKS * PIECE);
    assert_int_equal(range->compacted_count, 1);
    assert_true(range->compacted_bytes > 0);
    more = take(pool, PIECE, NULL);
    assert_true(reserved_of(pool) > BLOCKS * PIECE);
    assert_int_equal(range->compacted_count, 0);
    assert_int_equal(range->compacted_bytes, 0);
    check_and_give_others(pool, blocks);
    give(pool, large, BLOCKS / 2 * PIECE, NULL);
    give(pool, more, PIECE, NULL);
    rmm_resource_release(pool);
}

CASE(a_full_device_is_used_to_the_last_piece)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    uint64_t total = 0;
    uint64_t free_bytes = 0;
    void *blocks[2];
    void *ptr = NULL;

    assert_cuda(sim_driver()->memory_info(&free_bytes, &total));
    total = total / PIECE * PIECE - 2 * PIECE; /* less a barrier's block */
    blocks[0] = take(pool, total / 2 / PIECE * PIECE, NULL);
    blocks[1] = take(pool, total / 4, NULL);
    assert_int_equal(
        rmm_resource_alloc(pool, total, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_true(reserved_of(pool) <= total); /* a failure leaves nothing mapped */
    give(pool, blocks[0], total / 2 / PIECE * PIECE, NULL);
    give(pool, blocks[1], total / 4, NULL);
    ptr = take(pool, total, NULL);
    give(pool, ptr, total, NULL);
    rmm_resource_release(pool);
}

/* --- the end, refusals, devices ------------------------------------------------------ */

CASE(unmaps_everything_with_blocks_still_out)
{
    rmm_resource_t *pool = make_virtual_pool(MIB, 0);
    void *lost = take(pool, 5 * MIB, NULL);

    launch_fill(lost, 5 * MIB, 7, NULL); /* queued: the end waits for it */
    rmm_resource_release(pool);
}

CASE(refuses_frees_of_addresses_without_memory)
{
    rmm_resource_t *pool = make_virtual_pool(MIB, 0);
    char *block = take(pool, MIB, NULL);

    give(pool, block + 100 * MIB, MIB, NULL);
    give(pool, block + 256, MIB, NULL);
    assert_int_equal(stats_of(pool).invalid_free_count, 2);
    give(pool, block, MIB, NULL);
    give(pool, block, MIB, NULL);
    assert_int_equal(stats_of(pool).invalid_free_count, 3);
    rmm_resource_release(pool);
}

CASE(counts_its_memory_at_the_device)
{
    rmm_resource_t *pool = make_virtual_pool(6 * MIB, 0);
    const rmm_segment_location_t *location = &rmm__locations[0];

    assert_int_equal(rmm__figure_get(&location->reserved_bytes), 6 * MIB);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(rmm__figure_get(&location->reserved_bytes), 0);
    give(pool, take(pool, 3 * MIB, NULL), 3 * MIB, NULL);
    assert_int_equal(rmm__figure_get(&location->reserved_bytes), reserved_of(pool));
    rmm_resource_release(pool);
    assert_int_equal(rmm__figure_get(&location->reserved_bytes), 0);
}

CASE(counts_as_free_only_what_has_memory)
{
    rmm_resource_t *pool = make_virtual_pool(6 * MIB, 0);
    const rmm_segment_slot_t *slot = pool->accounting.slot;

    assert_int_equal(rmm__figure_get(&slot->free_bytes), 6 * MIB);
    assert_int_equal(rmm__figure_get(&slot->largest_free_bytes), 6 * MIB);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(rmm__figure_get(&slot->free_bytes), 0);
    assert_int_equal(rmm__figure_get(&slot->largest_free_bytes), 0);
    rmm_resource_release(pool);
}

CASE(belongs_to_the_device_on_which_it_was_made)
{
    rmm_resource_t *pool;

    assert_cuda(rmm__sim_device_set(1));
    pool = make_virtual_pool(0, 0);
    assert_cuda(rmm__sim_device_set(0));
    give(pool, take(pool, MIB, NULL), MIB, NULL);
    assert_true(rmm_sim_allocated_bytes(1) >= PIECE);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    rmm_resource_release(pool);
    assert_int_equal(rmm_sim_allocated_bytes(1), 0);
}

/* The table's own fill, on a device that did not map the memory. */
static void share_with(int owner, int other)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *pool;
    rmm_stream_t stream;
    unsigned char *block;

    options.flags = RMM_POOL_VIRTUAL | RMM_POOL_PEER_ACCESS;
    assert_cuda(rmm__sim_device_set(owner));
    assert_ok(rmm_pool_resource_create(NULL, &options, &pool));
    block = take(pool, 3 * MIB, NULL);
    assert_cuda(rmm__sim_device_set(other));
    stream = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_cuda(sim_driver()->memset_async(block, 42, 3 * MIB, stream));
    assert_cuda(sim_driver()->stream_synchronize(stream));
    assert_cuda(sim_driver()->stream_destroy(stream));
    assert_cuda(rmm__sim_device_set(0));
    assert_int_equal(block[3 * MIB - 1], 42); /* refused otherwise: a violation */
    give(pool, block, 3 * MIB, NULL);
    rmm_resource_release(pool);
}

CASE(is_shared_with_other_devices_on_request)
{
    share_with(0, 1);
    share_with(1, 0);
}
