/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An AVL tree (Adelson-Velsky and Landis, 1962) ordered by start, in an array of nodes
 * with 32-bit links: at 100,000 blocks 17 steps. A node knows its parent, so an erase goes up
 * only, as far as heights change.
 *
 * Where does an address belong? The answer, the last block that begins at or before it, is kept
 * in the cache for addresses of the same 256 bytes. It is right if the address lies before the next
 * block; that is looked up by the links, which takes two steps on average. A block that is
 * erased leaves the block before it as the answer. So memory that is freed and taken again, as
 * a pool does it, is found without a walk down the tree, and so is that no block has a word.
 */
#include "diag/live_map.h"

#include <stddef.h>
#include <stdlib.h>

#define NIL RMM_LIVE_NONE

/* --- links ------------------------------------------------------------------------- */

static uint32_t *link_to(rmm_live_map_t *map, uint32_t index)
{
    uint32_t parent = map->nodes[index].parent;

    if (parent == NIL) {
        return &map->root;
    }
    return map->nodes[parent].left == index ? &map->nodes[parent].left
                                            : &map->nodes[parent].right;
}

static void hang(rmm_live_map_t *map, uint32_t *link, uint32_t parent, uint32_t index)
{
    *link = index;
    if (index != NIL) {
        map->nodes[index].parent = parent;
    }
}

/* Where `old` hangs, `index` does. */
static void replace(rmm_live_map_t *map, uint32_t old, uint32_t index)
{
    hang(map, link_to(map, old), map->nodes[old].parent, index);
}

static uint32_t next_of(const rmm_live_map_t *map, uint32_t index)
{
    const rmm_live_node_t *nodes = map->nodes;
    uint32_t next = nodes[index].right;

    if (next != NIL) {
        while (nodes[next].left != NIL) {
            next = nodes[next].left;
        }
        return next;
    }
    for (next = nodes[index].parent; next != NIL && nodes[next].right == index;
         next = nodes[next].parent) {
        index = next;
    }
    return next;
}

static uint32_t previous_of(const rmm_live_map_t *map, uint32_t index)
{
    const rmm_live_node_t *nodes = map->nodes;
    uint32_t previous = nodes[index].left;

    if (previous != NIL) {
        while (nodes[previous].right != NIL) {
            previous = nodes[previous].right;
        }
        return previous;
    }
    for (previous = nodes[index].parent;
         previous != NIL && nodes[previous].left == index;
         previous = nodes[previous].parent) {
        index = previous;
    }
    return previous;
}

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

/* Both return the new top. */
static uint32_t rotate_left(rmm_live_map_t *map, uint32_t top)
{
    uint32_t right = map->nodes[top].right;

    replace(map, top, right);
    hang(map, &map->nodes[top].right, top, map->nodes[right].left);
    hang(map, &map->nodes[right].left, right, top);
    measure(map, top);
    measure(map, right);
    return right;
}

static uint32_t rotate_right(rmm_live_map_t *map, uint32_t top)
{
    uint32_t left = map->nodes[top].left;

    replace(map, top, left);
    hang(map, &map->nodes[top].left, top, map->nodes[left].right);
    hang(map, &map->nodes[left].right, left, top);
    measure(map, top);
    measure(map, left);
    return left;
}

/* The same. */
static uint32_t balance(rmm_live_map_t *map, uint32_t top)
{
    const rmm_live_node_t *node = &map->nodes[top];
    uint32_t left = height(map, node->left);
    uint32_t right = height(map, node->right);

    if (left > right + 1) {
        const rmm_live_node_t *child = &map->nodes[node->left];

        if (height(map, child->left) < height(map, child->right)) {
            (void)rotate_left(map, node->left);
        }
        return rotate_right(map, top);
    }
    if (right > left + 1) {
        const rmm_live_node_t *child = &map->nodes[node->right];

        if (height(map, child->right) < height(map, child->left)) {
            (void)rotate_right(map, node->right);
        }
        return rotate_left(map, top);
    }
    map->nodes[top].height = 1 + (left > right ? left : right);
    return top;
}

/* From what changed up. Above a tree whose height stays nothing changes: mostly that is so after
 * one or two. */
