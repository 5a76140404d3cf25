/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growth of a range: how much, in pieces of which size, and where (range.h).
 *
 * A piece is mapped, unmapped and given back as a whole. On an H200 that takes the driver about
 * as long for 2 MiB as for 256: 10 us to create it, 25 to map it and allow access, also if access
 * is allowed to many pieces in one call, 18 to unmap and 9 or more to release it. So what growth
 * costs is the number of pieces. But a piece with one small block in it cannot move, and its free
 * part serves no large request: fewer pieces need more memory. Of 40 generated logs
 * (tests/capacity) the worst needed 1.20 of its peak with pieces of a 256th of the bytes held,
 * 1.09 with a 1,024th, and 1.07 with a PIECES-th, which pages of 2 MiB do not improve.
 *
 * While the pool is far below its maximum (FAR), memory is not short, and a program that grows
 * quickly gets pieces of a PIECES_FAR-th, until mapping takes less than a part of the time since
 * the pool began (range.c). So a program that allocates 16 GiB within 10 ms is not held up, and
 * one that works for longer gets small pieces, for a few per cent of its time.
 */
#include "pool/range.h"

#include <inttypes.h>

#include "pool/engine_figures.h"

#define PIECE_LEAST ((uint64_t)2 * 1024 * 1024)
#define PIECE_MOST ((uint64_t)256 * 1024 * 1024)
#define PIECES 4096
#define PIECES_FAR 64
#define FAR 4           /* below this part of the maximum, or of the device's memory */
#define GROWTH_SHARE 64 /* grow at least by this part of what is held, */
#define GROWTH_SHARE_SMALL 16                     /* and by this part */
#define GROWTH_SMALL ((uint64_t)32 * 1024 * 1024) /* up to so many bytes */
#define ROOM_BYTES ((uint64_t)64 * 1024 * 1024)   /* above this, ask the device first */

/* Where to map: at least `need` bytes, at best `preferred`, in pieces of `piece_bytes`. */
typedef struct growth {
    uint64_t unit, need, preferred, piece_bytes;
    uint64_t pieces_left; /* room that is still reserved in the array */
    uint64_t room;        /* below the maximum, when the growth was planned */
    bool is_limited;      /* by the owner: no more than is needed */
    engine_transit_t transit;
} growth_t;

/* Take the next piece of the growth's addresses out of the array; false: there is none. */
static bool take_piece(engine_t *engine, const growth_t *growth, engine_piece_t *piece)
{
    const engine_range_t *range = &engine->range;
    uint64_t end = growth->unit + growth->preferred / RMM_BLOCKS_UNIT;
    uint32_t index;
    bool found;

    rmm__mutex_lock(&engine->lock);
    index = rmm__pieces_from_locked(engine, growth->unit);
    while (index < range->piece_count && range->pieces[index].unit < end &&
           range->pieces[index].is_stuck) {
        index++;
    }
    found = index < range->piece_count && range->pieces[index].unit < end;
    if (found) {
        rmm__pieces_take_locked(engine, index, piece);
    }
    rmm__mutex_unlock(&engine->lock);
    return found;
}

/* Undo all of it but pieces that cannot be unmapped. If there is one, none of the growth's
 * addresses are used again: there are plenty. In a driver scope. */
static void undo_growth(engine_t *engine, growth_t *growth, uint64_t stuck_bytes)
{
    engine_piece_t piece;

    while (take_piece(engine, growth, &piece)) {
        if (rmm__piece_end(engine, &piece) != RMM_DRIVER_OK) {
            rmm__piece_stick(engine, &piece);
            rmm__pieces_insert(engine, &piece);
            stuck_bytes += rmm__piece_bytes(&piece);
        } else {
            rmm__pieces_unreserve(engine, 1);
        }
    }
    rmm__range_arrive(
        engine, &growth->transit, stuck_bytes != 0 ? RANGE_LOST : RANGE_ABSENT,
        (int64_t)stuck_bytes);
}

/* Map from the front. Returns the bytes mapped, at least `need`, or 0 with *error. */
static uint64_t
map_pieces(engine_t *engine, growth_t *growth, int *error, uint64_t *stuck_bytes)
{
    uint64_t target = growth->preferred;
    uint64_t done = 0;

    while (done < target) {
        uint64_t bytes = target - done;
        engine_piece_t piece = {.unit = growth->unit + done / RMM_BLOCKS_UNIT};

        bytes = bytes < growth->piece_bytes ? bytes : growth->piece_bytes;
        piece.units = rmm__engine_to_units(bytes);
        *error = rmm__piece_make(engine, &piece);
        if (*error == RMM_DRIVER_OK || piece.is_stuck) {
            rmm__pieces_insert(engine, &piece);
            growth->pieces_left--;
        }
        if (*error == RMM_DRIVER_OK) {
            done += bytes;
        } else if (
            *error == RMM_DRIVER_MEMORY_ALLOCATION && !piece.is_stuck &&
            target > growth->need) {
            target = growth->need; /* the device has less than preferred */
        } else {
            *stuck_bytes += piece.is_stuck ? bytes : 0;
            return 0;
        }
    }
    return done;
}

