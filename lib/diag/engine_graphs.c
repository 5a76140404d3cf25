/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine's part in captured graphs: see engine_impl.h and graphs.h. What is captured is noted
 * with the blocks that it is given, and counts as a use at each launch of its graph. A launch
 * after the free of such a block is an error, found in mode bounds; in mode order the free itself
 * is, while the graph can be launched.
 */
#include "diag/engine_impl.h"

#include "diag/row.h"

static_assert(
    RMM_DIAG_CALL_GRAPH == RMM_DIAG_GRAPH_LAUNCH &&
        RMM_DIAG_CALL_LAUNCH == RMM_DIAG_LAUNCH,
    "readers know the numbers");

/* --- gaps -------------------------------------------------------------------------- */

/* Stale: while no mode followed graphs, handles were given to other graphs, and nodes were
 * changed. */
void rmm__diag_graphs_forget_stale_locked(rmm_diag_engine_t *engine)
{
    uint32_t gaps =
        atomic_load_explicit(&engine->modes.graph_gaps, memory_order_relaxed);

    RMM_ASSERT_LOCKED(&engine->lock);
    if (gaps != engine->graph_gaps) {
        rmm__graphs_end_all(&engine->graphs);
        engine->graph_gaps = gaps;
    }
}

/* --- capture ----------------------------------------------------------------------- */

static void add_refs_locked(
    rmm_diag_engine_t *engine, rmm_graph_body_t *body, const rmm_diag_event_v1_t *event)
{
    rmm_uses_t *uses = &engine->uses;

    for (uint32_t i = 0; i < uses->used_count; i++) {
        uint32_t row = uses->used[i];

        engine->blocks[row].record = rmm__graphs_add_use(
            &engine->graphs, body,
            &(rmm_graph_use_t){
                .row = row,
                .allocated_ns = RMM_ROW_GET(&engine->rows[row], allocated_ns),
                .address = uses->used_at[i]},
            engine->blocks[row].record);
    }
    if (uses->used_count == RMM_USES_LISTED) { /* there may be more */
        rmm__graphs_changed(&engine->graphs, event->graph);
    }
}

bool rmm__diag_graphs_captured_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event)
{
    const rmm_graph_t *graph =
        event->graph != 0 ? rmm__graphs_find(&engine->graphs, event->graph) : NULL;

    RMM_ASSERT_LOCKED(&engine->lock);
    if (graph == NULL || graph->body->is_unsure) {
        return false;
    }
    rmm__graphs_add_node(
        &engine->graphs, graph->body, event->kind,
        rmm__uses_note(&engine->uses, event));
    add_refs_locked(engine, graph->body, event);
    return true;
}

/* --- launch ------------------------------------------------------------------------ */

static void add_finding_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event,
    const rmm_graph_node_t *node, const rmm_graph_ref_t *ref)
{
    const rmm_freed_block_t *freed = &engine->graphs.blocks[ref->block].freed;
    bool is_launch = node->kind == RMM_DIAG_LAUNCH;

    rmm__findings_add(
        &engine->findings,
        &(rmm_finding_t){
            .kind = RMM_DIAG_USE_AFTER_FREE,
            .call = event->kind,
            .access = RMM_DIAG_USES,
            .block = freed->block,
            .address = ref->address,
            .user = node->user,
            .stream_id = rmm__stream_names_find(&engine->streams, event->stream),
            .other_user = RMM_DIAG_NO_USER,
            .other_stream_id = freed->freed_stream_id,
            .confidence = is_launch ? RMM_DIAG_LIKELY : RMM_DIAG_CERTAIN,
            .origin = freed->origin,
            .freed = freed->freed});
}

static bool is_live(const rmm_diag_engine_t *engine, const rmm_graph_block_t *block)
{
    const rmm_diag_row_t *row = &engine->rows[block->row];

    return RMM_ROW_GET(row, live) != 0 &&
           RMM_ROW_GET(row, allocated_ns) == block->allocated_ns;
}

