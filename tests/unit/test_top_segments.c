/* SPDX-License-Identifier: Apache-2.0 */
/* Which directories rmm-top reads. */
#include "harness/harness.h"

#include <stdio.h>
#include <unistd.h>

#include "harness/in_child.h"
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

static void put_segment(const runtime_t *runtime, unsigned number, mode_t mode)
{
    char name[64];
    int fd;

    snprintf(name, sizeof(name), "%u.%016x", (unsigned)geteuid(), number);
    fd = openat(runtime->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "noise", 5), 5);
    assert_int_equal(fchmod(fd, mode), 0);
    close(fd);
}

/* Twice: the counts are those of the last listing. */
static int list_as_another_user(void)
{
    segments_t segments;
    char message[256];

    CHECK(geteuid() != 0 || seteuid(65534) == 0);
    CHECK(segments_init(&segments, message, sizeof(message)));
    for (int i = 0; i < 2; i++) {
        CHECK(segments_list(&segments));
        CHECK(segments.forbidden == 2);
        CHECK(segments.refused == 1);
        CHECK(segments.count == 0 && segments.left_out == 0);
    }
    segments_fini(&segments);
    return 0;
}

TEST_CASE(segments_of_others_are_counted_apart_from_bad_ones)
{
    runtime_t runtime;

    runtime_open(&runtime);
    assert_int_equal(chmod(runtime.path, 0755), 0);
    put_segment(&runtime, 1, 0);
    put_segment(&runtime, 2, 0);
    put_segment(&runtime, 3, 0644);
    assert_int_equal(in_child(list_as_another_user), 0);
    runtime_close(&runtime);
}
