/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of the arena resource share.
 */
#ifndef RMM_TESTS_SIM_ARENA_HARNESS_H
#define RMM_TESTS_SIM_ARENA_HARNESS_H

#include "driver/sim/control.h"
#include "sim/pool/pool_harness.h"

#include "resources/arena_impl.h"

static inline int nothing_left_behind(void **state)
{
    (void)state;
    if (rmm_sim_violations() != 0) {
        print_error("violation: %s\n", rmm__sim_violation_text());
        return -1;
    }
    if (rmm_sim_allocated_bytes(0) != 0) {
        print_error("%lu bytes left\n", (unsigned long)rmm_sim_allocated_bytes(0));
        return -1;
    }
    return 0;
}

static inline bool has_room(rmm_resource_t *arena, size_t bytes, rmm_stream_t stream)
{
    void *mark = &mark;
    void *ptr = mark;
    rmm_status_t status = rmm_resource_alloc(arena, bytes, 0, stream, &ptr);

    if (status == RMM_OK) {
        give(arena, ptr, bytes, stream);
        return true;
    }
    assert_int_equal(status, RMM_ERR_OUT_OF_MEMORY);
    assert_ptr_equal(ptr, mark);
    return false;
}

static inline uint64_t figure_of(const _Atomic(uint64_t) *figure)
{
    return atomic_load(figure);
}

static inline uint64_t padding_of(const rmm_resource_t *mr)
{
    rmm_accounting_sums_t sums;

    rmm__accounting_sums(&mr->accounting, &sums);
    return sums.padding_bytes;
}

/* Every arena's structure is sound, and superblocks and owners agree. */
static inline void assert_sound(rmm_resource_t *mr)
{
    arena_resource_t *self = arena_from_base(mr);

    for (uint32_t i = 0; i <= ARENA_GLOBAL; i++) {
        const engine_t *engine = rmm__arena_at(self, i);

        assert_true(engine == NULL || rmm__blocks_check(engine->blocks) == NULL);
    }
}

#define ARENA_CASE(name) TEST_CASE_WITH(name, NULL, nothing_left_behind)

#endif /* RMM_TESTS_SIM_ARENA_HARNESS_H */
