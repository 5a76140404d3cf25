/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole engine against a trivial shadow: which addresses are live, and what their
 * contents are. Random operations, faults among them; whatever happens, no two live blocks
 * overlap, no kernel sees another use's data, the figures are what a walk of the blocks
 * says, a refusal is repeated by an engine that has forgotten it, and all comes back.
 *
 * RMM_TEST_SEED reruns one seed of all kinds, RMM_TEST_SEEDS so many from 1 on.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>

#include "core/host_memory.h"
#include "driver/sim/control.h"
#include "harness/random.h"
#include "resources/arena_impl.h"

enum {
    STREAMS =
        6, /* the first is the legacy default one; the last two another device's */
    FOREIGN = 2,
    LIVE = 40,
    GRAPHS = 3,
    LEFT = 4, /* blocks of a graph that outlive its capture */
    STEPS = 300,
    FIXED_BYTES = 64 * 1024,
    UNKNOWN = 0 /* a number: the contents are not defined */
};

typedef struct block {
    char *ptr; /* NULL: none */
    size_t bytes, align;
    uint64_t number;
    int stream;
} block_t;

typedef struct graph {
    rmm_sim_graph_t graph; /* NULL: none */
    rmm_stream_t stream;   /* its launches are ordered on this one; NULL: it is gone */
    bool away;             /* of another device */
    block_t left[LEFT];
} graph_t;

typedef struct kind {
    const char *name;
    rmm_resource_t *(*make)(void);
    size_t most_bytes; /* of a block */
    bool is_arena;
    bool is_shared; /* never in single-stream mode */
} kind_t;

typedef struct model {
    const kind_t *kind;
    rmm_resource_t *mr;
    rmm_stream_t streams[STREAMS];
    block_t live[LIVE];
    graph_t graphs[GRAPHS];
    uint64_t random, next_number, step, alone_until;
    uint64_t mixups; /* written by kernels, which run one at a time */
    uint64_t refused, served;
    int devices;
    uint64_t lost_bytes, lost_addresses; /* by an earlier seed */
    bool has_failed;  /* a call of the driver: what it was to free may be lost */
    bool has_company; /* another thread uses the resource */
} model_t;

/* --- the engine seen from inside ----------------------------------------------------- */

static engine_t *engine_of(const model_t *model)
{
    return pool_from_base(model->mr)->engine;
}

typedef struct walk {
    const engine_t *engine;
    uint64_t live_bytes, live_count, live_units, free_units, given_up_units;
    uint32_t largest_units;
} walk_t;

static bool has_no_memory(const engine_t *engine, rmm_heap_t heap)
{
    return engine->range.address != NULL &&
           (heap == engine->range.absent || heap == engine->range.lost);
}

static bool look_at_block(void *context, const rmm_block_info_t *info)
{
    walk_t *walk = context;

    if (info->heap != RMM_HEAP_NONE) {
        if (!has_no_memory(walk->engine, info->heap)) {
            uint32_t largest =
                rmm__blocks_largest_free(walk->engine->blocks, info->heap);

            walk->free_units += info->units;
            walk->largest_units =
                largest > walk->largest_units ? largest : walk->largest_units;
        }
    } else if (info->tag == TAG_GIVEN_UP) {
        walk->given_up_units += info->units;
    } else {
        walk->live_bytes += info->units * RMM_BLOCKS_UNIT - info->tag;
        walk->live_units += info->units;
        walk->live_count++;
    }
    return true;
}

static uint64_t stuck_bytes(const engine_t *engine)
{
    uint64_t bytes = 0;

    for (uint32_t i = 0; i < engine->range.piece_count; i++) {
        if (engine->range.pieces[i].is_stuck) {
            bytes += engine->range.pieces[i].units * RMM_BLOCKS_UNIT;
        }
    }
    return bytes;
}

