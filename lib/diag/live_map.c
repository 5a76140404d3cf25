/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where does an address belong? The answer, the last block that begins at or before it, is kept
 * in the cache for addresses of the same 256 bytes. It is right if the address lies before the next
 * block, which the answer links to. A block that is erased leaves the block before it as the
 * answer. So memory that is freed and taken again, as a pool does it, is found without a walk down
 * the tree, and so is that no block has a word.
 */
#include "diag/live_map.h"

#include <stddef.h>
#include <stdlib.h>

#include "core/hash.h"

#define NIL RMM_LIVE_NONE

/* --- storage ----------------------------------------------------------------------- */

bool rmm__live_map_init(rmm_live_map_t *map, uint32_t capacity)
{
    uint32_t tree_nodes = (uint32_t)rmm__index_nodes_for(capacity, 1);

    *map = (rmm_live_map_t){
        .nodes = calloc(capacity, sizeof(rmm_live_node_t)),
        .capacity = capacity,
        .free = NIL,
        .first = NIL,
        .tree_nodes.nodes = calloc(tree_nodes, sizeof(rmm_index_node_t)),
        .tree_nodes.capacity = tree_nodes,
    };
    if (map->nodes == NULL || map->tree_nodes.nodes == NULL) {
        rmm__live_map_fini(map);
        return false;
    }
    return true;
}

void rmm__live_map_fini(rmm_live_map_t *map)
{
    free(map->nodes);
    free(map->tree_nodes.nodes);
    map->nodes = NULL;
    map->tree_nodes.nodes = NULL;
}

static uint32_t take_node(rmm_live_map_t *map)
{
    uint32_t index = map->free;

    if (index != NIL) {
        map->free = map->nodes[index].next;
    } else if (map->fresh < map->capacity) {
        index = map->fresh++;
    }
    return index;
}

static void give_node(rmm_live_map_t *map, uint32_t index)
{
    map->nodes[index] = (rmm_live_node_t){.next = map->free};
    map->free = index;
}

/* --- where an address belongs ------------------------------------------------------- */

static uint32_t *cached_for(rmm_live_map_t *map, uint64_t address)
{
    return &map->cache[rmm__hash(address >> 8) >> 54];
}

static bool contains(const rmm_live_node_t *node, uint64_t address)
{
    return node->start <= address && address < node->end;
}

/* Is the node's block the last that begins at or before the address? Any node, also a free one. */
static bool is_floor(const rmm_live_map_t *map, uint32_t index, uint64_t address)
{
    const rmm_live_node_t *node = &map->nodes[index];

    if (contains(node, address)) {
        return true;
    }
    return node->end != 0 && node->start <= address &&
           (node->next == NIL || map->nodes[node->next].start > address);
}

/* The last block that begins at or before the address. */
static uint32_t find_floor(rmm_live_map_t *map, uint64_t address)
{
    uint32_t *cached = cached_for(map, address);
    rmm_index_entry_t entry;

    if (is_floor(map, *cached, address)) {
        return *cached;
    }
    if (!rmm__index_at(&map->tree_nodes, &map->tree, address, &entry)) {
        return NIL;
    }
    *cached = entry.block;
    return entry.block;
}

/* --- changes ----------------------------------------------------------------------- */

/* The link from a block, or from before all (NIL), to the next one. */
static uint32_t *next_of(rmm_live_map_t *map, uint32_t index)
{
    return index == NIL ? &map->first : &map->nodes[index].next;
}

