/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an event covers and what a synchronise proves: when a pool waits for the device, and
 * when it need not. On one device; events are never found done, so that a stream waits for
 * another one's event or for the device.
 */
#include "sim/driver/driver_hooks.h"

#include "driver/sim/control.h"

/* Of what these pools hold, one stream alone may have half a MiB uncovered. */
#define TOO_MUCH_OPEN (600 * KIB)

static rmm_driver_t hooked; /* the simulated driver, with some calls changed */
static void (*interlude)(void);
static uint64_t records, waits;
static int events;                     /* created and not destroyed */
static rmm_driver_event_t first_event; /* of those that were counted */

static int is_first_done(rmm_driver_event_t event)
{
    return event == first_event ? RMM_DRIVER_OK : RMM_DRIVER_NOT_READY;
}

static int count_record(rmm_driver_event_t event, rmm_stream_t stream)
{
    first_event = records++ == 0 ? event : first_event;
    return sim_driver()->event_record(event, stream);
}

static int count_event(rmm_driver_event_t *event_out)
{
    events++;
    return sim_driver()->event_create(event_out);
}

static int count_destroyed_event(rmm_driver_event_t event)
{
    events--;
    return sim_driver()->event_destroy(event);
}

static int refuse_to_record(rmm_driver_event_t event, rmm_stream_t stream)
{
    return RMM_DRIVER_INVALID_HANDLE;
}

static int count_wait(rmm_stream_t stream, rmm_driver_event_t event)
{
    waits++;
    return sim_driver()->stream_wait_event(stream, event);
}

static int free_then_interlude(void *ptr)
{
    void (*run)(void) = interlude;
    int error = sim_driver()->mem_free(ptr);

    interlude = NULL;
    if (run != NULL) {
        run();
    }
    return error;
}

/* The barrier fails after the interlude. */
static int interlude_then_fail(void *ptr)
{
    void (*run)(void) = interlude;

    if (run == NULL) {
        return sim_driver()->mem_free(ptr);
    }
    interlude = NULL;
    run();
    return RMM_DRIVER_INVALID_VALUE;
}

/* A pool that several streams have used. */
typedef struct company {
    rmm_resource_t *pool;
    rmm_stream_t streams[3];
} company_t;

static company_t company_begin(uint64_t initial_bytes, uint64_t maximum_bytes)
{
    company_t company = {.pool = make_pool(initial_bytes, maximum_bytes)};
    engine_t *engine = pool_from_base(company.pool)->engine;

    rmm__mutex_lock(rmm__engine_mutex(engine));
    rmm__engine_single_stream_end_locked(engine, true);
    rmm__mutex_unlock(rmm__engine_mutex(engine));
    for (int i = 0; i < 3; i++) {
        company.streams[i] = make_stream(RMM_STREAM_NON_BLOCKING);
    }
    records = waits = 0;
    events = 0;
    hooked = *sim_driver();
    hooked.event_create = count_event;
    hooked.event_destroy = count_destroyed_event;
    hooked.event_query = is_never_done;
    hooked.event_record = count_record;
    hooked.stream_wait_event = count_wait;
    hooked.mem_free = free_then_interlude;
    hooked.stream_key = hide_key;
    pool_use_driver(company.pool, &hooked);
    return company;
}

