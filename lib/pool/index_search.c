/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Searches, walks and the check of the tree of index.h. Nothing here changes a tree.
 */
#include "pool/index_impl.h"

#include <stddef.h>

/* --- search -------------------------------------------------------------------------- */

bool rmm__index_at(
    const rmm_index_nodes_t *all, const rmm_index_t *tree, uint64_t unit,
    rmm_index_entry_t *entry_out)
{
    const rmm_index_node_t *leaf;
    uint32_t at;
    path_t path;

    if (tree->root == 0) {
        return false;
    }
    descend(all, tree, unit, &path);
    leaf = &all->nodes[path.node[0]];
    at = path.at[0];
    if (leaf->unit[at] > unit) {
        return false;
    }
    *entry_out = (rmm_index_entry_t){leaf->unit[at], leaf->units[at], leaf->child[at]};
    return true;
}

typedef struct search {
    const rmm_index_nodes_t *all;
    uint32_t units, align_units;
    rmm_index_entry_t *out;
    uint32_t count, most;
} search_t;

#define FOUR_BITS(i) 1u << (i), 1u << ((i) + 1), 1u << ((i) + 2), 1u << ((i) + 3)

/*
 * Bit i: entry i has at least `units`, which is at least 1. With a table of bits and no
 * branch, compilers turn this into a few vector instructions.
 */
static inline uint32_t large_enough(const rmm_index_node_t *node, uint32_t units)
{
    static const uint32_t bit[INDEX_MOST] = {
        FOUR_BITS(0),  FOUR_BITS(4),  FOUR_BITS(8),  FOUR_BITS(12),
        FOUR_BITS(16), FOUR_BITS(20), FOUR_BITS(24), FOUR_BITS(28)};
    uint32_t bits = 0;

    for (uint32_t i = 0; i < INDEX_MOST; i++) {
        bits |= node->units[i] >= units ? bit[i] : 0;
    }
    return bits;
}

static void search_leaf(search_t *search, const rmm_index_node_t *leaf)
{
    uint32_t bits = large_enough(leaf, search->units);

    for (; bits != 0 && search->count < search->most; bits &= bits - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(bits);
        uint32_t spare = leaf->units[i] - search->units;

        if (spare >= rmm__index_pad(leaf->unit[i], search->align_units)) {
            search->out[search->count++] =
                (rmm_index_entry_t){leaf->unit[i], leaf->units[i], leaf->child[i]};
            search->most = spare == 0 ? 0 : search->most;
        }
    }
}

static void search_below(search_t *search, uint32_t index, uint32_t height)
{
    const rmm_index_node_t *node = &search->all->nodes[index];
    uint32_t bits;

    if (height == 1) {
        search_leaf(search, node);
        return;
    }
    bits = large_enough(node, search->units);
    for (; bits != 0 && search->count < search->most; bits &= bits - 1) {
        search_below(search, node->child[__builtin_ctz(bits)], height - 1);
    }
}

uint32_t rmm__index_first_fits(
    const rmm_index_nodes_t *all, const rmm_index_t *tree, uint32_t units,
    uint32_t align_units, rmm_index_entry_t *out, uint32_t most)
{
    search_t search = {all, units, align_units, out, 0, most};

    if (tree->root != 0) {
        search_below(&search, tree->root, tree->height);
    }
    return search.count;
}

typedef struct walk {
    const rmm_index_nodes_t *all;
    uint32_t units;
    bool (*fn)(void *context, const rmm_index_entry_t *entry);
    void *context;
} walk_t;

static bool walk_below(const walk_t *walk, uint32_t index, uint32_t height)
{
    const rmm_index_node_t *node = &walk->all->nodes[index];
    bool goes_on = true;

    for (uint32_t i = 0; i < node->count && goes_on; i++) {
        rmm_index_entry_t entry = {node->unit[i], node->units[i], node->child[i]};

        if (entry.units >= walk->units) {
            goes_on = height == 1 ? walk->fn(walk->context, &entry)
                                  : walk_below(walk, entry.block, height - 1);
        }
    }
    return goes_on;
}

void rmm__index_walk(
    const rmm_index_nodes_t *all, const rmm_index_t *tree, uint32_t units,
    bool (*fn)(void *context, const rmm_index_entry_t *entry), void *context)
{
    walk_t walk = {all, units, fn, context};

    if (tree->root != 0) {
        (void)walk_below(&walk, tree->root, tree->height);
    }
}

/* --- check --------------------------------------------------------------------------- */

static const char *check_below(
    const rmm_index_nodes_t *all, uint32_t index, uint32_t height, uint64_t end);

/* The i-th entry of a node above the leaves; all units below it are less than `end`. */
static const char *check_child(
    const rmm_index_nodes_t *all, const rmm_index_node_t *node, uint32_t i,
    uint32_t height, uint64_t end)
{
    const rmm_index_node_t *child = &all->nodes[node->child[i]];

    if (node->child[i] == 0 || node->child[i] >= all->used ||
        child->count < INDEX_LEAST || child->count > INDEX_MOST) {
        return "a node of the index has too few or too many entries";
    }
    if (child->unit[0] != node->unit[i] || largest_of(child) != node->units[i]) {
        return "the index does not know a node's first or largest block";
    }
    return check_below(all, node->child[i], height - 1, end);
}

static const char *
check_below(const rmm_index_nodes_t *all, uint32_t index, uint32_t height, uint64_t end)
{
    const rmm_index_node_t *node = &all->nodes[index];

    for (uint32_t i = 0; i < node->count; i++) {
        uint64_t next = i + 1 < node->count ? node->unit[i + 1] : end;
        const char *wrong = NULL;

        if (node->unit[i] >= next) {
            return "the index is not in the order of addresses";
        }
        if (height > 1) {
            wrong = check_child(all, node, i, height, next);
        }
        if (wrong != NULL) {
            return wrong;
        }
    }
    for (uint32_t i = node->count; i < INDEX_MOST; i++) {
        if (node->units[i] != 0) {
            return "an unused entry of the index has units";
        }
    }
    return NULL;
}

const char *rmm__index_check(const rmm_index_nodes_t *all, const rmm_index_t *tree)
{
    uint32_t root = tree->root;

    if (root == 0) {
        return tree->largest == 0 ? NULL : "an empty index has a largest block";
    }
    if (root >= all->used || all->nodes[root].count > INDEX_MOST ||
        all->nodes[root].count < (tree->height > 1 ? 2 : 1)) {
        return "the root of an index has too few or too many entries";
    }
    if (tree->largest != largest_of(&all->nodes[root])) {
        return "an index does not know its largest block";
    }
    return check_below(all, root, tree->height, UINT64_MAX);
}
