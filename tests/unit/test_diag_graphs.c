/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captured graphs in the engine: what counts at a launch, what is an error after a free, and what
 * is not known.
 */
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "diag/findings.h"
#include "diag/graphs.h"
#include "unit/diag_fixture.h"

#define BASE 0x7f4000000000ull
#define CAPTURE 0x11u
#define EXECUTABLE 0x22u

static diag_fixture_t diag;

static int set_up(void **state)
{
    diag = diag_open_modes(
        64, 16, NULL, RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_BOUNDS | RMM_DIAG_MODE_ORDER);
    return 0;
}

static int tear_down(void **state)
{
    diag_close(&diag);
    return 0;
}

static void tell(uint32_t kind, uint64_t graph, uint64_t of)
{
    const uint64_t words[] = {graph, of};

    diag_event(&diag, kind, NULL, NULL, words, 2);
}

static void give(rmm_diag_event_v1_t event, uint64_t graph)
{
    event.struct_size = sizeof(event);
    event.graph = graph;
    event.capturing = graph != 0;
    rmm__diag_engine_on_event(diag.engine, &event);
}

static void capture_kernel(const char *name, uint64_t word)
{
    give(
        (rmm_diag_event_v1_t){
            .kind = RMM_DIAG_LAUNCH,
            .function = name,
            .name = name,
            .words = &word,
            .word_count = 1},
        CAPTURE);
}

static void capture_fill(uint64_t to, uint64_t bytes)
{
    give(
        (rmm_diag_event_v1_t){
            .kind = RMM_DIAG_SET,
            .name = "fill",
            .words = &to,
            .word_count = 1,
            .bytes = bytes},
        CAPTURE);
}

static void launch_graph(uint64_t graph)
{
    give(
        (rmm_diag_event_v1_t){
            .kind = RMM_DIAG_GRAPH_LAUNCH, .words = &graph, .word_count = 1},
        0);
}

static void drop_flagged(uint64_t address, uint32_t flags)
{
    rmm_diag_block_v1_t block = diag_block(address, 100);

    block.flags = flags;
    rmm__diag_engine_on_free(diag.engine, &block);
}

/* A graph of a kernel and a fill of one block. */
static void make_graph(void)
{
    diag_alloc(&diag, BASE, 100);
    tell(RMM_DIAG_GRAPH_MADE, CAPTURE, 0);
    capture_kernel("kernel", BASE + 8);
    capture_fill(BASE, 100);
    tell(RMM_DIAG_GRAPH_MADE, EXECUTABLE, CAPTURE);
    tell(RMM_DIAG_GRAPH_ENDS, CAPTURE, 0);
}

static const rmm_diag_row_t *row(uint64_t address)
{
    return diag_row(&diag, address);
}

static void a_launch_of_a_graph_counts_all_that_was_captured(void **state)
{
    make_graph();
    assert_int_equal(row(BASE)->launches, 0);
    assert_int_equal(diag.header->launches, 0);
    for (int i = 0; i < 3; i++) {
        launch_graph(EXECUTABLE);
    }
    assert_int_equal(row(BASE)->launches, 3);
    assert_int_equal(row(BASE)->fills, 3);
    assert_int_equal(diag.header->launches, 3);
    assert_int_equal(diag.header->fills, 3);
    assert_int_equal(diag.kernels[row(BASE)->first_user].launches, 3);
    assert_int_equal(diag.header->graph_launches, 3);
    assert_int_equal(diag.header->graphs_unseen, 0);
    assert_int_equal(diag.header->findings_total, 0);
}

static void
what_is_not_known_counts_at_the_capture_and_makes_launches_unseen(void **state)
{
    diag_alloc(&diag, BASE, 100);
    capture_kernel("kernel", BASE); /* no begin was told */
    assert_int_equal(row(BASE)->launches, 1);
    launch_graph(EXECUTABLE);
    assert_int_equal(diag.header->graphs_unseen, 1);
    tell(RMM_DIAG_GRAPH_MADE, CAPTURE, 0);
    capture_kernel("kernel", BASE);
    tell(RMM_DIAG_GRAPH_MADE, EXECUTABLE, CAPTURE);
    tell(RMM_DIAG_GRAPH_CHANGED, EXECUTABLE, 0);
    launch_graph(EXECUTABLE);
    assert_int_equal(diag.header->graphs_unseen, 2);
    assert_int_equal(row(BASE)->launches, 1);
}

