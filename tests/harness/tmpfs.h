/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A small tmpfs for a child process, in a mount namespace of its own: no other process sees it,
 * and it goes with its processes. Root may mount, others in a user namespace, where a
 * kernel allows that: tmpfs_or_skip() says so where it does not.
 */
#ifndef RMM_TESTS_HARNESS_TMPFS_H
#define RMM_TESTS_HARNESS_TMPFS_H

#include "harness/mounts.h"
#include "harness/runtime.h"

#include <sched.h>
#include <sys/mount.h>
#include <sys/statvfs.h>

static inline void write_text(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);

    CHECK(fd >= 0);
    CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
    close(fd);
}

/* Who is not root may mount in a user namespace, where they are who they were. */
static inline void enter_user_namespace(void)
{
    unsigned uid = geteuid(), gid = getegid();
    char map[64];

    CHECK(unshare(CLONE_NEWUSER) == 0);
    write_text("/proc/self/setgroups", "deny");
    snprintf(map, sizeof(map), "%u %u 1", uid, uid);
    write_text("/proc/self/uid_map", map);
    snprintf(map, sizeof(map), "%u %u 1", gid, gid);
    write_text("/proc/self/gid_map", map);
}

/* In a mount namespace of its own, a tmpfs on the directory named. */
static inline void
mount_tmpfs(const char *path, unsigned long flags, const char *options)
{
    if (geteuid() != 0) {
        enter_user_namespace();
    }
    CHECK(mounts_unshare());
    CHECK(mount("none", path, "tmpfs", flags, options) == 0);
}

static inline int entries_in(const char *path)
{
    DIR *directory = opendir(path);
    int count = 0;

    CHECK(directory != NULL);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count - 2;
}

/* Bytes of the file system that are in use. */
static inline uint64_t used_bytes_of(const char *path)
{
    struct statvfs status;

    CHECK(statvfs(path, &status) == 0);
    return (uint64_t)(status.f_blocks - status.f_bfree) * status.f_frsize;
}

/* All that is left goes into one file. */
static inline void fill_disk(const char *path)
{
    static const char page[4096];
    char name[256];
    int fd;

    snprintf(name, sizeof(name), "%s/filler", path);
    fd = open(name, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    CHECK(fd >= 0);
    while (write(fd, page, sizeof(page)) > 0) {
    }
    CHECK(errno == ENOSPC);
    close(fd);
}

static inline bool may_mount(const char **reason_out)
{
    const int flags = geteuid() == 0 ? CLONE_NEWNS : CLONE_NEWUSER | CLONE_NEWNS;
    int status = 0;
    pid_t pid = fork();

    if (pid == 0) {
        _exit(unshare(flags) == 0 ? 0 : errno);
    }
    *reason_out = "cannot fork";
    if (pid < 0 || waitpid(pid, &status, 0) != pid) {
        return false;
    }
    *reason_out = strerror(WEXITSTATUS(status));
    return status == 0;
}

static inline void tmpfs_or_skip(void)
{
    const char *reason;

    if (!may_mount(&reason)) {
        print_message("needs a mount namespace: %s\n", reason);
        skip();
    }
}

/* A directory in the runtime directory, which is the children's place from now on. */
static inline const char *use_small_dir(const runtime_t *parent)
{
    static char path[192];

    snprintf(path, sizeof(path), "%s/small", parent->path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(setenv("RMM_RUNTIME_DIR", path, 1), 0);
    return path;
}

#endif /* RMM_TESTS_HARNESS_TMPFS_H */
