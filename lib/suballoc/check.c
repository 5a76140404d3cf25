/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Walks everything and checks it against itself. Every walk is bounded by a count, so that
 * a broken list ends in a sentence and not in a loop. Allocates nothing, changes nothing.
 *
 * Each settled free block is seen three times: in its region, in its heap's bins and in its
 * heap's age list. The counts of the three agree and every block seen in a heap says that it
 * belongs there, so the three are the same set.
 */
#include "suballoc/suballoc_impl.h"

#define REQUIRE(condition, sentence)                                                   \
    do {                                                                               \
        if (!(condition)) {                                                            \
            return sentence;                                                           \
        }                                                                              \
    } while (0)

typedef struct tally {
    uint64_t free_units, free_blocks, live_blocks, unsettled, nodes;
} tally_t;

static const char *check_block(
    const rmm_suballoc_t *sa, uint32_t index, uint32_t prev, uint64_t unit,
    tally_t *tally)
{
    const rmm_block_node_t *node = &sa->nodes[index];
    REQUIRE(node->prev == prev, "a block's link to its lower neighbour is wrong");
    REQUIRE(node->units > 0, "a block is empty");
    REQUIRE(node->unit == unit, "there is a gap or an overlap in a region");
    if (node->heap == RMM_HEAP_NONE) {
        REQUIRE(
            rmm__suballoc_find(sa, node->unit) == index,
            "a live block is not found by its unit");
        tally->live_blocks++;
        return NULL;
    }
    REQUIRE(heap_is_valid(sa, node->heap), "a free block's heap does not exist");
    bool unsettled = node_is_unsettled(sa, index);
    REQUIRE(
        sa->nodes[prev].heap != node->heap || unsettled || node_is_unsettled(sa, prev),
        "two free neighbours did not merge");
    tally->unsettled += unsettled;
    tally->free_blocks++;
    tally->free_units += node->units;
    return NULL;
}

static const char *
check_region(const rmm_suballoc_t *sa, const rmm_region_t *region, tally_t *tally)
{
    const rmm_block_node_t *fence = &sa->nodes[region->fence];
    REQUIRE(fence->heap == RMM_HEAP_NONE, "a fence is in a heap");
    REQUIRE(
        fence->unit == region->first_unit && fence->units == region->units,
        "a fence and its region differ");
    uint64_t unit = region->first_unit;
    uint32_t prev = region->fence;
    tally->nodes++;
    for (uint32_t index = fence->next; index != region->fence;) {
        REQUIRE(
            index != 0 && index < sa->used_nodes,
            "a neighbour's index is out of range");
        REQUIRE(++tally->nodes < sa->used_nodes, "a region's ring has no end");
        const char *wrong = check_block(sa, index, prev, unit, tally);
        REQUIRE(wrong == NULL, wrong);
        unit += sa->nodes[index].units;
        prev = index;
        index = sa->nodes[index].next;
    }
    REQUIRE(fence->prev == prev, "a fence's link to the last block is wrong");
    REQUIRE(
        unit == (uint64_t)region->first_unit + region->units,
        "the blocks do not fill their region");
    return NULL;
}

static const char *check_regions(const rmm_suballoc_t *sa, tally_t *tally)
{
    uint64_t end = 0;
    for (uint32_t i = 0; i < sa->region_count; i++) {
        const rmm_region_t *region = &sa->regions[i];
        REQUIRE(region->first_unit >= end, "regions overlap or are not in order");
        end = (uint64_t)region->first_unit + region->units;
        const char *wrong = check_region(sa, region, tally);
        REQUIRE(wrong == NULL, wrong);
    }
    return NULL;
}

static const char *check_bin(
    const rmm_suballoc_t *sa, rmm_heap_t heap, uint32_t bin, rmm_heap_body_t *sums)
{
    uint32_t prev = 0;
    for (uint32_t index = sa->heaps[heap].heads[bin]; index != 0;) {
        const rmm_block_node_t *node = &sa->nodes[index];
        REQUIRE(index < sa->used_nodes, "a bin's index is out of range");
        REQUIRE(++sums->free_blocks <= sa->used_nodes, "a bin's list has no end");
        REQUIRE(node->heap == heap, "a block is in a bin of another heap");
        REQUIRE(node->bin == bin, "a block believes that it is in another bin");
        REQUIRE(bin_of(node->units) == bin, "a block is in a bin of another size");
        REQUIRE(sa->heaps[heap].unsettled != index, "an unsettled block is in a bin");
        REQUIRE(node->link_prev == prev, "a bin's list is not linked both ways");
        sums->free_units += node->units;
        largest_enters(sums, node->units);
        prev = index;
        index = node->link_next;
    }
    return NULL;
}

static const char *
check_bins(const rmm_suballoc_t *sa, rmm_heap_t heap, rmm_heap_body_t *sums)
{
    const rmm_heap_body_t *body = &sa->heaps[heap];
    REQUIRE(body->bins[RMM_LEVEL_COUNT] == 0, "the bitmap runs over its end");
    for (uint32_t level = 0; level < RMM_LEVEL_COUNT; level++) {
        REQUIRE(
            (body->levels >> level & 1) == (body->bins[level] != 0),
            "the first bitmap and the second differ");
    }
    for (uint32_t bin = 0; bin < RMM_BIN_COUNT; bin++) {
        REQUIRE(
            (body->bins[bin / 32] >> bin % 32 & 1) == (body->heads[bin] != 0),
            "a bitmap and its bins differ");
        const char *wrong = check_bin(sa, heap, bin, sums);
        REQUIRE(wrong == NULL, wrong);
    }
    return NULL;
}

