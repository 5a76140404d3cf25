/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Device memory that an engine maps itself: one range of addresses, reserved at creation,
 * and pieces of physical memory mapped into it (range.h). The range is one run of blocks.
 * Addresses without memory are free in the heap `absent`, which serves no request. Growth
 * maps a part of it, which is then clean and merges with its neighbours. Only clean memory
 * is unmapped: no work of the GPU and no graph can use it.
 *
 * A piece is mapped, unmapped and given back as a whole, which takes the driver about the
 * same time for any size: on an H200 25 us to create, map and allow access, 20 us to unmap
 * and release. A piece with one small block in it cannot move, and what is free in it
 * serves no large request. So a piece is a PIECES-th of what is held: all pieces together
 * take some 100 ms to make. Fewer are cheaper, and need more memory: of 40 generated logs
 * (tests/capacity) the worst needed 1.20 of its peak with 256 pieces, 1.09 with 1,024, and
 * 1.07 with 4,096, which pages of 2 MiB do not improve.
 *
 * The range has many more addresses than the device has memory. They cost nothing, since
 * only mapped memory is held: a block in the way costs addresses, not memory.
 */
#include "pool/range.h"

#include <inttypes.h>
#include <string.h>

#include "core/host_memory.h"

#define PIECE_LEAST ((uint64_t)2 * 1024 * 1024)
#define PIECE_MOST ((uint64_t)256 * 1024 * 1024)
#define PIECES 4096
#define RANGE_TIMES 8         /* addresses, as a multiple of the device's memory */
#define GROWTH_SHARE 32       /* grow at least by this part of what is held, */
#define GROWTH_SHARE_SMALL 16 /* and by this part */
#define GROWTH_SMALL ((uint64_t)32 * 1024 * 1024) /* up to so many bytes */
#define ROOM_BYTES ((uint64_t)64 * 1024 * 1024)   /* above this, ask the device first */

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

