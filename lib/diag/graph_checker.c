/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Follows captured graphs. What is captured is noted with the blocks that it is given, and counts
 * as a use at each launch of its graph. A launch after the free of such a block is an error, found
 * in mode bounds; in mode order the free itself is, while the graph can be launched.
 */
#include "diag/checker.h"

#include <stdlib.h>

#include "diag/graphs.h"
#include "diag/row.h"
#include "diag/usage.h"

static_assert(
    RMM_DIAG_CALL_GRAPH == RMM_DIAG_GRAPH_LAUNCH &&
        RMM_DIAG_CALL_LAUNCH == RMM_DIAG_LAUNCH,
    "readers know the numbers");

typedef struct state {
    rmm_diag_engine_t *engine;
    rmm_graphs_t graphs;
    uint32_t gaps;     /* of the modes, when the graphs were forgotten last */
    uint32_t *records; /* by block: of its uses by graphs, or RMM_LIVE_NONE */
} state_t;

static bool
init(void *state, rmm_diag_engine_t *engine, const rmm_diag_engine_desc_t *desc)
{
    state_t *self = state;

    self->engine = engine;
    self->records = calloc(desc->row_count, sizeof(*self->records));
    return self->records != NULL;
}

static void fini(void *state)
{
    state_t *self = state;

    rmm__graphs_end_all(&self->graphs);
    free(self->records);
}

static void allocated(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;

    self->records[call->index] = RMM_LIVE_NONE;
}

/* While no mode followed graphs, handles were given to other graphs, and nodes were changed: those
 * that are known are forgotten. */
static void forget_stale(state_t *self)
{
    uint32_t gaps =
        atomic_load_explicit(&self->engine->modes.graph_gaps, memory_order_relaxed);

    if (gaps != self->gaps) {
        rmm__graphs_end_all(&self->graphs);
        self->gaps = gaps;
    }
}

/* --- capture ----------------------------------------------------------------------- */

static void
add_refs(state_t *self, rmm_graph_body_t *body, const rmm_diag_event_v1_t *event)
{
    const rmm_live_blocks_t *blocks = &self->engine->blocks;
    uint32_t count = rmm__live_blocks_listed(blocks);

    for (uint32_t i = 0; i < count; i++) {
        uint32_t row = blocks->used[i];

        self->records[row] = rmm__graphs_add_use(
            &self->graphs, body,
            &(rmm_graph_use_t){
                .row = row,
                .allocated_ns = RMM_ROW_GET(&blocks->rows[row], allocated_ns),
                .address = blocks->used_at[i]},
            self->records[row]);
    }
    if (count == RMM_BLOCKS_LISTED) { /* there may be more */
        rmm__graphs_changed(&self->graphs, event->graph);
    }
}

/* A launch, copy or fill that is captured into a graph that is known counts when that is
 * launched. */
static void capture(state_t *self, rmm_diag_call_t *call)
{
    const rmm_diag_event_v1_t *event = call->event;
    const rmm_graph_t *graph =
        event->graph != 0 ? rmm__graphs_find(&self->graphs, event->graph) : NULL;

    if (graph != NULL && !graph->body->is_unsure) {
        rmm__graphs_add_node(
            &self->graphs, graph->body, event->kind,
            rmm__users_name(&self->engine->users, event));
        add_refs(self, graph->body, event);
        call->is_captured = true;
    }
}

/* --- launch ------------------------------------------------------------------------ */

static void add_finding(
    const state_t *self, const rmm_diag_call_t *call, const rmm_graph_node_t *node,
    const rmm_graph_ref_t *ref)
{
    rmm_diag_engine_t *engine = call->engine;
    const rmm_freed_block_t *freed = &self->graphs.blocks[ref->block].freed;
    bool is_launch = node->kind == RMM_DIAG_LAUNCH;

    rmm__findings_add(
        &engine->findings,
        &(rmm_finding_t){
            .kind = RMM_DIAG_USE_AFTER_FREE,
            .call = call->event->kind,
            .access = RMM_DIAG_USES,
            .block = freed->block,
            .address = ref->address,
            .user = node->user,
            .stream_id = rmm__stream_names_find(&engine->streams, call->event->stream),
            .other_user = RMM_DIAG_NO_USER,
            .other_stream_id = freed->freed_stream_id,
            .confidence = is_launch ? RMM_DIAG_LIKELY : RMM_DIAG_CERTAIN,
            .origin = freed->origin,
            .freed = freed->freed});
}

static bool is_live(const state_t *self, const rmm_graph_block_t *block)
{
    const rmm_diag_row_t *row = &self->engine->blocks.rows[block->row];

    return RMM_ROW_GET(row, live) != 0 &&
           RMM_ROW_GET(row, allocated_ns) == block->allocated_ns;
}

static void run_node(
    state_t *self, const rmm_diag_call_t *call, const rmm_graph_body_t *body,
    const rmm_graph_node_t *node)
{
    uint32_t rows[RMM_BLOCKS_LISTED];
    uint32_t count = 0;

    for (uint32_t i = 0; i < node->count; i++) {
        const rmm_graph_ref_t *ref = &body->refs[node->first + i];
        const rmm_graph_block_t *block = &self->graphs.blocks[ref->block];

        if (block->is_freed && (call->modes & RMM_DIAG_MODE_BOUNDS) != 0) {
            add_finding(self, call, node, ref);
        } else if (is_live(self, block) && count < RMM_BLOCKS_LISTED) {
            rows[count++] = block->row;
        }
    }
    if ((call->modes & RMM_DIAG_MODES_WITH_USES) != 0) {
        rmm__usage_count(self->engine, node->kind, node->user, rows, count);
    }
}

