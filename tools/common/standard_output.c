/* SPDX-License-Identifier: Apache-2.0 */
/* The end of what a program prints; see standard_output.h. */
#include "common/standard_output.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/error.h"

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
