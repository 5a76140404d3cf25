/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What levels add up to, marks and their resets, what exited processes leave.
 */
#include "model_fixture.h"

#include <errno.h>

#include "control.h"
#include "figures.h"
#include "marks.h"
#include "members.h"

static fixture_t *open_fixture(void)
{
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_open(fixture);
    return fixture;
}

static void end_fixture(fixture_t *fixture)
{
    fixture_close(fixture);
    free(fixture);
}

static figures_t show(fixture_t *fixture)
{
    figures_t figures;
    marks_show_device(&fixture->model, 0, FIGURES_ALL, &figures);
    return figures;
}

static member_t *process(fixture_t *fixture, pid_t pid, uint64_t current, uint64_t peak)
{
    rmm_segment_location_t *location = fixture_location(fixture, 0);
    location->current_bytes = current;
    location->total_bytes = peak;
    location->total_count = 2;
    location->freed_count = 1;
    location->peak_bytes = peak;
    location->node_peak_bytes = peak;
    location->lifetime_peak_bytes = peak;
    location->reserved_bytes = current + 100;
    location->padding_bytes = 30;
    return fixture_process(fixture, pid);
}

static void a_device_is_the_sum_of_live_processes(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    (void)process(fixture, 1, 100, 500);
    (void)process(fixture, 2, 20, 60);
    figures_t figures = show(fixture);
    assert_int_equal(figures.current_bytes, 120);
    assert_int_equal(figures.current_count, 2);
    assert_int_equal(figures.reserved_bytes, 320);
    assert_int_equal(figures.padding_bytes, 60);
    assert_int_equal(figures.cached_bytes, 140);
    assert_int_equal(figures.peak_bytes, 500);
    assert_int_equal(figures.peak_upper_bytes, 560);
    assert_int_equal(figures.total_bytes, 560);
    end_fixture(fixture);
}

static void what_a_process_leaves_is_counted_once_and_for_ever(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    (void)process(fixture, 1, 100, 500);
    member_t *leaving = process(fixture, 2, 20, 60);
    marks_note_upper(&fixture->model);
    marks_fold(&fixture->model, leaving);
    leaving->state = MEMBER_EXITED;
    figures_t figures = show(fixture);
    assert_int_equal(figures.current_bytes, 100);
    assert_int_equal(figures.current_count, 1);
    assert_int_equal(figures.total_bytes, 560);
    assert_int_equal(figures.total_count, 4);
    assert_int_equal(figures.peak_bytes, 500);
    assert_int_equal(figures.peak_upper_bytes, 560);
    assert_true(figures_of_process(leaving->process, 0, FIGURES_ALL, &figures));
    assert_int_equal(figures.current_bytes, 20); /* its last */
    assert_string_equal(process_state(leaving->process), "exited");
    end_fixture(fixture);
}

static void upper_bound_does_not_add_up_processes_one_after_the_other(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    for (pid_t pid = 1; pid <= 10; pid++) {
        member_t *member = process(fixture, pid, 0, 100);
        marks_note_upper(&fixture->model);
        marks_fold(&fixture->model, member);
        member->state = MEMBER_EXITED;
    }
    assert_int_equal(show(fixture).peak_upper_bytes, 100);
    assert_int_equal(show(fixture).peak_bytes, 100);
    assert_int_equal(show(fixture).total_bytes, 1000);
    end_fixture(fixture);
}

static void no_peak_is_below_a_current_value_that_was_shown(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    member_t *one = process(fixture, 1, 100, 100);
    (void)process(fixture, 2, 90, 90);
    figures_t figures;
    marks_show_device(&fixture->model, 0, 0, &figures); /* as current_bytes is read */
    assert_int_equal(figures.current_bytes, 190);
    FIXTURE_WRITE_LOCATION(one, 0, current_bytes, 10);
    assert_int_equal(show(fixture).current_bytes, 100);
    assert_int_equal(show(fixture).peak_bytes, 190);
    end_fixture(fixture);
}

static int reset(fixture_t *fixture, node_t node)
{
    node.file = FILE_peak_bytes;
    return control_write(&fixture->model, node, 0, "0\n", 2);
}

static void a_reset_shows_at_once_at_its_own_level_only(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    member_t *member = process(fixture, 1, 40, 500);
    const node_t device = {DIR_DEVICE, FILE_SELF, 0, 0};
    const node_t of_process = {
        DIR_PROCESS_DEVICE, FILE_SELF, member->process->serial, 0};
    figures_t figures;
    assert_int_equal(reset(fixture, of_process), 0);
    assert_true(figures_of_process(member->process, 0, FIGURES_ALL, &figures));
    assert_int_equal(figures.peak_bytes, 40);
    assert_int_equal(figures.lifetime_peak_bytes, 500);
    assert_int_equal(show(fixture).peak_bytes, 500);
    assert_int_equal(reset(fixture, device), 0);
    assert_int_equal(show(fixture).peak_bytes, 40);
    assert_int_equal(show(fixture).peak_upper_bytes, 40);
    assert_int_equal(show(fixture).lifetime_peak_bytes, 500);
    /* The process allocates, and has not yet obeyed: then its old mark still says
     * nothing, and what it holds does. */
    FIXTURE_WRITE_LOCATION(member, 0, current_bytes, 70);
    assert_int_equal(show(fixture).peak_bytes, 70);
    end_fixture(fixture);
}

