/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one process publishes and another reads: identity, figures, requests, groups that
 * agree. Every case runs the writer in a child process; this process only reads.
 */
#include "sim/publish/publish_case.h"

#include <pthread.h>
#include <sys/stat.h>
#include <time.h>

#include <rmm/cuda_resource.h>
#include <rmm/pool_resource.h>
#include <rmm/resource.h>

#include "core/mutex.h"
#include "log/log.h"
#include "publish/publisher.h"
#include "publish/trace.h"
#include "segment/segment_events.h"

/* --- identity and figures ----------------------------------------------------------- */

static void count_three_and_wait(child_t *self, void *argument)
{
    rmm_accounting_t accounting;

    umask(0277); /* the segment's mode is its own */
    CHECK(open_accounting(&accounting, "first", 1) == RMM_OK);
    for (uint64_t bytes = 100; bytes <= 300; bytes += 100) {
        count_alloc(&accounting, bytes);
    }
    count_free(&accounting, 200);
    rmm__location_reserve(0, 4096);
    rmm__location_device_free(0, 77);
    rmm__location_oom(0);
    rmm__accounting_oom(&accounting);
    rmm__accounting_oom(&accounting);
    rmm__accounting_invalid_free(&accounting);
    child_pause(self, 'r');
}

CASE(another_process_reads_its_identity)
{
    rmm_segment_t segment;
    rmm_record_t record;
    struct stat status;
    struct timespec now;
    child_t child;

    start_and_read(&child, count_three_and_wait, NULL, 'r', &segment);

    assert_true(rmm__segment_is_live(&segment));
    assert_int_equal(rmm__segment_pid(&segment), child.pid);
    assert_int_equal(segment.header.pid, child.pid);
    assert_int_equal(segment.uid, geteuid());
    assert_string_equal(segment.header.driver, "sim");
    assert_true(strncmp(segment.header.comm, "test_publish", 12) == 0);
    assert_non_null(strstr(segment.header.cmdline, "test_publish"));
    assert_true(segment.header.start_time_ticks > 0);
    clock_gettime(CLOCK_REALTIME, &now); /* time() may lag behind by a tick */
    assert_true(segment.header.start_time_ns / 1000000000u <= (uint64_t)now.tv_sec);
    assert_true(rmm__segment_read_location(&segment, 0, &record));
    assert_string_equal(rmm__record_location(&record)->uuid, "SIM-0");
    assert_string_equal(rmm__record_location(&record)->name, "Simulated");
    assert_int_equal(rmm__record_location(&record)->capacity_bytes, 80);
    assert_false(rmm__segment_read_location(&segment, 1, &record));

    assert_int_equal(fstat(segment.fd, &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    end_and_close(&child, &segment);
}

/* The driver is asked why, and what it says is shown. */
static void refuse_and_wait(child_t *self, void *argument)
{
    rmm_resource_t *cuda, *pool;
    void *block;

    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK(rmm_pool_resource_create(cuda, NULL, &pool) == RMM_OK);
    CHECK(
        rmm_resource_alloc(pool, (size_t)100 << 30, 0, NULL, &block) ==
        RMM_ERR_OUT_OF_MEMORY);
    child_pause(self, 'r');
}

CASE(a_refused_request_shows_what_the_device_has_free)
{
    rmm_segment_t segment;
    rmm_record_t record;
    const rmm_segment_location_t *location;
    child_t child;

    start_and_read(&child, refuse_and_wait, NULL, 'r', &segment);
    assert_true(rmm__segment_read_location(&segment, 0, &record));
    location = rmm__record_location(&record);
    assert_in_range(location->device_free_bytes, 1, location->capacity_bytes);
    end_and_close(&child, &segment);
}

CASE(figures_are_those_that_were_counted)
{
    rmm_segment_t segment;
    rmm_record_t record;
    child_t child;
    bool torn = true;

    start_and_read(&child, count_three_and_wait, NULL, 'r', &segment);
    assert_location(&segment, current_bytes, 400);
    assert_location(&segment, peak_bytes, 600);
    assert_location(&segment, peak_count, 3);
    assert_location(&segment, node_peak_bytes, 600);
    assert_location(&segment, node_peak_count, 3);
    assert_location(&segment, lifetime_peak_bytes, 600);
    assert_location(&segment, total_bytes, 600);
    assert_location(&segment, total_count, 3);
    assert_location(&segment, freed_count, 1);
    assert_location(&segment, reserved_bytes, 4096);
    assert_location(&segment, oom_count, 1);
    assert_location(&segment, invalid_free_count, 1);
    assert_true(rmm__segment_read_location(&segment, 0, &record));
    assert_int_equal(rmm__record_location(&record)->device_free_bytes, 77);

    assert_int_equal(rmm__segment_slot_count(&segment), 1);
    assert_true(rmm__segment_read_slot(&segment, 0, &record, &torn));
    assert_false(torn);
    assert_string_equal(rmm__record_slot(&record)->name, "first");
    assert_string_equal(rmm__record_slot(&record)->type, "test");
    assert_slot(&segment, 0, current_bytes, 400);
    assert_slot(&segment, 0, oom_count, 2);
    assert_slot(&segment, 0, invalid_free_count, 1);

    assert_int_equal(child_wait(&child), 0);
    assert_false(rmm__segment_is_live(&segment));
    assert_int_equal(rmm__segment_pid(&segment), 0);
    assert_location(&segment, peak_bytes, 600);
    rmm__segment_close(&segment);
}

static void use_a_resource(child_t *self, void *argument)
{
    rmm_resource_t *mr = NULL;
    void *block = NULL;

    CHECK(rmm_cuda_resource_create(&mr) == RMM_OK);
    CHECK(rmm_resource_alloc(mr, 1000, 0, NULL, &block) == RMM_OK);
    child_pause(self, 'r');
    rmm_resource_dealloc(mr, block, 1000, 0, NULL);
    rmm_resource_release(mr);
    child_pause(self, 'f');
}

CASE(using_a_resource_is_enough_to_be_seen)
{
    rmm_segment_t segment;
    rmm_record_t record;
    child_t child;

    start_and_read(&child, use_a_resource, NULL, 'r', &segment);
    assert_location(&segment, current_bytes, 1000);
    assert_true(rmm__segment_read_slot(&segment, 0, &record, NULL));
    assert_string_equal(rmm__record_slot(&record)->type, "cuda");
    child_go_on_until(&child, 'f');
    assert_location(&segment, current_bytes, 0);
    assert_location(&segment, reserved_bytes, 0);
    assert_location(&segment, peak_bytes, 1000);
    assert_location(&segment, total_count, 1);
    assert_false(rmm__segment_read_slot(&segment, 0, &record, NULL));
    end_and_close(&child, &segment);
}

static void begin_with_host_memory(child_t *self, void *argument)
{
    rmm_accounting_t accounting;
    const rmm_accounting_desc_t desc = {
        .type = "host", .instance_id = 1, .location = RMM_SEGMENT_HOST_LOCATION};

    rmm__publish_open("none");
    CHECK(rmm__accounting_open(&accounting, &desc) == RMM_OK);
    count_alloc(&accounting, 10);
    child_pause(self, 'h');
    rmm__publish_open("cuda");
    rmm__publish_open("none");
    child_pause(self, 'c');
}

CASE(host_memory_is_a_location_and_the_driver_may_be_opened_later)
{
    rmm_segment_t segment;
    rmm_record_t record;
    child_t child;

    start_and_read(&child, begin_with_host_memory, NULL, 'h', &segment);
    assert_string_equal(segment.header.driver, "none");
    assert_true(
        rmm__segment_read_location(&segment, RMM_SEGMENT_HOST_LOCATION, &record));
    assert_string_equal(rmm__record_location(&record)->name, "host memory");
    assert_true(rmm__record_location(&record)->capacity_bytes > 0);
    assert_int_equal(
        location_figure(
            &segment, RMM_SEGMENT_HOST_LOCATION, RMM_LOCATION_STAT_current_bytes),
        10);
    rmm__segment_close(&segment);
    child_go_on_until(&child, 'c');
    runtime_segment(&runtime, &segment);
    assert_string_equal(segment.header.driver, "cuda");
    end_and_close(&child, &segment);
}

/* --- slots -------------------------------------------------------------------------- */

#define MANY (RMM_SEGMENT_SLOTS + 44)

static void fill_the_slot_table(child_t *self, void *argument)
{
    static rmm_accounting_t accounting[MANY];
    rmm_stats_t stats = RMM_STATS_INIT;

    for (uint32_t i = 0; i < MANY; i++) {
        CHECK(open_accounting(&accounting[i], "one of many", i + 1) == RMM_OK);
        CHECK(accounting[i].slot_is_private == (i >= RMM_SEGMENT_SLOTS));
        count_alloc(&accounting[i], i + 1);
    }
    rmm__accounting_stats(&accounting[MANY - 1], &stats);
    CHECK(stats.current_bytes == MANY && stats.peak_count == 1);
    child_pause(self, 'f');

    rmm__accounting_close(&accounting[MANY - 1]);
    rmm__accounting_close(&accounting[200]);
    rmm__accounting_close(&accounting[100]);
    child_pause(self, 'c');

    CHECK(open_accounting(&accounting[0], "second life", 1000) == RMM_OK);
    CHECK(!accounting[0].slot_is_private);
    child_pause(self, 'r');
    for (uint32_t i = RMM_SEGMENT_SLOTS; i < MANY - 1; i++) {
        rmm__accounting_close(&accounting[i]);
    }
}

CASE(a_full_slot_table_loses_names_but_no_figures)
{
    rmm_segment_t segment;
    rmm_record_t record;
    child_t child;
    uint32_t generation;

    start_and_read(&child, fill_the_slot_table, NULL, 'f', &segment);
    assert_int_equal(rmm__segment_slot_count(&segment), RMM_SEGMENT_SLOTS);
    assert_location(&segment, current_bytes, MANY * (MANY + 1) / 2);
    assert_true(rmm__segment_read_slot(&segment, 100, &record, NULL));
    assert_int_equal(rmm__record_slot(&record)->instance_id, 101);
    generation = rmm__record_slot(&record)->generation;

    child_go_on_until(&child, 'c');
    assert_false(rmm__segment_read_slot(&segment, 100, &record, NULL));
    assert_false(rmm__segment_read_slot(&segment, 200, &record, NULL));
    assert_true(rmm__segment_read_slot(&segment, 255, &record, NULL));

    child_go_on_until(&child, 'r');
    assert_true(rmm__segment_read_slot(&segment, 100, &record, NULL));
    assert_int_equal(rmm__record_slot(&record)->instance_id, 1000);
    assert_int_equal(rmm__record_slot(&record)->generation, generation + 4);
    assert_string_equal(rmm__record_slot(&record)->name, "second life");
    assert_slot(&segment, 100, total_count, 0);
    end_and_close(&child, &segment);
}

/* --- requests ------------------------------------------------------------------------- */

/* Allocates when told 'a', frees all when told 'f', ends when the teller is gone. */
static void obey_words(child_t *self, void *argument)
{
    const bool exclusive = argument != NULL;
    rmm_accounting_t accounting;
    uint64_t held = 0;
    char word;

    CHECK(open_accounting(&accounting, "first", 1) == RMM_OK);
    child_say(self, 'r');
    while ((word = child_hear(self)) != 0) {
        if (word == 'a') {
            held++;
            location_alloc(0, 100);
        }
        if (exclusive) {
            rmm__accounting_begin_exclusive(&accounting);
        }
        for (uint64_t i = 0; word == 'f' && i < held; i++) {
            location_free(0, 100);
            if (exclusive) {
                rmm__accounting_free_exclusive(&accounting, 100, 156);
            } else {
                rmm__accounting_free_shared(&accounting, 100);
            }
        }
        if (word == 'a' && exclusive) {
            rmm__accounting_alloc_exclusive(&accounting, 100, 156);
        } else if (word == 'a') {
            rmm__accounting_alloc_shared(&accounting, 100);
        }
        if (exclusive) {
            rmm__accounting_end_exclusive(&accounting);
        }
        held = word == 'f' ? 0 : held;
        child_say(self, word);
    }
}

static void tell(child_t *child, const char *words)
{
    for (; *words != '\0'; words++) {
        child_say(child, *words);
        assert_int_equal(child_hear(child), *words);
    }
}

static void open_both(rmm_segment_t *segment, rmm_control_t *control)
{
    runtime_segment(&runtime, segment);
    assert_int_equal(rmm__control_open(control, runtime.fd, segment), 0);
}

static bool place_reset_is_pending(rmm_segment_t *segment, rmm_control_t *control)
{
    rmm_record_t record;
    rmm_control_location_t request;

    assert_true(rmm__segment_read_location(segment, 0, &record));
    assert_int_equal(rmm__control_read_location(control, 0, &request), 0);
    return rmm__record_location(&record)->peak_reset_seen != request.peak_reset;
}

CASE(a_peak_is_reset_at_the_next_allocation)
{
    rmm_segment_t segment;
    rmm_control_t control;
    child_t child;

    child_start_until(&child, obey_words, NULL, 'r');
    open_both(&segment, &control);
    tell(&child, "aaaafa");
    assert_location(&segment, peak_bytes, 400);

    assert_int_equal(rmm__control_reset_location_peak(&control, 0), 0);
    assert_true(place_reset_is_pending(&segment, &control));
    tell(&child, "f");
    assert_true(place_reset_is_pending(&segment, &control));
    tell(&child, "aa");
    assert_false(place_reset_is_pending(&segment, &control));
    assert_location(&segment, peak_bytes, 200);
    assert_location(&segment, peak_count, 2);
    assert_location(&segment, node_peak_bytes, 400);
    assert_location(&segment, lifetime_peak_bytes, 400);
    assert_slot(&segment, 0, peak_bytes, 400);

    assert_int_equal(rmm__control_reset_node_peak(&control, 0), 0);
    tell(&child, "fa");
    assert_location(&segment, node_peak_bytes, 100);
    assert_location(&segment, node_peak_count, 1);
    assert_location(&segment, peak_bytes, 200);
    assert_int_equal(child_wait(&child), 0);
    rmm__control_close(&control);
    rmm__segment_close(&segment);
}

/* argument of obey_words: whether the slot is written in the exclusive way */
static void check_slot_reset(void *exclusive)
{
    rmm_segment_t segment;
    rmm_control_t control;
    child_t child;

    child_start_until(&child, obey_words, exclusive, 'r');
    open_both(&segment, &control);
    tell(&child, "aaafa");
    assert_slot(&segment, 0, peak_bytes, 300);
    assert_slot(&segment, 0, current_bytes, 100);
    assert_int_equal(rmm__control_reset_slot_peak(&control, 0), 0);
    tell(&child, "a");
    assert_slot(&segment, 0, peak_bytes, 200);
    assert_slot(&segment, 0, peak_count, 2);
    assert_slot(&segment, 0, lifetime_peak_bytes, 300);
    assert_location(&segment, peak_bytes, 300);
    assert_slot(&segment, 0, padding_bytes, exclusive != NULL ? 2 * 156 : 0);
    assert_int_equal(child_wait(&child), 0);
    rmm__control_close(&control);
    rmm__segment_close(&segment);
}

CASE(a_slots_peak_is_its_own)
{
    check_slot_reset(NULL);
}

CASE(an_exclusive_slot_obeys_too)
{
    check_slot_reset(&runtime);
}

static void read_own_peak(child_t *self, void *argument)
{
    rmm_stats_t stats = RMM_STATS_INIT;
    rmm_accounting_t first, second;

    CHECK(open_accounting(&first, "first", 1) == RMM_OK);
    count_alloc(&first, 700);
    count_alloc(&first, 1);
    count_free(&first, 1);
    count_free(&first, 700);
    count_alloc(&first, 5);
    child_pause(self, 'r'); /* slots 0 and 1 were requested a reset */
    rmm__accounting_stats(&first, &stats);
    CHECK(stats.peak_bytes == 5 && stats.peak_count == 1); /* not obeyed, yet shown */
    CHECK(open_accounting(&second, "second", 2) == RMM_OK);
    CHECK(second.slot->peak_reset_seen == 1 && second.requests->peak_reset == 1);
    count_alloc(&second, 30);
    count_free(&second, 30);
    rmm__accounting_stats(&second, &stats);
    CHECK(stats.peak_bytes == 30); /* the request was for whoever had the slot before */
    CHECK(stats.current_count == 0 && stats.total_count == 1);
}

CASE(a_pending_request_shows_the_current_value_and_binds_no_successor)
{
    rmm_segment_t segment;
    rmm_control_t control;
    child_t child;

    child_start_until(&child, read_own_peak, NULL, 'r');
    open_both(&segment, &control);
    assert_int_equal(rmm__control_reset_slot_peak(&control, 0), 0);
    assert_int_equal(rmm__control_reset_slot_peak(&control, 1), 0);
    child_end(&child);
    rmm__control_close(&control);
    rmm__segment_close(&segment);
}

/* --- records that are still being written ------------------------------------------- */

static bool a_reader_opens_the_ring(void)
{
    char path[2 * RMM_RUNTIME_DIR_BYTES + sizeof("/." RMM_EVENTS_SUFFIX)];
    rmm_events_t events;
    int fd;

    snprintf(
        path, sizeof(path), "%s/%s.%s", rmm__publisher.directory, rmm__publisher.name,
        RMM_EVENTS_SUFFIX);
    fd = open(path, O_RDONLY);
    if (fd < 0 || rmm__events_attach(&events, fd, getuid()) != 0) {
        return false;
    }
    rmm__events_close(&events);
    return true;
}

/* As a thread leaves it that was overtaken by a whole round. */
static void put_where_others_write(child_t *self, void *argument)
{
    rmm_segment_log_t *log;
    rmm_events_layout_t *events;
    const rmm_event_t event = {.action = RMM_EVENT_FREE};
    void *memory;

    rmm__publish_open("none");
    log = &rmm__publisher.segment->log;
    rmm__publisher.segment->log_records[log->next % RMM_LOG_RECORDS].commit = 1;
    rmm__log_error("nobody will see this");
    CHECK(log->lost == 1);
    rmm__log_error("this is seen");
    CHECK(log->lost == 1);
    rmm__trace_put(&event, 0, 1);
    CHECK(
        rmm__publish_side_file(RMM_EVENTS_SUFFIX, sizeof(*events), &memory) == RMM_OK);
    events = memory;
    events->records[events->header.next % RMM_EVENTS_RECORDS].commit = 1;
    rmm__trace_put(&event, 0, 1);
    CHECK(events->header.lost == 1 && events->header.next == 2);
    CHECK(a_reader_opens_the_ring());
    child_say(self, 'r');
}

CASE(what_finds_its_record_in_use_is_counted)
{
    child_t child;

    child_start_until(&child, put_where_others_write, NULL, 'r');
    assert_int_equal(child_wait(&child), 0);
}

/* --- many threads ------------------------------------------------------------------- */

enum { THREADS = 8, ROUNDS = 4000, TOGETHER = 8000 };

typedef struct contenders {
    rmm_accounting_t accounting;
    pthread_barrier_t barrier;
} contenders_t;

/* All hold 1000 bytes at one moment; one looks, and forgets the mark for the next time. */
static void allocate_together(contenders_t *contenders, int round)
{
    const bool last = round == TOGETHER - 1;

    pthread_barrier_wait(&contenders->barrier);
    count_alloc(&contenders->accounting, 1000);
    if (pthread_barrier_wait(&contenders->barrier) == PTHREAD_BARRIER_SERIAL_THREAD) {
        CHECK(rmm__locations[0].peak_bytes == THREADS * 1000);
        CHECK(contenders->accounting.slot->peak_bytes == THREADS * 1000);
        rmm__locations[0].peak_bytes = last ? THREADS * 1000 : 0;
        contenders->accounting.slot->peak_bytes = last ? THREADS * 1000 : 0;
    }
    pthread_barrier_wait(&contenders->barrier);
    count_free(&contenders->accounting, 1000);
}

static void *allocate_alone_then_together(void *argument)
{
    contenders_t *contenders = argument;

    for (int i = 0; i < ROUNDS; i++) {
        count_alloc(&contenders->accounting, 100);
        count_free(&contenders->accounting, 100);
    }
    for (int i = 0; i < TOGETHER; i++) {
        allocate_together(contenders, i);
    }
    return NULL;
}

static void run_contenders(child_t *self, void *argument)
{
    static contenders_t contenders;
    pthread_t threads[THREADS];

    CHECK(open_accounting(&contenders.accounting, "contenders", 1) == RMM_OK);
    pthread_barrier_init(&contenders.barrier, NULL, THREADS);
    for (int i = 0; i < THREADS; i++) {
        CHECK(
            pthread_create(
                &threads[i], NULL, allocate_alone_then_together, &contenders) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    pthread_barrier_destroy(&contenders.barrier);
}

/* Alone they hold at most 800 bytes together; then all hold 1000 at one moment. */
CASE(eight_threads_leave_exact_figures_and_the_exact_peak)
{
    const uint64_t count = THREADS * (ROUNDS + TOGETHER);
    const uint64_t bytes = THREADS * (ROUNDS * 100u + TOGETHER * 1000u);
    rmm_segment_t segment;

    child_run(run_contenders, NULL);
    runtime_segment(&runtime, &segment);
    assert_location(&segment, current_bytes, 0);
    assert_location(&segment, total_count, count);
    assert_location(&segment, freed_count, count);
    assert_location(&segment, total_bytes, bytes);
    assert_location(&segment, peak_bytes, 8000);
    assert_location(&segment, peak_count, THREADS);
    assert_location(&segment, node_peak_bytes, 8000);
    assert_location(&segment, lifetime_peak_bytes, 8000);
    assert_slot(&segment, 0, current_bytes, 0);
    assert_slot(&segment, 0, total_bytes, bytes);
    assert_slot(&segment, 0, peak_bytes, 8000);
    assert_slot(&segment, 0, peak_count, THREADS);
    rmm__segment_close(&segment);
}

static void *allocate_until_told(void *argument)
{
    contenders_t *contenders = argument;

    for (int i = 0; i < ROUNDS; i++) {
        count_alloc(&contenders->accounting, 100);
        count_alloc(&contenders->accounting, 100);
        count_free(&contenders->accounting, 200);
        rmm__accounting_free_shared(&contenders->accounting, 0);
        location_free(0, 0);
    }
    return NULL;
}

/* Resets come while threads allocate; then all is quiet and one more says what holds. */
static void run_contenders_under_resets(child_t *self, void *argument)
{
    static contenders_t contenders;
    pthread_t threads[THREADS];

    CHECK(open_accounting(&contenders.accounting, "contenders", 1) == RMM_OK);
    child_say(self, 'r');
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_create(&threads[i], NULL, allocate_until_told, &contenders) == 0);
    }
    for (int i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    child_pause(self, 'j'); /* one last reset was requested */
    count_alloc(&contenders.accounting, 50);
}

CASE(resets_amid_allocations_never_leave_a_wrong_mark)
{
    rmm_segment_t segment;
    rmm_control_t control;
    child_t child;

    child_start_until(&child, run_contenders_under_resets, NULL, 'r');
    open_both(&segment, &control);
    for (int i = 0; i < 300; i++) {
        assert_int_equal(rmm__control_reset_location_peak(&control, 0), 0);
        assert_int_equal(rmm__control_reset_slot_peak(&control, 0), 0);
        assert_true(location_figure(&segment, 0, RMM_LOCATION_STAT_peak_bytes) <= 1600);
        assert_true(location_figure(&segment, 0, RMM_LOCATION_STAT_peak_count) <= 16);
        assert_true(slot_figure(&segment, 0, RMM_SLOT_STAT_peak_bytes) <= 1600);
    }
    assert_int_equal(child_hear(&child), 'j');
    assert_int_equal(rmm__control_reset_location_peak(&control, 0), 0);
    assert_int_equal(rmm__control_reset_slot_peak(&control, 0), 0);
    assert_int_equal(child_wait(&child), 0);
    assert_location(&segment, peak_bytes, 50);
    assert_slot(&segment, 0, peak_bytes, 50);
    rmm__control_close(&control);
    rmm__segment_close(&segment);
}

/* --- groups that agree -------------------------------------------------------------- */

/* In each section free_bytes, largest_free_bytes and reserved_bytes become one number. */
static void write_groups(child_t *self, void *argument)
{
    const struct timespec pause = {.tv_nsec = 20000};
    rmm_accounting_t accounting;

    CHECK(open_accounting(&accounting, "groups", 1) == RMM_OK);
    child_say(self, 'r');
    for (uint64_t n = 1;; n++) {
        rmm__accounting_begin_exclusive(&accounting);
        RMM_ACCOUNTING_SET(&accounting, free_bytes, n);
        rmm__accounting_alloc_exclusive(&accounting, 64, 192);
        RMM_ACCOUNTING_SET(&accounting, largest_free_bytes, n);
        RMM_ACCOUNTING_SET(&accounting, reserved_bytes, n);
        rmm__accounting_end_exclusive(&accounting);
        if (n % 512 == 0) {
            nanosleep(&pause, NULL);
        }
    }
}

static void
assert_group_agrees(const rmm_segment_t *segment, const rmm_record_t *record)
{
    uint64_t free_bytes, largest, reserved, count, bytes, padding;

    assert_true(
        rmm__segment_slot_stat(segment, record, RMM_SLOT_STAT_free_bytes, &free_bytes));
    assert_true(rmm__segment_slot_stat(
        segment, record, RMM_SLOT_STAT_largest_free_bytes, &largest));
    assert_true(rmm__segment_slot_stat(
        segment, record, RMM_SLOT_STAT_reserved_bytes, &reserved));
    assert_true(
        rmm__segment_slot_stat(segment, record, RMM_SLOT_STAT_total_count, &count));
    assert_true(
        rmm__segment_slot_stat(segment, record, RMM_SLOT_STAT_current_bytes, &bytes));
    assert_true(
        rmm__segment_slot_stat(segment, record, RMM_SLOT_STAT_padding_bytes, &padding));
    assert_int_equal(largest, free_bytes);
    assert_int_equal(reserved, free_bytes);
    assert_int_equal(count, free_bytes);
    assert_int_equal(bytes, 64 * count);
    assert_int_equal(padding, 192 * count);
}

CASE(a_reader_sees_only_groups_that_agree)
{
    rmm_segment_t segment;
    rmm_record_t record;
    child_t child;
    int agreed = 0;
    bool torn;

    start_and_read(&child, write_groups, NULL, 'r', &segment);
    for (int i = 0; i < 20000 && agreed < 2000; i++) {
        assert_true(rmm__segment_read_slot(&segment, 0, &record, &torn));
        if (!torn) {
            assert_group_agrees(&segment, &record);
            agreed++;
        }
    }
    assert_true(agreed > 0);
    child_kill(&child);
    rmm__segment_close(&segment);
}
