/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the daemon may take before its control group is full: which groups count, in both
 * versions of the hierarchies, and that the page cache counts as free. The groups are folders of
 * this test's, with the files that the kernel would show.
 */
#include "harness/harness.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "support/memory.h"

#define MIB (UINT64_C(1) << 20)

static memory_t memory;
static char root[128];

static int remove_one(const char *path, const struct stat *s, int type, struct FTW *at)
{
    (void)s, (void)type, (void)at;
    return remove(path);
}

static int set_up(void **state)
{
    const char *parent = getenv("TMPDIR");
    (void)snprintf(
        root, sizeof(root), "%.64s/rmm-memory.XXXXXX",
        parent != NULL ? parent : "/tmp");
    assert_non_null(mkdtemp(root));
    memory_init(&memory);
    return 0;
}

static int tear_down(void **state)
{
    memory_fini(&memory);
    return nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

static void write_file(const char *group, const char *name, const char *text)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s%s/%s", root, group, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void write_mib(const char *group, const char *name, uint64_t mib)
{
    char text[32];
    (void)snprintf(text, sizeof(text), "%llu\n", (unsigned long long)(mib * MIB));
    write_file(group, name, text);
}

static void write_group(const char *group, uint64_t max_mib, uint64_t current_mib)
{
    write_mib(group, "memory.max", max_mib);
    write_mib(group, "memory.current", current_mib);
}

static void make_group(const char *group)
{
    char path[256];
    (void)snprintf(path, sizeof(path), "%s%s", root, group);
    assert_int_equal(mkdir(path, 0700), 0);
}

TEST(a_group_without_a_limit_has_room)
{
    assert_true(memory_take(&memory, UINT64_MAX));
    write_file("", "memory.max", "max\n");
    write_mib("", "memory.current", 5);
    memory_find_group(&memory, root, "0::/\n");
    assert_true(memory_take(&memory, UINT64_MAX));
}

TEST(an_eighth_of_the_limit_is_kept)
{
    write_group("", 64, 46);
    memory_find_group(&memory, root, "0::/\n");
    assert_false(memory_take(&memory, 10 * MIB + 1));
    assert_true(memory_take(&memory, 10 * MIB));
    write_mib("", "memory.current", 56); /* as the kernel sees it later */
    assert_false(memory_take(&memory, 1));
    write_mib("", "memory.current", 55);
    assert_true(memory_take(&memory, MIB));
}

/* One answer of the kernel is granted once, in parts. */
TEST(the_kernel_is_asked_again_when_the_credit_is_spent)
{
    write_group("", 64, 55);
    memory_find_group(&memory, root, "0::/\n");
    assert_true(memory_take(&memory, MIB / 2));
    write_mib("", "memory.current", 56);
    assert_true(memory_take(&memory, MIB / 2));
    assert_false(memory_take(&memory, 1));
}

TEST(the_page_cache_counts_as_free)
{
    write_group("", 64, 56);
    write_file(
        "", "memory.stat",
        "anon 1\ninactive_anon 9999999\ninactive_file 1048576\nactive_file 1048576\n");
    memory_find_group(&memory, root, "0::/\n");
    assert_false(memory_take(&memory, 2 * MIB + 1));
    assert_true(memory_take(&memory, 2 * MIB));
}

/* The two files are read one after the other. */
TEST(more_page_cache_than_is_used_is_no_more_room)
{
    write_group("", 64, 1);
    write_file("", "memory.stat", "anon 1\ninactive_file 9999999\nactive_file 0\n");
    memory_find_group(&memory, root, "0::/\n");
    assert_false(memory_take(&memory, 56 * MIB + 1));
    assert_true(memory_take(&memory, 56 * MIB));
}

/* In the path of a group, and as a part of a hierarchy's name. */
TEST(what_is_only_called_memory_is_not_its_hierarchy)
{
    make_group("/memory");
    write_group("/memory", 64, 56);
    memory_find_group(&memory, root, "0::/memory\n");
    assert_false(memory_take(&memory, 1));
    memory_fini(&memory);
    memory_init(&memory);
    memory_find_group(
        &memory, root, "2:name=in-memory:/x\n3:cpu,memory_x:/x\n0::/memory\n");
    assert_false(memory_take(&memory, 1));
}

TEST(memory_is_found_beside_another_controller)
{
    make_group("/memory");
    write_mib("/memory", "memory.limit_in_bytes", 64);
    write_mib("/memory", "memory.usage_in_bytes", 56);
    memory_find_group(&memory, root, "4:cpu,memory,pids:/\n0::/\n");
    assert_false(memory_take(&memory, 1));
}

TEST(a_limit_above_counts)
{
    make_group("/a");
    make_group("/a/b");
    make_group("/a/b/c");
    write_file("/a/b/c", "memory.max", "max\n");
    write_group("/a/b", 32, 27);
    write_group("/a", 64, 1);
    memory_find_group(&memory, root, "4:pids:/x\n0::/a/b/c\n");
    assert_false(memory_take(&memory, MIB + 1));
    assert_true(memory_take(&memory, MIB));
}

/* Its other groups use the memory. */
TEST(a_group_above_with_less_left_counts_though_its_limit_is_higher)
{
    make_group("/a");
    make_group("/a/b");
    write_group("/a/b", 512, 10);
    write_group("/a", 1024, 1020);
    memory_find_group(&memory, root, "0::/a/b\n");
    assert_false(memory_take(&memory, 24 * MIB));
    write_mib("/a", "memory.current", 872);
    assert_true(memory_take(&memory, 24 * MIB));
    write_mib("/a/b", "memory.current", 440);
    assert_false(memory_take(&memory, 24 * MIB));
}

TEST(memory_free_at_a_refusal_is_not_granted_later)
{
    write_group("", 64, 16);
    memory_find_group(&memory, root, "0::/\n");
    assert_false(memory_take(&memory, 50 * MIB));
    write_mib("", "memory.current", 56);
    assert_false(memory_take(&memory, 30 * MIB));
}

TEST(a_group_above_with_the_same_limit_counts)
{
    make_group("/a");
    make_group("/a/b");
    write_group("/a/b", 64, 10);
    write_group("/a", 64, 50);
    memory_find_group(&memory, root, "0::/a/b\n");
    assert_false(memory_take(&memory, 6 * MIB + 1));
    assert_true(memory_take(&memory, 6 * MIB));
}

TEST(a_limit_that_is_set_later_counts)
{
    make_group("/a");
    write_file("/a", "memory.max", "max\n");
    write_mib("/a", "memory.current", 50);
    memory_find_group(&memory, root, "0::/a\n");
    assert_true(memory_take(&memory, 100 * MIB));
    write_mib("/a", "memory.max", 64);
    assert_false(memory_take(&memory, 100 * MIB));
}

TEST(a_large_group_keeps_no_more_than_the_reserve)
{
    write_group("", 65536, 65536 - 256 - 10);
    memory_find_group(&memory, root, "0::/\n");
    assert_false(memory_take(&memory, 10 * MIB + 1));
    assert_true(memory_take(&memory, 10 * MIB));
}

/* Its path is the one outside, and what is mounted is the container's own. */
TEST(a_container_finds_its_group_at_the_root)
{
    make_group("/memory");
    write_mib("/memory", "memory.limit_in_bytes", 64);
    write_mib("/memory", "memory.usage_in_bytes", 57);
    write_file(
        "/memory", "memory.stat",
        "inactive_file 9999999\ntotal_inactive_file 1048576\ntotal_active_file 0\n");
    memory_find_group(&memory, root, "5:cpu,cpuacct:/z\n4:memory:/docker/4711\n0::/\n");
    assert_false(memory_take(&memory, 1));
    write_mib("/memory", "memory.usage_in_bytes", 56);
    assert_true(memory_take(&memory, MIB));
}
