/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a virtual pool: one range of addresses, reserved at creation, and pieces of
 * physical memory mapped into it. The idea and the heaps are in pool_impl.h.
 *
 * A piece is mapped, unmapped and given back as a whole. Each costs the driver about the
 * same, whatever its size: on an H200 25 us to make, map and allow, 20 to unmap and give
 * back, for 2 MiB and for 64 alike, and one call for many pieces costs what a call for each
 * does. So a growth is one piece at first. A piece with one small block in it cannot move,
 * though: once the pool had to be tidied a few times, which few programs need, pieces become
 * small.
 *
 * Addresses are reserved in plenty, since they cost nothing and only memory that is mapped
 * is held: a block that stays in the way costs a detour, not memory.
 *
 * Locking: everything here runs under grow_lock, which also protects the pieces. Driver
 * calls are made in a scope and never under `lock`; meanwhile the units concerned are in
 * the heap `moving`, where no other thread finds them.
 */
#include "resources/pool_pieces.h"

#include <inttypes.h>

#include "core/host_memory.h"
#include "log/log.h"

#define PIECE_MIN_BYTES ((uint64_t)2 * 1024 * 1024)
#define PIECE_MAX_BYTES ((uint64_t)256 * 1024 * 1024)
#define FINE_PART 256    /* of what is held: a piece, once the pool was tidied often */
#define FINE_TIDIES 2    /* so often is not yet often */
#define INITIAL_PART 128 /* of what a pool begins with: a piece of that */
#define RANGE_TIMES 8    /* addresses, as a multiple of the device's memory */
#define GROWTH_PART 32   /* grow by this part of what is held, if less is missing */
#define GROWTH_PART_SMALL 16                            /* and by this one */
#define GROWTH_SMALL_BYTES ((uint64_t)32 * 1024 * 1024) /* up to so much */
#define ROOM_BYTES ((uint64_t)64 * 1024 * 1024) /* for more the device is asked first */

/* --- growth -------------------------------------------------------------------------- */

/* Where to map: at least `need` bytes, rather `wish`. */
typedef struct growth {
    uint64_t offset, need, wish;
} growth_t;

/* In a scope: nothing of it is left, but for what cannot be unmapped. One such piece, and
 * none of the growth's addresses are used again: there are plenty. */
static void undo_growth(pool_t *self, const growth_t *growth)
{
    pool_range_t *range = &self->range;
    uint64_t stuck_bytes = 0;

    for (uint32_t i = range->piece_count; i-- > 0;) {
        pool_piece_t *piece = &range->pieces[i];

        if (piece->offset < growth->offset ||
            piece->offset >= growth->offset + growth->wish) {
            continue;
        }
        if (!piece->is_stuck && rmm__pool_piece_end(self, piece) != RMM_DRIVER_OK) {
            rmm__pool_piece_stick(self, piece);
        }
        if (piece->is_stuck) {
            stuck_bytes += piece->bytes;
        } else {
            rmm__pool_pieces_remove(range, i);
        }
    }
    if (stuck_bytes != 0) {
        rmm__pool_arrive_lost(self, stuck_bytes, stuck_bytes);
    } else {
        rmm__pool_arrive(self, range->absent, 0);
    }
}

/* The size of its pieces; only the last one may have less. */
static uint64_t piece_limit(const pool_t *self, const growth_t *growth)
{
    uint64_t wanted = growth->wish;
    uint64_t limit = PIECE_MIN_BYTES;

    if (self->reserved_bytes == 0 && self->range.initial_bytes != 0) {
        wanted = growth->wish / INITIAL_PART;
    } else if (self->range.tidied_ever > FINE_TIDIES) {
        wanted = (self->reserved_bytes + growth->wish) / FINE_PART;
    }
    while (limit < PIECE_MAX_BYTES && limit < wanted) {
        limit *= 2;
    }
    return round_up(limit, self->range.granule_bytes);
}