static void run(state_t *self, const rmm_diag_call_t *call, rmm_graph_t *graph)
{
    graph->is_executable = true;
    for (uint32_t i = 0; i < graph->body->node_count; i++) {
        run_node(self, call, graph->body, &graph->body->nodes[i]);
    }
}

static void launch(state_t *self, const rmm_diag_call_t *call)
{
    const rmm_diag_event_v1_t *event = call->event;
    rmm_diag_header_t *header = self->engine->header;
    rmm_graph_t *graph =
        event->word_count > 0 ? rmm__graphs_find(&self->graphs, event->words[0]) : NULL;
    const rmm_graph_t *into =
        event->graph != 0 ? rmm__graphs_find(&self->graphs, event->graph) : NULL;

    RMM_ROW_ADD(&header->graph_launches, 1);
    if (graph == NULL || graph->body->is_unsure) {
        RMM_ROW_ADD(&header->graphs_unseen, 1);
        if (into != NULL) {
            rmm__graphs_changed(&self->graphs, event->graph);
        }
    } else if (into != NULL) {
        rmm__graphs_add_all(&self->graphs, into->body, graph->body);
    } else if (event->graph == 0) {
        run(self, call, graph);
    }
}

/* --- lives of graphs --------------------------------------------------------------- */

static void add_part(state_t *self, uint64_t key, uint64_t of)
{
    rmm_graph_t *part = rmm__graphs_find(&self->graphs, of);
    rmm_graph_t *graph = rmm__graphs_find(&self->graphs, key);

    if (graph != NULL && part != NULL) {
        rmm__graphs_add_all(&self->graphs, graph->body, part->body);
    } else {
        rmm__graphs_changed(&self->graphs, key);
    }
}

static void follow(state_t *self, const rmm_diag_event_v1_t *event)
{
    uint64_t key = event->word_count > 0 ? event->words[0] : 0;
    uint64_t of = event->word_count > 1 ? event->words[1] : 0;

    switch (event->kind) {
    case RMM_DIAG_GRAPH_MADE:
        rmm__graphs_made(
            &self->graphs, key, of,
            of != 0 && (event->word_count < 3 || event->words[2] == 0));
        break;
    case RMM_DIAG_GRAPH_CHANGED:
        rmm__graphs_changed(&self->graphs, key);
        break;
    case RMM_DIAG_GRAPH_PART:
        if (key != 0) { /* 0 would be all graphs */
            add_part(self, key, of);
        }
        break;
    case RMM_DIAG_GRAPH_ENDS:
        rmm__graphs_end(&self->graphs, key);
        break;
    default:
        break;
    }
}

static void after(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;
    const rmm_diag_event_v1_t *event = call->event;

    forget_stale(self);
    if (event->kind == RMM_DIAG_LAUNCH || rmm__event_has_range(event)) {
        capture(self, call);
    } else if (event->kind == RMM_DIAG_GRAPH_LAUNCH) {
        launch(self, call);
    } else {
        follow(self, event);
    }
}

/* --- frees ------------------------------------------------------------------------- */

static void add_free(const rmm_diag_call_t *call, const rmm_graph_node_t *node)
{
    const rmm_freed_block_t *freed = &call->freed;

    rmm__findings_add(
        &call->engine->findings, &(rmm_finding_t){
                                     .kind = RMM_DIAG_FREE_UNDER_GRAPH,
                                     .access = RMM_DIAG_FREES,
                                     .block = freed->block,
                                     .address = freed->block.address,
                                     .user = RMM_DIAG_NO_USER,
                                     .stream_id = freed->freed_stream_id,
                                     .other_user = node->user,
                                     .other_call = node->kind,
                                     .other_stream_id = UINT64_MAX,
                                     .confidence = RMM_DIAG_HINT,
                                     .origin = freed->origin});
}

static void freed(void *state, rmm_diag_call_t *call)
{
    state_t *self = state;
    const rmm_diag_row_t *row = &call->engine->blocks.rows[call->index];
    rmm_graph_block_t *block = NULL;
    const rmm_graph_node_t *node = NULL;

    if (call->is_plain) {
        block = rmm__graphs_block(
            &self->graphs, self->records[call->index], call->index,
            RMM_ROW_GET(row, allocated_ns));
    }
    if (block == NULL) {
        return;
    }
    block->is_freed = true;
    block->freed = call->freed;
    if ((call->modes & RMM_DIAG_MODE_ORDER) != 0) {
        node = rmm__graphs_user(&self->graphs, block);
    }
    if (node != NULL) {
        add_free(call, node);
    }
}

const rmm_checker_t rmm__graph_checker = {
    .state_bytes = sizeof(state_t),
    .init = init,
    .fini = fini,
    .allocated = allocated,
    .freed = freed,
    .after = after};
