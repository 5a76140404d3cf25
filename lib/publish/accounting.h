/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The accounting of a resource: the counters that /rmm shows, always on. A resource owns one
 * slot. All resources on a GPU, or of host memory, share its location. What resources call is in
 * base/count.h.
 *
 * Two ways to write a slot, chosen by the resource:
 *   *_striped    no lock held: atomic adds (arena); *_shared: the stripe is the thread's
 *   *_exclusive  the resource's own lock held: plain stores inside a sequence lock
 * A slot may be written in both ways one after the other, but not at once: both write
 * current_bytes.
 *
 * Two ways to write a location, likewise:
 *   *_striped    atomic adds to words that all such resources share
 *   *_in_cell    plain stores to a cell, a stripe of the location that one resource with a lock
 *                has from its first user's block to its end. A resource that finds none free
 *                shares: the bins of one binning resource may take all four.
 *
 * Stripes: the value of a figure is the record's own word plus that of all stripes. Writers
 * without a cell count current_bytes and the live count in the record, both on one cache line,
 * and sums on one of the stripes.
 *
 * Order: count up after a block was obtained, and down before it can be allocated again. So
 * no figure of one writer ever exceeds the true value.
 *
 * Peaks of a location: each writer that counts up adds up what all of them have. This is exact for
 * one writer, and for several that one thread uses. If threads use several writers at the same
 * moment, the last one to add up sees what all of them have stored before (sequentially
 * consistent). But a peak may contain too much, or miss, what the others free or allocate while it
 * adds up, which takes some ns unless the thread is preempted; and it may miss the first block of a
 * second writer until the next allocation.
 *
 * Memory: the slot is in the segment, or in private memory when nothing is published
 * (RMM_PUBLISH=0, no place to write, slot table full). Users of this header cannot tell.
 *
 * Cost of one allocation and free of a block: four atomic adds on a line that others write
 * too, at the location, three to five on a stripe; the same on a striped slot; none where
 * plain stores do; marks are compared by plain loads and written only when they rise.
 *
 * Marks: reset by generation. The daemon raises a number in the control page; the next
 * allocation that sees it differ from the one last obeyed sets the mark to the current
 * value. Readers show the current value until then.
 */
#ifndef RMM_PUBLISH_ACCOUNTING_H
#define RMM_PUBLISH_ACCOUNTING_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rmm/resource.h>

#include "core/assert.h"
#include "core/hash.h"
#include "segment/segment_format.h"

typedef struct rmm_accounting {
    rmm_segment_slot_t *slot;           /* never NULL once open */
    rmm_segment_stripe_t *stripes;      /* RMM_SEGMENT_STRIPES of this slot; likewise */
    const rmm_control_slot_t *requests; /* of this slot; never NULL once open */
    uint32_t location;                  /* index */
    rmm_segment_location_t *record;     /* of that location, likewise */
    const rmm_control_location_t *location_requests;
    rmm_segment_stripe_t
        *cell;            /* of that location, this resource's; NULL: it has none */
    uint32_t writer;      /* its bit among the location's writers; 0: it has no cell */
    atomic_bool shares;   /* it has counted users' blocks without a cell */
    bool slot_is_private; /* malloc'ed: freed at close */
} rmm_accounting_t;

typedef struct rmm_accounting_desc {
    const char *type; /* copied, cut to fit */
    const char *name; /* copied, cut to fit */
    uint32_t instance_id;
    uint32_t upstream_id; /* 0: none */
    uint32_t location; /* from rmm__location_of_device() or RMM_SEGMENT_HOST_LOCATION */
    bool has_blocks;   /* that it can report */
} rmm_accounting_desc_t;

/* The names and size of a location; rmm__location_open() copies them. */
typedef struct rmm_location_identity {
    const char *uuid, *pci_bus_id, *name;
    uint64_t capacity_bytes;
} rmm_location_identity_t;

/* The mapped records, valid in every process state (see segment_writer.c). Set once by
 * rmm__publish_open(); until then they point at static private memory. */
