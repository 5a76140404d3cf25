/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h on a pool: its structure holds as well.
 */
#include "stress/threads.h"

#include "resources/pool_impl.h"

static void check(rmm_resource_t *mr)
{
    assert_null(rmm__suballoc_check(pool_from_base(mr)->blocks));
}

static void threads_on_streams_of_their_own(void **state)
{
    (void)state;
    run_workers(make_pool(0, 0), false, check);
}

static void threads_on_one_stream(void **state)
{
    (void)state;
    run_workers(make_pool(0, 0), true, check);
}

static void threads_short_of_memory(void **state)
{
    (void)state;
    run_workers(make_pool(0, SHORT_OF_MEMORY), false, check);
}

static void another_thread_frees_what_this_one_allocates(void **state)
{
    (void)state;
    hand_over(make_pool(0, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_on_streams_of_their_own),
        cmocka_unit_test(threads_on_one_stream),
        cmocka_unit_test(threads_short_of_memory),
        cmocka_unit_test(another_thread_frees_what_this_one_allocates),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