static void a_process_without_a_control_page_counts_with_what_it_holds(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    member_t *member = process(fixture, 1, 40, 500);
    rmm_control_close(&member->control);
    member->has_control = false;
    assert_int_equal(show(fixture).peak_bytes, 40);
    const node_t of_process = {
        DIR_PROCESS_DEVICE, FILE_SELF, member->process->serial, 0};
    assert_int_equal(reset(fixture, of_process), -EOPNOTSUPP);
    member->state = MEMBER_EXITED;
    assert_int_equal(reset(fixture, of_process), -ESRCH);
    end_fixture(fixture);
}

static void unknown_is_not_nothing(void **state)
{
    (void)state;
    assert_int_equal(figure_add(1, FIGURE_UNKNOWN), FIGURE_UNKNOWN);
    assert_int_equal(figure_add(FIGURE_UNKNOWN - 1, 5), FIGURE_UNKNOWN - 1);
    fixture_t *fixture = open_fixture();
    (void)process(fixture, 1, 100, 100);
    for (uint32_t i = 0; i < fixture->layout.header.schema_count; i++) {
        rmm_segment_schema_t *entry = &fixture->layout.schema[i];
        if (strcmp(entry->name, "padding_bytes") == 0) {
            strcpy(entry->name, "another_name");
        }
    }
    (void)process(fixture, 2, 100, 100); /* an older program */
    figures_t figures = show(fixture);
    assert_int_equal(figures.current_bytes, 200);
    assert_int_equal(figures.padding_bytes, FIGURE_UNKNOWN);
    assert_int_equal(figures.cached_bytes, FIGURE_UNKNOWN);
    end_fixture(fixture);
}

static void differences_never_wrap(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    rmm_segment_location_t *location = fixture_location(fixture, 0);
    location->current_bytes = 100;
    location->reserved_bytes = 20; /* counted at another moment */
    location->freed_count = 3;
    location->total_count = 2;
    (void)fixture_process(fixture, 1);
    assert_int_equal(show(fixture).cached_bytes, 0);
    assert_int_equal(show(fixture).current_count, 0);
    end_fixture(fixture);
}

static void fragmentation_is_over_all_pools(void **state)
{
    (void)state;
    figures_t figures = {.free_bytes = 0, .largest_free_sum = 0};
    assert_int_equal(figures_fragmentation(&figures), 0);
    figures.free_bytes = 1000;
    figures.largest_free_sum = 250;
    assert_int_equal(figures_fragmentation(&figures), 750);
    figures.largest_free_sum = 2000;
    assert_int_equal(figures_fragmentation(&figures), 0);
    figures.largest_free_sum = FIGURE_UNKNOWN;
    assert_int_equal(figures_fragmentation(&figures), FIGURE_UNKNOWN);
    fixture_t *fixture = open_fixture();
    fixture->layout.slots[0].free_bytes = 600;
    fixture->layout.slots[0].largest_free_bytes = 600;
    fixture->layout.slots[2].free_bytes = 400;
    fixture->layout.slots[2].largest_free_bytes = 150;
    (void)fixture_process(fixture, 1);
    assert_int_equal(show(fixture).free_bytes, 1000);
    assert_int_equal(show(fixture).largest_free_bytes, 600);
    figures = show(fixture);
    assert_int_equal(figures_fragmentation(&figures), 250);
    end_fixture(fixture);
}

static void an_exited_process_leaves_after_thirty_seconds(void **state)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    member_t *member = process(fixture, 1, 1, 1);
    member->state = MEMBER_EXITED;
    member->exited_ns = model_clock_ns() - 29 * UINT64_C(1000000000);
    members_expire(&fixture->model);
    assert_int_equal(fixture->model.process_count, 1);
    member->exited_ns = model_clock_ns() - 31 * UINT64_C(1000000000);
    members_expire(&fixture->model);
    assert_int_equal(fixture->model.process_count, 0);
    end_fixture(fixture);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_device_is_the_sum_of_live_processes),
        cmocka_unit_test(what_a_process_leaves_is_counted_once_and_for_ever),
        cmocka_unit_test(upper_bound_does_not_add_up_processes_one_after_the_other),
        cmocka_unit_test(no_peak_is_below_a_current_value_that_was_shown),
        cmocka_unit_test(a_reset_shows_at_once_at_its_own_level_only),
        cmocka_unit_test(a_process_without_a_control_page_counts_with_what_it_holds),
        cmocka_unit_test(unknown_is_not_nothing),
        cmocka_unit_test(differences_never_wrap),
        cmocka_unit_test(fragmentation_is_over_all_pools),
        cmocka_unit_test(an_exited_process_leaves_after_thirty_seconds),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