extern rmm_segment_location_t *rmm__locations;
extern rmm_segment_stripe_t (*rmm__location_stripes)[RMM_SEGMENT_STRIPES];
extern const rmm_control_location_t *rmm__location_requests;

/* The writers of users' figures at each location: a bit for each cell that a resource has, and
 * one if others have counted there. */
#define RMM_LOCATION_SHARED (1u << RMM_SEGMENT_CELLS)
extern _Atomic(uint32_t) rmm__location_writers[RMM_SEGMENT_LOCATIONS];

/*
 * Make this process's segment, once; any failure warns once and leaves private memory.
 * driver: "cuda", "hip", "sim" or "none". Thread-safe.
 */
void rmm__publish_open(const char *driver);

/* Fill a location's identity, once per location. Thread-safe. */
void rmm__location_open(uint32_t location, const rmm_location_identity_t *identity);

/* RMM_OK or RMM_ERR_OUT_OF_HOST_MEMORY. Calls rmm__publish_open() must precede. */
rmm_status_t
rmm__accounting_open(rmm_accounting_t *accounting, const rmm_accounting_desc_t *desc);
void rmm__accounting_close(rmm_accounting_t *accounting);

/* Sums of the figures that may be spread over stripes; those that go up and down are never too
 * high. */
typedef struct rmm_accounting_sums {
    uint64_t total_bytes, total_count, freed_count, padding_bytes;
} rmm_accounting_sums_t;

void rmm__accounting_sums(
    const rmm_accounting_t *accounting, rmm_accounting_sums_t *out);
void rmm__location_sums(uint32_t location, rmm_accounting_sums_t *out);

/* What users hold at a location, of all its writers. */
typedef struct rmm_location_live {
    uint64_t bytes, count;
} rmm_location_live_t;

rmm_location_live_t rmm__location_live(uint32_t location);
uint64_t rmm__accounting_free_bytes(const rmm_accounting_t *accounting);

/* Whole of rmm_resource_get_stats() but for the argument checks. */
void rmm__accounting_stats(const rmm_accounting_t *accounting, rmm_stats_t *out);

/* Map "<segment>.<suffix>", zeroed, or private memory when not publishing. RMM_ERR_IO if the
 * file cannot be created: then the caller may use a smaller private table. */
rmm_status_t
rmm__publish_side_file(const char *suffix, size_t bytes, void **memory_out);

/* --- parts ---------------------------------------------------------------------- */

/* Slow halves, when a request was seen: set the mark to the current value. */
void rmm__location_obey_resets(uint32_t location);
void rmm__accounting_obey_reset(rmm_accounting_t *accounting);

/* acquire: pairs with obey() in accounting.c; a thread that sees a request obeyed sees the mark
 * that it left */
static inline bool
rmm__reset_is_due(const _Atomic(uint32_t) *seen, const _Atomic(uint32_t) *request)
{
    return atomic_load_explicit(request, memory_order_relaxed) !=
           atomic_load_explicit(seen, memory_order_acquire);
}

/* One figure. add and sub are atomic, and return the value before the call. */
static inline uint64_t rmm__figure_get(const _Atomic(uint64_t) *figure)
{
    return atomic_load_explicit(figure, memory_order_relaxed);
}

static inline uint64_t rmm__figure_add(_Atomic(uint64_t) *figure, uint64_t value)
{
    return atomic_fetch_add_explicit(figure, value, memory_order_relaxed);
}

static inline uint64_t rmm__figure_sub(_Atomic(uint64_t) *figure, uint64_t value)
{
    return atomic_fetch_sub_explicit(figure, value, memory_order_relaxed);
}

/* release: a reader that sees a slot's figure sees the odd sequence before it. Plain stores
 * on x86, and no fence, which the thread sanitizer would not understand. */
static inline void rmm__figure_set(_Atomic(uint64_t) *figure, uint64_t value)
{
    atomic_store_explicit(figure, value, memory_order_release);
}

