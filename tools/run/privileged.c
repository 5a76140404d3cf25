/* SPDX-License-Identifier: Apache-2.0 */
/* Programs with other rights than their caller's; see privileged.h. */
#include "run/privileged.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool is_ignored(const char *path)
{
    struct statvfs place;

    return prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) == 1 ||
           (statvfs(path, &place) == 0 && (place.f_flag & ST_NOSUID) != 0);
}

static bool file_is_privileged(const char *path)
{
    struct stat file;

    if (stat(path, &file) != 0 || is_ignored(path)) {
        return false;
    }
    return ((file.st_mode & S_ISUID) != 0 && file.st_uid != getuid()) ||
           ((file.st_mode & S_ISGID) != 0 && (file.st_mode & S_IXGRP) != 0 &&
            file.st_gid != getgid()) ||
           (getuid() != 0 && getxattr(path, "security.capability", NULL, 0) > 0);
}

bool run_is_privileged(const char *program)
{
    const char *folder = getenv("PATH");
    char path[PATH_MAX];

    if (strchr(program, '/') != NULL || folder == NULL) {
        return file_is_privileged(program);
    }
    while (*folder != '\0') {
        int length = (int)strcspn(folder, ":");

        (void)snprintf(
            path, sizeof(path), "%.*s/%s", length > 0 ? length : 1,
            length > 0 ? folder : ".", program);
        if (access(path, X_OK) == 0) {
            return file_is_privileged(path);
        }
        folder += length + (folder[length] == ':' ? 1 : 0);
    }
    return false;
}
