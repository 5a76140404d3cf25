/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An AVL tree (Adelson-Velsky and Landis, 1962) ordered by start, in an array of nodes
 * with 32-bit links: at 100,000 blocks 17 steps. Changes keep the links they came by on
 * a stack, so no parent links and no recursion.
 */
#include "diag/live_map.h"

#include <stddef.h>
#include <stdlib.h>

#define NIL RMM_LIVE_NONE
#define MAX_HEIGHT 48 /* 1.44 log2(2^32) and a bit */

/* --- balance ----------------------------------------------------------------------- */

static uint32_t height(const rmm_live_map_t *map, uint32_t index)
{
    return index == NIL ? 0 : map->nodes[index].height;
}

static void measure(rmm_live_map_t *map, uint32_t index)
{
    rmm_live_node_t *node = &map->nodes[index];
    uint32_t left = height(map, node->left);
    uint32_t right = height(map, node->right);

    node->height = 1 + (left > right ? left : right);
}

static void rotate_left(rmm_live_map_t *map, uint32_t *link)
{
    uint32_t top = *link;
    uint32_t right = map->nodes[top].right;

    map->nodes[top].right = map->nodes[right].left;
    map->nodes[right].left = top;
    *link = right;
    measure(map, top);
    measure(map, right);
}

static void rotate_right(rmm_live_map_t *map, uint32_t *link)
{
    uint32_t top = *link;
    uint32_t left = map->nodes[top].left;

    map->nodes[top].left = map->nodes[left].right;
    map->nodes[left].right = top;
    *link = left;
    measure(map, top);
    measure(map, left);
}

static void balance(rmm_live_map_t *map, uint32_t *link)
{
    rmm_live_node_t *top = &map->nodes[*link];
    uint32_t left = height(map, top->left);
    uint32_t right = height(map, top->right);

    if (left > right + 1) {
        const rmm_live_node_t *child = &map->nodes[top->left];

        if (height(map, child->left) < height(map, child->right)) {
            rotate_left(map, &top->left);
        }
        rotate_right(map, link);
    } else if (right > left + 1) {
        const rmm_live_node_t *child = &map->nodes[top->right];

        if (height(map, child->right) < height(map, child->left)) {
            rotate_right(map, &top->right);
        }
        rotate_left(map, link);
    } else {
        measure(map, *link);
    }
}

/* links[0..depth): from the root down to what changed. Above a tree whose height stays nothing
 * changes: mostly that is so after one or two. */
static void balance_up(rmm_live_map_t *map, uint32_t **links, uint32_t depth)
{
    bool is_same = false;

    while (depth > 0 && !is_same) {
        uint32_t *link = links[--depth];
        uint32_t before = map->nodes[*link].height;

        balance(map, link);
        is_same = map->nodes[*link].height == before;
    }
}

/* --- storage ----------------------------------------------------------------------- */

bool rmm__live_map_init(rmm_live_map_t *map, uint32_t capacity)
{
    *map = (rmm_live_map_t){
        .nodes = calloc(capacity, sizeof(rmm_live_node_t)),
        .capacity = capacity,
        .free = NIL,
        .root = NIL,
    };
    return map->nodes != NULL;
}

void rmm__live_map_fini(rmm_live_map_t *map)
{
    free(map->nodes);
    map->nodes = NULL;
}

static uint32_t take_node(rmm_live_map_t *map)
{
    uint32_t index = map->free;

    if (index != NIL) {
        map->free = map->nodes[index].left;
    } else if (map->fresh < map->capacity) {
        index = map->fresh++;
    }
    return index;
}

static void give_node(rmm_live_map_t *map, uint32_t index)
{
    map->nodes[index] = (rmm_live_node_t){.left = map->free, .right = NIL};
    map->free = index;
}

/* --- bounds ------------------------------------------------------------------------ */

static void widen_bounds(rmm_live_map_t *map, uint64_t start, uint64_t end)
{
    if (map->count == 0 || start < map->low) {
        map->low = start;
    }
    if (map->count == 0 || end > map->high) {
        map->high = end;
    }
}

static void narrow_bounds(rmm_live_map_t *map, uint64_t start, uint64_t end)
{
    uint32_t index = map->root;

    if (index == NIL) {
        map->low = 0;
        map->high = 0;
        return;
    }
    if (start == map->low) {
        while (map->nodes[index].left != NIL) {
            index = map->nodes[index].left;
        }
        map->low = map->nodes[index].start;
    }
    index = map->root;
    if (end == map->high) {
        while (map->nodes[index].right != NIL) {
            index = map->nodes[index].right;
        }
        map->high = map->nodes[index].end;
    }
}

/* --- changes ----------------------------------------------------------------------- */

