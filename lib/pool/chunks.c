/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory from an upstream, in chunks. A chunk is returned as a whole, when all of it is clean.
 *
 * Growth: by a quarter of the bytes held. A program that starts from nothing calls upstream some
 * 30 times on its way from 16 MiB to 16 GiB. A smaller share needs more memory: blocks of two
 * chunks never merge, so more chunks leave more unused ends. (In a training log the pool held 1.94
 * times the peak with an eighth, 1.31 with a quarter.) If upstream or the maximum leaves less, the
 * pool grows only by what is needed: the rest may suffice for the next request. Blocks of one size
 * come in chunks of a fixed number, or of the largest half, quarter, ... of it that upstream has.
 *
 * Before a growth, free chunks that could serve the request together, but not one of them alone,
 * are given back, if they are more than half of what is held. Otherwise a buffer that grows by 1 %
 * at a time leaves one chunk too small behind the other (3.6 times its peak). The new chunk is then
 * larger than needed by a quarter, because the next request may be larger, too.
 */
#include "pool/source.h"

#include <inttypes.h>

#include "core/host_memory.h"
#include "core/uncancelled.h"
#include "pool/engine_figures.h"

#define GROWTH_LEAST ((uint64_t)2 * 1024 * 1024) /* cudaMalloc's own granularity */
#define GROWTH_MOST ((uint64_t)8 * 1024 * 1024 * 1024)
#define GROWTH_SHARE 4
#define GROWTH_SPARE                                                                   \
    4               /* a part of the request, in place of chunks that were too small */
#define FREE_MOST 2 /* a part of what is held */
#define RETURNS_AT_ONCE 64 /* chunks taken out in one critical section */

/* The size to request from upstream, which may have less than the preferred one. */
typedef struct growth {
    const rmm_blocks_request_t *request;
    bool replaces;     /* smaller chunks, which were given back */
    uint64_t least;    /* suffices if the chunk is aligned; CUDA's are, to 2 MiB */
    uint64_t safe;     /* with room to align the block, wherever the chunk begins */
    uint64_t promised; /* preferred; at most what the maximum leaves */
    uint64_t bytes;    /* of the chunk */
} growth_t;

/* A chunk has whole blocks if these have one size. */
static uint64_t multiple_of(const engine_t *engine)
{
    return engine->block_units != 0 ? engine->block_units * RMM_BLOCKS_UNIT
                                    : RMM_BLOCKS_UNIT;
}

static growth_t growth_for(const engine_t *engine, const rmm_blocks_request_t *request)
{
    uint64_t multiple = multiple_of(engine);
    growth_t growth = {
        .request = request,
        .least = rmm__round_up((uint64_t)request->units * RMM_BLOCKS_UNIT, multiple),
        .safe = rmm__round_up(rmm__engine_need(request), multiple)};

    growth.safe = growth.safe <= ENGINE_RUN_BYTES ? growth.safe : growth.least;
    return growth;
}

static bool
chunks_can_grow_locked(const engine_t *engine, const rmm_blocks_request_t *request)
{
    uint64_t bytes = growth_for(engine, request).least;

    return bytes <= ENGINE_RUN_BYTES && bytes <= rmm__engine_room_locked(engine);
}

/* --- growth -------------------------------------------------------------------------- */

/* Upstream may be functions of the program, which may be wrong: memory that is here already
 * would be used twice. */
static bool is_new_locked(const engine_t *engine, uint64_t unit, uint32_t units)
{
    const engine_chunks_t *chunks = &engine->chunks;
    rmm_index_entry_t last;

    return unit + units <= UINT64_MAX / RMM_BLOCKS_UNIT &&
           !(rmm__index_at(&chunks->nodes, &chunks->tree, unit + units - 1, &last) &&
             last.unit + last.units > unit);
}

