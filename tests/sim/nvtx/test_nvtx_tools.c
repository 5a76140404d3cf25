/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tools that cannot be used, or only in part: the program goes on, and the log has one line.
 * A process looks for its tool once, so each tool is a test of its own: RMM_TEST_LINE is what
 * the line says, or "" for none; RMM_TEST_HEAPS how many heaps the tool then knows of one
 * pool, or "" if it cannot be asked; RMM_TEST_LISTENS 1 if the library annotates.
 */
#include "sim/nvtx/nvtx_harness.h"

#include <stdatomic.h>
#include <stdio.h>

static _Atomic(unsigned) lines;
static char last_line[512];

static void note(rmm_log_level_t level, const char *message, void *arg)
{
    if (strstr(message, "NVTX") != NULL) {
        lines++;
        snprintf(last_line, sizeof(last_line), "%s", message);
    }
}

static void use(rmm_resource_t *mr)
{
    void *ptr = take(mr, 1000, NULL);

    give(mr, ptr, 1000, NULL);
    rmm_resource_release(mr);
}

TEST_CASE(logs_once_and_continues)
{
    const char *expected = getenv("RMM_TEST_LINE");

    assert_ok(rmm_log_set_level(RMM_LEVEL_INFO));
    assert_ok(rmm_log_to_callback(note, NULL));
    use(make_pool(0, 0));
    use(make_arena(64 * MIB));
    use(make_fixed(1024, 16));
    assert_int_equal(lines, expected[0] != '\0');
    if (strstr(last_line, expected) == NULL) {
        fail_msg("'%s' lacks '%s'", last_line, expected);
    }
}

TEST_CASE(annotates_what_it_allocates)
{
    const char *heaps = getenv("RMM_TEST_HEAPS");
    rmm_resource_t *pool = make_pool(8 * MIB, 0);
    void *ptr = take(pool, 1000, NULL);

    if (heaps[0] != '\0') {
        assert_int_equal(tool_state().heaps, atoi(heaps));
        assert_int_equal(tool_state().regions, atoi(heaps));
    }
    give(pool, ptr, 1000, NULL);
    rmm_resource_release(pool);
    if (heaps[0] != '\0') {
        assert_int_equal(tool_state().heaps, 0);
        assert_int_equal(tool_state().violations, 0);
    }
}

TEST_CASE(a_virtual_pool_takes_chunks_only_for_a_tool)
{
    rmm_resource_t *pool = make_virtual_pool(8 * MIB, 0);

    assert_int_equal(
        rmm_resource_upstream(pool) != NULL, getenv("RMM_TEST_LISTENS")[0] == '1');
    rmm_resource_release(pool);
}
