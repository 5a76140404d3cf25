/* SPDX-License-Identifier: Apache-2.0 */
/* Which directories rmm-top reads. */
#include "harness/harness.h"

#include <stdio.h>
#include <unistd.h>

#include "harness/runtime.h"
#include "top/segments.h"

static bool is_read(const char *path, bool is_given)
{
    static const open_segment_t one = {.path = 0};
    segments_t segments = {.path_count = 1, .is_given = is_given};
    int fd;

    snprintf(segments.paths[0], sizeof(segments.paths[0]), "%s", path);
    fd = segments_open_dir(&segments, &one);
    if (fd >= 0) {
        close(fd);
    }
    return fd >= 0;
}

TEST_CASE(another_users_directory_is_read_only_by_its_name)
{
    runtime_t runtime;
    char name[sizeof(runtime.path) + 8];

    runtime_open(&runtime);
    assert_true(is_read(runtime.path, false));
    assert_true(is_read(runtime.path, true));
    snprintf(name, sizeof(name), "%s.link", runtime.path);
    assert_int_equal(symlink(runtime.path, name), 0);
    assert_false(is_read(name, false));
    assert_true(is_read(name, true));
    unlink(name);
    if (geteuid() == 0) { /* others cannot give a directory away */
        assert_int_equal(chown(runtime.path, 65534, 65534), 0);
        assert_false(is_read(runtime.path, false));
        assert_true(is_read(runtime.path, true));
    }
    runtime_close(&runtime);
}
