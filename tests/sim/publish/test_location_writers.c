/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who counts at a location and how: a resource with a lock has a cell of its own, others share;
 * and the figures are the same whoever wrote them.
 */
#include "sim/pool/pool_harness.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/callback.h"
#include "base/resource_impl.h"
#include "harness/in_child.h"
#include "harness/random.h"
#include "sim/publish/location_requests.h"

#define SUBJECTS 8 /* two arenas, and more pools than there are cells */
#define BLOCKS 64
#define STEPS 4000

static bool has_cell(const rmm_resource_t *mr)
{
    return mr->accounting.cell != NULL;
}

static uint32_t writers(void)
{
    return atomic_load(&rmm__location_writers[0]);
}

static rmm_accounting_sums_t location_sums(void)
{
    rmm_accounting_sums_t sums;

    rmm__location_sums(0, &sums);
    return sums;
}

/* A pair that counts. */
static void use(rmm_resource_t *mr)
{
    give(mr, take(mr, 1000, NULL), 1000, NULL);
}

static rmm_resource_t *used_pool(void)
{
    rmm_resource_t *pool = make_pool(0, 0);

    use(pool);
    return pool;
}

/* --- who has a cell ------------------------------------------------------------------- */

TEST_CASE(has_a_cell_from_its_first_block_to_its_end)
{
    rmm_resource_t *pool = used_pool();
    uint32_t bit = pool->accounting.writer;

    assert_true(has_cell(pool));
    assert_false(has_cell(pool->upstream)); /* it has no lock */
    assert_int_equal(writers() & bit, bit);
    rmm_resource_release(pool);
    assert_int_equal(writers() & bit, 0);
}

TEST_CASE(has_no_cell_for_chunks_of_a_pool_above)
{
    rmm_resource_t *below = make_pool(0, 0);
    rmm_resource_t *pool;

    assert_ok(rmm_pool_resource_create(below, NULL, &pool));
    use(pool);
    assert_true(has_cell(pool));
    assert_false(has_cell(below));
    use(below);
    assert_true(has_cell(below));
    rmm_resource_release(below);
    rmm_resource_release(pool);
    assert_int_equal(location_sums().padding_bytes, 0);
    assert_int_equal(rmm__location_live(0).bytes, 0);
}

TEST_CASE(shares_where_no_cell_is_free)
{
    rmm_resource_t *pools[RMM_SEGMENT_CELLS + 1];
    uint32_t taken = 0;

    for (uint32_t i = 0; i <= RMM_SEGMENT_CELLS; i++) {
        pools[i] = used_pool();
        assert_int_equal(taken & pools[i]->accounting.writer, 0); /* nobody else's */
        taken |= pools[i]->accounting.writer;
    }
    assert_false(has_cell(pools[RMM_SEGMENT_CELLS]));
    assert_int_equal(taken, RMM_LOCATION_SHARED - 1);
    assert_int_equal(writers() & RMM_LOCATION_SHARED, RMM_LOCATION_SHARED);
    rmm_resource_release(pools[0]);
    pools[0] = used_pool();
    assert_true(has_cell(pools[0]));
    for (uint32_t i = 0; i <= RMM_SEGMENT_CELLS; i++) {
        rmm_resource_release(pools[i]);
    }
}

TEST_CASE(has_a_cell_on_each_device)
{
    rmm_resource_t *here = used_pool();
    rmm_resource_t *there;

    assert_cuda(sim_driver()->device_set(1));
    there = used_pool();
    assert_cuda(sim_driver()->device_set(0));
    assert_true(here->accounting.cell != there->accounting.cell);
    use(here);
    assert_int_equal(rmm__location_live(1).bytes, 0);
    rmm_resource_release(here);
    rmm_resource_release(there);
}

