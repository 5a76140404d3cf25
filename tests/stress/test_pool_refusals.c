/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads near a pool's maximum. A refusal is held against one lock's answer: when no free
 * was under way from the request on until the world stood still, the same request, made of
 * an engine that has forgotten what it refused, is refused too.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "harness/random.h"

enum { THREADS_MOST = 16, BLOCKS_MOST = 4096, FIXED_BYTES = 4096 };

#define MAXIMUM (1 * MIB)
#define VIRTUAL_MAXIMUM (4 * MIB)

typedef struct block {
    void *ptr;
    size_t bytes;
} block_t;

/* One configuration. */
typedef struct contenders {
    rmm_resource_t *mr;
    int threads;
    uint64_t operations; /* of each thread */
    bool is_fixed;
    uint64_t maximum_bytes;
    pthread_barrier_t filled, done;
    atomic_bool stops; /* written under the lock */
    _Atomic(uint64_t) frees_begun, frees_ended;
    _Atomic(uint64_t) refused, compared, differing;
    pthread_cond_t parked_or_go_on;
    pthread_mutex_t lock; /* protects: */
    int parked;           /* threads that wait until nobody stops them */
    block_t mail[THREADS_MOST];
} contenders_t;

typedef struct member {
    contenders_t *contenders;
    rmm_stream_t stream;
    uint64_t random;
    block_t blocks[BLOCKS_MOST];
    uint32_t count;
    uint64_t live_bytes;
} member_t;

/* A thread counts as parked until it goes on: under the lock, else the next one that stops
 * all would count one that is on its way. */
static void park(contenders_t *contenders)
{
    pthread_mutex_lock(&contenders->lock);
    contenders->parked++;
    pthread_cond_broadcast(&contenders->parked_or_go_on);
    while (atomic_load(&contenders->stops)) {
        pthread_cond_wait(&contenders->parked_or_go_on, &contenders->lock);
    }
    contenders->parked--;
    pthread_mutex_unlock(&contenders->lock);
}

/* False: another thread stops all already. */
static bool stop_others(contenders_t *contenders)
{
    bool is_mine;

    pthread_mutex_lock(&contenders->lock);
    is_mine = !atomic_exchange(&contenders->stops, true);
    while (is_mine && contenders->parked < contenders->threads - 1) {
        pthread_cond_wait(&contenders->parked_or_go_on, &contenders->lock);
    }
    pthread_mutex_unlock(&contenders->lock);
    return is_mine;
}

static void let_others_go_on(contenders_t *contenders)
{
    pthread_mutex_lock(&contenders->lock);
    atomic_store(&contenders->stops, false);
    pthread_cond_broadcast(&contenders->parked_or_go_on);
    pthread_mutex_unlock(&contenders->lock);
}

static void park_for_good(contenders_t *contenders)
{
    pthread_mutex_lock(&contenders->lock);
    contenders->parked++;
    pthread_cond_broadcast(&contenders->parked_or_go_on);
    pthread_mutex_unlock(&contenders->lock);
}

static void free_block(member_t *member, const block_t *block)
{
    contenders_t *contenders = member->contenders;

    atomic_fetch_add(&contenders->frees_begun, 1);
    give(contenders->mr, block->ptr, block->bytes, member->stream);
    atomic_fetch_add(&contenders->frees_ended, 1);
}

static void forget_known_failure(contenders_t *contenders)
{
    engine_t *engine = pool_from_base(contenders->mr)->engine;

    rmm__mutex_lock(rmm__engine_mutex(engine));
    engine->known_failure.units = 0;
    rmm__mutex_unlock(rmm__engine_mutex(engine));
}

/* The world stands still. */
static void ask_again(member_t *member, size_t bytes)
{
    contenders_t *contenders = member->contenders;
    char refusal[256];
    void *ptr;

    (void)snprintf(refusal, sizeof(refusal), "%s", rmm_last_error_message());
    forget_known_failure(contenders);
    atomic_fetch_add(&contenders->compared, 1);
    if (rmm_resource_alloc(contenders->mr, bytes, 0, member->stream, &ptr) == RMM_OK) {
        print_error("%zu bytes are granted, but were refused: %s\n", bytes, refusal);
        atomic_fetch_add(&contenders->differing, 1);
        give(contenders->mr, ptr, bytes, member->stream);
    }
}

