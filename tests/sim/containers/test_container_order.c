/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A buffer keeps its order across streams and devices (docs/concepts/stream-order.md): a copy,
 * a change of its stream and its end, for each pair of eight streams, four kinds of each of two
 * devices. The traffic of tests/stress mixes all of that; here is one call at a time, and what
 * is left to the program: captures, and streams that have ended.
 */
#include "driver/sim/control.h"
#include "sim/containers/container_harness.h"

#include "driver/stream_ids.h"

enum { BYTES = 2000, DEVICES = 2, KINDS = 4, PLACES = DEVICES * KINDS, FEW_SEEDS = 6 };

static struct {
    rmm_resource_t *mr[DEVICES];
    rmm_stream_t streams[PLACES];
} scene;

static const rmm_stream_t built_in[] = {RMM_STREAM_LEGACY, RMM_STREAM_PER_THREAD};

static int set_up(void **state)
{
    for (int device = 0; device < DEVICES; device++) {
        assert_ok(rmm_device_set(device));
        scene.mr[device] = make_pool(MIB, 0);
        for (int kind = 0; kind < KINDS; kind++) {
            scene.streams[device * KINDS + kind] =
                kind < 2 ? built_in[kind]
                         : make_stream(kind == 2 ? 0 : RMM_STREAM_NON_BLOCKING);
        }
    }
    assert_ok(rmm_device_set(0));
    return 0;
}

