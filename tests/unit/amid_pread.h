/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A writer that does its work in the middle of a read: pread() of the program that includes
 * this reads in two halves.
 */
#ifndef RMM_TESTS_UNIT_AMID_PREAD_H
#define RMM_TESTS_UNIT_AMID_PREAD_H

#include <stddef.h>
#include <stdint.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <unistd.h>

static void (*amid)(int fd, uint64_t offset); /* between the halves; NULL: nothing */

/* In the place of the C library's, for this program. */
ssize_t pread(int fd, void *to, size_t bytes, off_t offset)
{
    const size_t half = bytes / 2;
    ssize_t first = syscall(SYS_pread64, fd, to, half, offset);
    ssize_t second;

    if (amid != NULL) {
        amid(fd, (uint64_t)offset);
    }
    if (first != (ssize_t)half) {
        return first;
    }
    second =
        syscall(SYS_pread64, fd, (char *)to + half, bytes - half, offset + (off_t)half);
    return second < 0 ? second : first + second;
}

#endif /* RMM_TESTS_UNIT_AMID_PREAD_H */