static void look_into_refusal(member_t *member, size_t bytes, uint64_t ended_before)
{
    contenders_t *contenders = member->contenders;

    atomic_fetch_add(&contenders->refused, 1);
    if (!stop_others(contenders)) {
        park(contenders);
        return;
    }
    if (atomic_load(&contenders->frees_begun) == ended_before) {
        ask_again(member, bytes);
    }
    let_others_go_on(contenders);
}

static size_t draw_bytes(member_t *member)
{
    if (member->contenders->is_fixed) {
        return FIXED_BYTES;
    }
    return (draw(&member->random, 64) == 0
                ? 256 * (1 + draw(&member->random, 512))
                : (size_t)256 << draw(&member->random, 8) >> draw(&member->random, 2)) *
           (member->contenders->maximum_bytes / MAXIMUM);
}

static void take_one(member_t *member)
{
    contenders_t *contenders = member->contenders;
    uint64_t ended_before = atomic_load(&contenders->frees_ended);
    block_t block = {.bytes = draw_bytes(member)};

    if (rmm_resource_alloc(
            contenders->mr, block.bytes, 0, member->stream, &block.ptr) == RMM_OK) {
        member->blocks[member->count++] = block;
        member->live_bytes += block.bytes;
    } else {
        look_into_refusal(member, block.bytes, ended_before);
    }
}

/* On this thread, or handed to another, whose last one comes back. */
static void give_one(member_t *member)
{
    contenders_t *contenders = member->contenders;
    uint64_t index = draw(&member->random, member->count);
    block_t block = member->blocks[index];

    member->blocks[index] = member->blocks[--member->count];
    member->live_bytes -= block.bytes;
    if (draw(&member->random, 4) == 0) {
        uint64_t whom = draw(&member->random, (uint64_t)contenders->threads);
        block_t other;

        pthread_mutex_lock(&contenders->lock);
        other = contenders->mail[whom];
        contenders->mail[whom] = block;
        pthread_mutex_unlock(&contenders->lock);
        block = other;
    }
    if (block.ptr != NULL) {
        free_block(member, &block);
    }
}

/* Without looking into refusals: not all threads are there yet. */
static void fill_up(member_t *member)
{
    block_t block = {.bytes = draw_bytes(member)};

    if (rmm_resource_alloc(
            member->contenders->mr, block.bytes, 0, member->stream, &block.ptr) ==
        RMM_OK) {
        member->blocks[member->count++] = block;
        member->live_bytes += block.bytes;
    }
}

static void *work(void *argument)
{
    member_t *member = argument;
    contenders_t *contenders = member->contenders;
    /* all of them want a little more than there is */
    uint64_t share =
        contenders->maximum_bytes * 11 / 10 / (uint64_t)contenders->threads;

    for (int i = 0; i < BLOCKS_MOST && member->live_bytes < share * 8 / 11; i++) {
        fill_up(member);
    }
    (void)pthread_barrier_wait(&contenders->filled);
    for (uint64_t i = 0; i < contenders->operations; i++) {
        bool is_full = member->live_bytes >= share || member->count == BLOCKS_MOST;

        if (atomic_load(&contenders->stops)) {
            park(contenders);
        }
        if (!is_full && draw(&member->random, 8) != 0) {
            take_one(member);
        }
        if (member->count != 0 && (is_full || draw(&member->random, 3) == 0)) {
            give_one(member);
        }
    }
    park_for_good(contenders);
    (void)pthread_barrier_wait(&contenders->done);
    while (member->count != 0) {
        free_block(member, &member->blocks[--member->count]);
    }
    return NULL;
}

static uint64_t operations_in_all(void)
{
    uint64_t all = 1000000;

#ifndef NDEBUG
    all /= 4;
#endif
    return getenv("RMM_TEST_QUICK") != NULL ? all / 4 : all;
}

