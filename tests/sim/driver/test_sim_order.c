/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When queued work of the simulated GPU runs: what must be in order is, under every seed,
 * and what need not be is not, under some.
 */
#include "sim/driver/sim_harness.h"

#include "driver/sim/control.h"

enum { A_FIRST = 100, B_FIRST = 200, LEGACY = 300 };

/* What a case records, and the streams that it compares. */
static journal_t journal;
static rmm_stream_t a, b;

static void begin(uint64_t seed, uint32_t flags)
{
    memset(&journal, 0, sizeof(journal));
    a = make_stream(flags);
    b = make_stream(flags);
    rmm__sim_reseed(seed);
}

static void end(void)
{
    assert_cuda(sim_driver()->stream_destroy(a));
    assert_cuda(sim_driver()->stream_destroy(b));
}

static int reset(void **state)
{
    rmm_sim_device_synchronize();
    rmm__sim_reseed(1);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, reset, NULL)

CASE(keeps_a_streams_order_under_every_seed)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        begin(seed, RMM_STREAM_NON_BLOCKING);
        for (int i = 0; i < 20; i++) {
            assert_cuda(launch_mark(&journal, A_FIRST + i, a));
            assert_cuda(launch_mark(&journal, B_FIRST + i, b));
        }
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(journal.count, 40);
        for (int i = 0; i < 19; i++) {
            assert_order(&journal, A_FIRST + i, A_FIRST + i + 1);
            assert_order(&journal, B_FIRST + i, B_FIRST + i + 1);
        }
        end();
    }
}

CASE(runs_the_waiting_stream_behind_the_event_under_every_seed)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rmm_sim_event_t event;

        begin(seed, RMM_STREAM_NON_BLOCKING);
        assert_cuda(rmm_sim_event_create(&event));
        assert_cuda(launch_mark(&journal, A_FIRST, a));
        assert_cuda(rmm_sim_event_record(event, a));
        assert_cuda(launch_mark(&journal, A_FIRST + 1, a));
        assert_cuda(rmm_sim_stream_wait_event(b, event));
        assert_cuda(launch_mark(&journal, B_FIRST, b));
        assert_cuda(rmm_sim_event_destroy(event));
        assert_cuda(rmm__sim_stream_synchronize(b));
        assert_order(&journal, A_FIRST, B_FIRST);
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(journal.count, 3);
        end();
    }
}

CASE(waits_for_the_record_that_was_latest_at_the_wait)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rmm_sim_event_t event;

        begin(seed, RMM_STREAM_NON_BLOCKING);
        assert_cuda(rmm_sim_event_create(&event));
        assert_cuda(launch_mark(&journal, A_FIRST, a));
        assert_cuda(rmm_sim_event_record(event, a));
        assert_cuda(rmm_sim_stream_wait_event(b, event));
        assert_cuda(launch_mark(&journal, B_FIRST, b));
        assert_cuda(rmm_sim_event_record(event, b)); /* moves the event */
        assert_cuda(rmm_sim_stream_wait_event(a, event));
        assert_cuda(launch_mark(&journal, A_FIRST + 1, a));
        assert_cuda(rmm__sim_stream_synchronize(a));
        assert_order(&journal, A_FIRST, B_FIRST);
        assert_order(&journal, B_FIRST, A_FIRST + 1);
        assert_cuda(rmm_sim_event_destroy(event));
        end();
    }
}

CASE(does_not_wait_for_an_event_that_was_never_recorded)
{
    rmm_stream_t stream = make_stream(0);
    rmm_sim_event_t event;

    assert_cuda(rmm_sim_event_create(&event));
    assert_cuda(rmm_sim_stream_wait_event(stream, event));
    assert_cuda(sim_driver()->event_query((rmm_driver_event_t)(void *)event));
    assert_cuda(sim_driver()->event_synchronize((rmm_driver_event_t)(void *)event));
    assert_cuda(rmm__sim_stream_synchronize(stream));
    assert_cuda(rmm_sim_event_destroy(event));
    assert_cuda(sim_driver()->stream_destroy(stream));
}

