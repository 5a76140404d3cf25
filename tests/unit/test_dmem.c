/* SPDX-License-Identifier: Apache-2.0 */
/* Limits of control groups on GPU memory: what the kernel's files say. With real files:
 * tests/fuse/shows_the_kernels_limits_on_gpu_memory.sh. */
#include "harness/harness.h"

#include <string.h>

#include "core/dmem.h"

#define GPU "0000:3b:00.0"

static void expect_bytes(const char *text, uint64_t bytes)
{
    uint64_t found = 0;

    assert_true(rmm__dmem_parse(text, GPU, &found));
    assert_true(found == bytes);
}

static void expect_none(const char *text, const char *gpu)
{
    uint64_t found = 7;

    assert_false(rmm__dmem_parse(text, gpu, &found));
    assert_true(found == 7);
}

TEST_CASE(reads_the_video_memory_of_a_gpu)
{
    expect_bytes("drm/" GPU "/vram0 1048576\n", 1048576);
    expect_bytes("drm/" GPU "/vram0 0", 0);
    expect_bytes("drm/0000:3B:00.0/vram0 5\n", 5);
    expect_bytes("drm/" GPU "/vram0 max\n", RMM_DMEM_UNLIMITED);
    expect_bytes(
        "drm/0000:03:00.0/vram0 7\ndrm/" GPU "/stolen max\ndrm/" GPU "/vram0 3\n"
        "drm/" GPU "/vram1 4\n",
        7);
    expect_bytes("drm/" GPU "/vram0 3\ndrm/" GPU "/vram1 max\n", RMM_DMEM_UNLIMITED);
    expect_bytes(
        "drm/" GPU "/vram0 18446744073709551615\ndrm/" GPU "/vram1 4\n",
        RMM_DMEM_UNLIMITED);
}

TEST_CASE(finds_nothing_in_other_lines)
{
    expect_none("", GPU);
    expect_none("\n\n", GPU);
    expect_none("drm/" GPU "/vram0", GPU);
    expect_none("drm/" GPU "/vram0 \n", GPU);
    expect_none("drm/" GPU "/vram0 -1\n", GPU);
    expect_none("drm/" GPU "/vram0 18446744073709551616\n", GPU);
    expect_none("drm/" GPU "/stolen 5\n", GPU);
    expect_none("drm/" GPU "0/vram0 5\n", GPU);
    expect_none("xdrm/" GPU "/vram0 5\n", GPU);
    expect_none("drm//vram0 5\n", "");
}

static void expect_group(const char *text, const char *path)
{
    char found[PATH_MAX];

    assert_true(rmm__dmem_group(text, found));
    assert_string_equal(found, path);
}

TEST_CASE(finds_the_group_of_version_2)
{
    char path[PATH_MAX], text[PATH_MAX + 16];

    expect_group("0::/\n", "/");
    expect_group("0::/a/b c\n", "/a/b c");
    expect_group("4:memory:/x\n1:name=systemd:/y\n0::/z", "/z");
    assert_false(rmm__dmem_group("", path));
    assert_false(rmm__dmem_group("4:memory:/x\n", path));
    assert_false(rmm__dmem_group("10::/x\n", path));
    assert_false(rmm__dmem_group("0::/../of/another/namespace\n", path));
    memset(text, 'a', sizeof(text));
    memcpy(text, "0::/", 4);
    text[sizeof(text) - 1] = '\0';
    assert_false(rmm__dmem_group(text, path));
}

TEST_CASE(goes_up_to_the_root)
{
    char path[PATH_MAX] = "/a/b c";

    assert_true(rmm__dmem_parent(path));
    assert_string_equal(path, "/a");
    assert_true(rmm__dmem_parent(path));
    assert_string_equal(path, "/");
    assert_false(rmm__dmem_parent(path));
}
