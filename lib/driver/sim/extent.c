/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which parts of a device's range are free and which are handed out: two treaps of
 * extents by offset. In the free one each node knows the longest extent below it, so that
 * the lowest fit is found without a walk over all.
 *
 * Free extents never touch each other: giving one back joins it with its neighbours. A
 * used extent keeps its node, so giving back needs no memory and cannot fail.
 *
 * Pure: offsets in, offsets out. The owner's lock protects it.
 */
#include "driver/sim/internal.h"

#include <stdlib.h>

#include "core/round.h"

struct sim_extent {
    uint64_t offset;
    uint64_t bytes;
    uint64_t longest; /* of this subtree */
    uint64_t priority;
    int use;
    sim_extent_t *left, *right;
};

static uint64_t longest_of(const sim_extent_t *extent)
{
    return extent != NULL ? extent->longest : 0;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static void update(sim_extent_t *extent)
{
    extent->longest = larger(
        extent->bytes, larger(longest_of(extent->left), longest_of(extent->right)));
}

/* Cut a treap into what lies below offset and the rest. */
static void
split(sim_extent_t *root, uint64_t offset, sim_extent_t **low, sim_extent_t **high)
{
    if (root == NULL) {
        *low = NULL;
        *high = NULL;
    } else if (root->offset < offset) {
        split(root->right, offset, &root->right, high);
        *low = root;
        update(root);
    } else {
        split(root->left, offset, low, &root->left);
        *high = root;
        update(root);
    }
}

/* Everything in low lies below everything in high. */
static sim_extent_t *merge(sim_extent_t *low, sim_extent_t *high)
{
    if (low == NULL || high == NULL) {
        return low != NULL ? low : high;
    }
    if (low->priority > high->priority) {
        low->right = merge(low->right, high);
        update(low);
        return low;
    }
    high->left = merge(low, high->left);
    update(high);
    return high;
}

static void insert(sim_extent_t **root, sim_extent_t *extent)
{
    sim_extent_t *low, *high;

    extent->left = NULL;
    extent->right = NULL;
    update(extent);
    split(*root, extent->offset, &low, &high);
    *root = merge(merge(low, extent), high);
}

/* Take the extent that begins at offset out of the treap; NULL if there is none. */
static sim_extent_t *take_out(sim_extent_t **root, uint64_t offset)
{
    sim_extent_t *low, *middle, *high;

    split(*root, offset, &low, &high);
    split(high, offset + 1, &middle, &high);
    *root = merge(low, high);
    return middle;
}

static sim_extent_t *first_of(sim_extent_t *root)
{
    while (root != NULL && root->left != NULL) {
        root = root->left;
    }
    return root;
}

static sim_extent_t *last_of(sim_extent_t *root)
{
    while (root != NULL && root->right != NULL) {
        root = root->right;
    }
    return root;
}

static bool fits(const sim_extent_t *extent, uint64_t bytes, uint64_t align)
{
    uint64_t lost = rmm__align_up(extent->offset, align) - extent->offset;

    return extent->bytes >= bytes && extent->bytes - bytes >= lost;
}

static sim_extent_t *find_lowest(sim_extent_t *root, uint64_t bytes, uint64_t align)
{
    sim_extent_t *found;

    if (longest_of(root) < bytes) {
        return NULL;
    }
    found = find_lowest(root->left, bytes, align);
    if (found != NULL) {
        return found;
    }
    return fits(root, bytes, align) ? root : find_lowest(root->right, bytes, align);
}

static sim_extent_t *extent_create(sim_space_t *space, uint64_t offset, uint64_t bytes)
{
    sim_extent_t *extent = calloc(1, sizeof(*extent));

    if (extent != NULL) {
        /* any full-period sequence will do; constants of Knuth's MMIX */
        space->random = space->random * 6364136223846793005u + 1442695040888963407u;
        extent->priority = space->random >> 16;
        extent->offset = offset;
        extent->bytes = bytes;
    }
    return extent;
}

bool rmm__sim_space_init(sim_space_t *space, uint64_t bytes)
{
    sim_extent_t *all = extent_create(space, 0, bytes);

    if (all == NULL) {
        return false;
    }
    insert(&space->free, all);
    return true;
}

void rmm__sim_space_fini(sim_space_t *space)
{
    /* nothing is used, so the free parts have joined to one */
    free(space->free);
    space->free = NULL;
}

bool rmm__sim_space_take(
    sim_space_t *space, uint64_t bytes, uint64_t align, int use, uint64_t *offset_out)
{
    sim_extent_t *found = find_lowest(space->free, bytes, align);
    sim_extent_t *before, *after;
    uint64_t begin, end;

    if (found == NULL) {
        return false;
    }
    begin = rmm__align_up(found->offset, align);
    end = found->offset + found->bytes;
    before = extent_create(space, found->offset, begin - found->offset);
    after = extent_create(space, begin + bytes, end - begin - bytes);
    if (before == NULL || after == NULL) {
        free(before);
        free(after);
        return false;
    }
    found = take_out(&space->free, found->offset);
    found->offset = begin;
    found->bytes = bytes;
    found->use = use;
    insert(&space->used, found);
    if (before->bytes != 0) {
        insert(&space->free, before);
    } else {
        free(before);
    }
    if (after->bytes != 0) {
        insert(&space->free, after);
    } else {
        free(after);
    }
    *offset_out = begin;
    return true;
}

bool rmm__sim_space_find(const sim_space_t *space, uint64_t offset, sim_found_t *out)
{
    const sim_extent_t *below = NULL; /* the last that begins at offset or before */

    for (const sim_extent_t *extent = space->used; extent != NULL;) {
        if (extent->offset <= offset) {
            below = extent;
            extent = extent->right;
        } else {
            extent = extent->left;
        }
    }
    if (below == NULL || offset - below->offset >= below->bytes) {
        return false;
    }
    *out = (sim_found_t){
        .offset = below->offset, .bytes = below->bytes, .use = below->use};
    return true;
}

uint64_t rmm__sim_space_give(sim_space_t *space, uint64_t offset)
{
    sim_extent_t *extent = take_out(&space->used, offset);
    sim_extent_t *low, *high, *neighbour;
    uint64_t bytes;

    if (extent == NULL) {
        return 0;
    }
    bytes = extent->bytes;
    split(space->free, offset, &low, &high);
    neighbour = last_of(low);
    if (neighbour != NULL && neighbour->offset + neighbour->bytes == offset) {
        extent->offset = neighbour->offset;
        extent->bytes += neighbour->bytes;
        free(take_out(&low, neighbour->offset));
    }
    neighbour = first_of(high);
    if (neighbour != NULL && neighbour->offset == offset + bytes) {
        extent->bytes += neighbour->bytes;
        free(take_out(&high, neighbour->offset));
    }
    space->free = merge(low, high);
    insert(&space->free, extent);
    return bytes;
}