static void check_pool(model_t *model, uint64_t bytes, uint64_t count)
{
    engine_t *engine = engine_of(model);
    walk_t walk = {.engine = engine};
    engine_figures_t figures;
    const char *unsound;

    rmm__engine_figures(engine, &figures);
    rmm__mutex_lock(rmm__engine_mutex(engine));
    unsound = rmm__blocks_check(engine->blocks);
    rmm__blocks_walk(engine->blocks, look_at_block, &walk);
    rmm__mutex_unlock(rmm__engine_mutex(engine));
    if (unsound != NULL) {
        fail_msg("blocks: %s", unsound);
    }
    assert_int_equal(walk.live_bytes, bytes);
    assert_int_equal(walk.live_count, count);
    assert_int_equal(figures.free_bytes, walk.free_units * RMM_BLOCKS_UNIT);
    assert_int_equal(
        figures.largest_free_bytes, (uint64_t)walk.largest_units * RMM_BLOCKS_UNIT);
    assert_int_equal(
        figures.reserved_bytes,
        (walk.live_units + walk.free_units + walk.given_up_units) * RMM_BLOCKS_UNIT +
            stuck_bytes(engine));
    assert_true(figures.reserved_bytes <= engine->maximum_bytes);
    assert_int_equal(stats_of(model->mr).reserved_bytes, figures.reserved_bytes);
}

static void check_arena(model_t *model)
{
    arena_resource_t *arena = arena_from_base(model->mr);

    for (uint32_t i = 0; i <= ARENA_GLOBAL; i++) {
        engine_t *engine = rmm__arena_at(arena, i);

        if (engine != NULL) {
            rmm__mutex_lock(rmm__engine_mutex(engine));
            assert_null(rmm__blocks_check(engine->blocks));
            rmm__mutex_unlock(rmm__engine_mutex(engine));
        }
    }
}

static void check_figures(model_t *model)
{
    rmm_stats_t stats;
    uint64_t bytes = 0;
    uint64_t count = 0;

    if (model->has_company) {
        return;
    }
    for (int i = 0; i < LIVE + GRAPHS * LEFT; i++) {
        const block_t *block =
            i < LIVE ? &model->live[i]
                     : &model->graphs[(i - LIVE) / LEFT].left[(i - LIVE) % LEFT];

        bytes += block->ptr != NULL ? block->bytes : 0;
        count += block->ptr != NULL;
    }
    stats = stats_of(model->mr);
    assert_int_equal(stats.current_bytes, bytes);
    assert_int_equal(stats.current_count, count);
    assert_int_equal(stats.invalid_free_count, 0);
    if (model->kind->is_arena) {
        check_arena(model);
    } else {
        check_pool(model, bytes, count);
    }
}

/* --- blocks -------------------------------------------------------------------------- */

static bool is_foreign(const model_t *model, int stream)
{
    return model->devices > 1 && stream >= STREAMS - FOREIGN;
}

static void fill(model_t *model, block_t *block, rmm_stream_t stream, bool away)
{
    assert_cuda(rmm__sim_device_set(away));
    block->number = ++model->next_number;
    launch_fill(block->ptr, block->bytes, block->number, stream);
    assert_cuda(rmm__sim_device_set(0));
}

static void look(model_t *model, const block_t *block, rmm_stream_t stream, bool away)
{
    if (block->number != UNKNOWN) {
        assert_cuda(rmm__sim_device_set(away));
        launch_check(block->ptr, block->bytes, block->number, &model->mixups, stream);
        assert_cuda(rmm__sim_device_set(0));
    }
}

static void expect_no_overlap(const model_t *model, const block_t *fresh)
{
    for (int i = 0; i < LIVE + GRAPHS * LEFT; i++) {
        const block_t *block =
            i < LIVE ? &model->live[i]
                     : &model->graphs[(i - LIVE) / LEFT].left[(i - LIVE) % LEFT];

        assert_true(
            block->ptr == NULL || fresh->ptr + fresh->bytes <= block->ptr ||
            block->ptr + block->bytes <= fresh->ptr);
    }
    assert_true((uintptr_t)fresh->ptr % (fresh->align != 0 ? fresh->align : 256) == 0);
}

static void forget_known_failure(model_t *model)
{
    engine_t *engine = engine_of(model);

    rmm__mutex_lock(rmm__engine_mutex(engine));
    engine->known_failure.units = 0;
    rmm__mutex_unlock(rmm__engine_mutex(engine));
}