uint32_t rmm__live_map_insert(rmm_live_map_t *map, uint64_t start, uint64_t end)
{
    uint32_t *links[MAX_HEIGHT];
    uint32_t *link = &map->root;
    uint32_t depth = 0;
    uint32_t index = take_node(map);

    if (index == NIL) {
        return NIL;
    }
    while (*link != NIL) {
        rmm_live_node_t *node = &map->nodes[*link];

        links[depth++] = link;
        link = start < node->start ? &node->left : &node->right;
    }
    map->nodes[index] = (rmm_live_node_t){
        .start = start, .end = end, .left = NIL, .right = NIL, .height = 1};
    *link = index;
    widen_bounds(map, start, end);
    map->count++;
    balance_up(map, links, depth);
    return index;
}

/* Put the next node in order in the place of the one at links[depth - 1], which has two
 * children. Returns the new depth: the links down to where the successor was. */
static uint32_t
replace_by_successor(rmm_live_map_t *map, uint32_t **links, uint32_t depth)
{
    uint32_t *top_link = links[depth - 1];
    uint32_t top_depth = depth;
    uint32_t erased = *top_link;
    uint32_t *link = &map->nodes[erased].right;
    uint32_t successor = NIL;

    while (map->nodes[*link].left != NIL) {
        links[depth++] = link;
        link = &map->nodes[*link].left;
    }
    successor = *link;
    *link = map->nodes[successor].right;
    map->nodes[successor].left = map->nodes[erased].left;
    map->nodes[successor].right = map->nodes[erased].right;
    map->nodes[successor].height = map->nodes[erased].height;
    *top_link = successor;
    if (depth > top_depth) { /* the way down began at the erased node */
        links[top_depth] = &map->nodes[successor].right;
    }
    return depth;
}

void rmm__live_map_erase(rmm_live_map_t *map, uint32_t index)
{
    rmm_live_node_t erased = map->nodes[index];
    uint32_t *links[MAX_HEIGHT];
    uint32_t *link = &map->root;
    uint32_t depth = 0;

    while (*link != index) {
        rmm_live_node_t *node = &map->nodes[*link];

        links[depth++] = link;
        link = erased.start < node->start ? &node->left : &node->right;
    }
    if (erased.left != NIL && erased.right != NIL) {
        links[depth++] = link;
        depth = replace_by_successor(map, links, depth);
    } else {
        *link = erased.left != NIL ? erased.left : erased.right;
    }
    balance_up(map, links, depth);
    give_node(map, index);
    map->count--;
    narrow_bounds(map, erased.start, erased.end);
}

/* --- questions --------------------------------------------------------------------- */

static bool contains(const rmm_live_node_t *node, uint64_t address)
{
    return node->start <= address && address < node->end;
}

/* The last block that begins at or before the address. */
static uint32_t find_floor(const rmm_live_map_t *map, uint64_t address)
{
    uint32_t index = map->root;
    uint32_t best = NIL;

    while (index != NIL) {
        const rmm_live_node_t *node = &map->nodes[index];

        if (node->start <= address) {
            best = index;
            index = node->right;
        } else {
            index = node->left;
        }
    }
    return best;
}

uint32_t rmm__live_map_find(rmm_live_map_t *map, uint64_t address)
{
    uint32_t *cached = NULL;
    uint32_t index = NIL;

    if (address < map->low || address >= map->high) {
        return NIL;
    }
    /* Fibonacci hashing: the upper bits of the product */
    cached = &map->cache[(address * 0x9e3779b97f4a7c15ull) >> 54];
    if (contains(&map->nodes[*cached], address)) {
        return *cached;
    }
    index = find_floor(map, address);
    if (index == NIL || !contains(&map->nodes[index], address)) {
        return NIL;
    }
    *cached = index;
    return index;
}

uint32_t rmm__live_map_overlap(const rmm_live_map_t *map, uint64_t start, uint64_t end)
{
    uint32_t index = NIL;

    if (end <= map->low || start >= map->high) {
        return NIL;
    }
    index = find_floor(map, end - 1);
    return index != NIL && map->nodes[index].end > start ? index : NIL;
}

/* --- check ------------------------------------------------------------------------- */

/* Checks the tree below index; returns its nodes. *end: of the block before, in order. */
static uint32_t
check_tree(const rmm_live_map_t *map, uint32_t index, uint64_t *end, bool *good)
{
    const rmm_live_node_t *node = NULL;
    uint32_t count = 0, left = 0, right = 0;

    if (index == NIL) {
        return 0;
    }
    node = &map->nodes[index];
    count = check_tree(map, node->left, end, good);
    *good = *good && node->start >= *end && node->end > node->start;
    *end = node->end;
    count += check_tree(map, node->right, end, good);
    left = height(map, node->left);
    right = height(map, node->right);
    *good = *good && left <= right + 1 && right <= left + 1 &&
            node->height == 1 + (left > right ? left : right);
    return count + 1;
}

bool rmm__live_map_check(const rmm_live_map_t *map)
{
    uint64_t end = 0;
    bool good = true;
    uint32_t live = check_tree(map, map->root, &end, &good);
    uint32_t idle = 0;

    for (uint32_t index = map->free; index != NIL && idle <= map->fresh; idle++) {
        good = good && map->nodes[index].end == 0;
        index = map->nodes[index].left;
    }
    return good && live == map->count && live + idle == map->fresh &&
           map->fresh <= map->capacity && end == map->high;
}
