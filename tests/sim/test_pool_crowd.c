/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool in a crowd (lib/resources/pool_front.h): what opens its front, and that nothing
 * of what it holds is lost, refused or counted wrongly then. What a block's user sees is
 * tested by the suites of the pool, which run with a front as well.
 */
#include "sim/pool_harness.h"

#include <pthread.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <string.h>
#include <time.h>

#include "core/host_memory.h"

static bool is_open(rmm_resource_t *pool)
{
    return rmm__pool_front(pool_from_base(pool)) != NULL;
}

static rmm_resource_t *open_now(rmm_resource_t *pool)
{
    assert_true(rmm__pool_front_open(pool_from_base(pool)));
    return pool;
}

/* The structures of all are sound, and nobody has what is free in two of them. */
static void assert_sound(rmm_resource_t *mr)
{
    pool_front_t *front = rmm__pool_front(pool_from_base(mr));

    for (uint32_t i = 0; i <= FRONT_BACK; i++) {
        const pool_t *pool = rmm__front_at(front, i);

        assert_true(pool == NULL || rmm__suballoc_check(pool->blocks) == NULL);
    }
}

static void end(rmm_resource_t *mr)
{
    rmm_resource_release(mr);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

/* --- what opens it ------------------------------------------------------------------ */

typedef struct waiter {
    rmm_resource_t *pool;
    rmm_stream_t stream;
    sem_t go, done;
    _Atomic(bool) is_over;
    pthread_t thread;
} waiter_t;

/* One allocation and its free each time that it may. */
static void *wait_in_turn(void *argument)
{
    waiter_t *waiter = argument;

    for (;;) {
        sem_wait(&waiter->go);
        if (atomic_load(&waiter->is_over)) {
            return NULL;
        }
        give(
            waiter->pool, take(waiter->pool, 1000, waiter->stream), 1000,
            waiter->stream);
        sem_post(&waiter->done);
    }
}

static void start(waiter_t *waiter, rmm_resource_t *pool, rmm_stream_t stream)
{
    waiter->pool = pool;
    waiter->stream = stream;
    atomic_init(&waiter->is_over, false);
    assert_int_equal(sem_init(&waiter->go, 0, 0), 0);
    assert_int_equal(sem_init(&waiter->done, 0, 0), 0);
    assert_int_equal(pthread_create(&waiter->thread, NULL, wait_in_turn, waiter), 0);
}

static void stop(waiter_t *waiter)
{
    atomic_store(&waiter->is_over, true);
    sem_post(&waiter->go);
    assert_int_equal(pthread_join(waiter->thread, NULL), 0);
    sem_destroy(&waiter->go);
    sem_destroy(&waiter->done);
}

/* Both want the pool while this thread holds its lock. */
static void make_both_wait(rmm_resource_t *pool, waiter_t waiters[2])
{
    static const struct timespec moment = {.tv_nsec = 200000};

    rmm__mutex_lock(&pool_from_base(pool)->lock);
    sem_post(&waiters[0].go);
    sem_post(&waiters[1].go);
    nanosleep(
        &moment, NULL); /* most likely they wait by then; else another round does */
    rmm__mutex_unlock(&pool_from_base(pool)->lock);
    sem_wait(&waiters[0].done);
    sem_wait(&waiters[1].done);
}

static void opens_when_streams_wait_for_each_other(void **state)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 0);
    rmm_stream_t streams[2] = {
        make_stream(RMM_STREAM_NON_BLOCKING), make_stream(RMM_STREAM_NON_BLOCKING)};
    waiter_t waiters[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        start(&waiters[i], pool, streams[i]);
    }
    while (!is_open(pool)) {
        make_both_wait(pool, waiters);
    }
    make_both_wait(pool, waiters); /* they go past the lock now */
    for (int i = 0; i < 2; i++) {
        stop(&waiters[i]);
        assert_cuda(sim_driver()->stream_destroy(streams[i]));
    }
    assert_int_equal(stats_of(pool).current_count, 0);
    assert_sound(pool);
    end(pool);
}

static void opens_when_threads_wait_on_one_stream(void **state)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 0);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    waiter_t waiters[2];

    (void)state;
    for (int i = 0; i < 2; i++) {
        start(&waiters[i], pool, stream);
    }
    while (!is_open(pool)) {
        make_both_wait(pool, waiters);
    }
    make_both_wait(pool, waiters);
    for (int i = 0; i < 2; i++) {
        stop(&waiters[i]);
    }
    assert_int_equal(stats_of(pool).current_count, 0);
    assert_sound(pool);
    assert_cuda(sim_driver()->stream_destroy(stream));
    end(pool);
}

