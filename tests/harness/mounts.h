/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A mount namespace of the calling process's own, from which no mount reaches another.
 *
 * Only a mount point can be made private. In a chroot whose root is none, this has to be
 * done from the root of the namespace, where setns() leads; the chroot is entered again
 * behind it.
 */
#ifndef RMM_TESTS_HARNESS_MOUNTS_H
#define RMM_TESTS_HARNESS_MOUNTS_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/mount.h>
#include <unistd.h>

static inline bool mounts_made_private(void)
{
    return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* False with errno if it cannot be done. */
static inline bool mounts_unshare(void)
{
    int root, here, names;
    bool done;

    if (unshare(CLONE_NEWNS) != 0) {
        return false;
    }
    if (mounts_made_private()) {
        return true;
    }
    root = open("/", O_PATH | O_CLOEXEC);
    here = open(".", O_PATH | O_CLOEXEC);
    names = open("/proc/self/ns/mnt", O_RDONLY | O_CLOEXEC);
    done = setns(names, CLONE_NEWNS) == 0 && mounts_made_private() &&
           fchdir(root) == 0 && chroot(".") == 0 && fchdir(here) == 0;
    close(root);
    close(here);
    close(names);
    return done;
}

#endif /* RMM_TESTS_HARNESS_MOUNTS_H */
