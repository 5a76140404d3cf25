/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A model filled by hand, from segments made by hand: no mount, no daemon, no directory.
 */
#ifndef RMM_TESTS_FUSE_MODEL_FIXTURE_H
#define RMM_TESTS_FUSE_MODEL_FIXTURE_H

#include "harness/harness.h"

#include <stdio.h>

#include "model/gpus.h"
#include "model/model.h"
#include "support/daemon_log.h"
#include "unit/segment_sample.h"

typedef struct fixture {
    model_t model;
    rmm_segment_layout_t layout; /* what the next member's segment is made from */
    uint32_t segments;
} fixture_t;

static inline void fixture_open(fixture_t *fixture)
{
    memset(fixture, 0, sizeof(*fixture));
    log_level_set(LOG_LEVEL_OFF);
    model_init(&fixture->model);
    sample_make(&fixture->layout);
}

static inline void fixture_close(fixture_t *fixture)
{
    model_fini(&fixture->model);
}

static inline fixture_t *open_fixture(void)
{
    fixture_t *fixture = calloc(1, sizeof(*fixture));
    assert_non_null(fixture);
    fixture_open(fixture);
    return fixture;
}

static inline void end_fixture(fixture_t *fixture)
{
    fixture_close(fixture);
    free(fixture);
}

static inline uint32_t fixture_gpu(fixture_t *fixture, const char *uuid)
{
    const gpu_identity_t identity = {uuid, "0000:01:00.0", "Sample", 1 << 20, 0};
    return gpus_number(&fixture->model, &identity);
}

/* A control page of the sample's sizes, without requests. */
static inline void fixture_control(member_t *member)
{
    static rmm_control_page_t page;
    sample_control(&page);
    member->control.fd = sample_file(&page, sizeof(page));
    member->control.locations_offset = page.locations_offset;
    member->control.locations_stride = page.locations_stride;
    member->control.locations_count = page.locations_count;
    member->control.slots_offset = page.slots_offset;
    member->control.slots_stride = page.slots_stride;
    member->control.slots_count = page.slots_count;
    member->has_control = true;
}

/* A live process `pid` from fixture->layout: location 0 is gpu0, location 32 host memory. */
static inline member_t *fixture_process(fixture_t *fixture, pid_t pid)
{
    char name[32], reason[RMM_SEGMENT_REASON_BYTES];
    member_t *member = calloc(1, sizeof(*member));
    assert_non_null(member);
    int fd = sample_file(&fixture->layout, sizeof(fixture->layout));
    assert_int_equal(
        rmm__segment_attach(&member->segment, fd, reason), RMM_SEGMENT_GOOD);
    snprintf(
        member->segment.name, sizeof(member->segment.name), "0.%016x",
        ++fixture->segments);
    fixture_control(member);
    member->locations[0].device = fixture_gpu(fixture, "GPU-00000000");
    member->locations[1].location = RMM_SEGMENT_HOST_LOCATION;
    member->locations[1].device = DEVICE_HOST;
    member->location_count = 2;
    snprintf(name, sizeof(name), "%d", (int)pid);
    assert_true(model_add_member(&fixture->model, member, name, pid));
    return member;
}

/* Figures of a location of the next member, all else 0. */
static inline rmm_segment_location_t *
fixture_location(fixture_t *fixture, uint32_t location)
{
    rmm_segment_location_t *record = &fixture->layout.locations[location];
    memset(
        (char *)record + offsetof(rmm_segment_location_t, current_bytes), 0,
        sizeof(*record) - offsetof(rmm_segment_location_t, current_bytes));
    return record;
}

static inline off_t fixture_location_at(uint32_t location)
{
    size_t before = location * sizeof(rmm_segment_location_t);
    return (off_t)(offsetof(rmm_segment_layout_t, locations) + before);
}

/* What the process would write later. */
#define FIXTURE_WRITE_LOCATION(member, location, field, value)                         \
    do {                                                                               \
        off_t at_ = fixture_location_at(location);                                     \
        uint64_t written_ = (value);                                                   \
        at_ += (off_t)offsetof(rmm_segment_location_t, field);                         \
        assert_int_equal(pwrite((member)->segment.fd, &written_, 8, at_), 8);          \
    } while (0)

#endif /* RMM_TESTS_FUSE_MODEL_FIXTURE_H */
