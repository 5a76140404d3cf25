/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault sweep of harness/fault_sweep.h over an arena resource that is made to use every
 * step of its slow path, and the ways in which a process may end with one.
 */
#include "sim/resources/arena_harness.h"

#include "harness/fault_sweep.h"
#include "harness/in_child.h"

enum { BLOCKS = 48 };
static const char dump_path[] = "/dev/null";

static size_t size_of(int i)
{
    return i % 12 == 11 ? MIB + 4 * KIB : (size_t)(1 + i % 12) * 20 * KIB;
}

static int stream_of_free(int i)
{
    return (i + i / 8) % 2;
}

/* Small and large blocks of two streams. Some are freed on the other one, and not used, as
 * nothing orders the two. */
static void traffic(rmm_resource_t *arena, const rmm_stream_t streams[2])
{
    void *blocks[BLOCKS];

    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < BLOCKS; i++) {
            void *mark = &blocks;
            rmm_status_t status;

            blocks[i] = mark;
            status =
                rmm_resource_alloc(arena, size_of(i), 0, streams[i % 2], &blocks[i]);
            check_failure(status);
            CHECK_THAT((status == RMM_OK) == (blocks[i] != mark));
            if (status != RMM_OK) {
                blocks[i] = NULL;
            } else if (stream_of_free(i) == i % 2) {
                sweep_use(blocks[i], size_of(i), streams[i % 2]);
            }
        }
        for (int i = 0; i < BLOCKS; i++) {
            rmm_resource_dealloc(
                arena, blocks[i], size_of(i), 0, streams[stream_of_free(i)]);
        }
    }
}

static void check_structure(rmm_resource_t *mr)
{
    arena_resource_t *self = arena_from_base(mr);

    for (uint32_t i = 0; i <= ARENA_GLOBAL; i++) {
        const engine_t *engine = rmm__arena_at(self, i);

        CHECK_THAT(engine == NULL || rmm__blocks_check(engine->blocks) == NULL);
    }
}

static void use(rmm_resource_t *arena)
{
    rmm_stats_t stats = RMM_STATS_INIT;
    rmm_stream_t streams[2] = {NULL, NULL};
    rmm_status_t status = rmm_stream_create(RMM_STREAM_NON_BLOCKING, &streams[1]);

    check_failure(status);
    traffic(arena, streams);
    check_failure(rmm_stream_destroy(streams[1]));
    check_structure(arena);
    CHECK_THAT(rmm_resource_get_stats(arena, &stats) == RMM_OK);
    CHECK_THAT(stats.current_bytes == 0 && stats.current_count == 0);
    CHECK_THAT(stats.invalid_free_count == 0);
    CHECK_THAT(rmm__accounting_free_bytes(&arena->accounting) == stats.reserved_bytes);
}

static rmm_resource_t *create(uint64_t arena_bytes)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;
    rmm_resource_t *cuda = NULL;
    rmm_resource_t *arena = NULL;
    rmm_status_t status = rmm_cuda_resource_create(&cuda);

    check_failure(status);
    CHECK_THAT((status == RMM_OK) == (cuda != NULL));
    if (status == RMM_OK) {
        options.arena_bytes = arena_bytes;
        options.dump_on_failure = 1;
        options.dump_path = dump_path;
        status = rmm_arena_resource_create(cuda, &options, &arena);
        check_failure(status);
        CHECK_THAT((status == RMM_OK) == (arena != NULL));
        rmm_resource_release(cuda);
    }
    return arena;
}

static void scenario(const void *context)
{
    rmm_resource_t *arena = create(4 * MIB);

    if (arena != NULL) {
        use(arena);
        rmm_resource_release(arena);
    }
}

static void half_of_free_memory(const void *context)
{
    rmm_resource_release(create(0));
}

static void every_request_for_host_memory_may_fail(void **state)
{
    const sweep_t sweep = {scenario, NULL};
    uint64_t struck = sweep_all(&sweep, NULL, 1);

    print_message("%lu requests failed in turn\n", (unsigned long)struck);
    assert_true(struck >= 10);
}

