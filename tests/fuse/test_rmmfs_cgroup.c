/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Control groups and containers, from what the kernel writes.
 */
#include "harness/harness.h"

#include <string.h>

#include "render/cgroup.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define LAST_ID "f123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static void assert_path(const char *text, const char *expected)
{
    char path[CGROUP_PATH_BYTES];
    cgroup_parse(text, path);
    assert_string_equal(path, expected);
}

TEST_CASE(the_unified_hierarchy_counts_unless_it_is_the_root)
{
    assert_path("0::/user.slice/a.scope\n", "/user.slice/a.scope");
    assert_path("4:memory:/a\n0::/b\n", "/b");
    assert_path("4:memory:/a\n3:pids:/c\n0::/\n", "/a");
    assert_path("1:name=systemd:/\n0::/\n", "/");
    assert_path("0::/no/newline", "/no/newline");
}

TEST_CASE(a_malformed_line_is_not_a_path)
{
    assert_path("", "");
    assert_path("garbage\n:\n::\n", "");
    assert_path("0:", "");
}

TEST_CASE(a_path_is_one_column_and_is_cut)
{
    char text[2000], path[CGROUP_PATH_BYTES];
    assert_path("0::/a b\\c\tz\n", "/a\\040b\\134c\\011z");
    assert_path("0::/a\x7f\n", "/a\\177");
    memset(text, ' ', sizeof(text));
    memcpy(text, "0::/", 4);
    text[sizeof(text) - 1] = '\0';
    cgroup_parse(text, path);
    assert_in_range(strlen(path), CGROUP_PATH_BYTES - 8, CGROUP_PATH_BYTES - 1);
    assert_string_equal(path + strlen(path) - 4, "\\040");
    memset(text + 4, 'a', sizeof(text) - 5);
    cgroup_parse(text, path);
    assert_int_equal(strlen(path), CGROUP_PATH_BYTES - 4); /* a longer character fits */
}

static void assert_container(const char *path, const char *expected)
{
    char id[CGROUP_CONTAINER_BYTES];
    cgroup_container(path, id);
    assert_string_equal(id, expected);
}

TEST_CASE(a_container_is_the_last_64_digits)
{
    assert_container("/system.slice/docker-" ID ".scope", ID);
    assert_container("/docker/" ID, ID);
    assert_container(
        "/kubepods.slice/kubepods-pod1_2.slice/cri-containerd-" ID ".scope/x", ID);
    assert_container("/docker/" ID "/docker/f" ID, ID); /* 65 digits are none */
    assert_container("/docker/" ID "/docker/" LAST_ID "/x", LAST_ID);
    assert_container("/user.slice/user-1000.slice", "");
    assert_container("", "");
}