static void run_node_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event,
    const rmm_graph_body_t *body, const rmm_graph_node_t *node)
{
    uint32_t rows[RMM_USES_LISTED];
    uint32_t count = 0;

    for (uint32_t i = 0; i < node->count; i++) {
        const rmm_graph_ref_t *ref = &body->refs[node->first + i];
        const rmm_graph_block_t *block = &engine->graphs.blocks[ref->block];

        if (block->is_freed && rmm__diag_mode_is_on(engine, RMM_DIAG_MODE_BOUNDS)) {
            add_finding_locked(engine, event, node, ref);
        } else if (is_live(engine, block) && count < RMM_USES_LISTED) {
            rows[count++] = block->row;
        }
    }
    if (rmm__diag_mode_is_on(engine, RMM_DIAG_MODES_WITH_USES)) {
        rmm__uses_replay(&engine->uses, node->kind, node->user, rows, count);
    }
}

static void run_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event, rmm_graph_t *graph)
{
    graph->is_executable = true;
    for (uint32_t i = 0; i < graph->body->node_count; i++) {
        run_node_locked(engine, event, graph->body, &graph->body->nodes[i]);
    }
}

void rmm__diag_graphs_launched_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event)
{
    rmm_graph_t *graph = event->word_count > 0
                             ? rmm__graphs_find(&engine->graphs, event->words[0])
                             : NULL;
    const rmm_graph_t *into =
        event->graph != 0 ? rmm__graphs_find(&engine->graphs, event->graph) : NULL;

    RMM_ASSERT_LOCKED(&engine->lock);
    RMM_ROW_ADD(&engine->header->graph_launches, 1);
    if (graph == NULL || graph->body->is_unsure) {
        RMM_ROW_ADD(&engine->header->graphs_unseen, 1);
        if (into != NULL) {
            rmm__graphs_changed(&engine->graphs, event->graph);
        }
    } else if (into != NULL) {
        rmm__graphs_add_all(&engine->graphs, into->body, graph->body);
    } else if (event->graph == 0) {
        run_locked(engine, event, graph);
    }
}

static void add_part_locked(rmm_diag_engine_t *engine, uint64_t key, uint64_t of)
{
    rmm_graph_t *part = rmm__graphs_find(&engine->graphs, of);
    rmm_graph_t *graph = rmm__graphs_find(&engine->graphs, key);

    if (graph != NULL && part != NULL) {
        rmm__graphs_add_all(&engine->graphs, graph->body, part->body);
    } else {
        rmm__graphs_changed(&engine->graphs, key);
    }
}

bool rmm__diag_graphs_event_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event)
{
    uint64_t key = event->word_count > 0 ? event->words[0] : 0;
    uint64_t of = event->word_count > 1 ? event->words[1] : 0;

    RMM_ASSERT_LOCKED(&engine->lock);
    switch (event->kind) {
    case RMM_DIAG_GRAPH_MADE:
        rmm__graphs_made(
            &engine->graphs, key, of,
            of != 0 && (event->word_count < 3 || event->words[2] == 0));
        return true;
    case RMM_DIAG_GRAPH_CHANGED:
        rmm__graphs_changed(&engine->graphs, key);
        return true;
    case RMM_DIAG_GRAPH_PART:
        if (key != 0) { /* 0 would be all graphs */
            add_part_locked(engine, key, of);
        }
        return true;
    case RMM_DIAG_GRAPH_ENDS:
        rmm__graphs_end(&engine->graphs, key);
        return true;
    default:
        return false;
    }
}

/* --- frees ------------------------------------------------------------------------- */

static void add_free_locked(
    rmm_diag_engine_t *engine, const rmm_graph_node_t *node,
    const rmm_freed_block_t *freed)
{
    rmm__findings_add(
        &engine->findings, &(rmm_finding_t){
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

void rmm__diag_graphs_freed_locked(
    rmm_diag_engine_t *engine, uint32_t index, const rmm_freed_block_t *freed)
{
    rmm_graph_block_t *block = rmm__graphs_block(
        &engine->graphs, engine->blocks[index].record, index,
        RMM_ROW_GET(&engine->rows[index], allocated_ns));
    const rmm_graph_node_t *node = NULL;

    RMM_ASSERT_LOCKED(&engine->lock);
    if (block == NULL) {
        return;
    }
    block->is_freed = true;
    block->freed = *freed;
    if (rmm__diag_mode_is_on(engine, RMM_DIAG_MODE_ORDER)) {
        node = rmm__graphs_user(&engine->graphs, block);
    }
    if (node != NULL) {
        add_free_locked(engine, node, freed);
    }
}
