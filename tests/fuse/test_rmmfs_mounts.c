/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which file systems the daemon may touch: in a chroot too, whose mount table lacks the root.
 */
#include "harness/in_child.h"
#include "harness/tmpfs.h"

#include <string.h>
#include <sys/stat.h>

#include "segments/mounts.h"

static mount_kind_t kind_of(int fd, char type[MOUNT_TYPE_BYTES])
{
    mounts_t mounts = {0};
    mount_kind_t kind = mounts_kind(&mounts, fd, type);
    mounts_fini(&mounts);
    return kind;
}

static mount_kind_t kind_of_path(const char *path, char type[MOUNT_TYPE_BYTES])
{
    int fd = open(path, O_PATH | O_CLOEXEC);
    CHECK(fd >= 0);
    mount_kind_t kind = kind_of(fd, type);
    close(fd);
    return kind;
}

/* The folder's file system on a mount whose root lies above the folder: as after debootstrap. */
static void enter_tree(const char *path)
{
    mount_tmpfs(path, 0, NULL);
    CHECK(chdir(path) == 0);
    CHECK(mkdir("tree", 0755) == 0 && chdir("tree") == 0);
    CHECK(mkdir("proc", 0755) == 0 && mkdir("run", 0755) == 0);
    CHECK(mkdir("mounted", 0755) == 0);
    CHECK(mount("/proc", "proc", NULL, MS_BIND | MS_REC, NULL) == 0);
    CHECK(mount("none", "mounted", "tmpfs", 0, NULL) == 0);
    CHECK(chroot(".") == 0 && chdir("/") == 0);
}

static void look_inside(const char *path)
{
    char type[MOUNT_TYPE_BYTES];
    int outside = open("/proc", O_PATH | O_CLOEXEC);
    CHECK(outside >= 0);
    enter_tree(path);
    CHECK(kind_of_path("/run", type) == MOUNT_LOCAL);
    CHECK(kind_of_path("/mounted", type) == MOUNT_LOCAL && strcmp(type, "tmpfs") == 0);
    CHECK(kind_of_path("/proc", type) == MOUNT_REMOTE && strcmp(type, "proc") == 0);
    CHECK(kind_of(outside, type) == MOUNT_SERVED && strcmp(type, "unknown") == 0);
    _exit(0);
}

static void look_at_served(const char *path)
{
    char type[MOUNT_TYPE_BYTES], options[64];
    mount_tmpfs(path, 0, NULL);
    int fuse = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    CHECK(fuse >= 0 || errno == ENOENT);
    if (fuse < 0) {
        _exit(77);
    }
    (void)snprintf(
        options, sizeof(options), "fd=%d,rootmode=40000,user_id=%u,group_id=%u", fuse,
        (unsigned)geteuid(), (unsigned)getegid());
    CHECK(mount("none", path, "fuse.remote", MS_NOSUID | MS_NODEV, options) == 0);
    CHECK(kind_of_path(path, type) == MOUNT_SERVED && strcmp(type, "fuse.remote") == 0);
    CHECK(umount2(path, MNT_DETACH) == 0);
    _exit(0);
}

/* A file system that a program serves may not answer, whatever it calls itself. */
TEST_CASE(all_kinds_of_fuse_are_served_by_a_program)
{
    runtime_t runtime;
    tmpfs_or_skip();
    runtime_open(&runtime);
    pid_t child = fork_child();
    if (child == 0) {
        look_at_served(runtime.path);
    }
    int status = exit_status_of(child);
    runtime_close(&runtime);
    if (status == 77) {
        skip();
    }
    assert_int_equal(status, 0);
}

static bool note_path(const mount_line_t *mount, void *arg)
{
    (void)snprintf(arg, 64, "%s", mount->path);
    return true;
}

TEST_CASE(a_path_is_read_as_it_is)
{
    char line[] =
        "36 35 98:0 / /a\\040b\\134c\\x rw,noatime master:1 - tmpfs none rw\n";
    char path[64] = "";
    FILE *table = fmemopen(line, strlen(line), "r");
    assert_non_null(table);
    mounts_each(table, note_path, path);
    assert_string_equal(path, "/a b\\c\\x");
    fclose(table);
}

TEST_CASE(the_root_of_a_chroot_is_known_and_no_other_mount_outside)
{
    runtime_t runtime;
    tmpfs_or_skip();
    runtime_open(&runtime);
    pid_t child = fork_child();
    if (child == 0) {
        look_inside(runtime.path);
    }
    assert_int_equal(exit_status_of(child), 0);
    runtime_close(&runtime);
}
