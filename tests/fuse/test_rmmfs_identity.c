/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A segment is known by what its header says, and of those that ended each user has room for
 * a few that no other user can take.
 */
#include "model_fixture.h"

#include "model/identity.h"

static rmm_segment_t segment_of(uid_t uid, uint64_t made_ns)
{
    rmm_segment_t segment = {.uid = uid, .device = 7, .inode = made_ns};
    segment.header.pid = 42;
    segment.header.start_time_ticks = 99;
    segment.header.start_time_ns = made_ns;
    return segment;
}

static bool is_counted(const model_t *model, const rmm_segment_t *segment)
{
    char reason[RMM_SEGMENT_REASON_BYTES] = "";
    const member_t *member = identity_member(model, segment);
    bool counted = identity_is_counted(model, segment, member, reason);
    assert_int_equal(counted, reason[0] != '\0');
    return counted;
}

TEST_CASE(a_member_is_known_by_its_header_and_by_its_file)
{
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    fixture_open(fixture);
    member_t *member = fixture_process(fixture, 4711);
    rmm_segment_t found = member->segment;
    assert_true(is_counted(&fixture->model, &found)); /* a rename */
    found.inode++;
    assert_true(is_counted(&fixture->model, &found)); /* a copy */
    found.header.start_time_ns++;
    assert_false(is_counted(&fixture->model, &found));
    found.inode = member->segment.inode;
    found.device = member->segment.device;
    assert_true(is_counted(&fixture->model, &found)); /* rewritten in place */
    found = member->segment;
    found.inode++;
    found.uid++;
    assert_false(is_counted(&fixture->model, &found));
    fixture_close(fixture);
    free(fixture);
}

TEST_CASE(an_ended_segment_is_remembered_until_its_user_ended_many_more)
{
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    fixture_open(fixture);
    model_t *model = &fixture->model;
    const rmm_segment_t first = segment_of(1000, 1), victim = segment_of(2000, 1);
    identity_note_ended(&model->ended, &first);
    identity_note_ended(&model->ended, &first);
    identity_note_ended(&model->ended, &victim);
    assert_int_equal(model->ended.count, 2);
    for (uint64_t i = 2; i <= IDENTITY_OF_USER_MAX; i++) {
        const rmm_segment_t next = segment_of(1000, i);
        identity_note_ended(&model->ended, &next);
        assert_true(is_counted(model, &first));
    }
    for (uint64_t i = 0; i < IDENTITY_MAX; i++) {
        const rmm_segment_t next = segment_of(1000, 1000 + i);
        identity_note_ended(&model->ended, &next);
        assert_true(is_counted(model, &next));
    }
    assert_false(is_counted(model, &first));
    assert_true(is_counted(model, &victim));
    assert_int_equal(model->ended.count, IDENTITY_OF_USER_MAX + 1);
    for (uid_t uid = 3000; uid < 3000 + 2 * IDENTITY_MAX; uid++) {
        const rmm_segment_t next = segment_of(uid, 1);
        identity_note_ended(&model->ended, &next);
        assert_true(is_counted(model, &next));
    }
    assert_int_equal(model->ended.count, IDENTITY_MAX);
    fixture_close(fixture);
    free(fixture);
}

TEST_CASE(a_line_is_read_as_it_was_written)
{
    identity_t identity;
    assert_true(identity_parse("4294967294 1 2 18446744073709551615", &identity));
    assert_int_equal(identity.uid, 4294967294u);
    assert_int_equal(identity.pid, 1);
    assert_int_equal(identity.start_time_ticks, 2);
    assert_true(identity.made_ns == UINT64_MAX);
    assert_false(identity_parse("1 2 3", &identity));
    assert_false(identity_parse("", &identity));
}
