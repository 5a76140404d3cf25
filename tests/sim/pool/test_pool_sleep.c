/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A virtual pool that sleeps and wakes: every byte of its blocks is back where it was, its memory
 * is the device's in between, and a failure of any step loses nothing.
 */
#include "sim/pool/virtual_harness.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "core/host_memory.h"
#include "driver/sim/control.h"

#define CASE(name) TEST_CASE_WITH(name, NULL, nothing_is_left)

static rmm_pool_state_t state_of(const rmm_resource_t *pool)
{
    rmm_pool_state_t state;

    assert_ok(rmm_pool_get_state(pool, &state));
    return state;
}

static void sleep_with(rmm_resource_t *pool, uint64_t flags)
{
    rmm_pool_sleep_options_t options = RMM_POOL_SLEEP_OPTIONS_INIT;

    options.flags = flags;
    assert_ok(rmm_pool_sleep(pool, &options));
    assert_int_equal(state_of(pool), RMM_POOL_ASLEEP);
}

/* --- blocks with known contents ------------------------------------------------------- */

typedef struct content {
    void *ptr;
    size_t bytes;
    uint64_t number;
} content_t;

static content_t make_content(rmm_resource_t *mr, size_t bytes, uint64_t number)
{
    content_t made = {take(mr, bytes, NULL), bytes, number};

    launch_fill(made.ptr, bytes, number, NULL);
    return made;
}

static void assert_contents(const content_t *contents, size_t count)
{
    uint64_t mixups = 0;

    for (size_t i = 0; i < count; i++) {
        launch_check(
            contents[i].ptr, contents[i].bytes, contents[i].number, &mixups, NULL);
    }
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(mixups, 0);
}

static void give_contents(rmm_resource_t *mr, const content_t *contents, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        give(mr, contents[i].ptr, contents[i].bytes, NULL);
    }
}

/* --- what a program sees -------------------------------------------------------------- */

CASE(a_pool_wakes_with_all_that_its_blocks_held)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    content_t contents[] = {
        make_content(pool, 8, 1),
        make_content(pool, 5 * MIB, 2),
        make_content(pool, 256 * KIB, 3),
        make_content(pool, 3 * MIB + 8, 4),
    };
    uint64_t reserved = reserved_of(pool);

    assert_int_equal(state_of(pool), RMM_POOL_AWAKE);
    assert_ok(rmm_pool_sleep(pool, NULL));
    assert_int_equal(state_of(pool), RMM_POOL_ASLEEP);
    assert_int_equal(reserved_of(pool), 0);
    assert_accounting_agrees(pool);
    assert_ok(rmm_pool_wake(pool));
    assert_int_equal(state_of(pool), RMM_POOL_AWAKE);
    assert_int_equal(reserved_of(pool), reserved);
    assert_accounting_agrees(pool);
    assert_contents(contents, 4);
    give_contents(pool, contents, 4);
    rmm_resource_release(pool);
}

