/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See open_in.h. fstat and fstatfs of a descriptor of a FUSE file ask its server. statx with
 * AT_STATX_DONT_SYNC does not, and no more does a walk that ends with O_PATH, because the
 * root of a mount is not validated again.
 */
#include "segment/open_in.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define LOOK (AT_NO_AUTOMOUNT | AT_STATX_DONT_SYNC)

static bool is_of_device(const struct statx *look, const struct stat *dir)
{
    return makedev(look->stx_dev_major, look->stx_dev_minor) == dir->st_dev;
}

/* The walk stops at the entry; only a descriptor that is known to be harmless is opened. */
static int open_in_steps(int dirfd, const char *name, int flags)
{
    struct stat dir;
    struct statx look;
    char link[32];
    int fd, found;
    int error;

    if (strchr(name, '/') != NULL || fstat(dirfd, &dir) != 0) {
        errno = EXDEV;
        return -1;
    }
    found = openat(dirfd, name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    if (found < 0) {
        return -1;
    }
    fd = -1;
    if (statx(found, "", AT_EMPTY_PATH | LOOK, STATX_TYPE, &look) != 0) {
        errno = EXDEV;
    } else if (!is_of_device(&look, &dir)) {
        errno = EXDEV;
    } else if (S_ISLNK(look.stx_mode)) {
        errno = ELOOP;
    } else {
        snprintf(link, sizeof(link), "/proc/self/fd/%d", found);
        fd = open(link, (flags & ~O_NOFOLLOW) | O_CLOEXEC);
    }
    error = errno;

    close(found);
    errno = error;
    return fd;
}

int rmm__open_in(int dirfd, const char *name, int flags)
{
    struct open_how how = {
        .flags = (uint64_t)(flags | O_CLOEXEC),
        .resolve = RESOLVE_NO_XDEV | RESOLVE_NO_SYMLINKS | RESOLVE_BENEATH};
    long fd;

    do {
        fd = syscall(SYS_openat2, dirfd, name, &how, sizeof(how));
    } while (fd < 0 && errno == EINTR);
    /* EPERM: older container runtimes refuse system calls that they do not know. */
    if (fd < 0 && (errno == ENOSYS || errno == EPERM)) {
        return open_in_steps(dirfd, name, flags);
    }
    return (int)fd;
}

int rmm__stat_in(int dirfd, const char *name, struct stat *status)
{
    const unsigned wanted = STATX_BASIC_STATS;
    struct statx look;

    if (statx(dirfd, name, AT_SYMLINK_NOFOLLOW | LOOK, wanted, &look) != 0) {
        return -1;
    }
    if ((look.stx_attributes & STATX_ATTR_MOUNT_ROOT) != 0) {
        errno = EXDEV;
        return -1;
    }
    memset(status, 0, sizeof(*status));
    status->st_dev = makedev(look.stx_dev_major, look.stx_dev_minor);
    status->st_ino = look.stx_ino;
    status->st_mode = look.stx_mode;
    status->st_nlink = look.stx_nlink;
    status->st_uid = look.stx_uid;
    status->st_gid = look.stx_gid;
    status->st_size = (off_t)look.stx_size;
    status->st_blocks = (blkcnt_t)look.stx_blocks;
    status->st_mtim.tv_sec = look.stx_mtime.tv_sec;
    status->st_mtim.tv_nsec = look.stx_mtime.tv_nsec;
    return 0;
}
