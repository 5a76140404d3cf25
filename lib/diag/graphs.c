/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captured graphs; see graphs.h. Contents are in memory of the heap, which grows while a graph is
 * captured; a graph for which there is none is unsure.
 */
#include "diag/graphs.h"

#include <stdlib.h>

#define NONE RMM_LIVE_NONE

/* --- records of blocks ------------------------------------------------------------- */

rmm_graph_block_t *rmm__graphs_block(
    rmm_graphs_t *graphs, uint32_t record, uint32_t row, uint64_t allocated_ns)
{
    rmm_graph_block_t *block = NULL;

    if (record >= graphs->block_count) {
        return NULL;
    }
    block = &graphs->blocks[record];
    return block->uses > 0 && block->row == row && block->allocated_ns == allocated_ns
               ? block
               : NULL;
}

static void drop_use(rmm_graphs_t *graphs, uint32_t record)
{
    rmm_graph_block_t *block = &graphs->blocks[record];

    if (--block->uses == 0) {
        block->row = graphs->vacant;
        graphs->vacant = record;
    }
}

/* --- contents ---------------------------------------------------------------------- */

static void clear(rmm_graphs_t *graphs, rmm_graph_body_t *body)
{
    for (uint32_t i = 0; i < body->ref_count; i++) {
        drop_use(graphs, body->refs[i].block);
    }
    graphs->node_count -= body->node_count;
    graphs->ref_count -= body->ref_count;
    free(body->nodes);
    free(body->refs);
    body->nodes = NULL;
    body->refs = NULL;
    body->node_count = body->node_room = body->ref_count = body->ref_room = 0;
}

static void make_unsure(rmm_graphs_t *graphs, rmm_graph_body_t *body)
{
    clear(graphs, body);
    body->is_unsure = true;
}

static void leave(rmm_graphs_t *graphs, rmm_graph_body_t *body)
{
    if (body != NULL && --body->owners == 0) {
        clear(graphs, body);
        free(body);
    }
}

/* Room for one more of this size; false: there is no memory. */
static bool reserve(void **array, uint32_t count, uint32_t *room, size_t bytes)
{
    uint32_t more = *room == 0 ? 8 : 2 * *room;
    void *grown = NULL;

    if (count < *room) {
        return true;
    }
    grown = realloc(*array, more * bytes);
    if (grown != NULL) {
        *array = grown;
        *room = more;
    }
    return grown != NULL;
}

void rmm__graphs_add_node(
    rmm_graphs_t *graphs, rmm_graph_body_t *body, uint32_t kind, uint32_t user)
{
    void *nodes = body->nodes;

    if (body->is_unsure) {
        return;
    }
    if (body->owners > 1 || graphs->node_count == RMM_GRAPHS_NODES ||
        !reserve(&nodes, body->node_count, &body->node_room, sizeof(*body->nodes))) {
        make_unsure(graphs, body);
        return;
    }
    body->nodes = nodes;
    body->nodes[body->node_count++] =
        (rmm_graph_node_t){.kind = kind, .user = user, .first = body->ref_count};
    graphs->node_count++;
}

/* The number of a vacant record, which is taken once it has a use; NONE: there is no memory. */
static uint32_t vacant_record(rmm_graphs_t *graphs)
{
    void *blocks = graphs->blocks;

    if (graphs->block_count == 0) {
        graphs->vacant = NONE;
    }
    if (graphs->vacant != NONE) {
        return graphs->vacant;
    }
    if (!reserve(
            &blocks, graphs->block_count, &graphs->block_room,
            sizeof(*graphs->blocks))) {
        return NONE;
    }
    graphs->blocks = blocks;
    graphs->blocks[graphs->block_count] = (rmm_graph_block_t){.row = NONE};
    graphs->vacant = graphs->block_count++;
    return graphs->vacant;
}

/* False: there is no room, and the contents are unsure. */
static bool reserve_ref(rmm_graphs_t *graphs, rmm_graph_body_t *body)
{
    void *refs = body->refs;

    if (body->is_unsure) {
        return false;
    }
    if (graphs->ref_count == RMM_GRAPHS_REFS ||
        !reserve(&refs, body->ref_count, &body->ref_room, sizeof(*body->refs))) {
        make_unsure(graphs, body);
        return false;
    }
    body->refs = refs;
    return true;
}

/* Behind reserve_ref(). */
static void
add_ref(rmm_graphs_t *graphs, rmm_graph_body_t *body, uint32_t record, uint64_t address)
{
    body->refs[body->ref_count++] =
        (rmm_graph_ref_t){.address = address, .block = record};
    body->nodes[body->node_count - 1].count++;
    graphs->ref_count++;
    graphs->blocks[record].uses++;
}

