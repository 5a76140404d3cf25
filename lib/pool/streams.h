/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between streams.c, which knows the streams and what no event of each covers, and events.c,
 * which records events, queries them and waits for them.
 */
#ifndef RMM_POOL_STREAMS_H
#define RMM_POOL_STREAMS_H

#include "pool/engine_impl.h"

/* Keep an event that is no longer needed for the next batch. */
void rmm__stream_event_spare_locked(engine_t *engine, rmm_driver_event_t event);
/* Remove the oldest `gone` batches; their events are the caller's. */
void rmm__stream_batches_shift_locked(
    engine_t *engine, engine_stream_t *stream, uint32_t gone);
/* Remove the batches up to a stamp, whose frees no longer need an event; keep the events. */
void rmm__stream_batches_drop_locked(
    engine_t *engine, engine_stream_t *stream, uint64_t up_to);
void rmm__stream_batch_insert_locked(
    engine_t *engine, engine_stream_t *stream, engine_batch_t batch);
/* No memory is free in its heap. */
bool rmm__stream_is_idle_locked(const engine_t *engine, const engine_stream_t *stream);
/* The stream's open frees are covered now; more of its frees are open. */
void rmm__stream_open_forget_locked(engine_streams_t *streams, engine_stream_t *stream);
void rmm__stream_open_more_locked(
    engine_streams_t *streams, engine_stream_t *stream, uint64_t bytes, uint32_t frees);

#endif /* RMM_POOL_STREAMS_H */
