/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Free pieces of a range: mapped side by side, if a request fits the free total but no free
 * block, or given back to the device.
 *
 * Only pieces that are wholly in the clean heap: no work of the GPU and no graph uses them.
 */
#include "pool/range.h"

#include "pool/engine_figures.h"

#define COMPACT_PART 32 /* with less than this part of what is held free, it grows */
#define COMPACT_TIMES 4 /* what is held may be mapped again so often before it grows */
#define COMPACT_WORTH                                                                  \
    4096 /* one compaction costs as much as this part of what is held */

/* --- pieces that are wholly clean ---------------------------------------------------- */

typedef struct free_pieces {
    uint64_t bytes, largest_bytes;
} free_pieces_t;

/* If not, as mostly in a full pool, no piece needs to be looked at. */
static bool may_have_free_piece_locked(const engine_t *engine)
{
    return rmm__blocks_largest_free(engine->blocks, engine->clean) * RMM_BLOCKS_UNIT >=
           engine->range.granule_bytes;
}

static bool is_free_locked(engine_t *engine, const engine_piece_t *piece)
{
    return rmm__engine_is_clean_locked(engine, piece->unit, piece->units);
}

static free_pieces_t find_free_pieces_locked(engine_t *engine)
{
    const engine_range_t *range = &engine->range;
    free_pieces_t found = {0};
    uint32_t count = may_have_free_piece_locked(engine) ? range->piece_count : 0;

    for (uint32_t i = 0; i < count; i++) {
        uint64_t bytes = rmm__piece_bytes(&range->pieces[i]);

        if (is_free_locked(engine, &range->pieces[i])) {
            found.bytes += bytes;
            found.largest_bytes =
                bytes > found.largest_bytes ? bytes : found.largest_bytes;
        }
    }
    return found;
}

/* The pieces of the units from..to stay where they are. */
typedef struct place {
    uint64_t from, to;
} place_t;

/* Take the highest free piece below `before` that is outside of `but` and has at most `room`
 * bytes out of the array, and its units out of the clean heap. */
static bool take_free_piece(
    engine_t *engine, const place_t *but, uint64_t room, uint64_t *before,
    engine_piece_t *piece, engine_transit_t *transit)
{
    const engine_range_t *range = &engine->range;
    uint32_t index;
    bool found = false;

    rmm__mutex_lock(&engine->lock);
    index = may_have_free_piece_locked(engine)
                ? rmm__pieces_from_locked(engine, *before)
                : 0;
    while (index-- > 0 && !found) {
        const engine_piece_t *at = &range->pieces[index];

        found = rmm__piece_bytes(at) <= room &&
                (at->unit < but->from || at->unit >= but->to) &&
                is_free_locked(engine, at);
        if (found) {
            rmm__pieces_take_locked(engine, index, piece);
        }
    }
    rmm__mutex_unlock(&engine->lock);
    if (!found) {
        return false;
    }
    *before = piece->unit;
    if (!rmm__range_depart(
            engine, RANGE_CLEAN, piece->unit, rmm__piece_bytes(piece), transit)) {
        rmm__pieces_insert(engine, piece); /* it is not free any more */
        transit->units = 0;
    }
    return true;
}

/* --- gather -------------------------------------------------------------------------- */

/* The piece could not be mapped at its new address. */
static void
piece_lose(engine_t *engine, const engine_piece_t *piece, engine_transit_t *transit)
{
    if (piece->is_stuck) {
        rmm__pieces_insert(engine, piece);
        rmm__range_arrive(engine, transit, RANGE_LOST, 0);
    } else {
        rmm__piece_release(engine, piece);
        rmm__pieces_unreserve(engine, 1);
        rmm__range_arrive(
            engine, transit, RANGE_ABSENT, -(int64_t)rmm__piece_bytes(piece));
    }
}

/* Map a piece that was taken, and is still mapped at its old address, at another unit, where
 * nothing is mapped. False: map no other piece there either. In a driver scope. */
static bool piece_shift(
    engine_t *engine, engine_piece_t *piece, engine_transit_t *transit, uint64_t unit,
    bool *is_done)
{
    uint64_t bytes = rmm__piece_bytes(piece);
    engine_transit_t arriving;

    *is_done = false;
    if (engine->driver->address_unmap(rmm__range_address(piece->unit), bytes) !=
        RMM_DRIVER_OK) {
        rmm__pieces_insert(engine, piece);
        rmm__range_arrive(engine, transit, RANGE_CLEAN, 0);
        return true;
    }
    rmm__range_arrive(engine, transit, RANGE_ABSENT, 0);
    piece->unit = unit;
    if (!rmm__range_depart(engine, RANGE_ABSENT, unit, bytes, &arriving)) {
        rmm__piece_release(engine, piece);
        rmm__pieces_unreserve(engine, 1);
        rmm__mutex_lock(&engine->lock);
        engine->figures.reserved_bytes -= bytes;
        rmm__engine_show_locked(engine);
        rmm__mutex_unlock(&engine->lock);
        return false;
    }
    if (rmm__piece_map(engine, piece) != RMM_DRIVER_OK) {
        piece_lose(engine, piece, &arriving);
        return false;
    }
    rmm__pieces_insert(engine, piece);
    rmm__mutex_lock(&engine->lock);
    engine->range.compacted_bytes += bytes;
    engine->figures.map_count++;
    rmm__mutex_unlock(&engine->lock);
    rmm__range_arrive(engine, &arriving, RANGE_CLEAN, 0);
    *is_done = true;
    return true;
}