/* No other thread writes it; `change` of either sign, modulo 2^64. */
static inline void rmm__figure_change(_Atomic(uint64_t) *figure, uint64_t change)
{
    rmm__figure_set(figure, rmm__figure_get(figure) + change);
}

/* No other thread writes it. */
static inline void rmm__figure_raise(_Atomic(uint64_t) *mark, uint64_t value)
{
    if (value > rmm__figure_get(mark)) {
        rmm__figure_set(mark, value);
    }
}

/* Other threads may write it. */
static inline void rmm__mark_raise(_Atomic(uint64_t) *mark, uint64_t value)
{
    uint64_t seen = rmm__figure_get(mark);

    while (value > seen &&
           !atomic_compare_exchange_weak_explicit(
               mark, &seen, value, memory_order_relaxed, memory_order_relaxed)) {
    }
}

/*
 * Live allocations of a record, modulo 2^64 but for the end: what stripes count is in its
 * own word, what plain stores count in the other two (total first: see rmm_live_count).
 */
static inline uint64_t
rmm__live_count(uint64_t striped, uint64_t total_count, uint64_t freed_count)
{
    uint64_t live = striped + total_count - freed_count;

    return (int64_t)live > 0 ? live : 0;
}

#define RMM_LIVE_COUNT(record, striped)                                                \
    rmm__live_count(                                                                   \
        striped, rmm__figure_get(&(record)->total_count),                              \
        rmm__figure_get(&(record)->freed_count))

/* --- stripes ---------------------------------------------------------------------- */

/* Of this thread, where nothing better is known: any stripe is right, two threads on one
 * wait for each other. Stacks lie at regular distances, whole pages, which the golden ratio
 * spreads: 16 threads find 14 stripes, where luck would give them 10. */
static inline uint32_t rmm__stripe_here(void)
{
    uint64_t page = (uint64_t)(uintptr_t)__builtin_thread_pointer() >> 12;

    static_assert(RMM_SEGMENT_STRIPES == 1u << 4, "the hash's upper bits");
    return (uint32_t)(rmm__hash(page) >> (64 - 4));
}

static inline void
rmm__stripe_alloc(rmm_segment_stripe_t *stripe, uint64_t bytes, uint64_t padding)
{
    rmm__figure_add(&stripe->total_bytes, bytes);
    rmm__figure_add(&stripe->total_count, 1);
    if (padding != 0) {
        rmm__figure_add(&stripe->padding_added, padding);
    }
}

static inline void rmm__stripe_free(rmm_segment_stripe_t *stripe, uint64_t padding)
{
    rmm__figure_add(&stripe->freed_count, 1);
    if (padding != 0) {
        rmm__figure_add(&stripe->padding_removed, padding);
    }
}

/* --- a slot, resource's lock not needed ------------------------------------------- */

/* On a stripe below RMM_SEGMENT_STRIPES, best one that few others use: then only the two
 * words that have a highest value are on a cache line that threads fight for. */
static inline void rmm__accounting_alloc_striped(
    rmm_accounting_t *accounting, uint32_t stripe, uint64_t bytes, uint64_t padding)
{
    rmm_segment_slot_t *slot = accounting->slot;
    uint64_t bytes_now = rmm__figure_add(&slot->current_bytes, bytes) + bytes;
    uint64_t striped_now = rmm__figure_add(&slot->live_count, 1) + 1;
    uint64_t count_now = RMM_LIVE_COUNT(slot, striped_now);

    rmm__stripe_alloc(&accounting->stripes[stripe], bytes, padding);
    if (rmm__reset_is_due(&slot->peak_reset_seen, &accounting->requests->peak_reset)) {
        rmm__accounting_obey_reset(accounting);
    }
    rmm__mark_raise(&slot->peak_bytes, bytes_now);
    rmm__mark_raise(&slot->peak_count, count_now);
    rmm__mark_raise(&slot->lifetime_peak_bytes, bytes_now);
}