static void a_launch_behind_the_free_of_a_block_is_a_finding_for_each_user(void **state)
{
    const rmm_diag_finding_t *finding = &diag.findings[1];

    make_graph();
    launch_graph(EXECUTABLE);
    diag_free(&diag, BASE, 100);
    assert_int_equal(diag.header->findings_total, 1);
    assert_int_equal(diag.findings[0].kind, RMM_DIAG_FREE_UNDER_GRAPH);
    assert_int_equal(diag.findings[0].confidence, RMM_DIAG_HINT);
    assert_string_equal(diag.kernels[diag.findings[0].other_user].name, "kernel");
    diag_alloc(&diag, BASE, 100); /* its memory is another's */
    launch_graph(EXECUTABLE);
    assert_int_equal(diag.header->findings_total, 3);
    assert_int_equal(finding->kind, RMM_DIAG_USE_AFTER_FREE);
    assert_int_equal(finding->call, RMM_DIAG_GRAPH_LAUNCH);
    assert_int_equal(finding->confidence, RMM_DIAG_LIKELY);
    assert_int_equal(finding->block_address, BASE);
    assert_int_equal(finding->address, BASE + 8);
    assert_string_equal(diag.kernels[finding->user].name, "kernel");
    assert_int_equal(diag.findings[2].confidence, RMM_DIAG_CERTAIN);
    assert_int_equal(row(BASE)->launches, 0);
}

static void a_free_behind_the_graph_or_into_its_capture_is_right(void **state)
{
    make_graph();
    launch_graph(EXECUTABLE);
    drop_flagged(BASE, RMM_DIAG_BLOCK_CAPTURED); /* the memory is the graph's */
    launch_graph(EXECUTABLE);
    tell(RMM_DIAG_GRAPH_ENDS, EXECUTABLE, 0);
    make_graph();
    tell(RMM_DIAG_GRAPH_ENDS, EXECUTABLE, 0);
    diag_free(&diag, BASE, 100);
    assert_int_equal(diag.header->findings_total, 0);
}

/* As cudaMallocAsync does on a stream that captures. What the host frees, the next launch allocates
 * again, at the same address. */
static void memory_that_a_graph_allocates_is_freed_before_each_launch(void **state)
{
    rmm_diag_block_v1_t block = diag_block(BASE, 100);

    tell(RMM_DIAG_GRAPH_MADE, CAPTURE, 0);
    block.flags = RMM_DIAG_BLOCK_IN_STREAM_ORDER | RMM_DIAG_BLOCK_RETURNED |
                  RMM_DIAG_BLOCK_CAPTURED;
    rmm__diag_engine_on_alloc(diag.engine, &block);
    capture_kernel("kernel", BASE);
    tell(RMM_DIAG_GRAPH_MADE, EXECUTABLE, CAPTURE);
    launch_graph(EXECUTABLE);
    assert_int_equal(row(BASE)->launches, 1);
    drop_flagged(BASE, RMM_DIAG_BLOCK_IN_STREAM_ORDER | RMM_DIAG_BLOCK_RETURNED);
    launch_graph(EXECUTABLE);
    assert_int_equal(diag.header->findings_total, 0);
}

static void a_handle_that_is_used_again_is_another_graph(void **state)
{
    make_graph();
    diag_free(&diag, BASE, 100);
    assert_int_equal(diag.header->findings_total, 1);
    tell(RMM_DIAG_GRAPH_MADE, CAPTURE, 0); /* the end of the old one was not seen */
    tell(RMM_DIAG_GRAPH_MADE, EXECUTABLE, CAPTURE);
    launch_graph(EXECUTABLE);
    assert_int_equal(diag.header->findings_total, 1);
    assert_int_equal(diag.header->graphs_unseen, 0);
}

static void a_graph_in_a_graph_is_a_part_of_it(void **state)
{
    const uint64_t inner = EXECUTABLE;

    make_graph();
    tell(RMM_DIAG_GRAPH_MADE, CAPTURE, 0);
    give(
        (rmm_diag_event_v1_t){
            .kind = RMM_DIAG_GRAPH_LAUNCH, .words = &inner, .word_count = 1},
        CAPTURE);
    assert_int_equal(row(BASE)->launches, 0);
    tell(RMM_DIAG_GRAPH_ENDS, EXECUTABLE, 0);
    tell(RMM_DIAG_GRAPH_MADE, 0x33, CAPTURE);
    launch_graph(0x33);
    assert_int_equal(row(BASE)->launches, 1);
    assert_int_equal(row(BASE)->fills, 1);
}