CASE(another_pool_uses_the_memory_meanwhile)
{
    uint64_t most = (uint64_t)700 * MIB; /* of 1 GiB */
    rmm_resource_t *pool = make_virtual_pool(most, 0);
    content_t mine = make_content(pool, MIB, 1);
    rmm_resource_t *other;

    sleep_with(pool, 0);
    other = make_virtual_pool(most, 0);
    assert_int_equal(rmm_pool_wake(pool), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(state_of(pool), RMM_POOL_ASLEEP);
    assert_int_equal(reserved_of(pool), 0);
    sleep_with(other, 0);
    assert_ok(rmm_pool_wake(pool));
    assert_contents(&mine, 1);
    give_contents(pool, &mine, 1);
    rmm_resource_release(other);
    rmm_resource_release(pool);
}

CASE(work_that_was_queued_before_the_sleep_counts)
{
    rmm_stream_t stream;
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    content_t late;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    for (uint64_t seed = 1; seed <= 20; seed++) {
        rmm__sim_reseed(seed);
        late = (content_t){take(pool, MIB, stream), MIB, seed};
        launch_fill(late.ptr, MIB, seed, stream);
        sleep_with(pool, 0);
        assert_ok(rmm_pool_wake(pool));
        assert_contents(&late, 1);
        give(pool, late.ptr, MIB, stream);
    }
    rmm_resource_release(pool);
    assert_ok(rmm_stream_destroy(stream));
}

CASE(an_allocation_from_a_pool_that_sleeps_is_refused)
{
    rmm_resource_t *pool = make_virtual_pool(8 * MIB, 0);
    content_t kept = make_content(pool, MIB, 1);
    void *ptr = take(pool, MIB, NULL);

    sleep_with(pool, 0);
    give(pool, ptr, MIB, NULL); /* in the stream's own heap */
    assert_int_equal(rmm_resource_alloc(pool, MIB, 0, NULL, &ptr), RMM_ERR_ASLEEP);
    assert_non_null(strstr(rmm_last_error_message(), "asleep"));
    assert_int_equal(rmm_resource_alloc(pool, 64 * MIB, 0, NULL, &ptr), RMM_ERR_ASLEEP);
    assert_int_equal(rmm_pool_sleep(pool, NULL), RMM_ERR_ASLEEP);
    assert_ok(rmm_resource_trim(pool, 0));
    assert_ok(rmm_pool_wake(pool));
    assert_ok(rmm_pool_wake(pool));
    ptr = take(pool, MIB, NULL);
    assert_contents(&kept, 1);
    give(pool, ptr, MIB, NULL);
    give_contents(pool, &kept, 1);
    rmm_resource_release(pool);
}

CASE(blocks_are_freed_while_the_pool_sleeps)
{
    rmm_resource_t *pool = make_virtual_pool(16 * MIB, 16 * MIB);
    content_t contents[16];
    void *all;

    for (uint64_t i = 0; i < 16; i++) {
        contents[i] = make_content(pool, MIB, i);
    }
    sleep_with(pool, 0);
    give_contents(pool, contents, 8);
    assert_int_equal(stats_of(pool).current_bytes, 8 * MIB);
    assert_int_equal(stats_of(pool).free_bytes, 0);
    assert_int_equal(stats_of(pool).largest_free_bytes, 0);
    assert_ok(rmm_pool_wake(pool));
    assert_int_equal(stats_of(pool).free_bytes, 8 * MIB);
    assert_contents(contents + 8, 8);
    give_contents(pool, contents + 8, 8);
    all = take(pool, 16 * MIB, NULL);
    give(pool, all, 16 * MIB, NULL);
    rmm_resource_release(pool);
}

CASE(a_pool_may_end_while_it_sleeps)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);

    make_content(pool, 5 * MIB, 1);
    sleep_with(pool, RMM_POOL_SLEEP_KEEP_HOST);
    rmm_resource_release(pool);
}

/* --- options --------------------------------------------------------------------------- */

