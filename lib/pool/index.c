/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree of index.h. A change descends once, recording the path, and then updates the path
 * upwards as far as first units, largest blocks or counts have changed.
 */
#include "pool/index_impl.h"

#include <stddef.h>
#include <string.h>

uint64_t rmm__index_nodes_for(uint64_t entries, uint64_t trees)
{
    /* besides roots: E/8 leaves, E/64 nodes above them and so on; nodes[0] is none */
    return entries / (INDEX_LEAST - 1) + trees + 1;
}

static uint32_t node_take(rmm_index_nodes_t *all)
{
    uint32_t index = all->unused;

    if (index != 0) {
        all->unused = all->nodes[index].next_unused;
    } else {
        all->used += all->used == 0; /* nodes[0] is none */
        index = all->used++;
    }
    assert(index < all->capacity && "room was reserved");
    memset(&all->nodes[index], 0, sizeof(all->nodes[index]));
    return index;
}

static void node_put(rmm_index_nodes_t *all, uint32_t index)
{
    all->nodes[index].next_unused = all->unused;
    all->unused = index;
}

static inline void entry_set(
    rmm_index_node_t *node, uint32_t at, uint64_t unit, uint32_t units, uint32_t child)
{
    node->unit[at] = unit;
    node->units[at] = units;
    node->child[at] = child;
}

/* Move `count` entries of a node, from `from` on, to `to` in another node or the same. */
static void entries_move(
    rmm_index_node_t *into, uint32_t to, const rmm_index_node_t *node, uint32_t from,
    uint32_t count)
{
    memmove(&into->unit[to], &node->unit[from], count * sizeof(node->unit[0]));
    memmove(&into->units[to], &node->units[from], count * sizeof(node->units[0]));
    memmove(&into->child[to], &node->child[from], count * sizeof(node->child[0]));
}

static void entries_clear(rmm_index_node_t *node, uint32_t from)
{
    memset(&node->units[from], 0, (INDEX_MOST - from) * sizeof(node->units[0]));
}

static void
entry_insert(rmm_index_node_t *node, uint32_t at, const rmm_index_entry_t *entry)
{
    entries_move(node, at + 1, node, at, node->count - at);
    entry_set(node, at, entry->unit, entry->units, entry->block);
    node->count++;
}

static void entry_remove(rmm_index_node_t *node, uint32_t at)
{
    entries_move(node, at, node, at + 1, node->count - at - 1);
    node->count--;
    node->units[node->count] = 0;
}

/* The entry for a node in its parent. */
static rmm_index_entry_t summary(const rmm_index_nodes_t *all, uint32_t index)
{
    const rmm_index_node_t *node = &all->nodes[index];

    return (rmm_index_entry_t){node->unit[0], largest_of(node), index};
}

/* Update the node's entry in its parent; true if it has changed. */
static bool
summarise(rmm_index_nodes_t *all, uint32_t parent, uint32_t at, uint32_t index)
{
    rmm_index_node_t *node = &all->nodes[parent];
    rmm_index_entry_t now = summary(all, index);
    bool changed = now.unit != node->unit[at] || now.units != node->units[at];

    entry_set(node, at, now.unit, now.units, index);
    return changed;
}

/* From the parent of `level` up, until nothing changes. */
static void summarise_up(
    rmm_index_nodes_t *all, uint32_t height, const path_t *path, uint32_t level)
{
    while (
        level + 1 < height &&
        summarise(all, path->node[level + 1], path->at[level + 1], path->node[level])) {
        level++;
    }
}

/* --- insert -------------------------------------------------------------------------- */

/* Move the upper half of a full node to a new node, and insert the entry in its half. */
static uint32_t split_for(
    rmm_index_nodes_t *all, uint32_t index, uint32_t at, const rmm_index_entry_t *entry)
{
    uint32_t right = node_take(all);
    rmm_index_node_t *low = &all->nodes[index];
    rmm_index_node_t *high = &all->nodes[right];

    entries_move(high, 0, low, HALF, HALF);
    entries_clear(low, HALF);
    low->count = HALF;
    high->count = HALF;
    if (at <= HALF) {
        entry_insert(low, at, entry);
    } else {
        entry_insert(high, at - HALF, entry);
    }
    return right;
}

static void grow_root(rmm_index_nodes_t *all, rmm_index_t *tree, uint32_t right)
{
    uint32_t root = node_take(all);
    rmm_index_entry_t low = summary(all, tree->root);
    rmm_index_entry_t high = summary(all, right);

    entry_insert(&all->nodes[root], 0, &low);
    entry_insert(&all->nodes[root], 1, &high);
    tree->root = root;
    tree->height++;
}