uint32_t rmm__live_map_insert(rmm_live_map_t *map, uint64_t start, uint64_t end)
{
    /* by the last byte, as rmm__live_map_overlap() was called before */
    uint32_t floor = find_floor(map, end - 1);
    uint32_t index = take_node(map);
    uint32_t next = NIL;

    if (index == NIL) {
        return NIL;
    }
    next = *next_of(map, floor);
    map->nodes[index] = (rmm_live_node_t){start, end, floor, next};
    *next_of(map, floor) = index;
    if (next != NIL) {
        map->nodes[next].previous = index;
    }
    rmm__index_insert(
        &map->tree_nodes, &map->tree, &(rmm_index_entry_t){start, 1, index});
    *cached_for(map, start) = index;
    *cached_for(map, end - 1) = index;
    map->low = map->count == 0 || start < map->low ? start : map->low;
    map->high = map->count == 0 || end > map->high ? end : map->high;
    map->count++;
    return index;
}

void rmm__live_map_erase(rmm_live_map_t *map, uint32_t index)
{
    const rmm_live_node_t erased = map->nodes[index];
    uint32_t previous = erased.previous;
    uint32_t next = erased.next;

    *next_of(map, previous) = next;
    if (next != NIL) {
        map->nodes[next].previous = previous;
    }
    rmm__index_remove(&map->tree_nodes, &map->tree, erased.start);
    give_node(map, index);
    map->count--;
    if (previous != NIL) {
        *cached_for(map, erased.start) = previous;
        *cached_for(map, erased.end - 1) = previous;
    } else {
        map->low = next != NIL ? map->nodes[next].start : 0;
    }
    if (next == NIL) {
        map->high = previous != NIL ? map->nodes[previous].end : 0;
    }
}

/* --- questions --------------------------------------------------------------------- */

uint32_t rmm__live_map_find(rmm_live_map_t *map, uint64_t address)
{
    uint32_t index = NIL;

    if (address < map->low || address >= map->high) {
        return NIL;
    }
    index = find_floor(map, address);
    return index != NIL && contains(&map->nodes[index], address) ? index : NIL;
}

uint32_t rmm__live_map_overlap(rmm_live_map_t *map, uint64_t start, uint64_t end)
{
    uint32_t index = NIL;

    if (end <= map->low || start >= map->high) {
        return NIL;
    }
    index = find_floor(map, end - 1);
    return index != NIL && map->nodes[index].end > start ? index : NIL;
}

void rmm__live_map_around(
    rmm_live_map_t *map, uint64_t address, uint32_t *before_out, uint32_t *behind_out)
{
    *before_out = find_floor(map, address);
    *behind_out = *next_of(map, *before_out);
}

/* --- check ------------------------------------------------------------------------- */

static bool count_entry(void *count, const rmm_index_entry_t *entry)
{
    (void)entry;
    ++*(uint32_t *)count;
    return true;
}

/* The tree has each block of the list, and no other. */
static bool check_tree(const rmm_live_map_t *map)
{
    uint32_t entries = 0;

    if (rmm__index_check(&map->tree_nodes, &map->tree) != NULL) {
        return false;
    }
    rmm__index_walk(&map->tree_nodes, &map->tree, 1, count_entry, &entries);
    for (uint32_t index = map->first; index != NIL; index = map->nodes[index].next) {
        rmm_index_entry_t entry = {.block = NIL};

        (void)rmm__index_at(
            &map->tree_nodes, &map->tree, map->nodes[index].start, &entry);
        if (entry.block != index) {
            return false;
        }
    }
    return entries == map->count;
}

bool rmm__live_map_check(const rmm_live_map_t *map)
{
    uint64_t end = 0;
    uint32_t live = 0, idle = 0, previous = NIL;
    bool good = true;

    for (uint32_t index = map->first; index != NIL && live <= map->count; live++) {
        const rmm_live_node_t *node = &map->nodes[index];

        good = good && node->previous == previous && node->start >= end &&
               node->end > node->start;
        end = node->end;
        previous = index;
        index = node->next;
    }
    for (uint32_t index = map->free; index != NIL && idle <= map->fresh; idle++) {
        good = good && map->nodes[index].end == 0;
        index = map->nodes[index].next;
    }
    return good && live == map->count && live + idle == map->fresh &&
           map->fresh <= map->capacity && end == map->high && check_tree(map);
}