static void balance_up(rmm_live_map_t *map, uint32_t index)
{
    bool is_same = false;

    while (index != NIL && !is_same) {
        uint32_t before = map->nodes[index].height;

        index = balance(map, index);
        is_same = map->nodes[index].height == before;
        index = map->nodes[index].parent;
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

/* --- where an address belongs ------------------------------------------------------- */

static uint32_t *cached_for(rmm_live_map_t *map, uint64_t address)
{
    /* Fibonacci hashing: the upper bits of the product */
    return &map->cache[((address >> 8) * 0x9e3779b97f4a7c15ull) >> 54];
}

static bool contains(const rmm_live_node_t *node, uint64_t address)
{
    return node->start <= address && address < node->end;
}

/* Of any node, also a free one. */
static bool is_floor(const rmm_live_map_t *map, uint32_t index, uint64_t address)
{
    const rmm_live_node_t *node = &map->nodes[index];
    uint32_t next = NIL;

    if (contains(node, address)) {
        return true;
    }
    if (node->end == 0 || node->start > address) {
        return false;
    }
    next = next_of(map, index);
    return next == NIL || map->nodes[next].start > address;
}

/* The last block that begins at or before the address. */
static uint32_t find_floor(rmm_live_map_t *map, uint64_t address)
{
    uint32_t *cached = cached_for(map, address);
    uint32_t index = map->root;
    uint32_t best = NIL;

    if (is_floor(map, *cached, address)) {
        return *cached;
    }
    while (index != NIL) {
        const rmm_live_node_t *node = &map->nodes[index];

        if (node->start <= address) {
            best = index;
            index = node->right;
        } else {
            index = node->left;
        }
    }
    if (best != NIL) {
        *cached = best;
    }
    return best;
}

/* --- changes ----------------------------------------------------------------------- */

/* Directly behind `floor`; NIL: before all others. */
static void hang_behind(rmm_live_map_t *map, uint32_t floor, uint32_t index)
{
    uint32_t parent = floor;
    uint32_t *link = NULL;

    if (map->root == NIL) {
        hang(map, &map->root, NIL, index);
        return;
    }
    if (floor != NIL && map->nodes[floor].right == NIL) {
        link = &map->nodes[floor].right;
    } else {
        parent = floor == NIL ? map->root : map->nodes[floor].right;
        while (map->nodes[parent].left != NIL) {
            parent = map->nodes[parent].left;
        }
        link = &map->nodes[parent].left;
    }
    hang(map, link, parent, index);
    balance_up(map, parent);
}

uint32_t rmm__live_map_insert(rmm_live_map_t *map, uint64_t start, uint64_t end)
{
    /* by the last byte, as rmm__live_map_overlap() was called before */
    uint32_t floor = find_floor(map, end - 1);
    uint32_t index = take_node(map);

    if (index == NIL) {
        return NIL;
    }
    map->nodes[index] = (rmm_live_node_t){
        .start = start,
        .end = end,
        .left = NIL,
        .right = NIL,
        .height = 1,
        .parent = NIL};
    hang_behind(map, floor, index);
    *cached_for(map, start) = index;
    *cached_for(map, end - 1) = index;
    map->low = map->count == 0 || start < map->low ? start : map->low;
    map->high = map->count == 0 || end > map->high ? end : map->high;
    map->count++;
    return index;
}

/* The next node in order takes the place of one that has two children. Returns the lowest node
 * below which something changed. */
static uint32_t
replace_by_successor(rmm_live_map_t *map, uint32_t erased, uint32_t successor)
{
    rmm_live_node_t *node = &map->nodes[successor];
    uint32_t changed = node->parent == erased ? successor : node->parent;

    replace(map, successor, node->right);
    hang(map, &node->left, successor, map->nodes[erased].left);
    hang(map, &node->right, successor, map->nodes[erased].right);
    node->height = map->nodes[erased].height;
    replace(map, erased, successor);
    return changed;
}

void rmm__live_map_erase(rmm_live_map_t *map, uint32_t index)
{
    rmm_live_node_t erased = map->nodes[index];
    uint32_t previous = previous_of(map, index);
    uint32_t next = next_of(map, index);
    uint32_t changed = erased.parent;

    if (erased.left != NIL && erased.right != NIL) {
        changed = replace_by_successor(map, index, next);
    } else {
        replace(map, index, erased.left != NIL ? erased.left : erased.right);
    }
    balance_up(map, changed);
    give_node(map, index);
    map->count--;
    if (previous != NIL) {
        *cached_for(map, erased.start) = previous;
        *cached_for(map, erased.end - 1) = previous;
    } else {
        map->low = next != NIL ? map->nodes[next].start : 0;
    }
    if (next == NIL) {
        map->high = previous != NIL ? map->nodes[previous].end : 0;
    }
}

/* --- questions --------------------------------------------------------------------- */

uint32_t rmm__live_map_find(rmm_live_map_t *map, uint64_t address)
{
    uint32_t index = NIL;

    if (address < map->low || address >= map->high) {
        return NIL;
    }
    index = find_floor(map, address);
    return index != NIL && contains(&map->nodes[index], address) ? index : NIL;
}

uint32_t rmm__live_map_overlap(rmm_live_map_t *map, uint64_t start, uint64_t end)
{
    uint32_t index = NIL;

    if (end <= map->low || start >= map->high) {
        return NIL;
    }
    index = find_floor(map, end - 1);
    return index != NIL && map->nodes[index].end > start ? index : NIL;
}

void rmm__live_map_around(
    rmm_live_map_t *map, uint64_t address, uint32_t *before_out, uint32_t *behind_out)
{
    uint32_t before = find_floor(map, address);
    uint32_t behind = map->root;

    if (before != NIL) {
        behind = next_of(map, before);
    } else {
        while (behind != NIL && map->nodes[behind].left != NIL) {
            behind = map->nodes[behind].left;
        }
    }
    *before_out = before;
    *behind_out = behind;
}

/* --- check ------------------------------------------------------------------------- */

/* Checks the tree below index; returns its nodes. *end: of the block before, in order. */
static uint32_t check_tree(
    const rmm_live_map_t *map, uint32_t parent, uint32_t index, uint64_t *end,
    bool *good)
{
    const rmm_live_node_t *node = NULL;
    uint32_t count = 0, left = 0, right = 0;

    if (index == NIL) {
        return 0;
    }
    node = &map->nodes[index];
    count = check_tree(map, index, node->left, end, good);
    *good = *good && node->parent == parent && node->start >= *end &&
            node->end > node->start;
    *end = node->end;
    count += check_tree(map, index, node->right, end, good);
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
    uint32_t live = check_tree(map, NIL, map->root, &end, &good);
    uint32_t idle = 0;

    for (uint32_t index = map->free; index != NIL && idle <= map->fresh; idle++) {
        good = good && map->nodes[index].end == 0;
        index = map->nodes[index].left;
    }
    return good && live == map->count && live + idle == map->fresh &&
           map->fresh <= map->capacity && end == map->high;
}
