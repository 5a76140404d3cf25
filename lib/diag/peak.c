/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cost: an allocation adds, compares, and writes four words at a new peak; a free of a block that
 * is younger than the peak subtracts, that of an older one probes the parts.
 */
#include "diag/peak.h"

#include <stdbool.h>
#include <stddef.h>

#include "core/hash.h"
#include "diag/row.h"

typedef struct peak {
    int32_t device;
    uint64_t live_bytes, live_count;
    uint64_t bytes, when_ns; /* of the peak */
} peak_t;

typedef struct state {
    peak_t locations[RMM_DIAG_PEAKS_COUNT];
    uint32_t used;
    const rmm_diag_row_t *rows;
    /* in the side file; borrowed */
    rmm_diag_header_t *header;
    rmm_diag_peak_t *entries;
    rmm_diag_part_t *parts;
} state_t;

static bool
init(void *state, rmm_diag_engine_t *engine, const rmm_diag_engine_desc_t *desc)
{
    state_t *self = state;
    unsigned char *memory = (void *)engine->header;

    (void)desc;
    self->header = engine->header;
    self->rows = engine->blocks.rows;
    self->entries = (void *)(memory + engine->header->peaks.offset);
    self->parts = (void *)(memory + engine->header->parts.offset);
    return true;
}

enum { PROBES = 64 }; /* of a table: what one free may cost when it is full */

/* NULL: none is left for this device. */
static peak_t *location_of(state_t *self, int32_t device)
{
    uint32_t i = 0;

    while (i < self->used && self->locations[i].device != device) {
        i++;
    }
    if (i == RMM_DIAG_PEAKS_COUNT) {
        return NULL;
    }
    if (i == self->used) {
        self->locations[i] = (peak_t){.device = device};
        self->used++;
    }
    return &self->locations[i];
}

static void write_peak(state_t *self, const peak_t *location)
{
    uint32_t index = (uint32_t)(location - self->locations);
    rmm_diag_peak_t *entry = &self->entries[index];

    RMM_ROW_BEGIN(entry);
    RMM_ROW_SET(entry, device, location->device);
    RMM_ROW_SET(entry, bytes, location->bytes);
    RMM_ROW_SET(entry, count, location->live_count);
    RMM_ROW_SET(entry, when_ns, location->when_ns);
    RMM_ROW_SET(entry, rest_bytes, 0);
    RMM_ROW_SET(entry, rest_count, 0);
    RMM_ROW_END(entry);
    /* release: the entry is written; pairs with a reader's first look */
    atomic_store_explicit(&self->header->peaks.used, self->used, memory_order_release);
}

static void allocated(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;
    const rmm_diag_row_t *row = &self->rows[call->index];
    peak_t *location = location_of(self, RMM_ROW_GET(row, device));

    if (location == NULL) {
        RMM_ROW_ADD(&self->header->peaks_dropped, 1);
        return;
    }
    location->live_bytes += RMM_ROW_GET(row, bytes);
    location->live_count++;
    if (location->live_bytes > location->bytes) {
        location->bytes = location->live_bytes;
        location->when_ns = RMM_ROW_GET(row, allocated_ns);
        write_peak(self, location);
    }
}

/* --- parts ------------------------------------------------------------------------- */

/* The properties that blocks of a part have in common. */
typedef struct kind {
    uint32_t resource_id, user, site;
} kind_t;

static uint32_t hash_of(const kind_t *kind)
{
    uint64_t hash = (uint64_t)kind->resource_id << 32 | kind->user;

    return (uint32_t)(rmm__hash(rmm__hash(hash) ^ kind->site) >> 32);
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
find_part(rmm_diag_part_t *parts, const peak_t *location, const kind_t *kind)
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
    rmm_diag_part_t *part, const peak_t *location, const kind_t *kind,
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
static bool
put_into_part(rmm_diag_part_t *parts, const peak_t *location, const rmm_diag_row_t *row)
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

static void ended(void *state, uint32_t block, const rmm_diag_block_v1_t *by)
{
    state_t *self = state;
    const rmm_diag_row_t *row = &self->rows[block];
    peak_t *location = location_of(self, RMM_ROW_GET(row, device));
    size_t index = 0;

    (void)by;
    if (location == NULL) {
        return;
    }
    location->live_bytes -= RMM_ROW_GET(row, bytes);
    location->live_count--;
    if (RMM_ROW_GET(row, allocated_ns) > location->when_ns) {
        return;
    }
    index = (size_t)(location - self->locations);
    if (!put_into_part(&self->parts[index * RMM_DIAG_PARTS_COUNT], location, row)) {
        add_to_rest(&self->entries[index], row);
    }
}

const rmm_checker_t rmm__peaks_checker = {
    .state_bytes = sizeof(state_t),
    .init = init,
    .allocated = allocated,
    .ended = ended};