/* Map from the offset on; bytes mapped, at least `need`, or 0, why not, and what is to be
 * undone. */
static uint64_t
map_pieces(pool_t *self, const growth_t *growth, uint64_t limit, int *error)
{
    uint64_t target = growth->wish;
    uint64_t done = 0;

    while (done < target) {
        pool_piece_t piece = {.offset = growth->offset + done, .bytes = target - done};

        piece.bytes = piece.bytes > limit ? limit : piece.bytes;
        *error = rmm__pool_piece_make(self, &piece);
        if (*error == RMM_DRIVER_OK || piece.is_stuck) {
            rmm__pool_pieces_insert(&self->range, &piece);
        }
        if (*error == RMM_DRIVER_OK) {
            done += piece.bytes;
        } else if (
            *error == RMM_DRIVER_MEMORY_ALLOCATION && !piece.is_stuck &&
            target > growth->need) {
            target = growth->need; /* the device has less than the wish */
        } else {
            return 0;
        }
    }
    return done;
}

/* Not to map for long what is undone at the end. In a scope. */
static int check_room(const pool_t *self, const growth_t *growth)
{
    uint64_t free_bytes;
    uint64_t total;
    int error = RMM_DRIVER_OK;

    if (growth->need > ROOM_BYTES) {
        error = self->driver->memory_info(&free_bytes, &total);
        if (error == RMM_DRIVER_OK && free_bytes < growth->need) {
            error = RMM_DRIVER_MEMORY_ALLOCATION;
        }
    }
    return error;
}

/* Of the growth's addresses only the first `mapped` bytes got memory. */
static rmm_status_t keep_mapped(pool_t *self, const growth_t *growth, uint64_t mapped)
{
    uint64_t rest = growth->wish - mapped;
    rmm_suballoc_result_t result = RMM_SUBALLOC_OK;

    if (rest != 0) {
        rmm__mutex_lock(&self->lock);
        result = rmm__suballoc_move(
            self->blocks, self->range.moving, self->range.absent,
            unit_at(self, growth->offset + mapped), to_units(rest), 0);
        rmm__mutex_unlock(&self->lock);
    }
    if (result != RMM_SUBALLOC_OK) {
        return rmm__pool_no_pieces();
    }
    rmm__pool_arrive(self, self->clean, (int64_t)mapped);
    return RMM_OK;
}

static rmm_status_t map_growth(pool_t *self, const growth_t *growth, uint64_t limit)
{
    rmm_driver_scope_t scope;
    rmm_status_t status =
        rmm__driver_scope_enter(&scope, self->driver, self->base.device);
    uint64_t mapped;
    int error;

    if (status != RMM_OK) {
        rmm__pool_arrive(self, self->range.absent, 0);
        return status == RMM_ERR_CUDA ? RMM_ERR_BAD_ALLOC : status;
    }
    error = check_room(self, growth);
    mapped = error == RMM_DRIVER_OK ? map_pieces(self, growth, limit, &error) : 0;
    status = mapped != 0 ? keep_mapped(self, growth, mapped)
                         : rmm__driver_error(self->driver, error, "mapping memory");
    if (status == RMM_OK) {
        self->range.tidied_bytes = 0;
        self->range.tidied_count = 0;
    } else {
        undo_growth(self, growth);
    }
    rmm__driver_scope_leave(&scope);
    return status == RMM_ERR_CUDA ? RMM_ERR_BAD_ALLOC : status;
}

RMM_COLD static rmm_status_t no_addresses(const pool_t *self, uint64_t need)
{
    return rmm__error(
        RMM_ERR_OUT_OF_MEMORY,
        "its range of %" PRIu64 " addresses has no %" PRIu64 " beside each other",
        self->range.bytes, need);
}

