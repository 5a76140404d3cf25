/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost: an allocation adds, compares, and writes four words at a new peak; a free of a block that
 * is younger than the peak subtracts, that of an older one probes the parts.
 */
#include "diag/peak.h"

#include <stdbool.h>
#include <stddef.h>

#include "diag/row.h"

enum { PROBES = 64 }; /* of a table: what one free may cost when it is full */

/* NULL: none is left for this device. */
static rmm_peak_t *location_of(rmm_peaks_t *peaks, int32_t device)
{
    uint32_t i = 0;

    while (i < peaks->used && peaks->locations[i].device != device) {
        i++;
    }
    if (i == RMM_DIAG_PEAKS_COUNT) {
        return NULL;
    }
    if (i == peaks->used) {
        peaks->locations[i] = (rmm_peak_t){.device = device};
        peaks->used++;
    }
    return &peaks->locations[i];
}

static void write_peak(rmm_peaks_t *peaks, const rmm_peak_t *location)
{
    uint32_t index = (uint32_t)(location - peaks->locations);
    rmm_diag_peak_t *entry = &peaks->entries[index];

    RMM_ROW_BEGIN(entry);
    RMM_ROW_SET(entry, device, location->device);
    RMM_ROW_SET(entry, bytes, location->bytes);
    RMM_ROW_SET(entry, count, location->live_count);
    RMM_ROW_SET(entry, when_ns, location->when_ns);
    RMM_ROW_SET(entry, rest_bytes, 0);
    RMM_ROW_SET(entry, rest_count, 0);
    RMM_ROW_END(entry);
    /* release: the entry is written; pairs with a reader's first look */
    atomic_store_explicit(
        &peaks->header->peaks_used, peaks->used, memory_order_release);
}

void rmm__peaks_allocated(rmm_peaks_t *peaks, const rmm_diag_row_t *row)
{
    rmm_peak_t *location = location_of(peaks, RMM_ROW_GET(row, device));

    if (location == NULL) {
        RMM_ROW_ADD(&peaks->header->peaks_dropped, 1);
        return;
    }
    location->live_bytes += RMM_ROW_GET(row, bytes);
    location->live_count++;
    if (location->live_bytes > location->bytes) {
        location->bytes = location->live_bytes;
        location->when_ns = RMM_ROW_GET(row, allocated_ns);
        write_peak(peaks, location);
    }
}

/* --- parts ------------------------------------------------------------------------- */

/* What blocks of a part have in common. */
typedef struct kind {
    uint32_t resource_id, user, site;
} kind_t;

static uint32_t hash_of(const kind_t *kind)
{
    uint64_t hash = (uint64_t)kind->resource_id << 32 | kind->user;

    hash = (hash * 0x9e3779b97f4a7c15ull) ^ kind->site;
    return (uint32_t)((hash * 0x9e3779b97f4a7c15ull) >> 32);
}

static bool is_of(const rmm_diag_part_t *part, const kind_t *kind)
{
    return RMM_ROW_GET(part, resource_id) == kind->resource_id &&
           RMM_ROW_GET(part, first_user) == kind->user &&
           RMM_ROW_GET(part, site) == kind->site;
}

/* The part that the block adds to, a stale one if none of its kind is there; NULL: all that are
 * looked at are taken. */
static rmm_diag_part_t *
find_part(rmm_diag_part_t *parts, const rmm_peak_t *location, const kind_t *kind)
{
    uint32_t at = hash_of(kind);

    for (uint32_t i = 0; i < PROBES; i++) {
        rmm_diag_part_t *part = &parts[(at + i) % RMM_DIAG_PARTS_COUNT];

        if (RMM_ROW_GET(part, when_ns) != location->when_ns || is_of(part, kind)) {
            return part;
        }
    }
    return NULL;
}

static void add_to_part(
    rmm_diag_part_t *part, const rmm_peak_t *location, const kind_t *kind,
    const rmm_diag_row_t *row)
{
    bool is_stale = RMM_ROW_GET(part, when_ns) != location->when_ns;
    uint64_t bytes = is_stale ? 0 : RMM_ROW_GET(part, bytes);
    uint64_t count = is_stale ? 0 : RMM_ROW_GET(part, count);

    RMM_ROW_BEGIN(part);
    RMM_ROW_SET(part, resource_id, kind->resource_id);
    RMM_ROW_SET(part, first_user, kind->user);
    RMM_ROW_SET(part, site, kind->site);
    RMM_ROW_SET(part, when_ns, location->when_ns);
    RMM_ROW_SET(part, bytes, bytes + RMM_ROW_GET(row, bytes));
    RMM_ROW_SET(part, count, count + 1);
    RMM_ROW_END(part);
}

static void add_to_rest(rmm_diag_peak_t *entry, const rmm_diag_row_t *row)
{
    RMM_ROW_BEGIN(entry);
    RMM_ROW_SET(
        entry, rest_bytes, RMM_ROW_GET(entry, rest_bytes) + RMM_ROW_GET(row, bytes));
    RMM_ROW_SET(entry, rest_count, RMM_ROW_GET(entry, rest_count) + 1);
    RMM_ROW_END(entry);
}

/* False: no part is left for it. */
static bool put_into_part(
    rmm_diag_part_t *parts, const rmm_peak_t *location, const rmm_diag_row_t *row)
{
    kind_t kind = {
        RMM_ROW_GET(row, resource_id), RMM_ROW_GET(row, first_user),
        RMM_ROW_GET(row, site)};
    rmm_diag_part_t *part = find_part(parts, location, &kind);

    if (part == NULL && kind.site != 0) {
        kind.site = 0;
        part = find_part(parts, location, &kind);
    }
    if (part == NULL) {
        return false;
    }
    add_to_part(part, location, &kind, row);
    return true;
}

void rmm__peaks_freed(rmm_peaks_t *peaks, const rmm_diag_row_t *row)
{
    rmm_peak_t *location = location_of(peaks, RMM_ROW_GET(row, device));
    size_t index = 0;

    if (location == NULL) {
        return;
    }
    location->live_bytes -= RMM_ROW_GET(row, bytes);
    location->live_count--;
    if (RMM_ROW_GET(row, allocated_ns) > location->when_ns) {
        return;
    }
    index = (size_t)(location - peaks->locations);
    if (!put_into_part(&peaks->parts[index * RMM_DIAG_PARTS_COUNT], location, row)) {
        add_to_rest(&peaks->entries[index], row);
    }
}