/* An engine that has forgotten what it refused refuses it again. */
static void expect_refusal_again(model_t *model, const block_t *wanted, int stream)
{
    void *ptr;

    if (!model->kind->is_arena && !model->has_company) {
        forget_known_failure(model);
        assert_int_equal(
            rmm_resource_alloc(
                model->mr, wanted->bytes, wanted->align, model->streams[stream], &ptr),
            RMM_ERR_OUT_OF_MEMORY);
    }
}

static size_t draw_bytes(model_t *model)
{
    size_t most = model->kind->most_bytes;
    uint64_t dice = draw(&model->random, 16);

    if (dice == 0) {
        return 8 * (1 + draw(&model->random, most / 8));
    }
    return 8 * (1 + draw(&model->random, dice < 4 ? most / 64 : 512));
}

static bool alloc_block(model_t *model, int stream, block_t *block, bool is_faulty)
{
    rmm_status_t status;
    void *ptr = NULL;

    *block = (block_t){
        .bytes = draw_bytes(model),
        .align = draw(&model->random, 32) == 0 ? 4096 : 0,
        .stream = stream};
    if (block->align != 0 && model->kind->most_bytes == FIXED_BYTES) {
        block->align = 0;
    }
    status = rmm_resource_alloc(
        model->mr, block->bytes, block->align, model->streams[stream], &ptr);
    if (status != RMM_OK) {
        model->refused++;
        if (!is_faulty) {
            assert_int_equal(status, RMM_ERR_OUT_OF_MEMORY);
            expect_refusal_again(model, block, stream);
        }
        return false;
    }
    model->served++;
    block->ptr = ptr;
    expect_no_overlap(model, block);
    return true;
}

static void free_block(model_t *model, block_t *block, int stream)
{
    rmm_resource_dealloc(
        model->mr, block->ptr, block->bytes, block->align, model->streams[stream]);
    block->ptr = NULL;
}

/* In every third run there is one stream only for half of the time. */
static int draw_stream(model_t *model)
{
    return model->step < model->alone_until ? 1 : (int)draw(&model->random, STREAMS);
}

/* --- operations ---------------------------------------------------------------------- */

static block_t *any_block(model_t *model, bool is_live)
{
    uint64_t from = draw(&model->random, LIVE);

    for (uint64_t i = 0; i < LIVE; i++) {
        block_t *block = &model->live[(from + i) % LIVE];

        if ((block->ptr != NULL) == is_live) {
            return block;
        }
    }
    return NULL;
}

static void arm(model_t *model, bool *is_faulty)
{
    uint64_t dice = draw(&model->random, 24);
    char plan[32];

    *is_faulty = dice < 2 && !model->has_company;
    if (*is_faulty && dice == 0) {
        (void)snprintf(plan, sizeof(plan), "any:%d", 1 + (int)draw(&model->random, 24));
        assert_true(rmm_sim_fail(plan));
    } else if (*is_faulty) {
        rmm__host_memory_fail(1 + draw(&model->random, 4));
    }
}

static void disarm(model_t *model, bool is_faulty)
{
    if (is_faulty) {
        model->has_failed |= rmm__sim_fault_has_struck();
        assert_true(rmm_sim_fail(NULL));
        rmm__host_memory_fail(0);
    }
}

static void do_alloc(model_t *model)
{
    block_t *block = any_block(model, false);
    int stream = draw_stream(model);
    block_t fresh;
    bool is_faulty;
    bool is_served;

    if (block == NULL) {
        return;
    }
    arm(model, &is_faulty);
    is_served = alloc_block(model, stream, &fresh, is_faulty);
    disarm(model, is_faulty);
    if (is_served) {
        *block = fresh;
        fill(model, block, model->streams[stream], is_foreign(model, stream));
    }
}

/* The other stream waits for what the block's stream does with it. */
static void order(model_t *model, int first, int second)
{
    rmm_sim_event_t event;

    assert_cuda(rmm__sim_device_set(is_foreign(model, first)));
    assert_cuda(rmm_sim_event_create(&event));
    assert_cuda(rmm_sim_event_record(event, model->streams[first]));
    assert_cuda(rmm__sim_device_set(is_foreign(model, second)));
    assert_cuda(rmm_sim_stream_wait_event(model->streams[second], event));
    assert_cuda(rmm_sim_event_destroy(event));
    assert_cuda(rmm__sim_device_set(0));
}

