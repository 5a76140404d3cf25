/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring of events: the engine and the reader together, when it is full and when it is not, and
 * files that do not hold together.
 */
#include "harness/harness.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "diag/timeline_reader.h"
#include "harness/random.h"
#include "unit/diag_fixture.h"

#define BASE 0x7f4000000000ull
#define STEP 0x10000ull
#define EVENTS 64u

static rmm_timeline_header_t *ring;
static diag_fixture_t diag;

static int make_engine(void **state)
{
    ring = calloc(1, rmm__timeline_file_bytes(EVENTS));
    assert_non_null(ring);
    diag = diag_open_described((rmm_diag_engine_desc_t){
        .row_count = 256,
        .kernel_count = 16,
        .modes = RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_BOUNDS,
        .timeline = ring,
        .timeline_events = EVENTS});
    return 0;
}

static int drop_engine(void **state)
{
    diag_close(&diag);
    free(ring);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, make_engine, drop_engine)

/* --- reading -------------------------------------------------------------------------- */

typedef struct seen {
    rmm_timeline_event_t events[EVENTS];
    size_t count;
    uint64_t lost;
} seen_t;

static bool take(const rmm_timeline_event_t *event, void *arg)
{
    seen_t *seen = arg;

    assert_true(seen->count < EVENTS);
    seen->events[seen->count++] = *event;
    return true;
}

/* A descriptor of the ring as it is now. */
static int file_of_ring(void)
{
    int fd = memfd_create("timeline", MFD_CLOEXEC);
    size_t bytes = rmm__timeline_file_bytes(EVENTS);

    assert_true(fd >= 0);
    assert_int_equal(write(fd, ring, bytes), (ssize_t)bytes);
    return fd;
}

static seen_t look(void)
{
    seen_t seen = {.count = 0};
    rmm_timeline_file_t file;

    assert_int_equal(rmm__timeline_attach(&file, file_of_ring()), 0);
    assert_true(rmm__timeline_each(&file, take, &seen));
    assert_int_equal(rmm__timeline_kept(&file), seen.count);
    seen.lost = rmm__timeline_lost(&file);
    rmm__timeline_close(&file);
    return seen;
}

/* --- what is written ------------------------------------------------------------------ */

CASE(a_freed_block_is_one_event_with_its_life)
{
    rmm_diag_block_v1_t block = diag_block(BASE, 1000);
    seen_t seen;

    block.device = 2;
    rmm__diag_engine_on_alloc(diag.engine, &block);
    assert_int_equal(look().count, 0);
    diag_launch(&diag, "fill", BASE);
    diag_launch(&diag, "scale", BASE + 999);
    rmm__diag_engine_on_free(diag.engine, &block);
    seen = look();
    assert_int_equal(seen.count, 3);
    assert_int_equal(seen.events[0].kind, RMM_TIMELINE_LAUNCH);
    assert_string_equal(diag_user_name(&diag, seen.events[1].first_user), "scale");
    assert_int_equal(seen.events[2].kind, RMM_TIMELINE_BLOCK);
    assert_int_equal(seen.events[2].address, BASE);
    assert_int_equal(seen.events[2].bytes, 1000);
    assert_int_equal(seen.events[2].stream_id, 7);
    assert_int_equal(seen.events[2].resource_id, 3);
    assert_int_equal(seen.events[2].device, 2);
    assert_string_equal(diag_user_name(&diag, seen.events[2].first_user), "fill");
    assert_string_equal(diag_user_name(&diag, seen.events[2].last_user), "scale");
    assert_true(seen.events[2].begin_ns < seen.events[0].begin_ns);
    assert_true(seen.events[0].begin_ns < seen.events[1].begin_ns);
    assert_true(seen.events[1].begin_ns < seen.events[2].end_ns);
}

CASE(a_free_that_is_refused_is_no_event)
{
    diag_alloc(&diag, BASE, 1000);
    diag_free(&diag, BASE, 999);
    diag_free(&diag, BASE + 1, 1000);
    assert_int_equal(look().count, 0);
}

CASE(a_block_whose_free_was_not_seen_ends_with_the_next)
{
    seen_t seen;

    diag_alloc(&diag, BASE, 1000);
    diag_alloc(&diag, BASE + 500, 1000);
    seen = look();
    assert_int_equal(seen.count, 1);
    assert_int_equal(seen.events[0].bytes, 1000);
    assert_int_equal(seen.events[0].address, BASE);
}

static void send(uint32_t kind, rmm_stream_t stream, uint32_t before)
{
    const uint64_t words[] = {BASE, BASE + STEP};
    const rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = kind,
        .stream = stream,
        .name = "a function",
        .words = words,
        .word_count = 2,
        .bytes = 100,
        .before = before};

    rmm__diag_engine_on_event(diag.engine, &event);
}

CASE(calls_are_noted_when_they_have_succeeded)
{
    static const uint32_t kinds[] = {
        RMM_DIAG_COPY, RMM_DIAG_SET, RMM_DIAG_PREFETCH, RMM_DIAG_GRAPH_LAUNCH};
    seen_t seen;

    send(RMM_DIAG_COPY, NULL, 1);
    send(RMM_DIAG_EVENT_RECORD, NULL, 0);
    assert_int_equal(look().count, 0);
    for (size_t i = 0; i < 4; i++) {
        send(kinds[i], NULL, 0);
    }
    seen = look();
    assert_int_equal(seen.count, 4);
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(seen.events[i].kind, RMM_TIMELINE_COPY + i);
        assert_int_equal(seen.events[i].bytes, 100);
        assert_int_equal(seen.events[i].address, i < 3 ? BASE : 0);
    }
}

