/* SPDX-License-Identifier: Apache-2.0 */
/* Which streams were asked for; see streams.h. */
#include "inject/streams.h"

#include <stdatomic.h>

#include "core/hash.h"
#include "diag/stream_key.h"

#define PLACES 1024u /* a power of two; two streams at one place are asked for again */

static rmm_diag_engine_t *to_engine;
static inject_stream_query_fn ask;
static _Atomic(uint64_t)
    seen[PLACES]; /* keys of streams that the engine knows; 0: none */

void inject_streams_open(rmm_diag_engine_t *engine, inject_stream_query_fn query)
{
    to_engine = engine;
    ask = query;
}

static _Atomic(uint64_t) *place_of(uint64_t key)
{
    return &seen[(rmm__hash(key) >> 32) % PLACES];
}

static void tell(rmm_stream_t stream, uint32_t flags, uint64_t id)
{
    const uint64_t words[] = {flags & 1, id};
    const rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = RMM_DIAG_STREAM_SEEN,
        .device = -1,
        .stream = stream,
        .words = words,
        .word_count = 2};

    rmm__diag_engine_on_event(to_engine, &event);
}

void inject_streams_see(rmm_stream_t stream)
{
    uint64_t key = rmm__stream_key(stream);
    _Atomic(uint64_t) *place = place_of(key);
    uint64_t id = UINT64_MAX;
    uint32_t flags = 0;

    /* relaxed: a key publishes nothing but itself */
    if (ask == NULL || key == RMM_STREAM_KEY_LEGACY ||
        atomic_load_explicit(place, memory_order_relaxed) == key ||
        !ask(stream, &flags, &id)) {
        return;
    }
    tell(stream, flags, id);
    if (id != UINT64_MAX) {
        atomic_store_explicit(place, key, memory_order_relaxed);
    }
}

static void forget(rmm_stream_t stream)
{
    uint64_t key = rmm__stream_key(stream);

    atomic_compare_exchange_strong_explicit(
        place_of(key), &key, 0, memory_order_relaxed, memory_order_relaxed);
}

/* The call has succeeded, so there is such a stream. */
static bool has_stream(const rmm_diag_event_v1_t *event)
{
    switch (event->kind) {
    case RMM_DIAG_LAUNCH:
    case RMM_DIAG_COPY:
    case RMM_DIAG_SET:
    case RMM_DIAG_PREFETCH:
    case RMM_DIAG_GRAPH_LAUNCH:
    case RMM_DIAG_EVENT_RECORD:
    case RMM_DIAG_EVENT_WAIT:
    case RMM_DIAG_STREAM_SYNC:
        return event->before == 0 && event->capturing == 0;
    default:
        return false;
    }
}

void inject_streams_report(const rmm_diag_event_v1_t *event)
{
    if (event->kind == RMM_DIAG_STREAM_DESTROY ||
        event->kind == RMM_DIAG_STREAM_CREATE) {
        forget(event->stream);
    } else if (has_stream(event)) {
        inject_streams_see(event->stream);
    }
    rmm__diag_engine_on_event(to_engine, event);
    if (event->kind == RMM_DIAG_STREAM_CREATE) {
        inject_streams_see(event->stream);
    }
}