static inline void rmm__accounting_free_striped(
    rmm_accounting_t *accounting, uint32_t stripe, uint64_t bytes, uint64_t padding)
{
    rmm__figure_sub(&accounting->slot->current_bytes, bytes);
    rmm__figure_sub(&accounting->slot->live_count, 1);
    rmm__stripe_free(&accounting->stripes[stripe], padding);
}

static inline void
rmm__accounting_alloc_shared(rmm_accounting_t *accounting, uint64_t bytes)
{
    rmm__accounting_alloc_striped(accounting, rmm__stripe_here(), bytes, 0);
}

static inline void
rmm__accounting_free_shared(rmm_accounting_t *accounting, uint64_t bytes)
{
    rmm__accounting_free_striped(accounting, rmm__stripe_here(), bytes, 0);
}

/*
 * From now on free_bytes is the free memory if no block were live: readers subtract
 * current_bytes and padding_bytes, so allocations need not. No other thread writes. If a
 * block is live already, the caller is between begin and end (see below).
 */
void rmm__accounting_free_is_rest(rmm_accounting_t *accounting);

static inline void
rmm__accounting_reserve_shared(rmm_accounting_t *accounting, uint64_t bytes)
{
    rmm__figure_add(&accounting->slot->reserved_bytes, bytes);
}

static inline void
rmm__accounting_unreserve_shared(rmm_accounting_t *accounting, uint64_t bytes)
{
    rmm__figure_sub(&accounting->slot->reserved_bytes, bytes);
}

void rmm__accounting_oom(rmm_accounting_t *accounting); /* slot only; any time */
void rmm__accounting_invalid_free(
    rmm_accounting_t *accounting); /* slot and location; any time */

/* --- a slot, resource's lock held --------------------------------------------------- */

/* Any figure of the slot, in either way of writing, e.g. SET(accounting, free_bytes, n). */
#define RMM_ACCOUNTING_SET(accounting, field, value)                                   \
    rmm__figure_set(&(accounting)->slot->field, (value))
#define RMM_ACCOUNTING_GET(accounting, field)                                          \
    rmm__figure_get(&(accounting)->slot->field)
#define RMM_ACCOUNTING_ADD_EXCLUSIVE(accounting, field, value)                         \
    RMM_ACCOUNTING_SET(                                                                \
        accounting, field, RMM_ACCOUNTING_GET(accounting, field) + (value))

/* Readers see all figures that were written between the two, or none. No call in between may
 * wait. */
static inline void rmm__accounting_begin_exclusive(rmm_accounting_t *accounting)
{
    _Atomic(uint32_t) *sequence = &accounting->slot->sequence;

    atomic_store_explicit(
        sequence, atomic_load_explicit(sequence, memory_order_relaxed) + 1,
        memory_order_relaxed);
}

static inline void rmm__accounting_end_exclusive(rmm_accounting_t *accounting)
{
    _Atomic(uint32_t) *sequence = &accounting->slot->sequence;

    /* release: pairs with look_at_slot() in segment_reader.c */
    atomic_store_explicit(
        sequence, atomic_load_explicit(sequence, memory_order_relaxed) + 1,
        memory_order_release);
}

#define RMM_ACCOUNTING_RAISE_EXCLUSIVE(accounting, field, value)                       \
    do {                                                                               \
        if ((value) > RMM_ACCOUNTING_GET(accounting, field)) {                         \
            RMM_ACCOUNTING_SET(accounting, field, value);                              \
        }                                                                              \
    } while (0)