static void note_wait(rmm_resource_t *pool)
{
    pool_t *self = pool_from_base(pool);

    rmm__mutex_lock(&self->lock);
    rmm__pool_note_wait_locked(self);
    rmm__mutex_unlock(&self->lock);
}

static void stays_closed_when_waits_are_rare(void **state)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 0);

    (void)state;
    for (uint64_t i = 0; i < 200; i++) {
        note_wait(pool);
        for (int k = 0; k < 200; k++) {
            give(pool, take(pool, 1000, NULL), 1000, NULL);
        }
        assert_false(is_open(pool));
    }
    for (uint64_t i = 0; i < 64; i++) { /* and opens when they are not */
        note_wait(pool);
    }
    give(pool, take(pool, 1000, NULL), 1000, NULL);
    assert_true(is_open(pool));
    end(pool);
}

static void goes_on_without_when_there_is_no_host_memory(void **state)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 0);

    (void)state;
    rmm__host_memory_fail(1);
    assert_false(rmm__pool_front_open(pool_from_base(pool)));
    rmm__host_memory_fail(0);
    assert_false(is_open(pool));
    give(pool, take(pool, 1000, NULL), 1000, NULL);
    open_now(pool);
    open_now(pool); /* another thread found the same */
    give(pool, take(pool, 1000, NULL), 1000, NULL);
    end(pool);
}

/* --- figures ------------------------------------------------------------------------ */

static void assert_figures(rmm_resource_t *pool, uint64_t bytes, uint64_t block_bytes)
{
    rmm_stats_t stats = stats_of(pool);
    rmm_books_sums_t sums;

    rmm__books_sums(&pool->books, &sums);
    assert_int_equal(stats.current_bytes, bytes);
    assert_int_equal(sums.padding_bytes, block_bytes - bytes);
    assert_int_equal(
        rmm__books_free_bytes(&pool->books), stats.reserved_bytes - block_bytes);
}

static void keeps_its_figures_when_the_front_opens(void **state)
{
    uint64_t before = rmm__figure_get(&rmm__places[0].current_bytes);
    rmm_resource_t *pool = make_pool(8 * MIB, 0);
    void *small = take(pool, 1000, NULL);
    void *large = take(pool, 2 * MIB + 1, NULL);
    void *fresh;

    (void)state;
    assert_figures(pool, 1000 + 2 * MIB + 1, 1024 + 2 * MIB + 256);
    open_now(pool);
    assert_figures(pool, 1000 + 2 * MIB + 1, 1024 + 2 * MIB + 256);
    fresh = take(pool, 500, NULL);
    assert_figures(pool, 1500 + 2 * MIB + 1, 1536 + 2 * MIB + 256);
    assert_int_equal(
        rmm__figure_get(&rmm__places[0].current_bytes), before + 1500 + 2 * MIB + 1);
    give(pool, small, 1000, NULL); /* older than the front */
    give(pool, large, 2 * MIB + 1, NULL);
    assert_figures(pool, 500, 512);
    large = take(pool, 20 * MIB, NULL); /* grows */
    assert_figures(pool, 500 + 20 * MIB, 512 + 20 * MIB);
    give(pool, large, 20 * MIB, NULL);
    give(pool, fresh, 500, NULL);
    give(pool, fresh, 500, NULL); /* twice */
    assert_figures(pool, 0, 0);
    assert_int_equal(stats_of(pool).peak_bytes, 500 + 20 * MIB);
    assert_int_equal(stats_of(pool).total_count, 4);
    assert_int_equal(stats_of(pool).invalid_free_count, 1);
    assert_int_equal(rmm__figure_get(&rmm__places[0].current_bytes), before);
    end(pool);
}

static void ends_with_blocks_still_out(void **state)
{
    uint64_t before = rmm__figure_get(&rmm__places[0].current_bytes);
    rmm_resource_t *pool = open_now(make_pool(8 * MIB, 0));

    (void)state;
    (void)take(pool, 1000, NULL);
    (void)take(pool, 2 * MIB, NULL);
    end(pool);
    assert_int_equal(rmm__figure_get(&rmm__places[0].current_bytes), before);
}

/* --- memory ------------------------------------------------------------------------- */