/* What was allocated for a callback was never counted: nor is it taken away at the end. */
TEST_CASE(takes_nothing_away_that_no_user_held)
{
    rmm_resource_t *pool = used_pool();
    rmm_resource_t *others[] = {make_arena(4 * MIB), make_pool(0, 0)};
    void *block = take(pool, 1000, NULL);

    for (int i = 0; i < 2; i++) {
        rmm__callback_enter();
        take(others[i], 5000, NULL);
        rmm__callback_leave();
        rmm_resource_release(others[i]);
    }
    assert_int_equal(rmm__location_live(0).bytes, 1000);
    assert_int_equal(rmm__location_live(0).count, 1);
    give(pool, block, 1000, NULL);
    rmm_resource_release(pool);
}

/* The location is below 0 until the program has blocks again: no mark takes that for a peak. */
TEST_CASE(a_block_of_a_callback_that_its_program_frees_raises_no_mark)
{
    rmm_resource_t *pool = make_pool(0, 0);
    rmm_resource_t *arena = make_arena(4 * MIB);
    void *block;

    rmm__callback_enter();
    block = take(pool, 5000, NULL);
    rmm__callback_leave();
    give(pool, block, 5000, NULL);
    use(arena);
    assert_in_range(
        rmm__figure_get(&rmm__locations[0].lifetime_peak_bytes), 0, 1 << 30);
    assert_in_range(rmm__figure_get(&rmm__locations[0].peak_count), 0, 1000);
    block = take(arena, 5000, NULL); /* and the other way round, which makes it even */
    rmm__callback_enter();
    give(arena, block, 5000, NULL);
    rmm__callback_leave();
    rmm_resource_release(arena);
    rmm_resource_release(pool);
}

/* What it inherits ends without a trace in its own figures. */
TEST_CASE(begins_without_writers_in_a_forked_child)
{
    rmm_resource_t *pinned, *pool;
    pid_t child;

    assert_ok(rmm_pinned_resource_create(&pinned));
    assert_ok(rmm_pool_resource_create(pinned, NULL, &pool));
    rmm_resource_release(pinned);
    use(pool);
    child = fork_child();
    if (child == 0) {
        const uint32_t host = RMM_SEGMENT_HOST_LOCATION;
        const uint32_t first_cell = 1;
        rmm_resource_t *own;

        if (atomic_load(&rmm__location_writers[host]) != 0 ||
            rmm_host_resource_create(&own) != RMM_OK) {
            _exit(2);
        }
        take(own, 1000, NULL);
        rmm_resource_release(pool);
        _exit(
            rmm__location_live(host).bytes == 1000 &&
                    atomic_load(&rmm__location_writers[host]) == first_cell
                ? 0
                : 1);
    }
    assert_int_equal(exit_status_of(child), 0);
    rmm_resource_release(pool);
}

/* --- the figures, against a model ---------------------------------------------------- */

typedef struct model {
    uint64_t current, count, total_bytes, total_count, padding;
    uint64_t peak, peak_count, node_peak, node_peak_count, lifetime;
} model_t;

typedef struct block {
    rmm_resource_t *mr; /* NULL: none */
    void *ptr;
    uint64_t bytes;
} block_t;

typedef struct world {
    model_t model;
    rmm_resource_t *subjects[SUBJECTS]; /* NULL: not there */
    block_t blocks[BLOCKS];
    uint64_t random;
} world_t;

static void rise(uint64_t *mark, uint64_t value)
{
    *mark = value > *mark ? value : *mark;
}

static uint64_t padding_of(const block_t *block)
{
    return (block->bytes + 255) / 256 * 256 - block->bytes;
}

static void model_alloc(model_t *model, const block_t *block)
{
    model->current += block->bytes;
    model->count++;
    model->total_bytes += block->bytes;
    model->total_count++;
    model->padding += padding_of(block);
    rise(&model->peak, model->current);
    rise(&model->peak_count, model->count);
    rise(&model->node_peak, model->current);
    rise(&model->node_peak_count, model->count);
    rise(&model->lifetime, model->current);
}

static void model_free(model_t *model, const block_t *block)
{
    model->current -= block->bytes;
    model->count--;
    model->padding -= padding_of(block);
}

#define FIGURE(field) rmm__figure_get(&rmm__locations[0].field)

