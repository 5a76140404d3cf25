/* SPDX-License-Identifier: Apache-2.0 */
/* Writes and checks the standard output of a program; see standard_output.h. */
#include "common/standard_output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/error.h"

/* The next file that is opened gets the lowest free number: messages would be written into it. */
void standard_output_begin(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) < 0) {
            int other_way = fd == STDIN_FILENO ? O_WRONLY : O_RDONLY;
            (void)!open("/dev/null", other_way | O_CLOEXEC);
        }
    }
}

bool standard_output_end(bool is_whole)
{
    errno = 0;
    if (fflush(stdout) != 0 || ferror(stdout) != 0) {
        /* the error of an earlier write is lost */
        tool_error(
            "cannot write to standard output: %s", strerror(errno != 0 ? errno : EIO));
        return false;
    }
    if (!is_whole) {
        tool_error("the output is incomplete: out of memory");
    }
    return is_whole;
}