static void company_end(const company_t *company)
{
    assert_null(interlude);
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(stats_of(company->pool).current_bytes, 0);
    for (int i = 0; i < 3; i++) {
        assert_ok(rmm_stream_destroy(company->streams[i]));
    }
    rmm_resource_release(company->pool);
    assert_int_equal(events, 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

static uint64_t syncs_of(rmm_resource_t *pool)
{
    return pool_from_base(pool)->engine->figures.sync_count;
}

/* The stream can have them, without a synchronise and without growth. */
static void expect_handed_over(const company_t *company, size_t bytes, int stream)
{
    uint64_t reserved = stats_of(company->pool).reserved_bytes;
    void *ptr = take(company->pool, bytes, company->streams[stream]);

    assert_int_equal(syncs_of(company->pool), 0);
    assert_int_equal(stats_of(company->pool).reserved_bytes, reserved);
    give(company->pool, ptr, bytes, company->streams[stream]);
}

/* The stream can have them, behind one synchronise and without growth. */
static void expect_synchronised_for(const company_t *company, size_t bytes, int stream)
{
    uint64_t reserved = stats_of(company->pool).reserved_bytes;
    void *ptr = take(company->pool, bytes, company->streams[stream]);

    assert_int_equal(syncs_of(company->pool), 1);
    assert_int_equal(stats_of(company->pool).reserved_bytes, reserved);
    give(company->pool, ptr, bytes, company->streams[stream]);
}

static company_t company; /* for an interlude */

/* --- events -------------------------------------------------------------------------- */

TEST_CASE(what_is_too_much_open_is_covered_at_once)
{
    company_t here = company_begin(TOO_MUCH_OPEN, 0);

    give(
        here.pool, take(here.pool, TOO_MUCH_OPEN, here.streams[0]), TOO_MUCH_OPEN,
        here.streams[0]);
    expect_handed_over(&here, TOO_MUCH_OPEN, 1);
    company_end(&here);
}

TEST_CASE(a_stream_waits_for_no_event_that_covers_nothing)
{
    company_t here = company_begin(TOO_MUCH_OPEN, 0);

    for (int i = 0; i < 2; i++) { /* the second event covers all */
        give(
            here.pool, take(here.pool, TOO_MUCH_OPEN, here.streams[0]), TOO_MUCH_OPEN,
            here.streams[0]);
    }
    assert_int_equal(records, 2);
    expect_handed_over(&here, TOO_MUCH_OPEN, 1);
    assert_int_equal(waits, 1);
    company_end(&here);
}

/* Half a MiB, or a 64th of the bound, which is a 32nd of what is held. */
TEST_CASE(less_than_that_costs_no_event)
{
    static const size_t bytes[2] = {500 * KIB, 2000 * KIB};
    static const size_t held[2] = {MIB, 4096 * MIB};

    for (int i = 0; i < 2; i++) {
        company_t here = company_begin(held[i], 0);

        give(
            here.pool, take(here.pool, bytes[i], here.streams[0]), bytes[i],
            here.streams[0]);
        assert_int_equal(records, 0);
        company_end(&here);
    }
}

TEST_CASE(the_only_stream_costs_an_event_for_many_frees)
{
    rmm_resource_t *pool = make_pool(MIB, 0);
    int frees = is_shared_run() ? BATCH_FREES : BATCH_FREES_SINGLE;

    for (int i = 0; i < frees; i++) {
        assert_null(pool_from_base(pool)->engine->streams.with_batches);
        give(pool, take(pool, KIB, NULL), KIB, NULL);
    }
    assert_non_null(pool_from_base(pool)->engine->streams.with_batches);
    rmm_resource_release(pool);
}

TEST_CASE(what_an_event_that_failed_was_to_cover_the_next_one_covers)
{
    company_t here = company_begin(TOO_MUCH_OPEN + 4 * KIB, 0);
    void *small = take(here.pool, 4 * KIB, here.streams[0]);
    void *large = take(here.pool, TOO_MUCH_OPEN, here.streams[0]);

    assert_true(rmm_sim_fail("event_record:1"));
    give(here.pool, large, TOO_MUCH_OPEN, here.streams[0]);
    assert_true(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    give(here.pool, small, 4 * KIB, here.streams[0]);
    expect_handed_over(&here, TOO_MUCH_OPEN + 4 * KIB, 1);
    company_end(&here);
}

/* With one device each stream is of that device, whatever the driver once said. */
TEST_CASE(the_next_event_covers_although_one_was_refused_the_handle)
{
    company_t here = company_begin(TOO_MUCH_OPEN + 4 * KIB, 0);
    void *small = take(here.pool, 4 * KIB, here.streams[0]);
    void *large = take(here.pool, TOO_MUCH_OPEN, here.streams[0]);

    hooked.event_record = refuse_to_record;
    give(here.pool, large, TOO_MUCH_OPEN, here.streams[0]);
    hooked.event_record = count_record;
    give(here.pool, small, 4 * KIB, here.streams[0]);
    expect_handed_over(&here, TOO_MUCH_OPEN + 4 * KIB, 1);
    company_end(&here);
}

/* Half of what the others leave of one MiB. */
TEST_CASE(uncovered_memory_of_others_leaves_a_stream_less)
{
    const size_t bytes = 400 * KIB;
    company_t here = company_begin(MIB, 0);
    void *blocks[2];

    for (int i = 0; i < 2; i++) {
        blocks[i] = take(here.pool, bytes, here.streams[i]);
    }
    for (uint64_t i = 0; i < 2; i++) {
        give(here.pool, blocks[i], bytes, here.streams[i]);
        assert_int_equal(records, i);
    }
    company_end(&here);
}

TEST_CASE(what_a_stream_took_over_counts_as_uncovered)
{
    company_t here = company_begin(TOO_MUCH_OPEN, 0);

    give(
        here.pool, take(here.pool, TOO_MUCH_OPEN, here.streams[0]), TOO_MUCH_OPEN,
        here.streams[0]);
    give(here.pool, take(here.pool, 256, here.streams[1]), 256, here.streams[1]);
    expect_handed_over(&here, TOO_MUCH_OPEN, 2);
    company_end(&here);
}

TEST_CASE(the_latest_of_many_events_is_kept)
{
    company_t here = company_begin(4 * KIB, 0);

    for (int i = 0; i < (STREAM_BATCHES + 4) * BATCH_FREES; i++) {
        give(
            here.pool, take(here.pool, 4 * KIB, here.streams[0]), 4 * KIB,
            here.streams[0]);
    }
    expect_handed_over(&here, 4 * KIB, 1);
    company_end(&here);
}

TEST_CASE(a_stream_waits_for_no_more_others_than_it_needs)
{
    company_t here = company_begin(2 * TOO_MUCH_OPEN, 0);
    void *blocks[2];

    for (int i = 0; i < 2; i++) {
        blocks[i] = take(here.pool, TOO_MUCH_OPEN, here.streams[i]);
    }
    for (int i = 0; i < 2; i++) {
        give(here.pool, blocks[i], TOO_MUCH_OPEN, here.streams[i]);
    }
    waits = 0;
    expect_handed_over(&here, TOO_MUCH_OPEN, 2);
    assert_int_equal(waits, 1);
    company_end(&here);
}

/* Its newest event is not done, but its oldest one. */
TEST_CASE(a_busy_stream_gives_what_is_done)
{
    company_t here = company_begin(2 * TOO_MUCH_OPEN + 4 * KIB, 0);
    void *low = take(here.pool, TOO_MUCH_OPEN, here.streams[0]);
    void *between = take(here.pool, 4 * KIB, here.streams[0]);
    void *high = take(here.pool, TOO_MUCH_OPEN, here.streams[0]);

    give(here.pool, low, TOO_MUCH_OPEN, here.streams[0]);
    give(here.pool, high, TOO_MUCH_OPEN, here.streams[0]);
    hooked.event_query = is_first_done;
    expect_handed_over(&here, TOO_MUCH_OPEN, 1);
    assert_int_equal(waits, 0);
    give(here.pool, between, 4 * KIB, here.streams[0]);
    company_end(&here);
}

/* Its own block has the units, but not where the alignment wants them. */
TEST_CASE(a_stream_does_not_wait_for_itself)
{
    const size_t bytes = TOO_MUCH_OPEN + 4 * KIB;
    company_t here = company_begin(bytes, bytes);
    void *first = take(here.pool, 4 * KIB, here.streams[0]);
    void *ptr = NULL;

    give(
        here.pool, take(here.pool, TOO_MUCH_OPEN, here.streams[0]), TOO_MUCH_OPEN,
        here.streams[0]);
    assert_int_equal(
        rmm_resource_alloc(
            here.pool, TOO_MUCH_OPEN, RMM_ALIGN_MAX, here.streams[0], &ptr),
        RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(waits, 0);
    give(here.pool, first, 4 * KIB, here.streams[0]);
    company_end(&here);
}

TEST_CASE(an_event_that_could_not_be_waited_for_still_covers)
{
    company_t here = company_begin(TOO_MUCH_OPEN, 0);
    void *ptr;

    give(
        here.pool, take(here.pool, TOO_MUCH_OPEN, here.streams[0]), TOO_MUCH_OPEN,
        here.streams[0]);
    hooked.stream_wait_event = refuse_to_wait;
    ptr = take(here.pool, TOO_MUCH_OPEN, here.streams[1]); /* grows */
    assert_int_equal(syncs_of(here.pool), 0);
    hooked.stream_wait_event = count_wait;
    expect_handed_over(&here, TOO_MUCH_OPEN, 2);
    give(here.pool, ptr, TOO_MUCH_OPEN, here.streams[1]);
    company_end(&here);
}

TEST_CASE(streams_that_ended_leave_nothing_open)
{
    company_t here = company_begin(16 * MIB, 0);

    for (int i = 0; i < 2000; i++) {
        rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
        void *block;

        give(here.pool, take(here.pool, KIB, stream), KIB, stream);
        block = take(here.pool, KIB, stream); /* the same */
        assert_ok(rmm_stream_destroy(stream));
        give(here.pool, block, KIB, here.streams[0]);
    }
    records = 0;
    for (int i = 0; i < 10 * BATCH_FREES; i++) {
        give(here.pool, take(here.pool, KIB, here.streams[0]), KIB, here.streams[0]);
    }
    assert_true(records <= 11);
    company_end(&here);
}

/* What a pool began with is nobody's, though one stream alone was first. */
TEST_CASE(a_second_stream_has_what_the_first_never_used)
{
    rmm_resource_t *pool = make_pool(16 * MIB, 16 * MIB);
    rmm_stream_t streams[2] = {
        make_stream(RMM_STREAM_NON_BLOCKING), make_stream(RMM_STREAM_NON_BLOCKING)};
    void *first = take(pool, MIB, streams[0]);
    void *rest = take(pool, 15 * MIB, streams[1]);

    assert_int_equal(syncs_of(pool), 0);
    assert_int_equal(rmm__figure_get(&pool->accounting.slot->cross_stream_count), 0);
    give(pool, first, MIB, streams[0]);
    give(pool, rest, 15 * MIB, streams[1]);
    rmm_resource_release(pool);
    assert_ok(rmm_stream_destroy(streams[0]));
    assert_ok(rmm_stream_destroy(streams[1]));
}

/* However small the block, each free counts half a KiB: of 1 MiB without an event. */
TEST_CASE(streams_with_open_frees_are_bounded)
{
    enum { STREAMS = 3000, OPEN_MOST = 2048 };
    static rmm_stream_t streams[STREAMS];
    static void *blocks[STREAMS];
    company_t here = company_begin(16 * MIB, 0);

    for (int i = 0; i < STREAMS; i++) {
        streams[i] = make_stream(RMM_STREAM_NON_BLOCKING);
        blocks[i] = take(here.pool, 256, here.streams[0]);
    }
    records = 0;
    for (int i = 0; i < STREAMS; i++) {
        give(here.pool, blocks[i], 256, streams[i]);
    }
    assert_true(records >= STREAMS - OPEN_MOST);
    company_end(&here);
    for (int i = 0; i < STREAMS; i++) {
        assert_ok(rmm_stream_destroy(streams[i]));
    }
}

/* Of 1 MiB without an event, a stream may have half of what the others leave. */
TEST_CASE(what_a_synchronise_proved_leaves_the_others_as_much)
{
    company_t here = company_begin(2 * MIB, 0);
    void *proven = take(here.pool, 256 * KIB, here.streams[0]);
    void *open = take(here.pool, 400 * KIB, here.streams[1]);

    give(here.pool, proven, 256 * KIB, here.streams[0]);
    assert_ok(rmm_resource_trim(here.pool, SIZE_MAX));
    give(here.pool, open, 400 * KIB, here.streams[1]);
    assert_int_equal(records, 0);
    company_end(&here);
}

/* --- before growth ------------------------------------------------------------------- */

/* A small block that no event covers makes one with a large one that an event covered. */
TEST_CASE(what_lost_its_event_is_synchronised_for_before_growth)
{
    const size_t bytes = 800 * KIB;
    company_t here = company_begin(bytes + 256, 0);
    void *large = take(here.pool, bytes, here.streams[0]);
    void *small = take(here.pool, 256, here.streams[0]);

    give(here.pool, large, bytes, here.streams[0]);
    give(here.pool, small, 256, here.streams[0]);
    expect_synchronised_for(&here, bytes + 256, 1);
    company_end(&here);
}

TEST_CASE(what_an_unknown_stream_freed_is_synchronised_for_before_growth)
{
    company_t here = company_begin(TOO_MUCH_OPEN, 0);
    void *block = take(here.pool, TOO_MUCH_OPEN, here.streams[0]);

    is_key_hidden = true;
    give(here.pool, block, TOO_MUCH_OPEN, here.streams[0]);
    is_key_hidden = false;
    expect_synchronised_for(&here, TOO_MUCH_OPEN, 1);
    company_end(&here);
}

/* Two blocks with one in use between them: too small for what is wanted. */
static void grow_beside_two_blocks(rmm_resource_t *pool, rmm_stream_t stream)
{
    void *low = take(pool, TOO_MUCH_OPEN, stream);
    void *between = take(pool, 4 * KIB, stream);
    void *high = take(pool, TOO_MUCH_OPEN, stream);
    void *large;

    give(pool, low, TOO_MUCH_OPEN, stream);
    give(pool, high, TOO_MUCH_OPEN, stream);
    large = take(pool, 2 * TOO_MUCH_OPEN, stream);
    assert_int_equal(syncs_of(pool), 0);
    give(pool, large, 2 * TOO_MUCH_OPEN, stream);
    give(pool, between, 4 * KIB, stream);
}

TEST_CASE(growth_waits_for_nothing_that_events_cover)
{
    company_t here = company_begin(2 * TOO_MUCH_OPEN + 4 * KIB, 0);

    grow_beside_two_blocks(here.pool, here.streams[0]);
    company_end(&here);
}

TEST_CASE(growth_waits_for_nothing_of_the_only_stream)
{
    rmm_resource_t *pool = make_pool(2 * TOO_MUCH_OPEN + 4 * KIB, 0);

    grow_beside_two_blocks(pool, NULL);
    rmm_resource_release(pool);
}

/* --- captures ------------------------------------------------------------------------ */

enum { RELAXED = 2 };

static void *used_before; /* outside of the capture that frees it */

static void free_in_a_capture(void)
{
    rmm_sim_graph_t graph;

    for (uint64_t i = 0; i < 5; i++) {
        launch_fill(used_before, MIB, i, company.streams[0]);
    }
    assert_cuda(rmm_sim_begin_capture(company.streams[0], RELAXED));
    give(company.pool, used_before, MIB, company.streams[0]);
    assert_cuda(rmm_sim_end_capture(company.streams[0], &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    /* a new stream: graphs that are gone are looked for */
    give(
        company.pool, take(company.pool, MIB, company.streams[2]), MIB,
        company.streams[2]);
}

static void free_in_a_ruined_capture(void)
{
    rmm_sim_graph_t graph;

    for (uint64_t i = 0; i < 5; i++) {
        launch_fill(used_before, MIB, i, company.streams[0]);
    }
    assert_cuda(rmm_sim_begin_capture(company.streams[0], RELAXED));
    assert_int_not_equal(
        sim_driver()->stream_synchronize(company.streams[0]), RMM_DRIVER_OK);
    give(company.pool, used_before, MIB, company.streams[0]);
    assert_int_not_equal(
        rmm_sim_end_capture(company.streams[0], &graph), RMM_DRIVER_OK);
}

static void free_during_a_synchronise(uint64_t seed, void (*free_it)(void))
{
    void *blocks[2];
    uint64_t mixups = 0;

    rmm__sim_reseed(seed);
    company = company_begin(2 * MIB, 2 * MIB);
    used_before = take(company.pool, MIB, company.streams[0]);
    interlude = free_it;
    assert_ok(rmm_resource_trim(company.pool, SIZE_MAX));
    for (int i = 0; i < 2; i++) {
        blocks[i] = take(company.pool, MIB, company.streams[1]);
        launch_fill(blocks[i], MIB, 9, company.streams[1]);
        launch_check(blocks[i], MIB, 9, &mixups, company.streams[1]);
    }
    for (int i = 0; i < 2; i++) {
        give(company.pool, blocks[i], MIB, company.streams[1]);
    }
    company_end(&company);
    assert_int_equal(mixups, 0);
}

/* Its work began behind the synchronise, which so proves nothing of it. */
TEST_CASE(what_a_capture_frees_during_a_synchronise_comes_back_behind_the_next)
{
    for (uint64_t seed = 1; seed <= 40; seed++) {
        free_during_a_synchronise(seed, free_in_a_capture);
        free_during_a_synchronise(seed, free_in_a_ruined_capture);
    }
}

/* Its launches are over when it is gone. */
TEST_CASE(what_a_graph_used_comes_back_without_a_synchronise)
{
    company_t here = company_begin(MIB, MIB);
    rmm_sim_graph_t graph;
    void *block;

    assert_cuda(rmm_sim_begin_capture(here.streams[0], RELAXED));
    block = take(here.pool, MIB, here.streams[0]);
    give(here.pool, block, MIB, here.streams[0]);
    assert_cuda(rmm_sim_end_capture(here.streams[0], &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    expect_handed_over(&here, MIB, 1);
    company_end(&here);
}

/* One synchronise is enough, also where nobody has looked for the graph before. */
TEST_CASE(what_a_graph_that_is_gone_kept_is_proven_by_the_next_synchronise)
{
    company_t here = company_begin(MIB, MIB);
    void *block = take(here.pool, MIB, here.streams[0]);
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_begin_capture(here.streams[0], RELAXED));
    give(here.pool, block, MIB, here.streams[0]);
    assert_cuda(rmm_sim_end_capture(here.streams[0], &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_ok(rmm_resource_trim(here.pool, SIZE_MAX));
    expect_synchronised_for(&here, MIB, 1);
    company_end(&here);
}

/* --- figures ------------------------------------------------------------------------- */

static uint64_t largest_of(rmm_resource_t *pool)
{
    return pool_from_base(pool)->engine->figures.largest_free_bytes;
}

static void *beside; /* what is freed already */

static void free_beside(void)
{
    give(company.pool, beside, MIB, company.streams[0]);
}

/* Until the synchronise ends, the two halves are kept apart. */
TEST_CASE(the_largest_block_may_be_whole_after_a_failed_synchronise)
{
    void *first;

    company = company_begin(3 * MIB, 3 * MIB);
    first = take(company.pool, MIB, company.streams[0]);
    beside = take(company.pool, MIB, company.streams[0]);
    give(company.pool, first, MIB, company.streams[0]);
    hooked.mem_free = interlude_then_fail;
    interlude = free_beside;
    assert_int_not_equal(rmm_resource_trim(company.pool, SIZE_MAX), RMM_OK);
    assert_int_equal(largest_of(company.pool), 2 * MIB);
    company_end(&company);
}

/* One half of it waits for a synchronise already. */
TEST_CASE(the_largest_block_may_be_whole_when_a_graph_is_gone)
{
    company_t here = company_begin(3 * MIB, 3 * MIB);
    void *first = take(here.pool, MIB, here.streams[0]);
    void *second = take(here.pool, MIB, here.streams[0]);
    rmm_sim_graph_t graph;

    is_key_hidden = true;
    give(here.pool, first, MIB, here.streams[0]);
    is_key_hidden = false;
    assert_cuda(rmm_sim_begin_capture(here.streams[0], RELAXED));
    give(here.pool, second, MIB, here.streams[0]);
    assert_cuda(rmm_sim_end_capture(here.streams[0], &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_int_equal(largest_of(here.pool), MIB);
    assert_true(rmm__engine_reclaim(pool_from_base(here.pool)->engine, 1));
    assert_int_equal(largest_of(here.pool), 2 * MIB);
    company_end(&here);
}
