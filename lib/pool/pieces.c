/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pieces of physical memory of an engine's range: units that are being moved, the array
 * of what is mapped, and the driver calls for one piece (range.h).
 */
#include "pool/range.h"

#include <string.h>

#include "core/host_memory.h"
#include "pool/engine_figures.h"

/* --- moving units -------------------------------------------------------------------- */

static rmm_heap_t heap_of_locked(const engine_t *engine, range_rest_t rest)
{
    switch (rest) {
    case RANGE_CLEAN:
        return engine->clean;
    case RANGE_ABSENT:
        return engine->range.absent;
    case RANGE_LOST:
        break;
    }
    return engine->range.lost;
}

bool rmm__range_depart_locked(
    engine_t *engine, range_rest_t from, uint64_t unit, uint64_t bytes,
    engine_transit_t *transit_out)
{
    engine_transit_t transit = {.from = from, .units = bytes / RMM_BLOCKS_UNIT};
    bool departed = false;

    if (rmm__blocks_heap_create(engine->blocks, &transit.heap) == RMM_BLOCKS_OK) {
        departed = rmm__blocks_move(
                       engine->blocks, heap_of_locked(engine, from), transit.heap, unit,
                       rmm__engine_to_units(bytes), 0) == RMM_BLOCKS_OK;
        if (!departed) {
            rmm__blocks_heap_destroy(engine->blocks, transit.heap);
        }
    }
    if (departed) {
        if (from == RANGE_CLEAN) {
            engine->absent_units += transit.units;
            engine->transit_units += transit.units;
        }
        rmm__engine_show_locked(engine);
        *transit_out = transit;
    }
    return departed;
}

bool rmm__range_depart(
    engine_t *engine, range_rest_t from, uint64_t unit, uint64_t bytes,
    engine_transit_t *transit_out)
{
    bool departed;

    rmm__mutex_lock(&engine->lock);
    departed = rmm__range_depart_locked(engine, from, unit, bytes, transit_out);
    rmm__mutex_unlock(&engine->lock);
    return departed;
}

void rmm__range_arrive(
    engine_t *engine, engine_transit_t *transit, range_rest_t to, int64_t gained)
{
    uint64_t units;

    rmm__mutex_lock(&engine->lock);
    units = rmm__blocks_transfer(
        engine->blocks, transit->heap, heap_of_locked(engine, to), UINT64_MAX,
        to == RANGE_CLEAN ? rmm__engine_clean_stamp_locked(engine) : 0);
    rmm__blocks_heap_destroy(engine->blocks, transit->heap);
    engine->absent_units -= to == RANGE_CLEAN ? units : 0;
    engine->transit_units -= transit->from == RANGE_CLEAN ? transit->units : 0;
    engine->figures.reserved_bytes += (uint64_t)gained;
    engine->figures.growth_count += gained > 0;
    rmm__engine_show_locked(engine);
    rmm__mutex_unlock(&engine->lock);
    if (gained > 0) {
        atomic_fetch_add_explicit(
            &engine->grown_bytes, (uint64_t)gained, memory_order_relaxed);
    }
}

rmm_blocks_request_t
rmm__range_request(const engine_t *engine, const rmm_blocks_request_t *request)
{
    const engine_range_t *range = &engine->range;
    uint64_t align_bytes = request->align_units * RMM_BLOCKS_UNIT;

    return range->granule_bytes % align_bytes == 0 &&
                   (uintptr_t)range->address % align_bytes == 0
               ? *request
               : (rmm_blocks_request_t){
                     rmm__engine_to_units(rmm__engine_need(request)), 1};
}

bool rmm__range_find_gap_locked(
    engine_t *engine, const rmm_blocks_request_t *request, rmm_blocks_gap_t *gap)
{
    const engine_range_t *range = &engine->range;

    return request->units <= range->bytes / RMM_BLOCKS_UNIT &&
           rmm__blocks_find_gap(
               engine->blocks, range->absent, engine->clean, request,
               rmm__engine_to_units(range->granule_bytes), gap);
}

/* --- the array of pieces ------------------------------------------------------------- */

bool rmm__pieces_reserve_locked(engine_t *engine, uint64_t more)
{
    engine_range_t *range = &engine->range;
    uint64_t wanted = range->piece_capacity != 0 ? range->piece_capacity : 16;
    engine_piece_t *grown;

    while (wanted < (uint64_t)range->piece_count + range->piece_promised + more) {
        wanted *= 2;
    }
    if (wanted != range->piece_capacity) {
        grown = rmm__resize(
            range->pieces, range->piece_capacity * sizeof(*grown),
            wanted * sizeof(*grown));
        if (grown == NULL) {
            return false;
        }
        range->pieces = grown;
        range->piece_capacity = (uint32_t)wanted;
    }
    range->piece_promised += (uint32_t)more;
    return true;
}

void rmm__pieces_unreserve(engine_t *engine, uint64_t more)
{
    rmm__mutex_lock(&engine->lock);
    RMM_ASSERT(engine->range.piece_promised >= more);
    engine->range.piece_promised -= (uint32_t)more;
    rmm__mutex_unlock(&engine->lock);
}

