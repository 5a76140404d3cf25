/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole node at one moment: what is in it, and what is counted as left out.
 */
#include "model_fixture.h"

#include "model/snapshot.h"

#define SLOTS_HIGH 250u /* of a sample's segment */

static snapshot_t *read_all(fixture_t *fixture)
{
    snapshot_t *snapshot =
        snapshot_begin(&fixture->model, &fixture->model.budget.memory);
    assert_non_null(snapshot);
    while (snapshot_continue(snapshot, &fixture->model)) {
    }
    assert_false(snapshot->failed);
    return snapshot;
}

/* Forged: two resources of one number and one name. */
static void check_twins(uint32_t location, uint32_t shown)
{
    fixture_t *fixture = open_fixture();
    rmm_segment_slot_t *twin = &fixture->layout.slots[2];
    twin->instance_id = fixture->layout.slots[0].instance_id;
    twin->location = location;
    (void)fixture_process(fixture, 7);
    snapshot_t *snapshot = read_all(fixture);
    assert_int_equal(snapshot->resource_count, shown);
    assert_int_equal(shares_refused(&snapshot->resource_shares), 2 - shown);
    snapshot_release(snapshot);
    end_fixture(fixture);
}

TEST_CASE(a_resource_is_known_by_its_device_and_name)
{
    check_twins(RMM_SEGMENT_HOST_LOCATION, 2);
    check_twins(0, 1);
}

TEST_CASE(a_process_that_came_later_is_not_in_it)
{
    fixture_t *fixture = open_fixture();
    fixture->model.started_real_ns = UINT64_C(5999999999);
    (void)fixture_process(fixture, 7);
    snapshot_t *snapshot =
        snapshot_begin(&fixture->model, &fixture->model.budget.memory);
    (void)fixture_process(fixture, 8);
    assert_false(snapshot_continue(snapshot, &fixture->model));
    assert_int_equal(snapshot->process_count, 1);
    assert_int_equal(snapshot->start_seconds, 5);
    snapshot_release(snapshot);
    end_fixture(fixture);
}

/* A process with `count` resources at its first location, in as many segments as that takes. */
static void add_resources(fixture_t *fixture, uint32_t count)
{
    uint32_t instance_id = 0;
    while (count != 0) {
        uint32_t here = count < SLOTS_HIGH ? count : SLOTS_HIGH;
        for (uint32_t i = 0; i < SLOTS_HIGH; i++) {
            rmm_segment_slot_t *slot = &fixture->layout.slots[i];
            sample_slot(&fixture->layout, i);
            slot->instance_id = ++instance_id;
            slot->location = 0;
            slot->free_bytes = 10;
            slot->largest_free_bytes = 10;
            atomic_init(&slot->live, i < here);
            atomic_init(&slot->generation, i < here ? 2 : 0);
        }
        fixture->layout.header.slots_high = SLOTS_HIGH;
        (void)fixture_process(fixture, 7);
        count -= here;
    }
}

static const snapshot_location_t *find_gpu(const snapshot_t *snapshot)
{
    for (uint32_t i = 0; i < snapshot->location_count; i++) {
        if (snapshot->locations[i].device == 0) {
            return &snapshot->locations[i];
        }
    }
    fail_msg("the process is on no GPU");
    return NULL;
}

static void check_resources(uint32_t added, uint32_t shown, uint64_t refused)
{
    fixture_t *fixture = open_fixture();
    add_resources(fixture, added);
    snapshot_t *snapshot = read_all(fixture);
    assert_int_equal(snapshot->resource_count, shown);
    assert_int_equal(shares_refused(&snapshot->resource_shares), refused);
    assert_int_equal(
        find_gpu(snapshot)->figures.free_bytes,
        shown == added ? added * UINT64_C(10) : FIGURE_UNKNOWN);
    snapshot_release(snapshot);
    end_fixture(fixture);
}

/* Then the rest of its segment is counted as left out, and what is free is not known. */
TEST_CASE(a_process_has_a_bounded_number_of_resources)
{
    const uint32_t most = SNAPSHOT_OF_PROCESS_MAX;
    check_resources(most, most, 0);
    check_resources(most + 1, most, SLOTS_HIGH - most % SLOTS_HIGH);
}
