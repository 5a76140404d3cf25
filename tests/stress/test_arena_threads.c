/* SPDX-License-Identifier: Apache-2.0 */
/*
 * threads.h on an arena resource: its structure holds as well.
 */
#include "stress/threads.h"

#include "resources/arena_impl.h"

static void check(rmm_resource_t *mr)
{
    arena_resource_t *self = arena_from_base(mr);

    for (uint32_t i = 0; i <= ARENA_GLOBAL; i++) {
        const engine_t *engine = rmm__arena_at(self, i);

        assert_true(engine == NULL || rmm__blocks_check(engine->blocks) == NULL);
    }
}

static void threads_on_streams_of_their_own(void **state)
{
    run_workers(make_arena(64 * MIB), false, check);
}

static void threads_on_one_stream(void **state)
{
    run_workers(make_arena(64 * MIB), true, check);
}

static void threads_short_of_memory(void **state)
{
    run_workers(make_arena(SHORT_OF_MEMORY), false, check);
}

static void another_thread_frees_what_this_one_allocates(void **state)
{
    hand_over(make_arena(2 * MIB));
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
