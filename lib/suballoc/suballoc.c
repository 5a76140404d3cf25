/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of the manager, its storage, heaps and regions: everything that is rare. The hot
 * part is blocks.c, the structures and their rules are in suballoc_impl.h.
 *
 * Storage is grown area by area; each area is sound by itself, so that a growth that fails
 * half way leaves one area larger than needed and nothing else.
 */
#include <string.h>

#include "suballoc/suballoc_impl.h"

#define FIRST_SLOTS_LOG2 6
#define FIRST_NODES 64
#define NODES_AT_ONCE 32
#define FIRST_HEAPS 4
#define FIRST_REGIONS 8
#define UNIT_LIMIT (UINT64_C(1) << 32)

static void *
resize(rmm_suballoc_t *sa, char what, void *old, size_t old_bytes, size_t new_bytes)
{
    return sa->storage.resize(sa->storage.context, what, old, old_bytes, new_bytes);
}

static void release(rmm_suballoc_t *sa, char what, void *area, size_t bytes)
{
    if (area != NULL) {
        resize(sa, what, area, bytes, 0);
    }
}

/* Twice the capacity, or the first one. Returns the new array and updates *capacity. */
static void *grow(
    rmm_suballoc_t *sa, char what, void *array, size_t element_bytes,
    uint32_t *capacity, uint32_t first)
{
    if (*capacity > UINT32_MAX / 2) {
        return NULL;
    }
    uint32_t more = *capacity == 0 ? first : 2 * *capacity;
    void *grown =
        resize(sa, what, array, *capacity * element_bytes, more * element_bytes);
    if (grown != NULL) {
        *capacity = more;
    }
    return grown;
}

static bool grow_nodes(rmm_suballoc_t *sa)
{
    if (sa->node_capacity == sa->used_nodes) {
        void *nodes = grow(
            sa, 'n', sa->nodes, sizeof *sa->nodes, &sa->node_capacity, FIRST_NODES);
        if (nodes == NULL) {
            return false;
        }
        sa->nodes = nodes;
    }
    if (sa->age_capacity == sa->used_nodes) {
        void *ages =
            grow(sa, 'a', sa->ages, sizeof *sa->ages, &sa->age_capacity, FIRST_NODES);
        if (ages == NULL) {
            return false;
        }
        sa->ages = ages;
    }
    return true;
}

/*
 * Put nodes that were never used on the list of unused ones: a few at a time, so that
 * storage which is committed by touching it is not touched for nothing.
 */
static bool add_nodes(rmm_suballoc_t *sa)
{
    if ((sa->used_nodes == sa->node_capacity || sa->used_nodes == sa->age_capacity) &&
        !grow_nodes(sa)) {
        return false;
    }
    uint32_t end = sa->used_nodes + NODES_AT_ONCE; /* divides every capacity */
    for (uint32_t index = end - 1; index >= sa->used_nodes && index != 0; index--) {
        node_put(sa, index);
    }
    sa->used_nodes = end;
    return true;
}

static size_t table_slots(const rmm_suballoc_t *sa)
{
    return sa->table == NULL ? 0 : (size_t)1 << (64 - sa->table_shift);
}

static bool grow_table(rmm_suballoc_t *sa)
{
    size_t old_slots = table_slots(sa);
    size_t slots = old_slots == 0 ? (size_t)1 << FIRST_SLOTS_LOG2 : 2 * old_slots;
    uint32_t *table = resize(sa, 't', NULL, 0, slots * sizeof *table);
    if (table == NULL) {
        return false;
    }
    sa->table_shift = old_slots == 0 ? 64 - FIRST_SLOTS_LOG2 : sa->table_shift - 1;
    sa->table_limit = slots / 2 > UINT32_MAX ? UINT32_MAX : (uint32_t)(slots / 2);
    for (size_t i = 0; i < old_slots; i++) {
        uint32_t index = sa->table[i];
        while (index != 0) {
            rmm_block_node_t *node = &sa->nodes[index];
            uint32_t next = node->link_next;
            uint32_t slot = slot_of(sa, node->unit);
            node->link_next = table[slot];
            table[slot] = index;
            index = next;
        }
    }
    release(sa, 't', sa->table, old_slots * sizeof *table);
    sa->table = table;
    return true;
}

