/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Between index.c, which changes trees, and index_search.c, which only reads them.
 */
#ifndef RMM_POOL_INDEX_IMPL_H
#define RMM_POOL_INDEX_IMPL_H

#include "pool/index.h"

#include <assert.h>

/* 8^10 entries are more than there are blocks. */
enum { HEIGHT_MOST = 11, HALF = INDEX_MOST / 2 };

/* From the leaf, level 0, up to the root: the node and the entry that was followed. */
typedef struct path {
    uint32_t node[HEIGHT_MOST];
    uint32_t at[HEIGHT_MOST];
} path_t;

static inline uint32_t largest_of(const rmm_index_node_t *node)
{
    uint32_t largest = 0;

    for (uint32_t i = 0; i < INDEX_MOST; i++) {
        largest = node->units[i] > largest ? node->units[i] : largest;
    }
    return largest;
}

/* The last entry that begins at or below the unit; 0 if there is none. */
static inline uint32_t position_of(const rmm_index_node_t *node, uint64_t unit)
{
    uint32_t low = 0;
    uint32_t count = node->count;

    while (count > 1) {
        uint32_t half = count / 2;

        low += node->unit[low + half] <= unit ? half : 0;
        count -= half;
    }
    return low;
}

static inline void descend(
    const rmm_index_nodes_t *all, const rmm_index_t *tree, uint64_t unit, path_t *path)
{
    uint32_t index = tree->root;
    uint32_t level = tree->height;

    do { /* the tree is not empty */
        level--;
        path->node[level] = index;
        path->at[level] = position_of(&all->nodes[index], unit);
        index = all->nodes[index].child[path->at[level]];
    } while (level > 0);
}

#endif /* RMM_POOL_INDEX_IMPL_H */
