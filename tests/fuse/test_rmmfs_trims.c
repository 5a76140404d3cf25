/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a write to `trim` is answered when a program does not obey in time, or is gone.
 */
#include "model_fixture.h"

#include <errno.h>

#include "trims.h"

static const uint64_t hour_ns = 3600000000000ull;

/* Of a segment that is gone, and of `member`, which does not obey. */
static trim_t trim_of(const member_t *member, bool one_is_gone, uint64_t deadline_ns)
{
    trim_t trim = {.deadline_ns = deadline_ns};

    if (one_is_gone) {
        trim.targets[trim.target_count++].serial = member->serial + 1000;
    }
    trim.targets[trim.target_count++] =
        (trim_target_t){.serial = member->serial, .number = 1};
    return trim;
}

static int answer_to(bool one_is_gone)
{
    fixture_t *fixture = open_fixture();
    trim_t trim = trim_of(fixture_process(fixture, 1), one_is_gone, 1);
    trims_t trims;

    trims_init(&trims);
    trims_add(&trims, &trim);
    assert_ptr_equal(trims_take_over(&trims, &fixture->model), &trim);
    assert_false(trims_any(&trims));
    trims_fini(&trims);
    end_fixture(fixture);
    return trim.error;
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
    node_t node = {DIR_PROCESS_DEVICE, FILE_TRIM, (uint32_t)first->process->serial, 0};
    trim_t trim = {.target_count = 0};

    assert_ptr_equal(first->process, second->process);
    rmm_control_close(&second->control);
    second->has_control = false;
    assert_int_equal(trim_begin(&fixture->model, node, 0, &trim), -EOPNOTSUPP);
    assert_int_equal(trim.target_count, 1);
    assert_false(first->control.is_trimming);
    end_fixture(fixture);
}

/* A process may have so many segments; of a further one no trim is possible. */
TEST_CASE(a_trim_reaches_a_bounded_number_of_segments)
{
    for (uint32_t count = TRIM_TARGETS_MAX; count <= TRIM_TARGETS_MAX + 1; count++) {
        fixture_t *fixture = open_fixture();
        trim_t trim = {.target_count = 0};
        for (uint32_t i = 0; i < count; i++) {
            (void)fixture_process(fixture, 1);
        }
        node_t node = {
            DIR_PROCESS_DEVICE, FILE_TRIM,
            (uint32_t)fixture->model.processes[0]->serial, 0};
        assert_int_equal(
            trim_begin(&fixture->model, node, 0, &trim),
            count == TRIM_TARGETS_MAX ? 0 : -EOPNOTSUPP);
        assert_int_equal(trim.target_count, TRIM_TARGETS_MAX);
        end_fixture(fixture);
    }
}

TEST_CASE(a_program_that_trims_takes_no_other_trim)
{
    fixture_t *fixture = open_fixture();
    const member_t *member = fixture_process(fixture, 1);
    node_t node = {DIR_PROCESS_DEVICE, FILE_TRIM, (uint32_t)member->process->serial, 0};
    trim_t first = {.target_count = 0}, second = {.target_count = 0};
    assert_int_equal(trim_begin(&fixture->model, node, 0, &first), 0);
    assert_int_equal(trim_begin(&fixture->model, node, 0, &second), -EBUSY);
    assert_true(member->control.is_trimming);
    end_fixture(fixture);
}

static uint64_t kept_when_given(uint64_t reserved, uint64_t give)
{
    fixture_t *fixture = open_fixture();
    fixture_location(fixture, 0)->reserved_bytes = reserved;
    const member_t *member = fixture_process(fixture, 1);
    node_t node = {DIR_PROCESS_DEVICE, FILE_TRIM, (uint32_t)member->process->serial, 0};
    trim_t trim = {.target_count = 0};
    uint64_t kept;
    assert_int_equal(trim_begin(&fixture->model, node, give, &trim), 0);
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
    trim_t trim = trim_of(fixture_process(fixture, 1), false, 1);
    trims_t trims;

    trim.targets[0].serial += UINT64_C(1) << 32;
    trims_init(&trims);
    trims_add(&trims, &trim);
    assert_ptr_equal(trims_take_over(&trims, &fixture->model), &trim);
    assert_int_equal(trim.error, -ESRCH);
    trims_fini(&trims);
    end_fixture(fixture);
}

TEST_CASE(a_trim_waits_until_its_deadline)
{
    fixture_t *fixture = open_fixture();
    trim_t trim =
        trim_of(fixture_process(fixture, 1), false, model_clock_ns() + hour_ns);
    trims_t trims;

    trims_init(&trims);
    trims_add(&trims, &trim);
    assert_null(trims_take_over(&trims, &fixture->model));
    assert_true(trims_any(&trims));
    assert_ptr_equal(trims_take_all(&trims, -EINTR), &trim);
    assert_int_equal(trim.error, -EINTR);
    trims_fini(&trims);
    end_fixture(fixture);
}