static void run_contenders(contenders_t *contenders, bool is_one_stream)
{
    static member_t members[THREADS_MOST];
    pthread_t threads[THREADS_MOST];
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);

    pthread_barrier_init(&contenders->filled, NULL, (unsigned)contenders->threads);
    pthread_barrier_init(&contenders->done, NULL, (unsigned)contenders->threads);
    for (int i = 0; i < contenders->threads; i++) {
        members[i] = (member_t){
            .contenders = contenders,
            .random = (uint64_t)i + 1,
            .stream = is_one_stream ? stream : make_stream(RMM_STREAM_NON_BLOCKING)};
        assert_int_equal(pthread_create(&threads[i], NULL, work, &members[i]), 0);
    }
    for (int i = 0; i < contenders->threads; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    for (int i = 0; i < contenders->threads; i++) {
        if (contenders->mail[i].ptr != NULL) {
            free_block(&members[0], &contenders->mail[i]);
        }
    }
    pthread_barrier_destroy(&contenders->filled);
    pthread_barrier_destroy(&contenders->done);
    assert_cuda(rmm_sim_device_synchronize());
    for (int i = 0; i < contenders->threads && !is_one_stream; i++) {
        assert_cuda(sim_driver()->stream_destroy(members[i].stream));
    }
    assert_cuda(sim_driver()->stream_destroy(stream));
}

static void refuse_as_one_lock_would(
    rmm_resource_t *(*make)(void), uint64_t maximum_bytes, bool is_fixed)
{
    static const int counts[] = {2, 4, 16};

    for (int i = 0; i < 6; i++) {
        contenders_t contenders = {
            .mr = make(),
            .threads = counts[i / 2],
            .operations = operations_in_all() / 18 / (uint64_t)counts[i / 2],
            .is_fixed = is_fixed,
            .maximum_bytes = maximum_bytes,
            .parked_or_go_on = PTHREAD_COND_INITIALIZER,
            .lock = PTHREAD_MUTEX_INITIALIZER};

        run_contenders(&contenders, i % 2 != 0);
        print_message(
            "%d threads: %llu refused, %llu compared\n", contenders.threads,
            (unsigned long long)atomic_load(&contenders.refused),
            (unsigned long long)atomic_load(&contenders.compared));
        assert_int_equal(atomic_load(&contenders.differing), 0);
        assert_int_equal(stats_of(contenders.mr).current_count, 0);
        assert_int_equal(stats_of(contenders.mr).invalid_free_count, 0);
        rmm_resource_release(contenders.mr);
    }
}

static rmm_resource_t *a_pool(void)
{
    return make_pool(MAXIMUM, MAXIMUM);
}

static rmm_resource_t *a_growing_pool(void)
{
    return make_pool(0, MAXIMUM);
}

static rmm_resource_t *a_virtual_pool(void)
{
    return make_virtual_pool(0, VIRTUAL_MAXIMUM);
}

/* Over a pool that ends at the maximum. */
static rmm_resource_t *a_fixed(void)
{
    rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;
    rmm_resource_t *upstream = make_pool(MAXIMUM, MAXIMUM);
    rmm_resource_t *mr;

    options.block_bytes = FIXED_BYTES;
    options.blocks_per_chunk = 16;
    assert_ok(rmm_fixed_size_resource_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

TEST_CASE(a_pool_refuses_what_one_lock_would_refuse)
{
    refuse_as_one_lock_would(a_pool, MAXIMUM, false);
}

TEST_CASE(a_growing_pool_refuses_what_one_lock_would_refuse)
{
    refuse_as_one_lock_would(a_growing_pool, MAXIMUM, false);
}

TEST_CASE(a_virtual_pool_refuses_what_one_lock_would_refuse)
{
    refuse_as_one_lock_would(a_virtual_pool, VIRTUAL_MAXIMUM, false);
}

TEST_CASE(blocks_of_one_size_are_refused_only_when_all_are_out)
{
    refuse_as_one_lock_would(a_fixed, MAXIMUM, true);
}
