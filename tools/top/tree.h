/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The resources of a program as a tree: each below its upstream. A resource whose upstream is not
 * there is a root, and so is one of a circle, which only a program that lies can show.
 */
#ifndef RMM_TOP_TREE_H
#define RMM_TOP_TREE_H

#include "node/node.h"

typedef struct tree_line {
    const node_resource_t *resource;
    uint32_t depth;
} tree_line_t;

/* Of the program with this index, in the order in which they are drawn. NULL: no memory; free()
 * it. */
tree_line_t *tree_make(const node_t *node, uint32_t process, uint32_t *count_out);

#endif /* RMM_TOP_TREE_H */