/* Fill the gap from its front with free pieces from elsewhere, the highest first. In a driver
 * scope. */
static bool fill_gap(engine_t *engine, const rmm_blocks_gap_t *gap)
{
    place_t place = {gap->unit - gap->before, gap->unit + gap->units + gap->after};
    uint64_t before = UINT64_MAX;
    uint64_t done = 0; /* units */
    bool goes_on = true;
    engine_transit_t transit;
    engine_piece_t piece;

    while (goes_on && done < gap->units &&
           take_free_piece(
               engine, &place, (gap->room - done) * RMM_BLOCKS_UNIT, &before, &piece,
               &transit)) {
        bool is_done;

        if (transit.units == 0) {
            continue;
        }
        goes_on = piece_shift(engine, &piece, &transit, gap->unit + done, &is_done);
        if (is_done) {
            done += piece.units;
            if (gap->unit + done > place.to) {
                place.to = gap->unit + done;
            }
        }
    }
    return done != 0;
}

static bool fill_in_scope(engine_t *engine, const rmm_blocks_gap_t *gap)
{
    uint64_t begin_ns = rmm__range_now_ns();
    rmm_driver_scope_t scope;
    bool any;

    if (rmm__driver_scope_enter(&scope, engine->driver, engine->device) != RMM_OK) {
        return false;
    }
    any = fill_gap(engine, gap);
    rmm__range_note_mapping(engine, begin_ns);
    rmm__driver_scope_leave(&scope);
    return any;
}

/* Map pieces beside memory that is free already. */
static bool gather_beside(engine_t *engine, const rmm_blocks_request_t *request)
{
    rmm_blocks_gap_t gap;
    bool found;

    rmm__mutex_lock(&engine->lock);
    found = rmm__range_find_gap_locked(engine, request, &gap);
    rmm__mutex_unlock(&engine->lock);
    return found && gap.units != 0 && fill_in_scope(engine, &gap);
}

/*
 * Map free pieces at addresses where nothing is mapped, up to the size of the request: for one
 * that did not fit beside free memory because pieces are larger than what was missing there,
 * or because the smallest gap lay between all of them. Growth adds what is missing.
 */
static bool gather_apart(
    engine_t *engine, const rmm_blocks_request_t *request, rmm_status_t *status)
{
    engine_range_t *range = &engine->range;
    uint64_t need = request->units * RMM_BLOCKS_UNIT;
    rmm_blocks_gap_t gap;
    uint64_t bytes = rmm__round_up(need, range->granule_bytes);
    rmm_blocks_request_t place = *request;
    free_pieces_t pieces;
    rmm_heap_t nothing;
    bool found = false;

    rmm__mutex_lock(&engine->lock);
    pieces = find_free_pieces_locked(engine);
    rmm__mutex_unlock(&engine->lock);
    if (pieces.bytes == 0 || need + pieces.largest_bytes > range->bytes ||
        (pieces.bytes < bytes && !rmm__range_has_room(engine, bytes - pieces.bytes))) {
        return false;
    }
    place.units += rmm__engine_to_units(pieces.largest_bytes);
    rmm__mutex_lock(&engine->lock);
    if (rmm__blocks_heap_create(engine->blocks, &nothing) != RMM_BLOCKS_OK) {
        *status = RMM_ERR_OUT_OF_HOST_MEMORY;
    } else {
        found = rmm__blocks_find_gap(
            engine->blocks, range->absent, nothing, &place,
            rmm__engine_to_units(range->granule_bytes), &gap);
        rmm__blocks_heap_destroy(engine->blocks, nothing);
    }
    rmm__mutex_unlock(&engine->lock);
    if (found) {
        gap.units = rmm__engine_to_units(bytes);
    }
    return found && fill_in_scope(engine, &gap);
}

/* --- compact ---------------------------------------------------------------------------- */