CASE(orders_blocking_streams_with_the_legacy_stream)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rmm_stream_t own = RMM_STREAM_PER_THREAD;

        begin(seed, 0);
        assert_cuda(launch_mark(&journal, A_FIRST, a));
        assert_cuda(launch_mark(&journal, B_FIRST, own));
        assert_cuda(launch_mark(&journal, LEGACY, RMM_STREAM_LEGACY));
        assert_cuda(launch_mark(&journal, A_FIRST + 1, a));
        assert_cuda(launch_mark(&journal, B_FIRST + 1, own));
        assert_cuda(rmm_sim_device_synchronize());
        assert_order(&journal, A_FIRST, LEGACY);
        assert_order(&journal, B_FIRST, LEGACY);
        assert_order(&journal, LEGACY, A_FIRST + 1);
        assert_order(&journal, LEGACY, B_FIRST + 1);
        end();
    }
}

/* How often, of all seeds, work on a stream made with `flags` ran before older work on
 * the legacy stream. */
static int count_overtaking_legacy(uint32_t flags)
{
    int overtaken = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        begin(seed, flags);
        assert_cuda(launch_mark(&journal, LEGACY, NULL));
        assert_cuda(launch_mark(&journal, A_FIRST, a));
        assert_cuda(rmm__sim_stream_synchronize(a));
        assert_cuda(rmm_sim_device_synchronize());
        overtaken += position_of(&journal, A_FIRST) == 0;
        end();
    }
    return overtaken;
}

CASE(lets_only_non_blocking_streams_overtake_the_legacy_stream)
{
    assert_int_equal(count_overtaking_legacy(0), 0);
    assert_true(count_overtaking_legacy(RMM_STREAM_NON_BLOCKING) > SEEDS / 4);
}

CASE(synchronises_one_stream_without_running_all_others)
{
    int late = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        begin(seed, RMM_STREAM_NON_BLOCKING);
        assert_cuda(launch_mark(&journal, A_FIRST, a));
        assert_cuda(launch_mark(&journal, B_FIRST, b));
        assert_cuda(rmm__sim_stream_synchronize(b));
        (void)position_of(&journal, B_FIRST);
        late += journal.count == 1;
        assert_cuda(rmm_sim_device_synchronize());
        assert_int_equal(journal.count, 2);
        end();
    }
    assert_true(late > SEEDS / 4);
}

CASE(runs_work_later_than_its_launch)
{
    int late = 0;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        begin(seed, 0);
        assert_cuda(launch_mark(&journal, 1, RMM_STREAM_PER_THREAD));
        late += journal.count == 0;
        assert_cuda(rmm__sim_stream_synchronize(RMM_STREAM_PER_THREAD));
        assert_int_equal(journal.count, 1);
        end();
    }
    assert_true(late > SEEDS / 2);
    assert_true(late < SEEDS); /* and sometimes at once: a GPU can be quick */
}

/* The order in which 4 streams of 8 kernels each ran. */
static void draw_order(uint64_t seed, journal_t *drawn)
{
    rmm_stream_t streams[4];

    drawn->count = 0;
    for (int s = 0; s < 4; s++) {
        streams[s] = make_stream(RMM_STREAM_NON_BLOCKING);
    }
    rmm__sim_reseed(seed);
    for (int i = 0; i < 32; i++) {
        assert_cuda(launch_mark(drawn, i, streams[i % 4]));
    }
    assert_cuda(rmm_sim_device_synchronize());
    for (int s = 4; s-- > 0;) {
        assert_cuda(sim_driver()->stream_destroy(streams[s]));
    }
}

CASE(draws_another_order_from_another_seed)
{
    static journal_t first, other;
    int different = 0;

    draw_order(0, &first);
    for (uint64_t seed = 1; seed < SEEDS; seed++) {
        draw_order(seed, &other);
        different += memcmp(&first, &other, sizeof(first)) != 0;
    }
    assert_true(different > SEEDS * 9 / 10);
}

CASE(draws_the_same_order_from_the_same_seed)
{
    static journal_t first, again;

    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        draw_order(seed, &first);
        draw_order(seed, &again);
        assert_int_equal(first.count, 32);
        assert_memory_equal(&first, &again, sizeof(first));
    }
}