uint32_t rmm__graphs_add_use(
    rmm_graphs_t *graphs, rmm_graph_body_t *body, const rmm_graph_use_t *use,
    uint32_t record)
{
    if (!reserve_ref(graphs, body)) {
        return record; /* other graphs may use the block */
    }
    if (rmm__graphs_block(graphs, record, use->row, use->allocated_ns) == NULL) {
        record = vacant_record(graphs);
        if (record == NONE) {
            make_unsure(graphs, body);
            return NONE;
        }
        graphs->vacant = graphs->blocks[record].row;
        graphs->blocks[record] =
            (rmm_graph_block_t){.row = use->row, .allocated_ns = use->allocated_ns};
    }
    add_ref(graphs, body, record, use->address);
    return record;
}

void rmm__graphs_add_all(
    rmm_graphs_t *graphs, rmm_graph_body_t *body, const rmm_graph_body_t *part)
{
    if (part->is_unsure || part == body) {
        make_unsure(graphs, body);
        return;
    }
    for (uint32_t i = 0; i < part->node_count; i++) {
        const rmm_graph_node_t *node = &part->nodes[i];

        rmm__graphs_add_node(graphs, body, node->kind, node->user);
        for (uint32_t r = 0; r < node->count; r++) {
            const rmm_graph_ref_t *ref = &part->refs[node->first + r];

            if (reserve_ref(graphs, body)) {
                add_ref(graphs, body, ref->block, ref->address);
            }
        }
    }
}

/* --- graphs ------------------------------------------------------------------------ */

rmm_graph_t *rmm__graphs_find(rmm_graphs_t *graphs, uint64_t key)
{
    if (graphs->last < graphs->count && graphs->entries[graphs->last].key == key) {
        return &graphs->entries[graphs->last];
    }
    for (uint32_t i = 0; i < graphs->count; i++) {
        if (graphs->entries[i].key == key) {
            graphs->last = i;
            return &graphs->entries[i];
        }
    }
    return NULL;
}

void rmm__graphs_end(rmm_graphs_t *graphs, uint64_t key)
{
    rmm_graph_t *graph = rmm__graphs_find(graphs, key);

    if (graph != NULL) {
        leave(graphs, graph->body);
        *graph = graphs->entries[--graphs->count];
    }
}

/* The contents of a new graph; NULL: they are not known. */
static rmm_graph_body_t *body_of(rmm_graphs_t *graphs, uint64_t of)
{
    const rmm_graph_t *other = of != 0 ? rmm__graphs_find(graphs, of) : NULL;

    if (of == 0) {
        return calloc(1, sizeof(rmm_graph_body_t));
    }
    return other != NULL ? other->body : NULL;
}

void rmm__graphs_made(
    rmm_graphs_t *graphs, uint64_t key, uint64_t of, bool is_executable)
{
    rmm_graph_body_t *body = body_of(graphs, of);

    if (body != NULL) {
        body->owners++;
    }
    rmm__graphs_end(graphs, key); /* its end was not seen, or it gets other contents */
    if (body == NULL || graphs->count == RMM_GRAPHS_COUNT) {
        leave(graphs, body);
        return;
    }
    graphs->entries[graphs->count++] =
        (rmm_graph_t){.key = key, .body = body, .is_executable = is_executable};
}

void rmm__graphs_changed(rmm_graphs_t *graphs, uint64_t key)
{
    for (uint32_t i = 0; i < graphs->count; i++) {
        if (key == 0 || graphs->entries[i].key == key) {
            make_unsure(graphs, graphs->entries[i].body);
        }
    }
}

void rmm__graphs_end_all(rmm_graphs_t *graphs)
{
    while (graphs->count > 0) {
        rmm__graphs_end(graphs, graphs->entries[0].key);
    }
    free(graphs->blocks); /* nothing uses any */
    graphs->blocks = NULL;
    graphs->block_count = graphs->block_room = 0;
}

/* --- who uses a block -------------------------------------------------------------- */

static const rmm_graph_node_t *find_user(const rmm_graph_body_t *body, uint32_t record)
{
    const rmm_graph_node_t *node = body->nodes;
    uint32_t ref = 0;

    while (ref < body->ref_count && body->refs[ref].block != record) {
        ref++;
    }
    if (ref == body->ref_count) {
        return NULL;
    }
    while (node->first + node->count <= ref) {
        node++;
    }
    return node;
}

const rmm_graph_node_t *
rmm__graphs_user(rmm_graphs_t *graphs, const rmm_graph_block_t *block)
{
    uint32_t record = (uint32_t)(block - graphs->blocks);
    const rmm_graph_node_t *node = NULL;

    graphs->searches++;
    for (uint32_t i = 0; i < graphs->count && node == NULL; i++) {
        rmm_graph_body_t *body = graphs->entries[i].body;

        if (graphs->entries[i].is_executable && body->searched != graphs->searches) {
            body->searched = graphs->searches;
            node = find_user(body, record);
        }
    }
    return node;
}