CASE(contents_that_are_discarded_take_no_host_memory)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    content_t contents[] = {make_content(pool, MIB, 1), make_content(pool, MIB, 2)};

    assert_true(rmm_sim_fail("host_alloc:1"));
    sleep_with(pool, RMM_POOL_SLEEP_DISCARD);
    assert_false(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    assert_ok(rmm_pool_wake(pool));
    launch_fill(contents[0].ptr, MIB, 3, NULL); /* they have memory again */
    launch_fill(contents[1].ptr, MIB, 4, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    give_contents(pool, contents, 2);
    rmm_resource_release(pool);
}

CASE(the_contents_of_some_blocks_are_discarded)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    rmm_pool_sleep_options_t options = RMM_POOL_SLEEP_OPTIONS_INIT;
    content_t kept[] = {
        make_content(pool, 3 * MIB, 1), make_content(pool, MIB, 2),
        make_content(pool, 8, 3)};
    content_t dropped[] = {make_content(pool, 5 * MIB, 4), make_content(pool, 8, 5)};
    content_t last = make_content(pool, 700, 6);
    const void *list[] = {dropped[1].ptr, dropped[0].ptr, dropped[1].ptr};
    const void *no_block[] = {dropped[0].ptr, (char *)dropped[0].ptr + 256};

    options.discarded = no_block;
    options.discarded_count = 2;
    assert_int_equal(rmm_pool_sleep(pool, &options), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(state_of(pool), RMM_POOL_AWAKE);
    options.discarded = list;
    options.discarded_count = 3;
    assert_ok(rmm_pool_sleep(pool, &options));
    assert_ok(rmm_pool_wake(pool));
    assert_contents(kept, 3);
    assert_contents(&last, 1);
    give_contents(pool, kept, 3);
    give_contents(pool, dropped, 2);
    give_contents(pool, &last, 1);
    rmm_resource_release(pool);
}

/* host_alloc() is called where buffers are obtained, and not where they were kept. */
CASE(host_memory_is_kept_on_request)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    content_t mine = make_content(pool, 5 * MIB, 1);

    sleep_with(pool, RMM_POOL_SLEEP_KEEP_HOST);
    assert_ok(rmm_pool_wake(pool));
    assert_true(rmm_sim_fail("host_alloc:1"));
    for (int i = 0; i < 3; i++) {
        sleep_with(pool, RMM_POOL_SLEEP_KEEP_HOST);
        assert_ok(rmm_pool_wake(pool));
    }
    assert_false(rmm__sim_fault_has_struck());
    sleep_with(pool, 0);
    assert_ok(rmm_pool_wake(pool));
    assert_int_equal(rmm_pool_sleep(pool, NULL), RMM_ERR_OUT_OF_MEMORY);
    assert_true(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    assert_contents(&mine, 1);
    give_contents(pool, &mine, 1);
    rmm_resource_release(pool);
}

CASE(contents_go_to_the_programs_own_host_memory)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    rmm_pool_sleep_options_t options = RMM_POOL_SLEEP_OPTIONS_INIT;
    content_t mine = make_content(pool, 5 * MIB, 1);
    rmm_resource_t *pinned, *host, *heap;

    assert_ok(rmm_pinned_resource_create(&pinned));
    assert_ok(rmm_pool_resource_create(pinned, NULL, &host));
    assert_ok(rmm_host_resource_create(&heap));
    for (int i = 0; i < 6; i++) {
        options.host = i % 3 == 0 ? host : i % 3 == 1 ? heap : NULL;
        options.flags = i < 3 ? RMM_POOL_SLEEP_KEEP_HOST : 0;
        assert_ok(rmm_pool_sleep(pool, &options));
        assert_int_equal(stats_of(host).current_count, i % 3 == 0);
        assert_int_equal(stats_of(heap).current_count, i % 3 == 1);
        assert_ok(rmm_pool_wake(pool));
        assert_contents(&mine, 1);
    }
    options.host = pool;
    assert_int_equal(rmm_pool_sleep(pool, &options), RMM_ERR_INVALID_ARGUMENT);
    assert_ok(rmm_pool_sleep(pool, NULL));
    assert_int_equal(stats_of(host).current_count, 0);
    rmm_resource_release(heap);
    rmm_resource_release(host);
    rmm_resource_release(pinned);
    assert_ok(rmm_pool_wake(pool));
    assert_contents(&mine, 1);
    give_contents(pool, &mine, 1);
    rmm_resource_release(pool);
}

CASE(only_a_virtual_pool_can_sleep_also_through_adaptors)
{
    rmm_pool_sleep_options_t options = RMM_POOL_SLEEP_OPTIONS_INIT;
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    rmm_resource_t *chunks = make_pool(0, 0);
    rmm_resource_t *statistics, *tracking, *arena;
    content_t mine;

    assert_ok(rmm_statistics_adaptor_create(pool, NULL, &statistics));
    assert_ok(rmm_tracking_adaptor_create(statistics, NULL, &tracking));
    assert_ok(rmm_arena_resource_create(pool, NULL, &arena));
    mine = make_content(tracking, MIB, 1);
    assert_ok(rmm_pool_sleep(tracking, NULL));
    assert_int_equal(state_of(pool), RMM_POOL_ASLEEP);
    assert_int_equal(state_of(statistics), RMM_POOL_ASLEEP);
    assert_ok(rmm_pool_wake(statistics));
    assert_contents(&mine, 1);
    assert_int_equal(rmm_pool_sleep(arena, NULL), RMM_ERR_UNSUPPORTED);
    assert_int_equal(rmm_pool_sleep(chunks, NULL), RMM_ERR_UNSUPPORTED);
    assert_int_equal(rmm_pool_wake(chunks), RMM_ERR_UNSUPPORTED);
    assert_int_equal(rmm_pool_sleep(NULL, NULL), RMM_ERR_INVALID_ARGUMENT);
    options.flags = 1u << 20;
    assert_int_equal(rmm_pool_sleep(pool, &options), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_pool_get_state(pool, NULL), RMM_ERR_INVALID_ARGUMENT);
    give_contents(tracking, &mine, 1);
    rmm_resource_release(arena);
    rmm_resource_release(tracking);
    rmm_resource_release(statistics);
    rmm_resource_release(chunks);
    rmm_resource_release(pool);
}

