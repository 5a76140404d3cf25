/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one thread does between two steps of another that holds no lock: forced, through a
 * changed driver table or an upstream of callbacks, because random traffic meets it rarely.
 */
#include "sim/driver/driver_hooks.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#include "core/host_memory.h"
#include "driver/sim/control.h"

#define BLOCK (4 * MIB)

/* --- a call in the middle ------------------------------------------------------------ */

static rmm_driver_t hooked; /* the simulated driver, with some calls changed */
static void (*interlude)(void);
static rmm_resource_t *pool;
static rmm_stream_t streams[2];

static void *run_function(void *argument)
{
    void (**function)(void) = argument;

    (*function)();
    return NULL;
}

/* On a thread of its own, which has no turn; once. */
static void run_interlude(void)
{
    void (*run)(void) = interlude;
    pthread_t thread;

    interlude = NULL;
    if (run != NULL) {
        assert_int_equal(pthread_create(&thread, NULL, run_function, &run), 0);
        assert_int_equal(pthread_join(thread, NULL), 0);
    }
}

static int free_then_interlude(void *ptr)
{
    int error = sim_driver()->mem_free(ptr);

    run_interlude();
    return error;
}

static int unmap_after_interlude(void *ptr, size_t bytes)
{
    run_interlude();
    return sim_driver()->address_unmap(ptr, bytes);
}

static int
create_after_interlude(size_t bytes, uint32_t flags, rmm_driver_physical_t *physical)
{
    run_interlude();
    return sim_driver()->physical_create(bytes, flags, physical);
}

/* The pool's calls go through the hooks from here on. */
static void hook(rmm_resource_t *mr)
{
    pool = mr;
    interlude = NULL;
    hooked = *sim_driver();
    pool_use_driver(pool, &hooked);
    for (int i = 0; i < 2; i++) {
        streams[i] = make_stream(RMM_STREAM_NON_BLOCKING);
    }
}

static void unhook(void)
{
    assert_null(interlude);
    assert_cuda(rmm_sim_device_synchronize());
    for (int i = 0; i < 2; i++) {
        assert_cuda(sim_driver()->stream_destroy(streams[i]));
    }
    assert_int_equal(stats_of(pool).current_bytes, 0);
    rmm_resource_release(pool);
    assert_int_equal(rmm_sim_violations(), 0);
}

/* --- a trim, while the only stream frees --------------------------------------------- */

static void *in_use;

static void use_and_free(void)
{
    launch_fill(in_use, BLOCK, 1, streams[0]);
    give(pool, in_use, BLOCK, streams[0]);
}

static void free_during_a_trim(rmm_resource_t *mr)
{
    void *other;

    hook(mr);
    hooked.mem_free = free_then_interlude;
    other = take(pool, BLOCK, streams[0]);
    in_use = take(pool, BLOCK, streams[0]);
    give(pool, other, BLOCK, streams[0]);
    interlude = use_and_free;
    assert_ok(rmm_resource_trim(pool, 0));
    /* its stream was not waited for */
    assert_true(stats_of(pool).reserved_bytes >= BLOCK);
    unhook();
}

TEST_CASE(a_trim_keeps_what_the_only_stream_freed_meanwhile)
{
    free_during_a_trim(make_pool(0, 0));
}

TEST_CASE(a_virtual_trim_keeps_what_the_only_stream_freed_meanwhile)
{
    free_during_a_trim(make_virtual_pool(0, 0));
}

enum { PIECES = 8 };
#define PIECE (2 * MIB)

static void use_and_free_piece(void)
{
    launch_fill(in_use, PIECE, 1, streams[0]);
    give(pool, in_use, PIECE, streams[0]);
}

/* Free pieces are mapped elsewhere, not one that another thread freed on the only stream
 * behind the synchronise: its work would write to addresses without memory. */
