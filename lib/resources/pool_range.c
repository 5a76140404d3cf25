/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The memory of a virtual pool: one range of addresses, reserved at creation, and pieces of
 * physical memory mapped into it. The idea and the heaps are in pool_impl.h.
 *
 * A piece is mapped, unmapped and given back as a whole. Many small ones give more back
 * and fit more; few large ones cost less: on an H200 64 MiB take 8 us to make, 1 to map
 * and 39 to allow, 1 GiB 33, 1 and 66.
 *
 * Addresses are reserved in plenty, since they cost nothing and only memory that is mapped
 * is held: a block that stays in the way costs a detour, not memory.
 *
 * Locking: everything here runs under grow_lock, which also protects the pieces. Driver
 * calls are made in a scope and never under `lock`; meanwhile the units concerned are in
 * the heap `moving`, where no other thread finds them.
 */
#include "resources/pool_impl.h"

#include <inttypes.h>
#include <string.h>

#include "core/host_memory.h"
#include "log/log.h"

#define PIECE_MIN_BYTES ((uint64_t)2 * 1024 * 1024)
#define PIECE_MAX_BYTES ((uint64_t)64 * 1024 * 1024)
#define PIECE_PART 128 /* of what is held, in between */
#define RANGE_TIMES 8  /* addresses, as a multiple of the device's memory */
#define GROWTH_PART 32 /* grow by this part of what is held, if less is missing */

/* --- places -------------------------------------------------------------------------- */

static uint64_t round_up(uint64_t value, uint64_t step)
{
    return (value + step - 1) / step * step;
}

static uint32_t to_units(uint64_t bytes)
{
    return (uint32_t)(bytes / POOL_UNIT);
}

static uint32_t unit_at(const pool_t *self, uint64_t offset)
{
    return self->range.first_unit + to_units(offset);
}

static uint64_t offset_of(const pool_t *self, uint32_t unit)
{
    return (uint64_t)(unit - self->range.first_unit) * POOL_UNIT;
}

/* Units change between absent or moving and clean: what is free, and what is held. */
static void count_absent_locked(pool_t *self)
{
    const pool_range_t *range = &self->range;

    self->absent_units = rmm__suballoc_free_units(self->blocks, range->absent) +
                         rmm__suballoc_free_units(self->blocks, range->moving);
}

static rmm_suballoc_result_t
move_out(pool_t *self, rmm_heap_t from, uint64_t offset, uint64_t bytes)
{
    rmm_suballoc_result_t result;

    rmm__mutex_lock(&self->lock);
    result = rmm__suballoc_move(
        self->blocks, from, self->range.moving, unit_at(self, offset), to_units(bytes),
        0);
    count_absent_locked(self);
    rmm__pool_figures_locked(self);
    rmm__mutex_unlock(&self->lock);
    return result;
}

/* All that is moving arrives; `gained` bytes more are held than before. */
static void arrive(pool_t *self, rmm_heap_t to, int64_t gained)
{
    rmm__mutex_lock(&self->lock);
    (void)rmm__suballoc_transfer(self->blocks, self->range.moving, to, UINT64_MAX, 0);
    self->reserved_bytes += (uint64_t)gained;
    count_absent_locked(self);
    if (gained > 0) {
        RMM_BOOKS_ADD_EXCLUSIVE(&self->base.books, growth_count, 1);
    }
    rmm__pool_figures_locked(self);
    rmm__mutex_unlock(&self->lock);
    if (gained >= 0) {
        rmm__place_reserve(self->base.books.place, (uint64_t)gained);
    } else {
        rmm__place_unreserve(self->base.books.place, (uint64_t)-gained);
    }
}

static rmm_status_t no_host_memory(void)
{
    return rmm__error(RMM_ERR_OUT_OF_HOST_MEMORY, "no host memory to map a piece");
}

/* --- pieces -------------------------------------------------------------------------- */

