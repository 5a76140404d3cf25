/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Assigns the segment's records. A location's identity is written once; a slot is used by one
 * resource after the other. These calls are rare, and all take the publisher's lock. Readers take
 * no lock: a slot's generation is odd while its identity changes.
 */
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/assert.h"
#include "core/clock.h"
#include "core/host_memory.h"
#include "log/log.h"
#include "publish/accounting.h"
#include "publish/publisher.h"
#include "segment/clean_text.h"

/* The slot of a resource for which the segment's table had no room: in no segment. */
typedef struct private_slot {
    rmm_segment_slot_t slot; /* first member: its address is what is freed */
    rmm_segment_stripe_t stripes[RMM_SEGMENT_STRIPES];
} private_slot_t;

/* The requests of a private slot: the daemon cannot make any. */
static const rmm_control_slot_t no_requests = {.limit_bytes = RMM_SEGMENT_NO_LIMIT};

/* --- locations ------------------------------------------------------------------------- */

static void
fill_location(rmm_segment_location_t *location, const rmm_location_identity_t *identity)
{
    const rmm_control_location_t *requests =
        &rmm__publisher.control
             ->locations[location - rmm__publisher.segment->locations];

    location->capacity_bytes = identity->capacity_bytes;
    rmm__text_copy(location->uuid, sizeof(location->uuid), identity->uuid);
    rmm__text_copy(
        location->pci_bus_id, sizeof(location->pci_bus_id), identity->pci_bus_id);
    rmm__text_copy(location->name, sizeof(location->name), identity->name);
    atomic_store_explicit(
        &location->peak_reset_seen,
        atomic_load_explicit(&requests->peak_reset, memory_order_relaxed),
        memory_order_relaxed);
    atomic_store_explicit(
        &location->node_peak_reset_seen,
        atomic_load_explicit(&requests->node_peak_reset, memory_order_relaxed),
        memory_order_relaxed);
    /* release: readers that see `used` see the identity */
    atomic_store_explicit(&location->used, 1, memory_order_release);
    /* release: readers that see another number see `used` */
    atomic_fetch_add_explicit(
        &rmm__publisher.segment->header.locations_opened, 1, memory_order_release);
}

/* False: the file system has no space for the record or its stripes. The location is counted
 * in any case, but not shown, because a part of its figures would be missing. */
static bool back_location_locked(uint32_t location)
{
    const rmm_segment_layout_t *segment = rmm__publisher.segment;

    return rmm__segment_back(
               &segment->locations[location], sizeof(segment->locations[location])) &&
           rmm__segment_back(
               segment->location_stripes[location],
               sizeof(segment->location_stripes[location]));
}

/* True: there was no space, which the caller logs. Once in a process. */
static bool
open_location_locked(uint32_t location, const rmm_location_identity_t *identity)
{
    rmm_segment_location_t *record = &rmm__publisher.segment->locations[location];
    static bool is_logged;

    if (!back_location_locked(location)) {
        bool news = !is_logged;

        is_logged = true;
        return news;
    }
    if (atomic_load_explicit(&record->used, memory_order_relaxed) == 0) {
        fill_location(record, identity);
    }
    return false;
}

void rmm__location_open(uint32_t location, const rmm_location_identity_t *identity)
{
    bool is_hidden;

    RMM_ASSERT(location < RMM_SEGMENT_LOCATIONS);
    rmm__mutex_lock(&rmm__publisher.lock);
    is_hidden = open_location_locked(location, identity);
    rmm__mutex_unlock(&rmm__publisher.lock);
    if (is_hidden) {
        rmm__log_warn(
            "/rmm will not show device %u of this process: no space left in %s; free "
            "space there and restart the program",
            location, rmm__publisher.directory);
    }
}

/* Host memory has no driver to ask for its identity: its first resource fills it. */
static void open_host_location_locked(void)
{
    rmm_segment_location_t *host =
        &rmm__publisher.segment->locations[RMM_SEGMENT_HOST_LOCATION];
    const rmm_location_identity_t identity = {
        .name = "host memory",
        .capacity_bytes =
            (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE)};

    if (back_location_locked(RMM_SEGMENT_HOST_LOCATION) &&
        atomic_load_explicit(&host->used, memory_order_relaxed) == 0) {
        fill_location(host, &identity);
    }
}

/* --- slots -------------------------------------------------------------------------- */

static inline void zero(_Atomic(uint64_t) *figure)
{
    atomic_store_explicit(figure, 0, memory_order_relaxed);
}

static void zero_figures(const rmm_accounting_t *accounting)
{
    rmm_segment_slot_t *slot = accounting->slot;

#define X(field, kind, unit, help) zero(&slot->field);
    RMM_SLOT_STATS(X)
#undef X
    zero(&slot->live_count);
    for (uint32_t i = 0; i < RMM_SEGMENT_STRIPES; i++) {
        zero(&accounting->stripes[i].total_bytes);
        zero(&accounting->stripes[i].total_count);
        zero(&accounting->stripes[i].freed_count);
        zero(&accounting->stripes[i].padding_added);
        zero(&accounting->stripes[i].padding_removed);
    }
}

