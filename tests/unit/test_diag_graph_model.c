/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lives of captured graphs and of their blocks in drawn programs, against a model that keeps every
 * use in a list and searches it: what each launch and each free finds, what counts as a use, and
 * which graphs are not known. Handles and addresses are few, so they are used again all the time.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <string.h>

#include "harness/random.h"
#include "unit/diag_fixture.h"

#define BASE 0x7f4000000000ull
#define BYTES 4096u
#define KEY 0x1000u

enum {
    SEEDS = 400,
    STEPS = 400,
    GRAPHS = 6,
    BLOCKS = 5,
    BODIES = 512,
    NODES = 4096, /* of a body */
    ALLOCATIONS = 1024
};

/* A kernel or fill, and the allocations that it uses. */
typedef struct node {
    bool is_fill;
    uint32_t used[2];
    uint32_t count;
} node_t;

typedef struct body {
    bool is_unsure;
    uint32_t count;
    node_t nodes[NODES];
} body_t;

static struct {
    uint64_t random;
    struct {
        body_t *body; /* NULL: the graph is not known */
        bool is_executable;
        bool may_capture; /* a capture into it is under way */
    } graphs[GRAPHS];
    body_t bodies[BODIES];
    uint32_t body_count;
    uint32_t live[BLOCKS]; /* its allocation; 0: none */
    bool is_freed[ALLOCATIONS];
    uint64_t launches[ALLOCATIONS], fills[ALLOCATIONS];
    uint32_t allocation_count;
    uint64_t findings, unseen, graph_launches, all_launches, all_fills;
} model;

static diag_fixture_t diag;

static uint32_t any(uint32_t bound)
{
    return (uint32_t)draw(&model.random, bound);
}

static uint64_t address_of(uint32_t block)
{
    return BASE + block * (uint64_t)BYTES;
}

static void tell(uint32_t kind, uint64_t first, uint64_t second, uint64_t third)
{
    const uint64_t words[] = {first, second, third};

    diag_event(&diag, kind, NULL, NULL, words, 3);
}

static uint32_t owners_of(const body_t *body)
{
    uint32_t owners = 0;

    for (uint32_t i = 0; i < GRAPHS; i++) {
        owners += model.graphs[i].body == body ? 1 : 0;
    }
    return owners;
}

/* --- blocks ------------------------------------------------------------------------ */

static bool uses(const body_t *body, uint32_t allocation)
{
    for (uint32_t n = 0; n < body->count && !body->is_unsure; n++) {
        for (uint32_t i = 0; i < body->nodes[n].count; i++) {
            if (body->nodes[n].used[i] == allocation) {
                return true;
            }
        }
    }
    return false;
}

static bool is_in_executable(uint32_t allocation)
{
    for (uint32_t i = 0; i < GRAPHS; i++) {
        if (model.graphs[i].body != NULL && model.graphs[i].is_executable &&
            uses(model.graphs[i].body, allocation)) {
            return true;
        }
    }
    return false;
}

static void free_block(uint32_t at)
{
    rmm_diag_block_v1_t block = diag_block(address_of(at), BYTES);
    uint32_t allocation = model.live[at];

    model.live[at] = 0;
    if (any(8) == 0) { /* into a capture: the memory is the graph's */
        block.flags = RMM_DIAG_BLOCK_CAPTURED;
    } else {
        model.findings += is_in_executable(allocation) ? 1 : 0;
        model.is_freed[allocation] = true;
    }
    rmm__diag_engine_on_free(diag.engine, &block);
}

/* Of a live block: its free was not seen. */
static void allocate_block(uint32_t at)
{
    model.live[at] = ++model.allocation_count;
    diag_alloc(&diag, address_of(at), BYTES);
}

/* --- nodes ------------------------------------------------------------------------- */

