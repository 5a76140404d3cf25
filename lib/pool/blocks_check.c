/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks all structures for consistency. Every walk is bounded by a count, so that a broken
 * list gives an error and not an endless loop. Allocates nothing, changes nothing.
 *
 * Each settled free block is visited three times: in its run, in its heap's index and in its
 * heap's age list. If the three counts agree, and every block visited in a heap names that
 * heap, the three are the same set.
 */
#include "pool/blocks_impl.h"

#define REQUIRE(condition, sentence)                                                   \
    do {                                                                               \
        if (!(condition)) {                                                            \
            return sentence;                                                           \
        }                                                                              \
    } while (0)

typedef struct tally {
    uint64_t free_units, free_count, live_count, recent, nodes;
} tally_t;

static const char *check_free_block(
    const rmm_blocks_t *blocks, uint32_t index, uint32_t prev, tally_t *tally)
{
    const rmm_block_node_t *node = &blocks->nodes[index];
    bool is_recent = node_is_recent(blocks, index);

    REQUIRE(heap_is_valid(blocks, node->heap), "a free block's heap does not exist");
    REQUIRE(
        !merges_with(blocks, prev, node->heap, blocks->ages[index].stamp) ||
            is_recent || node_is_recent(blocks, prev),
        "two free neighbours did not merge");
    tally->recent += is_recent;
    tally->free_count++;
    tally->free_units += node->units;
    return NULL;
}

static const char *
check_block(const rmm_blocks_t *blocks, uint32_t index, uint32_t prev, tally_t *tally)
{
    const rmm_block_node_t *node = &blocks->nodes[index];
    const rmm_block_node_t *before = &blocks->nodes[prev];

    REQUIRE(node->prev == prev, "a block's link to its lower neighbour is wrong");
    REQUIRE(node->units > 0, "a block is empty");
    REQUIRE(
        prev == 0 || before->unit + before->units == node->unit,
        "there is a gap or an overlap in a run");
    if (!node_is_live(node)) {
        return check_free_block(blocks, index, prev, tally);
    }
    REQUIRE(
        rmm__blocks_find(blocks, node->unit) == index,
        "a live block is not found by its unit");
    REQUIRE(
        node->unit + node->units <= blocks->frontier,
        "a live block is beyond the frontier");
    tally->live_count++;
    return NULL;
}

static const char *check_runs(const rmm_blocks_t *blocks, tally_t *tally)
{
    for (uint32_t first = 1; first < blocks->used_nodes; first++) {
        uint32_t prev = 0;

        if (blocks->nodes[first].heap == HEAP_UNUSED ||
            blocks->nodes[first].prev != 0) {
            continue;
        }
        for (uint32_t index = first; index != 0; index = blocks->nodes[index].next) {
            const char *wrong;

            REQUIRE(index < blocks->used_nodes, "a neighbour's index is out of range");
            REQUIRE(
                blocks->nodes[index].heap != HEAP_UNUSED, "a run has an unused node");
            REQUIRE(++tally->nodes < blocks->used_nodes, "a run has no end");
            wrong = check_block(blocks, index, prev, tally);
            REQUIRE(wrong == NULL, wrong);
            prev = index;
        }
    }
    return NULL;
}

typedef struct index_tally {
    const rmm_blocks_t *blocks;
    rmm_heap_t heap;
    uint64_t free_units;
    uint32_t free_count;
    bool is_right;
} index_tally_t;

static bool tally_entry(void *context, const rmm_index_entry_t *entry)
{
    index_tally_t *tally = context;
    const rmm_block_node_t *node;

    if (entry->block >= tally->blocks->used_nodes) {
        tally->is_right = false;
        return false;
    }
    node = &tally->blocks->nodes[entry->block];
    tally->is_right = node->heap == tally->heap && node->unit == entry->unit &&
                      node->units == entry->units;
    tally->free_units += entry->units;
    tally->free_count++;
    return tally->is_right;
}

static const char *check_ages(const rmm_blocks_t *blocks, rmm_heap_t heap)
{
    const rmm_heap_body_t *body = &blocks->heaps[heap];
    uint32_t older = 0, count = 0;
    uint64_t stamp = 0;

    for (uint32_t index = body->oldest; index != 0; index = blocks->ages[index].newer) {
        REQUIRE(index < blocks->used_nodes, "an age list's index is out of range");
        REQUIRE(++count <= body->free_count, "an age list has too many blocks");
        REQUIRE(
            blocks->nodes[index].heap == heap, "a block is in another heap's age list");
        REQUIRE(
            blocks->ages[index].older == older, "an age list is not linked both ways");
        REQUIRE(blocks->ages[index].stamp >= stamp, "an age list is not in order");
        stamp = blocks->ages[index].stamp;
        older = index;
    }
    REQUIRE(body->newest == older, "an age list's newest block is wrong");
    REQUIRE(count == body->free_count, "an age list has too few blocks");
    return NULL;
}