static void more_graphs_and_nodes_than_there_is_room_for_are_unseen(void **state)
{
    diag_alloc(&diag, BASE, 100);
    for (uint64_t i = 0; i <= RMM_GRAPHS_COUNT; i++) {
        tell(RMM_DIAG_GRAPH_MADE, 0x1000 + i, 0);
    }
    launch_graph(0x1000 + RMM_GRAPHS_COUNT);
    assert_int_equal(diag.header->graphs_unseen, 1);
    for (uint64_t i = 0; i <= RMM_GRAPHS_COUNT; i++) {
        tell(RMM_DIAG_GRAPH_ENDS, 0x1000 + i, 0);
    }
    tell(RMM_DIAG_GRAPH_MADE, CAPTURE, 0);
    for (uint32_t i = 0; i <= RMM_GRAPHS_REFS; i++) {
        capture_kernel("kernel", BASE);
    }
    launch_graph(CAPTURE);
    assert_int_equal(diag.header->graphs_unseen, 2);
    tell(RMM_DIAG_GRAPH_ENDS, CAPTURE, 0);
    make_graph(); /* there is room again */
    launch_graph(EXECUTABLE);
    assert_int_equal(diag.header->graphs_unseen, 2);
}

static void a_graph_without_room_takes_no_use_from_another(void **state)
{
    make_graph();
    tell(RMM_DIAG_GRAPH_MADE, CAPTURE, 0);
    for (uint32_t i = 0; i <= RMM_GRAPHS_REFS; i++) {
        capture_kernel("other", BASE);
    }
    diag_free(&diag, BASE, 100);
    assert_int_equal(diag.header->findings_total, 1); /* a free under a graph */
    launch_graph(EXECUTABLE);
    assert_int_equal(diag.header->findings_total, 3);
}

static void a_block_in_several_graphs_is_freed_in_all(void **state)
{
    diag_alloc(&diag, BASE, 100);
    diag_alloc(&diag, BASE + 256, 100);
    for (uint64_t graph = CAPTURE; graph < CAPTURE + 3; graph++) {
        tell(RMM_DIAG_GRAPH_MADE, graph, 0);
        for (uint64_t word = BASE; word <= BASE + 256; word += 256) {
            give(
                (rmm_diag_event_v1_t){
                    .kind = RMM_DIAG_LAUNCH,
                    .function = "kernel",
                    .name = "kernel",
                    .words = &word,
                    .word_count = 1},
                graph);
        }
    }
    tell(RMM_DIAG_GRAPH_ENDS, CAPTURE, 0); /* two are left */
    launch_graph(CAPTURE + 2);
    diag_free(&diag, BASE, 100);
    assert_int_equal(diag.header->findings_total, 1);
    launch_graph(CAPTURE + 1);
    launch_graph(CAPTURE + 2);
    assert_int_equal(diag.header->findings_total, 3);
    assert_int_equal(row(BASE + 256)->launches, 3);
}

/* Vacant records are taken again, by blocks of the same rows and of others. */
static void what_is_kept_of_a_block_ends_with_the_last_graph_that_uses_it(void **state)
{
    for (uint64_t i = 0; i < 100; i++) {
        uint64_t other = BASE + 256 + 256 * (i % 7);

        make_graph();
        diag_alloc(&diag, other, 100);
        tell(RMM_DIAG_GRAPH_MADE, CAPTURE, 0);
        capture_kernel("other", other);
        tell(RMM_DIAG_GRAPH_ENDS, EXECUTABLE, 0);
        diag_free(&diag, BASE, 100); /* no graph uses it */
        launch_graph(CAPTURE);
        assert_int_equal(row(other)->launches, 1);
        assert_int_equal(diag.header->findings_total, i);
        diag_free(&diag, other, 100);
        assert_int_equal(diag.header->findings_total, i + 1);
        assert_string_equal(diag.kernels[diag.findings[0].other_user].name, "other");
    }
}

static void records_of_blocks_that_no_graph_uses_are_taken_again(void **state)
{
    static rmm_graphs_t graphs;

    for (uint64_t i = 1; i <= 1000; i++) {
        rmm_graph_body_t *body = NULL;

        rmm__graphs_made(&graphs, i, 0, false);
        body = rmm__graphs_find(&graphs, i)->body;
        rmm__graphs_add_node(&graphs, body, RMM_DIAG_LAUNCH, 0);
        for (uint32_t row = 0; row < 3; row++) {
            (void)rmm__graphs_add_use(
                &graphs, body, &(rmm_graph_use_t){.row = row, .allocated_ns = i},
                RMM_LIVE_NONE);
        }
        rmm__graphs_end(&graphs, i - 1);
    }
    assert_int_equal(graphs.block_count, 6);
    rmm__graphs_end_all(&graphs);
    assert_int_equal(graphs.ref_count, 0);
}

