/* SPDX-License-Identifier: Apache-2.0 */
/* Which directories rmm-top reads. */
#include "harness/harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
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

/* Fakes stand for the programs that are known already; they have ended. */
TEST_CASE(more_programs_than_the_limit_are_left_out)
{
    runtime_t runtime;
    segments_t segments = {.path_count = 1, .is_given = true};
    char name[sizeof(runtime.path) + 32];

    runtime_open(&runtime);
    snprintf(segments.paths[0], sizeof(segments.paths[0]), "%s", runtime.path);
    snprintf(name, sizeof(name), "%s/0.0123456789abcdef", runtime.path);
    close(creat(name, 0600));
    assert_true(segments_list(&segments));
    assert_int_equal(segments.left_out, 0);
    segments.list = calloc(SEGMENTS_MAX, sizeof(*segments.list));
    assert_non_null(segments.list);
    for (segments.room = SEGMENTS_MAX; segments.count < SEGMENTS_MAX;) {
        open_segment_t *one = calloc(1, sizeof(*one));
        assert_non_null(one);
        one->segment.fd = -1;
        segments.list[segments.count++] = one;
    }
    assert_true(segments_list(&segments));
    assert_int_equal(segments.left_out, 1);
    assert_int_equal(segments.count, 0);
    segments_fini(&segments);
    unlink(name);
    runtime_close(&runtime);
}
