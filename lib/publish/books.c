/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rare half of the books: resets of marks, refusals, and reading. The half that every
 * allocation runs is inline in books.h.
 */
#include "publish/books.h"

#include "core/assert.h"
#include "core/mutex.h"

/*
 * Protects resets of marks that are not under a resource's lock. An allocation that meets
 * an unseen wish comes here before it raises a mark, so whoever comes later than the one
 * that resets raises the new mark, and no high-water is lost: what was counted before the
 * reset's own look at current_bytes is in that look.
 */
static rmm_mutex_t reset_lock = RMM_MUTEX_INITIALIZER;

typedef struct mark_set {
    _Atomic(uint32_t) *seen;
    const _Atomic(uint32_t) *wish;
    _Atomic(uint64_t) *peak_bytes, *peak_count;
    const _Atomic(uint64_t) *current_bytes, *total_count, *freed_count;
} mark_set_t;

static void obey(const mark_set_t *marks)
{
    uint32_t wish = atomic_load_explicit(marks->wish, memory_order_relaxed);

    if (wish == atomic_load_explicit(marks->seen, memory_order_relaxed)) {
        return;
    }
    atomic_store_explicit(
        marks->peak_bytes, rmm__figure_get(marks->current_bytes), memory_order_relaxed);
    atomic_store_explicit(
        marks->peak_count,
        rmm_live_count(
            rmm__figure_get(marks->total_count), rmm__figure_get(marks->freed_count)),
        memory_order_relaxed);
    /* release: pairs with the acquire in rmm__reset_is_due() */
    atomic_store_explicit(marks->seen, wish, memory_order_release);
}

RMM_COLD void rmm__place_obey_resets(uint32_t place)
{
    rmm_segment_place_t *record = &rmm__places[place];
    const rmm_control_place_t *wishes = &rmm__place_wishes[place];
    mark_set_t marks = {
        .seen = &record->peak_reset_seen,
        .wish = &wishes->peak_reset,
        .peak_bytes = &record->peak_bytes,
        .peak_count = &record->peak_count,
        .current_bytes = &record->current_bytes,
        .total_count = &record->total_count,
        .freed_count = &record->freed_count,
    };

    rmm__mutex_lock(&reset_lock);
    obey(&marks);
    marks.seen = &record->node_peak_reset_seen;
    marks.wish = &wishes->node_peak_reset;
    marks.peak_bytes = &record->node_peak_bytes;
    marks.peak_count = &record->node_peak_count;
    obey(&marks);
    rmm__mutex_unlock(&reset_lock);
}

RMM_COLD void rmm__books_obey_reset(rmm_books_t *books)
{
    rmm_segment_slot_t *slot = books->slot;
    const mark_set_t marks = {
        .seen = &slot->peak_reset_seen,
        .wish = &books->wishes->peak_reset,
        .peak_bytes = &slot->peak_bytes,
        .peak_count = &slot->peak_count,
        .current_bytes = &slot->current_bytes,
        .total_count = &slot->total_count,
        .freed_count = &slot->freed_count,
    };

    rmm__mutex_lock(&reset_lock);
    obey(&marks);
    rmm__mutex_unlock(&reset_lock);
}

void rmm__books_stats(const rmm_books_t *books, rmm_stats_t *out)
{
    const rmm_segment_slot_t *slot = books->slot;
    uint64_t total_count = rmm__figure_get(&slot->total_count); /* before freed_count */

    out->current_bytes = rmm__figure_get(&slot->current_bytes);
    out->current_count =
        rmm_live_count(total_count, rmm__figure_get(&slot->freed_count));
    out->peak_bytes = rmm__figure_get(&slot->peak_bytes);
    out->peak_count = rmm__figure_get(&slot->peak_count);
    out->total_bytes = rmm__figure_get(&slot->total_bytes);
    out->total_count = total_count;
    out->reserved_bytes = rmm__figure_get(&slot->reserved_bytes);
    out->oom_count = rmm__figure_get(&slot->oom_count);
    out->invalid_free_count = rmm__figure_get(&slot->invalid_free_count);
    if (rmm__reset_is_due(&slot->peak_reset_seen, &books->wishes->peak_reset)) {
        out->peak_bytes = out->current_bytes;
        out->peak_count = out->current_count;
    }
}

void rmm__books_oom(rmm_books_t *books)
{
    atomic_fetch_add_explicit(&books->slot->oom_count, 1, memory_order_relaxed);
}

void rmm__books_invalid_free(rmm_books_t *books)
{
    atomic_fetch_add_explicit(
        &books->slot->invalid_free_count, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(
        &rmm__places[books->place].invalid_free_count, 1, memory_order_relaxed);
}

void rmm__place_oom(uint32_t place)
{
    atomic_fetch_add_explicit(&rmm__places[place].oom_count, 1, memory_order_relaxed);
}

void rmm__place_forget(uint32_t place, uint64_t bytes, uint64_t count)
{
    rmm_segment_place_t *record = &rmm__places[place];

    atomic_fetch_sub_explicit(&record->current_bytes, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&record->freed_count, count, memory_order_relaxed);
}

void rmm__place_device_free(uint32_t place, uint64_t device_free_bytes)
{
    atomic_store_explicit(
        &rmm__places[place].device_free_bytes, device_free_bytes, memory_order_relaxed);
}