/*
 * Much memory is free, but scattered or not clean: use it instead of growing. But grow if
 * compaction has cost more than it saves: since the last growth it has mapped a multiple of the
 * bytes held, or growth by this request would have been cheaper than so many compactions. So a
 * program that repeats the same pattern reaches a size at which no more compaction happens.
 * Also grow in single-stream mode if no free block has room for a piece: no piece could move.
 */
static bool is_fragmented(engine_t *engine, uint64_t need)
{
    const engine_range_t *range = &engine->range;
    uint64_t free_bytes;
    uint64_t reserved;
    bool is_worth;

    rmm__mutex_lock(&engine->lock);
    free_bytes = rmm__engine_free_bytes_locked(engine);
    reserved = engine->figures.reserved_bytes;
    is_worth = range->compacted_bytes / COMPACT_TIMES < reserved &&
               reserved / COMPACT_WORTH * range->compacted_count <= need &&
               (engine->streams.single == NULL ||
                engine->figures.largest_free_bytes >= range->granule_bytes);
    rmm__mutex_unlock(&engine->lock);
    return is_worth && free_bytes != 0 && free_bytes >= reserved / COMPACT_PART;
}

static bool compact(engine_t *engine, const rmm_blocks_request_t *request)
{
    uint64_t need = rmm__engine_need(request); /* any block of that size will do */
    bool any;

    if (!is_fragmented(engine, need)) {
        return false;
    }
    rmm__engine_single_stream_suspend(engine);
    any = rmm__engine_synchronise(engine) == RMM_OK;
    if (any) {
        rmm__mutex_lock(&engine->lock);
        engine->range.compacted_count++;
        any = rmm__blocks_largest_free(engine->blocks, engine->clean) >=
              need / RMM_BLOCKS_UNIT;
        rmm__mutex_unlock(&engine->lock);
        any = any || gather_beside(engine, request);
    }
    rmm__engine_single_stream_resume(engine);
    return any;
}

/* ENGINE_GATHER_SOME is always worth another try: with everything clean, less may be missing than
 * before. */
bool rmm__range_gather(
    engine_t *engine, const rmm_blocks_request_t *request, engine_gather_t how,
    rmm_status_t *status)
{
    const rmm_blocks_request_t room = rmm__range_request(engine, request);
    bool was_single, is_clean, any;

    if (how == ENGINE_GATHER_IF_WORTH) {
        return compact(engine, &room);
    }
    rmm__mutex_lock(&engine->lock);
    /* in single-stream mode more seems clean than is; to end it takes time */
    any = find_free_pieces_locked(engine).bytes != 0;
    was_single = engine->streams.single != NULL;
    rmm__mutex_unlock(&engine->lock);
    if (!any) {
        return how == ENGINE_GATHER_SOME;
    }
    rmm__engine_single_stream_suspend(engine);
    rmm__mutex_lock(&engine->lock);
    is_clean = !was_single || rmm__engine_is_all_clean_locked(engine);
    rmm__mutex_unlock(&engine->lock);
    if (!is_clean) { /* other threads free on its stream */
        (void)rmm__engine_synchronise(engine);
    }
    if (how == ENGINE_GATHER_ALL) {
        any = gather_apart(engine, &room, status);
    } else {
        (void)gather_beside(engine, &room);
    }
    rmm__engine_single_stream_resume(engine);
    return any;
}

/* --- trim ---------------------------------------------------------------------------- */

/* Give back a piece that was taken, or keep it if that fails. */
static rmm_status_t
piece_return(engine_t *engine, engine_piece_t *piece, engine_transit_t *transit)
{
    int error = rmm__piece_end(engine, piece);

    if (error != RMM_DRIVER_OK) {
        rmm__pieces_insert(engine, piece);
        rmm__range_arrive(engine, transit, RANGE_CLEAN, 0);
        return rmm__driver_error(engine->driver, error, "unmapping memory");
    }
    rmm__pieces_unreserve(engine, 1);
    rmm__range_arrive(engine, transit, RANGE_ABSENT, -(int64_t)rmm__piece_bytes(piece));
    return RMM_OK;
}

rmm_status_t rmm__range_trim(engine_t *engine, uint64_t keep_bytes)
{
    const place_t none = {0, 0};
    uint64_t before = UINT64_MAX;
    rmm_driver_scope_t scope;
    rmm_status_t status =
        rmm__driver_scope_enter(&scope, engine->driver, engine->device);
    engine_transit_t transit;
    engine_piece_t piece;

    if (status != RMM_OK) {
        return status;
    }
    while (status == RMM_OK) {
        uint64_t reserved = rmm__engine_reserved(engine);

        if (reserved <= keep_bytes ||
            !take_free_piece(
                engine, &none, reserved - keep_bytes, &before, &piece, &transit)) {
            break;
        }
        if (transit.units != 0) {
            status = piece_return(engine, &piece, &transit);
        }
    }
    rmm__driver_scope_leave(&scope);
    return status;
}
