/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Parts are read before rows: a block that is freed in between is missing, and not there
 * twice.
 */
#include "diag/peak_reader.h"

enum { LOOKS = 4 };

typedef struct look {
    rmm_diag_groups_t *groups;
    const rmm_diag_peak_info_t *peak;
} look_t;

static bool add_part(const rmm_diag_part_info_t *part, void *arg)
{
    const look_t *look = arg;
    const rmm_diag_group_t group = {
        .resource_id = part->resource_id,
        .first_user = part->first_user,
        .site = part->site,
        .device = look->peak->device,
        .bytes = part->bytes,
        .count = part->count};
    rmm__diag_groups_add(look->groups, &group);
    return true;
}

static bool add_row(const rmm_diag_row_info_t *row, void *arg)
{
    const look_t *look = arg;
    const rmm_diag_group_t group = {
        .resource_id = row->resource_id,
        .first_user = row->first_user,
        .site = row->site,
        .device = row->device,
        .bytes = row->bytes,
        .count = 1};
    if (row->device == look->peak->device && row->allocated_ns <= look->peak->when_ns) {
        rmm__diag_groups_add(look->groups, &group);
    }
    return true;
}

/* The peak did not move meanwhile. */
static bool look_once(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_groups_t *groups,
    const rmm_diag_peak_info_t *peak)
{
    look_t look = {groups, peak};
    rmm_diag_peak_info_t after;
    rmm__diag_groups_clear(groups);
    (void)rmm__diag_each_part(file, index, peak->when_ns, add_part, &look);
    (void)rmm__diag_each_row(file, add_row, &look);
    return rmm__diag_read_peak(file, index, &after) && after.when_ns == peak->when_ns;
}

static uint64_t sum_of(const rmm_diag_groups_t *groups)
{
    uint64_t bytes = 0;
    for (uint32_t i = 0; i < groups->count; i++) {
        bytes += groups->entries[i].bytes;
    }
    return bytes;
}

bool rmm__diag_read_composition(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_groups_t *groups,
    rmm_diag_composition_t *out)
{
    bool whole = false;
    uint64_t sum;
    for (int i = 0; i < LOOKS && !whole; i++) {
        if (!rmm__diag_read_peak(file, index, &out->peak)) {
            return false;
        }
        whole = look_once(file, index, groups, &out->peak);
    }
    sum = sum_of(groups);
    out->missing_bytes = out->peak.bytes > sum ? out->peak.bytes - sum : 0;
    rmm__diag_groups_sort(groups);
    return whole;
}