static int tear_down(void **state)
{
    for (int place = 0; place < PLACES; place++) {
        assert_ok(rmm_stream_destroy(scene.streams[place]));
    }
    for (int device = 0; device < DEVICES; device++) {
        assert_int_equal(stats_of(scene.mr[device]).current_count, 0);
        rmm_resource_release(scene.mr[device]);
        assert_int_equal(rmm_sim_allocated_bytes(device), 0);
    }
    assert_int_equal(rmm__sim_library_events(), 0);
    assert_int_equal(rmm_sim_violations(), 0);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

static int device_of(int place)
{
    return place / KINDS;
}

/* Queued on that stream, and late: the simulated GPU runs it when it has to, or at random. */
static void fill_at(int place, void *data, int value)
{
    assert_ok(rmm_device_set(device_of(place)));
    assert_ok(rmm_memset_async(data, value, BYTES, scene.streams[place]));
}

static void begin_at(int place, int device, int value, rmm_device_buffer_t *buffer)
{
    assert_ok(
        rmm_device_buffer_init(buffer, BYTES, scene.streams[place], scene.mr[device]));
    fill_at(
        rmm_stream_is_default(scene.streams[place]) ||
                rmm_stream_is_per_thread_default(scene.streams[place])
            ? device * KINDS + place % KINDS
            : place,
        rmm_device_buffer_data(buffer), value);
}

/* What a buffer's memory may become as soon as it is freed. */
static void overwrite(int device, rmm_stream_t stream)
{
    rmm_device_buffer_t next = RMM_DEVICE_BUFFER_INIT;

    assert_ok(rmm_device_set(device));
    for (int i = 0; i < 3; i++) {
        assert_ok(rmm_device_buffer_init(&next, BYTES, stream, scene.mr[device]));
        assert_ok(rmm_memset_async(rmm_device_buffer_data(&next), 0xee, BYTES, stream));
        rmm_device_buffer_fini(&next);
    }
}

static void assert_all(const unsigned char *found, int value)
{
    for (int i = 0; i < BYTES; i++) {
        assert_int_equal(found[i], value);
    }
}

static void assert_buffer(const rmm_device_buffer_t *buffer, int value)
{
    static unsigned char found[BYTES];

    assert_ok(rmm_device_buffer_copy_to_host(
        buffer, 0, found, BYTES, rmm_device_buffer_stream(buffer)));
    assert_all(found, value);
}

typedef void (*pair_fn)(int from, int to, uint64_t seed);

/* Every pair of streams, with either device current. */
static void for_each_pair(pair_fn function)
{
    for (int from = 0; from < PLACES; from++) {
        for (int to = 0; to < PLACES; to++) {
            for (uint64_t seed = 1; seed <= FEW_SEEDS; seed++) {
                rmm__sim_reseed(seed);
                assert_ok(rmm_device_set((int)seed % DEVICES));
                function(from, to, seed);
            }
        }
    }
}

/* --- copies ------------------------------------------------------------------------------ */

/* The source ends at once, and its memory gets another owner. */
static void copy_and_end(int from, int to, uint64_t seed)
{
    rmm_device_buffer_t src = RMM_DEVICE_BUFFER_INIT;
    rmm_device_buffer_t dst = RMM_DEVICE_BUFFER_INIT;

    begin_at(from, device_of(from), (int)seed, &src);
    assert_ok(rmm_device_set((int)seed % DEVICES));
    assert_ok(
        rmm_device_buffer_copy(&dst, &src, scene.streams[to], scene.mr[device_of(to)]));
    rmm_device_buffer_fini(&src);
    overwrite(device_of(from), scene.streams[from]);
    assert_buffer(&dst, (int)seed);
    rmm_device_buffer_fini(&dst);
}

CASE(a_copy_runs_between_what_was_and_will_be_queued_at_its_source)
{
    for_each_pair(copy_and_end);
}

/* Streams of another device than the buffers': no event of the buffers' device fits them. */
static void copy_elsewhere(int from, int to, uint64_t seed)
{
    rmm_device_buffer_t src = RMM_DEVICE_BUFFER_INIT;
    rmm_device_buffer_t dst = RMM_DEVICE_BUFFER_INIT;

    begin_at(from, 1 - device_of(from), (int)seed, &src);
    assert_ok(rmm_device_buffer_copy(
        &dst, &src, scene.streams[to], scene.mr[1 - device_of(to)]));
    rmm_device_buffer_fini(&src);
    overwrite(1 - device_of(from), scene.streams[from]);
    assert_buffer(&dst, (int)seed);
    rmm_device_buffer_fini(&dst);
}

CASE(a_copy_is_ordered_where_the_streams_are_of_the_other_device)
{
    for_each_pair(copy_elsewhere);
}

static void copy_onto_itself(int from, int to, uint64_t seed)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;

    begin_at(from, device_of(from), (int)seed, &buffer);
    assert_ok(rmm_device_buffer_copy(
        &buffer, &buffer, scene.streams[to], scene.mr[device_of(to)]));
    overwrite(device_of(from), scene.streams[to]);
    overwrite(device_of(from), scene.streams[from]);
    assert_buffer(&buffer, (int)seed);
    rmm_device_buffer_fini(&buffer);
}

CASE(a_copy_onto_itself_is_whole)
{
    for_each_pair(copy_onto_itself);
}

/* Of which the host's part is filled by a copy that is queued. */
CASE(host_memory_is_copied_behind_what_fills_it)
{
    rmm_resource_t *host;

    assert_ok(rmm_host_resource_create(&host));
    for (uint64_t seed = 1; seed <= 4 * FEW_SEEDS; seed++) {
        rmm_device_buffer_t device_0 = RMM_DEVICE_BUFFER_INIT;
        rmm_device_buffer_t on_host = RMM_DEVICE_BUFFER_INIT;
        rmm_device_buffer_t device_1 = RMM_DEVICE_BUFFER_INIT;

        rmm__sim_reseed(seed);
        begin_at(3, 0, (int)seed, &device_0);
        assert_ok(rmm_device_buffer_copy(&on_host, &device_0, scene.streams[2], host));
        rmm_device_buffer_fini(&device_0);
        overwrite(0, scene.streams[3]);
        assert_ok(rmm_device_buffer_copy(
            &device_1, &on_host, RMM_STREAM_PER_THREAD, scene.mr[1]));
        rmm_device_buffer_fini(&on_host); /* waits, for the heap takes it at once */
        assert_buffer(&device_1, (int)seed);
        rmm_device_buffer_fini(&device_1);
    }
    rmm_resource_release(host);
}