void rmm__index_insert(
    rmm_index_nodes_t *all, rmm_index_t *tree, const rmm_index_entry_t *entry)
{
    rmm_index_entry_t fresh = *entry;
    uint32_t level = 0;
    uint32_t at;
    path_t path;

    tree->largest = entry->units > tree->largest ? entry->units : tree->largest;
    if (tree->root == 0) {
        tree->root = node_take(all);
        tree->height = 1;
        entry_insert(&all->nodes[tree->root], 0, entry);
        return;
    }
    descend(all, tree, entry->unit, &path);
    at = path.at[0] + (all->nodes[path.node[0]].unit[path.at[0]] < entry->unit);
    while (all->nodes[path.node[level]].count == INDEX_MOST) {
        uint32_t right = split_for(all, path.node[level], at, &fresh);

        if (level + 1 == tree->height) {
            grow_root(all, tree, right);
            return;
        }
        (void)summarise(
            all, path.node[level + 1], path.at[level + 1], path.node[level]);
        fresh = summary(all, right);
        level++;
        at = path.at[level] + 1;
    }
    entry_insert(&all->nodes[path.node[level]], at, &fresh);
    summarise_up(all, tree->height, &path, level);
}

/* --- remove -------------------------------------------------------------------------- */

/* Merge two adjacent nodes of one parent, of which one has too few entries, or divide their
 * entries equally. */
static void balance(rmm_index_nodes_t *all, uint32_t parent, uint32_t left_at)
{
    rmm_index_node_t *node = &all->nodes[parent];
    uint32_t left = node->child[left_at];
    uint32_t right = node->child[left_at + 1];
    rmm_index_node_t *low = &all->nodes[left];
    rmm_index_node_t *high = &all->nodes[right];
    uint32_t total = low->count + high->count;
    uint32_t keep = total <= INDEX_MOST * 3 / 4 ? total : total / 2;

    if (low->count < keep) {
        uint32_t count = keep - low->count;

        entries_move(low, low->count, high, 0, count);
        entries_move(high, 0, high, count, high->count - count);
        high->count -= count;
        entries_clear(high, high->count);
    } else {
        uint32_t count = low->count - keep;

        entries_move(high, count, high, 0, high->count);
        entries_move(high, 0, low, keep, count);
        high->count += count;
        entries_clear(low, keep);
    }
    low->count = keep;
    (void)summarise(all, parent, left_at, left);
    if (high->count == 0) {
        node_put(all, right);
        entry_remove(node, left_at + 1);
    } else {
        (void)summarise(all, parent, left_at + 1, right);
    }
}

static void shrink_root(rmm_index_nodes_t *all, rmm_index_t *tree)
{
    uint32_t root = tree->root;

    if (all->nodes[root].count == 0) {
        node_put(all, root);
        *tree = (rmm_index_t){0};
    } else if (tree->height > 1 && all->nodes[root].count == 1) {
        tree->root = all->nodes[root].child[0];
        tree->height--;
        node_put(all, root);
    }
}

void rmm__index_remove(rmm_index_nodes_t *all, rmm_index_t *tree, uint64_t unit)
{
    path_t path;
    uint32_t units, level = 0;

    descend(all, tree, unit, &path);
    assert(all->nodes[path.node[0]].unit[path.at[0]] == unit && "it is in the tree");
    units = all->nodes[path.node[0]].units[path.at[0]];
    entry_remove(&all->nodes[path.node[0]], path.at[0]);
    while (level + 1 < tree->height &&
           all->nodes[path.node[level]].count < INDEX_LEAST) {
        uint32_t parent = path.node[level + 1];
        uint32_t at = path.at[level + 1];
        bool is_last = at + 1 == all->nodes[parent].count;

        balance(all, parent, is_last ? at - 1 : at);
        level++;
    }
    summarise_up(all, tree->height, &path, level);
    shrink_root(all, tree);
    if (units == tree->largest && tree->root != 0) {
        tree->largest = largest_of(&all->nodes[tree->root]);
    }
}

/* --- change -------------------------------------------------------------------------- */

/* The node's largest entry, which was `largest`, after an entry has changed from `before`
 * units to `now`. */
static inline uint32_t largest_after(
    const rmm_index_node_t *node, uint32_t largest, uint32_t before, uint32_t now)
{
    if (now >= largest) {
        return now;
    }
    return before < largest ? largest : largest_of(node);
}

static void change_above(
    rmm_index_nodes_t *all, const rmm_index_t *tree, const path_t *path,
    const rmm_index_entry_t *entry)
{
    rmm_index_node_t *node = &all->nodes[path->node[0]];
    uint32_t before = node->units[path->at[0]];
    uint32_t now = entry->units;

    entry_set(node, path->at[0], entry->unit, now, entry->block);
    for (uint32_t level = 1; level < tree->height; level++) {
        rmm_index_node_t *parent = &all->nodes[path->node[level]];
        uint32_t at = path->at[level];
        uint32_t known = parent->units[at];

        now = largest_after(node, known, before, now);
        if (now == known && node->unit[0] == parent->unit[at]) {
            return;
        }
        parent->units[at] = now;
        parent->unit[at] = node->unit[0];
        before = known;
        node = parent;
    }
}

void rmm__index_change(
    rmm_index_nodes_t *all, rmm_index_t *tree, uint64_t unit,
    const rmm_index_entry_t *entry)
{
    path_t path;
    uint32_t before;

    descend(all, tree, unit, &path);
    assert(all->nodes[path.node[0]].unit[path.at[0]] == unit && "it is in the tree");
    before = all->nodes[path.node[0]].units[path.at[0]];
    change_above(all, tree, &path, entry);
    tree->largest =
        largest_after(&all->nodes[tree->root], tree->largest, before, entry->units);
}
