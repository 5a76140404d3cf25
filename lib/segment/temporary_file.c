/* SPDX-License-Identifier: Apache-2.0 */
/* Temporary files; see temporary_file.h. */
#include "segment/temporary_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

uint64_t rmm__random64(void)
{
    struct timespec now;
    uint64_t number;

    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) == (ssize_t)sizeof(number)) {
        return number;
    }
    /* Early in a boot. O_EXCL still refuses a name that exists. */
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_nsec << 34 ^ (uint64_t)now.tv_sec << 20 ^
           (uint64_t)getpid();
}

int rmm__temporary_file_open(int dirfd, uid_t uid, char name[RMM_TEMPORARY_NAME_BYTES])
{
    int fd;

    snprintf(
        name, RMM_TEMPORARY_NAME_BYTES, ".%u.%016" PRIx64 ".tmp", (unsigned)uid,
        rmm__random64());
    fd = openat(dirfd, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) {
        return -errno;
    }
    (void)fchmod(fd, 0600); /* whatever the umask says */
    return fd;
}

bool rmm__file_size_is_allowed(uint64_t bytes)
{
    struct rlimit limit;

    return getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
           bytes <= limit.rlim_cur;
}
