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

TEST_CASE(threads_on_streams_of_their_own)
{
    run_workers(make_arena(64 * MIB), false, check);
}

TEST_CASE(threads_on_one_stream)
{
    run_workers(make_arena(64 * MIB), true, check);
}

TEST_CASE(threads_short_of_memory)
{
    run_workers(make_arena(SHORT_OF_MEMORY), false, check);
}

TEST_CASE(another_thread_frees_what_this_one_allocates)
{
    hand_over(make_arena(2 * MIB));
}