/* Events have handles, blocks have both: what a handle means is learned from blocks. */
CASE(a_stream_is_known_by_its_blocks)
{
    rmm_stream_t one = (rmm_stream_t)(uintptr_t)0x55550010;
    rmm_diag_block_v1_t block = diag_block(BASE, 1000);
    seen_t seen;

    send(RMM_DIAG_LAUNCH, one, 0);
    block.stream = one;
    block.stream_id = 12;
    rmm__diag_engine_on_alloc(diag.engine, &block);
    send(RMM_DIAG_LAUNCH, one, 0);
    block.address += STEP;
    block.stream_id = 13; /* another stream, of the same handle */
    rmm__diag_engine_on_alloc(diag.engine, &block);
    send(RMM_DIAG_LAUNCH, one, 0);
    send(RMM_DIAG_LAUNCH, NULL, 0);
    send(RMM_DIAG_LAUNCH, RMM_STREAM_LEGACY, 0);
    seen = look();
    assert_int_equal(seen.events[0].flags, RMM_TIMELINE_STREAM_IS_HANDLE);
    assert_int_equal(seen.events[0].stream_id, 0x55550010);
    assert_int_equal(seen.events[1].flags, 0);
    assert_int_equal(seen.events[1].stream_id, 12);
    assert_int_equal(seen.events[2].stream_id, 13);
    assert_int_equal(seen.events[3].stream_id, 0);
    assert_int_equal(seen.events[4].stream_id, 0);
    assert_int_equal(seen.events[4].flags, 0);
}

static void allocate_on_own_stream(uint64_t address, uint64_t stream_id)
{
    rmm_diag_block_v1_t block = diag_block(address, 1000);

    block.stream = RMM_STREAM_PER_THREAD;
    block.stream_id = stream_id;
    rmm__diag_engine_on_alloc(diag.engine, &block);
}

static void *use_own_stream(void *argument)
{
    allocate_on_own_stream(BASE + STEP, 22);
    send(RMM_DIAG_LAUNCH, RMM_STREAM_PER_THREAD, 0);
    return argument;
}

CASE(default_streams_of_threads_are_told_apart)
{
    pthread_t thread;
    seen_t seen;

    allocate_on_own_stream(BASE, 21);
    assert_int_equal(pthread_create(&thread, NULL, use_own_stream, NULL), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    send(RMM_DIAG_LAUNCH, RMM_STREAM_PER_THREAD, 0);
    seen = look();
    assert_int_equal(seen.count, 2);
    assert_int_equal(seen.events[0].stream_id, 22);
    assert_int_equal(seen.events[1].stream_id, 21);
}

/* --- a full ring ---------------------------------------------------------------------- */

CASE(a_full_ring_has_the_last_events_but_for_the_oldest)
{
    for (uint64_t i = 0; i < EVENTS - 1; i++) {
        diag_alloc(&diag, BASE, 100 + i);
        diag_free(&diag, BASE, 100 + i);
    }
    assert_int_equal(look().count, EVENTS - 1);
    assert_int_equal(look().lost, 0);
    for (uint64_t i = EVENTS - 1; i < 1000; i++) {
        seen_t seen;

        diag_alloc(&diag, BASE, 100 + i);
        diag_free(&diag, BASE, 100 + i);
        seen = look();
        assert_int_equal(seen.count, EVENTS - 1);
        assert_int_equal(seen.lost, i + 1 - seen.count);
        for (size_t j = 0; j < seen.count; j++) {
            assert_int_equal(seen.events[j].bytes, 100 + seen.lost + j);
        }
    }
}

/* --- files that do not hold together ---------------------------------------------------- */

static void assert_refused(int error)
{
    rmm_timeline_file_t file;
    int fd = file_of_ring();

    assert_int_equal(rmm__timeline_attach(&file, fd), error);
    close(fd);
}

CASE(refuses_what_does_not_hold_together)
{
    const rmm_timeline_header_t good = *ring;

    assert_int_equal(look().count, 0);
    ring->magic++;
    assert_refused(-EPROTO);
    *ring = good;
    ring->version_major++;
    assert_refused(-EPROTO);
    *ring = good;
    ring->header_bytes--;
    assert_refused(-EPROTO);
    *ring = good;
    ring->file_bytes++;
    assert_refused(-EPROTO);
    *ring = good;
    ring->events_count = 0;
    assert_refused(-EPROTO);
    ring->events_count = EVENTS + 1;
    assert_refused(-EPROTO);
    ring->events_count = UINT32_MAX;
    assert_refused(-EPROTO);
    *ring = good;
    ring->events_offset -= 8;
    assert_refused(-EPROTO);
    *ring = good;
    ring->events_stride = 56;
    assert_refused(-EPROTO);
    *ring = good;
    ring->ready = 0;
    assert_refused(-EAGAIN);
    *ring = good;
}

CASE(longer_events_of_a_newer_writer_are_read)
{
    rmm_timeline_event_t *events = (void *)(ring + 1);
    seen_t seen;

    ring->events_stride = 128;
    ring->events_count = EVENTS / 2;
    ring->written = 40;
    for (uint64_t i = 0; i < EVENTS / 2; i++) {
        events[2 * i].bytes = i;
        events[2 * i + 1].bytes = UINT64_MAX;
    }
    seen = look();
    assert_int_equal(seen.count, EVENTS / 2 - 1);
    for (size_t i = 0; i < seen.count; i++) {
        assert_int_equal(seen.events[i].bytes, (9 + i) % 32);
    }
    ring->events_stride = sizeof(rmm_timeline_event_t);
    ring->events_count = EVENTS;
}