static void refuses_nothing_that_lies_free_in_a_shard(void **state)
{
    enum { COUNT = 4 * 1024 / 16 };
    rmm_resource_t *pool = open_now(make_pool(4 * MIB, 4 * MIB));
    rmm_stream_t first = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_t second = make_stream(RMM_STREAM_NON_BLOCKING);
    void *blocks[COUNT];

    (void)state;
    for (int i = 0; i < COUNT; i++) { /* all of it is the first one's */
        blocks[i] = take(pool, 16 * KIB, first);
    }
    for (int i = 0; i < COUNT; i += 8) {
        give(pool, blocks[i], 16 * KIB, first);
    }
    for (int i = 0; i < COUNT; i += 8) { /* no granule of it is free */
        blocks[i] = take(pool, 16 * KIB, second);
    }
    for (int i = 0; i < COUNT; i++) {
        give(pool, blocks[i], 16 * KIB, i % 2 == 0 ? first : second);
    }
    give(pool, take(pool, 4 * MIB, second), 4 * MIB, second); /* all in one piece */
    assert_sound(pool);
    assert_cuda(sim_driver()->stream_destroy(first));
    assert_cuda(sim_driver()->stream_destroy(second));
    end(pool);
}

static void gives_everything_back_when_trimmed(void **state)
{
    rmm_resource_t *pools[] = {
        open_now(make_pool(0, 0)), open_now(make_virtual_pool(0, 0))};
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);

    (void)state;
    for (int p = 0; p < 2; p++) {
        for (int round = 0; round < 3; round++) {
            void *blocks[300];

            for (int i = 0; i < 300; i++) {
                blocks[i] = take(pools[p], 40 * KIB, i % 2 == 0 ? NULL : stream);
            }
            for (int i = 0; i < 300; i++) {
                give(pools[p], blocks[i], 40 * KIB, i % 3 == 0 ? NULL : stream);
            }
            assert_ok(rmm_resource_trim(pools[p], 0));
            assert_int_equal(stats_of(pools[p]).reserved_bytes, 0);
            assert_int_equal(rmm__books_free_bytes(&pools[p]->books), 0);
            assert_sound(pools[p]);
        }
        rmm_resource_release(pools[p]);
    }
    assert_cuda(sim_driver()->stream_destroy(stream));
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
}

static void grows_nothing_for_streams_that_come_and_go(void **state)
{
    rmm_resource_t *pool = open_now(make_pool(0, 0));
    pool_front_t *front = rmm__pool_front(pool_from_base(pool));
    uint64_t reserved = 0;

    (void)state;
    for (int i = 0; i < 6000; i++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        void *small = take(pool, 1000, stream);
        void *large = take(pool, 2 * MIB, stream);

        give(pool, small, 1000, stream);
        give(pool, large, 2 * MIB, stream);
        assert_cuda(sim_driver()->stream_destroy(stream));
        reserved = i == 2000 ? stats_of(pool).reserved_bytes : reserved;
    }
    assert_true(stats_of(pool).reserved_bytes <= reserved);
    for (uint32_t i = 0; i <= FRONT_BACK; i++) {
        const pool_t *one = rmm__front_at(front, i);

        assert_true(one == NULL || one->stream_capacity <= 128);
    }
    end(pool);
}

/* What the library logs may be told to a program that wants more of the same pool. */
static void use_pool_in_log(rmm_log_level_t level, const char *message, void *argument)
{
    static _Thread_local bool is_inside;
    rmm_resource_t *pool = argument;

    (void)level;
    if (!is_inside && strstr(message, "grew by") != NULL) {
        is_inside = true;
        give(pool, take(pool, 64 * MIB, NULL), 64 * MIB, NULL); /* grows again */
        is_inside = false;
    }
}

static void logs_its_growth_without_a_lock(void **state)
{
    rmm_resource_t *pool = open_now(make_pool(0, 0));

    (void)state;
    assert_ok(rmm_log_set_level(RMM_LEVEL_INFO));
    assert_ok(rmm_log_to_callback(use_pool_in_log, pool));
    give(pool, take(pool, 1000, NULL), 1000, NULL);
    assert_ok(rmm_log_to_callback(NULL, NULL));
    assert_ok(rmm_log_set_level(RMM_LEVEL_OFF));
    assert_true(stats_of(pool).reserved_bytes >= 66 * MIB);
    end(pool);
}

/* --- growth ------------------------------------------------------------------------- */

enum { TURN_BLOCKS = 112, TURN_BYTES = 64 * KIB };

