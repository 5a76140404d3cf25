/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Failure callbacks that make room by trimming pools: the pool that asks, and two pools that
 * trim each other while both grow. Neither may wait for the other.
 */
#include "sim/adaptors/adaptor_harness.h"

#include <pthread.h>
#include <stdatomic.h>
#include <unistd.h>

#define PATIENCE_S 100

typedef struct side {
    rmm_resource_t *mr;
    struct side *trimmed; /* by the failure callback below mr */
    atomic_int attempts;  /* of one allocation, so that it ends */
    atomic_int calls;
} side_t;

static bool make_room(size_t bytes, void *arg)
{
    side_t *self = arg;

    atomic_fetch_add(&self->calls, 1);
    (void)!rmm_resource_trim(self->trimmed->mr, 0);
    return atomic_fetch_add(&self->attempts, 1) == 0;
}

/* A pool over a failure callback over `shared`, which is retained. */
static void open_side(side_t *self, rmm_resource_t *shared, side_t *trimmed)
{
    rmm_failure_callback_options_t options = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *asking;

    self->trimmed = trimmed;
    options.callback = make_room;
    options.arg = self;
    assert_ok(rmm_failure_callback_adaptor_create(shared, &options, &asking));
    assert_ok(rmm_pool_resource_create(asking, NULL, &self->mr));
    rmm_resource_release(asking);
}

/* Room for one large block, whoever has it. */
static rmm_resource_t *make_shared(void)
{
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *shared;

    options.limit_bytes = 50 * MIB;
    assert_ok(rmm_limiting_adaptor_create(cuda, &options, &shared));
    rmm_resource_release(cuda);
    return shared;
}

static bool take_and_give(side_t *self)
{
    void *ptr;

    atomic_store(&self->attempts, 0);
    if (rmm_resource_alloc(self->mr, 40 * MIB, 0, NULL, &ptr) != RMM_OK) {
        return false;
    }
    rmm_resource_dealloc(self->mr, ptr, 40 * MIB, 0, NULL);
    return true;
}

TEST_CASE(a_failure_callback_may_trim_the_pool_that_asks)
{
    rmm_resource_t *shared = make_shared();
    side_t side = {.calls = 0};
    void *ptr;

    open_side(&side, shared, &side);
    rmm_resource_release(shared);
    assert_true(take_and_give(&side));
    atomic_store(&side.attempts, 0);
    assert_ok(rmm_resource_alloc(side.mr, 48 * MIB, 0, NULL, &ptr));
    rmm_resource_dealloc(side.mr, ptr, 48 * MIB, 0, NULL);
    rmm_resource_release(side.mr);
}

TEST_CASE(a_failure_callback_may_trim_another_pool)
{
    rmm_resource_t *shared = make_shared();
    side_t sides[2] = {{.calls = 0}, {.calls = 0}};

    open_side(&sides[0], shared, &sides[1]);
    open_side(&sides[1], shared, &sides[0]);
    rmm_resource_release(shared);
    for (int i = 0; i < 10; i++) {
        assert_true(take_and_give(&sides[i % 2]));
    }
    assert_int_not_equal(atomic_load(&sides[0].calls), 0);
    assert_int_not_equal(atomic_load(&sides[1].calls), 0);
    rmm_resource_release(sides[0].mr);
    rmm_resource_release(sides[1].mr);
}

static void *hammer(void *argument)
{
    for (int i = 0; i < 500; i++) {
        (void)take_and_give(argument); /* the other may have the room */
    }
    return NULL;
}

TEST_CASE(two_pools_may_trim_each_other_at_once)
{
    rmm_resource_t *shared = make_shared();
    side_t sides[2] = {{.calls = 0}, {.calls = 0}};
    pthread_t threads[2];

    open_side(&sides[0], shared, &sides[1]);
    open_side(&sides[1], shared, &sides[0]);
    rmm_resource_release(shared);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, hammer, &sides[i]), 0);
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    assert_true(take_and_give(&sides[0]));
    assert_true(take_and_give(&sides[1]));
    rmm_resource_release(sides[0].mr);
    rmm_resource_release(sides[1].mr);
}

int main(void)
{
    alarm(PATIENCE_S);
    return harness_run_cases(NULL, NULL);
}
