/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads which locations a segment has; see locations.h.
 */
#include "model/locations.h"

#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include "model/gpus.h"

static bool knows_location(const member_t *member, uint32_t location)
{
    for (uint32_t i = 0; i < member->location_count; i++) {
        if (member->locations[i].location == location) {
            return true;
        }
    }
    return false;
}

static uint32_t device_of_location(
    model_t *model, uid_t uid, uint32_t location, const rmm_record_t *record)
{
    if (location == RMM_SEGMENT_HOST_LOCATION) {
        return DEVICE_HOST;
    }
    const rmm_segment_location_t *reported = rmm__record_location(record);
    const gpu_identity_t identity = {
        reported->uuid, reported->pci_bus_id, reported->name, reported->capacity_bytes,
        uid};
    return gpus_number(model, &identity);
}

static void add_location(model_t *model, member_t *member, uint32_t location)
{
    rmm_record_t record;
    if (!rmm__segment_read_location(&member->segment, location, &record)) {
        return;
    }
    uint32_t device = device_of_location(model, member->segment.uid, location, &record);
    member->locations[member->location_count].location = location;
    member->locations[member->location_count].device = device;
    member->location_count++;
    model->changes++;
}

bool locations_find(model_t *model, member_t *member)
{
    static unsigned char table[RMM_SEGMENT_LOCATIONS * RMM_SEGMENT_RECORD_BYTES];
    const rmm_segment_header_t *header = &member->segment.header;
    uint32_t opened = 0;
    if (rmm__segment_locations_opened(&member->segment, &opened) &&
        opened == member->locations_opened) {
        return rmm__segment_is_whole(&member->segment);
    }
    uint32_t count = rmm__segment_location_count(&member->segment);
    count = count < RMM_SEGMENT_LOCATIONS ? count : RMM_SEGMENT_LOCATIONS;
    size_t bytes = (size_t)count * header->locations_stride;
    if (pread(member->segment.fd, table, bytes, header->locations_offset) !=
        (ssize_t)bytes) {
        return false;
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t used;
        memcpy(
            &used,
            table + (size_t)i * header->locations_stride +
                offsetof(rmm_segment_location_t, used),
            sizeof(used));
        if (used != 0 && !knows_location(member, i)) {
            add_location(model, member, i);
        }
    }
    member->locations_opened = opened;
    return true;
}
