/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which slot a resource is found in after slots changed hands, and whose request is told: a walk
 * reads those of many slots together, and remembers where a resource was last.
 */
#include "model_fixture.h"

#include "model/slots.h"

/* Resource i + 1 in slot i, of which i + 100 resets of the peak were requested. */
static member_t *fill(fixture_t *fixture, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        sample_slot(&fixture->layout, i);
    }
    atomic_store(&fixture->layout.header.slots_high, count);
    member_t *member = fixture_process(fixture, 1);
    for (uint32_t i = 0; i < count; i++) {
        const uint32_t requests = i + 100;
        size_t at = member->control.slots_offset + i * sizeof(rmm_control_slot_t);
        at += offsetof(rmm_control_slot_t, peak_reset);
        assert_int_equal(
            pwrite(member->control.fd, &requests, sizeof(requests), (off_t)at),
            sizeof(requests));
    }
    return member;
}

static bool check_request(const slot_view_t *view, void *arg)
{
    uint32_t *visited = arg;
    rmm_control_slot_t request;
    assert_int_equal(view->index, *visited);
    assert_true(slot_request(view, &request));
    assert_int_equal(request.peak_reset, view->index + 100);
    ++*visited;
    return true;
}

/* As many as one batch, one more, and all that there can be. */
TEST_CASE(each_slot_has_its_own_request)
{
    const uint32_t counts[] = {
        1, 2, SLOT_REQUESTS_MAX, SLOT_REQUESTS_MAX + 1, RMM_SEGMENT_SLOTS};
    for (size_t i = 0; i < sizeof(counts) / sizeof(counts[0]); i++) {
        fixture_t *fixture = open_fixture();
        member_t *member = fill(fixture, counts[i]);
        uint32_t visited = 0, batch = rmm__segment_batch_slots(&member->segment);
        slots_each(member, check_request, &visited);
        assert_int_equal(visited, counts[i]);
        assert_true(counts[i] < RMM_SEGMENT_SLOTS || counts[i] > 2 * batch);
        end_fixture(fixture);
    }
    (void)state;
}

/* A resource that was found alone is asked about by itself. */
TEST_CASE(a_found_slot_has_its_own_request)
{
    fixture_t *fixture = open_fixture();
    member_t *member = fill(fixture, 40);
    for (uint32_t i = 40; i-- > 0;) {
        slot_view_t view;
        rmm_control_slot_t request;
        assert_true(slots_find_low(member, i + 1, &view));
        assert_int_equal(view.index, i);
        assert_true(slot_request(&view, &request));
        assert_int_equal(request.peak_reset, i + 100);
    }
    end_fixture(fixture);
    (void)state;
}

static void pass_slot_to(const member_t *member, uint32_t slot, uint32_t instance_id)
{
    size_t at =
        offsetof(rmm_segment_layout_t, slots) + slot * sizeof(rmm_segment_slot_t);
    at += offsetof(rmm_segment_slot_t, instance_id);
    assert_int_equal(
        pwrite(member->segment.fd, &instance_id, sizeof(instance_id), (off_t)at),
        sizeof(instance_id));
}

typedef bool (*seek_fn)(member_t *member, uint32_t id, slot_view_t *view);

static void expect_at(seek_fn seek, member_t *member, uint32_t id, uint32_t index)
{
    slot_view_t view;
    assert_true(seek(member, id, &view));
    assert_int_equal(view.index, index);
    assert_int_equal(rmm__record_slot(&view.record)->instance_id & SLOT_LOW_BITS, id);
}

/* Its slot went to another resource, and it, or one of its number, lives in another slot. */
TEST_CASE(a_resource_is_not_looked_for_only_where_it_was)
{
    const seek_fn seeks[] = {slots_find_low, slots_identify, slots_identify_low};
    for (size_t i = 0; i < sizeof(seeks) / sizeof(seeks[0]); i++) {
        fixture_t *fixture = open_fixture();
        slot_view_t view;
        member_t *member = fill(fixture, 8);
        expect_at(seeks[i], member, 3, 2);
        expect_at(seeks[i], member, 3, 2); /* where it was seen */
        pass_slot_to(member, 2, 1000);
        assert_false(seeks[i](member, 3, &view));
        pass_slot_to(member, 7, 3);
        expect_at(seeks[i], member, 3, 7);
        expect_at(seeks[i], member, 1000, 2);
        pass_slot_to(member, 7, 1001);
        pass_slot_to(member, 0, 3);
        expect_at(seeks[i], member, 3, 0);
        end_fixture(fixture);
    }
    (void)state;
}