static bool pieces_reserve(pool_range_t *range, uint64_t more)
{
    uint64_t wanted = range->piece_capacity != 0 ? range->piece_capacity : 16;
    pool_piece_t *grown;

    while (wanted < range->piece_count + more) {
        wanted *= 2;
    }
    if (wanted == range->piece_capacity) {
        return true;
    }
    grown = rmm__resize(
        range->pieces, range->piece_capacity * sizeof(*grown), wanted * sizeof(*grown));
    if (grown == NULL) {
        return false;
    }
    range->pieces = grown;
    range->piece_capacity = (uint32_t)wanted;
    return true;
}

static void pieces_insert(pool_range_t *range, const pool_piece_t *piece)
{
    uint32_t index = range->piece_count;

    RMM_ASSERT(range->piece_count < range->piece_capacity && "room was reserved");
    while (index > 0 && range->pieces[index - 1].offset > piece->offset) {
        range->pieces[index] = range->pieces[index - 1];
        index--;
    }
    range->pieces[index] = *piece;
    range->piece_count++;
}

static void pieces_remove(pool_range_t *range, uint32_t index)
{
    range->piece_count--;
    memmove(
        &range->pieces[index], &range->pieces[index + 1],
        (range->piece_count - index) * sizeof(range->pieces[0]));
}

/* In a scope, as what follows. */
static int map_at(const pool_t *self, const pool_piece_t *piece)
{
    char *address = self->range.address + piece->offset;
    int error = self->driver->address_map(address, piece->bytes, piece->physical);

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    for (int device = 0; device < 32 && error == RMM_DRIVER_OK; device++) {
        if ((self->range.peers >> device & 1) != 0) {
            error = self->driver->address_share(address, piece->bytes, device);
        }
    }
    if (error != RMM_DRIVER_OK) {
        (void)self->driver->address_unmap(address, piece->bytes);
    }
    return error;
}

static int piece_make(const pool_t *self, pool_piece_t *piece)
{
    int error = self->driver->physical_create(piece->bytes, &piece->physical);

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = map_at(self, piece);
    if (error != RMM_DRIVER_OK) {
        (void)self->driver->physical_release(piece->physical);
    }
    return error;
}

static int piece_end(const pool_t *self, const pool_piece_t *piece)
{
    int error =
        self->driver->address_unmap(self->range.address + piece->offset, piece->bytes);

    if (error != RMM_DRIVER_OK) {
        return error; /* it stays as it is */
    }
    (void)self->driver->physical_release(piece->physical);
    return RMM_DRIVER_OK;
}

static void undo_pieces(pool_t *self, uint64_t offset, uint64_t bytes)
{
    pool_range_t *range = &self->range;

    for (uint32_t i = range->piece_count; i-- > 0;) {
        if (range->pieces[i].offset >= offset &&
            range->pieces[i].offset < offset + bytes) {
            (void)piece_end(self, &range->pieces[i]);
            pieces_remove(range, i);
        }
    }
}

/* --- growth -------------------------------------------------------------------------- */

/* Where to map: at least `need` bytes, rather `wish`. */
typedef struct growth {
    uint64_t offset, need, wish;
} growth_t;

static uint64_t piece_limit(const pool_t *self, const growth_t *growth)
{
    uint64_t limit = PIECE_MIN_BYTES;

    while (limit < PIECE_MAX_BYTES &&
           limit < (self->reserved_bytes + growth->wish) / PIECE_PART) {
        limit *= 2;
    }
    return round_up(limit, self->range.granule_bytes);
}