bool rmm__range_depart(
    engine_t *engine, range_rest_t from, uint64_t unit, uint64_t bytes,
    engine_transit_t *transit_out)
{
    engine_transit_t transit = {.from = from, .units = bytes / RMM_BLOCKS_UNIT};
    bool departed = false;

    rmm__mutex_lock(&engine->lock);
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

bool rmm__range_find_gap(engine_t *engine, uint64_t need, rmm_blocks_gap_t *gap)
{
    const engine_range_t *range = &engine->range;
    bool found;

    rmm__mutex_lock(&engine->lock);
    found =
        need <= range->bytes &&
        rmm__blocks_find_gap(
            engine->blocks, range->absent, engine->clean, rmm__engine_to_units(need),
            rmm__engine_to_units(range->granule_bytes), gap);
    rmm__mutex_unlock(&engine->lock);
    return found;
}

/* --- the array of pieces ------------------------------------------------------------- */

static bool pieces_reserve_locked(engine_range_t *range, uint64_t more)
{
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

bool rmm__pieces_reserve(engine_t *engine, uint64_t more)
{
    bool reserved;

    rmm__mutex_lock(&engine->lock);
    reserved = pieces_reserve_locked(&engine->range, more);
    rmm__mutex_unlock(&engine->lock);
    return reserved;
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

/* Allow access to the engine's own device and to those that it shares with. */
static int let_devices_in(const engine_t *engine, const engine_piece_t *piece)
{
    uint32_t devices = engine->range.peers | UINT32_C(1) << engine->device;
    int error = RMM_DRIVER_OK;

    for (int device = 0; device < 32 && error == RMM_DRIVER_OK; device++) {
        if ((devices >> device & 1) != 0) {
            error = engine->driver->address_access(
                rmm__range_address(piece->unit), rmm__piece_bytes(piece), device);
        }
    }
    return error;
}

static void piece_stick(engine_t *engine, engine_piece_t *piece)
{
    piece->is_stuck = true;
    atomic_fetch_add_explicit(
        &engine->stuck_bytes, rmm__piece_bytes(piece), memory_order_relaxed);
}

int rmm__piece_map(engine_t *engine, engine_piece_t *piece)
{
    char *address = rmm__range_address(piece->unit);
    uint64_t bytes = rmm__piece_bytes(piece);
    int error = engine->driver->address_map(address, bytes, piece->physical);

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = let_devices_in(engine, piece);
    if (error != RMM_DRIVER_OK &&
        engine->driver->address_unmap(address, bytes) != RMM_DRIVER_OK) {
        piece_stick(engine, piece);
    }
    return error;
}

int rmm__piece_make(engine_t *engine, engine_piece_t *piece)
{
    int error =
        engine->driver->physical_create(rmm__piece_bytes(piece), &piece->physical);

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = rmm__piece_map(engine, piece);
    if (error != RMM_DRIVER_OK && !piece->is_stuck) {
        (void)engine->driver->physical_release(piece->physical);
    }
    return error;
}

int rmm__piece_end(engine_t *engine, const engine_piece_t *piece)
{
    int error = engine->driver->address_unmap(
        rmm__range_address(piece->unit), rmm__piece_bytes(piece));

    if (error != RMM_DRIVER_OK) {
        return error; /* it stays as it is */
    }
    (void)engine->driver->physical_release(piece->physical);
    return RMM_DRIVER_OK;
}

/* --- growth -------------------------------------------------------------------------- */

/* Where to map: at least `need` bytes, at best `preferred`, in pieces of `piece_bytes`. */
typedef struct growth {
    uint64_t unit, need, preferred, piece_bytes;
    uint64_t pieces_left; /* room that is still reserved in the array */
    uint64_t promised;    /* counted in engine_t.promised_bytes */
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
            piece_stick(engine, &piece);
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

/* Avoid to map much that would have to be undone. In a driver scope. */
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
    engine->range.tidied_bytes = 0;
    engine->range.tidied_count = 0;
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
    return rmm__engine_round_up(share, engine->range.granule_bytes);
}

/* Only the last piece of a growth may be smaller. */
static uint64_t piece_bytes(const engine_t *engine, uint64_t held)
{
    uint64_t bytes = PIECE_LEAST;

    while (bytes < PIECE_MOST && bytes < held / PIECES) {
        bytes *= 2;
    }
    return rmm__engine_round_up(bytes, engine->range.granule_bytes);
}

static rmm_status_t no_addresses(const engine_t *engine, uint64_t need)
{
    return rmm__error(
        RMM_ERR_OUT_OF_MEMORY,
        "its range of %" PRIu64 " addresses has no %" PRIu64 " contiguous ones",
        engine->range.bytes, need);
}

/* How much to grow, within the maximum. It is counted as promised, so that two threads here
 * at once do not exceed the maximum. */
static rmm_status_t
size_growth(engine_t *engine, const rmm_blocks_gap_t *gap, growth_t *growth)
{
    uint64_t granule = engine->range.granule_bytes;
    uint64_t room, share, reserved;

    rmm__mutex_lock(&engine->lock);
    reserved = engine->figures.reserved_bytes;
    room = rmm__engine_room_locked(engine) / granule * granule;
    share = growth_share(engine, reserved);
    growth->unit = gap->unit;
    growth->need = gap->units * RMM_BLOCKS_UNIT;
    growth->preferred = growth->need > share ? growth->need : share;
    growth->preferred = growth->preferred < room ? growth->preferred : room;
    if (growth->preferred > gap->room * RMM_BLOCKS_UNIT) {
        growth->preferred = gap->room * RMM_BLOCKS_UNIT;
    }
    growth->promised = growth->need <= room ? growth->preferred : 0;
    engine->promised_bytes += growth->promised;
    rmm__mutex_unlock(&engine->lock);
    growth->piece_bytes = piece_bytes(engine, reserved + growth->preferred);
    growth->pieces_left = growth->preferred / growth->piece_bytes + 2;
    return growth->need <= room
               ? RMM_OK
               : rmm__error(
                     RMM_ERR_OUT_OF_MEMORY,
                     "its maximum of %" PRIu64 " bytes leaves %" PRIu64,
                     engine->maximum_bytes, room);
}

static rmm_status_t grow_as_planned(engine_t *engine, growth_t *growth)
{
    rmm_status_t status = RMM_ERR_OUT_OF_HOST_MEMORY;

    if (!rmm__pieces_reserve(engine, growth->pieces_left)) {
        return rmm__pieces_no_memory();
    }
    if (rmm__range_depart(
            engine, RANGE_ABSENT, growth->unit, growth->preferred, &growth->transit)) {
        status = map_growth(engine, growth);
    } else {
        (void)rmm__pieces_no_memory();
    }
    rmm__pieces_unreserve(engine, growth->pieces_left);
    return status;
}

static rmm_status_t range_grow(engine_t *engine, uint64_t need)
{
    rmm_blocks_gap_t gap;
    growth_t growth;
    rmm_status_t status;

    if (!rmm__range_find_gap(engine, need, &gap)) {
        return no_addresses(engine, need);
    }
    if (gap.units == 0) {
        return RMM_OK; /* another thread has freed enough meanwhile */
    }
    status = size_growth(engine, &gap, &growth);
    if (status != RMM_OK) {
        return status;
    }
    status = grow_as_planned(engine, &growth);
    rmm__mutex_lock(&engine->lock);
    engine->promised_bytes -= growth.promised;
    rmm__mutex_unlock(&engine->lock);
    if (status == RMM_OK) {
        rmm__engine_keep_barrier(engine, true);
    }
    return status;
}

static bool range_can_grow_locked(const engine_t *engine, uint64_t need)
{
    uint64_t room = rmm__engine_room_locked(engine);
    uint64_t free_bytes =
        rmm__engine_free_bytes_locked(engine) + engine->transit_units * RMM_BLOCKS_UNIT;

    return room >= engine->range.granule_bytes &&
           (room >= need || free_bytes >= need - room);
}

/* --- open and close ------------------------------------------------------------------ */

static rmm_status_t check_device(const engine_t *engine)
{
    int able = 0;
    int error = engine->driver->device_attribute(
        RMM_ATTRIBUTE_VIRTUAL_MEMORY, engine->device, &able);

    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(
            engine->driver, error, "asking whether the device maps virtual memory");
    }
    return able ? RMM_OK
                : rmm__error(
                      RMM_ERR_UNSUPPORTED,
                      "device %d cannot map virtual memory "
                      "(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED is 0): "
                      "make a pool over a cuda resource instead of RMM_POOL_VIRTUAL",
                      engine->device);
}

/* The devices that can access this one's memory. */
static int find_peers(const engine_t *engine, uint32_t *peers_out)
{
    uint32_t peers = 0;
    int count;
    int error = engine->driver->device_count(&count);

    for (int device = 0; error == RMM_DRIVER_OK && device < count && device < 32;
         device++) {
        int can = 0;

        if (device != engine->device) {
            error = engine->driver->peer_can_access(device, engine->device, &can);
            peers |= (uint32_t)(can != 0) << device;
        }
    }
    *peers_out = error == RMM_DRIVER_OK ? peers : 0;
    return error;
}

/* As many addresses as possible, at least the size of the device's memory. */
static int reserve_addresses(engine_t *engine, uint64_t capacity_bytes)
{
    engine_range_t *range = &engine->range;
    uint64_t granule = range->granule_bytes;
    uint64_t most = ENGINE_RUN_BYTES / granule * granule;
    uint64_t least = rmm__engine_round_up(capacity_bytes, granule);
    uint64_t bytes = least < most / RANGE_TIMES ? least * RANGE_TIMES : most;
    void *address;
    int error;

    least = least < most ? least : most;
    for (;;) {
        error = engine->driver->address_reserve(&address, bytes);
        if (error == RMM_DRIVER_OK) {
            range->address = address;
            range->bytes = bytes;
            return error;
        }
        if (bytes == least) {
            return error;
        }
        bytes = bytes / 2 > least ? rmm__engine_round_up(bytes / 2, granule) : least;
    }
}

static int ask_device(engine_t *engine, const engine_plan_t *plan)
{
    rmm_device_info_t info;
    size_t granule;
    int error = engine->driver->device_info(engine->device, &info);

    if (error == RMM_DRIVER_OK) {
        error = engine->driver->virtual_granularity(&granule);
    }
    if (error == RMM_DRIVER_OK && plan->shares_with_peers) {
        error = find_peers(engine, &engine->range.peers);
    }
    if (error == RMM_DRIVER_OK) {
        engine->range.granule_bytes = granule;
        if (engine->maximum_bytes < UINT64_MAX - granule) {
            engine->maximum_bytes =
                rmm__engine_round_up(engine->maximum_bytes, granule);
        }
        error = reserve_addresses(engine, info.capacity_bytes);
    }
    return error;
}

/* The range becomes the engine's only run. */
static rmm_status_t enter_range(engine_t *engine)
{
    engine_range_t *range = &engine->range;
    uint64_t unit = (uintptr_t)range->address / RMM_BLOCKS_UNIT;
    bool entered;

    rmm__mutex_lock(&engine->lock);
    entered =
        rmm__blocks_heap_create(engine->blocks, &range->absent) == RMM_BLOCKS_OK &&
        rmm__blocks_heap_create(engine->blocks, &range->lost) == RMM_BLOCKS_OK &&
        rmm__blocks_add(
            engine->blocks, range->absent, unit, rmm__engine_to_units(range->bytes),
            0) == RMM_BLOCKS_OK;
    engine->absent_units = entered ? range->bytes / RMM_BLOCKS_UNIT : 0;
    rmm__mutex_unlock(&engine->lock);
    return entered ? RMM_OK : RMM_ERR_OUT_OF_HOST_MEMORY;
}

static rmm_status_t range_open(engine_t *engine, const engine_plan_t *plan)
{
    rmm_driver_scope_t scope;
    rmm_status_t status = check_device(engine);
    int error;

    if (status == RMM_OK) {
        status = rmm__driver_scope_enter(&scope, engine->driver, engine->device);
    }
    if (status != RMM_OK) {
        return status;
    }
    error = ask_device(engine, plan);
    rmm__driver_scope_leave(&scope);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(engine->driver, error, "reserving addresses");
    }
    status = enter_range(engine);
    return status == RMM_OK && plan->initial_bytes != 0
               ? range_grow(engine, plan->initial_bytes)
               : status;
}

static void close_pieces(engine_t *engine)
{
    engine_range_t *range = &engine->range;
    uint64_t left = 0;

    for (uint32_t i = 0; i < range->piece_count; i++) {
        if (rmm__piece_end(engine, &range->pieces[i]) != RMM_DRIVER_OK) {
            left += rmm__piece_bytes(&range->pieces[i]);
        }
    }
    if (left == 0) {
        (void)engine->driver->address_free(range->address, range->bytes);
    }
    atomic_fetch_add_explicit(&engine->stuck_bytes, left, memory_order_relaxed);
}

static void range_fini(engine_t *engine, bool is_idle)
{
    rmm_driver_scope_t scope;

    if (engine->range.address != NULL && is_idle &&
        rmm__driver_scope_enter(&scope, engine->driver, engine->device) == RMM_OK) {
        close_pieces(engine);
        rmm__driver_scope_leave(&scope);
    }
    rmm__free(engine->range.pieces);
}

const engine_source_ops_t rmm__engine_range = {
    .open = range_open,
    .grow = range_grow,
    .can_grow_locked = range_can_grow_locked,
    .tidy = rmm__range_tidy,
    .gather = rmm__range_gather,
    .trim = rmm__range_trim,
    .fini = range_fini,
};