static void count(const node_t *node)
{
    *(node->is_fill ? &model.all_fills : &model.all_launches) += 1;
    for (uint32_t i = 0; i < node->count; i++) {
        uint32_t used = node->used[i];

        *(node->is_fill ? &model.fills[used] : &model.launches[used]) += 1;
    }
}

static void add(body_t *body, const node_t *node)
{
    if (body->is_unsure || owners_of(body) > 1) {
        body->is_unsure = true;
        return;
    }
    assert_true(body->count < NODES);
    body->nodes[body->count++] = *node;
}

/* Of one or two blocks that are live. */
static node_t draw_node(uint64_t words[2])
{
    node_t node = {.is_fill = any(3) == 0};
    uint32_t first = any(BLOCKS);

    for (uint32_t i = 0; i < BLOCKS && node.count < (node.is_fill ? 1u : 2u); i++) {
        uint32_t at = (first + i) % BLOCKS;

        if (model.live[at] != 0) {
            words[node.count] = address_of(at) + any(BYTES);
            node.used[node.count++] = model.live[at];
        }
    }
    return node;
}

static void capture_node(uint32_t graph)
{
    uint64_t words[2];
    const node_t node = draw_node(words);
    body_t *body = model.graphs[graph].body;
    const rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = node.is_fill ? RMM_DIAG_SET : RMM_DIAG_LAUNCH,
        .function = node.is_fill ? NULL : "kernel",
        .name = node.is_fill ? "fill" : "kernel",
        .words = words,
        .word_count = node.count,
        .bytes = node.is_fill ? 1 : 0,
        .graph = KEY + graph,
        .capturing = 1};

    if (node.count == 0 || !model.graphs[graph].may_capture) {
        return;
    }
    if (body == NULL || body->is_unsure) {
        count(&node);
    } else {
        add(body, &node);
    }
    rmm__diag_engine_on_event(diag.engine, &event);
}

/* --- graphs ------------------------------------------------------------------------ */

static void begin_capture(uint32_t graph)
{
    assert_true(model.body_count < BODIES);
    model.graphs[graph].body = &model.bodies[model.body_count++];
    model.graphs[graph].is_executable = false;
    model.graphs[graph].may_capture = true;
    tell(RMM_DIAG_GRAPH_MADE, KEY + graph, 0, 0);
}

/* An executable, or a copy. */
static void make_of(uint32_t graph, uint32_t of)
{
    bool is_clone = any(3) == 0;

    if (graph == of) {
        return;
    }
    model.graphs[of].may_capture = false; /* it has ended */
    model.graphs[graph].body = model.graphs[of].body;
    model.graphs[graph].is_executable = !is_clone;
    model.graphs[graph].may_capture = false;
    tell(RMM_DIAG_GRAPH_MADE, KEY + graph, KEY + of, is_clone ? 1 : 0);
}

static void end_graph(uint32_t graph)
{
    model.graphs[graph].body = NULL;
    model.graphs[graph].may_capture = false;
    tell(RMM_DIAG_GRAPH_ENDS, KEY + graph, 0, 0);
}

static void change_graph(uint32_t graph)
{
    if (model.graphs[graph].body != NULL) {
        model.graphs[graph].body->is_unsure = true;
    }
    tell(RMM_DIAG_GRAPH_CHANGED, KEY + graph, 0, 0);
}

static void add_all(body_t *body, const body_t *part)
{
    if (part == body || part->is_unsure) {
        body->is_unsure = true;
        return;
    }
    for (uint32_t i = 0; i < part->count; i++) {
        add(body, &part->nodes[i]);
    }
}

static bool is_short(const body_t *body)
{
    return body == NULL || body->count < 64;
}

static void add_part(uint32_t graph, uint32_t of)
{
    body_t *body = model.graphs[graph].body;
    const body_t *part = model.graphs[of].body;

    if (!is_short(body) || !is_short(part)) {
        return;
    }
    if (body != NULL && part != NULL) {
        add_all(body, part);
    } else if (body != NULL) {
        body->is_unsure = true;
    }
    tell(RMM_DIAG_GRAPH_PART, KEY + graph, KEY + of, 0);
}