/* --- graphs ----------------------------------------------------------------------------- */

CASE(a_graph_runs_again_after_a_sleep)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    size_t bytes = MIB;
    content_t out = make_content(pool, bytes, 1);
    uint64_t mixups = 0;
    rmm_sim_graph_t graph;
    rmm_stream_t stream;
    void *inside;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    assert_cuda(rmm_sim_begin_capture(stream, RMM_CAPTURE_MODE_GLOBAL));
    inside = take(pool, bytes, stream);
    launch_fill(inside, bytes, 7, stream);
    launch_check(inside, bytes, 7, &mixups, stream);
    launch_fill(out.ptr, bytes, 2, stream);
    give(pool, inside, bytes, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    for (int i = 0; i < 3; i++) {
        sleep_with(pool, 0);
        assert_ok(rmm_pool_wake(pool));
        out.number = i == 0 ? 1 : 2;
        assert_contents(&out, 1);
        assert_cuda(rmm_sim_graph_launch(graph, stream));
        assert_cuda(rmm_sim_device_synchronize());
    }
    assert_int_equal(mixups, 0);
    assert_cuda(rmm_sim_graph_destroy(graph));
    give_contents(pool, &out, 1);
    rmm_resource_release(pool);
    assert_ok(rmm_stream_destroy(stream));
}

