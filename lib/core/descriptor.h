/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program may run with its standard descriptors closed. What the library keeps open must
 * not take their numbers, or the program's next printf goes into our file.
 */
#ifndef RMM_CORE_DESCRIPTOR_H
#define RMM_CORE_DESCRIPTOR_H

#include <fcntl.h>
#include <unistd.h>

/* The same open file under a number above 2; -1 if there was none or none is left. */
static inline int rmm__descriptor_above_standard(int fd)
{
    int above;

    if (fd < 0 || fd > STDERR_FILENO) {
        return fd;
    }
    above = fcntl(fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    close(fd);
    return above;
}

#endif /* RMM_CORE_DESCRIPTOR_H */
