/* SPDX-License-Identifier: Apache-2.0 */
/* The file that says that limits of groups are in force; see limits_mark.h. */
#include "segment/limits_mark.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "segment/open_in.h"

void rmm__limits_mark_name(uid_t uid, char name[RMM_LIMITS_MARK_BYTES])
{
    (void)snprintf(name, RMM_LIMITS_MARK_BYTES, "limits.%u", (unsigned)uid);
}

/* Is there a file of that daemon, of one of these two users? */
static bool is_marked(int dirfd, uid_t daemon, uid_t owner)
{
    char name[RMM_LIMITS_MARK_BYTES];
    struct stat status;

    rmm__limits_mark_name(daemon, name);
    return rmm__stat_in(dirfd, name, &status) == 0 && S_ISREG(status.st_mode) &&
           (status.st_uid == daemon || status.st_uid == owner);
}

bool rmm__limits_are_in_force(int dirfd)
{
    const uid_t own = geteuid();
    struct stat directory;

    return fstat(dirfd, &directory) == 0 && (is_marked(dirfd, 0, directory.st_uid) ||
                                             (own != 0 && is_marked(dirfd, own, own)));
}

void rmm__limits_mark(int dirfd, bool in_force)
{
    const uid_t own = geteuid();
    char name[RMM_LIMITS_MARK_BYTES];
    struct stat status;
    bool is_there;
    int fd;

    rmm__limits_mark_name(own, name);
    is_there = rmm__stat_in(dirfd, name, &status) == 0 && S_ISREG(status.st_mode) &&
               status.st_uid == own;
    if (is_there && !in_force) {
        (void)unlinkat(dirfd, name, 0);
    } else if (!is_there && in_force) {
        fd = openat(
            dirfd, name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0444);
        if (fd >= 0) {
            (void)close(fd);
        }
    }
}