static void every_driver_call_may_fail(void **state)
{
    const sweep_t sweep = {scenario, NULL};
    uint64_t struck = sweep_all(&sweep, "any", sweep_step());

    print_message("%lu calls failed in turn\n", (unsigned long)struck);
    assert_true(struck >= 20);
}

static void every_call_of_a_creation_may_fail(void **state)
{
    const sweep_t sweep = {half_of_free_memory, NULL};

    assert_true(sweep_all(&sweep, NULL, 1) > 0);
    assert_true(sweep_all(&sweep, "any", 1) > 0);
}

static void leaves_nothing(const void *context)
{
    rmm_resource_release(create(4 * MIB));
    CHECK_THAT(rmm_sim_allocated_bytes(0) == 0);
}

/* Nor the block that is kept for barriers. */
static void leaves_nothing_where_its_device_cannot_be_entered(void **state)
{
    const sweep_t sweep = {leaves_nothing, NULL};

    assert_true(sweep_all(&sweep, "device_get", 1) > 0);
    assert_true(sweep_all(&sweep, "capture_mode_exchange", 1) > 0);
}

/* --- the ends of a process ---------------------------------------------------------- */

static rmm_resource_t *kept;

static void release_at_exit(void)
{
    rmm_resource_release(kept);
}

/* Memory is out, the resource ends in an exit handler that runs after the driver's own. */
static int exit_with_memory_out(void)
{
    void *ptr;

    CHECK_THAT(atexit(release_at_exit) == 0);
    kept = create(4 * MIB);
    CHECK_THAT(kept != NULL);
    CHECK_THAT(rmm_resource_alloc(kept, 1000, 0, NULL, &ptr) == RMM_OK);
    CHECK_THAT(rmm_resource_alloc(kept, 2 * MIB, 0, NULL, &ptr) == RMM_OK);
    return SWEEP_GOT_THROUGH;
}

static void ends_at_exit_with_memory_out(void **state)
{
    assert_int_equal(in_child(exit_with_memory_out), SWEEP_GOT_THROUGH);
}

static int use_in_a_fork(void)
{
    rmm_resource_t *arena = create(4 * MIB);
    void *mark = &mark;
    void *ptr = mark;
    int status;
    pid_t pid;

    CHECK_THAT(arena != NULL);
    CHECK_THAT(rmm_resource_alloc(arena, 1000, 0, NULL, &mark) == RMM_OK);
    pid = fork();
    if (pid == 0) {
        CHECK_THAT(rmm_resource_alloc(arena, 1, 0, NULL, &ptr) == RMM_ERR_UNSUPPORTED);
        rmm_resource_dealloc(arena, mark, 1000, 0, NULL);
        rmm_resource_release(arena);
        _exit(SWEEP_GOT_THROUGH);
    }
    CHECK_THAT(waitpid(pid, &status, 0) == pid && WIFEXITED(status));
    CHECK_THAT(WEXITSTATUS(status) == SWEEP_GOT_THROUGH);
    rmm_resource_dealloc(arena, mark, 1000, 0, NULL);
    CHECK_THAT(stats_of(arena).invalid_free_count == 0);
    rmm_resource_release(arena);
    return SWEEP_GOT_THROUGH;
}

static void a_forked_child_is_refused_and_harms_nothing(void **state)
{
    assert_int_equal(in_child(use_in_a_fork), SWEEP_GOT_THROUGH);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_request_for_host_memory_may_fail),
        cmocka_unit_test(every_driver_call_may_fail),
        cmocka_unit_test(every_call_of_a_creation_may_fail),
        cmocka_unit_test(leaves_nothing_where_its_device_cannot_be_entered),
        cmocka_unit_test(ends_at_exit_with_memory_out),
        cmocka_unit_test(a_forked_child_is_refused_and_harms_nothing),
    };

    sweep_warm_up();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
