/* SPDX-License-Identifier: Apache-2.0 */
/* Further groups of a process; see group_members.h. */
#include "support/group_members.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define STATUS_BYTES 16384
#define KEY "\nGroups:"

bool groups_parse(const char *status, gid_t group)
{
    const char *at = strstr(status, KEY);
    if (at == NULL) {
        return false;
    }
    at += strlen(KEY);
    while (*at == ' ' || *at == '\t') {
        at++;
    }
    while (*at >= '0' && *at <= '9') {
        char *end;
        unsigned long number = strtoul(at, &end, 10);
        if (number == group && (*end == ' ' || *end == '\n')) {
            return true; /* else the text may be cut in the number */
        }
        at = *end == ' ' ? end + 1 : end;
    }
    return false;
}

bool groups_have(pid_t thread, gid_t group)
{
    char path[32], status[STATUS_BYTES];
    size_t length = 0;
    ssize_t got = 1;
    snprintf(path, sizeof(path), "/proc/%d/status", (int)thread);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && got > 0 && length + 1 < sizeof(status)) {
        got = read(fd, status + length, sizeof(status) - 1 - length);
        length += got > 0 ? (size_t)got : 0;
    }
    status[length] = '\0';
    if (fd >= 0) {
        (void)close(fd);
    }
    return groups_parse(status, group);
}
