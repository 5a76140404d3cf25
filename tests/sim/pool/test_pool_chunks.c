/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which address is which unit: an upstream that gives made-up addresses, near each other
 * and terabytes apart, or such as cannot be right. The pool never touches its memory.
 */
#include "sim/pool/pool_harness.h"

#include "harness/random.h"
#include "pool/engine_impl.h"
#include "resources/pool_resource.h"

#define CHUNK (2 * MIB)
#define TIB ((uintptr_t)1 << 40)

typedef struct maker {
    uintptr_t addresses[16];
    size_t count, out;
} maker_t;

static rmm_status_t
made_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    maker_t *maker = payload;

    if (maker->count == 16 || maker->addresses[maker->count] == 0 || bytes > CHUNK) {
        return RMM_ERR_OUT_OF_MEMORY;
    }
    *ptr_out = (void *)maker->addresses[maker->count++];
    maker->out++;
    return RMM_OK;
}

static void made_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    ((maker_t *)payload)->out--;
}

static rmm_resource_t *make_limited_subject(maker_t *maker, uint64_t maximum_bytes)
{
    rmm_callback_options_t callback = RMM_CALLBACK_OPTIONS_INIT;
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *upstream;
    rmm_resource_t *pool;

    callback.alloc = made_alloc;
    callback.dealloc = made_dealloc;
    callback.payload = maker;
    assert_ok(rmm_callback_resource_create(&callback, &upstream));
    options.maximum_bytes = maximum_bytes;
    assert_ok(rmm_pool_resource_create(upstream, &options, &pool));
    rmm_resource_release(upstream);
    return share(pool);
}

static rmm_resource_t *make_subject(maker_t *maker)
{
    return make_limited_subject(maker, 0);
}