static const char *check_ages(const rmm_suballoc_t *sa, rmm_heap_t heap)
{
    const rmm_heap_body_t *body = &sa->heaps[heap];
    uint32_t older = 0, count = 0;
    uint64_t stamp = 0;
    for (uint32_t index = body->oldest; index != 0; index = sa->ages[index].newer) {
        REQUIRE(index < sa->used_nodes, "an age list's index is out of range");
        REQUIRE(++count <= body->free_blocks, "an age list has too many blocks");
        REQUIRE(sa->nodes[index].heap == heap, "a block is in another heap's age list");
        REQUIRE(sa->ages[index].older == older, "an age list is not linked both ways");
        REQUIRE(sa->ages[index].stamp >= stamp, "an age list is not in order");
        stamp = sa->ages[index].stamp;
        older = index;
    }
    REQUIRE(body->newest == older, "an age list's newest block is wrong");
    REQUIRE(count == body->free_blocks, "an age list has too few blocks");
    return NULL;
}

static const char *check_heap(const rmm_suballoc_t *sa, rmm_heap_t heap)
{
    const rmm_heap_body_t *body = &sa->heaps[heap];
    rmm_heap_body_t sums = {.free_units = 0};
    const char *wrong = check_bins(sa, heap, &sums);
    REQUIRE(wrong == NULL, wrong);
    REQUIRE(sums.free_blocks == body->free_blocks, "a heap's count of blocks is wrong");
    if (body->unsettled != 0) {
        REQUIRE(
            body->unsettled < sa->used_nodes && sa->nodes[body->unsettled].heap == heap,
            "a heap's unsettled block is not in the heap");
        REQUIRE(
            body->newest == 0 ||
                sa->ages[body->newest].stamp <= sa->ages[body->unsettled].stamp,
            "an unsettled block is older than a settled one");
        sums.free_units += sa->nodes[body->unsettled].units;
    }
    REQUIRE(sums.free_units == body->free_units, "a heap's count of units is wrong");
    REQUIRE(body->largest >= sums.largest, "a heap's largest block is understated");
    REQUIRE(
        body->largest_count == (body->largest == sums.largest ? sums.largest_count : 0),
        "a heap's count of largest blocks is wrong");
    return check_ages(sa, heap);
}

static const char *check_heaps(const rmm_suballoc_t *sa, const tally_t *tally)
{
    uint64_t free_units = 0, free_blocks = 0;
    for (rmm_heap_t heap = 0; heap < sa->heap_count; heap++) {
        const char *wrong = check_heap(sa, heap);
        REQUIRE(wrong == NULL, wrong);
        REQUIRE(
            sa->heaps[heap].in_use == 1 || sa->heaps[heap].free_units == 0,
            "a destroyed heap is not empty");
        free_units += sa->heaps[heap].free_units;
        free_blocks += sa->heaps[heap].free_blocks + (sa->heaps[heap].unsettled != 0);
    }
    REQUIRE(free_blocks == tally->free_blocks, "regions and heaps differ in blocks");
    REQUIRE(free_units == tally->free_units, "regions and heaps differ in units");
    REQUIRE(free_units == sa->total_free_units, "the total of free units is wrong");
    return NULL;
}

static const char *check_table(const rmm_suballoc_t *sa, const tally_t *tally)
{
    size_t slots = (size_t)1 << (64 - sa->table_shift);
    uint32_t count = 0;
    for (size_t slot = 0; slot < slots; slot++) {
        for (uint32_t index = sa->table[slot]; index != 0;) {
            const rmm_block_node_t *node = &sa->nodes[index];
            REQUIRE(index < sa->used_nodes, "the table's index is out of range");
            REQUIRE(++count < sa->used_nodes, "the table's chains have no end");
            REQUIRE(
                node->heap == RMM_HEAP_NONE || node_is_unsettled(sa, index),
                "a settled free block is in the table");
            REQUIRE(slot_of(sa, node->unit) == slot, "a block is in a wrong slot");
            index = node->link_next;
        }
    }
    REQUIRE(tally->live_blocks == sa->live_blocks, "the count of live blocks is wrong");
    REQUIRE(
        count == tally->live_blocks + tally->unsettled,
        "regions and table differ in blocks");
    return NULL;
}

static const char *check_nodes(const rmm_suballoc_t *sa, const tally_t *tally)
{
    uint64_t unused = 0;
    for (uint32_t index = sa->unused_nodes; index != 0;
         index = sa->nodes[index].link_next) {
        REQUIRE(index < sa->used_nodes, "an unused node's index is out of range");
        REQUIRE(++unused < sa->used_nodes, "the list of unused nodes has no end");
    }
    REQUIRE(1 + tally->nodes + unused == sa->used_nodes, "a node is lost");
    REQUIRE(
        sa->used_nodes <= sa->node_capacity && sa->used_nodes <= sa->age_capacity,
        "more nodes are used than there are");
    return NULL;
}

const char *rmm__suballoc_check(const rmm_suballoc_t *sa)
{
    tally_t tally = {.nodes = 0};
    const char *wrong = check_regions(sa, &tally);
    wrong = wrong != NULL ? wrong : check_heaps(sa, &tally);
    wrong = wrong != NULL ? wrong : check_table(sa, &tally);
    return wrong != NULL ? wrong : check_nodes(sa, &tally);
}