/* Room for one chunk more. False: no host memory, and nothing changed. */
static bool reserve_locked(engine_chunks_t *chunks)
{
    rmm_index_nodes_t *all = &chunks->nodes;
    uint64_t wanted = rmm__index_nodes_for((uint64_t)chunks->count + 1, 1);
    rmm_index_node_t *grown;

    if (wanted <= all->capacity) {
        return true;
    }
    wanted *= 2;
    grown = rmm__resize(
        all->nodes, all->capacity * sizeof(*grown), wanted * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    all->nodes = grown;
    all->capacity = (uint32_t)wanted;
    return true;
}

static rmm_status_t chunk_insert_locked(engine_t *engine, uint64_t unit, uint32_t units)
{
    engine_chunks_t *chunks = &engine->chunks;
    const rmm_index_entry_t chunk = {.unit = unit, .units = units};

    if (!is_new_locked(engine, unit, units)) {
        return RMM_ERR_BAD_ALLOC;
    }
    if (!reserve_locked(chunks) ||
        rmm__blocks_add(
            engine->blocks, engine->clean, unit, units,
            rmm__engine_clean_stamp_locked(engine)) != RMM_BLOCKS_OK) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    rmm__index_insert(&chunks->nodes, &chunks->tree, &chunk);
    chunks->count++;
    return RMM_OK;
}

static rmm_status_t not_added(rmm_status_t status, const void *ptr, uint64_t bytes)
{
    return status == RMM_ERR_BAD_ALLOC
               ? rmm__error(
                     status,
                     "upstream returned %p for a chunk of %" PRIu64
                     " bytes, which overlaps memory of this pool or exceeds the "
                     "address space",
                     ptr, bytes)
               : rmm__error(
                     status,
                     "no host memory for the block records of a chunk of %" PRIu64
                     " bytes",
                     bytes);
}

/* `promised` is what promise() reserved for it. */
static rmm_status_t
chunk_add(engine_t *engine, void *ptr, uint64_t bytes, uint64_t promised)
{
    rmm_status_t status;

    rmm__mutex_lock(&engine->lock);
    engine->promised_bytes -= promised;
    status = chunk_insert_locked(
        engine, (uintptr_t)ptr / RMM_BLOCKS_UNIT, rmm__engine_to_units(bytes));
    if (status == RMM_OK) {
        engine->figures.reserved_bytes += bytes;
        engine->figures.growth_count++;
        rmm__engine_show_locked(engine);
    }
    rmm__mutex_unlock(&engine->lock);
    if (status != RMM_OK) {
        engine->upstream->give_back(engine->owner, ptr, bytes);
        return not_added(status, ptr, bytes);
    }
    atomic_fetch_add_explicit(&engine->grown_bytes, bytes, memory_order_relaxed);
    return RMM_OK;
}

/* The size to request first: a share of what is held, but at least the request. */
static uint64_t
preferred_growth_locked(const engine_t *engine, uint64_t need, bool replaces_chunks)
{
    uint64_t preferred = engine->figures.reserved_bytes / GROWTH_SHARE;
    uint64_t least = need + (replaces_chunks ? need / GROWTH_SPARE : 0);

    if (engine->growth_bytes != 0) {
        return engine->growth_bytes > need ? engine->growth_bytes : need;
    }
    preferred = preferred < GROWTH_MOST ? preferred : GROWTH_MOST;
    preferred = preferred > least ? preferred : least;
    preferred = rmm__round_up(preferred, GROWTH_LEAST);
    return preferred < ENGINE_RUN_BYTES ? preferred : need;
}

static void unpromise(engine_t *engine, const growth_t *growth)
{
    rmm__mutex_lock(&engine->lock);
    engine->promised_bytes -= growth->promised;
    rmm__mutex_unlock(&engine->lock);
}

/* A request to upstream. An exception of the program's own function, which leaves it, takes the
 * promise back. */
typedef struct asking {
    engine_t *engine; /* NULL: it has returned */
    const growth_t *growth;
} asking_t;

static void end_unwound(const asking_t *unwound)
{
    if (unwound->engine != NULL) {
        unpromise(unwound->engine, unwound->growth);
    }
}

/* The next size to try after `bytes`, which upstream does not have; 0: there is none. */
static uint64_t
smaller_growth(const engine_t *engine, const growth_t *growth, uint64_t bytes)
{
    uint64_t multiple = multiple_of(engine);
    uint64_t smaller = engine->growth_bytes != 0
                           ? bytes / 2 / multiple * multiple
                           : rmm__round_up(growth->safe, GROWTH_LEAST);

    if (bytes <= growth->safe) {
        return bytes > growth->least ? growth->least : 0;
    }
    return smaller > growth->safe && smaller < bytes ? smaller : growth->safe;
}

/* A chunk of the preferred size, or of the largest smaller one that upstream has. */
static rmm_status_t obtain(engine_t *engine, growth_t *growth, void **ptr_out)
{
    RMM_AT_END(end_unwound) asking_t unwound = {engine, growth};
    rmm_status_t status = RMM_ERR_OUT_OF_MEMORY;

    for (uint64_t bytes = growth->promised;
         bytes != 0 && status == RMM_ERR_OUT_OF_MEMORY;
         bytes = smaller_growth(engine, growth, bytes)) {
        growth->bytes = bytes;
        status = engine->upstream->obtain(engine->owner, bytes, ptr_out);
    }
    unwound.engine = NULL;
    return status;
}

static bool has_room_to_align(const growth_t *growth, const void *ptr)
{
    const rmm_blocks_request_t *request = growth->request;
    uint64_t unit = (uintptr_t)ptr / RMM_BLOCKS_UNIT;
    uint64_t units = request->units + rmm__index_pad(unit, request->align_units);

    return units * RMM_BLOCKS_UNIT <= growth->bytes;
}

static rmm_status_t too_large(uint64_t bytes)
{
    return rmm__error(
        RMM_ERR_OUT_OF_MEMORY,
        "a chunk of %" PRIu64 " bytes exceeds the %" PRIu64 " that a pool can manage",
        bytes, ENGINE_RUN_BYTES);
}

/* How much to request, within the maximum. It is counted as promised, so that two threads
 * here at once do not exceed the maximum. */
static rmm_status_t promise(engine_t *engine, growth_t *growth)
{
    uint64_t room, bytes;

    rmm__mutex_lock(&engine->lock);
    room = rmm__engine_room_locked(engine);
    bytes = preferred_growth_locked(engine, growth->safe, growth->replaces);
    bytes = bytes < room ? bytes : room / RMM_BLOCKS_UNIT * RMM_BLOCKS_UNIT;
    bytes = growth->safe <= room ? bytes : growth->least;
    growth->promised = growth->least <= room ? bytes : 0;
    engine->promised_bytes += growth->promised;
    rmm__mutex_unlock(&engine->lock);
    return growth->promised != 0 ? RMM_OK : rmm__engine_no_room(engine, room);
}

static rmm_status_t
grow(engine_t *engine, const rmm_blocks_request_t *request, bool replaces_chunks)
{
    growth_t growth = growth_for(engine, request);
    rmm_status_t status;
    void *ptr;

    if (growth.least > ENGINE_RUN_BYTES) {
        return too_large(growth.least);
    }
    growth.replaces = replaces_chunks;
    status = promise(engine, &growth);
    if (status != RMM_OK) {
        return status;
    }
    status = obtain(engine, &growth, &ptr);
    if (status == RMM_OK && !has_room_to_align(&growth, ptr)) {
        engine->upstream->give_back(engine->owner, ptr, growth.bytes);
        status = rmm__error(
            RMM_ERR_OUT_OF_MEMORY,
            "a chunk of %" PRIu64 " bytes at %p has no room to align the block",
            growth.bytes, ptr);
    }
    if (status != RMM_OK) {
        unpromise(engine, &growth);
        return status;
    }
    return chunk_add(engine, ptr, growth.bytes, growth.promised);
}

/* The first chunk has exactly the initial size. */
static rmm_status_t chunks_fill(engine_t *engine, uint64_t bytes)
{
    rmm_status_t status;
    void *ptr;

    if (bytes > ENGINE_RUN_BYTES) {
        return too_large(bytes);
    }
    status = engine->upstream->obtain(engine->owner, bytes, &ptr);
    return status == RMM_OK ? chunk_add(engine, ptr, bytes, 0) : status;
}

static rmm_status_t chunks_open(engine_t *engine, const engine_plan_t *plan)
{
    (void)engine;
    (void)plan;
    return RMM_OK;
}

/* --- giving back --------------------------------------------------------------------- */

static uint64_t bytes_of(const rmm_index_entry_t *chunk)
{
    return chunk->units * RMM_BLOCKS_UNIT;
}

/* Take free chunks out, from the highest address below *unit down; returns how many. */
static uint32_t take_free_chunks_locked(
    engine_t *engine, uint64_t keep_bytes, uint64_t *unit, rmm_index_entry_t *taken)
{
    engine_chunks_t *chunks = &engine->chunks;
    uint32_t count = 0;
    rmm_index_entry_t chunk;

    while (count < RETURNS_AT_ONCE &&
           rmm__index_at(&chunks->nodes, &chunks->tree, *unit - 1, &chunk)) {
        uint64_t bytes = bytes_of(&chunk);

        *unit = chunk.unit;
        if (engine->figures.reserved_bytes >= bytes &&
            engine->figures.reserved_bytes - bytes >= keep_bytes &&
            rmm__engine_is_clean_locked(engine, chunk.unit, chunk.units) &&
            rmm__blocks_cut(engine->blocks, engine->clean, chunk.unit, chunk.units)) {
            engine->figures.reserved_bytes -= bytes;
            rmm__index_remove(&chunks->nodes, &chunks->tree, chunk.unit);
            chunks->count--;
            taken[count++] = chunk;
        }
    }
    if (count != 0) {
        rmm__engine_show_locked(engine);
    }
    return count;
}

static void give_back(engine_t *engine, const rmm_index_entry_t *chunk)
{
    engine->upstream->give_back(
        engine->owner, (void *)(uintptr_t)(chunk->unit * RMM_BLOCKS_UNIT),
        bytes_of(chunk));
}

static rmm_status_t chunks_trim(engine_t *engine, uint64_t keep_bytes)
{
    rmm_index_entry_t taken[RETURNS_AT_ONCE];
    uint64_t unit = UINT64_MAX;
    uint32_t count;

    do {
        rmm__mutex_lock(&engine->lock);
        count = take_free_chunks_locked(engine, keep_bytes, &unit, taken);
        rmm__mutex_unlock(&engine->lock);
        for (uint32_t i = 0; i < count; i++) {
            give_back(engine, &taken[i]);
        }
    } while (count != 0);
    return RMM_OK;
}

typedef struct clean_chunks {
    engine_t *engine;
    uint64_t bytes;
} clean_chunks_t;

static bool add_if_clean(void *context, const rmm_index_entry_t *chunk)
{
    clean_chunks_t *clean = context;

    clean->bytes +=
        rmm__engine_is_clean_locked(clean->engine, chunk->unit, chunk->units)
            ? bytes_of(chunk)
            : 0;
    return true;
}

static uint64_t clean_chunk_bytes_locked(engine_t *engine)
{
    const engine_chunks_t *chunks = &engine->chunks;
    clean_chunks_t clean = {engine, 0};

    rmm__index_walk(&chunks->nodes, &chunks->tree, 1, add_if_clean, &clean);
    return clean.bytes;
}

/* If all free chunks were given back, would a chunk of so many bytes fit the maximum? */
static bool is_worth_rearranging(engine_t *engine, uint64_t bytes)
{
    uint64_t room, clean_bytes;

    rmm__mutex_lock(&engine->lock);
    room = rmm__engine_room_locked(engine);
    clean_bytes = clean_chunk_bytes_locked(engine);
    rmm__mutex_unlock(&engine->lock);
    return clean_bytes != 0 && (room >= bytes || clean_bytes >= bytes - room);
}

/* Are chunks free that together, but not alone, would serve a request of so many bytes, and are
 * they much of what is held? The chunks are looked at only if so much is free in all. */
static bool are_many_too_small(engine_t *engine, uint64_t bytes)
{
    uint64_t many;
    bool are_many;

    rmm__mutex_lock(&engine->lock);
    many = engine->figures.reserved_bytes / FREE_MOST + 1;
    many = many > bytes ? many : bytes;
    are_many = rmm__engine_free_bytes_locked(engine) >= many &&
               clean_chunk_bytes_locked(engine) >= many;
    rmm__mutex_unlock(&engine->lock);
    return are_many;
}

/* Give these chunks back, which waits for the device. True: some are gone. */
static bool give_back_too_small(engine_t *engine, uint64_t bytes)
{
    bool was_single, are_gone;

    if (!are_many_too_small(engine, bytes)) {
        return false;
    }
    rmm__mutex_lock(&engine->lock);
    was_single = engine->streams.single != NULL;
    rmm__mutex_unlock(&engine->lock);
    rmm__engine_single_stream_suspend(engine);
    if (was_single) { /* more seemed clean than is */
        (void)!rmm__engine_synchronise(engine);
    }
    are_gone = are_many_too_small(engine, bytes) && chunks_trim(engine, 0) == RMM_OK;
    rmm__engine_single_stream_resume(engine);
    return are_gone;
}

static rmm_status_t chunks_grow(engine_t *engine, const rmm_blocks_request_t *request)
{
    return grow(
        engine, request,
        give_back_too_small(engine, growth_for(engine, request).least));
}

/* Give back free chunks, each too small, to make room for one that is large enough. */
static bool chunks_gather(
    engine_t *engine, const rmm_blocks_request_t *request, engine_gather_t how,
    rmm_status_t *status)
{
    uint64_t bytes = growth_for(engine, request).least;
    bool any;

    /* checked twice: in single-stream mode more seems clean than is */
    if (how != ENGINE_GATHER_ALL || bytes > ENGINE_RUN_BYTES ||
        !is_worth_rearranging(engine, bytes)) {
        return false;
    }
    rmm__engine_single_stream_suspend(engine);
    any = is_worth_rearranging(engine, bytes) && chunks_trim(engine, 0) == RMM_OK &&
          grow(engine, request, false) == RMM_OK;
    (void)status;
    rmm__engine_single_stream_resume(engine);
    return any;
}

static bool give_back_one(void *engine, const rmm_index_entry_t *chunk)
{
    give_back(engine, chunk);
    return true;
}

/* All chunks, clean or not. Where the device could not be waited for, upstream waits for it, or
 * the process exits. No other device is waited for: what these may use stays allocated. */
static void chunks_fini(engine_t *engine, engine_end_t end)
{
    engine_chunks_t *chunks = &engine->chunks;

    if (end != ENGINE_END_USED_ELSEWHERE) {
        rmm__index_walk(&chunks->nodes, &chunks->tree, 1, give_back_one, engine);
    }
    rmm__free(chunks->nodes.nodes);
}

const engine_source_ops_t rmm__engine_chunks = {
    .open = chunks_open,
    .fill = chunks_fill,
    .grow = chunks_grow,
    .can_grow_locked = chunks_can_grow_locked,
    .gather = chunks_gather,
    .trim = chunks_trim,
    .fini = chunks_fini,
};