/* Avoid mapping much memory that would have to be unmapped again. In a driver scope. */
static int check_room(const engine_t *engine, const growth_t *growth)
{
    uint64_t free_bytes;
    uint64_t total;
    int error = RMM_DRIVER_OK;

    if (growth->need > ROOM_BYTES) {
        error = engine->driver->memory_info(&free_bytes, &total);
        if (error == RMM_DRIVER_OK && free_bytes < growth->need) {
            error = RMM_DRIVER_MEMORY_ALLOCATION;
        }
    }
    return error;
}

bool rmm__range_has_room(engine_t *engine, uint64_t bytes)
{
    uint64_t free_bytes, room;

    rmm__mutex_lock(&engine->lock);
    room = rmm__engine_room_locked(engine);
    rmm__mutex_unlock(&engine->lock);
    return bytes <= room &&
           rmm__driver_free_memory(engine->driver, engine->device, &free_bytes) ==
               RMM_OK &&
           free_bytes >= bytes;
}

/* Keep the first `mapped` bytes of the growth's addresses; the rest got no memory. */
static rmm_status_t keep_mapped(engine_t *engine, growth_t *growth, uint64_t mapped)
{
    uint64_t rest = growth->preferred - mapped;
    bool kept = true;

    rmm__mutex_lock(&engine->lock);
    if (rest != 0) {
        kept = rmm__blocks_move(
                   engine->blocks, growth->transit.heap, engine->range.absent,
                   growth->unit + mapped / RMM_BLOCKS_UNIT, rmm__engine_to_units(rest),
                   0) == RMM_BLOCKS_OK;
    }
    engine->range.compacted_bytes = 0;
    engine->range.compacted_count = 0;
    engine->figures.map_count +=
        (mapped + growth->piece_bytes - 1) / growth->piece_bytes;
    rmm__mutex_unlock(&engine->lock);
    if (!kept) {
        return rmm__pieces_no_memory();
    }
    rmm__range_arrive(engine, &growth->transit, RANGE_CLEAN, (int64_t)mapped);
    return RMM_OK;
}

static rmm_status_t map_growth(engine_t *engine, growth_t *growth)
{
    rmm_driver_scope_t scope;
    rmm_status_t status =
        rmm__driver_scope_enter(&scope, engine->driver, engine->device);
    uint64_t stuck_bytes = 0;
    uint64_t mapped = 0;
    int error;

    if (status != RMM_OK) {
        rmm__range_arrive(engine, &growth->transit, RANGE_ABSENT, 0);
        return status == RMM_ERR_CUDA ? RMM_ERR_BAD_ALLOC : status;
    }
    error = check_room(engine, growth);
    if (error == RMM_DRIVER_OK) {
        mapped = map_pieces(engine, growth, &error, &stuck_bytes);
    }
    status = mapped != 0 ? keep_mapped(engine, growth, mapped)
                         : rmm__driver_error(engine->driver, error, "mapping memory");
    if (status != RMM_OK) {
        undo_growth(engine, growth, stuck_bytes);
    }
    rmm__driver_scope_leave(&scope);
    return status == RMM_ERR_CUDA ? RMM_ERR_BAD_ALLOC : status;
}

/* The least growth: without it, many small blocks would take as many growths. */
static uint64_t growth_share(const engine_t *engine, uint64_t reserved)
{
    uint64_t share = reserved / GROWTH_SHARE_SMALL;

    share = share < GROWTH_SMALL ? share : GROWTH_SMALL;
    if (share < reserved / GROWTH_SHARE) {
        share = reserved / GROWTH_SHARE;
    }
    return rmm__round_up(share, engine->range.granule_bytes);
}

static uint64_t part_of(uint64_t held, uint64_t pieces)
{
    uint64_t bytes = PIECE_LEAST;

    while (bytes < PIECE_MOST && bytes < held / pieces) {
        bytes *= 2;
    }
    return bytes;
}

/* For a growth by `more` to `held`. Only its last piece may be smaller. */
static uint64_t piece_bytes_locked(const engine_t *engine, uint64_t held, uint64_t more)
{
    const engine_range_t *range = &engine->range;
    uint64_t most = range->capacity_bytes < engine->maximum_bytes
                        ? range->capacity_bytes
                        : engine->maximum_bytes;
    uint64_t bytes = part_of(held, PIECES);

    if (held < most / FAR && !rmm__range_has_time_locked(engine, more / bytes)) {
        bytes = part_of(held, PIECES_FAR);
    }
    return rmm__round_up(bytes, range->granule_bytes);
}

rmm_status_t rmm__range_no_addresses(const engine_t *engine, uint64_t bytes)
{
    return rmm__error(
        RMM_ERR_OUT_OF_MEMORY,
        "its address range of %" PRIu64 " bytes has no %" PRIu64
        " contiguous free bytes",
        engine->range.bytes, bytes);
}