/* --- another stream ---------------------------------------------------------------------- */

static rmm_status_t grow(rmm_device_buffer_t *buffer, rmm_stream_t stream)
{
    return rmm_device_buffer_resize(buffer, 2 * BYTES, stream);
}

static rmm_status_t keep_size(rmm_device_buffer_t *buffer, rmm_stream_t stream)
{
    return rmm_device_buffer_resize(buffer, BYTES, stream);
}

static rmm_status_t reserve_more(rmm_device_buffer_t *buffer, rmm_stream_t stream)
{
    return rmm_device_buffer_reserve(buffer, 2 * BYTES, stream);
}

static rmm_status_t reserve_none(rmm_device_buffer_t *buffer, rmm_stream_t stream)
{
    return rmm_device_buffer_reserve(buffer, 1, stream);
}

static rmm_status_t shrink(rmm_device_buffer_t *buffer, rmm_stream_t stream)
{
    return rmm_device_buffer_shrink_to_fit(buffer, stream);
}

static rmm_status_t set_stream(rmm_device_buffer_t *buffer, rmm_stream_t stream)
{
    rmm_device_buffer_set_stream(buffer, stream);
    return RMM_OK;
}

typedef rmm_status_t (*go_over_fn)(rmm_device_buffer_t *buffer, rmm_stream_t stream);

static const go_over_fn ways_over[] = {grow,         keep_size, reserve_more,
                                       reserve_none, shrink,    set_stream};

enum { WAYS_OVER = sizeof(ways_over) / sizeof(ways_over[0]) };

/* The former stream still reads and writes the memory when the buffer ends on the new one. */
static void go_over_and_end(int from, int to, uint64_t seed)
{
    static unsigned char seen[BYTES];
    const int device = device_of(from);

    for (int way = 0; way < WAYS_OVER; way++) {
        rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;

        begin_at(from, device, (int)seed, &buffer);
        assert_ok(rmm_memcpy_async(
            seen, rmm_device_buffer_data(&buffer), BYTES, scene.streams[from]));
        assert_ok(rmm_device_set((int)seed % DEVICES));
        assert_ok(ways_over[way](&buffer, scene.streams[to]));
        assert_ptr_equal(rmm_device_buffer_stream(&buffer), scene.streams[to]);
        assert_buffer(&buffer, (int)seed);
        rmm_device_buffer_fini(&buffer);
        overwrite(device, scene.streams[to]);
        assert_ok(rmm_device_set(device));
        assert_ok(rmm_stream_synchronize(scene.streams[from]));
        assert_all(seen, (int)seed);
    }
}

CASE(a_buffer_takes_its_order_along_to_another_stream)
{
    for_each_pair(go_over_and_end);
}

/* --- streams that have ended ------------------------------------------------------------ */

/* A destroyed handle is fatal with CUDA, and a violation here. */
static void use_after_its_stream(go_over_fn way, uint64_t seed)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    rmm_stream_t stream;

    rmm__sim_reseed(seed);
    assert_ok(rmm_device_set(0));
    stream = make_stream(RMM_STREAM_NON_BLOCKING);
    assert_ok(rmm_device_buffer_init(&buffer, BYTES, stream, scene.mr[0]));
    assert_ok(
        rmm_memset_async(rmm_device_buffer_data(&buffer), (int)seed, BYTES, stream));
    assert_ok(rmm_stream_destroy(stream)); /* the fill is still queued */
    assert_int_equal(rmm__stream_origin(stream), RMM_STREAM_ENDED);
    if (way == NULL) {
        rmm_device_buffer_t copy = RMM_DEVICE_BUFFER_INIT;

        assert_ok(rmm_device_buffer_copy(
            &copy, &buffer, RMM_STREAM_PER_THREAD, scene.mr[seed % DEVICES]));
        rmm_device_buffer_set_stream(&buffer, scene.streams[3]);
        rmm_device_buffer_fini(&buffer);
        overwrite(0, scene.streams[3]);
        assert_buffer(&copy, (int)seed);
        rmm_device_buffer_fini(&copy);
        return;
    }
    assert_ok(way(&buffer, scene.streams[3]));
    assert_buffer(&buffer, (int)seed);
    rmm_device_buffer_fini(&buffer);
}