CASE(a_capture_under_way_stays_whole)
{
    rmm_resource_t *pool = make_virtual_pool(4 * MIB, 0);
    content_t mine = make_content(pool, MIB, 1);
    rmm_sim_graph_t graph;
    rmm_stream_t blocking, other;
    void *ptr = NULL;

    assert_ok(rmm_stream_create(0, &blocking));
    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &other));
    assert_cuda(rmm_sim_begin_capture(blocking, RMM_CAPTURE_MODE_GLOBAL));
    assert_int_equal(rmm_pool_sleep(pool, NULL), RMM_ERR_IN_USE);
    assert_non_null(strstr(rmm_last_error_message(), "captures"));
    launch_fill(mine.ptr, MIB, 2, blocking);
    assert_cuda(rmm_sim_end_capture(blocking, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));

    assert_cuda(rmm_sim_begin_capture(other, RMM_CAPTURE_MODE_GLOBAL));
    sleep_with(pool, 0);
    assert_int_equal(rmm_resource_alloc(pool, MIB, 0, other, &ptr), RMM_ERR_ASLEEP);
    assert_ok(rmm_pool_wake(pool));
    launch_fill(mine.ptr, MIB, 2, other);
    assert_cuda(rmm_sim_end_capture(other, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_contents(&mine, 1);
    give_contents(pool, &mine, 1);
    rmm_resource_release(pool);
    assert_ok(rmm_stream_destroy(other));
    assert_ok(rmm_stream_destroy(blocking));
}

/* --- threads ---------------------------------------------------------------------------- */

typedef struct requester {
    rmm_resource_t *pool;
    _Atomic(bool) ends;
    _Atomic(uint64_t) served, refused;
} requester_t;

static void *request_and_free(void *arg)
{
    requester_t *self = arg;
    rmm_stream_t stream;
    uint64_t round = 0;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    while (!self->ends) {
        size_t bytes = (size_t)(round++ % 40 + 1) * 100 * KIB;
        void *ptr = NULL;
        rmm_status_t status = rmm_resource_alloc(self->pool, bytes, 0, stream, &ptr);

        if (status == RMM_OK) {
            give(self->pool, ptr, bytes, stream);
            self->served++;
        } else {
            assert_int_equal(status, RMM_ERR_ASLEEP);
            self->refused++;
        }
    }
    assert_ok(rmm_stream_destroy(stream));
    return NULL;
}

enum { REQUESTERS = 3 };

static void sleep_amid_requests(uint64_t flags, bool trims)
{
    rmm_resource_t *pool = make_virtual_pool(0, (uint64_t)256 * MIB);
    requester_t shared = {.pool = pool};
    pthread_t threads[REQUESTERS];
    content_t mine[] = {make_content(pool, 3 * MIB, 1), make_content(pool, 8, 2)};

    for (int i = 0; i < REQUESTERS; i++) {
        assert_int_equal(
            pthread_create(&threads[i], NULL, request_and_free, &shared), 0);
    }
    for (int i = 0; i < 100; i++) {
        sleep_with(pool, flags);
        assert_int_equal(reserved_of(pool), 0);
        assert_ok(rmm_pool_wake(pool));
        assert_contents(mine, 2);
        if (trims) {
            assert_ok(rmm_resource_trim(pool, 0));
        }
    }
    shared.ends = true;
    for (int i = 0; i < REQUESTERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    if ((flags & RMM_POOL_SLEEP_WAIT) != 0) {
        assert_int_equal(shared.refused, 0);
    }
    assert_accounting_agrees(pool);
    give_contents(pool, mine, 2);
    rmm_resource_release(pool);
}

CASE(threads_that_allocate_meanwhile_are_refused)
{
    sleep_amid_requests(RMM_POOL_SLEEP_KEEP_HOST, false);
    sleep_amid_requests(0, true);
}

CASE(threads_that_allocate_meanwhile_wait)
{
    sleep_amid_requests(RMM_POOL_SLEEP_WAIT | RMM_POOL_SLEEP_KEEP_HOST, false);
    sleep_amid_requests(RMM_POOL_SLEEP_WAIT, true);
}

static void *request_once(void *arg)
{
    requester_t *self = arg;

    give(self->pool, take(self->pool, MIB, NULL), MIB, NULL);
    self->served++;
    return NULL;
}

CASE(a_thread_that_waits_is_served_after_the_wake)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    requester_t shared = {.pool = pool};
    pthread_t thread;

    sleep_with(pool, RMM_POOL_SLEEP_WAIT);
    assert_int_equal(pthread_create(&thread, NULL, request_once, &shared), 0);
    assert_int_equal(usleep(20000), 0);
    assert_int_equal(shared.served, 0);
    assert_ok(rmm_pool_wake(pool));
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(shared.served, 1);
    rmm_resource_release(pool);
}

static void *sleep_and_wake(void *arg)
{
    requester_t *self = arg;

    for (int i = 0; i < 50; i++) {
        rmm_status_t status = rmm_pool_sleep(self->pool, NULL);

        assert_true(status == RMM_OK || status == RMM_ERR_ASLEEP);
        assert_ok(rmm_pool_wake(self->pool));
    }
    return NULL;
}

CASE(threads_that_sleep_and_wake_the_same_pool_take_turns)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    content_t mine = make_content(pool, 3 * MIB, 1);
    requester_t shared = {.pool = pool};
    pthread_t threads[REQUESTERS];

    for (int i = 0; i < REQUESTERS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, sleep_and_wake, &shared), 0);
    }
    for (int i = 0; i < REQUESTERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_int_equal(state_of(pool), RMM_POOL_AWAKE);
    assert_contents(&mine, 1);
    give_contents(pool, &mine, 1);
    rmm_resource_release(pool);
}

/* --- faults ----------------------------------------------------------------------------- */

/* What a pool in a test of faults holds: pieces that are full, partly used and free. */
static size_t fill_for_faults(rmm_resource_t *pool, content_t *contents)
{
    size_t count = 0;
    void *gap;

    contents[count++] = make_content(pool, 8, 1);
    contents[count++] = make_content(pool, 5 * MIB, 2);
    gap = take(pool, 4 * MIB, NULL);
    contents[count++] = make_content(pool, 300 * KIB, 3);
    contents[count++] = make_content(pool, 2 * MIB, 4);
    give(pool, gap, 4 * MIB, NULL);
    return count;
}

/* Whatever failed: after it, and after a wake if the pool sleeps, all is there and all works. */
static void assert_whole(rmm_resource_t *pool, const content_t *contents, size_t count)
{
    assert_ok(rmm_pool_wake(pool));
    assert_int_equal(state_of(pool), RMM_POOL_AWAKE);
    assert_contents(contents, count);
    assert_null(rmm__blocks_check(pool_from_base(pool)->engine->blocks));
    assert_int_equal(stats_of(pool).asleep_bytes, 0);
    give(pool, take(pool, 6 * MIB, NULL), 6 * MIB, NULL);
}

