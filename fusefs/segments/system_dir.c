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

#include "segment/runtime_dir.h"
#include "support/daemon_log.h"

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

/* below: the folder itself, also when something is mounted over it. */
static void bound(int below)
{
    if (!is_empty(below)) {
        log_warn(
            "%s already holds segments, so rmmfs mounts no tmpfs with a size limit "
            "there: users can fill its file system; start rmmfs before the programs",
            RMM_SYSTEM_RUNTIME_DIR);
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

static bool is_mount(int dirfd, const struct stat *status)
{
    struct stat above;
    return fstatat(dirfd, "..", &above, 0) == 0 && above.st_dev != status->st_dev;
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
    } else if (!is_mount(fd, &status)) {
        bound(fd);
        if (made && fchmod(fd, 01777) != 0) {
            log_warn(
                "cannot give all users access to %s: %s", RMM_SYSTEM_RUNTIME_DIR,
                strerror(errno));
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
}
