/* SPDX-License-Identifier: Apache-2.0 */
/* Changes of the table of streams, and the numbers of threads; see stream_ids.h. */
#include "driver/stream_ids.h"

#include <stddef.h>

#include "core/fork.h"
#include "core/mutex.h"
#include "core/pointer_map.h"

static_assert(RMM_STREAM_ID_SETS == 1 << 8, "the hash's highest 8 bits choose the set");

_Alignas(64) rmm_stream_id_t rmm__stream_ids[RMM_STREAM_ID_SETS][RMM_STREAM_ID_WAYS];

static rmm_mutex_t changes = RMM_MUTEX_INITIALIZER; /* one writer at a time */

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_STREAM_IDS, &changes, NULL);
}

static rmm_stream_t stream_at(const rmm_stream_id_t *entry)
{
    return atomic_load_explicit(&entry->stream, memory_order_relaxed);
}

/* The entry of this stream; else the first free one, which a search finds soonest; else NULL. */
static rmm_stream_id_t *place_for_locked(rmm_stream_t stream)
{
    rmm_stream_id_t *set = rmm__stream_id_set(stream);
    rmm_stream_id_t *vacant = NULL;

    RMM_ASSERT_LOCKED(&changes);
    for (int i = 0; i < RMM_STREAM_ID_WAYS; i++) {
        if (stream_at(&set[i]) == stream) {
            return &set[i];
        }
        if (vacant == NULL && stream_at(&set[i]) == NULL) {
            vacant = &set[i];
        }
    }
    return vacant;
}

bool rmm__stream_id_keep(rmm_stream_t stream, uint64_t id)
{
    rmm_stream_id_t *place;

    rmm__mutex_lock(&changes);
    place = place_for_locked(stream);
    if (place != NULL) {
        atomic_store_explicit(&place->id, id, memory_order_relaxed);
        /* release: pairs with rmm__stream_id_find() */
        atomic_store_explicit(&place->stream, stream, memory_order_release);
    }
    rmm__mutex_unlock(&changes);
    return place != NULL;
}

void rmm__stream_id_forget(rmm_stream_t stream)
{
    rmm_stream_id_t *place;

    rmm__mutex_lock(&changes);
    place = place_for_locked(stream);
    if (place != NULL) {
        atomic_store_explicit(&place->stream, NULL, memory_order_relaxed);
    }
    rmm__mutex_unlock(&changes);
}

/* --- which streams there are, and were ------------------------------------------------ */

static rmm_pointer_map_t
    made; /* protected by `changes`; bytes: an rmm_stream_origin_t */

static void note_locked(rmm_stream_t stream, rmm_stream_origin_t origin)
{
    const rmm_pointer_map_entry_t entry = {.ptr = stream, .bytes = (size_t)origin};
    rmm_pointer_map_entry_t stale;

    RMM_ASSERT_LOCKED(&changes);
    if (rmm__pointer_map_reserve(&made)) {
        (void)rmm__pointer_map_replace_entry(&made, &entry, &stale);
    } else {
        (void)rmm__pointer_map_erase(&made, stream); /* unknown is never wrong */
    }
}

void rmm__stream_made(rmm_stream_t stream)
{
    rmm__mutex_lock(&changes);
    note_locked(stream, RMM_STREAM_LIVE);
    rmm__mutex_unlock(&changes);
}

void rmm__stream_ended(rmm_stream_t stream)
{
    size_t origin;

    rmm__mutex_lock(&changes);
    if (rmm__pointer_map_find(&made, stream, &origin)) {
        note_locked(stream, RMM_STREAM_ENDED);
    }
    rmm__mutex_unlock(&changes);
}

rmm_stream_origin_t rmm__stream_origin(rmm_stream_t stream)
{
    size_t origin = RMM_STREAM_UNKNOWN;

    if (rmm_stream_is_default(stream) || rmm_stream_is_per_thread_default(stream) ||
        rmm__stream_id_find(stream) != 0) {
        return RMM_STREAM_LIVE;
    }
    rmm__mutex_lock(&changes);
    if (!rmm__pointer_map_find(&made, stream, &origin)) {
        origin = RMM_STREAM_UNKNOWN;
    }
    rmm__mutex_unlock(&changes);
    return (rmm_stream_origin_t)origin;
}

/* --- ids of threads ---------------------------------------------------------------------- */

#define OF_THREAD ((uint64_t)1 << 63)
#define DEVICE_BITS 16

uint64_t rmm__stream_id_of_thread(int device)
{
    static _Atomic(uint64_t) last_thread;
    static _Thread_local uint64_t thread; /* 0: not counted yet */

    RMM_ASSERT(device >= 0 && device < 1 << DEVICE_BITS);
    if (thread == 0) {
        thread = 1 + atomic_fetch_add_explicit(&last_thread, 1, memory_order_relaxed);
    }
    return OF_THREAD | thread << DEVICE_BITS | (uint64_t)device;
}