/* A whole cycle under a plan of faults. True: a fault struck. */
static bool cycle_with_faults(const char *plan)
{
    rmm_resource_t *pool = make_virtual_pool(0, 0);
    content_t contents[8];
    size_t count = fill_for_faults(pool, contents);
    rmm_status_t slept, woke = RMM_OK;
    bool struck;

    assert_true(rmm_sim_fail(plan));
    slept = rmm_pool_sleep(pool, NULL);
    if (slept == RMM_OK) {
        assert_int_equal(state_of(pool), RMM_POOL_ASLEEP);
        woke = rmm_pool_wake(pool);
        assert_int_equal(
            state_of(pool), woke == RMM_OK ? RMM_POOL_AWAKE : RMM_POOL_ASLEEP);
    }
    struck = rmm__sim_fault_has_struck();
    assert_true(rmm_sim_fail(NULL));
    assert_true(struck || (slept == RMM_OK && woke == RMM_OK));
    assert_whole(pool, contents, count);
    give_contents(pool, contents, count);
    rmm_resource_release(pool);
    return struck;
}

static const char *const calls[] = {
    "device_get",     "device_set",    "capture_mode_exchange", "legacy_is_open",
    "mem_free",       "mem_alloc",     "stream_create",         "stream_destroy",
    "host_alloc",     "host_free",     "memcpy_async",          "stream_synchronize",
    "address_unmap",  "memory_info",   "physical_create",       "address_map",
    "address_access", "device_active",
};

CASE(a_fault_of_any_driver_call_loses_nothing)
{
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        bool any = false;
        char plan[64];

        for (int nth = 1;; nth++) {
            (void)snprintf(plan, sizeof(plan), "%s:%d", calls[i], nth);
            if (!cycle_with_faults(plan)) {
                break;
            }
            any = true;
            assert_true(nth < 200);
        }
        if (!any) {
            print_message("%s is not called\n", calls[i]);
        }
    }
}

/* The undo fails as well: the pool sleeps with all its contents, and can be woken. */
CASE(two_faults_lose_nothing)
{
    static const char *const pairs[] = {
        "address_unmap:2,physical_create:1",
        "address_unmap:3,address_map:2",
        "address_unmap:2,address_access:1,address_access:2",
        "address_unmap:2,address_access:1,address_access:2,address_unmap:3",
        "address_unmap:3,memcpy_async:6",
    };

    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        assert_true(cycle_with_faults(pairs[i]));
    }
}

CASE(a_lack_of_host_memory_loses_nothing)
{
    uint64_t nth = 0;
    bool struck;

    do {
        rmm_resource_t *pool = make_virtual_pool(0, 0);
        content_t contents[8];
        size_t count = fill_for_faults(pool, contents);

        rmm__host_memory_fail(++nth);
        if (rmm_pool_sleep(pool, NULL) == RMM_OK) {
            (void)!rmm_pool_wake(pool);
        }
        struck = rmm__host_memory_fail_struck();
        rmm__host_memory_fail(0);
        assert_whole(pool, contents, count);
        give_contents(pool, contents, count);
        rmm_resource_release(pool);
    } while (struck);
    assert_true(nth > 1);
}

/* --- model ------------------------------------------------------------------------------ */

enum { MODEL_BLOCKS = 24, MODEL_CYCLES = 1000 };

static uint64_t next_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return *state >> 33;
}

/* Allocate or free one of the blocks, on one of two streams. */
static void model_step(
    rmm_resource_t *pool, content_t *blocks, rmm_stream_t *streams, uint64_t *random)
{
    content_t *block = &blocks[next_random(random) % MODEL_BLOCKS];
    rmm_stream_t stream = streams[next_random(random) % 2];

    if (block->ptr != NULL) {
        assert_cuda(rmm_sim_device_synchronize()); /* its fill was on another stream */
        give(pool, block->ptr, block->bytes, stream);
        block->ptr = NULL;
        return;
    }
    block->bytes = (next_random(random) % 4 == 0 ? 4096 : 64) *
                   (next_random(random) % 1024 + 1) / 8 * 8;
    block->number = next_random(random);
    if (rmm_resource_alloc(pool, block->bytes, 0, stream, &block->ptr) == RMM_OK) {
        launch_fill(block->ptr, block->bytes, block->number, stream);
    } else {
        block->ptr = NULL;
    }
}

