/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the simulated GPU is for: a pool that hands a block to another stream without the
 * needed order corrupts data under some seed, and its correct twin under none.
 *
 * The pool is one block with a free list of one. Its mistakes are the usual ones.
 */
#include "sim/driver/sim_harness.h"

#include "driver/sim/control.h"

#define BLOCK_BYTES 4096
#define ROUNDS 4

typedef enum mistake {
    NONE,
    NO_ORDER,        /* forgets the event */
    WAITS_TOO_EARLY, /* waits before the record: for nothing */
    RECORDS_WRONG,   /* records on the stream that takes, not on the one that gave */
    KEEPS_HANDLE, /* remembers the stream by its handle, takes a new one for the old */
    FREES_TOO_EARLY /* lets the host write before the device is done */
} mistake_t;

typedef struct toy_pool {
    mistake_t mistake;
    char *block;
    rmm_sim_event_t event;
    rmm_stream_t given_by;
    uint64_t given_by_id;
} toy_pool_t;

static uint64_t stream_id(rmm_stream_t stream)
{
    rmm_stream_key_t key;

    assert_cuda(sim_driver()->stream_key(stream, &key));
    return key.stream_id;
}

static char *pool_take(toy_pool_t *pool, rmm_stream_t stream)
{
    bool same = pool->mistake == KEEPS_HANDLE ? stream == pool->given_by
                                              : stream_id(stream) == pool->given_by_id;

    if (pool->given_by_id == 0 || same || pool->mistake == NO_ORDER) {
        return pool->block;
    }
    if (pool->mistake == RECORDS_WRONG) {
        assert_cuda(rmm_sim_event_record(pool->event, stream));
    }
    assert_cuda(rmm_sim_stream_wait_event(stream, pool->event));
    return pool->block;
}

static void pool_give(toy_pool_t *pool, rmm_stream_t stream)
{
    pool->given_by = stream;
    pool->given_by_id = stream_id(stream);
    if (pool->mistake != WAITS_TOO_EARLY) {
        assert_cuda(rmm_sim_event_record(pool->event, stream));
    }
}

/* Fill the block and copy out what is in it then. */
static void use_block(toy_pool_t *pool, rmm_stream_t stream, int value, char *seen)
{
    char *block = pool_take(pool, stream);

    assert_cuda(rmm_sim_memset_async(block, value, BLOCK_BYTES, stream));
    assert_cuda(rmm_sim_memcpy_async(seen, block, BLOCK_BYTES, stream));
    pool_give(pool, stream);
}

static bool is_all(const char *seen, int value)
{
    for (size_t i = 0; i < BLOCK_BYTES; i++) {
        if (seen[i] != (char)value) {
            return false;
        }
    }
    return true;
}

/* Streams take turns with the block; with KEEPS_HANDLE each is a new one with the old
 * one's handle. True if all saw their own bytes. */
static bool data_is_right(mistake_t mistake, uint64_t seed)
{
    static char seen[ROUNDS][BLOCK_BYTES];
    toy_pool_t pool = {.mistake = mistake};
    bool right = true;
    void *block;

    rmm__sim_reseed(seed);
    assert_cuda(sim_driver()->mem_alloc(&block, BLOCK_BYTES));
    pool.block = block;
    assert_cuda(rmm_sim_event_create(&pool.event));
    for (int i = 0; i < ROUNDS; i++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);

        use_block(&pool, stream, 'a' + i, seen[i]);
        assert_cuda(sim_driver()->stream_destroy(stream));
    }
    if (mistake == FREES_TOO_EARLY) {
        memset(block, 'z', BLOCK_BYTES);
    }
    assert_cuda(rmm_sim_device_synchronize());
    for (int i = 0; i < ROUNDS; i++) {
        right = right && is_all(seen[i], 'a' + i);
    }
    if (mistake == FREES_TOO_EARLY) {
        right = right && is_all(block, 'z');
    }
    assert_cuda(rmm_sim_event_destroy(pool.event));
    assert_cuda(sim_driver()->mem_free(block));
    return right;
}

static int count_corrupted(mistake_t mistake)
{
    int corrupted = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        corrupted += !data_is_right(mistake, seed);
    }
    assert_int_equal(rmm_sim_violations(), 0);
    return corrupted;
}

TEST_CASE(never_corrupts_the_data_of_a_correct_pool)
{
    assert_int_equal(count_corrupted(NONE), 0);
}

TEST_CASE(catches_a_pool_that_forgets_the_order)
{
    assert_true(count_corrupted(NO_ORDER) > SEEDS / 4);
}

TEST_CASE(catches_a_pool_that_waits_for_an_event_of_the_past)
{
    assert_true(count_corrupted(WAITS_TOO_EARLY) > SEEDS / 4);
}

TEST_CASE(catches_a_pool_that_records_on_the_wrong_stream)
{
    assert_true(count_corrupted(RECORDS_WRONG) > SEEDS / 4);
}

TEST_CASE(catches_a_pool_that_takes_a_recycled_stream_for_the_old_one)
{
    assert_true(count_corrupted(KEEPS_HANDLE) > SEEDS / 4);
}

TEST_CASE(catches_a_host_that_does_not_wait)
{
    assert_true(count_corrupted(FREES_TOO_EARLY) > SEEDS / 4);
}