/* Between begin and end: */
RMM_HOT_INLINE void rmm__accounting_alloc_exclusive(
    rmm_accounting_t *accounting, uint64_t bytes, uint64_t padding)
{
    rmm_segment_slot_t *slot = accounting->slot;
    uint64_t bytes_now, count_now;

    rmm__figure_change(&slot->current_bytes, bytes);
    rmm__figure_change(&slot->padding_bytes, padding);
    rmm__figure_change(&slot->total_bytes, bytes);
    rmm__figure_change(&slot->total_count, 1);
    if (rmm__reset_is_due(&slot->peak_reset_seen, &accounting->requests->peak_reset)) {
        rmm__accounting_obey_reset(accounting);
    }
    bytes_now = rmm__figure_get(&slot->current_bytes);
    count_now = RMM_LIVE_COUNT(slot, rmm__figure_get(&slot->live_count));
    rmm__figure_raise(&slot->peak_count, count_now);
    if (bytes_now > rmm__figure_get(&slot->peak_bytes)) { /* never above the next one */
        rmm__figure_raise(&slot->peak_bytes, bytes_now);
        rmm__figure_raise(&slot->lifetime_peak_bytes, bytes_now);
    }
}

static inline void rmm__accounting_free_exclusive(
    rmm_accounting_t *accounting, uint64_t bytes, uint64_t padding)
{
    rmm_segment_slot_t *slot = accounting->slot;

    rmm__figure_change(&slot->current_bytes, -bytes);
    rmm__figure_change(&slot->padding_bytes, -padding);
    rmm__figure_change(&slot->freed_count, 1);
}

/* --- a location: what users hold ------------------------------------------------------ */

/* Raise its marks to what users hold now. */
RMM_HOT_INLINE void rmm__location_raise(
    const rmm_accounting_t *accounting, uint64_t bytes_now, uint64_t count_now)
{
    rmm_segment_location_t *record = accounting->record;
    const rmm_control_location_t *requests = accounting->location_requests;

    if (__builtin_expect((int64_t)bytes_now < 0 || (int64_t)count_now < 0, false)) {
        return; /* below 0: a callback's block that its program freed outside of it */
    }
    if (rmm__reset_is_due(&record->peak_reset_seen, &requests->peak_reset) ||
        rmm__reset_is_due(&record->node_peak_reset_seen, &requests->node_peak_reset)) {
        rmm__location_obey_resets(accounting->location);
    }
    rmm__mark_raise(&record->peak_bytes, bytes_now);
    rmm__mark_raise(&record->peak_count, count_now);
    rmm__mark_raise(&record->node_peak_count, count_now);
    if (bytes_now >
        rmm__figure_get(&record->node_peak_bytes)) { /* never above the next one */
        rmm__mark_raise(&record->node_peak_bytes, bytes_now);
        rmm__mark_raise(&record->lifetime_peak_bytes, bytes_now);
    }
}

/* A resource begins at its location, `location` being set, and ends there. */
void rmm__location_begin(rmm_accounting_t *accounting);
void rmm__location_end(rmm_accounting_t *accounting);

/* The first user's block of a resource with a lock, which is held: true if a cell was free. */
bool rmm__location_take_cell(rmm_accounting_t *accounting);

/* The first user's block of a resource without a cell: cells are not all there is to add up. */
void rmm__location_share(rmm_accounting_t *accounting);

/* The writers at its location but those that the bits name. */
static inline uint32_t
rmm__location_others(const rmm_accounting_t *accounting, uint32_t writers)
{
    return atomic_load_explicit(
               &rmm__location_writers[accounting->location], memory_order_relaxed) &
           ~writers;
}

/* Of a location's stripes, for writers that share. */
static inline rmm_segment_stripe_t *
rmm__location_stripe(const rmm_accounting_t *accounting, uint32_t stripe)
{
    static_assert(RMM_SEGMENT_STRIPES % RMM_SEGMENT_CELLS == 0, "spread evenly");
    return &rmm__location_stripes[accounting->location]
                                 [RMM_SEGMENT_CELLS +
                                  stripe * (RMM_SEGMENT_STRIPES - RMM_SEGMENT_CELLS) /
                                      RMM_SEGMENT_STRIPES];
}