static void do_free(model_t *model)
{
    block_t *block = any_block(model, true);
    bool is_faulty;
    int stream;

    if (block == NULL) {
        return;
    }
    stream = draw(&model->random, 4) == 0 ? draw_stream(model) : block->stream;
    if (stream != block->stream) {
        order(model, block->stream, stream);
    }
    look(model, block, model->streams[stream], is_foreign(model, stream));
    arm(model, &is_faulty);
    free_block(model, block, stream);
    disarm(model, is_faulty);
}

static void open_stream(model_t *model, int stream)
{
    assert_cuda(rmm__sim_device_set(is_foreign(model, stream)));
    model->streams[stream] = stream == 0 ? NULL : make_stream(RMM_STREAM_NON_BLOCKING);
    assert_cuda(rmm__sim_device_set(0));
}

static void synchronise_all(const model_t *model)
{
    for (int device = 0; device < model->devices; device++) {
        assert_cuda(rmm__sim_device_set(device));
        assert_cuda(rmm_sim_device_synchronize());
    }
    assert_cuda(rmm__sim_device_set(0));
}

/* It ends with its blocks freed and their work queued. */
static void close_stream(model_t *model, int stream)
{
    for (int i = 0; i < LIVE; i++) {
        block_t *block = &model->live[i];

        if (block->ptr != NULL && block->stream == stream) {
            look(model, block, model->streams[stream], is_foreign(model, stream));
            free_block(model, block, stream);
        }
    }
    for (int i = 0; i < GRAPHS; i++) {
        if (model->graphs[i].graph != NULL &&
            model->graphs[i].stream == model->streams[stream]) {
            synchronise_all(model);
            model->graphs[i].stream = NULL;
        }
    }
    if (stream != 0) {
        assert_cuda(rmm__sim_device_set(is_foreign(model, stream)));
        assert_cuda(sim_driver()->stream_destroy(model->streams[stream]));
        assert_cuda(rmm__sim_device_set(0));
    }
}

static void do_replace_stream(model_t *model)
{
    int stream = 1 + (int)draw(&model->random, STREAMS - 1);

    close_stream(model, stream);
    open_stream(model, stream);
}

static void do_trim(model_t *model)
{
    size_t keep = draw(&model->random, 2) * draw(&model->random, 16) * MIB;
    bool is_faulty;
    rmm_status_t status;

    arm(model, &is_faulty);
    status = rmm_resource_trim(model->mr, keep);
    disarm(model, is_faulty);
    assert_true(status == RMM_OK || is_faulty || status == RMM_ERR_UNSUPPORTED);
}

static void do_synchronise(void)
{
    assert_cuda(rmm_sim_device_synchronize());
}

/* --- graphs -------------------------------------------------------------------------- */

static void launch_graph(model_t *model, graph_t *graph)
{
    rmm_stream_t stream = graph->stream;

    if (stream == NULL) { /* ordered after what was before by a synchronise */
        stream = model->streams[1];
        synchronise_all(model);
    }
    assert_cuda(rmm__sim_device_set(graph->stream != NULL && graph->away));
    assert_cuda(rmm_sim_graph_launch(graph->graph, stream));
    assert_cuda(rmm__sim_device_set(0));
    if (graph->stream == NULL) {
        synchronise_all(model);
    }
}

/* What it left is an ordinary block from here on. */
static void end_graph(model_t *model, graph_t *graph)
{
    if (graph->stream == NULL || draw(&model->random, 2) == 0) {
        synchronise_all(model);
    }
    assert_cuda(rmm_sim_graph_destroy(graph->graph));
    graph->graph = NULL;
    for (int i = 0; i < LEFT; i++) {
        block_t *block = &graph->left[i];

        if (block->ptr != NULL) {
            synchronise_all(model);
            free_block(model, block, block->stream);
        }
    }
}

/* Blocks that are taken in the capture, used, and freed in it or left. */
static void capture_own(model_t *model, graph_t *graph, int stream)
{
    int left = 0;

    for (uint64_t i = 1 + draw(&model->random, 6); i > 0; i--) {
        block_t block;

        if (!alloc_block(model, stream, &block, false)) {
            continue;
        }
        fill(model, &block, model->streams[stream], graph->away);
        look(model, &block, model->streams[stream], graph->away);
        if (left < LEFT && draw(&model->random, 4) == 0) {
            graph->left[left++] = block;
        } else {
            free_block(model, &block, stream);
        }
    }
}