bool rmm__suballoc_reserve(rmm_suballoc_t *sa)
{
    uint32_t first = sa->unused_nodes;
    bool has_two = first != 0 && sa->nodes[first].link_next != 0;
    return (has_two || add_nodes(sa)) &&
           (sa->live_blocks < sa->table_limit || grow_table(sa));
}

rmm_suballoc_t *rmm__suballoc_create(const rmm_suballoc_storage_t *storage)
{
    rmm_suballoc_t *sa = storage->resize(storage->context, 'm', NULL, 0, sizeof *sa);
    if (sa == NULL) {
        return NULL;
    }
    sa->storage = *storage;
    if (!rmm__suballoc_reserve(sa)) {
        rmm__suballoc_destroy(sa);
        return NULL;
    }
    return sa;
}

void rmm__suballoc_destroy(rmm_suballoc_t *sa)
{
    if (sa == NULL) {
        return;
    }
    release(sa, 'n', sa->nodes, sa->node_capacity * sizeof *sa->nodes);
    release(sa, 'a', sa->ages, sa->age_capacity * sizeof *sa->ages);
    release(sa, 't', sa->table, table_slots(sa) * sizeof *sa->table);
    release(sa, 'h', sa->heaps, sa->heap_capacity * sizeof *sa->heaps);
    release(sa, 'r', sa->regions, sa->region_capacity * sizeof *sa->regions);
    release(sa, 'm', sa, sizeof *sa);
}

rmm_suballoc_result_t
rmm__suballoc_heap_create(rmm_suballoc_t *sa, rmm_heap_t *heap_out)
{
    rmm_heap_t heap = sa->heap_count;
    if (sa->unused_heaps != 0) {
        heap = sa->unused_heaps - 1;
        sa->unused_heaps = sa->heaps[heap].next_unused;
    } else {
        if (sa->heap_count == sa->heap_capacity) {
            void *heaps = grow(
                sa, 'h', sa->heaps, sizeof *sa->heaps, &sa->heap_capacity, FIRST_HEAPS);
            if (heaps == NULL) {
                return RMM_SUBALLOC_NO_STORAGE;
            }
            sa->heaps = heaps;
        }
        sa->heap_count++;
    }
    sa->heaps[heap].in_use = 1;
    *heap_out = heap;
    return RMM_SUBALLOC_OK;
}

void rmm__suballoc_heap_destroy(rmm_suballoc_t *sa, rmm_heap_t heap)
{
    assert(heap_is_valid(sa, heap));
    rmm_heap_body_t *body = &sa->heaps[heap];
    assert(body->free_units == 0 && "a heap that is destroyed is empty");
    body->largest = 0;
    body->in_use = 0;
    body->next_unused = sa->unused_heaps;
    sa->unused_heaps = heap + 1;
}

/* The least number >= from that is congruent to phase. */
static uint64_t unit_with_phase(uint64_t from, uint32_t phase)
{
    return from + ((phase - from) & (RMM_SUBALLOC_PHASES - 1));
}

/*
 * Where among the regions one of these units goes, behind the last one if it can: numbers
 * are used again as late as possible. region_count + 1: nowhere.
 */
static uint32_t
find_gap(const rmm_suballoc_t *sa, uint32_t units, uint32_t phase, uint64_t *first_out)
{
    uint32_t count = sa->region_count;
    for (uint32_t tried = 0; tried <= count; tried++) {
        uint32_t place = tried == 0 ? count : tried - 1;
        const rmm_region_t *before = place > 0 ? &sa->regions[place - 1] : NULL;
        uint64_t from = before ? (uint64_t)before->first_unit + before->units : 0;
        uint64_t to = place < count ? sa->regions[place].first_unit : UNIT_LIMIT;
        uint64_t first = unit_with_phase(from, phase);
        if (first + units <= to) {
            *first_out = first;
            return place;
        }
    }
    return count + 1;
}

