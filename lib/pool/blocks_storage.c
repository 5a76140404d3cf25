/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Creation and destruction of the block manager, its storage, heaps and runs:
 * everything that is rare. The hot part is blocks.c; the structures and their rules are in
 * blocks_impl.h.
 *
 * Storage grows area by area. Each area is consistent by itself, so that a growth that fails
 * half way only leaves one area larger than needed. The index always has room for every node
 * and every heap, so that a free needs no storage.
 */
#include "pool/blocks_impl.h"

#define FIRST_BUCKETS_LOG2 6
#define FIRST_NODES 64
#define NODES_AT_ONCE 32
#define FIRST_HEAPS 4

static void *resize(rmm_blocks_t *blocks, void *old, size_t old_bytes, size_t new_bytes)
{
    return blocks->storage.resize(blocks->storage.context, old, old_bytes, new_bytes);
}

static void release(rmm_blocks_t *blocks, void *area, size_t bytes)
{
    if (area != NULL) {
        resize(blocks, area, bytes, 0);
    }
}

/* Change the capacity of an array; false: it stays as it is. */
static bool grow(
    rmm_blocks_t *blocks, void **array, size_t element_bytes, uint32_t *capacity,
    uint64_t wanted)
{
    void *grown;

    if (wanted > UINT32_MAX) {
        return false;
    }
    grown = resize(blocks, *array, *capacity * element_bytes, wanted * element_bytes);
    if (grown == NULL) {
        return false;
    }
    *array = grown;
    *capacity = (uint32_t)wanted;
    return true;
}

/* --- nodes, index, table ------------------------------------------------------------- */

/* Room for any of these nodes to be free in any of these heaps. */
static bool
index_reserve(rmm_blocks_t *blocks, uint32_t node_capacity, uint32_t heap_capacity)
{
    rmm_index_nodes_t *all = &blocks->index_nodes;
    uint64_t wanted = rmm__index_nodes_for(node_capacity, heap_capacity);

    return wanted <= all->capacity || grow(
                                          blocks, (void **)&all->nodes,
                                          sizeof(*all->nodes), &all->capacity, wanted);
}

static bool grow_nodes(rmm_blocks_t *blocks)
{
    uint64_t wanted =
        blocks->used_nodes == 0 ? FIRST_NODES : 2 * (uint64_t)blocks->used_nodes;

    if (blocks->node_capacity < wanted &&
        !grow(
            blocks, (void **)&blocks->nodes, sizeof(*blocks->nodes),
            &blocks->node_capacity, wanted)) {
        return false;
    }
    if (blocks->age_capacity < wanted &&
        !grow(
            blocks, (void **)&blocks->ages, sizeof(*blocks->ages),
            &blocks->age_capacity, wanted)) {
        return false;
    }
    return true;
}

/*
 * Put nodes that were never used on the list of unused ones. Only a few at a time, because
 * touching storage may commit it.
 */
static bool add_nodes(rmm_blocks_t *blocks)
{
    uint32_t end = blocks->used_nodes + NODES_AT_ONCE; /* divides every capacity */

    if ((blocks->used_nodes == blocks->node_capacity ||
         blocks->used_nodes == blocks->age_capacity) &&
        !grow_nodes(blocks)) {
        return false;
    }
    if (!index_reserve(blocks, blocks->node_capacity, blocks->heap_capacity)) {
        return false;
    }
    for (uint32_t index = end - 1; index >= blocks->used_nodes && index != 0; index--) {
        node_put(blocks, index);
    }
    blocks->nodes[0].heap = HEAP_UNUSED;
    blocks->used_nodes = end;
    return true;
}

static size_t table_buckets(const rmm_blocks_t *blocks)
{
    return blocks->table == NULL ? 0 : (size_t)1 << (64 - blocks->table_shift);
}

static bool grow_table(rmm_blocks_t *blocks)
{
    size_t old_buckets = table_buckets(blocks);
    size_t buckets =
        old_buckets == 0 ? (size_t)1 << FIRST_BUCKETS_LOG2 : 2 * old_buckets;
    uint32_t *table = resize(blocks, NULL, 0, buckets * sizeof(*table));

    if (table == NULL) {
        return false;
    }
    blocks->table_shift =
        old_buckets == 0 ? 64 - FIRST_BUCKETS_LOG2 : blocks->table_shift - 1;
    blocks->table_limit =
        buckets / 2 > UINT32_MAX ? UINT32_MAX : (uint32_t)(buckets / 2);
    for (size_t i = 0; i < old_buckets; i++) {
        uint32_t index = blocks->table[i];

        while (index != 0) {
            rmm_block_node_t *node = &blocks->nodes[index];
            uint32_t next = node->link;
            uint32_t bucket = bucket_of(blocks, node->unit);

            node->link = table[bucket];
            table[bucket] = index;
            index = next;
        }
    }
    release(blocks, blocks->table, old_buckets * sizeof(*table));
    blocks->table = table;
    return true;
}