/* As at a slot. Not for a resource with a cell. */
static inline void rmm__location_alloc_striped(
    rmm_accounting_t *accounting, uint32_t stripe, uint64_t bytes, uint64_t padding)
{
    rmm_segment_location_t *record = accounting->record;
    rmm_location_live_t live;

    if (__builtin_expect(
            !atomic_load_explicit(&accounting->shares, memory_order_relaxed), false)) {
        rmm__location_share(accounting);
    }
    rmm__stripe_alloc(rmm__location_stripe(accounting, stripe), bytes, padding);
    live.count = rmm__figure_add(&record->live_count, 1) + 1;
    live.bytes = atomic_fetch_add(&record->current_bytes, bytes) + bytes;
    if (rmm__location_others(accounting, RMM_LOCATION_SHARED) != 0) {
        live = rmm__location_live(accounting->location);
    }
    rmm__location_raise(accounting, live.bytes, live.count);
}

static inline void rmm__location_free_striped(
    const rmm_accounting_t *accounting, uint32_t stripe, uint64_t bytes,
    uint64_t padding)
{
    rmm__figure_sub(&accounting->record->current_bytes, bytes);
    rmm__figure_sub(&accounting->record->live_count, 1);
    rmm__stripe_free(rmm__location_stripe(accounting, stripe), padding);
}

/* Of a block that no user holds. */
static inline void rmm__location_padding_striped(
    const rmm_accounting_t *accounting, uint32_t stripe, uint64_t added,
    uint64_t removed)
{
    rmm_segment_stripe_t *sums = rmm__location_stripe(accounting, stripe);

    rmm__figure_add(&sums->padding_added, added);
    rmm__figure_add(&sums->padding_removed, removed);
}

/* In the resource's cell, its lock held. */
RMM_HOT_INLINE void
rmm__location_alloc_in_cell(const rmm_accounting_t *accounting, uint64_t bytes)
{
    rmm_segment_stripe_t *cell = accounting->cell;
    rmm_location_live_t live;

    rmm__figure_change(&cell->total_bytes, bytes);
    rmm__figure_change(&cell->total_count, 1);
    live.count =
        rmm__figure_get(&cell->total_count) - rmm__figure_get(&cell->freed_count);
    live.bytes = rmm__figure_get(&cell->current_bytes) + bytes;
    rmm__figure_set(&cell->current_bytes, live.bytes);
    if (__builtin_expect(
            rmm__location_others(accounting, accounting->writer) != 0, false)) {
        atomic_store(&cell->current_bytes, live.bytes); /* before the others are read */
        live = rmm__location_live(accounting->location);
    }
    rmm__location_raise(accounting, live.bytes, live.count);
}

static inline void
rmm__location_free_in_cell(const rmm_accounting_t *accounting, uint64_t bytes)
{
    rmm__figure_change(&accounting->cell->current_bytes, -bytes);
    rmm__figure_change(&accounting->cell->freed_count, 1);
}

/* A resource ends with live blocks: subtract those of users, and what rounding has added to all.
 * A resource with a cell knows from it what users hold. */
typedef struct rmm_location_left {
    uint64_t bytes, count, padding;
} rmm_location_left_t;
void rmm__location_forget(
    const rmm_accounting_t *accounting, const rmm_location_left_t *left);

/* --- a location: what base resources hold from the driver, and events ------------------ */

static inline void rmm__location_reserve(uint32_t location, uint64_t bytes)
{
    rmm__figure_add(&rmm__locations[location].reserved_bytes, bytes);
}

static inline void rmm__location_unreserve(uint32_t location, uint64_t bytes)
{
    rmm__figure_sub(&rmm__locations[location].reserved_bytes, bytes);
}

/* So much more of what pools held is the device's while they sleep; less: a negative number. */
static inline void rmm__location_asleep(uint32_t location, uint64_t bytes)
{
    rmm__figure_add(&rmm__locations[location].asleep_bytes, bytes);
}

void rmm__location_oom(uint32_t location);
void rmm__location_device_free(uint32_t location, uint64_t device_free_bytes);

#endif /* RMM_PUBLISH_ACCOUNTING_H */