TEST_CASE(compacting_leaves_what_the_only_stream_freed_meanwhile)
{
    static const int others[] = {1, 4, 6, 7};
    void *pieces[PIECES];
    void *large;

    hook(make_virtual_pool(PIECES * PIECE, PIECES * PIECE));
    hooked.mem_free = free_then_interlude;
    for (int i = 0; i < PIECES; i++) {
        pieces[i] = take(pool, PIECE, streams[0]);
    }
    give(pool, pieces[0], PIECE, streams[0]);
    give(pool, pieces[2], PIECE, streams[0]);
    give(pool, pieces[3], PIECE, streams[0]);
    in_use = pieces[5]; /* the uppermost would be taken first */
    interlude = use_and_free_piece;
    large = take(pool, 3 * PIECE, streams[0]);
    give(pool, large, 3 * PIECE, streams[0]);
    for (int i = 0; i < 4; i++) {
        give(pool, pieces[others[i]], PIECE, streams[0]);
    }
    unhook();
}

/* --- two growths at once ------------------------------------------------------------- */

static void *second;

static void grow_as_well(void)
{
    if (rmm_resource_alloc(pool, 3 * BLOCK / 2, 0, streams[1], &second) != RMM_OK) {
        second = NULL;
    }
}

static int alloc_after_interlude(void **ptr, size_t bytes)
{
    if (bytes >= BLOCK) {
        run_interlude();
    }
    return sim_driver()->mem_alloc(ptr, bytes);
}

static rmm_status_t
alloc_upstream(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    return alloc_after_interlude(ptr_out, bytes) == RMM_DRIVER_OK
               ? RMM_OK
               : RMM_ERR_OUT_OF_MEMORY;
}

static void
dealloc_upstream(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    assert_cuda(sim_driver()->mem_free(ptr));
}