bool rmm__blocks_reserve(rmm_blocks_t *blocks)
{
    uint32_t first = blocks->unused_nodes;
    bool has_two = first != 0 && blocks->nodes[first].link != 0;

    if (!has_two && !add_nodes(blocks)) {
        return false;
    }
    /* the heaps' recent blocks are in the table as well, and heaps come without a reserve */
    while ((uint64_t)blocks->live_count + blocks->heap_count + 1 >=
           blocks->table_limit) {
        if (!grow_table(blocks)) {
            return false;
        }
    }
    return true;
}

/* --- creation, destruction, heaps ---------------------------------------------------- */

rmm_blocks_t *rmm__blocks_create(const rmm_blocks_storage_t *storage)
{
    rmm_blocks_t *blocks = storage->resize(storage->context, NULL, 0, sizeof(*blocks));

    if (blocks == NULL) {
        return NULL;
    }
    blocks->storage = *storage;
    if (!rmm__blocks_reserve(blocks)) {
        rmm__blocks_destroy(blocks);
        return NULL;
    }
    return blocks;
}

void rmm__blocks_destroy(rmm_blocks_t *blocks)
{
    if (blocks == NULL) {
        return;
    }
    release(blocks, blocks->nodes, blocks->node_capacity * sizeof(*blocks->nodes));
    release(blocks, blocks->ages, blocks->age_capacity * sizeof(*blocks->ages));
    release(
        blocks, blocks->index_nodes.nodes,
        blocks->index_nodes.capacity * sizeof(*blocks->index_nodes.nodes));
    release(blocks, blocks->table, table_buckets(blocks) * sizeof(*blocks->table));
    release(blocks, blocks->heaps, blocks->heap_capacity * sizeof(*blocks->heaps));
    release(blocks, blocks, sizeof(*blocks));
}

rmm_blocks_result_t rmm__blocks_heap_create(rmm_blocks_t *blocks, rmm_heap_t *heap_out)
{
    rmm_heap_t heap = blocks->heap_count;

    if (blocks->unused_heaps != 0) {
        heap = blocks->unused_heaps - 1;
        blocks->unused_heaps = blocks->heaps[heap].next_unused;
    } else {
        uint32_t capacity = blocks->heap_capacity;
        uint32_t wanted = capacity == 0 ? FIRST_HEAPS : 2 * capacity;

        if (heap == capacity &&
            (!index_reserve(blocks, blocks->node_capacity, wanted) ||
             !grow(
                 blocks, (void **)&blocks->heaps, sizeof(*blocks->heaps),
                 &blocks->heap_capacity, wanted))) {
            return RMM_BLOCKS_NO_STORAGE;
        }
        blocks->heap_count++;
    }
    blocks->heaps[heap].in_use = 1;
    blocks->heaps[heap].tag = 0;
    *heap_out = heap;
    return RMM_BLOCKS_OK;
}

void rmm__blocks_heap_destroy(rmm_blocks_t *blocks, rmm_heap_t heap)
{
    rmm_heap_body_t *body = &blocks->heaps[heap];

    assert(heap_is_valid(blocks, heap));
    assert(body->free_units == 0 && "a heap that is destroyed is empty");
    body->in_use = 0;
    body->next_unused = blocks->unused_heaps;
    blocks->unused_heaps = heap + 1;
}

/* --- runs ---------------------------------------------------------------------------- */

rmm_blocks_result_t rmm__blocks_add(
    rmm_blocks_t *blocks, rmm_heap_t heap, uint64_t unit, uint32_t units,
    uint64_t stamp)
{
    rmm_heap_body_t *body;
    uint32_t index;
    uint32_t older;

    assert(heap_is_valid(blocks, heap) && units > 0);
    if (!rmm__blocks_reserve(blocks)) {
        return RMM_BLOCKS_NO_STORAGE;
    }
    rmm__blocks_settle(blocks, heap);
    body = &blocks->heaps[heap];
    index = node_take(blocks);
    blocks->nodes[index] = (rmm_block_node_t){.unit = unit, .units = units};
    heap_enter(blocks, heap, index);
    older = body->newest;
    while (older != 0 && blocks->ages[older].stamp > stamp) {
        older = blocks->ages[older].older;
    }
    blocks->ages[index].stamp = stamp;
    age_insert(blocks, body, index, older);
    body->free_units += units;
    blocks->total_free_units += units;
    check_heavily(blocks);
    return RMM_BLOCKS_OK;
}
