/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between the files that know streams: streams.c (which there are, and the batches of each),
 * open_frees.c (when a stream's frees get an event), events.c (events are recorded and
 * queried) and waits.c (streams and the host wait for the device).
 */
#ifndef RMM_POOL_STREAMS_H
#define RMM_POOL_STREAMS_H

#include "pool/engine_impl.h"

/* Keep an event that is no longer needed for the next batch. */
void rmm__stream_event_spare_locked(engine_t *engine, rmm_driver_event_t event);
/* One that is no longer needed, or NULL: there is none. */
rmm_driver_event_t rmm__stream_event_take_locked(engine_t *engine);
/* Remove the batches up to a stamp, whose frees no longer need an event; keep the events. */
void rmm__stream_batches_drop_locked(
    engine_t *engine, engine_stream_t *stream, uint64_t up_to);
void rmm__stream_batch_insert_locked(
    engine_t *engine, engine_stream_t *stream, engine_batch_t batch);
/* Drop batches that no longer cover a free block; false: none is left. */
bool rmm__stream_drop_useless_locked(engine_t *engine, engine_stream_t *stream);

/* A batch that is out of its stream, so that no other thread uses its event meanwhile. */
typedef struct engine_asked {
    uint64_t stream_id;
    engine_batch_t batch;
    bool is_done; /* what a query said */
} engine_asked_t;

/* Take the stream's newest or oldest batch; it has one. */
void rmm__stream_ask_locked(
    engine_t *engine, engine_stream_t *stream, bool newest, engine_asked_t *asked);
/* The device is done with what the stream freed up to this stamp: it becomes clean. Returns
 * how many units. */
uint64_t rmm__stream_clean_up_to_locked(
    engine_t *engine, const engine_stream_t *stream, uint64_t stamp);

/* No memory is free in its heap. */
bool rmm__stream_is_idle_locked(const engine_t *engine, const engine_stream_t *stream);

/* The stream's open frees are covered now. */
static inline void
rmm__stream_open_forget_locked(engine_streams_t *streams, engine_stream_t *stream)
{
    streams->open_bytes -= stream->open_bytes;
    stream->open_bytes = 0;
    stream->open_frees = 0;
}

/* More of its frees are open. */
static inline void rmm__stream_open_more_locked(
    engine_streams_t *streams, engine_stream_t *stream, uint64_t bytes, uint32_t frees)
{
    stream->open_bytes += bytes;
    stream->open_frees += frees;
    streams->open_bytes += bytes;
}

/* The open bytes of the engine are the sum of those of its streams. */
bool rmm__engine_open_adds_up_locked(const engine_t *engine);

#endif /* RMM_POOL_STREAMS_H */
