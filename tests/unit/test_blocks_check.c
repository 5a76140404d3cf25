/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the block manager's check reports: each rule is broken in turn, by hand, and must be
 * named. The other tests of the manager rely on it.
 */
#include "unit/blocks_fixture.h"

/*
 * Of eight blocks of 128 units, 0, 2, 4, 6 and 7 are live; 1 is free in `heap`, 3 in
 * `other`, and 5 was freed last into `heap`. Behind them an old block of another run.
 */
typedef struct scene {
    fixture_t *f;
    rmm_blocks_t *b;
    uint32_t node[8];
    rmm_heap_body_t *heap, *other;
} scene_t;

static scene_t scene_open(fixture_t *f)
{
    scene_t s = {.f = f, .b = f->blocks};

    fill(f, s.node, 8, 128);
    add_run(f, f->heap, f->first + 5000, 10, 2);
    give(f, s.node[1], f->heap, 4);
    give(f, s.node[3], f->other, 5);
    assert_int_equal(rmm__blocks_oldest_stamp(f->blocks, f->heap), 2);
    assert_int_equal(rmm__blocks_oldest_stamp(f->blocks, f->other), 5);
    give(f, s.node[5], f->heap, 6);
    s.heap = &s.b->heaps[f->heap];
    s.other = &s.b->heaps[f->other];
    return s;
}

static void break_prev(scene_t *s)
{
    s->b->nodes[s->node[2]].prev = s->node[0];
}
static void break_units(scene_t *s)
{
    s->b->nodes[s->node[2]].units--;
}
static void break_empty(scene_t *s)
{
    s->b->nodes[s->node[7]].units = 0;
}
static void break_heap(scene_t *s)
{
    s->b->nodes[s->node[3]].heap = s->b->heap_count;
}
static void break_merge(scene_t *s)
{
    s->b->nodes[s->node[2]].heap = s->f->heap;
}
static void break_lookup(scene_t *s)
{
    memset(s->b->table, 0, sizeof(*s->b->table) << (64 - s->b->table_shift));
}
static void break_frontier(scene_t *s)
{
    s->b->frontier--;
}
static void break_next(scene_t *s)
{
    s->b->nodes[s->node[7]].next = s->b->used_nodes;
}
static void break_next_unused(scene_t *s)
{
    s->b->nodes[s->node[7]].next = s->b->unused_nodes;
}
static void break_entry(scene_t *s)
{
    s->b->index_nodes.nodes[s->heap->index.root].child[0] = s->node[2];
}
static void break_entry_range(scene_t *s)
{
    s->b->index_nodes.nodes[s->heap->index.root].child[0] = UINT32_MAX;
}
static void break_index(scene_t *s)
{
    s->b->index_nodes.nodes[s->heap->index.root].unit[1] = 0;
}
static void break_free_count(scene_t *s)
{
    s->heap->free_count++;
}
static void break_free_units(scene_t *s)
{
    s->heap->free_units++;
}
static void break_recent(scene_t *s)
{
    s->heap->recent = s->node[6];
}
static void break_recent_range(scene_t *s)
{
    s->heap->recent = s->b->used_nodes;
}
static void break_recent_age(scene_t *s)
{
    s->b->ages[s->node[5]].stamp = 3;
}
static void break_oldest(scene_t *s)
{
    s->heap->oldest = s->node[1];
}
static void break_oldest_heap(scene_t *s)
{
    s->other->oldest = s->heap->oldest;
}
static void break_newer_range(scene_t *s)
{
    s->b->ages[s->node[1]].newer = s->b->used_nodes;
}
static void break_newer(scene_t *s)
{
    s->b->ages[s->heap->oldest].newer = 0;
    s->heap->newest = s->heap->oldest;
}
static void break_newer_loop(scene_t *s)
{
    s->b->ages[s->node[1]].newer = s->heap->oldest;
}
static void break_newest(scene_t *s)
{
    s->heap->newest = s->heap->oldest;
}
static void break_stamp(scene_t *s)
{
    s->b->ages[s->heap->oldest].stamp = 5;
}
static void break_destroyed(scene_t *s)
{
    s->other->in_use = 0;
}
static void break_total(scene_t *s)
{
    s->b->total_free_units++;
}
static void break_live_count(scene_t *s)
{
    s->b->live_count++;
}
static void break_table_range(scene_t *s)
{
    s->b->nodes[s->node[5]].link = s->b->used_nodes;
}
static void break_table_free(scene_t *s)
{
    s->b->nodes[s->node[5]].link = s->node[1];
}
static void break_table_slot(scene_t *s)
{
    uint32_t slot = bucket_of(s->b, s->b->nodes[s->node[5]].unit);

    s->b->table[slot ^ 1] = s->node[5];
    s->b->table[slot] = s->b->nodes[s->node[5]].link;
}
static void break_table_loop(scene_t *s)
{
    s->b->nodes[s->node[5]].link = s->node[5];
}
static void break_table_recent(scene_t *s)
{
    table_remove(s->b, s->node[5]);
}
static void break_unused(scene_t *s)
{
    s->b->unused_nodes = s->b->nodes[s->b->unused_nodes].link;
}
static void break_unused_range(scene_t *s)
{
    s->b->nodes[s->b->unused_nodes].link = s->b->used_nodes;
}
static void break_unused_loop(scene_t *s)
{
    s->b->nodes[s->b->unused_nodes].link = s->b->unused_nodes;
}
static void break_capacity(scene_t *s)
{
    s->b->age_capacity = s->b->used_nodes - 1;
}
static void break_nobody(scene_t *s)
{
    s->b->nodes[0].heap = RMM_HEAP_NONE;
}

