/* SPDX-License-Identifier: Apache-2.0 */
/* Which directories are read for segments. */
#include "harness/harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/runtime.h"
#include "harness/tmpfs.h"
#include "node/segments.h"
#include "segment/runtime_dir.h"

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

/* --- which there are ---------------------------------------------------------------------- */

static segments_t segments;
static char message[200];

TEST_CASE(a_directory_whose_name_is_too_long_is_refused)
{
    runtime_t runtime;
    char name[sizeof(segments.paths[0]) + 1];

    runtime_open(&runtime);
    memset(name, 'x', sizeof(name));
    memcpy(name, runtime.path, strlen(runtime.path));
    name[strlen(runtime.path)] = '/';
    for (size_t length = sizeof(name) - 1; length >= sizeof(name) - 2; length--) {
        name[length] = '\0';
        assert_int_equal(mkdir(name, 0700), 0);
        setenv("RMM_RUNTIME_DIR", name, 1);
        bool fits = length < sizeof(segments.paths[0]);
        assert_int_equal(segments_init(&segments, message, sizeof(message)), fits);
        assert_string_equal(
            fits ? segments.paths[0] : message,
            fits ? name : "RMM_RUNTIME_DIR is too long");
        segments_fini(&segments);
    }
    runtime_close(&runtime);
}

/* In a child that sees a /run and a /dev/shm of its own. */
static void directories_of_the_system(child_t *self, void *argument)
{
    mount_tmpfs("/run", 0, "mode=755");
    CHECK(mkdir(RMM_SYSTEM_RUNTIME_DIR, 0755) == 0);
    CHECK(segments_init(&segments, message, sizeof(message)));
    CHECK(segments.path_count == 1);
    CHECK(strcmp(segments.paths[0], RMM_SYSTEM_RUNTIME_DIR) == 0);
}

static void directories_on_a_read_only_disk(child_t *self, void *argument)
{
    char path[64];

    mount_tmpfs("/run", 0, "mode=755");
    CHECK(mount("none", "/dev/shm", "tmpfs", 0, "mode=1777") == 0);
    snprintf(path, sizeof(path), "/dev/shm/rmm-%u", (unsigned)geteuid());
    CHECK(mkdir(path, 0700) == 0);
    CHECK(mount("none", "/dev/shm", NULL, MS_REMOUNT | MS_RDONLY, NULL) == 0);
    CHECK(segments_init(&segments, message, sizeof(message)));
    CHECK(segments.path_count == 2);
    CHECK(strcmp(segments.paths[1], path) == 0);
}

static void forget_directories(void)
{
    unsetenv("RMM_RUNTIME_DIR");
    unsetenv("XDG_RUNTIME_DIR");
}

/* Else its files are counted twice. */
TEST_CASE(the_systems_directory_is_listed_once)
{
    tmpfs_or_skip();
    forget_directories();
    child_run(directories_of_the_system, NULL);
}

TEST_CASE(a_directory_that_cannot_be_written_is_read)
{
    tmpfs_or_skip();
    forget_directories();
    child_run(directories_on_a_read_only_disk, NULL);
}