/* The region's ring: the fence and one free block. */
static uint32_t make_ring(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t first_unit, uint32_t units,
    uint64_t stamp)
{
    uint32_t fence = node_take(sa), block = node_take(sa);
    sa->nodes[fence] =
        (rmm_block_node_t){.unit = first_unit, .units = units, .heap = RMM_HEAP_NONE};
    sa->nodes[block] = (rmm_block_node_t){.unit = first_unit, .units = units};
    ring_insert(sa, fence, block, fence);
    heap_enter(sa, heap, block);
    rmm_heap_body_t *body = &sa->heaps[heap];
    uint32_t older = body->newest;
    while (older != 0 && sa->ages[older].stamp > stamp) {
        older = sa->ages[older].older;
    }
    sa->ages[block].stamp = stamp;
    age_insert(sa, body, block, older);
    body->free_units += units;
    sa->total_free_units += units;
    return fence;
}

bool rmm__suballoc_reserve_region(rmm_suballoc_t *sa)
{
    if (sa->region_count == sa->region_capacity) {
        void *regions = grow(
            sa, 'r', sa->regions, sizeof *sa->regions, &sa->region_capacity,
            FIRST_REGIONS);
        if (regions == NULL) {
            return false;
        }
        sa->regions = regions;
    }
    return true;
}

void rmm__suballoc_insert_region(
    rmm_suballoc_t *sa, uint32_t place, const rmm_region_t *region)
{
    rmm_region_t *at = &sa->regions[place];
    memmove(at + 1, at, (sa->region_count - place) * sizeof *at);
    sa->region_count++;
    *at = *region;
}

void rmm__suballoc_drop_region(rmm_suballoc_t *sa, uint32_t place)
{
    rmm_region_t *at = &sa->regions[place];
    sa->region_count--;
    memmove(at, at + 1, (sa->region_count - place) * sizeof *at);
}

/* These units, which no region has, become the region at this place. */
static rmm_suballoc_result_t put_region(
    rmm_suballoc_t *sa, uint32_t place, rmm_heap_t heap, uint32_t first_unit,
    uint32_t units, uint64_t stamp)
{
    if (!rmm__suballoc_reserve(sa) || !rmm__suballoc_reserve_region(sa)) {
        return RMM_SUBALLOC_NO_STORAGE;
    }
    rmm_region_t region = {first_unit, units, 0};
    region.fence = make_ring(sa, heap, first_unit, units, stamp);
    rmm__suballoc_insert_region(sa, place, &region);
    check_heavily(sa);
    return RMM_SUBALLOC_OK;
}

rmm_suballoc_result_t rmm__suballoc_add_region(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t units, uint32_t phase, uint64_t stamp,
    uint32_t *first_unit_out)
{
    assert(heap_is_valid(sa, heap));
    assert(units > 0 && phase < RMM_SUBALLOC_PHASES);
    uint64_t first_unit = 0;
    uint32_t place = find_gap(sa, units, phase, &first_unit);
    if (place > sa->region_count) {
        return RMM_SUBALLOC_NO_UNITS;
    }
    rmm_suballoc_result_t result =
        put_region(sa, place, heap, (uint32_t)first_unit, units, stamp);
    if (result == RMM_SUBALLOC_OK) {
        *first_unit_out = (uint32_t)first_unit;
    }
    return result;
}

rmm_suballoc_result_t rmm__suballoc_add_region_at(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t first_unit, uint32_t units,
    uint64_t stamp)
{
    assert(heap_is_valid(sa, heap));
    assert(units > 0 && first_unit <= UNIT_LIMIT - units);
    uint32_t place = rmm__suballoc_regions_up_to(sa, first_unit);
    assert(
        place == 0 ||
        sa->regions[place - 1].units <= first_unit - sa->regions[place - 1].first_unit);
    assert(
        place == sa->region_count ||
        units <= sa->regions[place].first_unit - first_unit);
    return put_region(sa, place, heap, first_unit, units, stamp);
}

