/* SPDX-License-Identifier: Apache-2.0 */
/*
 * When a stream's frees get an event (streams.h).
 *
 * Bound of what no event covers. A stream may free once and end: then only a synchronise
 * covers its block. A stream's frees since its last event are *open*. An event is recorded
 * as soon as the stream's open frees exceed a part of what the other streams leave of the
 * bound: the more memory is stranded, the less a stream may have. The bound is a share of what
 * the engine holds, at least OPEN_LEAST. (Dynamic thresholds of shared buffers: Choudhury and
 * Hahne, IEEE/ACM Transactions on Networking 6(2), 1998.) The part is small, because the bound
 * depends on the size of the pool: with a large part, a slightly larger pool would place blocks
 * elsewhere, and could fail a program that a smaller one serves. Free memory that merges with
 * an open block is no longer covered either. A free does not count it, but the engine does
 * before it grows: above half of the bound it synchronises first.
 *
 * Cost: an event for each BATCH_FREES frees, some 3 ns a free, where blocks are small.
 */
#include "pool/streams.h"

/* The bound of open frees: at least so many bytes, a share of what is held, and so many
 * blocks where all have one size. */
#define OPEN_LEAST ((uint64_t)1024 * 1024)
#define OPEN_SHARE 32
#define OPEN_BLOCKS 8
/* One stream may have such a part of what the others leave of it, or so many bytes. */
#define OPEN_PART 64
#define OPEN_FEW ((uint64_t)512 * 1024)
/* A free counts as at least so many bytes, the size of a stream's entry, and as at least
 * this share of the bound, which also bounds how many streams have open frees. */
#define OPEN_FREE_LEAST 512
#define OPEN_FREES 16384

void rmm__engine_bound_open_locked(engine_t *engine)
{
    uint64_t share = engine->figures.reserved_bytes / OPEN_SHARE;
    uint64_t least = OPEN_BLOCKS * RMM_BLOCKS_UNIT * engine->block_units;
    uint64_t bound;

    least = least > OPEN_LEAST ? least : OPEN_LEAST;
    bound = share > least ? share : least;
    engine->streams.open_bound = bound;
    engine->streams.open_free_least =
        bound / OPEN_FREES > OPEN_FREE_LEAST ? bound / OPEN_FREES : OPEN_FREE_LEAST;
}

/* Units that no event of the stream covers: freed since its newest event, or merged with
 * such a block. */
static uint64_t uncovered_units(const engine_t *engine, const engine_stream_t *stream)
{
    uint64_t covered =
        stream->batch_count != 0 ? stream->batches[stream->batch_count - 1].stamp : 0;

    return rmm__blocks_units_after(engine->blocks, stream->heap, covered);
}

bool rmm__engine_is_worth_synchronising_locked(const engine_t *engine)
{
    const engine_streams_t *streams = &engine->streams;
    uint64_t units = streams->others_work
                         ? 0
                         : rmm__blocks_free_units(engine->blocks, streams->unproven);

    for (uint32_t i = 0; i < streams->capacity; i++) {
        if (streams->table[i] != NULL && !streams->table[i]->may_be_foreign) {
            units += uncovered_units(engine, streams->table[i]);
        }
    }
    return units * RMM_BLOCKS_UNIT > engine->streams.open_bound / 2;
}

/* How many bytes a stream may have open, of the part of the bound that the other streams leave;
 * never all of it. */
static uint64_t most_open(uint64_t left)
{
    uint64_t few = left / 2 < OPEN_FEW ? left / 2 : OPEN_FEW;

    return left / OPEN_PART > few ? left / OPEN_PART : few;
}

/* Is it time to cover the stream's open frees by an event? */
static bool is_batch(const engine_t *engine, const engine_stream_t *stream)
{
    uint64_t others = engine->streams.open_bytes - stream->open_bytes;
    uint64_t bound = engine->streams.open_bound;

    if (stream == engine->streams.single) { /* no other stream waits for them */
        return stream->open_frees >= BATCH_FREES_SINGLE;
    }
    return stream->open_frees >= BATCH_FREES || !stream->is_native || others >= bound ||
           stream->open_bytes > most_open(bound - others);
}

bool rmm__engine_open_adds_up_locked(const engine_t *engine)
{
    const engine_streams_t *streams = &engine->streams;
    uint64_t open_bytes = 0;

    for (uint32_t i = 0; i < streams->capacity; i++) {
        open_bytes += streams->table[i] != NULL ? streams->table[i]->open_bytes : 0;
    }
    return open_bytes == streams->open_bytes;
}

/* Later frees carry the next stamp; an event will cover those before. */
RMM_COLD static void
close_locked(engine_t *engine, engine_stream_t *stream, engine_closing_t *closing_out)
{
    *closing_out = (engine_closing_t){
        .stream_id = stream->id,
        .stamp = engine->streams.stamp++,
        .open_bytes = stream->open_bytes,
        .open_frees = stream->open_frees,
        .is_needed = true,
        .is_foreign = stream->is_foreign,
        .is_native = stream->is_native,
        .event = stream->is_foreign ? NULL : rmm__stream_event_take_locked(engine)};
    rmm__stream_open_forget_locked(&engine->streams, stream);
}

void rmm__engine_note_free_locked(
    engine_t *engine, engine_stream_t *stream, uint64_t bytes,
    engine_closing_t *closing_out)
{
    uint64_t least = engine->streams.open_free_least;

    rmm__stream_open_more_locked(
        &engine->streams, stream, bytes > least ? bytes : least, 1);
    if (!stream->is_native) {
        stream->may_be_foreign = true;
        stream->foreign_stamp = engine->streams.stamp;
    }
    if (is_batch(engine, stream)) {
        close_locked(engine, stream, closing_out);
    }
}
