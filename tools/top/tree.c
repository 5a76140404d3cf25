/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Orders resources by their upstreams; see tree.h. Quadratic in the resources of one program, of
 * which there are some ten.
 */
#include "top/tree.h"

#include <stdlib.h>

typedef struct tree {
    const node_resource_t *first; /* of the program's */
    uint32_t count;
    bool *is_placed;
    tree_line_t *lines;
    uint32_t line_count;
    uint32_t *path; /* from the root to the last line */
} tree_t;

static bool has_upstream(const tree_t *tree, const node_resource_t *resource)
{
    for (uint32_t i = 0; resource->upstream_id != 0 && i < tree->count; i++) {
        if (tree->first[i].instance_id == resource->upstream_id) {
            return true;
        }
    }
    return false;
}

static void place(tree_t *tree, uint32_t index, uint32_t depth)
{
    tree->is_placed[index] = true;
    tree->lines[tree->line_count++] = (tree_line_t){&tree->first[index], depth};
}

/* The next one directly below a resource; count: none is left. */
static uint32_t next_below(const tree_t *tree, const node_resource_t *upstream)
{
    uint32_t i = 0;
    while (i < tree->count && (tree->is_placed[i] ||
                               tree->first[i].upstream_id != upstream->instance_id)) {
        i++;
    }
    return i;
}

/* Depth first without recursion: how deep it gets is up to the program. */
static void place_root(tree_t *tree, uint32_t root)
{
    uint32_t depth = 0;
    if (tree->is_placed[root]) {
        return;
    }
    place(tree, root, 0);
    tree->path[0] = root;
    for (;;) {
        uint32_t below = next_below(tree, &tree->first[tree->path[depth]]);
        if (below < tree->count) {
            place(tree, below, ++depth);
            tree->path[depth] = below;
        } else if (depth-- == 0) {
            return;
        }
    }
}

tree_line_t *tree_make(const node_t *node, uint32_t process, uint32_t *count_out)
{
    tree_t tree = {.count = 0};
    for (uint32_t i = 0; i < node->resource_count; i++) {
        if (node->resources[i].process == process) {
            tree.first = tree.count == 0 ? &node->resources[i] : tree.first;
            tree.count++;
        }
    }
    tree.is_placed = calloc(tree.count + 1, sizeof(*tree.is_placed));
    tree.lines = calloc(tree.count + 1, sizeof(*tree.lines));
    tree.path = calloc(tree.count + 1, sizeof(*tree.path));
    if (tree.is_placed == NULL || tree.lines == NULL || tree.path == NULL) {
        free(tree.is_placed);
        free(tree.path);
        free(tree.lines);
        return NULL;
    }
    for (uint32_t i = 0; i < tree.count; i++) {
        if (!has_upstream(&tree, &tree.first[i])) {
            place_root(&tree, i);
        }
    }
    for (uint32_t i = 0; i < tree.count; i++) {
        place_root(&tree, i);
    }
    free(tree.is_placed);
    free(tree.path);
    *count_out = tree.line_count;
    return tree.lines;
}
