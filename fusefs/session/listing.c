/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Open directories; see listing.h.
 */
#include "session/listing.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

typedef struct item {
    char name[TREE_NAME_BYTES];
    node_t node;
} item_t;

struct listing {
    opened_t opened;
    node_t dir, parent;
    item_t *items;
    size_t count, capacity;
    int error; /* of adding an item */
    budget_t *budget;
    uid_t uid;
};

static bool make_item_room(listing_t *listing)
{
    if (listing->count < listing->capacity) {
        return true;
    }
    size_t more = listing->capacity == 0 ? 32 : listing->capacity;
    size_t capacity = listing->capacity + more;
    if (!budget_take(
            listing->budget, listing->uid, BUDGET_TEXT_BYTES, more * sizeof(item_t))) {
        listing->error = -EDQUOT;
        return false;
    }
    item_t *grown = realloc(listing->items, capacity * sizeof(*grown));
    if (grown == NULL) {
        budget_give(
            listing->budget, listing->uid, BUDGET_TEXT_BYTES, more * sizeof(item_t));
        listing->error = -ENOMEM;
        return false;
    }
    listing->items = grown;
    listing->capacity = capacity;
    return true;
}

/* A directory while it is being listed for a reader. */
typedef struct listing_walk {
    const model_t *model;
    listing_t *listing;
    reader_t reader;
} listing_walk_t;

static void add_item(const char *name, node_t node, void *arg)
{
    const listing_walk_t *walk = arg;
    listing_t *listing = walk->listing;
    if (!tree_shows(walk->model, node, walk->reader.uid, walk->reader.is_member) ||
        listing->error != 0 || !make_item_room(listing)) {
        return;
    }
    item_t *item = &listing->items[listing->count++];
    (void)snprintf(item->name, sizeof(item->name), "%s", name);
    item->node = node;
}

static void free_listing(opened_t *opened)
{
    listing_t *listing = (listing_t *)opened;
    budget_give(
        listing->budget, listing->uid, BUDGET_TEXT_BYTES,
        listing->capacity * sizeof(item_t));
    budget_give(listing->budget, listing->uid, BUDGET_HANDLES, 1);
    free(listing->items);
    free(listing);
}

int listing_open(
    opened_list_t *list, watch_t *watch, node_t dir, reader_t reader,
    listing_t **listing_out)
{
    uid_t uid = reader.uid;
    budget_t *budget = &watch_model(watch)->budget;
    if (!budget_take(budget, uid, BUDGET_HANDLES, 1)) {
        return -EDQUOT;
    }
    listing_t *listing = calloc(1, sizeof(*listing));
    if (listing == NULL) {
        budget_give(budget, uid, BUDGET_HANDLES, 1);
        return -ENOMEM;
    }
    listing->budget = budget;
    listing->uid = uid;
    listing->opened.free = free_listing;
    listing->dir = dir;
    const model_t *model = watch_begin(watch);
    listing_walk_t walk = {model, listing, reader};
    bool found = tree_list(model, dir, uid, add_item, &walk);
    listing->parent = tree_parent(model, dir);
    watch_end(watch);
    int error = found ? listing->error : -ENOENT;
    if (error != 0) {
        free_listing(&listing->opened);
        return error;
    }
    opened_list_add(list, &listing->opened);
    *listing_out = listing;
    return 0;
}

void listing_close(opened_list_t *list, listing_t *listing)
{
    opened_list_remove(list, &listing->opened);
    free_listing(&listing->opened);
}

const char *listing_at(const listing_t *listing, size_t position, node_t *node_out)
{
    if (position < 2) {
        *node_out = position == 0 ? listing->dir : listing->parent;
        return position == 0 ? "." : "..";
    }
    if (position - 2 >= listing->count) {
        return NULL;
    }
    *node_out = listing->items[position - 2].node;
    return listing->items[position - 2].name;
}