/* Gauges go to 0 with the resource; counters stay until the slot is taken again. */
static void zero_gauges(const rmm_accounting_t *accounting)
{
    rmm_segment_slot_t *slot = accounting->slot;

#define ZERO_GAUGE(field) zero(&slot->field);
#define ZERO_COUNTER(field)
#define ZERO_MARK(field)
#define X(field, kind, unit, help) ZERO_##kind(field)
    RMM_SLOT_STATS(X)
#undef X
    zero(&slot->live_count);
    for (uint32_t i = 0; i < RMM_SEGMENT_STRIPES; i++) {
        zero(&accounting->stripes[i].padding_added);
        zero(&accounting->stripes[i].padding_removed);
    }
}

/* acq_rel: what follows stays behind the odd number, as a reader sees it */
static void begin_identity(rmm_segment_slot_t *slot)
{
    atomic_fetch_add_explicit(&slot->generation, 1, memory_order_acq_rel);
}

/* release: pairs with look_at_slot() in segment_reader.c */
static void end_identity(rmm_segment_slot_t *slot)
{
    atomic_fetch_add_explicit(&slot->generation, 1, memory_order_release);
}

static void
fill_slot(const rmm_accounting_t *accounting, const rmm_accounting_desc_t *desc)
{
    const rmm_control_slot_t *requests = accounting->requests;
    rmm_segment_slot_t *slot = accounting->slot;

    begin_identity(slot);
    zero_figures(accounting);
    atomic_store_explicit(&slot->sequence, 0, memory_order_relaxed);
    atomic_store_explicit(
        &slot->flags, desc->has_blocks ? RMM_SLOT_HAS_BLOCKS : 0, memory_order_relaxed);
    atomic_store_explicit(
        &slot->peak_reset_seen,
        atomic_load_explicit(&requests->peak_reset, memory_order_relaxed),
        memory_order_relaxed);
    slot->instance_id = desc->instance_id;
    slot->upstream_id = desc->upstream_id;
    slot->location = desc->location;
    slot->created_ns = rmm__clock_ns(CLOCK_REALTIME);
    rmm__text_copy(slot->type, sizeof(slot->type), desc->type);
    rmm__text_copy(slot->name, sizeof(slot->name), desc->name);
    atomic_store_explicit(&slot->live, 1, memory_order_relaxed);
    end_identity(slot);
}

static bool back_slot_locked(uint32_t index)
{
    const rmm_segment_layout_t *segment = rmm__publisher.segment;

    return rmm__segment_back(&segment->slots[index], sizeof(segment->slots[index])) &&
           rmm__segment_back(
               segment->slot_stripes[index], sizeof(segment->slot_stripes[index]));
}

/* The lowest, so that readers have few to walk; RMM_SEGMENT_SLOTS: all are taken, or the file
 * system is full. */
static uint32_t take_slot_locked(void)
{
    rmm_segment_header_t *header = &rmm__publisher.segment->header;
    uint32_t index = 0;

    while (index < RMM_SEGMENT_SLOTS && rmm__publisher.slot_is_taken[index]) {
        index++;
    }
    if (index == RMM_SEGMENT_SLOTS || !back_slot_locked(index)) {
        return RMM_SEGMENT_SLOTS;
    }
    rmm__publisher.slot_is_taken[index] = true;
    if (atomic_load_explicit(&header->slots_high, memory_order_relaxed) <= index) {
        atomic_store_explicit(&header->slots_high, index + 1, memory_order_relaxed);
    }
    return index;
}

/* The records: the index-th ones of the segment, or memory of their own. */
static bool take_records(rmm_accounting_t *accounting, uint32_t index)
{
    private_slot_t *own;

    accounting->slot_is_private = index == RMM_SEGMENT_SLOTS;
    if (!accounting->slot_is_private) {
        accounting->requests = &rmm__publisher.control->slots[index];
        accounting->slot = &rmm__publisher.segment->slots[index];
        accounting->stripes = rmm__publisher.segment->slot_stripes[index];
        return true;
    }
    own = rmm__calloc(1, sizeof(*own));
    accounting->requests = &no_requests;
    accounting->slot = own != NULL ? &own->slot : NULL;
    accounting->stripes = own != NULL ? own->stripes : NULL;
    return own != NULL;
}

rmm_status_t
rmm__accounting_open(rmm_accounting_t *accounting, const rmm_accounting_desc_t *desc)
{
    rmm_status_t status = RMM_OK;
    uint32_t index;

    RMM_ASSERT(desc->location < RMM_SEGMENT_LOCATIONS);
    rmm__mutex_lock(&rmm__publisher.lock);
    index = take_slot_locked();
    accounting->location = desc->location;
    if (!take_records(accounting, index)) {
        status = RMM_ERR_OUT_OF_HOST_MEMORY;
    } else {
        rmm__location_begin(accounting);
        fill_slot(accounting, desc);
        if (desc->location == RMM_SEGMENT_HOST_LOCATION) {
            open_host_location_locked();
        }
    }
    rmm__mutex_unlock(&rmm__publisher.lock);
    return status;
}

void rmm__accounting_close(rmm_accounting_t *accounting)
{
    rmm_segment_slot_t *slot = accounting->slot;

    if (accounting->slot_is_private) {
        rmm__free(slot);
        accounting->slot = NULL;
        return;
    }
    rmm__mutex_lock(&rmm__publisher.lock);
    begin_identity(slot);
    atomic_store_explicit(&slot->live, 0, memory_order_relaxed);
    zero_gauges(accounting);
    end_identity(slot);
    rmm__publisher.slot_is_taken[slot - rmm__publisher.segment->slots] = false;
    rmm__mutex_unlock(&rmm__publisher.lock);
    accounting->slot = NULL;
}