static const struct {
    void (*damage)(scene_t *s);
    const char *sentence;
} damages[] = {
    {break_prev, "a block's link to its lower neighbour is wrong"},
    {break_units, "there is a gap or an overlap in a run"},
    {break_empty, "a block is empty"},
    {break_heap, "a free block's heap does not exist"},
    {break_merge, "two free neighbours did not merge"},
    {break_lookup, "a live block is not found by its unit"},
    {break_frontier, "a live block is beyond the frontier"},
    {break_next, "a neighbour's index is out of range"},
    {break_next_unused, "a run has an unused node"},
    {break_entry, "an index and its blocks differ"},
    {break_entry_range, "an index and its blocks differ"},
    {break_index, "the index is not in the order of addresses"},
    {break_free_count, "a heap's count of blocks is wrong"},
    {break_free_units, "a heap's count of units is wrong"},
    {break_recent, "a heap's recent block is not in the heap"},
    {break_recent_range, "a heap's recent block is not in the heap"},
    {break_recent_age, "a recent block is older than a settled one"},
    {break_oldest, "an age list is not linked both ways"},
    {break_oldest_heap, "a block is in another heap's age list"},
    {break_newer_range, "an age list's index is out of range"},
    {break_newer, "an age list has too few blocks"},
    {break_newer_loop, "an age list has too many blocks"},
    {break_newest, "an age list's newest block is wrong"},
    {break_stamp, "an age list is not in order"},
    {break_destroyed, "a free block's heap does not exist"},
    {break_total, "the total of free units is wrong"},
    {break_live_count, "the count of live blocks is wrong"},
    {break_table_range, "the table's index is out of range"},
    {break_table_free, "a settled free block is in the table"},
    {break_table_slot, "a block is in a wrong bucket"},
    {break_table_loop, "the table's chains have no end"},
    {break_table_recent, "runs and table differ in blocks"},
    {break_unused, "a node is lost"},
    {break_unused_range, "an unused node's index is out of range"},
    {break_unused_loop, "the list of unused nodes has no end"},
    {break_capacity, "more nodes are used than there are"},
    {break_nobody, "node 0 is in a heap"},
};

TEST_CASE(every_broken_rule_is_named)
{
    for (size_t i = 0; i < sizeof(damages) / sizeof(damages[0]); i++) {
        void *fixture = NULL;
        scene_t scene;
        rmm_blocks_t whole;
        const char *wrong;

        fixture_setup(&fixture);
        scene = scene_open(fixture);
        assert_null(rmm__blocks_check(scene.b));
        whole = *scene.b;
        damages[i].damage(&scene);
        wrong = rmm__blocks_check(scene.b);
        if (wrong == NULL || strcmp(wrong, damages[i].sentence) != 0) {
            fail_msg(
                "%s, and not: %s", wrong == NULL ? "nothing" : wrong,
                damages[i].sentence);
        }
        *scene.b = whole; /* what areas there are */
        rmm__blocks_destroy(scene.b);
        free(fixture);
    }
}
