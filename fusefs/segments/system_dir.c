/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Makes and bounds the folder of segments of all users; see system_dir.h.
 */
#include "segments/system_dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segment/open_in.h"
#include "segment/runtime_dir.h"
#include "segments/mounts.h"
#include "segments/reach.h"
#include "support/daemon_log.h"

#define SYSTEM_NAME "rmm" /* in SYSTEM_PARENT */

/* A live program takes 32 to 512 KiB, an ended one 8; what is not used takes no memory. */
#define BOUNDS "mode=1777,size=512m,nr_inodes=65536"
#define QUOTAS ",usrquota,usrquota_block_hardlimit=128m,usrquota_inode_hardlimit=16384"

static bool is_empty(int dirfd)
{
    int fd = openat(dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd < 0 ? NULL : fdopendir(fd);
    const struct dirent *entry;
    bool empty = dir != NULL;
    if (dir == NULL) {
        if (fd >= 0) {
            (void)close(fd);
        }
        return false;
    }
    while (empty && (entry = readdir(dir)) != NULL) {
        empty = strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0;
    }
    (void)closedir(dir);
    return empty;
}

static bool mount_bounded(void)
{
    const unsigned long flags = MS_NOSUID | MS_NODEV | MS_NOEXEC;
    if (mount("rmm", RMM_SYSTEM_RUNTIME_DIR, "tmpfs", flags, BOUNDS QUOTAS) == 0) {
        return true;
    }
    if (mount("rmm", RMM_SYSTEM_RUNTIME_DIR, "tmpfs", flags, BOUNDS) == 0) {
        log_info(
            "this kernel has no quotas for tmpfs (it needs Linux 6.6 or newer with "
            "CONFIG_TMPFS_QUOTA): one user can fill %s",
            RMM_SYSTEM_RUNTIME_DIR);
        return true;
    }
    return false;
}

/* Is a tmpfs of ours to be seen by the programs, and not over segments? */
static bool may_bound(int below)
{
    switch (reach_of_mount(below)) {
    case REACH_PROGRAMS:
        break;
    case REACH_CONTAINER:
        log_warn(
            "%s is on a file system of the machine, and rmmfs in a container: a tmpfs "
            "with a size limit "
            "would hide the segments, so rmmfs mounts none, and users can fill the "
            "machine's file system; give the container /run with propagation "
            "(Kubernetes: mountPropagation: Bidirectional; podman: rshared)",
            RMM_SYSTEM_RUNTIME_DIR);
        return false;
    case REACH_UNKNOWN:
        log_warn(
            "rmmfs is in a container and does not see the machine's pids, so it cannot "
            "know who else uses %s: a tmpfs with a size limit may hide segments, so "
            "rmmfs mounts none, and users can fill its file system; run the container "
            "with the machine's pids (Kubernetes: hostPID: true; podman: --pid=host)",
            RMM_SYSTEM_RUNTIME_DIR);
        return false;
    }
    if (!is_empty(below)) {
        log_warn(
            "%s already holds segments, so rmmfs mounts no tmpfs with a size limit "
            "there: users can fill its file system; start rmmfs before the programs",
            RMM_SYSTEM_RUNTIME_DIR);
        return false;
    }
    return true;
}

/* below: the folder itself, also when something is mounted over it. */
static void bound(int below)
{
    if (!may_bound(below)) {
        return;
    }
    if (!mount_bounded()) {
        log_warn(
            "cannot mount a tmpfs on %s: %s; users can fill its file system",
            RMM_SYSTEM_RUNTIME_DIR, strerror(errno));
        return;
    }
    /* A program that came between the look and the mount must not be hidden. */
    if (!is_empty(below)) {
        (void)umount2(RMM_SYSTEM_RUNTIME_DIR, MNT_DETACH);
        log_warn(
            "%s has no size limit: a program wrote a segment there before rmmfs could "
            "mount a tmpfs; users can fill its file system",
            RMM_SYSTEM_RUNTIME_DIR);
    }
}

/* Not by the devices: a folder may be mounted over another one of the same file system. Unknown, as
 * without /proc, counts as a mount: then nothing is done to it. */
static bool is_mount(int dirfd)
{
    uint64_t id, above_id;
    int above = openat(dirfd, "..", O_PATH | O_DIRECTORY | O_CLOEXEC);
    bool is_same = above >= 0 && mounts_find_id(dirfd, &id) &&
                   mounts_find_id(above, &above_id) && id == above_id;
    if (above >= 0) {
        (void)close(above);
    }
    return !is_same;
}

/* What mkdir gives under a usual umask, as of Kubernetes' DirectoryOrCreate: nobody has chosen it.
 * Another mode may be an administrator's choice of a group. */
static bool is_mode_of_mkdir(mode_t mode)
{
    return mode == 0700 || mode == 0755 || mode == 0777;
}

void system_dir_open_to_all(int dirfd, const char *path)
{
    struct stat status;
    if (fstat(dirfd, &status) != 0 || status.st_uid != 0 ||
        (status.st_mode & 07777) == SYSTEM_DIR_MODE) {
        return;
    }
    mode_t mode = status.st_mode & 07777;
    if (!is_mode_of_mkdir(mode)) {
        log_warn(
            "%s has mode %04o: programs of users who may not write there publish "
            "elsewhere, where rmmfs may not look; `chmod 1777 %s`",
            path, (unsigned)mode, path);
    } else if (fchmod(dirfd, SYSTEM_DIR_MODE) != 0) {
        log_warn(
            "%s has mode %04o, and rmmfs cannot change it to 1777: %s; programs of "
            "other "
            "users publish elsewhere, where rmmfs may not look",
            path, (unsigned)mode, strerror(errno));
    } else if (mode != S_IRWXU) {
        log_info(
            "%s had mode %04o; it now has 1777, so that programs of all users can "
            "publish",
            path, (unsigned)mode);
    }
}

int system_dir_open_below(void)
{
    int above = open_tree(AT_FDCWD, SYSTEM_PARENT, OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    int fd = above < 0 ? -1 : rmm__open_in(above, SYSTEM_NAME, O_RDONLY | O_DIRECTORY);
    if (above >= 0) {
        (void)close(above);
    }
    return fd;
}

void system_dir_make(void)
{
    struct stat status;
    bool made = mkdir(RMM_SYSTEM_RUNTIME_DIR, S_IRWXU) == 0;
    if (!made && errno != EEXIST) {
        log_warn(
            "cannot create %s: %s; rmmfs shows only programs that use other "
            "directories",
            RMM_SYSTEM_RUNTIME_DIR, strerror(errno));
        return;
    }
    int fd =
        open(RMM_SYSTEM_RUNTIME_DIR, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &status) != 0 || status.st_uid != 0) {
        log_warn(
            "%s is ignored: it is not a directory that root owns",
            RMM_SYSTEM_RUNTIME_DIR);
    } else if (!is_mount(fd)) {
        bound(fd);
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}
