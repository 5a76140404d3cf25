/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which pieces of a range hold a live block, for an export to another process (engine.h).
 *
 * A piece with live memory is neither moved nor given back, so what is found stays true while the
 * caller keeps the block. The piece is marked: it may have importers until its physical memory is
 * released, and they do not report when they are done.
 */
#include "pool/range.h"

#include "core/host_memory.h"

typedef struct search {
    uint64_t unit;
    rmm_block_info_t found; /* units 0: nothing */
} search_t;

static bool look_around(void *context, const rmm_block_info_t *info)
{
    search_t *search = context;

    if (info->heap == RMM_HEAP_NONE && info->tag < TAG_SUPERBLOCK &&
        search->unit - info->unit < info->units) {
        search->found = *info;
    }
    return search->found.units == 0;
}

uint64_t rmm__engine_rest_of_block(engine_t *engine, const void *ptr)
{
    uintptr_t address = (uintptr_t)ptr;
    search_t search = {.unit = address / RMM_BLOCKS_UNIT, .found = {.units = 0}};
    const rmm_block_node_t *node;
    rmm_block_t block;
    uint64_t end;

    rmm__mutex_lock(&engine->lock);
    block = rmm__blocks_look_up(engine->blocks, search.unit);
    node = rmm__blocks_look_at(engine->blocks, block);
    if (block != RMM_BLOCK_NONE && node->tag < TAG_SUPERBLOCK) {
        search.found.unit = node->unit;
        search.found.units = node->units;
        search.found.tag = node->tag;
    } else if (address - (uintptr_t)engine->range.address < engine->range.bytes) {
        rmm__blocks_walk(engine->blocks, look_around, &search); /* not its first byte */
    }
    rmm__mutex_unlock(&engine->lock);
    end = (search.found.unit + search.found.units) * RMM_BLOCKS_UNIT - search.found.tag;
    return search.found.units != 0 && address < end ? end - address : 0;
}

/* The pieces of these units into `found`, if there is room; how many. */
static uint32_t list_locked(
    engine_t *engine, uint64_t unit, uint64_t end, engine_exported_t *found,
    uint32_t room)
{
    engine_range_t *range = &engine->range;
    uint32_t index = rmm__pieces_from_locked(engine, unit + 1);
    uint32_t count = 0;

    index -= index != 0;
    for (; index < range->piece_count && range->pieces[index].unit < end; index++) {
        engine_piece_t *piece = &range->pieces[index];

        if (piece->unit + piece->units <= unit) {
            continue;
        }
        if (count < room) {
            found[count] = (engine_exported_t){
                rmm__range_address(piece->unit), rmm__piece_bytes(piece),
                piece->physical};
            if (piece->exports++ == 0) {
                atomic_fetch_add_explicit(
                    &engine->exported_bytes, rmm__piece_bytes(piece),
                    memory_order_relaxed);
            }
        }
        count++;
    }
    return count;
}

rmm_status_t rmm__engine_export(
    engine_t *engine, const void *ptr, uint64_t bytes, engine_exported_t **found_out,
    uint32_t *count_out)
{
    uint64_t unit = (uintptr_t)ptr / RMM_BLOCKS_UNIT;
    uint64_t end = ((uintptr_t)ptr + bytes + RMM_BLOCKS_UNIT - 1) / RMM_BLOCKS_UNIT;
    engine_exported_t *found;
    uint32_t count, listed;
    bool sleeps;

    rmm__mutex_lock(&engine->lock);
    count = list_locked(engine, unit, end, NULL, 0);
    rmm__mutex_unlock(&engine->lock);
    found = rmm__calloc(count != 0 ? count : 1, sizeof(*found));
    if (found == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    rmm__mutex_lock(&engine->lock);
    sleeps = engine->sleep_state != ENGINE_AWAKE;
    listed = sleeps ? 0 : list_locked(engine, unit, end, found, count);
    rmm__mutex_unlock(&engine->lock);
    if (sleeps) {
        rmm__free(found);
        return rmm__error(
            RMM_ERR_ASLEEP, "the pool is asleep: wake it before an export");
    }
    if (count == 0 || listed != count) {
        rmm__free(found);
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT, "the block at %p was freed during its export",
            ptr);
    }
    *found_out = found;
    *count_out = count;
    return RMM_OK;
}

/* The block is still live, so its pieces are where they were. */
void rmm__engine_export_withdraw(
    engine_t *engine, const engine_exported_t *found, uint32_t count)
{
    engine_range_t *range = &engine->range;

    rmm__mutex_lock(&engine->lock);
    for (uint32_t i = 0; i < count; i++) {
        uint64_t unit = (uintptr_t)found[i].address / RMM_BLOCKS_UNIT;
        engine_piece_t *piece = &range->pieces[rmm__pieces_from_locked(engine, unit)];

        if (--piece->exports == 0) {
            atomic_fetch_sub_explicit(
                &engine->exported_bytes, rmm__piece_bytes(piece), memory_order_relaxed);
        }
    }
    rmm__mutex_unlock(&engine->lock);
}

uint32_t rmm__engine_export_types(const engine_t *engine)
{
    return engine->range.physical_flags &
           (RMM_DRIVER_HANDLE_POSIX | RMM_DRIVER_HANDLE_FABRIC);
}

uint64_t rmm__engine_exported_bytes(const engine_t *engine)
{
    return atomic_load_explicit(&engine->exported_bytes, memory_order_relaxed);
}
