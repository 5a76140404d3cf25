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

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_MARKS, &reset_lock, NULL);
}

typedef struct mark_set {
    _Atomic(uint32_t) *seen;
    const _Atomic(uint32_t) *request;
    _Atomic(uint64_t) *peak_bytes, *peak_count;
    const _Atomic(uint64_t) *current_bytes, *live_count, *total_count, *freed_count;
} mark_set_t;

static void obey(const mark_set_t *marks)
{
    uint32_t request = atomic_load_explicit(marks->request, memory_order_relaxed);

    if (request == atomic_load_explicit(marks->seen, memory_order_relaxed)) {
        return;
    }
    atomic_store_explicit(
        marks->peak_bytes, rmm__figure_get(marks->current_bytes), memory_order_relaxed);
    atomic_store_explicit(
        marks->peak_count,
        rmm__live_count(
            rmm__figure_get(marks->live_count), rmm__figure_get(marks->total_count),
            rmm__figure_get(marks->freed_count)),
        memory_order_relaxed);
    /* release: pairs with the acquire in rmm__reset_is_due() */
    atomic_store_explicit(marks->seen, request, memory_order_release);
}

RMM_COLD void rmm__location_obey_resets(uint32_t location)
{
    rmm_segment_location_t *record = &rmm__locations[location];
    const rmm_control_location_t *requests = &rmm__location_requests[location];
    mark_set_t marks = {
        .seen = &record->peak_reset_seen,
        .request = &requests->peak_reset,
        .peak_bytes = &record->peak_bytes,
        .peak_count = &record->peak_count,
        .current_bytes = &record->current_bytes,
        .live_count = &record->live_count,
        .total_count = &record->total_count,
        .freed_count = &record->freed_count,
    };

    rmm__mutex_lock(&reset_lock);
    obey(&marks);
    marks.seen = &record->node_peak_reset_seen;
    marks.request = &requests->node_peak_reset;
    marks.peak_bytes = &record->node_peak_bytes;
    marks.peak_count = &record->node_peak_count;
    obey(&marks);
    rmm__mutex_unlock(&reset_lock);
}

RMM_COLD void rmm__accounting_obey_reset(rmm_accounting_t *accounting)
{
    rmm_segment_slot_t *slot = accounting->slot;
    const mark_set_t marks = {
        .seen = &slot->peak_reset_seen,
        .request = &accounting->requests->peak_reset,
        .peak_bytes = &slot->peak_bytes,
        .peak_count = &slot->peak_count,
        .current_bytes = &slot->current_bytes,
        .live_count = &slot->live_count,
        .total_count = &slot->total_count,
        .freed_count = &slot->freed_count,
    };

    rmm__mutex_lock(&reset_lock);
    obey(&marks);
    rmm__mutex_unlock(&reset_lock);
}

/* --- reading ------------------------------------------------------------------------ */

/* A figure that can fall may be negative for a moment, modulo 2^64: shown as 0. */
static uint64_t not_negative(uint64_t figure)
{
    return (int64_t)figure > 0 ? figure : 0;
}

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

/* Read in this order: total_count before freed_count, which is subtracted from it. */
#define OWN_WORDS(record)                                                              \
    {                                                                                  \
        rmm__figure_get(&(record)->total_bytes),                                       \
            rmm__figure_get(&(record)->total_count),                                   \
            rmm__figure_get(&(record)->freed_count),                                   \
            rmm__figure_get(&(record)->padding_bytes)                                  \
    }

void rmm__accounting_sums(
    const rmm_accounting_t *accounting, rmm_accounting_sums_t *out)
{
    const rmm_accounting_sums_t own = OWN_WORDS(accounting->slot);

    *out = own;
    add_stripes(accounting->stripes, out);
}

void rmm__location_sums(uint32_t location, rmm_accounting_sums_t *out)
{
    const rmm_accounting_sums_t own = OWN_WORDS(&rmm__locations[location]);

    *out = own;
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
    if (rmm__reset_is_due(&slot->peak_reset_seen, &accounting->requests->peak_reset)) {
        out->peak_bytes = out->current_bytes;
        out->peak_count = out->current_count;
    }
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

void rmm__location_forget(
    const rmm_accounting_t *accounting, const rmm_location_left_t *left)
{
    uint32_t location = accounting->location;
    rmm_segment_stripe_t *stripe = &rmm__location_stripes[location][rmm__stripe_here()];

    /* A user in mode OUTSIDE has counted nothing. For the user that owns the figures, which ends
     * here, an atomic addition is correct too. */
    if (rmm__location_mode(&accounting->user) != RMM_LOCATION_OUTSIDE) {
        rmm__figure_sub(&rmm__locations[location].current_bytes, left->bytes);
        rmm__figure_sub(&rmm__locations[location].live_count, left->count);
        rmm__figure_add(&rmm__locations[location].leaked_bytes, left->bytes);
        rmm__figure_add(&stripe->freed_count, left->count);
        rmm__figure_add(&stripe->padding_removed, left->padding);
    }
}

void rmm__location_device_free(uint32_t location, uint64_t device_free_bytes)
{
    atomic_store_explicit(
        &rmm__locations[location].device_free_bytes, device_free_bytes,
        memory_order_relaxed);
}
