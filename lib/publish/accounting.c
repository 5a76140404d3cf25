/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rare half of the accounting: resets of marks, refusals, and reading. The half that every
 * allocation runs is inline in accounting.h.
 */
#include "publish/accounting.h"

#include "core/assert.h"
#include "core/fork.h"
#include "core/mutex.h"

/*
 * Protects resets of marks that are not under a resource's lock. A thread that finds a new reset
 * request takes this lock before it raises a mark. So a thread that comes after the reset raises
 * the new mark; and what was counted before the reset is part of the current_bytes that the reset
 * reads. No high-water mark is lost.
 */
static rmm_mutex_t reset_lock = RMM_MUTEX_INITIALIZER;

_Atomic(uint32_t) rmm__location_writers[RMM_SEGMENT_LOCATIONS];

/* Its figures begin anew in private memory, and the resources that it inherits count no more. */
static void forget_writers_in_child(void)
{
    for (uint32_t i = 0; i < RMM_SEGMENT_LOCATIONS; i++) {
        atomic_store_explicit(&rmm__location_writers[i], 0, memory_order_relaxed);
    }
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_MARKS, &reset_lock, forget_writers_in_child);
}

/* A figure that can fall may be negative for a moment, modulo 2^64: shown as 0. */
static uint64_t not_negative(uint64_t figure)
{
    return (int64_t)figure > 0 ? figure : 0;
}

/* --- resets of marks ------------------------------------------------------------------ */

typedef struct mark_set {
    _Atomic(uint32_t) *seen;
    const _Atomic(uint32_t) *request;
    _Atomic(uint64_t) *peak_bytes, *peak_count;
} mark_set_t;

static void obey(const mark_set_t *marks, uint64_t bytes_now, uint64_t count_now)
{
    uint32_t request = atomic_load_explicit(marks->request, memory_order_relaxed);

    if (request == atomic_load_explicit(marks->seen, memory_order_relaxed)) {
        return;
    }
    atomic_store_explicit(marks->peak_bytes, bytes_now, memory_order_relaxed);
    atomic_store_explicit(marks->peak_count, count_now, memory_order_relaxed);
    /* release: pairs with the acquire in rmm__reset_is_due() */
    atomic_store_explicit(marks->seen, request, memory_order_release);
}

RMM_COLD void rmm__location_obey_resets(uint32_t location)
{
    rmm_segment_location_t *record = &rmm__locations[location];
    const rmm_control_location_t *requests = &rmm__location_requests[location];
    const mark_set_t marks[] = {
        {&record->peak_reset_seen, &requests->peak_reset, &record->peak_bytes,
         &record->peak_count},
        {&record->node_peak_reset_seen, &requests->node_peak_reset,
         &record->node_peak_bytes, &record->node_peak_count}};
    rmm_location_live_t live;

    rmm__mutex_lock(&reset_lock);
    live = rmm__location_live(location);
    obey(&marks[0], live.bytes, live.count);
    obey(&marks[1], live.bytes, live.count);
    rmm__mark_raise(&record->lifetime_peak_bytes, live.bytes); /* below no other mark */
    rmm__mutex_unlock(&reset_lock);
}

RMM_COLD void rmm__accounting_obey_reset(rmm_accounting_t *accounting)
{
    rmm_segment_slot_t *slot = accounting->slot;
    const mark_set_t marks = {
        &slot->peak_reset_seen, &accounting->requests->peak_reset, &slot->peak_bytes,
        &slot->peak_count};
    uint64_t bytes_now;

    rmm__mutex_lock(&reset_lock);
    bytes_now = rmm__figure_get(&slot->current_bytes);
    obey(&marks, bytes_now, RMM_LIVE_COUNT(slot, rmm__figure_get(&slot->live_count)));
    rmm__mark_raise(&slot->lifetime_peak_bytes, bytes_now);
    rmm__mutex_unlock(&reset_lock);
}

/* --- the writers of a location --------------------------------------------------------- */

void rmm__location_begin(rmm_accounting_t *accounting)
{
    accounting->record = &rmm__locations[accounting->location];
    accounting->location_requests = &rmm__location_requests[accounting->location];
    accounting->cell = NULL;
    accounting->writer = 0;
    atomic_init(&accounting->shares, false);
}