static void the_nodes_of_all_graphs_together_are_bounded(void **state)
{
    enum { GRAPHS = 600, NODES = 1000 };
    static rmm_graphs_t graphs;

    for (uint64_t key = 1; key <= GRAPHS; key++) {
        rmm__graphs_made(&graphs, key, 0, false);
        for (int i = 0; i < NODES; i++) {
            rmm__graphs_add_node(
                &graphs, rmm__graphs_find(&graphs, key)->body, RMM_DIAG_LAUNCH, 0);
        }
    }
    assert_true(graphs.node_count <= RMM_GRAPHS_NODES);
    assert_false(rmm__graphs_find(&graphs, 1)->body->is_unsure);
    assert_true(rmm__graphs_find(&graphs, GRAPHS)->body->is_unsure);
    rmm__graphs_end_all(&graphs);
    assert_int_equal(graphs.node_count, 0);
}

static void a_graph_that_is_a_part_of_itself_is_not_known(void **state)
{
    const uint64_t inner = EXECUTABLE;

    diag_alloc(&diag, BASE, 100);
    tell(RMM_DIAG_GRAPH_MADE, CAPTURE, 0);
    capture_kernel("kernel", BASE);
    tell(RMM_DIAG_GRAPH_MADE, EXECUTABLE, CAPTURE); /* amid its capture */
    give(
        (rmm_diag_event_v1_t){
            .kind = RMM_DIAG_GRAPH_LAUNCH, .words = &inner, .word_count = 1},
        CAPTURE);
    launch_graph(EXECUTABLE);
    assert_int_equal(diag.header->graphs_unseen, 1);
}

static void a_graph_that_was_not_followed_for_a_while_is_not_known(void **state)
{
    make_graph();
    rmm__diag_engine_set_modes(diag.engine, 0);
    /* the program destroys it, and gives its handle to a graph of another block */
    tell(RMM_DIAG_GRAPH_ENDS, EXECUTABLE, 0);
    diag_free(&diag, BASE, 100);
    tell(RMM_DIAG_GRAPH_MADE, CAPTURE, 0);
    tell(RMM_DIAG_GRAPH_MADE, EXECUTABLE, CAPTURE);
    rmm__diag_engine_set_modes(diag.engine, RMM_DIAG_MODE_BOUNDS | RMM_DIAG_MODE_USAGE);
    launch_graph(EXECUTABLE);
    assert_int_equal(diag.header->findings_total, 0);
    assert_int_equal(diag.header->graphs_unseen, 1);
    make_graph(); /* from here on all is seen */
    rmm__diag_engine_set_modes(diag.engine, RMM_DIAG_MODE_BOUNDS);
    diag_free(&diag, BASE, 100);
    launch_graph(EXECUTABLE);
    assert_int_equal(diag.header->findings_total, 2);
}

#define WITH_ENGINE(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_ENGINE(a_launch_of_a_graph_counts_all_that_was_captured),
        WITH_ENGINE(what_is_not_known_counts_at_the_capture_and_makes_launches_unseen),
        WITH_ENGINE(a_launch_behind_the_free_of_a_block_is_a_finding_for_each_user),
        WITH_ENGINE(a_free_behind_the_graph_or_into_its_capture_is_right),
        WITH_ENGINE(memory_that_a_graph_allocates_is_freed_before_each_launch),
        WITH_ENGINE(a_handle_that_is_used_again_is_another_graph),
        WITH_ENGINE(a_graph_in_a_graph_is_a_part_of_it),
        WITH_ENGINE(more_graphs_and_nodes_than_there_is_room_for_are_unseen),
        WITH_ENGINE(a_graph_without_room_takes_no_use_from_another),
        WITH_ENGINE(a_block_in_several_graphs_is_freed_in_all),
        WITH_ENGINE(what_is_kept_of_a_block_ends_with_the_last_graph_that_uses_it),
        cmocka_unit_test(records_of_blocks_that_no_graph_uses_are_taken_again),
        cmocka_unit_test(the_nodes_of_all_graphs_together_are_bounded),
        WITH_ENGINE(a_graph_that_is_a_part_of_itself_is_not_known),
        WITH_ENGINE(a_graph_that_was_not_followed_for_a_while_is_not_known),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
