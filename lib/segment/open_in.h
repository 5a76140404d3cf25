/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opens and looks at files of a folder into which others write. A name there may be a link,
 * a FIFO, or have a file system mounted over it that its user serves (FUSE) and that never
 * answers: a process that touches it waits for ever, root too. Nothing here touches it.
 *
 * Without openat2 (Linux before 5.6, some containers) the same takes four system calls.
 *
 * Threads: any.
 */
#ifndef RMM_SEGMENT_OPEN_IN_H
#define RMM_SEGMENT_OPEN_IN_H

#include <errno.h>
#include <stdbool.h>
#include <sys/stat.h>

/*
 * Open the entry `name` of dirfd: no link, nothing mounted, not below another folder. flags
 * of open(2) without O_CREAT; O_CLOEXEC is added. -1 with errno: EXDEV something is mounted
 * there, ELOOP a link.
 */
int rmm__open_in(int dirfd, const char *name, int flags);

/*
 * stat(2) of the entry `name` of dirfd itself, not followed. -1 with errno, EXDEV as above. Never
 * asks a file system that the kernel would have to wait for.
 */
int rmm__stat_in(int dirfd, const char *name, struct stat *status);

/* Whether an open failed for lack of descriptors, which has nothing to do with the file. */
static inline bool rmm__is_out_of_descriptors(int error)
{
    return error == EMFILE || error == ENFILE;
}

#endif /* RMM_SEGMENT_OPEN_IN_H */