CASE(work_of_a_stream_that_has_ended_is_waited_for)
{
    for (uint64_t seed = 1; seed <= FEW_SEEDS; seed++) {
        use_after_its_stream(NULL, seed);
        for (int way = 0; way < WAYS_OVER; way++) {
            use_after_its_stream(ways_over[way], seed);
        }
    }
}

/* Of a handle that no stream of the library's has had. */
static rmm_stream_t make_stream_of_somebody_else(void)
{
    rmm_stream_t others[100], stream;
    int count = 0;

    assert_cuda(sim_driver()->stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    while (rmm__stream_origin(stream) != RMM_STREAM_UNKNOWN) {
        assert_true(count < 100);
        others[count++] = stream;
        assert_cuda(sim_driver()->stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    }
    while (count > 0) {
        assert_cuda(sim_driver()->stream_destroy(others[--count]));
    }
    return stream;
}

/* The program made it elsewhere, and may have destroyed it. */
CASE(a_former_stream_of_somebody_else_is_not_named)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;

    for (int way = 0; way < WAYS_OVER; way++) {
        rmm_stream_t stream;

        assert_ok(rmm_device_set(0));
        stream = make_stream_of_somebody_else();
        assert_ok(rmm_device_buffer_init(&buffer, BYTES, stream, scene.mr[0]));
        assert_cuda(sim_driver()->stream_destroy(stream));
        assert_ok(ways_over[way](&buffer, scene.streams[3]));
        rmm_device_buffer_fini(&buffer);
    }
}

CASE(a_source_on_a_stream_of_somebody_else_is_waited_for)
{
    for (uint64_t seed = 1; seed <= FEW_SEEDS; seed++) {
        rmm_device_buffer_t src = RMM_DEVICE_BUFFER_INIT;
        rmm_device_buffer_t dst = RMM_DEVICE_BUFFER_INIT;
        rmm_stream_t stream;

        rmm__sim_reseed(seed);
        assert_ok(rmm_device_set(0));
        stream = make_stream_of_somebody_else();
        assert_ok(rmm_device_buffer_init(&src, BYTES, stream, scene.mr[0]));
        assert_ok(
            rmm_memset_async(rmm_device_buffer_data(&src), (int)seed, BYTES, stream));
        assert_ok(rmm_device_buffer_copy(&dst, &src, scene.streams[7], scene.mr[1]));
        rmm_device_buffer_fini(&src);
        overwrite(0, stream);
        assert_buffer(&dst, (int)seed);
        rmm_device_buffer_fini(&dst);
        assert_ok(rmm_device_set(0));
        assert_cuda(sim_driver()->stream_destroy(stream));
    }
}

/* --- captures ----------------------------------------------------------------------------- */

static void expect_whole_capture(rmm_stream_t stream)
{
    rmm_sim_graph_t graph;

    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
}

/* An event would lead into the capture, or out of it. */
CASE(what_is_captured_is_the_programs_to_order)
{
    rmm_device_buffer_t src = RMM_DEVICE_BUFFER_INIT;
    rmm_device_buffer_t dst = RMM_DEVICE_BUFFER_INIT;
    const rmm_stream_t captured = scene.streams[3];

    for (int place = 0; place < 3; place++) {
        begin_at(place, 0, 7, &src);
        assert_cuda(rmm_sim_begin_capture(captured, RMM_CAPTURE_MODE_GLOBAL));
        assert_ok(rmm_device_buffer_copy(&dst, &src, captured, scene.mr[0]));
        rmm_device_buffer_set_stream(&src, captured);
        rmm_device_buffer_set_stream(&src, scene.streams[place]);
        expect_whole_capture(captured);
        rmm_device_buffer_fini(&dst);
        rmm_device_buffer_fini(&src);
        assert_ok(rmm_resource_trim(scene.mr[0], 0));
    }
}

/* The graph reads what the copy replaced: it is set aside until the graph is gone. */
CASE(a_captured_copy_onto_itself_keeps_its_source)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    const rmm_stream_t captured = scene.streams[3];
    rmm_sim_graph_t graph;

    begin_at(0, 0, 7, &buffer);
    assert_ok(rmm_stream_synchronize(RMM_STREAM_LEGACY));
    assert_cuda(rmm_sim_begin_capture(captured, RMM_CAPTURE_MODE_GLOBAL));
    assert_ok(rmm_device_buffer_copy(&buffer, &buffer, captured, scene.mr[0]));
    assert_cuda(rmm_sim_end_capture(captured, &graph));
    overwrite(0, RMM_STREAM_LEGACY);
    assert_ok(rmm_stream_synchronize(RMM_STREAM_LEGACY));
    assert_cuda(rmm_sim_graph_launch(graph, captured));
    assert_buffer(&buffer, 7);
    assert_cuda(rmm_sim_graph_destroy(graph));
    rmm_device_buffer_fini(&buffer);
    assert_ok(rmm_resource_trim(scene.mr[0], 0));
}