/* Map from the offset on; bytes mapped, at least `need`, or 0 and why not. */
static uint64_t map_pieces(pool_t *self, const growth_t *growth, int *error)
{
    uint64_t target = growth->wish;
    uint64_t limit = piece_limit(self, growth);
    uint64_t done = 0;

    while (done < target) {
        pool_piece_t piece = {.offset = growth->offset + done, .bytes = target - done};

        piece.bytes = piece.bytes > limit ? limit : piece.bytes;
        *error = piece_make(self, &piece);
        if (*error == RMM_DRIVER_OK) {
            pieces_insert(&self->range, &piece);
            done += piece.bytes;
        } else if (*error == RMM_DRIVER_MEMORY_ALLOCATION && target > growth->need) {
            target = growth->need; /* the device has less than the wish */
        } else {
            undo_pieces(self, growth->offset, done);
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

    if (growth->need > PIECE_MAX_BYTES) {
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
        undo_pieces(self, growth->offset, mapped);
        return no_host_memory();
    }
    arrive(self, self->clean, (int64_t)mapped);
    return RMM_OK;
}

static rmm_status_t map_growth(pool_t *self, const growth_t *growth)
{
    rmm_driver_scope_t scope;
    rmm_status_t status =
        rmm__driver_scope_enter(&scope, self->driver, self->base.device);
    uint64_t mapped;
    int error;

    if (status == RMM_OK) {
        error = check_room(self, growth);
        mapped = error == RMM_DRIVER_OK ? map_pieces(self, growth, &error) : 0;
        status = mapped != 0 ? keep_mapped(self, growth, mapped)
                             : rmm__driver_error(self->driver, error, "mapping memory");
        rmm__driver_scope_leave(&scope);
    }
    self->range.tidied_bytes = status == RMM_OK ? 0 : self->range.tidied_bytes;
    if (status != RMM_OK) {
        arrive(self, self->range.absent, 0);
    }
    return status == RMM_ERR_CUDA ? RMM_ERR_BAD_ALLOC : status;
}

static bool find_gap(pool_t *self, uint64_t need, rmm_suballoc_gap_t *gap)
{
    bool found;

    rmm__mutex_lock(&self->lock);
    found = need <= self->range.bytes &&
            rmm__suballoc_find_gap(
                self->blocks, self->range.absent, self->clean, to_units(need),
                to_units(self->range.granule_bytes), gap);
    rmm__mutex_unlock(&self->lock);
    return found;
}

RMM_COLD static rmm_status_t no_addresses(const pool_t *self, uint64_t need)
{
    return rmm__error(
        RMM_ERR_OUT_OF_MEMORY,
        "its range of %" PRIu64 " addresses has no %" PRIu64 " beside each other",
        self->range.bytes, need);
}

rmm_status_t rmm__pool_range_grow(pool_t *self, uint64_t need)
{
    uint64_t granule = self->range.granule_bytes;
    uint64_t room = (self->maximum_bytes - self->reserved_bytes) / granule * granule;
    uint64_t share = round_up(self->reserved_bytes / GROWTH_PART, granule);
    rmm_suballoc_gap_t gap;
    growth_t growth;

    RMM_ASSERT_LOCKED(&self->grow_lock);
    if (!find_gap(self, need, &gap)) {
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
    if (!pieces_reserve(&self->range, growth.wish / PIECE_MIN_BYTES + 1) ||
        move_out(self, self->range.absent, growth.offset, growth.wish) !=
            RMM_SUBALLOC_OK) {
        return no_host_memory();
    }
    return map_growth(self, &growth);
}

/* --- gather -------------------------------------------------------------------------- */

/* The uppermost piece below `below` that is not in [first, end); false: none. */
static bool next_piece(
    const pool_range_t *range, uint64_t below, uint64_t first, uint64_t end,
    uint32_t *index_out)
{
    for (uint32_t i = range->piece_count; i-- > 0;) {
        uint64_t offset = range->pieces[i].offset;

        if (offset < below && (offset < first || offset >= end)) {
            *index_out = i;
            return true;
        }
    }
    return false;
}

/* Its memory has no address any more and no way back. */
static void piece_lose(pool_t *self, const pool_piece_t *piece)
{
    (void)self->driver->physical_release(piece->physical);
    arrive(self, self->range.absent, -(int64_t)piece->bytes);
}

/* Map a piece that is all clean at another offset, where nothing is. In a scope. */
static bool piece_shift(pool_t *self, uint32_t index, uint64_t offset)
{
    pool_piece_t piece = self->range.pieces[index];
    char *old = self->range.address + piece.offset;

    if (move_out(self, self->clean, piece.offset, piece.bytes) != RMM_SUBALLOC_OK) {
        return false;
    }
    if (self->driver->address_unmap(old, piece.bytes) != RMM_DRIVER_OK) {
        arrive(self, self->clean, 0);
        return false;
    }
    pieces_remove(&self->range, index);
    arrive(self, self->range.absent, 0);
    piece.offset = offset;
    if (move_out(self, self->range.absent, offset, piece.bytes) != RMM_SUBALLOC_OK ||
        map_at(self, &piece) != RMM_DRIVER_OK) {
        piece_lose(self, &piece);
        return false;
    }
    self->range.tidied_bytes += piece.bytes;
    pieces_insert(&self->range, &piece);
    arrive(self, self->clean, 0);
    return true;
}

/* Fill the gap from its front with free pieces from elsewhere. In a scope. */
static bool fill_gap(pool_t *self, const rmm_suballoc_gap_t *gap)
{
    uint64_t start = offset_of(self, gap->unit);
    uint64_t first = start - (uint64_t)gap->before * POOL_UNIT;
    uint64_t end = start + (uint64_t)(gap->units + gap->after) * POOL_UNIT;
    uint64_t room = (uint64_t)gap->room * POOL_UNIT;
    uint64_t below = UINT64_MAX;
    uint64_t done = 0;
    uint32_t index;

    while (done < (uint64_t)gap->units * POOL_UNIT &&
           next_piece(&self->range, below, first, end, &index)) {
        uint64_t bytes = self->range.pieces[index].bytes;

        below = self->range.pieces[index].offset;
        if (bytes <= room - done && piece_shift(self, index, start + done)) {
            done += bytes;
            end = start + done > end ? start + done : end;
        }
    }
    return done != 0;
}

bool rmm__pool_range_gather(pool_t *self, uint64_t need)
{
    rmm_suballoc_gap_t gap;
    rmm_driver_scope_t scope;
    bool any;

    RMM_ASSERT_LOCKED(&self->grow_lock);
    if (!find_gap(self, need, &gap) ||
        rmm__driver_scope_enter(&scope, self->driver, self->base.device) != RMM_OK) {
        return false;
    }
    any = fill_gap(self, &gap);
    rmm__driver_scope_leave(&scope);
    return any;
}

/* --- trim ---------------------------------------------------------------------------- */

/* One piece, if all of it is clean. True: it is gone. */
static bool piece_return(pool_t *self, uint32_t index, rmm_status_t *status)
{
    pool_piece_t *piece = &self->range.pieces[index];
    rmm_suballoc_result_t result =
        move_out(self, self->clean, piece->offset, piece->bytes);
    int error;

    *status = result == RMM_SUBALLOC_NO_STORAGE ? no_host_memory() : RMM_OK;
    if (result != RMM_SUBALLOC_OK) {
        return false;
    }
    error = piece_end(self, piece);
    if (error != RMM_DRIVER_OK) {
        arrive(self, self->clean, 0);
        *status = rmm__driver_error(self->driver, error, "unmapping memory");
        return false;
    }
    arrive(self, self->range.absent, -(int64_t)piece->bytes);
    pieces_remove(&self->range, index);
    return true;
}

rmm_status_t rmm__pool_range_trim(pool_t *self, uint64_t keep_bytes)
{
    rmm_driver_scope_t scope;
    rmm_status_t status =
        rmm__driver_scope_enter(&scope, self->driver, self->base.device);

    RMM_ASSERT_LOCKED(&self->grow_lock);
    if (status != RMM_OK) {
        return status;
    }
    for (uint32_t i = self->range.piece_count; i-- > 0 && status == RMM_OK;) {
        uint64_t bytes = self->range.pieces[i].bytes;

        if (bytes <= self->reserved_bytes &&
            self->reserved_bytes - bytes >= keep_bytes) {
            (void)piece_return(self, i, &status);
        }
    }
    rmm__driver_scope_leave(&scope);
    return status;
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
        rmm__suballoc_add_region(
            self->blocks, range->absent, to_units(range->bytes), phase, 0,
            &range->first_unit) != RMM_SUBALLOC_OK) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    chunk.first_unit = range->first_unit;
    rmm__pool_chunks_insert_locked(self, &chunk);
    count_absent_locked(self);
    return RMM_OK;
}

rmm_status_t rmm__pool_range_open(pool_t *self, uint64_t flags)
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
        left += piece_end(self, &range->pieces[i]) != RMM_DRIVER_OK;
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