RMM_COLD bool rmm__location_take_cell(rmm_accounting_t *accounting)
{
    _Atomic(uint32_t) *writers = &rmm__location_writers[accounting->location];

    if (atomic_load_explicit(&accounting->shares, memory_order_relaxed)) {
        return false; /* as before */
    }
    for (uint32_t i = 0; i < RMM_SEGMENT_CELLS; i++) {
        /* pairs with rmm__location_end(): the stores of who had it before are over */
        if ((atomic_fetch_or(writers, 1u << i) & 1u << i) == 0) {
            accounting->writer = 1u << i;
            accounting->cell = &rmm__location_stripes[accounting->location][i];
            return true;
        }
    }
    return false;
}

void rmm__location_end(rmm_accounting_t *accounting)
{
    atomic_fetch_and_explicit(
        &rmm__location_writers[accounting->location], ~accounting->writer,
        memory_order_acq_rel);
}

RMM_COLD void rmm__location_share(rmm_accounting_t *accounting)
{
    atomic_fetch_or(&rmm__location_writers[accounting->location], RMM_LOCATION_SHARED);
    atomic_store_explicit(&accounting->shares, true, memory_order_relaxed);
}

/* Loads that are sequentially consistent, as the stores of the writers: of two that count at the
 * same moment one sees both. */
RMM_COLD rmm_location_live_t rmm__location_live(uint32_t location)
{
    const rmm_segment_location_t *record = &rmm__locations[location];
    const rmm_segment_stripe_t *cells = rmm__location_stripes[location];
    uint32_t writers = atomic_load(&rmm__location_writers[location]);
    rmm_location_live_t live = {
        atomic_load(&record->current_bytes), atomic_load(&record->live_count)};

    for (uint32_t i = 0; i < RMM_SEGMENT_CELLS; i++) {
        if ((writers & 1u << i) != 0) {
            uint64_t total_count = atomic_load(&cells[i].total_count);

            live.bytes += atomic_load(&cells[i].current_bytes);
            live.count += total_count - rmm__figure_get(&cells[i].freed_count);
        }
    }
    live.bytes = not_negative(live.bytes);
    live.count = not_negative(live.count);
    return live;
}

/* --- reading ------------------------------------------------------------------------ */

/* acquire: what the caller reads next is not older than this sum */
static uint64_t sum_of(const rmm_segment_stripe_t *stripes, size_t word)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < RMM_SEGMENT_STRIPES; i++) {
        const char *stripe = (const char *)&stripes[i];

        sum += atomic_load_explicit(
            (const _Atomic(uint64_t) *)(const void *)(stripe + word),
            memory_order_acquire);
    }
    return sum;
}

#define SUM(stripes, field) sum_of(stripes, offsetof(rmm_segment_stripe_t, field))

/* Adds the stripes to the record's own words. The subtracted words are read last, so the
 * difference never exceeds the true value at some moment in between. */
static void
add_stripes(const rmm_segment_stripe_t *stripes, rmm_accounting_sums_t *sums)
{
    sums->total_bytes += SUM(stripes, total_bytes);
    sums->total_count += SUM(stripes, total_count);
    sums->padding_bytes += SUM(stripes, padding_added);
    sums->padding_bytes -= SUM(stripes, padding_removed);
    sums->freed_count += SUM(stripes, freed_count);
    sums->padding_bytes = not_negative(sums->padding_bytes);
}

/* total_count before freed_count, which is subtracted from it (acquire) */
#define TAKE_OWN_WORDS(record, sums)                                                   \
    do {                                                                               \
        (sums)->total_bytes = rmm__figure_get(&(record)->total_bytes);                 \
        (sums)->total_count =                                                          \
            atomic_load_explicit(&(record)->total_count, memory_order_acquire);        \
        (sums)->freed_count = rmm__figure_get(&(record)->freed_count);                 \
        (sums)->padding_bytes = rmm__figure_get(&(record)->padding_bytes);             \
    } while (0)

void rmm__accounting_sums(
    const rmm_accounting_t *accounting, rmm_accounting_sums_t *out)
{
    TAKE_OWN_WORDS(accounting->slot, out);
    add_stripes(accounting->stripes, out);
}

void rmm__location_sums(uint32_t location, rmm_accounting_sums_t *out)
{
    TAKE_OWN_WORDS(&rmm__locations[location], out);
    add_stripes(rmm__location_stripes[location], out);
}

uint64_t rmm__accounting_free_bytes(const rmm_accounting_t *accounting)
{
    const rmm_segment_slot_t *slot = accounting->slot;
    uint64_t free_bytes = rmm__figure_get(&slot->free_bytes);
    rmm_accounting_sums_t sums;

    if ((atomic_load_explicit(&slot->flags, memory_order_relaxed) &
         RMM_SLOT_FREE_IS_REST) == 0) {
        return free_bytes;
    }
    rmm__accounting_sums(accounting, &sums);
    return not_negative(
        free_bytes - rmm__figure_get(&slot->current_bytes) - sums.padding_bytes);
}