static const char *
check_recent(const rmm_blocks_t *blocks, rmm_heap_t heap, uint64_t *free_units)
{
    const rmm_heap_body_t *body = &blocks->heaps[heap];

    if (body->recent == 0) {
        return NULL;
    }
    REQUIRE(
        body->recent < blocks->used_nodes && blocks->nodes[body->recent].heap == heap,
        "a heap's recent block is not in the heap");
    REQUIRE(
        body->newest == 0 ||
            blocks->ages[body->newest].stamp <= blocks->ages[body->recent].stamp,
        "a recent block is older than a settled one");
    *free_units += blocks->nodes[body->recent].units;
    return NULL;
}

static const char *check_heap(const rmm_blocks_t *blocks, rmm_heap_t heap)
{
    const rmm_heap_body_t *body = &blocks->heaps[heap];
    index_tally_t tally = {.blocks = blocks, .heap = heap, .is_right = true};
    const char *wrong = rmm__index_check(&blocks->index_nodes, &body->index);

    REQUIRE(wrong == NULL, wrong);
    rmm__index_walk(&blocks->index_nodes, &body->index, 1, tally_entry, &tally);
    REQUIRE(tally.is_right, "an index and its blocks differ");
    REQUIRE(tally.free_count == body->free_count, "a heap's count of blocks is wrong");
    wrong = check_recent(blocks, heap, &tally.free_units);
    REQUIRE(wrong == NULL, wrong);
    REQUIRE(tally.free_units == body->free_units, "a heap's count of units is wrong");
    return check_ages(blocks, heap);
}

static const char *check_heaps(const rmm_blocks_t *blocks, const tally_t *tally)
{
    uint64_t free_units = 0, free_count = 0;

    for (rmm_heap_t heap = 0; heap < blocks->heap_count; heap++) {
        const rmm_heap_body_t *body = &blocks->heaps[heap];
        const char *wrong = check_heap(blocks, heap);

        REQUIRE(wrong == NULL, wrong);
        REQUIRE(
            body->in_use == 1 || body->free_units == 0,
            "a destroyed heap is not empty");
        free_units += body->free_units;
        free_count += body->free_count + (body->recent != 0);
    }
    REQUIRE(free_count == tally->free_count, "runs and heaps differ in blocks");
    REQUIRE(free_units == tally->free_units, "runs and heaps differ in units");
    REQUIRE(free_units == blocks->total_free_units, "the total of free units is wrong");
    return NULL;
}

static const char *check_table(const rmm_blocks_t *blocks, const tally_t *tally)
{
    size_t buckets = (size_t)1 << (64 - blocks->table_shift);
    uint32_t count = 0;

    for (size_t bucket = 0; bucket < buckets; bucket++) {
        for (uint32_t index = blocks->table[bucket]; index != 0;
             index = blocks->nodes[index].link) {
            const rmm_block_node_t *node = &blocks->nodes[index];

            REQUIRE(index < blocks->used_nodes, "the table's index is out of range");
            REQUIRE(++count < blocks->used_nodes, "the table's chains have no end");
            REQUIRE(
                node_is_live(node) || node_is_recent(blocks, index),
                "a settled free block is in the table");
            REQUIRE(
                bucket_of(blocks, node->unit) == bucket,
                "a block is in a wrong bucket");
        }
    }
    REQUIRE(
        tally->live_count == blocks->live_count, "the count of live blocks is wrong");
    REQUIRE(
        count == tally->live_count + tally->recent, "runs and table differ in blocks");
    return NULL;
}

static const char *check_nodes(const rmm_blocks_t *blocks, const tally_t *tally)
{
    uint64_t unused = 0;

    for (uint32_t index = blocks->unused_nodes; index != 0;
         index = blocks->nodes[index].link) {
        REQUIRE(index < blocks->used_nodes, "an unused node's index is out of range");
        REQUIRE(++unused < blocks->used_nodes, "the list of unused nodes has no end");
    }
    REQUIRE(1 + tally->nodes + unused == blocks->used_nodes, "a node is lost");
    REQUIRE(
        blocks->used_nodes <= blocks->node_capacity &&
            blocks->used_nodes <= blocks->age_capacity,
        "more nodes are used than there are");
    REQUIRE(blocks->nodes[0].heap == HEAP_UNUSED, "node 0 is in a heap");
    return NULL;
}

const char *rmm__blocks_check(const rmm_blocks_t *blocks)
{
    tally_t tally = {.nodes = 0};
    const char *wrong = check_runs(blocks, &tally);

    wrong = wrong != NULL ? wrong : check_heaps(blocks, &tally);
    wrong = wrong != NULL ? wrong : check_table(blocks, &tally);
    return wrong != NULL ? wrong : check_nodes(blocks, &tally);
}
