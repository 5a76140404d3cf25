/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See inject_path.h. RMM_RUN_LIBDIR is the way from the folder of programs to that of
 * this library in the installed tree, "../lib/rmm-c"; CMake knows it.
 */
#include "run/inject_path.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define LIBRARY "librmm-inject.so"

/* The folder of this program, without a slash at its end. */
static bool own_folder(char folder[PATH_MAX])
{
    ssize_t length = readlink("/proc/self/exe", folder, PATH_MAX - 1);
    if (length <= 0) {
        return false;
    }
    folder[length] = '\0';
    *strrchr(folder, '/') = '\0';
    return true;
}

/* Resolved, a file, and there to be read. */
static bool resolve(const char *candidate, char path[PATH_MAX])
{
    struct stat st;
    if (realpath(candidate, path) == NULL || stat(path, &st) != 0) {
        return false;
    }
    if (!S_ISREG(st.st_mode)) {
        errno = EISDIR;
        return false;
    }
    return access(path, R_OK) == 0;
}

/* The driver says nothing of a file that it cannot load. */
static bool is_library(const char *path)
{
    char magic[4] = "";
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) {
        return false;
    }
    bool filled = read(fd, magic, sizeof magic) == (ssize_t)sizeof magic;
    close(fd);
    return filled && memcmp(magic, ELFMAG, SELFMAG) == 0;
}

static bool
take_named(const char *named, char path[PATH_MAX], char message[INJECT_MESSAGE_MAX])
{
    const char *wrong = NULL;
    if (!resolve(named, path)) {
        wrong = strerror(errno);
    } else if (!is_library(path)) {
        wrong = "not a shared library";
    } else {
        return true;
    }
    snprintf(
        message, INJECT_MESSAGE_MAX,
        "RMM_INJECT_LIBRARY names %s: %s; name " LIBRARY ", or unset it", named, wrong);
    return false;
}

bool inject_path_find(char path[PATH_MAX], char message[INJECT_MESSAGE_MAX])
{
    static const char *const places[] = {RMM_RUN_LIBDIR, "../inject"};
    const char *named = getenv("RMM_INJECT_LIBRARY");
    if (named != NULL && named[0] != '\0') {
        return take_named(named, path, message);
    }
    char folder[PATH_MAX];
    if (!own_folder(folder)) {
        snprintf(
            message, INJECT_MESSAGE_MAX,
            "cannot find this program's folder (/proc/self/exe: %s): name the "
            "diagnosis library in RMM_INJECT_LIBRARY",
            strerror(errno));
        return false;
    }
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char candidate[2 * PATH_MAX];
        snprintf(candidate, sizeof candidate, "%s/%s/%s", folder, places[i], LIBRARY);
        if (resolve(candidate, path)) {
            return true;
        }
    }
    snprintf(
        message, INJECT_MESSAGE_MAX,
        "cannot find " LIBRARY " in %s/" RMM_RUN_LIBDIR
        ": install it, or name it in RMM_INJECT_LIBRARY",
        folder);
    return false;
}