static rmm_resource_t *make_pool_over(
    rmm_callback_alloc_fn alloc, rmm_callback_dealloc_fn dealloc,
    uint64_t maximum_bytes)
{
    rmm_callback_options_t callbacks = RMM_CALLBACK_OPTIONS_INIT;
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *upstream;
    rmm_resource_t *mr;

    callbacks.alloc = alloc;
    callbacks.dealloc = dealloc;
    options.maximum_bytes = maximum_bytes;
    assert_ok(rmm_callback_resource_create(&callbacks, &upstream));
    assert_ok(rmm_pool_resource_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return share(mr);
}

static rmm_resource_t *make_pool_of_callbacks(uint64_t maximum_bytes)
{
    return make_pool_over(alloc_upstream, dealloc_upstream, maximum_bytes);
}

/* Each fits the maximum, both together do not. */
static void grow_at_once(void)
{
    void *first = NULL;

    interlude = grow_as_well;
    if (rmm_resource_alloc(pool, 3 * BLOCK / 2, 0, streams[0], &first) != RMM_OK) {
        first = NULL;
    }
    assert_null(interlude);
    assert_true((first != NULL) + (second != NULL) == 1);
    assert_true(stats_of(pool).reserved_bytes <= 2 * BLOCK);
    give(pool, first, first != NULL ? 3 * BLOCK / 2 : 0, streams[0]);
    give(pool, second, second != NULL ? 3 * BLOCK / 2 : 0, streams[1]);
    first = take(pool, 2 * BLOCK, streams[0]); /* all of it, by one of them */
    assert_int_equal(
        rmm_resource_alloc(pool, 256, 0, streams[0], &second), RMM_ERR_OUT_OF_MEMORY);
    assert_true(stats_of(pool).reserved_bytes <= 2 * BLOCK);
    give(pool, first, 2 * BLOCK, streams[0]);
    unhook();
}

TEST_CASE(two_growths_at_once_stay_within_the_maximum)
{
    hook(make_pool_of_callbacks(2 * BLOCK));
    grow_at_once();
}

TEST_CASE(two_virtual_growths_at_once_stay_within_the_maximum)
{
    hook(make_virtual_pool(0, 2 * BLOCK));
    hooked.physical_create = create_after_interlude;
    grow_at_once();
}

/* --- a request, while a trim gives back what would serve it -------------------------- */

#define ASKED (512 * KIB)

static pthread_t asking[2];
static rmm_status_t answers[2];

static void *ask(void *argument)
{
    rmm_status_t *answer = argument;
    void *ptr;

    *answer = rmm_resource_alloc(pool, ASKED, 0, streams[1], &ptr);
    if (*answer == RMM_OK) {
        give(pool, ptr, ASKED, streams[1]);
    }
    return NULL;
}

static void begin_to_ask(int index, useconds_t sleep_us)
{
    answers[index] = RMM_ERR_UNSUPPORTED;
    assert_int_equal(pthread_create(&asking[index], NULL, ask, &answers[index]), 0);
    (void)usleep(sleep_us);
}

static void expect_served(int index)
{
    assert_int_equal(pthread_join(asking[index], NULL), 0);
    assert_int_equal(answers[index], RMM_OK);
}

/* It may have to wait for the other thread, which goes on. */
static void begin_to_ask_once(void)
{
    begin_to_ask(0, 50000);
}

/* The first one's turn does not come in time: it tries without, and again. */
static void begin_to_ask_twice(void)
{
    begin_to_ask(0, RMM_TURN_WAIT_NS / 1000 * 3 / 2);
    begin_to_ask(1, 50000);
}

static void trim_while_others_ask(void (*others)(void))
{
    void *block;

    hook(make_virtual_pool(2 * MIB, 2 * MIB));
    hooked.address_unmap = unmap_after_interlude;
    block = take(pool, MIB, streams[0]);
    give(pool, block, MIB, streams[0]);
    interlude = others;
    assert_ok(rmm_resource_trim(pool, 0));
    expect_served(0);
}

TEST_CASE(a_request_is_served_while_a_trim_gives_that_memory_back)
{
    trim_while_others_ask(begin_to_ask_once);
    unhook();
}

TEST_CASE(requests_are_served_though_a_trim_is_slow)
{
    trim_while_others_ask(begin_to_ask_twice);
    expect_served(1);
    unhook();
}

/* Only the thread that grows was there before it. */
static void begin_to_ask_without_the_turn(void)
{
    begin_to_ask(0, RMM_TURN_WAIT_NS / 1000 * 3 / 2);
}

static void grow_while_others_ask(void (*others)(void))
{
    void *block;

    hook(make_pool_of_callbacks(BLOCK));
    interlude = others;
    block = take(pool, BLOCK - 2 * ASKED, streams[0]);
    expect_served(0);
    give(pool, block, BLOCK - 2 * ASKED, streams[0]);
}

TEST_CASE(a_request_is_served_though_growth_is_slow)
{
    grow_while_others_ask(begin_to_ask_without_the_turn);
    unhook();
}

/* What is on its way is more than its request needs. */
TEST_CASE(requests_are_served_though_growth_is_slow)
{
    void *block;

    hook(make_pool_of_callbacks(BLOCK));
    interlude = begin_to_ask_twice;
    block = take(pool, BLOCK - 2 * ASKED, streams[0]);
    expect_served(0);
    expect_served(1);
    give(pool, block, BLOCK - 2 * ASKED, streams[0]);
    unhook();
}

/* Upstream has memory for the thread that asks second only, whose growth ends amid the first
 * one's second attempt. */
static pthread_t refused;
static atomic_bool grows, may_end;
static unsigned waits; /* of the first thread, for the device */

static void wait_for(atomic_bool *flag)
{
    while (!atomic_load(flag)) {
        (void)usleep(1000);
    }
}

static rmm_status_t
alloc_for_the_second(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    if (!pthread_equal(pthread_self(), refused)) {
        atomic_store(&grows, true);
        wait_for(&may_end);
        return alloc_upstream(bytes, stream, payload, ptr_out);
    }
    if (waits == 0 && !atomic_load(&grows)) {
        begin_to_ask(0, 0);
        wait_for(&grows);
    }
    return RMM_ERR_OUT_OF_MEMORY;
}

static int free_after_the_others_growth(void *ptr)
{
    if (pthread_equal(pthread_self(), refused) && ++waits == 2) {
        atomic_store(&may_end, true);
        expect_served(0);
    }
    return sim_driver()->mem_free(ptr);
}

TEST_CASE(what_a_thread_that_came_later_grows_by_serves_the_first)
{
    rmm_status_t status;
    void *block;

    hook(make_pool_over(alloc_for_the_second, dealloc_upstream, BLOCK));
    hooked.mem_free = free_after_the_others_growth;
    refused = pthread_self();
    status = rmm_resource_alloc(pool, ASKED, 0, streams[0], &block);
    if (waits < 2) {
        atomic_store(&may_end, true);
        expect_served(0);
    }
    assert_ok(status);
    give(pool, block, ASKED, streams[0]);
    unhook();
}

/* --- what is known to fail ----------------------------------------------------------- */

static void *blocks[8];

/* Eight blocks of a full pool; the second, the fourth and the sixth are free. */
static void fill_pool(void)
{
    for (int i = 0; i < 8; i++) {
        blocks[i] = take(pool, MIB, streams[i % 2]);
    }
    give(pool, blocks[1], MIB, streams[1]);
    give(pool, blocks[3], MIB, streams[1]);
    give(pool, blocks[5], MIB, streams[1]);
}

static void empty_pool(void)
{
    for (int i = 0; i < 8; i++) {
        if (i == 0 || i == 4 || i >= 6) {
            give(pool, blocks[i], MIB, streams[i % 2]);
        }
    }
}

static void free_between(void)
{
    give(pool, blocks[2], MIB, streams[1]);
}

static void free_while_another_asks(rmm_resource_t *mr)
{
    void *ptr = NULL;

    hook(mr);
    hooked.mem_free = free_then_interlude;
    fill_pool();
    interlude = free_between;
    if (rmm_resource_alloc(pool, 3 * MIB, 0, streams[0], &ptr) != RMM_OK) {
        assert_ok(rmm_resource_alloc(pool, 3 * MIB, 0, streams[0], &ptr));
    }
    give(pool, ptr, 3 * MIB, streams[0]);
    empty_pool();
    unhook();
}

TEST_CASE(a_block_freed_during_a_refused_request_serves_the_next)
{
    free_while_another_asks(make_pool(8 * MIB, 8 * MIB));
}

static void small_free_between(void)
{
    void *small = blocks[2];

    give(pool, small, 4 * KIB, streams[1]);
}

/* Small, so that no event covers it; and not what the synchronise proves. */
TEST_CASE(a_small_block_freed_during_a_request_serves_it)
{
    void *rest;
    void *ptr;

    hook(make_pool(16 * KIB, 16 * KIB));
    hooked.mem_free = free_then_interlude;
    for (int i = 0; i < 4; i++) {
        blocks[i] = take(pool, 4 * KIB, streams[1]);
    }
    give(pool, blocks[1], 4 * KIB, streams[1]);
    give(pool, blocks[3], 4 * KIB, streams[1]);
    interlude = small_free_between;
    ptr = take(pool, 8 * KIB, streams[0]);
    give(pool, ptr, 8 * KIB, streams[0]);
    give(pool, blocks[0], 4 * KIB, streams[1]);
    rest = take(pool, 16 * KIB, streams[0]);
    give(pool, rest, 16 * KIB, streams[0]);
    unhook();
}

static void *last_chunk;

static void free_last_chunk(void)
{
    give(pool, last_chunk, 2 * MIB, streams[0]);
}

/* On the only stream, by another thread: its chunk is not known to be clean. */
TEST_CASE(a_chunk_freed_during_a_refused_request_is_given_back_for_the_next)
{
    void *first;
    void *rest;
    void *both = NULL;

    hook(make_pool(
        4 * MIB, 8 * MIB)); /* three chunks: the last two are in use in part */
    hooked.mem_free = free_then_interlude;
    first = take(pool, 4 * MIB, streams[0]);
    rest = take(pool, 512 * KIB, streams[0]);
    last_chunk = take(pool, 2 * MIB, streams[0]);
    assert_int_equal(pool_from_base(pool)->engine->chunks.count, 3);
    give(pool, first, 4 * MIB, streams[0]);
    interlude = free_last_chunk;
    if (rmm_resource_alloc(pool, 5 * MIB, 0, streams[0], &both) != RMM_OK) {
        assert_null(interlude);
        assert_ok(rmm_resource_alloc(pool, 5 * MIB, 0, streams[0], &both));
    }
    give(pool, both, 5 * MIB, streams[0]);
    give(pool, rest, 512 * KIB, streams[0]);
    unhook();
}

static journal_t journal;
static size_t
    returned_in_use; /* chunks that went back before the work on them was done */

static void free_last_chunk_in_use(void)
{
    assert_cuda(launch_mark(&journal, 1, streams[0]));
    free_last_chunk();
}

static int free_if_done(void *ptr)
{
    returned_in_use += ptr == last_chunk && journal.count == 0;
    return sim_driver()->mem_free(ptr);
}

static void dealloc_if_done(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    assert_cuda(free_if_done(ptr));
}

/* Chunks are given back to make room for a larger one: not what another thread freed on the
 * only stream behind the synchronise. */
TEST_CASE(a_chunk_freed_during_a_request_goes_back_when_its_work_is_done)
{
    void *first, *rest, *both;

    hook(make_pool_over(alloc_upstream, dealloc_if_done, 8 * MIB));
    hooked.mem_free = free_then_interlude;
    first = take(pool, 4 * MIB, streams[0]);
    rest = take(pool, 512 * KIB, streams[0]);
    last_chunk = take(pool, 2 * MIB, streams[0]);
    give(pool, first, 4 * MIB, streams[0]);
    journal.count = 0;
    returned_in_use = 0;
    interlude = free_last_chunk_in_use;
    both = take(pool, 5 * MIB, streams[0]);
    assert_int_equal(returned_in_use, 0);
    give(pool, both, 5 * MIB, streams[0]);
    give(pool, rest, 512 * KIB, streams[0]);
    unhook();
}

/* Nothing but a synchronise of the device helps. */
static void hide_events(void)
{
    hooked.event_query = is_never_done;
    hooked.stream_wait_event = refuse_to_wait;
}

static int fail_to_free(void *ptr)
{
    if (interlude == NULL) {
        return sim_driver()->mem_free(ptr);
    }
    return RMM_DRIVER_INVALID_VALUE; /* and the block stays */
}

static void do_nothing(void)
{
}

TEST_CASE(a_failed_synchronise_is_no_reason_to_refuse_for_ever)
{
    void *ptr;

    hook(make_pool(8 * KIB, 8 * KIB));
    hooked.mem_free = fail_to_free;
    hide_events();
    ptr = take(pool, 4 * KIB, streams[1]);
    give(pool, ptr, 4 * KIB, streams[1]);
    interlude = do_nothing;
    assert_int_not_equal(
        rmm_resource_alloc(pool, 8 * KIB, 0, streams[0], &ptr), RMM_OK);
    interlude = NULL;
    assert_ok(rmm_resource_alloc(pool, 8 * KIB, 0, streams[0], &ptr));
    give(pool, ptr, 8 * KIB, streams[0]);
    unhook();
}

/* --- figures ------------------------------------------------------------------------- */

TEST_CASE(the_largest_block_may_be_one_of_an_unknown_stream)
{
    void *large;
    void *small;
    void *last;

    hook(make_pool(10 * MIB, 10 * MIB));
    hooked.stream_key = hide_key;
    small = take(pool, MIB, streams[0]);
    large = take(pool, 6 * MIB, streams[0]);
    last = take(pool, MIB, streams[0]);
    give(pool, small, MIB, streams[0]); /* alone */
    is_key_hidden = true;
    give(pool, large, 6 * MIB, streams[0]);
    is_key_hidden = false;
    give(pool, last, MIB, streams[1]); /* not alone any more */
    assert_int_equal(pool_from_base(pool)->engine->figures.largest_free_bytes, 6 * MIB);
    unhook();
}

/* --- frees beside what a synchronise is to prove -------------------------------------- */

enum { BESIDE = 12 };

static void *beside[BESIDE]; /* blocks in the order of their addresses */
static int beside_left;
static bool beside_is_hidden;

/* The one below what is free already; during the next synchronise the next one. */
static void free_one_beside(void)
{
    is_key_hidden = beside_is_hidden;
    give(pool, beside[--beside_left], 256, streams[1]);
    is_key_hidden = false;
    if (beside_left > 0) {
        interlude = free_one_beside;
    }
}

/* What was freed before the one synchronise is granted, though each is disturbed. */
static void free_beside_what_is_wanted(void)
{
    const uint64_t large_bytes = 4 * MIB - BESIDE * 256;
    void *large, *rest, *wanted;
    uint64_t syncs;

    hook(make_pool(8 * MIB, 8 * MIB));
    hooked.stream_key = hide_key;
    hooked.mem_free = free_then_interlude;
    hide_events();
    for (beside_left = 0; beside_left < BESIDE; beside_left++) {
        beside[beside_left] = take(pool, 256, streams[1]);
    }
    large = take(pool, large_bytes, streams[1]);
    rest = take(pool, 4 * MIB, streams[0]);
    is_key_hidden = beside_is_hidden;
    give(pool, large, large_bytes, streams[1]);
    is_key_hidden = false;
    syncs = pool_from_base(pool)->engine->figures.sync_count;
    interlude = free_one_beside;
    wanted = take(pool, large_bytes, streams[0]);
    assert_int_equal(pool_from_base(pool)->engine->figures.sync_count, syncs + 1);
    assert_int_equal(beside_left, BESIDE - 1);
    interlude = NULL;
    give(pool, wanted, large_bytes, streams[0]);
    give(pool, rest, 4 * MIB, streams[0]);
    while (beside_left > 0) {
        give(pool, beside[--beside_left], 256, streams[1]);
    }
    wanted = take(pool, 8 * MIB, streams[0]); /* all has merged again */
    give(pool, wanted, 8 * MIB, streams[0]);
    unhook();
}

TEST_CASE(a_concurrent_free_does_not_weaken_what_a_synchronise_proves)
{
    beside_is_hidden = false;
    free_beside_what_is_wanted();
}

TEST_CASE(nor_does_a_free_on_an_unknown_stream)
{
    beside_is_hidden = true;
    free_beside_what_is_wanted();
}

/* --- an unproven free of another device ---------------------------------------------- */

static void free_without_host_memory(void *block, rmm_stream_t stream)
{
    rmm__host_memory_fail(1);
    give(pool, block, 64 * KIB, stream);
    assert_true(rmm__host_memory_fail_struck());
    rmm__host_memory_fail(0);
}

static void free_untold(void *block, rmm_stream_t stream)
{
    is_key_hidden = true;
    give(pool, block, 64 * KIB, stream);
    is_key_hidden = false;
}

static void
use_often(void *block, uint64_t number, uint64_t *mixups, rmm_stream_t stream)
{
    for (int i = 0; i < 8; i++) {
        launch_fill(block, 64 * KIB, number, stream);
        launch_check(block, 64 * KIB, number, mixups, stream);
    }
}

static void free_elsewhere(void (*free_it)(void *block, rmm_stream_t stream))
{
    uint64_t mixups = 0;

    for (uint64_t seed = 1; seed <= 40; seed++) {
        rmm_stream_t foreign;
        void *block;

        rmm__sim_reseed(seed);
        hook(make_pool(64 * KIB, 64 * KIB));
        hooked.stream_key = hide_key;
        assert_cuda(rmm__sim_device_set(1));
        foreign = make_stream(RMM_STREAM_NON_BLOCKING);
        block = take(pool, 64 * KIB, foreign);
        use_often(block, 1, &mixups, foreign);
        assert_cuda(rmm__sim_device_set(0));
        free_it(block, foreign);
        if (rmm_resource_alloc(pool, 64 * KIB, 0, streams[0], &block) == RMM_OK) {
            use_often(block, 2, &mixups, streams[0]);
            give(pool, block, 64 * KIB, streams[0]);
        }
        assert_cuda(rmm__sim_device_set(1));
        assert_cuda(rmm_sim_device_synchronize());
        assert_cuda(sim_driver()->stream_destroy(foreign));
        assert_cuda(rmm__sim_device_set(0));
        unhook();
    }
    assert_int_equal(mixups, 0);
}

/* From here on another device has a context. */
TEST_CASE(a_free_of_another_device_without_host_memory_waits_for_it)
{
    free_elsewhere(free_without_host_memory);
}

TEST_CASE(a_free_of_another_device_on_an_unknown_stream_waits_for_it)
{
    free_elsewhere(free_untold);
}