/* A thread of its own, so a shard of its own: most of the pool, and back. */
static void *take_a_turn(void *pool)
{
    void *blocks[TURN_BLOCKS];

    for (int i = 0; i < TURN_BLOCKS; i++) {
        blocks[i] = take(pool, TURN_BYTES, NULL);
    }
    for (int i = 0; i < TURN_BLOCKS; i++) {
        give(pool, blocks[i], TURN_BYTES, NULL);
    }
    return NULL;
}

static void take_turns(rmm_resource_t *pool, int turns)
{
    for (int i = 0; i < turns; i++) {
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, take_a_turn, pool), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
}

/* Now and then a shard may have what another one gave back; not for ever. */
static void grows_a_little_where_shards_live_on_each_other(void **state)
{
    rmm_resource_t *pool = make_pool(8 * MIB, 0);
    uint64_t peak = TURN_BLOCKS * TURN_BYTES;

    (void)state;
    open_now(pool);
    take_turns(pool, 1);
    assert_int_equal(stats_of(pool).reserved_bytes, 8 * MIB);
    take_turns(pool, 60);
    assert_int_equal(stats_of(pool).peak_bytes, peak);
    assert_in_range(
        stats_of(pool).reserved_bytes, 8 * MIB + 1, peak + peak / 3 + 2 * MIB);
    end(pool);
}

/* --- blocks of one size ------------------------------------------------------------- */

static bool opens_in_a_crowd(uint64_t block_bytes, uint64_t blocks_per_chunk)
{
    rmm_resource_t *mr = make_fixed(block_bytes, blocks_per_chunk);
    bool opened;

    for (uint64_t i = 0; i < 64; i++) {
        note_wait(mr);
    }
    give(mr, take(mr, 100, NULL), 100, NULL);
    opened = is_open(mr);
    end(mr);
    return opened;
}

static void opens_for_blocks_of_one_size_only_where_none_is_lost(void **state)
{
    (void)state;
    assert_true(opens_in_a_crowd(4096, 1024));
    assert_true(opens_in_a_crowd(64 * KIB, 64));
    assert_false(opens_in_a_crowd(MIB, 128));      /* larger than a granule */
    assert_false(opens_in_a_crowd(3 * 256, 8192)); /* no part of one */
    assert_false(opens_in_a_crowd(4096, 100));     /* chunks that may begin anywhere */
}

static void hands_out_every_block_of_one_size(void **state)
{
    enum { COUNT = 2048 };
    rmm_resource_t *mr = open_now(make_fixed(4096, 1024));
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    void *blocks[COUNT];

    (void)state;
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < COUNT; i++) {
            blocks[i] = take(mr, 4096, i % 3 == 0 ? NULL : stream);
        }
        assert_int_equal(stats_of(mr).reserved_bytes, COUNT * 4096);
        for (int i = 0; i < COUNT; i++) {
            give(mr, blocks[i], 4096, i % 2 == 0 ? NULL : stream);
        }
        assert_ok(rmm_resource_trim(mr, (size_t)COUNT * 4096)); /* all is clean */
    }
    assert_cuda(sim_driver()->stream_destroy(stream));
    end(mr);
}

/* --- threads against a model -------------------------------------------------------- */

enum { MODEL_THREADS = 4, MODEL_STEPS = 1200, MODEL_LIVE = 160, MODEL_SEEDS = 6 };
#define MODEL_BYTES (48 * MIB)

typedef struct model_block {
    char *ptr; /* NULL: none */
    size_t bytes;
} model_block_t;

/* What all threads have out: any of them may free any of it. */
typedef struct model {
    rmm_resource_t *pool;
    pthread_mutex_t lock; /* protects all below */
    model_block_t live[MODEL_LIVE];
    uint64_t live_bytes;
    uint32_t mixed; /* blocks that were in another's place */
} model_t;

typedef struct model_thread {
    model_t *model;
    rmm_stream_t streams[2];
    uint64_t random, total_bytes;
    pthread_t thread;
} model_thread_t;

static uint64_t draw(model_thread_t *self, uint64_t bound)
{
    self->random = self->random * 6364136223846793005ull + 1442695040888963407ull;
    return (self->random >> 33) % bound;
}

static bool overlaps(const model_block_t *a, const model_block_t *b)
{
    return a->ptr != NULL && a->ptr < b->ptr + b->bytes && b->ptr < a->ptr + a->bytes;
}

/* Into a place that was empty before; what was there is the caller's to free. */
static model_block_t exchange(model_t *model, uint64_t index, model_block_t fresh)
{
    model_block_t old;

    pthread_mutex_lock(&model->lock);
    old = model->live[index];
    model->live[index] = (model_block_t){NULL, 0};
    for (int i = 0; fresh.ptr != NULL && i < MODEL_LIVE; i++) {
        model->mixed += overlaps(&model->live[i], &fresh);
    }
    model->live[index] = fresh;
    model->live_bytes += fresh.bytes - old.bytes;
    pthread_mutex_unlock(&model->lock);
    return old;
}