void rmm__accounting_free_is_rest(rmm_accounting_t *accounting)
{
    rmm_segment_slot_t *slot = accounting->slot;
    rmm_accounting_sums_t sums;

    if ((atomic_load_explicit(&slot->flags, memory_order_relaxed) &
         RMM_SLOT_FREE_IS_REST) != 0) {
        return;
    }
    rmm__accounting_sums(accounting, &sums);
    rmm__figure_add(
        &slot->free_bytes, rmm__figure_get(&slot->current_bytes) + sums.padding_bytes);
    atomic_fetch_or_explicit(&slot->flags, RMM_SLOT_FREE_IS_REST, memory_order_relaxed);
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

void rmm__accounting_stats(const rmm_accounting_t *accounting, rmm_stats_t *out)
{
    const rmm_segment_slot_t *slot = accounting->slot;
    rmm_accounting_sums_t sums;

    rmm__accounting_sums(accounting, &sums);
    out->current_bytes = rmm__figure_get(&slot->current_bytes);
    out->current_count = rmm_live_count(sums.total_count, sums.freed_count);
    out->peak_bytes = rmm__figure_get(&slot->peak_bytes);
    out->peak_count = rmm__figure_get(&slot->peak_count);
    out->total_bytes = sums.total_bytes;
    out->total_count = sums.total_count;
    out->reserved_bytes = rmm__figure_get(&slot->reserved_bytes);
    out->oom_count = rmm__figure_get(&slot->oom_count);
    out->invalid_free_count = rmm__figure_get(&slot->invalid_free_count);
    out->free_bytes = rmm__accounting_free_bytes(accounting);
    out->largest_free_bytes = rmm__figure_get(&slot->largest_free_bytes);
    out->maximum_bytes = rmm__figure_get(&slot->maximum_bytes);
    out->asleep_bytes = rmm__figure_get(&slot->asleep_bytes);
    if (rmm__reset_is_due(&slot->peak_reset_seen, &accounting->requests->peak_reset)) {
        out->peak_bytes = out->current_bytes;
        out->peak_count = out->current_count;
    }
    /* another thread may be between the two */
    out->peak_bytes = larger(out->peak_bytes, out->current_bytes);
    out->peak_count = larger(out->peak_count, out->current_count);
}

void rmm__accounting_oom(rmm_accounting_t *accounting)
{
    rmm__figure_add(&accounting->slot->oom_count, 1);
}

void rmm__accounting_invalid_free(rmm_accounting_t *accounting)
{
    rmm__figure_add(&accounting->slot->invalid_free_count, 1);
    rmm__figure_add(&rmm__locations[accounting->location].invalid_free_count, 1);
}

void rmm__location_oom(uint32_t location)
{
    rmm__figure_add(&rmm__locations[location].oom_count, 1);
}

/* Its cell has what users hold of it, and nothing else. */
static void
forget_cell(const rmm_accounting_t *accounting, const rmm_location_left_t *left)
{
    rmm_segment_stripe_t *cell = accounting->cell;
    uint64_t bytes = rmm__figure_get(&cell->current_bytes);

    rmm__figure_set(&cell->current_bytes, 0);
    rmm__figure_set(&cell->freed_count, rmm__figure_get(&cell->total_count));
    rmm__figure_change(&cell->padding_removed, left->padding);
    rmm__figure_add(&accounting->record->leaked_bytes, bytes);
}

void rmm__location_forget(
    const rmm_accounting_t *accounting, const rmm_location_left_t *left)
{
    rmm_segment_location_t *record = accounting->record;
    rmm_segment_stripe_t *stripe;

    if (accounting->cell != NULL) {
        forget_cell(accounting, left);
        return;
    }
    stripe = rmm__location_stripe(accounting, rmm__stripe_here());
    rmm__figure_add(&stripe->padding_removed, left->padding);
    if (!atomic_load_explicit(&accounting->shares, memory_order_relaxed)) {
        return; /* no user's block */
    }
    rmm__figure_sub(&record->current_bytes, left->bytes);
    rmm__figure_sub(&record->live_count, left->count);
    rmm__figure_add(&record->leaked_bytes, left->bytes);
    rmm__figure_add(&stripe->freed_count, left->count);
}

void rmm__location_device_free(uint32_t location, uint64_t device_free_bytes)
{
    atomic_store_explicit(
        &rmm__locations[location].device_free_bytes, device_free_bytes,
        memory_order_relaxed);
}