/* While a blocking stream captures, nothing may touch the legacy default stream. */
CASE(a_capture_that_forbids_the_default_stream_stays_whole)
{
    rmm_device_buffer_t src = RMM_DEVICE_BUFFER_INIT;
    rmm_device_buffer_t dst = RMM_DEVICE_BUFFER_INIT;
    const rmm_stream_t captured = scene.streams[2];

    begin_at(0, 0, 7, &src);
    assert_ok(rmm_stream_synchronize(RMM_STREAM_LEGACY));
    assert_cuda(rmm_sim_begin_capture(captured, RMM_CAPTURE_MODE_GLOBAL));
    assert_ok(rmm_device_buffer_copy(&dst, &src, scene.streams[3], scene.mr[0]));
    rmm_device_buffer_set_stream(&dst, RMM_STREAM_LEGACY);
    rmm_device_buffer_set_stream(&dst, scene.streams[3]);
    expect_whole_capture(captured);
    assert_buffer(&dst, 7);
    rmm_device_buffer_fini(&dst);
    rmm_device_buffer_fini(&src);
}

/* Two streams of one capture are ordered as others are. */
CASE(streams_of_one_capture_are_ordered)
{
    static unsigned char bytes[2];
    rmm_sim_event_t fork;
    rmm_sim_graph_t graph;
    rmm_stream_t first = scene.streams[2], second = scene.streams[3];

    for (uint64_t seed = 1; seed <= 4 * FEW_SEEDS; seed++) {
        rmm__sim_reseed(seed);
        memset(bytes, 0, sizeof(bytes));
        assert_cuda(rmm_sim_event_create(&fork));
        assert_cuda(rmm_sim_begin_capture(first, RMM_CAPTURE_MODE_RELAXED));
        assert_cuda(rmm_sim_event_record(fork, first));
        assert_cuda(rmm_sim_stream_wait_event(second, fork));
        assert_cuda(rmm_sim_memset_async(bytes, 1, 1, second));
        assert_ok(rmm_stream_order(0, second, 0, first));
        assert_cuda(rmm_sim_memcpy_async(bytes + 1, bytes, 1, first));
        assert_cuda(rmm_sim_end_capture(first, &graph));
        assert_cuda(rmm_sim_graph_launch(graph, first));
        assert_ok(rmm_stream_synchronize(first));
        assert_int_equal(bytes[1], 1);
        assert_cuda(rmm_sim_graph_destroy(graph));
        assert_cuda(rmm_sim_event_destroy(fork));
    }
}

/* --- the public functions ------------------------------------------------------------------ */