static void assert_model(const content_t *blocks)
{
    for (int i = 0; i < MODEL_BLOCKS; i++) {
        if (blocks[i].ptr != NULL) {
            assert_contents(&blocks[i], 1);
        }
    }
}

static void sleep_as_drawn(rmm_resource_t *pool, content_t *blocks, uint64_t *random)
{
    rmm_pool_sleep_options_t options = RMM_POOL_SLEEP_OPTIONS_INIT;
    content_t *dropped = &blocks[next_random(random) % MODEL_BLOCKS];
    const void *list[] = {dropped->ptr};

    options.flags = next_random(random) % 2 == 0 ? RMM_POOL_SLEEP_KEEP_HOST : 0;
    if (dropped->ptr != NULL && next_random(random) % 4 == 0) {
        options.discarded = list;
        options.discarded_count = 1;
    }
    assert_ok(rmm_pool_sleep(pool, &options));
    assert_int_equal(reserved_of(pool), 0);
    if (options.discarded_count != 0) {
        give(pool, dropped->ptr, dropped->bytes, NULL); /* while it sleeps */
        dropped->ptr = NULL;
    }
}

CASE(a_thousand_cycles_keep_every_byte)
{
    rmm_resource_t *pool = make_virtual_pool(0, (uint64_t)64 * MIB);
    content_t blocks[MODEL_BLOCKS] = {{NULL, 0, 0}};
    rmm_stream_t streams[2];
    uint64_t random = 1;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &streams[0]));
    assert_ok(rmm_stream_create(0, &streams[1]));
    for (int cycle = 0; cycle < MODEL_CYCLES; cycle++) {
        uint64_t steps = next_random(&random) % 8;

        for (uint64_t i = 0; i < steps; i++) {
            model_step(pool, blocks, streams, &random);
        }
        sleep_as_drawn(pool, blocks, &random);
        assert_ok(rmm_pool_wake(pool));
        assert_model(blocks);
        if (cycle % 50 == 0) {
            assert_ok(rmm_resource_trim(pool, 0));
        }
    }
    for (int i = 0; i < MODEL_BLOCKS; i++) {
        if (blocks[i].ptr != NULL) {
            give_contents(pool, &blocks[i], 1);
        }
    }
    assert_accounting_agrees(pool);
    rmm_resource_release(pool);
    assert_ok(rmm_stream_destroy(streams[0]));
    assert_ok(rmm_stream_destroy(streams[1]));
}

/* --- figures ---------------------------------------------------------------------------- */

CASE(the_figures_tell_what_sleeps)
{
    rmm_resource_t *pool = make_virtual_pool(8 * MIB, 0);
    content_t mine = make_content(pool, MIB, 1);
    const rmm_segment_slot_t *slot = pool->accounting.slot;
    uint32_t location = pool->accounting.location;

    sleep_with(pool, 0);
    assert_int_equal(stats_of(pool).asleep_bytes, 8 * MIB);
    assert_int_equal(stats_of(pool).reserved_bytes, 0);
    assert_int_equal(stats_of(pool).current_bytes, MIB);
    assert_int_equal(stats_of(pool).free_bytes, 0);
    assert_int_equal(rmm__figure_get(&slot->sleep_count), 1);
    assert_int_equal(rmm__figure_get(&slot->wake_count), 0);
    assert_int_equal(rmm__figure_get(&rmm__locations[location].asleep_bytes), 8 * MIB);
    assert_ok(rmm_pool_wake(pool));
    assert_int_equal(stats_of(pool).asleep_bytes, 0);
    assert_int_equal(stats_of(pool).reserved_bytes, 8 * MIB);
    assert_int_equal(stats_of(pool).free_bytes, 7 * MIB);
    assert_int_equal(rmm__figure_get(&slot->wake_count), 1);
    sleep_with(pool, 0);
    give_contents(pool, &mine, 1);
    rmm_resource_release(pool);
    assert_int_equal(rmm__figure_get(&rmm__locations[location].asleep_bytes), 0);
}