/* Every chunk is taken whole, in pieces, and given back; wrong addresses are refused. */
static void use_all(maker_t *maker)
{
    rmm_resource_t *pool = make_subject(maker);
    void *blocks[16][4];
    size_t chunks = 0;

    while (maker->addresses[chunks] != 0) {
        for (size_t k = 0; k < 4; k++) {
            blocks[chunks][k] = take(pool, CHUNK / 4, NULL);
            assert_int_equal(
                (uintptr_t)blocks[chunks][k] / CHUNK * CHUNK, maker->addresses[chunks]);
        }
        chunks++;
    }
    for (size_t i = 0; i < chunks; i++) {
        give(pool, (void *)(maker->addresses[i] + CHUNK * 64 * 1024), CHUNK / 4, NULL);
        give(pool, (char *)blocks[i][1] + 256, CHUNK / 4, NULL);
        give(pool, (char *)blocks[i][1] + 1, CHUNK / 4, NULL);
    }
    assert_int_equal(stats_of(pool).invalid_free_count, 3 * chunks);
    for (size_t i = 0; i < chunks; i++) {
        for (size_t k = 0; k < 4; k++) {
            give(pool, blocks[i][k], CHUNK / 4, NULL);
        }
    }
    assert_int_equal(stats_of(pool).current_bytes, 0);
    assert_ok(rmm_resource_trim(pool, 2 * CHUNK));
    assert_int_equal(maker->out, 2); /* those at the lowest addresses stay */
    give(pool, take(pool, CHUNK, NULL), CHUNK, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_int_equal(maker->out, 0);
    rmm_resource_release(pool);
}

TEST_CASE(finds_blocks_of_chunks_that_are_near_each_other)
{
    maker_t maker = {
        .addresses = {
            100 * TIB, 100 * TIB + CHUNK, 100 * TIB - CHUNK, 100 * TIB + 4096 * CHUNK,
            100 * TIB - TIB / 2, 100 * TIB + TIB / 2 - 2 * CHUNK}};

    use_all(&maker);
}

TEST_CASE(finds_blocks_of_chunks_that_are_far_apart)
{
    maker_t maker = {
        .addresses = {
            100 * TIB, 103 * TIB, 100 * TIB + CHUNK, 17 * TIB, 100 * TIB + TIB / 2,
            103 * TIB + CHUNK}};

    use_all(&maker);
}

/* Near the beginning of all addresses, unit 0's would be below it. */
TEST_CASE(finds_blocks_of_chunks_at_low_addresses)
{
    maker_t maker = {.addresses = {CHUNK, 3 * CHUNK, 2 * CHUNK, 100 * TIB}};

    use_all(&maker);
}

/* The pool has one chunk, in use; upstream gives this address for the next. */
static void refuse_chunk_at(uintptr_t chunk, uintptr_t next)
{
    maker_t maker = {.addresses = {chunk, next, chunk + CHUNK}};
    rmm_resource_t *pool = make_subject(&maker);
    void *first = take(pool, CHUNK, NULL);
    void *ptr;

    assert_int_equal(rmm_resource_alloc(pool, 256, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_non_null(strstr(rmm_last_error_message(), "overlaps memory of this pool"));
    assert_int_equal(maker.out, 1); /* it has that back */
    assert_int_equal(stats_of(pool).reserved_bytes, CHUNK);
    give(pool, take(pool, CHUNK, NULL), CHUNK, NULL); /* beside the first */
    assert_int_equal(maker.out, 2);
    give(pool, first, CHUNK, NULL);
    rmm_resource_release(pool);
    assert_int_equal(maker.out, 0);
}

TEST_CASE(refuses_memory_that_it_has_already)
{
    refuse_chunk_at(64 * CHUNK, 64 * CHUNK + 256);
    refuse_chunk_at(64 * CHUNK, 65 * CHUNK - 256);
    refuse_chunk_at(64 * CHUNK, 63 * CHUNK + 256);
}

TEST_CASE(refuses_memory_beyond_the_last_address)
{
    refuse_chunk_at(64 * CHUNK, UINTPTR_MAX - CHUNK + 1 + 256);
}

/* The address of a chunk that a trim has just given back is free for the next one. */
TEST_CASE(takes_memory_again_that_it_gave_back)
{
    maker_t maker = {.addresses = {64 * CHUNK, 64 * CHUNK + 256, 64 * CHUNK}};
    rmm_resource_t *pool = make_subject(&maker);

    for (size_t i = 0; i < 3; i++) {
        void *ptr = take(pool, CHUNK, NULL);

        assert_int_equal((uintptr_t)ptr, maker.addresses[i]);
        give(pool, ptr, CHUNK, NULL);
        assert_ok(rmm_resource_trim(pool, 0));
        assert_int_equal(maker.out, 0);
    }
    rmm_resource_release(pool);
}

/* Upstream has no chunk with room to align a block that is as large as what it has. */
TEST_CASE(an_aligned_block_of_all_that_upstream_has_needs_an_aligned_chunk)
{
    maker_t maker = {
        .addresses = {64 * CHUNK + 256, 66 * CHUNK, 68 * CHUNK + 256, 70 * CHUNK}};
    rmm_resource_t *pool = make_subject(&maker);
    void *ptr;

    assert_int_equal(
        rmm_resource_alloc(pool, CHUNK, 4096, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(maker.out, 0); /* upstream has it back */
    assert_ok(rmm_resource_alloc(pool, CHUNK, 4096, NULL, &ptr));
    assert_int_equal((uintptr_t)ptr, 66 * CHUNK);
    rmm_resource_dealloc(pool, ptr, CHUNK, 4096, NULL);
    assert_ok(rmm_resource_trim(pool, 0));
    /* here is room to begin at the next 4096 bytes */
    assert_ok(rmm_resource_alloc(pool, CHUNK - 4096, 4096, NULL, &ptr));
    assert_int_equal((uintptr_t)ptr, 68 * CHUNK + 4096);
    assert_int_equal(stats_of(pool).reserved_bytes, CHUNK);
    rmm_resource_dealloc(pool, ptr, CHUNK - 4096, 4096, NULL);
    rmm_resource_release(pool);
    assert_int_equal(maker.out, 0);
}

/* The chunk has no room to align the block; a block of the same size fits without an alignment. */
TEST_CASE(a_refused_alignment_refuses_no_block_without_it)
{
    maker_t maker = {
        .addresses = {64 * CHUNK + 256, 66 * CHUNK + 256, 68 * CHUNK + 256}};
    rmm_resource_t *pool = make_limited_subject(&maker, CHUNK);
    void *ptr;

    for (size_t i = 1; i <= 2; i++) {
        assert_int_equal(
            rmm_resource_alloc(pool, CHUNK, MIB, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
        assert_non_null(strstr(rmm_last_error_message(), "no room for 2097152 bytes"));
        assert_non_null(strstr(rmm_last_error_message(), "no room to align the block"));
        assert_int_equal(maker.count, i);
        assert_int_equal(maker.out, 0);
    }
    give(pool, take(pool, CHUNK, NULL), CHUNK, NULL);
    rmm_resource_release(pool);
    assert_int_equal(maker.out, 0);
}

/* Chunks of CUDA are aligned to 2 MiB. */
TEST_CASE(an_alignment_leaves_the_maximum_of_a_growing_pool_to_a_block)
{
    for (size_t align = 256; align <= RMM_ALIGN_MAX; align *= 2) {
        rmm_resource_t *pool = make_pool(0, 8 * MIB);
        void *small = take(pool, MIB, NULL);
        void *ptr;

        assert_ok(rmm_resource_alloc(pool, 6 * MIB, align, NULL, &ptr));
        rmm_resource_dealloc(pool, ptr, 6 * MIB, align, NULL);
        give(pool, small, MIB, NULL);
        assert_ok(rmm_resource_alloc(pool, 8 * MIB, align, NULL, &ptr));
        assert_int_equal((uintptr_t)ptr % align, 0);
        assert_int_equal(stats_of(pool).reserved_bytes, 8 * MIB);
        rmm_resource_dealloc(pool, ptr, 8 * MIB, align, NULL);
        assert_int_equal(stats_of(pool).oom_count, 0);
        rmm_resource_release(pool);
    }
}

/* --- against a map of units -------------------------------------------------------------- */

enum { UNITS = 400, MOST_UNITS = 12, MAP_STEPS = 1000, MAP_SEEDS = 10 };

/* An upstream that gives any units at all. Each chunk is one block, in use. */
typedef struct map {
    void *next;               /* what it gives */
    uint32_t units_at[UNITS]; /* of the chunk that begins there; 0: none does */
    uint32_t out;
    uint64_t random, seed;
    int step;
    rmm_resource_t *pool;
} map_t;

#define require(map, condition)                                                        \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fail_msg(                                                                  \
                "RMM_TEST_SEED=%llu, step %d: %s", (unsigned long long)(map)->seed,    \
                (map)->step, #condition);                                              \
        }                                                                              \
    } while (0)

static void *address_of(uint32_t unit)
{
    return (void *)(TIB + (uintptr_t)unit * 256);
}

static rmm_status_t
drawn_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    map_t *map = payload;

    if (bytes > (size_t)MOST_UNITS * 256) {
        return RMM_ERR_OUT_OF_MEMORY; /* the pool asks for what it needs then */
    }
    *ptr_out = map->next;
    map->out++;
    return RMM_OK;
}

static void drawn_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    ((map_t *)payload)->out--;
}

static bool is_any_used(const map_t *map, uint32_t unit, uint32_t units)
{
    bool any = false;

    for (uint32_t i = 0; i < unit + units; i++) {
        any = any || (map->units_at[i] != 0 && i + map->units_at[i] > unit);
    }
    return any;
}

static void add_or_refuse(map_t *map)
{
    uint32_t units = 1 + (uint32_t)draw(&map->random, MOST_UNITS);
    uint32_t unit = (uint32_t)draw(&map->random, UNITS - units);
    void *ptr = NULL;
    rmm_status_t status;

    map->next = address_of(unit);
    status = rmm_resource_alloc(map->pool, (size_t)units * 256, 0, NULL, &ptr);
    if (is_any_used(map, unit, units)) {
        require(map, status == RMM_ERR_BAD_ALLOC);
        /* the first byte of a block that is out: the callback resource has refused that, and
         * has given nothing back */
        map->out -= map->units_at[unit] != 0;
    } else {
        require(map, status == RMM_OK && ptr == map->next);
        map->units_at[unit] = units;
    }
}

static void trim_some(map_t *map)
{
    for (uint32_t i = 0; i < UNITS; i++) {
        if (map->units_at[i] != 0 && draw(&map->random, 3) == 0) {
            give(map->pool, address_of(i), (size_t)map->units_at[i] * 256, NULL);
            map->units_at[i] = 0;
        }
    }
    require(map, rmm_resource_trim(map->pool, 0) == RMM_OK);
}

static void check(map_t *map)
{
    uint64_t units = 0;
    uint32_t chunks = 0;

    for (uint32_t i = 0; i < UNITS; i++) {
        units += map->units_at[i];
        chunks += map->units_at[i] != 0;
    }
    require(map, map->out == chunks);
    require(map, stats_of(map->pool).reserved_bytes == units * 256);
}

static void play(uint64_t seed)
{
    map_t map = {.seed = seed, .random = seed};
    rmm_callback_options_t callback = RMM_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *upstream;

    callback.alloc = drawn_alloc;
    callback.dealloc = drawn_dealloc;
    callback.payload = &map;
    assert_ok(rmm_callback_resource_create(&callback, &upstream));
    assert_ok(rmm_pool_resource_create(upstream, NULL, &map.pool));
    rmm_resource_release(upstream);
    (void)share(map.pool);
    for (map.step = 0; map.step < MAP_STEPS; map.step++) {
        if (draw(&map.random, 100) < 90) {
            add_or_refuse(&map);
        } else {
            trim_some(&map);
        }
        check(&map);
    }
    rmm_resource_release(map.pool);
    require(&map, map.out == 0);
}

/* RMM_TEST_SEED=<number> runs one. */
TEST_CASE(agrees_with_a_map_of_units)
{
    const char *seed = getenv("RMM_TEST_SEED");

    for (uint64_t i = 1; seed == NULL && i <= MAP_SEEDS; i++) {
        play(i);
    }
    if (seed != NULL) {
        play(strtoull(seed, NULL, 10));
    }
}