CASE(an_order_that_fails_says_so)
{
    rmm_stream_t gone = make_stream(0);

    assert_true(rmm_sim_fail("any:1"));
    assert_int_equal(
        rmm_stream_order(0, scene.streams[2], 1, scene.streams[6]), RMM_ERR_CUDA);
    assert_true(rmm_sim_fail("event_create:1,stream_synchronize:1"));
    assert_int_equal(
        rmm_stream_order(0, scene.streams[2], 1, scene.streams[6]), RMM_ERR_CUDA);
    assert_true(rmm_sim_fail("event_create:1")); /* then the host waits */
    assert_ok(rmm_stream_order(0, scene.streams[2], 1, scene.streams[6]));
    assert_true(rmm_sim_fail(NULL));
    assert_ok(rmm_stream_order(-1, scene.streams[2], 1, scene.streams[6]));
    assert_ok(rmm_stream_destroy(gone));
    assert_ok(rmm_stream_order(0, gone, 1, scene.streams[6]));
    assert_ok(rmm_stream_order(0, scene.streams[2], 1, gone));
    assert_ok(rmm_stream_take_over(0, gone, scene.streams[2]));
    assert_ok(rmm_stream_take_over(-1, NULL, scene.streams[2]));
}

/* The same stream under two names, or the same buffer again: nothing to order. */
CASE(one_stream_costs_no_driver_call)
{
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;

    assert_ok(rmm_device_buffer_init(&buffer, BYTES, NULL, scene.mr[0]));
    assert_true(rmm_sim_fail("any:1"));
    assert_ok(rmm_stream_order(0, NULL, 0, RMM_STREAM_LEGACY));
    assert_ok(rmm_stream_order(1, scene.streams[2], 0, scene.streams[2]));
    rmm_device_buffer_set_stream(&buffer, RMM_STREAM_LEGACY);
    assert_ok(rmm_device_buffer_resize(&buffer, BYTES / 2, NULL));
    assert_false(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    rmm_device_buffer_fini(&buffer);
}

/* --- a resource of the program ------------------------------------------------------------- */

/* Its memory is reused in stream order, on what it gets as the stream. */
typedef struct reuser {
    rmm_resource_t *cuda;
    void *block;
} reuser_t;

static rmm_status_t
reuse_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    reuser_t *reuser = payload;

    if (reuser->block == NULL) {
        reuser->block = take(reuser->cuda, bytes, stream);
    }
    assert_cuda(rmm_sim_memset_async(reuser->block, 0xaa, bytes, stream));
    *ptr_out = reuser->block;
    return RMM_OK;
}

static void reuse_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    assert_cuda(rmm_sim_memset_async(ptr, 0xee, bytes, stream));
}

/* Where the functions run, RMM_STREAM_PER_THREAD is a stream of their resource's device. */
CASE(the_per_thread_stream_of_a_callback_is_ordered_with_the_callers)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    static unsigned char seen[BYTES];
    reuser_t reuser = {.cuda = make_cuda()};
    rmm_resource_t *mr;

    options.alloc = reuse_alloc;
    options.dealloc = reuse_dealloc;
    options.payload = &reuser;
    assert_ok(rmm_callback_resource_create(&options, &mr));
    assert_ok(rmm_device_set(1));
    for (uint64_t seed = 1; seed <= 8 * FEW_SEEDS; seed++) {
        void *block;

        rmm__sim_reseed(seed);
        block = take(mr, BYTES, RMM_STREAM_PER_THREAD);
        assert_ok(rmm_memset_async(block, (int)seed, BYTES, RMM_STREAM_PER_THREAD));
        assert_ok(rmm_memcpy_async(seen, block, BYTES, RMM_STREAM_PER_THREAD));
        give(mr, block, BYTES, RMM_STREAM_PER_THREAD);
        assert_ok(rmm_device_set(0));
        assert_cuda(rmm_sim_device_synchronize());
        assert_ok(rmm_device_set(1));
        assert_cuda(rmm_sim_device_synchronize());
        assert_all(seen, (int)seed);
    }
    assert_ok(rmm_device_set(0));
    give(reuser.cuda, reuser.block, BYTES, RMM_STREAM_PER_THREAD);
    rmm_resource_release(mr);
    rmm_resource_release(reuser.cuda);
}
