/* SPDX-License-Identifier: Apache-2.0 */
/* Opens files beside a segment; see segment_side.h. */
#include "segment/segment_side.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static int check_owner(int fd, uid_t owner)
{
    struct stat status;

    if (fstat(fd, &status) != 0) {
        return -errno;
    }
    return status.st_uid == owner && status.st_nlink == 1 ? 0 : -EPROTO;
}

int rmm_side_file_open(int dirfd, const char *segment, const char *suffix, uid_t owner)
{
    char name[128];
    int length = snprintf(name, sizeof(name), "%s.%s", segment, suffix);
    int error;
    int fd;

    if (length < 0 || (size_t)length >= sizeof(name)) {
        return -ENAMETOOLONG;
    }
    fd = openat(dirfd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd < 0) {
        return -errno;
    }
    error = check_owner(fd, owner);
    if (error != 0) {
        (void)close(fd);
        return error;
    }
    return fd;
}