/* By so much at least, or many small blocks would be as many steps. */
static uint64_t growth_share(const pool_t *self)
{
    uint64_t share = self->reserved_bytes / GROWTH_PART_SMALL;

    share = share < GROWTH_SMALL_BYTES ? share : GROWTH_SMALL_BYTES;
    if (share < self->reserved_bytes / GROWTH_PART) {
        share = self->reserved_bytes / GROWTH_PART;
    }
    return round_up(share, self->range.granule_bytes);
}

rmm_status_t rmm__pool_range_grow(pool_t *self, uint64_t need)
{
    uint64_t granule = self->range.granule_bytes;
    uint64_t room = (self->maximum_bytes - self->reserved_bytes) / granule * granule;
    uint64_t share = growth_share(self);
    rmm_suballoc_gap_t gap;
    growth_t growth;
    uint64_t limit;

    RMM_ASSERT_LOCKED(&self->grow_lock);
    if (!rmm__pool_find_gap(self, need, &gap)) {
        return no_addresses(self, need);
    }
    if (gap.units == 0) {
        return RMM_OK; /* another thread freed it meanwhile */
    }
    growth.offset = offset_of(self, gap.unit);
    growth.need = (uint64_t)gap.units * POOL_UNIT;
    growth.wish = growth.need > share ? growth.need : share;
    growth.wish = growth.wish < room ? growth.wish : room;
    if (growth.wish > (uint64_t)gap.room * POOL_UNIT) {
        growth.wish = (uint64_t)gap.room * POOL_UNIT;
    }
    if (growth.need > room) {
        return rmm__error(
            RMM_ERR_OUT_OF_MEMORY, "its maximum of %" PRIu64 " bytes leaves %" PRIu64,
            self->maximum_bytes, room);
    }
    limit = piece_limit(self, &growth);
    if (!rmm__pool_pieces_reserve(&self->range, growth.wish / limit + 2) ||
        rmm__pool_move_out(self, self->range.absent, growth.offset, growth.wish) !=
            RMM_SUBALLOC_OK) {
        return rmm__pool_no_pieces();
    }
    return map_growth(self, &growth, limit);
}

/* --- open and close ------------------------------------------------------------------ */

static rmm_status_t check_device(const pool_t *self)
{
    int device = self->base.device;
    int able = 0;
    int error =
        self->driver->device_attribute(RMM_ATTRIBUTE_VIRTUAL_MEMORY, device, &able);

    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(
            self->driver, error, "asking whether the device maps virtual memory");
    }
    return able ? RMM_OK
                : rmm__error(
                      RMM_ERR_UNSUPPORTED,
                      "device %d cannot map virtual memory "
                      "(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED is 0): "
                      "make a pool over a cuda resource instead of RMM_POOL_VIRTUAL",
                      device);
}

/* Devices that can use this one's memory. */
static int find_peers(const pool_t *self, uint32_t *peers_out)
{
    uint32_t peers = 0;
    int count;
    int error = self->driver->device_count(&count);

    for (int device = 0; error == RMM_DRIVER_OK && device < count && device < 32;
         device++) {
        int can = 0;

        if (device != self->base.device) {
            error = self->driver->peer_can_access(device, self->base.device, &can);
            peers |= (uint32_t)(can != 0) << device;
        }
    }
    *peers_out = error == RMM_DRIVER_OK ? peers : 0;
    return error;
}

/* As many addresses as can be had, at least once the device's memory. */
static int reserve_addresses(pool_t *self, uint64_t capacity_bytes)
{
    pool_range_t *range = &self->range;
    uint64_t granule = range->granule_bytes;
    uint64_t most = POOL_CHUNK_BYTES / granule * granule;
    uint64_t least = round_up(capacity_bytes, granule);
    uint64_t bytes = least < most / RANGE_TIMES ? least * RANGE_TIMES : most;
    void *address;
    int error;

    least = least < most ? least : most;
    for (;;) {
        error = self->driver->address_reserve(&address, bytes);
        if (error == RMM_DRIVER_OK) {
            range->address = address;
            range->bytes = bytes;
            return error;
        }
        if (bytes == least) {
            return error;
        }
        bytes = bytes / 2 > least ? round_up(bytes / 2, granule) : least;
    }
}