uint32_t rmm__suballoc_regions_up_to(const rmm_suballoc_t *sa, uint32_t unit)
{
    uint32_t low = 0, high = sa->region_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (sa->regions[middle].first_unit <= unit) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* The place of the region that begins at this unit; region_count: there is none. */
static uint32_t find_region(const rmm_suballoc_t *sa, uint32_t first_unit)
{
    uint32_t place = rmm__suballoc_regions_up_to(sa, first_unit);
    bool found = place > 0 && sa->regions[place - 1].first_unit == first_unit;
    return found ? place - 1 : sa->region_count;
}

bool rmm__suballoc_remove_region(
    rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t first_unit)
{
    assert(heap_is_valid(sa, heap));
    uint32_t place = find_region(sa, first_unit);
    assert(place < sa->region_count && "a region begins at this unit");
    rmm_region_t *region = &sa->regions[place];
    rmm__suballoc_settle(sa, heap);
    uint32_t block = sa->nodes[region->fence].next;
    const rmm_block_node_t *node = &sa->nodes[block];
    if (node->heap != heap || node->units != region->units) {
        return false;
    }
    sa->heaps[heap].free_units -= node->units;
    sa->total_free_units -= node->units;
    heap_leave(sa, &sa->heaps[heap], block);
    node_put(sa, block);
    node_put(sa, region->fence);
    rmm__suballoc_drop_region(sa, place);
    check_heavily(sa);
    return true;
}

uint64_t rmm__suballoc_free_units(const rmm_suballoc_t *sa, rmm_heap_t heap)
{
    assert(heap_is_valid(sa, heap));
    return sa->heaps[heap].free_units;
}

uint64_t rmm__suballoc_total_free_units(const rmm_suballoc_t *sa)
{
    return sa->total_free_units;
}

uint32_t rmm__suballoc_live_blocks(const rmm_suballoc_t *sa)
{
    return sa->live_blocks;
}

uint32_t rmm__suballoc_run_around(
    const rmm_suballoc_t *sa, rmm_block_t block, rmm_heap_t but, rmm_heap_t nor,
    uint32_t most)
{
    uint32_t units = sa->nodes[block].units;
    for (int side = 0; side < 2; side++) {
        const rmm_block_node_t *node = &sa->nodes[block];
        for (uint32_t steps = 0;; steps++) {
            node = &sa->nodes[side == 0 ? node->prev : node->next];
            if (node->heap == RMM_HEAP_NONE || node->heap == but || node->heap == nor) {
                break;
            }
            if (steps == most) {
                return UINT32_MAX;
            }
            units += node->units;
        }
    }
    return units;
}

/* Of this node and what it will have merged with; returns the node behind that. */
static uint32_t
describe(const rmm_suballoc_t *sa, uint32_t index, rmm_block_info_t *info_out)
{
    const rmm_block_node_t *node = &sa->nodes[index];
    *info_out = (rmm_block_info_t){
        .unit = node->unit, .units = node->units, .heap = node->heap};
    if (node->heap == RMM_HEAP_NONE) {
        info_out->tag = node->tag;
        return node->next;
    }
    info_out->stamp = sa->ages[index].stamp;
    for (index = node->next; sa->nodes[index].heap == node->heap;
         index = sa->nodes[index].next) {
        uint64_t stamp = sa->ages[index].stamp;
        info_out->units += sa->nodes[index].units;
        info_out->stamp = stamp > info_out->stamp ? stamp : info_out->stamp;
    }
    return index;
}

void rmm__suballoc_walk(
    const rmm_suballoc_t *sa, bool (*fn)(void *context, const rmm_block_info_t *info),
    void *context)
{
    for (uint32_t i = 0; i < sa->region_count; i++) {
        uint32_t fence = sa->regions[i].fence;
        uint32_t index = sa->nodes[fence].next;
        while (index != fence) {
            rmm_block_info_t info;
            index = describe(sa, index, &info);
            if (!fn(context, &info)) {
                return;
            }
        }
    }
}