static void run_node(const node_t *node)
{
    node_t rest = {.is_fill = node->is_fill};

    for (uint32_t i = 0; i < node->count; i++) {
        if (model.is_freed[node->used[i]]) {
            model.findings++;
        } else {
            rest.used[rest.count++] = node->used[i];
        }
    }
    count(&rest);
}

static void launch_graph(uint32_t graph)
{
    body_t *body = model.graphs[graph].body;

    model.graph_launches++;
    if (body == NULL || body->is_unsure) {
        model.unseen++;
    } else {
        model.graphs[graph].is_executable = true;
        for (uint32_t i = 0; i < body->count; i++) {
            run_node(&body->nodes[i]);
        }
    }
    tell(RMM_DIAG_GRAPH_LAUNCH, KEY + graph, 0, 0);
}

static void capture_launch(uint32_t into, uint32_t graph)
{
    const uint64_t word = KEY + graph;
    const rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = RMM_DIAG_GRAPH_LAUNCH,
        .words = &word,
        .word_count = 1,
        .graph = KEY + into,
        .capturing = 1};
    body_t *body = model.graphs[into].body;
    const body_t *part = model.graphs[graph].body;

    if (!model.graphs[into].may_capture || !is_short(body) || !is_short(part)) {
        return;
    }
    model.graph_launches++;
    if (part == NULL || part->is_unsure) {
        model.unseen++;
    }
    if (body != NULL && part != NULL) {
        add_all(body, part);
    } else if (body != NULL) {
        body->is_unsure = true;
    }
    rmm__diag_engine_on_event(diag.engine, &event);
}

/* --- programs ---------------------------------------------------------------------- */

static void step(void)
{
    uint32_t graph = any(GRAPHS), other = any(GRAPHS), block = any(BLOCKS);

    switch (any(16)) {
    case 0:
        begin_capture(graph);
        break;
    case 1:
    case 2:
        make_of(graph, other);
        break;
    case 3:
        end_graph(graph);
        break;
    case 4:
        any(4) == 0 ? change_graph(graph) : add_part(graph, other);
        break;
    case 5:
        capture_launch(graph, other);
        break;
    case 6:
    case 7:
    case 8:
        launch_graph(graph);
        break;
    case 9:
    case 10:
    case 11:
        model.live[block] != 0 && any(16) != 0 ? free_block(block)
                                               : allocate_block(block);
        break;
    default:
        capture_node(graph);
        break;
    }
}

static void compare(void)
{
    assert_int_equal(diag.header->findings_total, model.findings);
    assert_int_equal(diag.header->graphs_unseen, model.unseen);
    assert_int_equal(diag.header->graph_launches, model.graph_launches);
    assert_int_equal(diag.header->launches, model.all_launches);
    assert_int_equal(diag.header->fills, model.all_fills);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        const rmm_diag_row_t *row = diag_row(&diag, address_of(i));

        assert_true((row != NULL) == (model.live[i] != 0));
        if (row != NULL) {
            assert_int_equal(row->launches, model.launches[model.live[i]]);
            assert_int_equal(row->fills, model.fills[model.live[i]]);
        }
    }
}

TEST_CASE(launches_and_frees_find_what_the_model_says)
{
    uint64_t findings = 0;

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        memset(&model, 0, sizeof(model));
        model.random = seed;
        diag = diag_open_modes(
            64, 16, NULL,
            RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_BOUNDS | RMM_DIAG_MODE_ORDER);
        fprintf(stderr, "%sseed %d", seed == 1 ? "" : "\r", (int)seed);
        for (int i = 0; i < STEPS; i++) {
            step();
            compare();
        }
        findings += model.findings;
        diag_close(&diag);
    }
    fputc('\n', stderr);
    assert_true(findings > SEEDS);
}