static int ask_device(pool_t *self, uint64_t flags)
{
    rmm_device_info_t info;
    size_t granule;
    int error = self->driver->device_info(self->base.device, &info);

    if (error == RMM_DRIVER_OK) {
        error = self->driver->virtual_granularity(&granule);
    }
    if (error == RMM_DRIVER_OK && (flags & RMM_POOL_PEER_ACCESS) != 0) {
        error = find_peers(self, &self->range.peers);
    }
    if (error == RMM_DRIVER_OK) {
        self->range.granule_bytes = granule;
        if (self->maximum_bytes < UINT64_MAX - granule) {
            self->maximum_bytes = round_up(self->maximum_bytes, granule);
        }
        error = reserve_addresses(self, info.capacity_bytes);
    }
    return error;
}

/* The range becomes the pool's only chunk. */
static rmm_status_t enter_range_locked(pool_t *self)
{
    pool_range_t *range = &self->range;
    pool_chunk_t chunk = {.address = range->address, .bytes = range->bytes};
    uint32_t phase =
        (uint32_t)((uintptr_t)range->address / POOL_UNIT % RMM_SUBALLOC_PHASES);

    if (!rmm__pool_chunks_reserve_locked(self) ||
        rmm__suballoc_heap_create(self->blocks, &range->absent) != RMM_SUBALLOC_OK ||
        rmm__suballoc_heap_create(self->blocks, &range->moving) != RMM_SUBALLOC_OK ||
        rmm__suballoc_heap_create(self->blocks, &range->lost) != RMM_SUBALLOC_OK ||
        rmm__suballoc_add_region(
            self->blocks, range->absent, to_units(range->bytes), phase, 0,
            &range->first_unit) != RMM_SUBALLOC_OK) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    chunk.first_unit = range->first_unit;
    rmm__pool_chunks_insert_locked(self, &chunk);
    self->absent_units = to_units(range->bytes);
    return RMM_OK;
}

rmm_status_t rmm__pool_range_open(pool_t *self, uint64_t flags, uint64_t initial_bytes)
{
    rmm_driver_scope_t scope;
    rmm_status_t status = check_device(self);
    int error;

    if (status == RMM_OK) {
        status = rmm__driver_scope_enter(&scope, self->driver, self->base.device);
    }
    if (status != RMM_OK) {
        return status;
    }
    self->range.initial_bytes = initial_bytes;
    error = ask_device(self, flags);
    rmm__driver_scope_leave(&scope);
    if (error != RMM_DRIVER_OK) {
        return rmm__driver_error(self->driver, error, "reserving addresses");
    }
    rmm__mutex_lock(&self->lock);
    status = enter_range_locked(self);
    rmm__mutex_unlock(&self->lock);
    return status;
}

static void close_pieces(pool_t *self)
{
    pool_range_t *range = &self->range;
    uint32_t left = 0;

    for (uint32_t i = 0; i < range->piece_count; i++) {
        left += rmm__pool_piece_end(self, &range->pieces[i]) != RMM_DRIVER_OK;
    }
    if (left != 0) {
        rmm__log_error(
            "pool '%s': %" PRIu32 " of %" PRIu32 " pieces could not be unmapped",
            self->base.name, left, range->piece_count);
        return;
    }
    (void)self->driver->address_free(range->address, range->bytes);
}

void rmm__pool_range_close(pool_t *self, bool is_idle)
{
    pool_range_t *range = &self->range;
    rmm_driver_scope_t scope;

    if (range->address != NULL && is_idle &&
        rmm__driver_scope_enter(&scope, self->driver, self->base.device) == RMM_OK) {
        close_pieces(self);
        rmm__driver_scope_leave(&scope);
    }
    rmm__place_unreserve(self->base.books.place, self->reserved_bytes);
    rmm__free(range->pieces);
}