CASE(ends_a_loop_of_queries_under_every_seed)
{
    rmm_driver_event_t event;
    int not_ready = 0;

    assert_cuda(sim_driver()->event_create(&event));
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        int queries = 0;
        int answer;

        begin(seed, 0);
        for (int i = 0; i < 10; i++) {
            assert_cuda(launch_mark(&journal, i, a));
        }
        assert_cuda(sim_driver()->event_record(event, a));
        while ((answer = sim_driver()->event_query(event)) == RMM_DRIVER_NOT_READY) {
            assert_true(++queries < 1000);
        }
        assert_cuda(answer);
        assert_int_equal(journal.count, 10);
        not_ready += queries;
        end();
    }
    assert_true(not_ready > SEEDS);
    assert_cuda(sim_driver()->event_destroy(event));
}

CASE(runs_all_work_with_the_next_call_if_it_is_prompt)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rmm_driver_event_t event;

        begin(seed, RMM_STREAM_NON_BLOCKING);
        rmm_sim_run_promptly();
        assert_cuda(sim_driver()->event_create(&event));
        for (int i = 0; i < 10; i++) {
            assert_cuda(launch_mark(&journal, A_FIRST + i, a));
            assert_cuda(launch_mark(&journal, B_FIRST + i, b));
        }
        assert_cuda(sim_driver()->event_record(event, a));
        assert_cuda(sim_driver()->event_query(event));
        assert_int_equal(journal.count, 20);
        sim_driver()->event_destroy(event);
        end();
    }
}

CASE(bounds_what_is_queued)
{
    begin(0, 0);
    for (int i = 0; i < 20000; i++) {
        assert_cuda(launch_mark(&journal, i, a));
    }
    assert_true(journal.count >= 20000 - 4096);
    assert_cuda(rmm__sim_stream_synchronize(a));
    assert_int_equal(journal.count, 20000);
    end();
}

CASE(runs_the_work_of_a_destroyed_stream)
{
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        rmm_stream_t destroyed = make_stream(0);
        rmm_driver_event_t event;

        begin(seed, 0);
        assert_cuda(sim_driver()->event_create(&event));
        assert_cuda(launch_mark(&journal, A_FIRST, destroyed));
        assert_cuda(sim_driver()->event_record(event, destroyed));
        assert_cuda(sim_driver()->stream_destroy(destroyed));
        assert_cuda(launch_mark(&journal, LEGACY, NULL)); /* behind it all the same */
        assert_cuda(rmm__sim_stream_synchronize(NULL));
        assert_order(&journal, A_FIRST, LEGACY);
        assert_cuda(sim_driver()->event_synchronize(event));
        assert_cuda(sim_driver()->event_destroy(event));
        end();
    }
}

CASE(copies_a_kernels_parameters_at_the_launch)
{
    journal_t noted = {.count = 0};
    journal_t *target = &noted;
    int mark = 7;
    const void *params[] = {&target, &mark};
    size_t param_bytes[] = {sizeof(target), sizeof(mark)};

    assert_cuda(rmm_sim_launch("mark", journal_kernel, NULL, params, param_bytes, 2));
    target = NULL;
    mark = 8;
    params[0] = NULL;
    assert_cuda(rmm__sim_stream_synchronize(NULL));
    assert_int_equal(noted.entries[0], 7);
}

CASE(copies_and_fills_in_stream_order)
{
    char from[64], to[64];

    begin(1, 0);
    memset(to, 0, sizeof(to));
    assert_cuda(rmm_sim_memset_async(from, 'x', sizeof(from), a));
    assert_cuda(rmm_sim_memcpy_async(to, from, sizeof(to), a));
    assert_cuda(rmm_sim_memset_async(from, 'y', sizeof(from), a));
    assert_cuda(rmm__sim_stream_synchronize(a));
    assert_int_equal(to[0], 'x');
    assert_int_equal(to[63], 'x');
    assert_int_equal(from[63], 'y');
    end();
}
