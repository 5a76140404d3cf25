/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one process publishes and another reads: the life of a segment, figures, wishes.
 * Every case runs the writer in a child process; this process only reads.
 */
#include "harness/runtime.h"

#include <sys/mman.h>

#include "publish/books.h"

static runtime_t runtime;

static int make_runtime(void **state)
{
    (void)state;
    unsetenv("RMM_PUBLISH");
    runtime_open(&runtime);
    return 0;
}

static int drop_runtime(void **state)
{
    (void)state;
    runtime_close(&runtime);
    return 0;
}

static rmm_status_t open_books(rmm_books_t *books, const char *name, uint32_t id)
{
    rmm__publish_open("sim");
    rmm__place_open(
        0, &(rmm_place_identity_t){
               .uuid = "SIM-0",
               .pci_bus_id = "0000:00:00.0",
               .name = "Simulated",
               .capacity_bytes = 80});
    return rmm__books_open(
        books, &(rmm_books_desc_t){
                   .type = "test", .name = name, .instance_id = id, .place = 0});
}

/* --- figures ------------------------------------------------------------------------ */

static void count_three_and_wait(child_t *self, void *argument)
{
    rmm_books_t books;

    (void)argument;
    CHECK(open_books(&books, "first", 1) == RMM_OK);
    for (uint64_t bytes = 100; bytes <= 300; bytes += 100) {
        rmm__books_alloc_shared(&books, bytes);
        rmm__place_alloc(0, bytes);
    }
    rmm__books_free_shared(&books, 200);
    rmm__place_free(0, 200);
    rmm__place_reserve(0, 4096);
    child_say(self, 'r');
    child_hear(self);
}

static void another_process_reads_identity_and_figures(void **state)
{
    rmm_segment_t segment;
    rmm_record_t record;
    child_t child;
    bool torn = true;

    (void)state;
    child_start(&child, count_three_and_wait, NULL);
    assert_int_equal(child_hear(&child), 'r');
    runtime_segment(&runtime, &segment);

    assert_true(rmm_segment_is_live(&segment));
    assert_int_equal(rmm_segment_pid(&segment), child.pid);
    assert_int_equal(segment.header.pid, child.pid);
    assert_int_equal(segment.uid, geteuid());
    assert_string_equal(segment.header.driver, "sim");
    assert_true(strncmp(segment.header.comm, "test_publish", 12) == 0);
    assert_non_null(strstr(segment.header.cmdline, "test_publish"));
    assert_true(segment.header.start_time_ticks > 0);

    assert_true(rmm_segment_read_place(&segment, 0, &record));
    assert_string_equal(rmm_record_place(&record)->uuid, "SIM-0");
    assert_string_equal(rmm_record_place(&record)->name, "Simulated");
    assert_int_equal(rmm_record_place(&record)->capacity_bytes, 80);
    assert_false(rmm_segment_read_place(&segment, 1, &record));
    assert_false(rmm_segment_read_place(&segment, 33, &record));
    assert_int_equal(place_figure(&segment, 0, RMM_PLACE_STAT_current_bytes), 400);
    assert_int_equal(place_figure(&segment, 0, RMM_PLACE_STAT_peak_bytes), 600);
    assert_int_equal(place_figure(&segment, 0, RMM_PLACE_STAT_peak_count), 3);
    assert_int_equal(place_figure(&segment, 0, RMM_PLACE_STAT_total_bytes), 600);
    assert_int_equal(place_figure(&segment, 0, RMM_PLACE_STAT_freed_count), 1);
    assert_int_equal(place_figure(&segment, 0, RMM_PLACE_STAT_reserved_bytes), 4096);

    assert_int_equal(rmm_segment_slot_count(&segment), 1);
    assert_true(rmm_segment_read_slot(&segment, 0, &record, &torn));
    assert_false(torn);
    assert_string_equal(rmm_record_slot(&record)->name, "first");
    assert_string_equal(rmm_record_slot(&record)->type, "test");
    assert_int_equal(slot_figure(&segment, 0, RMM_SLOT_STAT_current_bytes), 400);
    assert_int_equal(slot_figure(&segment, 0, RMM_SLOT_STAT_lifetime_peak_bytes), 600);

    assert_int_equal(child_wait(&child), 0);
    assert_false(rmm_segment_is_live(&segment));
    assert_int_equal(rmm_segment_pid(&segment), 0);
    assert_int_equal(place_figure(&segment, 0, RMM_PLACE_STAT_peak_bytes), 600);
    rmm_segment_close(&segment);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(
            another_process_reads_identity_and_figures, make_runtime, drop_runtime),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