typedef enum plan {
    PLAN_MADE,
    PLAN_NOT_NEEDED, /* another thread has freed enough meanwhile */
    PLAN_NO_ADDRESSES,
    PLAN_NO_ROOM, /* below the maximum */
    PLAN_NO_HOST_MEMORY
} plan_t;

static void
size_locked(const engine_t *engine, const rmm_blocks_gap_t *gap, growth_t *growth)
{
    uint64_t reserved = engine->figures.reserved_bytes;
    uint64_t share = growth->is_limited ? 0 : growth_share(engine, reserved);

    growth->unit = gap->unit;
    growth->need = gap->units * RMM_BLOCKS_UNIT;
    growth->preferred = growth->need > share ? growth->need : share;
    growth->preferred =
        growth->preferred < growth->room ? growth->preferred : growth->room;
    if (growth->preferred > gap->room * RMM_BLOCKS_UNIT) {
        growth->preferred = gap->room * RMM_BLOCKS_UNIT;
    }
    growth->piece_bytes =
        piece_bytes_locked(engine, reserved + growth->preferred, growth->preferred);
    growth->pieces_left = growth->preferred / growth->piece_bytes + 2;
}

static plan_t take_locked(engine_t *engine, growth_t *growth)
{
    if (!rmm__pieces_reserve_locked(engine, growth->pieces_left)) {
        return PLAN_NO_HOST_MEMORY;
    }
    if (!rmm__range_depart_locked(
            engine, RANGE_ABSENT, growth->unit, growth->preferred, &growth->transit)) {
        engine->range.piece_promised -= (uint32_t)growth->pieces_left;
        return PLAN_NO_HOST_MEMORY;
    }
    engine->promised_bytes += growth->preferred;
    return PLAN_MADE;
}

/* One lock covers the decision what to map and where: two threads here at once get
 * different addresses, and together do not exceed the maximum. */
static plan_t
plan_locked(engine_t *engine, const rmm_blocks_request_t *request, growth_t *growth)
{
    uint64_t granule = engine->range.granule_bytes;
    rmm_blocks_gap_t gap;

    if (!rmm__range_find_gap_locked(engine, request, &gap)) {
        return PLAN_NO_ADDRESSES;
    }
    if (gap.units == 0) {
        return PLAN_NOT_NEEDED;
    }
    growth->room = rmm__engine_room_locked(engine) / granule * granule;
    size_locked(engine, &gap, growth);
    return growth->need <= growth->room ? take_locked(engine, growth) : PLAN_NO_ROOM;
}

static rmm_status_t grow_as_planned(engine_t *engine, growth_t *growth)
{
    uint64_t begin_ns = rmm__range_now_ns();
    rmm_status_t status = map_growth(engine, growth);

    rmm__range_note_mapping(engine, begin_ns);
    rmm__pieces_unreserve(engine, growth->pieces_left);
    rmm__mutex_lock(&engine->lock);
    engine->promised_bytes -= growth->preferred;
    rmm__mutex_unlock(&engine->lock);
    return status;
}

static rmm_status_t
grow(engine_t *engine, const rmm_blocks_request_t *request, bool is_limited)
{
    growth_t growth = {.is_limited = is_limited};
    plan_t plan;

    rmm__mutex_lock(&engine->lock);
    plan = plan_locked(engine, request, &growth);
    rmm__mutex_unlock(&engine->lock);
    switch (plan) {
    case PLAN_MADE:
        return grow_as_planned(engine, &growth);
    case PLAN_NOT_NEEDED:
        return RMM_OK;
    case PLAN_NO_ADDRESSES:
        return rmm__range_no_addresses(engine, rmm__engine_need(request));
    case PLAN_NO_ROOM:
        return rmm__engine_no_room(engine, growth.room);
    case PLAN_NO_HOST_MEMORY:
        break;
    }
    return rmm__pieces_no_memory();
}

/* The owner is called before the place is chosen: it may trim its neighbours. */
rmm_status_t rmm__range_grow(engine_t *engine, const rmm_blocks_request_t *request)
{
    const engine_owner_t *ops = engine->owner_ops;
    const rmm_blocks_request_t room = rmm__range_request(engine, request);
    uint64_t most =
        rmm__round_up(room.units * RMM_BLOCKS_UNIT, engine->range.granule_bytes);
    uint64_t promised = 0;
    rmm_status_t status = RMM_OK;

    if (ops->begin_growth != NULL) {
        status = ops->begin_growth(engine->owner, most, &promised);
    }
    if (status != RMM_OK) {
        return status;
    }
    status = grow(engine, &room, promised != 0);
    if (promised != 0) {
        ops->end_growth(engine->owner, promised);
    }
    return status;
}

bool rmm__range_can_grow_locked(
    const engine_t *engine, const rmm_blocks_request_t *request)
{
    uint64_t need = rmm__range_request(engine, request).units * RMM_BLOCKS_UNIT;
    uint64_t room = rmm__engine_room_locked(engine);
    uint64_t free_bytes =
        rmm__engine_free_bytes_locked(engine) + engine->transit_units * RMM_BLOCKS_UNIT;

    return room >= engine->range.granule_bytes &&
           (room >= need || free_bytes >= need - room);
}
