/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads files of a mount in a process of its own. A daemon that hangs blocks its readers, and one
 * whose request it has already taken cannot even be killed. That is this process then, which has
 * nothing open that others wait for; the caller's can always end.
 *
 * Calls of one helper come from one thread at a time, but for mount_helper_stop().
 */
#ifndef RMM_TOP_MOUNT_HELPER_H
#define RMM_TOP_MOUNT_HELPER_H

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

typedef struct mount_helper {
    pid_t pid;
    int fd; /* a socket; -1: it was not started */
} mount_helper_t;

/* False with errno. */
bool mount_helper_start(mount_helper_t *helper);

/* At most bytes - 1 of the file, terminated; -1 with errno. Waits as long as the mount does, or
 * until the helper is stopped (EPIPE). */
ssize_t
mount_helper_read(mount_helper_t *helper, const char *path, char *text, size_t bytes);

/* 0 if it is a directory that can be opened; -1 with errno. Waits likewise. */
int mount_helper_open_directory(mount_helper_t *helper, const char *path);

/* Any call that waits returns; there may be no further one. */
void mount_helper_stop(mount_helper_t *helper);

/* Forget a helper that was stopped. */
void mount_helper_fini(mount_helper_t *helper);

#endif /* RMM_TOP_MOUNT_HELPER_H */
