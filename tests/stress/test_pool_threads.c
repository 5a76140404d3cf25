/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h on a pool: its structure holds as well.
 */
#include "stress/threads.h"

#include <stdatomic.h>
#include <stdbool.h>

#include "pool/engine_impl.h"
#include "resources/pool_resource.h"

static void check(rmm_resource_t *mr)
{
    engine_t *engine = pool_from_base(mr)->engine;
    const char *wrong;

    rmm__mutex_lock(rmm__engine_mutex(engine)); /* another thread may still trim it */
    wrong = rmm__blocks_check(engine->blocks);
    rmm__mutex_unlock(rmm__engine_mutex(engine));
    assert_null(wrong);
}

TEST_CASE(threads_on_streams_of_their_own)
{
    run_workers(make_pool(0, 0), false, check);
}

TEST_CASE(threads_on_one_stream)
{
    run_workers(make_pool(0, 0), true, check);
}

TEST_CASE(threads_short_of_memory)
{
    run_workers(make_pool(0, SHORT_OF_MEMORY), false, check);
}

TEST_CASE(threads_on_a_virtual_pool_short_of_memory)
{
    run_workers(make_virtual_pool(0, SHORT_OF_MEMORY), false, check);
}

typedef struct trimmer {
    rmm_resource_t *pool;
    _Atomic(bool) is_over;
} trimmer_t;

static void *trim_again_and_again(void *argument)
{
    trimmer_t *trimmer = argument;

    while (!atomic_load_explicit(&trimmer->is_over, memory_order_relaxed)) {
        assert_ok(rmm_resource_trim(trimmer->pool, 0));
    }
    return NULL;
}

TEST_CASE(threads_on_a_virtual_pool_that_is_trimmed_all_the_time)
{
    trimmer_t trimmer = {.pool = make_virtual_pool(0, 0)};
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, trim_again_and_again, &trimmer), 0);
    run_workers(rmm_resource_retain(trimmer.pool), false, check);
    atomic_store_explicit(&trimmer.is_over, true, memory_order_relaxed);
    assert_int_equal(pthread_join(thread, NULL), 0);
    rmm_resource_release(trimmer.pool);
}

TEST_CASE(another_thread_frees_what_this_one_allocates)
{
    hand_over(make_pool(0, 0));
}
