/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the tools read; see input.h. */
#include "common/input.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

int input_open(const char *path)
{
    return strcmp(path, "-") == 0 ? fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 0)
                                  : open(path, O_RDONLY | O_CLOEXEC);
}

FILE *input_open_stream(const char *path)
{
    int fd = input_open(path);
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    if (fd >= 0 && file == NULL) {
        int error = errno;
        (void)close(fd);
        errno = error;
    }
    return file;
}