static void *model_work(void *argument)
{
    model_thread_t *self = argument;
    rmm_resource_t *pool = self->model->pool;

    for (int i = 0; i < MODEL_STEPS; i++) {
        model_block_t block = {
            NULL, 1 + draw(self, (uint64_t)1 << (8 + draw(self, 13)))};
        rmm_stream_t stream = self->streams[draw(self, 2)];
        void *ptr;

        if (draw(self, 100) < 52 &&
            rmm_resource_alloc(pool, block.bytes, 0, stream, &ptr) == RMM_OK) {
            block.ptr = ptr;
            self->total_bytes += block.bytes;
        } else {
            block.bytes = 0;
        }
        block = exchange(self->model, draw(self, MODEL_LIVE), block);
        if (block.ptr != NULL) {
            give(pool, block.ptr, block.bytes, self->streams[draw(self, 2)]);
        }
    }
    return NULL;
}

static void run_model(model_t *model, uint64_t seed)
{
    model_thread_t threads[MODEL_THREADS];
    uint64_t total_bytes = 0;

    for (uint64_t i = 0; i < MODEL_THREADS; i++) {
        threads[i] = (model_thread_t){.model = model, .random = seed * 1000 + i};
        threads[i].streams[0] = make_stream(RMM_STREAM_NON_BLOCKING);
        threads[i].streams[1] = i == 0 ? NULL : make_stream(RMM_STREAM_NON_BLOCKING);
        assert_int_equal(
            pthread_create(&threads[i].thread, NULL, model_work, &threads[i]), 0);
    }
    for (int i = 0; i < MODEL_THREADS; i++) {
        assert_int_equal(pthread_join(threads[i].thread, NULL), 0);
        total_bytes += threads[i].total_bytes;
    }
    assert_int_equal(model->mixed, 0);
    assert_int_equal(stats_of(model->pool).current_bytes, model->live_bytes);
    assert_int_equal(stats_of(model->pool).total_bytes, total_bytes);
    for (int i = 0; i < MODEL_LIVE; i++) {
        if (model->live[i].ptr != NULL) {
            give(model->pool, model->live[i].ptr, model->live[i].bytes, NULL);
        }
    }
    for (int i = 0; i < MODEL_THREADS; i++) {
        for (int k = 0; k < 2; k++) {
            if (threads[i].streams[k] != NULL) {
                assert_cuda(sim_driver()->stream_destroy(threads[i].streams[k]));
            }
        }
    }
}

static void agrees_with_a_model_under_seeds(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= MODEL_SEEDS; seed++) {
        rmm_resource_t *pool = seed % 2 == 0 ? make_pool(MODEL_BYTES, MODEL_BYTES)
                                             : make_virtual_pool(0, MODEL_BYTES);
        model_t model = {.pool = open_now(pool), .lock = PTHREAD_MUTEX_INITIALIZER};

        print_message("seed %lu\n", (unsigned long)seed);
        run_model(&model, seed);
        assert_figures(pool, 0, 0);
        assert_int_equal(stats_of(pool).invalid_free_count, 0);
        assert_sound(pool);
        give(pool, take(pool, MODEL_BYTES, NULL), MODEL_BYTES, NULL); /* in one piece */
        end(pool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(opens_when_streams_wait_for_each_other),
        cmocka_unit_test(opens_when_threads_wait_on_one_stream),
        cmocka_unit_test(stays_closed_when_waits_are_rare),
        cmocka_unit_test(goes_on_without_when_there_is_no_host_memory),
        cmocka_unit_test(keeps_its_figures_when_the_front_opens),
        cmocka_unit_test(ends_with_blocks_still_out),
        cmocka_unit_test(refuses_nothing_that_lies_free_in_a_shard),
        cmocka_unit_test(gives_everything_back_when_trimmed),
        cmocka_unit_test(grows_nothing_for_streams_that_come_and_go),
        cmocka_unit_test(logs_its_growth_without_a_lock),
        cmocka_unit_test(grows_a_little_where_shards_live_on_each_other),
        cmocka_unit_test(opens_for_blocks_of_one_size_only_where_none_is_lost),
        cmocka_unit_test(hands_out_every_block_of_one_size),
        cmocka_unit_test(agrees_with_a_model_under_seeds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
