/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a write to `trim` is answered when a program does not obey in time, or is gone.
 */
#include "model_fixture.h"

#include <errno.h>

#include "control/waiting_writes.h"

static const uint64_t hour_ns = 3600000000000ull;

/* Of a segment that is gone, and of `member`, which does not obey. */
static waiting_write_t
write_of(const member_t *member, bool one_is_gone, uint64_t deadline_ns)
{
    waiting_write_t wait = {.deadline_ns = deadline_ns};

    if (one_is_gone) {
        wait.targets[wait.target_count++].serial = member->serial + 1000;
    }
    wait.targets[wait.target_count++] =
        (write_target_t){.serial = member->serial, .number = 1};
    return wait;
}

static int answer_to(bool one_is_gone)
{
    fixture_t *fixture = open_fixture();
    waiting_write_t wait = write_of(fixture_process(fixture, 1), one_is_gone, 1);
    waiting_writes_t writes;

    waiting_writes_init(&writes);
    waiting_writes_add(&writes, &wait);
    assert_ptr_equal(waiting_writes_take_over(&writes, &fixture->model), &wait);
    assert_false(waiting_writes_any(&writes));
    waiting_writes_fini(&writes);
    end_fixture(fixture);
    return wait.error;
}

TEST_CASE(a_program_that_does_not_obey_is_late)
{
    assert_int_equal(answer_to(false), -ETIMEDOUT);
}

TEST_CASE(the_first_error_is_reported)
{
    assert_int_equal(answer_to(true), -ESRCH);
}

/* The second segment of the process has no control page. */
TEST_CASE(a_trim_that_cannot_reach_all_segments_reaches_none)
{
    fixture_t *fixture = open_fixture();
    const member_t *first = fixture_process(fixture, 1);
    member_t *second = fixture_process(fixture, 1);
    node_t node = {DIR_PROCESS_DEVICE, FILE_trim, (uint32_t)first->process->serial, 0};
    waiting_write_t wait = {.target_count = 0};

    assert_ptr_equal(first->process, second->process);
    rmm__control_close(&second->control);
    second->has_control = false;
    assert_int_equal(
        waiting_write_begin_trim(&fixture->model, node, 0, &wait), -EOPNOTSUPP);
    assert_int_equal(wait.target_count, 1);
    assert_false(first->control.is_trimming);
    end_fixture(fixture);
}

/* A process may have so many segments; of a further one no trim is possible. */
TEST_CASE(a_trim_reaches_a_bounded_number_of_segments)
{
    for (uint32_t count = WRITE_TARGETS_MAX; count <= WRITE_TARGETS_MAX + 1; count++) {
        fixture_t *fixture = open_fixture();
        waiting_write_t wait = {.target_count = 0};
        for (uint32_t i = 0; i < count; i++) {
            (void)fixture_process(fixture, 1);
        }
        node_t node = {
            DIR_PROCESS_DEVICE, FILE_trim,
            (uint32_t)fixture->model.processes[0]->serial, 0};
        assert_int_equal(
            waiting_write_begin_trim(&fixture->model, node, 0, &wait),
            count == WRITE_TARGETS_MAX ? 0 : -EOPNOTSUPP);
        assert_int_equal(wait.target_count, WRITE_TARGETS_MAX);
        end_fixture(fixture);
    }
}

TEST_CASE(a_program_that_trims_takes_no_other_trim)
{
    fixture_t *fixture = open_fixture();
    const member_t *member = fixture_process(fixture, 1);
    node_t node = {DIR_PROCESS_DEVICE, FILE_trim, (uint32_t)member->process->serial, 0};
    waiting_write_t first = {.target_count = 0}, second = {.target_count = 0};
    assert_int_equal(waiting_write_begin_trim(&fixture->model, node, 0, &first), 0);
    assert_int_equal(
        waiting_write_begin_trim(&fixture->model, node, 0, &second), -EBUSY);
    assert_true(member->control.is_trimming);
    end_fixture(fixture);
}

static uint64_t kept_when_given(uint64_t reserved, uint64_t give)
{
    fixture_t *fixture = open_fixture();
    fixture_location(fixture, 0)->reserved_bytes = reserved;
    const member_t *member = fixture_process(fixture, 1);
    node_t node = {DIR_PROCESS_DEVICE, FILE_trim, (uint32_t)member->process->serial, 0};
    waiting_write_t wait = {.target_count = 0};
    uint64_t kept;
    assert_int_equal(waiting_write_begin_trim(&fixture->model, node, give, &wait), 0);
    assert_int_equal(
        pread(
            member->control.fd, &kept, sizeof(kept),
            offsetof(rmm_control_page_t, trim_keep_bytes)),
        sizeof(kept));
    end_fixture(fixture);
    return kept;
}

TEST_CASE(a_program_keeps_what_it_need_not_give)
{
    assert_int_equal(kept_when_given(1000, 300), 700);
    assert_int_equal(kept_when_given(1000, 1000), 0);
    assert_int_equal(kept_when_given(1000, 1001), 0);
    assert_int_equal(kept_when_given(1000, UINT64_MAX), 0);
}

/* Names of files have the low 32 bits of a serial. */
TEST_CASE(a_successor_does_not_answer)
{
    fixture_t *fixture = open_fixture();
    waiting_write_t wait = write_of(fixture_process(fixture, 1), false, 1);
    waiting_writes_t writes;

    wait.targets[0].serial += UINT64_C(1) << 32;
    waiting_writes_init(&writes);
    waiting_writes_add(&writes, &wait);
    assert_ptr_equal(waiting_writes_take_over(&writes, &fixture->model), &wait);
    assert_int_equal(wait.error, -ESRCH);
    waiting_writes_fini(&writes);
    end_fixture(fixture);
}

TEST_CASE(a_trim_waits_until_its_deadline)
{
    fixture_t *fixture = open_fixture();
    waiting_write_t wait =
        write_of(fixture_process(fixture, 1), false, model_clock_ns() + hour_ns);
    waiting_writes_t writes;

    waiting_writes_init(&writes);
    waiting_writes_add(&writes, &wait);
    assert_null(waiting_writes_take_over(&writes, &fixture->model));
    assert_true(waiting_writes_any(&writes));
    assert_ptr_equal(waiting_writes_take_all(&writes, -EINTR), &wait);
    assert_int_equal(wait.error, -EINTR);
    waiting_writes_fini(&writes);
    end_fixture(fixture);
}