/* And some from before: every launch looks for what is in them. */
static void capture_others(model_t *model, int stream)
{
    for (int i = 0; i < LIVE && draw(&model->random, 3) != 0; i++) {
        block_t *block = &model->live[i];

        if (block->ptr != NULL && block->stream == stream) {
            look(model, block, model->streams[stream], is_foreign(model, stream));
            free_block(model, block, stream);
        }
    }
}

static void do_graph(model_t *model)
{
    graph_t *graph = &model->graphs[draw(&model->random, GRAPHS)];
    int stream = 1 + (int)draw(&model->random, STREAMS - 1);

    if (graph->graph != NULL) {
        if (draw(&model->random, 3) != 0) {
            launch_graph(model, graph);
        } else {
            end_graph(model, graph);
        }
        return;
    }
    graph->stream = model->streams[stream];
    graph->away = is_foreign(model, stream);
    assert_cuda(rmm_sim_begin_capture(graph->stream, 1 + (int)draw(&model->random, 2)));
    capture_own(model, graph, stream);
    if (draw(&model->random, 2) == 0) {
        capture_others(model, stream);
    }
    if (draw(&model->random, 2) == 0) { /* on a stream beside it */
        block_t *block = any_block(model, false);
        int beside = stream == 1 ? 2 : 1;
        block_t fresh;

        if (block != NULL && alloc_block(model, beside, &fresh, false)) {
            *block = fresh;
            fill(model, block, model->streams[beside], false);
        }
    }
    assert_cuda(rmm_sim_end_capture(graph->stream, &graph->graph));
}

/* --- one seed ------------------------------------------------------------------------ */

static void step(model_t *model)
{
    uint64_t dice = draw(&model->random, 100);
    uint64_t phase = model->step / 60 % 2; /* it fills up, and empties */

    if (dice < 2) {
        do_replace_stream(model);
    } else if (dice < 4) {
        do_trim(model);
    } else if (dice < 6) {
        do_synchronise();
    } else if (dice < 13 && model->step >= model->alone_until) {
        do_graph(model);
    } else if (dice < (phase == 0 ? 65u : 40u)) {
        do_alloc(model);
    } else {
        do_free(model);
    }
    model->step++;
}

static void open_model(model_t *model, const kind_t *kind, uint64_t seed)
{
    *model = (model_t){
        .kind = kind, .random = seed, .alone_until = seed % 3 == 0 ? STEPS / 2 : 0};
    assert_cuda(sim_driver()->device_count(&model->devices));
    rmm__sim_reseed(seed);
    model->lost_bytes = rmm_sim_allocated_bytes(0);
    model->lost_addresses = rmm__sim_address_bytes();
    model->mr = kind->make();
    if (kind->is_shared) {
        rmm__mutex_lock(rmm__engine_mutex(engine_of(model)));
        rmm__engine_single_stream_end_locked(engine_of(model), true);
        rmm__mutex_unlock(rmm__engine_mutex(engine_of(model)));
    }
    for (int i = 0; i < STREAMS; i++) {
        open_stream(model, i);
    }
}

static void close_model(model_t *model)
{
    for (int i = 0; i < GRAPHS; i++) {
        if (model->graphs[i].graph != NULL) {
            end_graph(model, &model->graphs[i]);
        }
    }
    for (int i = 0; i < STREAMS; i++) {
        close_stream(model, i);
    }
    if (draw(&model->random, 2) == 0) { /* else it ends with work queued */
        synchronise_all(model);
    }
    check_figures(model);
    assert_int_equal(stats_of(model->mr).current_bytes, 0);
    rmm_resource_release(model->mr);
    synchronise_all(model);
    assert_int_equal(model->mixups, 0);
    if (!model->has_failed) {
        assert_int_equal(rmm_sim_allocated_bytes(0) - model->lost_bytes, 0);
        assert_int_equal(rmm__sim_address_bytes() - model->lost_addresses, 0);
    }
    assert_int_equal(rmm_sim_violations(), 0);
}

