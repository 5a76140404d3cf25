/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What levels add up to, marks and their resets, what exited processes leave.
 */
#include "model_fixture.h"

#include <errno.h>

#include "control/control.h"
#include "model/level_figures.h"
#include "model/marks.h"
#include "programs/members.h"

static int
write_file(model_t *model, node_t node, uid_t uid, const char *bytes, size_t length)
{
    const command_t command = {model, node, uid, bytes, length, NULL};
    return control_write(&command);
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

TEST_CASE(a_device_is_the_sum_of_live_processes)
{
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

TEST_CASE(what_a_process_leaves_is_counted_once_and_for_ever)
{
    fixture_t *fixture = open_fixture();
    (void)process(fixture, 1, 100, 500);
    member_t *leaving = process(fixture, 2, 20, 60);
    marks_note_upper(&fixture->model);
    marks_add_totals(&fixture->model, leaving);
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

TEST_CASE(a_program_that_ended_unseen_leaves_its_marks)
{
    fixture_t *fixture = open_fixture();
    rmm_segment_location_t *location = fixture_location(fixture, 0);
    location->peak_bytes = location->node_peak_bytes = 900;
    location->peak_count = location->node_peak_count = 9;
    location->lifetime_peak_bytes = 1000;
    member_t *leaving = fixture_process(fixture, 1);
    marks_add_totals(&fixture->model, leaving);
    leaving->state = MEMBER_EXITED;
    assert_int_equal(show(fixture).peak_bytes, 900);
    assert_int_equal(show(fixture).peak_count, 9);
    assert_int_equal(show(fixture).peak_upper_bytes, 900);
    assert_int_equal(show(fixture).lifetime_peak_bytes, 1000);
    end_fixture(fixture);
}

TEST_CASE(upper_bound_does_not_add_up_processes_one_after_the_other)
{
    fixture_t *fixture = open_fixture();
    for (pid_t pid = 1; pid <= 10; pid++) {
        member_t *member = process(fixture, pid, 0, 100);
        marks_note_upper(&fixture->model);
        marks_add_totals(&fixture->model, member);
        member->state = MEMBER_EXITED;
    }
    assert_int_equal(show(fixture).peak_upper_bytes, 100);
    assert_int_equal(show(fixture).peak_bytes, 100);
    assert_int_equal(show(fixture).total_bytes, 1000);
    end_fixture(fixture);
}

TEST_CASE(no_peak_is_below_a_current_value_that_was_shown)
{
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

TEST_CASE(the_upper_bound_is_not_below_what_was_held_at_once)
{
    fixture_t *fixture = open_fixture();
    (void)process(fixture, 1, 100, 100);
    member_t *leaving = process(fixture, 2, 90, 90);
    figures_t figures;
    marks_show_device(&fixture->model, 0, 0, &figures);
    leaving->state = MEMBER_EXITED; /* before anybody asked for the upper bound */
    assert_int_equal(show(fixture).peak_bytes, 190);
    assert_int_equal(show(fixture).peak_upper_bytes, 190);
    end_fixture(fixture);
}

TEST_CASE(a_command_has_1_to_63_bytes)
{
    fixture_t *fixture = open_fixture();
    member_t *member = process(fixture, 1, 40, 500);
    node_t node = {DIR_PROCESS_DEVICE, FILE_limit_bytes, member->process->serial, 0};
    char zeros[65];
    memset(zeros, '0', sizeof(zeros));
    zeros[63] = '\n';
    assert_int_equal(write_file(&fixture->model, node, 0, zeros, 63), 0);
    assert_int_equal(write_file(&fixture->model, node, 0, zeros, 64), 0);
    zeros[63] = '0';
    assert_int_equal(write_file(&fixture->model, node, 0, zeros, 64), -EINVAL);
    node.file = FILE_peak_bytes;
    assert_int_equal(write_file(&fixture->model, node, 0, zeros, 0), -EINVAL);
    assert_int_equal(write_file(&fixture->model, node, 0, zeros, 1), 0);
    node.file = FILE_version; /* is only read */
    assert_int_equal(write_file(&fixture->model, node, 0, zeros, 1), -EACCES);
    end_fixture(fixture);
}

TEST_CASE(a_limit_is_a_number_of_bytes_below_2_to_the_63)
{
    static const struct {
        const char *word;
        int answer;
        uint64_t limit_bytes;
    } cases[] = {
        {"0", 0, 0},
        {"9223372036854775807", 0, INT64_MAX},
        {"3GiB\n", 0, UINT64_C(3) << 30},
        {"2TiB", 0, UINT64_C(2) << 40},
        {"max", 0, RMM_SEGMENT_NO_LIMIT},
        {"9223372036854775808", -EINVAL, 0},
        {"8388608TiB", -EINVAL, 0},
        {"99999999999999999999", -EINVAL, 0},
        {"-1", -EINVAL, 0},
        {" 1", -EINVAL, 0},
        {"1 ", -EINVAL, 0},
        {"1kib", 0, 1024},
        {"KiB", -EINVAL, 0},
        {"1.5GiB", 0, UINT64_C(3) << 29},
        {"1G", -EINVAL, 0},
        {"maximum", -EINVAL, 0}};
    fixture_t *fixture = open_fixture();
    member_t *member = process(fixture, 1, 40, 500);
    const node_t node = {
        DIR_PROCESS_DEVICE, FILE_limit_bytes, member->process->serial, 0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        int answer =
            write_file(&fixture->model, node, 0, cases[i].word, strlen(cases[i].word));
        assert_int_equal(answer, cases[i].answer);
        if (answer == 0) {
            assert_int_equal(
                control_process_limit(member->process, 0), cases[i].limit_bytes);
        }
    }
    end_fixture(fixture);
}

static int reset(fixture_t *fixture, node_t node)
{
    node.file = FILE_peak_bytes;
    return write_file(&fixture->model, node, 0, "0\n", 2);
}

TEST_CASE(a_reset_shows_at_once_at_its_own_level_only)
{
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

TEST_CASE(a_process_without_a_control_page_counts_with_what_it_holds)
{
    fixture_t *fixture = open_fixture();
    member_t *member = process(fixture, 1, 40, 500);
    rmm__control_close(&member->control);
    member->has_control = false;
    assert_int_equal(show(fixture).peak_bytes, 40);
    const node_t of_process = {
        DIR_PROCESS_DEVICE, FILE_SELF, member->process->serial, 0};
    assert_int_equal(reset(fixture, of_process), -EOPNOTSUPP);
    member->state = MEMBER_EXITED;
    assert_int_equal(reset(fixture, of_process), -ESRCH);
    end_fixture(fixture);
}

TEST_CASE(a_resource_of_an_ended_process_takes_no_request)
{
    fixture_t *fixture = open_fixture();
    member_t *member = process(fixture, 1, 40, 500);
    const node_t resource = {DIR_RESOURCE, FILE_SELF, (uint32_t)member->serial, 1};
    assert_int_equal(reset(fixture, resource), 0);
    member->has_control = false;
    assert_int_equal(reset(fixture, resource), -EOPNOTSUPP);
    member->has_control = true;
    member->state = MEMBER_EXITED;
    assert_int_equal(reset(fixture, resource), -ESRCH);
    end_fixture(fixture);
}

static void read_page(const member_t *member, rmm_control_page_t *page)
{
    assert_int_equal(pread(member->control.fd, page, sizeof(*page), 0), sizeof(*page));
}

TEST_CASE(a_reset_of_a_device_goes_to_programs_that_live)
{
    static rmm_control_page_t before, after;
    fixture_t *fixture = open_fixture();
    member_t *ended = process(fixture, 1, 40, 500);
    const member_t *live = process(fixture, 2, 40, 500);
    ended->state = MEMBER_EXITED;
    read_page(ended, &before);
    assert_int_equal(reset(fixture, (node_t){DIR_DEVICE, FILE_SELF, 0, 0}), 0);
    read_page(ended, &after);
    assert_memory_equal(&after, &before, sizeof(after));
    read_page(live, &after);
    assert_memory_not_equal(&after, &before, sizeof(after));
    end_fixture(fixture);
}

TEST_CASE(unknown_is_not_nothing)
{
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
    assert_int_equal(figures.padding_bytes, 30); /* of the one that tells */
    assert_int_equal(figures.cached_bytes, 70);
    assert_int_equal(figures.left_out, 1);
    assert_true(
        figures_of_process(fixture->model.processes[1], 0, FIGURES_ALL, &figures));
    assert_int_equal(figures.padding_bytes, FIGURE_UNKNOWN);
    assert_int_equal(figures.cached_bytes, FIGURE_UNKNOWN);
    end_fixture(fixture);
}

TEST_CASE(a_figure_that_no_segment_has_is_unknown)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    (void)process(fixture, 1, UINT64_MAX, 100);
    figures_t figures = show(fixture);
    assert_int_equal(figures.current_bytes, FIGURE_UNKNOWN);
    assert_int_equal(figures.cached_bytes, FIGURE_UNKNOWN);
    assert_int_equal(figures.total_bytes, 100);
    end_fixture(fixture);
}

TEST_CASE(implausible_figures_are_in_no_sum_and_no_mark)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    (void)process(fixture, 1, 100, 500);
    const uint64_t lies[] = {
        UINT64_MAX, UINT64_MAX - 1, UINT64_C(1) << 63, UINT64_C(1) << 57};
    for (pid_t i = 0; i < 4; i++) {
        member_t *liar = process(fixture, 2 + i, lies[i], lies[i]);
        figures_t figures = show(fixture);
        assert_int_equal(figures.current_bytes, 100);
        assert_int_equal(figures.peak_bytes, 500);
        assert_int_equal(figures.peak_upper_bytes, 500);
        assert_int_equal(figures.lifetime_peak_bytes, 500);
        assert_int_equal(figures.left_out, i + 1);
        assert_true(liar->is_implausible);
        assert_true(figures_of_process(liar->process, 0, FIGURES_ALL, &figures));
        assert_int_equal(figures.current_bytes, FIGURE_UNKNOWN);
    }
    end_fixture(fixture);
}

TEST_CASE(more_free_than_there_is_is_unknown)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    rmm_segment_location_t *location = fixture_location(fixture, 0);
    location->device_free_bytes = location->capacity_bytes;
    (void)process(fixture, 1, 1, 1);
    assert_int_equal(show(fixture).device_free_bytes, location->capacity_bytes);
    location->device_free_bytes = location->capacity_bytes + 1;
    member_t *liar = process(fixture, 2, 1, 1);
    figures_t figures;
    assert_true(figures_of_process(liar->process, 0, 0, &figures));
    assert_int_equal(figures.device_free_bytes, 0);
    assert_true(liar->is_implausible);
    end_fixture(fixture);
}

TEST_CASE(free_memory_is_the_least_that_was_reported)
{
    fixture_t *fixture = open_fixture();
    const uint64_t told[] = {700, 500, 600}; /* each at its last look */
    for (pid_t pid = 1; pid <= 3; pid++) {
        rmm_segment_location_t *location = fixture_location(fixture, 0);
        location->capacity_bytes = 1000;
        location->device_free_bytes = told[pid - 1];
        (void)fixture_process(fixture, pid);
    }
    assert_int_equal(show(fixture).device_free_bytes, 500);
    end_fixture(fixture);
}

TEST_CASE(totals_saturate_and_can_be_reset)
{
    (void)state;
    fixture_t *fixture = open_fixture();
    model_t *model = &fixture->model;
    const uint64_t most = (UINT64_C(1) << 63) - 1;
    const node_t total = {DIR_DEVICE, FILE_total_bytes, 0, 0};
    (void)process(fixture, 1, 100, 500);
    for (pid_t pid = 2; pid < 6; pid++) {
        rmm_segment_location_t *location = fixture_location(fixture, 0);
        location->total_bytes = most;
        location->lifetime_peak_bytes = 1 << 20;
        member_t *liar = fixture_process(fixture, pid);
        marks_add_totals(model, liar);
        model_remove_member(model, liar);
    }
    assert_true(show(fixture).total_bytes == UINT64_MAX - 1);
    assert_int_equal(show(fixture).lifetime_peak_bytes, 1 << 20);
    assert_int_equal(write_file(model, total, 0, "1\n", 2), -EINVAL);
    assert_int_equal(write_file(model, total, model->uid + 1, "reset\n", 6), -EACCES);
    assert_true(show(fixture).total_bytes == UINT64_MAX - 1);
    assert_int_equal(write_file(model, total, model->uid, "reset\n", 6), 0);
    assert_int_equal(show(fixture).total_bytes, 500);
    assert_int_equal(show(fixture).lifetime_peak_bytes, 500);
    end_fixture(fixture);
}

TEST_CASE(differences_never_wrap)
{
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

TEST_CASE(fragmentation_is_over_all_pools)
{
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

#define OF_FULL (250 + 250 / 16) /* what reading one of these takes of an allowance */

/* Of a user with segments of 250 pools, which have 1000 bytes free each. */
static void add_full(fixture_t *fixture, pid_t first, uint32_t count, uid_t uid)
{
    for (uint32_t i = 0; i < 250; i++) {
        sample_slot(&fixture->layout, i);
        fixture->layout.slots[i].location = 0;
        fixture->layout.slots[i].free_bytes = 1000;
        fixture->layout.slots[i].largest_free_bytes = 1000;
    }
    fixture->layout.header.slots_high = 250;
    for (uint32_t i = 0; i < count; i++) {
        process(fixture, first + (pid_t)i, 10, 10)->segment.uid = uid;
    }
}

/* Before: a sum read all slots of all segments, however many each user had. */
TEST_CASE(a_sum_reads_a_bounded_number_of_slots_of_a_user)
{
    fixture_t *fixture = open_fixture();
    budget_t *budget = &fixture->model.budget;
    uint64_t limit = budget_limit(budget, 1000, BUDGET_SUM_SLOTS);
    uint32_t fit = (uint32_t)(limit / OF_FULL), count = fit + 3;
    add_full(fixture, 1, count, 1000);
    add_full(fixture, 1 + (pid_t)count, 1, 1001);
    figures_t figures = show(fixture);
    assert_int_equal(figures.current_bytes, 10 * (count + 1));
    assert_int_equal(figures.free_bytes, (fit + 1) * 250 * 1000);
    assert_int_equal(figures.left_out, 3);
    assert_int_equal(budget_refused(budget, 1000, BUDGET_SUM_SLOTS), 1);
    assert_int_equal(budget_refused(budget, 1001, BUDGET_SUM_SLOTS), 0);
    assert_true(figures_of_process(
        fixture->model.processes[count - 1], 0, FIGURES_ALL, &figures));
    assert_int_equal(figures.free_bytes, 250 * 1000); /* by itself it is shown */
    end_fixture(fixture);
}

/* A program has some dozens. */
TEST_CASE(what_is_free_in_too_many_resources_of_a_process_is_unknown)
{
    fixture_t *fixture = open_fixture();
    figures_t figures;
    for (uint32_t i = 0; i <= FIGURES_OF_PROCESS_SLOTS / 250; i++) {
        add_full(fixture, 1, 1, 1000); /* again and again the same process */
        assert_true(
            figures_of_process(fixture->model.processes[0], 0, FIGURES_ALL, &figures));
        assert_int_equal(figures.current_bytes, 10 * (i + 1));
        assert_int_equal(
            figures.free_bytes, (i + 1) * OF_FULL <= FIGURES_OF_PROCESS_SLOTS
                                    ? (i + 1) * 250 * 1000
                                    : FIGURE_UNKNOWN);
    }
    assert_int_equal(fixture->model.process_count, 1);
    end_fixture(fixture);
}

TEST_CASE(all_users_together_have_a_bounded_number_of_slots)
{
    fixture_t *fixture = open_fixture();
    budget_t *budget = &fixture->model.budget;
    uint32_t fit = (uint32_t)(budget_limit_together(BUDGET_SUM_SLOTS) / OF_FULL);
    for (uint32_t i = 0; i < fit + 2; i++) {
        add_full(fixture, 1 + (pid_t)i, 1, 1000 + i);
    }
    add_full(fixture, 1 + (pid_t)fit + 2, 1, 0);
    figures_t figures = show(fixture);
    assert_int_equal(figures.left_out, 2);
    assert_int_equal(budget_refused(budget, 0, BUDGET_SUM_SLOTS), 0);
    end_fixture(fixture);
}

/* Each look at such a slot may wait for its writer, who never comes to an end. */
TEST_CASE(slots_that_are_written_for_ever_are_left_out_of_a_sum)
{
    fixture_t *fixture = open_fixture();
    fixture->model.budget.own_uid = 77;
    (void)process(fixture, 1, 10, 10);
    figures_t calm = show(fixture);
    for (uint32_t i = 0; i < 250; i++) {
        sample_slot(&fixture->layout, i);
        fixture->layout.slots[i].location = 0;
        atomic_init(&fixture->layout.slots[i].generation, 3);
    }
    fixture->layout.header.slots_high = 250;
    for (pid_t i = 0; i < 100; i++) {
        process(fixture, 2 + i, 10, 10)->segment.uid = 1000;
    }
    figures_t figures = show(fixture);
    assert_int_equal(figures.free_bytes, calm.free_bytes);
    assert_int_equal(figures.current_bytes, 1010);
    assert_int_equal(figures.left_out, 100);
    assert_int_equal(budget_refused(&fixture->model.budget, 1000, BUDGET_SUM_SLOTS), 1);
    end_fixture(fixture);
}

TEST_CASE(an_exited_process_leaves_after_thirty_seconds)
{
    fixture_t *fixture = open_fixture();
    member_t *member = process(fixture, 1, 1, 1);
    member->state = MEMBER_EXITED;
    member->exited_ns = model_clock_ns() - 29 * UINT64_C(1000000000);
    assert_false(members_expire(&fixture->model));
    assert_int_equal(fixture->model.process_count, 1);
    member->exited_ns = model_clock_ns() - 31 * UINT64_C(1000000000);
    assert_false(members_expire(&fixture->model));
    assert_int_equal(fixture->model.process_count, 0);
    end_fixture(fixture);
}

/* However many ended at once, readers get in between. */
TEST_CASE(many_exited_processes_leave_in_pieces)
{
    fixture_t *fixture = open_fixture();
    uint32_t left = 20;
    for (uint32_t i = 0; i < left; i++) {
        member_t *member = process(fixture, (pid_t)i + 1, 1, 1);
        member->state = MEMBER_EXITED;
        member->exited_ns = model_clock_ns() - 31 * UINT64_C(1000000000);
    }
    while (members_expire(&fixture->model)) {
        assert_in_range(left - fixture->model.process_count, 1, 8);
        left = fixture->model.process_count;
    }
    assert_in_range(left, 1, 8);
    assert_int_equal(fixture->model.process_count, 0);
    end_fixture(fixture);
}

TEST_CASE(the_count_of_blocks_has_marks_as_the_bytes_have)
{
    fixture_t *fixture = open_fixture();
    rmm_segment_location_t *location = fixture_location(fixture, 0);
    location->total_count = 5;
    location->peak_count = location->node_peak_count = 9;
    location->peak_bytes = location->node_peak_bytes = 10;
    location->lifetime_peak_bytes = 77;
    (void)fixture_process(fixture, 1);
    assert_int_equal(show(fixture).peak_count, 9);
    assert_int_equal(show(fixture).node_peak_count, 9);
    assert_int_equal(show(fixture).lifetime_peak_bytes, 77);
    assert_int_equal(reset(fixture, (node_t){DIR_DEVICE, FILE_SELF, 0, 0}), 0);
    assert_int_equal(show(fixture).peak_count, 5);
    end_fixture(fixture);
}

TEST_CASE(a_snapshot_shows_no_mark_below_what_is_held)
{
    fixture_t *fixture = open_fixture();
    device_sum_t sum = {.figures.current_bytes = 50, .figures.current_count = 6};
    figures_t figures;
    (void)fixture_process(fixture, 1);
    marks_reset_device(&fixture->model, 0);
    fixture->model.gpus[0].peak_count = fixture->model.gpus[0].peak_bytes = 0;
    fixture->model.gpus[0].peak_upper_bytes = 0;
    fixture->model.gpus[0].lifetime_peak_bytes = 0;
    marks_show_parts(&fixture->model, 0, &sum, &figures);
    assert_int_equal(figures.peak_bytes, 50);
    assert_int_equal(figures.peak_count, 6);
    assert_int_equal(figures.peak_upper_bytes, 50);
    assert_int_equal(figures.lifetime_peak_bytes, 50);
    assert_int_equal(figures.node_peak_count, 6);
    end_fixture(fixture);
}

TEST_CASE(marks_of_host_memory_are_kept_as_well)
{
    fixture_t *fixture = open_fixture();
    const uint32_t host = RMM_SEGMENT_HOST_LOCATION;
    rmm_segment_location_t *location = fixture_location(fixture, host);
    location->current_bytes = 80;
    location->peak_bytes = location->node_peak_bytes = 90;
    (void)fixture_process(fixture, 1);
    marks_note_upper(&fixture->model);
    assert_int_equal(fixture->model.host.peak_upper_bytes, 90);
    marks_take(&fixture->model);
    assert_int_equal(fixture->model.host.peak_bytes, 90);
    end_fixture(fixture);
}

TEST_CASE(a_reset_of_totals_drops_statistics_of_newer_programs_and_tells_pollers)
{
    fixture_t *fixture = open_fixture();
    model_t *model = &fixture->model;
    const node_t total = {DIR_DEVICE, FILE_total_bytes, 0, 0};
    (void)process(fixture, 1, 100, 500);
    model->gpus[0].newer.count = 1;
    const uint32_t of_device = model->gpus[0].event_changes;
    const uint32_t of_node = model->event_changes;
    assert_int_equal(write_file(model, total, 0, "remove\n", 7), -EINVAL);
    assert_int_equal(write_file(model, total, 0, "reset\0", 6), -EINVAL);
    assert_int_equal(model->gpus[0].newer.count, 1);
    assert_int_equal(write_file(model, total, 0, "reset", 5), 0);
    assert_int_equal(model->gpus[0].newer.count, 0);
    assert_int_equal(model->gpus[0].event_changes, of_device + 1);
    assert_int_equal(model->event_changes, of_node + 1);
    end_fixture(fixture);
}

/* Two segments of one process, with control pages of their own. */
TEST_CASE(a_request_to_a_process_goes_to_each_segment_that_can_be_asked)
{
    fixture_t *fixture = open_fixture();
    member_t *first = process(fixture, 1, 40, 500);
    member_t *second = process(fixture, 1, 40, 500);
    const process_t *both = first->process;
    node_t node = {DIR_PROCESS_DEVICE, FILE_limit_bytes, both->serial, 0};
    assert_int_equal(write_file(&fixture->model, node, 0, "5000", 4), 0);
    assert_int_equal(rmm__control_limit_location(&second->control, 0, 9000), 0);
    assert_int_equal(control_process_limit(both, 0), 5000);
    assert_int_equal(rmm__control_limit_location(&second->control, 0, 4000), 0);
    assert_int_equal(control_process_limit(both, 0), 4000);
    second->locations[0].device = 7; /* it has no such device: not concerned */
    assert_int_equal(write_file(&fixture->model, node, 0, "3000", 4), 0);
    first->locations[0].device = 7;
    assert_int_equal(write_file(&fixture->model, node, 0, "3000", 4), -EOPNOTSUPP);
    node.file = FILE_enable;
    assert_int_equal(write_file(&fixture->model, node, 0, "10", 2), -EINVAL);
    end_fixture(fixture);
}

TEST_CASE(blocks_that_were_held_at_once_are_a_mark)
{
    fixture_t *fixture = open_fixture();
    figures_t figures;
    fixture_location(fixture, 0)->total_count = 5;
    member_t *first = fixture_process(fixture, 1);
    (void)fixture_process(fixture, 2);
    marks_show_device(&fixture->model, 0, 0, &figures);
    assert_int_equal(figures.peak_count, 10);
    first->state = MEMBER_EXITED;
    assert_int_equal(show(fixture).peak_count, 10);
    end_fixture(fixture);
}