uint32_t rmm__pieces_from_locked(const engine_t *engine, uint64_t unit)
{
    const engine_range_t *range = &engine->range;
    uint32_t low = 0;
    uint32_t high = range->piece_count;

    while (low < high) {
        uint32_t middle = low + (high - low) / 2;

        if (range->pieces[middle].unit < unit) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

void rmm__pieces_insert(engine_t *engine, const engine_piece_t *piece)
{
    engine_range_t *range = &engine->range;
    uint32_t index;

    rmm__mutex_lock(&engine->lock);
    RMM_ASSERT(range->piece_promised > 0 && "room was reserved");
    index = rmm__pieces_from_locked(engine, piece->unit);
    memmove(
        &range->pieces[index + 1], &range->pieces[index],
        (range->piece_count - index) * sizeof(*piece));
    range->pieces[index] = *piece;
    range->piece_count++;
    range->piece_promised--;
    rmm__mutex_unlock(&engine->lock);
}

void rmm__pieces_take_locked(engine_t *engine, uint32_t index, engine_piece_t *out)
{
    engine_range_t *range = &engine->range;

    *out = range->pieces[index];
    range->piece_count--;
    range->piece_promised++;
    memmove(
        &range->pieces[index], &range->pieces[index + 1],
        (range->piece_count - index) * sizeof(*out));
}

rmm_status_t rmm__pieces_no_memory(void)
{
    return rmm__error(RMM_ERR_OUT_OF_HOST_MEMORY, "no host memory to map a piece");
}

/* --- one piece ----------------------------------------------------------------------- */

static int let_in(const engine_t *engine, const engine_piece_t *piece, uint32_t devices)
{
    return engine->driver->address_access(
        rmm__range_address(piece->unit), rmm__piece_bytes(piece), devices);
}

static void remember_refusal(engine_t *engine, uint32_t peer, int error)
{
    uint32_t before =
        atomic_fetch_or_explicit(&engine->shut_out_ever, peer, memory_order_relaxed);

    if ((before & peer) == 0) {
        atomic_store_explicit(&engine->shut_out_error, error, memory_order_relaxed);
        atomic_fetch_or_explicit(&engine->shut_out, peer, memory_order_relaxed);
    }
}

/* One by one, because all together were refused. Its own device needs the memory; of the others,
 * the owner of the engine hears which get no access. */
RMM_COLD static int let_in_singly(engine_t *engine, const engine_piece_t *piece)
{
    int error = let_in(engine, piece, RMM_DRIVER_DEVICE(engine->device));

    for (int device = 0; error == RMM_DRIVER_OK && device < RMM_DRIVER_SET_DEVICES;
         device++) {
        uint32_t peer = engine->range.peers & RMM_DRIVER_DEVICE(device);
        int refusal = peer != 0 ? let_in(engine, piece, peer) : RMM_DRIVER_OK;

        if (refusal != RMM_DRIVER_OK) {
            remember_refusal(engine, peer, refusal);
        }
    }
    return error;
}

/* Allow access to the engine's own device and to those that it shares with, in one call. */
int rmm__piece_let_in(engine_t *engine, const engine_piece_t *piece)
{
    uint32_t own = RMM_DRIVER_DEVICE(engine->device);
    int error = let_in(engine, piece, own | engine->range.peers);

    return error == RMM_DRIVER_OK || engine->range.peers == 0
               ? error
               : let_in_singly(engine, piece);
}

void rmm__piece_stick(engine_t *engine, engine_piece_t *piece)
{
    piece->is_stuck = true;
    atomic_fetch_add_explicit(
        &engine->stuck_bytes, rmm__piece_bytes(piece), memory_order_relaxed);
}

void rmm__piece_release(engine_t *engine, const engine_piece_t *piece)
{
    if (piece->exports != 0) {
        atomic_fetch_sub_explicit(
            &engine->exported_bytes, rmm__piece_bytes(piece), memory_order_relaxed);
    }
    if (engine->driver->physical_release(piece->physical) != RMM_DRIVER_OK) {
        atomic_fetch_add_explicit(
            &engine->stuck_bytes, rmm__piece_bytes(piece), memory_order_relaxed);
    }
}

int rmm__piece_map(engine_t *engine, engine_piece_t *piece)
{
    char *address = rmm__range_address(piece->unit);
    uint64_t bytes = rmm__piece_bytes(piece);
    int error = engine->driver->address_map(address, bytes, piece->physical);

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = rmm__piece_let_in(engine, piece);
    if (error != RMM_DRIVER_OK &&
        engine->driver->address_unmap(address, bytes) != RMM_DRIVER_OK) {
        rmm__piece_stick(engine, piece);
    }
    return error;
}

int rmm__piece_make(engine_t *engine, engine_piece_t *piece)
{
    int error = engine->driver->physical_create(
        rmm__piece_bytes(piece), engine->range.physical_flags, &piece->physical);

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = rmm__piece_map(engine, piece);
    if (error != RMM_DRIVER_OK && !piece->is_stuck) {
        rmm__piece_release(engine, piece);
    }
    return error;
}

int rmm__piece_end(engine_t *engine, const engine_piece_t *piece)
{
    int error = engine->driver->address_unmap(
        rmm__range_address(piece->unit), rmm__piece_bytes(piece));

    if (error != RMM_DRIVER_OK) {
        return error; /* the piece stays mapped */
    }
    rmm__piece_release(engine, piece);
    return RMM_DRIVER_OK;
}