static void *keep_company(void *argument)
{
    model_t *model = argument;

    for (int i = 0; i < STEPS; i++) {
        if (draw(&model->random, 2) == 0) {
            do_alloc(model);
        } else {
            do_free(model);
        }
    }
    return NULL;
}

static uint64_t run(const kind_t *kind, uint64_t seed, bool has_company)
{
    model_t model;
    model_t company = {0};
    pthread_t thread;

    open_model(&model, kind, seed);
    model.has_company = has_company;
    if (has_company) {
        company = model;
        company.random = ~seed;
        for (int i = 0; i < STREAMS; i++) {
            open_stream(&company, i);
        }
        assert_int_equal(pthread_create(&thread, NULL, keep_company, &company), 0);
    }
    for (int i = 0; i < STEPS; i++) {
        step(&model);
        check_figures(&model);
    }
    if (has_company) {
        assert_int_equal(pthread_join(thread, NULL), 0);
        for (int i = 0; i < STREAMS; i++) {
            close_stream(&company, i);
        }
        synchronise_all(&company);
        assert_int_equal(company.mixups, 0);
        model.has_company = false;
    }
    close_model(&model);
    return model.refused;
}

/* --- kinds --------------------------------------------------------------------------- */

static rmm_resource_t *a_pool(void)
{
    return make_pool(1 * MIB, 8 * MIB);
}

static rmm_resource_t *a_tight_pool(void)
{
    return make_pool(96 * KIB, 96 * KIB);
}

static rmm_resource_t *a_growing_pool(void)
{
    return make_pool(0, 0);
}

static rmm_resource_t *a_virtual_pool(void)
{
    return make_virtual_pool(2 * MIB, 12 * MIB);
}

static rmm_resource_t *a_fixed(void)
{
    return make_fixed(FIXED_BYTES, 8);
}

static rmm_resource_t *an_arena(void)
{
    return make_arena(8 * MIB);
}

static const kind_t kinds[] = {
    {"pool", a_pool, 3 * MIB, false, false},
    {"pool_shared", a_pool, 3 * MIB, false, true},
    {"tight_pool", a_tight_pool, 48 * KIB, false, false},
    {"growing_pool", a_growing_pool, 3 * MIB, false, false},
    {"pool_virtual", a_virtual_pool, 5 * MIB, false, false},
    {"fixed_size", a_fixed, FIXED_BYTES, false, false},
    {"arena", an_arena, 2 * MIB, true, false},
};

static void run_seeds(const kind_t *kind, uint64_t seeds, bool has_company)
{
    const char *one = getenv("RMM_TEST_SEED");
    const char *many = getenv("RMM_TEST_SEEDS");
    uint64_t first = one != NULL ? strtoull(one, NULL, 0) : 1;
    uint64_t refused = 0;

    if (many != NULL) {
        seeds = strtoull(many, NULL, 0);
    } else if (getenv("RMM_TEST_QUICK") != NULL) {
        seeds /= 4;
    }
    for (uint64_t seed = first; seed < first + (one != NULL ? 1 : seeds); seed++) {
        print_message("\r%s RMM_TEST_SEED=%llu ", kind->name, (unsigned long long)seed);
        refused += run(kind, seed, has_company);
    }
    print_message("\r%s: %llu refused\n", kind->name, (unsigned long long)refused);
}

static void one_thread(void **state)
{
    run_seeds(*state, 60, false);
}

static void with_another_thread(void **state)
{
    run_seeds(*state, 20, true);
}

int main(void)
{
    enum { KINDS = sizeof(kinds) / sizeof(kinds[0]) };
    struct CMUnitTest tests[2 * KINDS];
    char names[2 * KINDS][48];

    for (int i = 0; i < 2 * KINDS; i++) {
        const kind_t *kind = &kinds[i / 2];

        (void)snprintf(
            names[i], sizeof(names[i]), "%s_%s", kind->name,
            i % 2 == 0 ? "with_one_thread" : "with_two_threads");
        tests[i] = (struct CMUnitTest){
            .name = names[i],
            .test_func = i % 2 == 0 ? one_thread : with_another_thread,
            .initial_state = (void *)(uintptr_t)kind};
    }
    return cmocka_run_group_tests_name("engine_model", tests, NULL, NULL);
}