static void check(const model_t *model)
{
    assert_int_equal(rmm__location_live(0).bytes, model->current);
    assert_int_equal(rmm__location_live(0).count, model->count);
    assert_int_equal(location_sums().total_bytes, model->total_bytes);
    assert_int_equal(location_sums().total_count, model->total_count);
    assert_int_equal(location_sums().freed_count, model->total_count - model->count);
    assert_int_equal(location_sums().padding_bytes, model->padding);
    assert_int_equal(FIGURE(peak_bytes), model->peak);
    assert_int_equal(FIGURE(peak_count), model->peak_count);
    assert_int_equal(FIGURE(node_peak_bytes), model->node_peak);
    assert_int_equal(FIGURE(node_peak_count), model->node_peak_count);
    assert_int_equal(FIGURE(lifetime_peak_bytes), model->lifetime);
}

/* As the daemon does; obeyed by the next allocation. */
static void request(bool node)
{
    atomic_fetch_add_explicit(
        node ? &requests[0].node_peak_reset : &requests[0].peak_reset, 1,
        memory_order_relaxed);
}

static rmm_resource_t *make_subject(uint64_t kind)
{
    return kind < 2 ? make_arena(16 * MIB) : make_pool(0, 0);
}

static void change_block(world_t *world, block_t *block)
{
    uint64_t action = draw(&world->random, 40);

    if (block->mr != NULL) {
        give(block->mr, block->ptr, block->bytes, NULL);
        model_free(&world->model, block);
        block->mr = NULL;
        return;
    }
    block->mr = world->subjects[draw(&world->random, SUBJECTS)];
    if (block->mr == NULL) {
        return;
    }
    if (action == 0) {
        request(false);
        world->model.peak = world->model.peak_count = 0;
    } else if (action == 1) {
        request(true);
        world->model.node_peak = world->model.node_peak_count = 0;
    }
    block->bytes = 1 + draw(&world->random, 5000);
    block->ptr = take(block->mr, block->bytes, NULL);
    model_alloc(&world->model, block);
}

/* It comes, or ends with what is still out. */
static void change_subject(world_t *world, uint64_t index)
{
    rmm_resource_t **subject = &world->subjects[index];

    if (*subject == NULL) {
        *subject = make_subject(index);
        return;
    }
    for (int i = 0; i < BLOCKS; i++) {
        if (world->blocks[i].mr == *subject) {
            model_free(&world->model, &world->blocks[i]);
            world->blocks[i].mr = NULL;
        }
    }
    rmm_resource_release(*subject);
    *subject = NULL;
}

static int cells(const world_t *world)
{
    int count = 0;

    for (int i = 0; i < SUBJECTS; i++) {
        count += world->subjects[i] != NULL && has_cell(world->subjects[i]);
    }
    return count;
}

TEST_CASE(counts_the_same_whoever_has_a_cell)
{
    world_t world = {.random = 12345};
    int full = 0;

    world.model = (model_t){
        .total_bytes = location_sums().total_bytes,
        .total_count = location_sums().total_count,
        .peak = FIGURE(peak_bytes),
        .peak_count = FIGURE(peak_count),
        .node_peak = FIGURE(node_peak_bytes),
        .node_peak_count = FIGURE(node_peak_count),
        .lifetime = FIGURE(lifetime_peak_bytes)};
    check(&world.model);
    for (int step = 0; step < STEPS; step++) {
        if (draw(&world.random, 50) == 0) {
            change_subject(&world, draw(&world.random, SUBJECTS));
        } else {
            change_block(&world, &world.blocks[draw(&world.random, BLOCKS)]);
        }
        check(&world.model);
        full += cells(&world) == RMM_SEGMENT_CELLS;
    }
    assert_in_range(full, STEPS / 50, STEPS - STEPS / 50); /* both ways were taken */
    for (uint64_t i = 0; i < SUBJECTS; i++) {
        if (world.subjects[i] != NULL) {
            change_subject(&world, i);
        }
    }
    check(&world.model);
    assert_int_equal(world.model.current, 0);
}

int main(void)
{
    return harness_run_cases(request_from_here, NULL);
}
