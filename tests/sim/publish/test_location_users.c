/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Who counts at a location and how: one alone under its lock owns the figures, several share
 * them; and the figures are the same whoever wrote them.
 */
#include "sim/pool/pool_harness.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/callback.h"
#include "base/resource_impl.h"
#include "harness/in_child.h"
#include "harness/random.h"
#include "sim/publish/location_requests.h"

#define SUBJECTS 5
#define BLOCKS 64
#define STEPS 4000

static uint32_t mode_of(const rmm_resource_t *mr)
{
    return rmm__location_mode(&mr->accounting.user);
}

/* A pair that counts. */
static void use(rmm_resource_t *mr)
{
    give(mr, take(mr, 1000, NULL), 1000, NULL);
}

static rmm_resource_t *used_pool(void)
{
    rmm_resource_t *pool = make_pool(0, 0);

    assert_int_equal(mode_of(pool), RMM_LOCATION_OUTSIDE);
    use(pool);
    return pool;
}

/* --- who owns ----------------------------------------------------------------------- */

TEST_CASE(owns_its_place_alone)
{
    rmm_resource_t *pool = used_pool();

    assert_int_equal(mode_of(pool), RMM_LOCATION_OWNS);
    assert_int_equal(mode_of(pool->upstream), RMM_LOCATION_OUTSIDE); /* no user's */
    rmm_resource_release(pool);
}

TEST_CASE(joins_with_an_allocation_of_no_bytes)
{
    rmm_resource_t *pool = make_pool(0, 0);
    void *ptr;

    assert_ok(rmm_resource_alloc(pool, 0, 0, NULL, &ptr));
    assert_int_equal(mode_of(pool), RMM_LOCATION_OWNS);
    rmm_resource_dealloc(pool, NULL, 0, 0, NULL);
    rmm_resource_release(pool);
}

TEST_CASE(shares_with_a_second_and_owns_again_after_it)
{
    rmm_resource_t *first = used_pool();
    rmm_resource_t *second = used_pool();

    assert_int_equal(mode_of(first), RMM_LOCATION_SHARES);
    assert_int_equal(mode_of(second), RMM_LOCATION_SHARES);
    rmm_resource_release(first);
    assert_int_equal(mode_of(second), RMM_LOCATION_OWNS);
    use(second);
    rmm_resource_release(second);
}

TEST_CASE(shares_until_all_others_have_left)
{
    rmm_resource_t *pool = used_pool();
    rmm_resource_t *arena = make_arena(4 * MIB);
    rmm_resource_t *other = used_pool();

    use(arena);
    rmm_resource_release(other);
    assert_int_equal(mode_of(pool), RMM_LOCATION_SHARES);
    other = used_pool(); /* the newest of three, then of two */
    rmm_resource_release(used_pool());
    assert_int_equal(mode_of(other), RMM_LOCATION_SHARES);
    rmm_resource_release(other);
    rmm_resource_release(arena);
    assert_int_equal(mode_of(pool), RMM_LOCATION_OWNS);
    rmm_resource_release(pool);
}

TEST_CASE(shares_where_it_has_no_lock)
{
    rmm_resource_t *arena = make_arena(4 * MIB);
    rmm_resource_t *pool;

    use(arena);
    assert_int_equal(mode_of(arena), RMM_LOCATION_SHARES);
    pool = used_pool();
    assert_int_equal(mode_of(pool), RMM_LOCATION_SHARES);
    rmm_resource_release(pool);
    assert_int_equal(mode_of(arena), RMM_LOCATION_SHARES);
    rmm_resource_release(arena);
}

TEST_CASE(owns_below_an_adaptor_and_over_a_pool)
{
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;
    rmm_resource_t *below = make_pool(0, 0);
    rmm_resource_t *pool;
    rmm_resource_t *limiting;

    options.limit_bytes = MIB;
    assert_ok(rmm_pool_resource_create(below, NULL, &pool));
    assert_ok(rmm_limiting_adaptor_create(pool, &options, &limiting));
    use(limiting);
    assert_int_equal(mode_of(pool), RMM_LOCATION_OWNS);
    assert_int_equal(mode_of(limiting), RMM_LOCATION_OUTSIDE);
    assert_int_equal(mode_of(below), RMM_LOCATION_OUTSIDE); /* it has lent a chunk */
    use(below);
    assert_int_equal(mode_of(pool), RMM_LOCATION_SHARES);
    rmm_resource_release(below);
    rmm_resource_release(pool);
    rmm_resource_release(limiting);
}

TEST_CASE(owns_on_each_device_for_itself)
{
    rmm_resource_t *here = used_pool();
    rmm_resource_t *there;

    assert_cuda(sim_driver()->device_set(1));
    there = used_pool();
    assert_cuda(sim_driver()->device_set(0));
    assert_int_equal(mode_of(here), RMM_LOCATION_OWNS);
    assert_int_equal(mode_of(there), RMM_LOCATION_OWNS);
    rmm_resource_release(here);
    rmm_resource_release(there);
}

/* What was allocated for a callback was never counted: nor is it taken away at the end. */
TEST_CASE(a_user_outside_takes_nothing_away)
{
    rmm_resource_t *pool = used_pool();
    rmm_resource_t *arena = make_arena(4 * MIB);
    void *block = take(pool, 1000, NULL);

    rmm__callback_enter();
    take(arena, 5120, NULL); /* without padding, which counts */
    rmm__callback_leave();
    assert_int_equal(mode_of(arena), RMM_LOCATION_OUTSIDE);
    rmm_resource_release(arena);
    assert_int_equal(rmm__locations[0].current_bytes, 1000);
    give(pool, block, 1000, NULL);
    rmm_resource_release(pool);
}

TEST_CASE(begins_without_users_in_a_forked_child)
{
    rmm_resource_t *pinned, *pool;
    pid_t child;

    assert_ok(rmm_pinned_resource_create(&pinned));
    assert_ok(rmm_pool_resource_create(pinned, NULL, &pool));
    rmm_resource_release(pinned);
    use(pool);
    assert_int_equal(mode_of(pool), RMM_LOCATION_OWNS); /* of the host */
    child = fork_child();
    if (child == 0) {
        rmm_resource_t *own;

        if (rmm_host_resource_create(&own) != RMM_OK) {
            _exit(2);
        }
        /* who joins makes an owner share, under a lock that may be held for ever */
        use(own);
        _exit(
            mode_of(own) == RMM_LOCATION_SHARES && mode_of(pool) == RMM_LOCATION_OWNS
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

static rmm_accounting_sums_t location_sums(void)
{
    rmm_accounting_sums_t sums;

    rmm__location_sums(0, &sums);
    return sums;
}

static void check(const model_t *model)
{
    assert_int_equal(FIGURE(current_bytes), model->current);
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
    return kind == 0 ? make_arena(16 * MIB) : make_pool(0, 0);
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

static int owners(const world_t *world)
{
    int count = 0;

    for (int i = 0; i < SUBJECTS; i++) {
        const rmm_resource_t *mr = world->subjects[i];

        count += mr != NULL && mode_of(mr) == RMM_LOCATION_OWNS;
    }
    return count;
}

TEST_CASE(counts_the_same_however_owners_change)
{
    world_t world = {.random = 12345};
    int owned = 0;

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
        assert_in_range(owners(&world), 0, 1);
        owned += owners(&world);
    }
    assert_in_range(owned, STEPS / 50, STEPS - STEPS / 50); /* both ways were taken */
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
