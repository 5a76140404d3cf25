/* SPDX-License-Identifier: Apache-2.0 */
/* Files that are whole; see output.h. */
#include "common/output.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static mode_t current_umask(void)
{
    mode_t mask = umask(0);
    (void)umask(mask);
    return mask;
}

/* Where a link leads, so that it stays a link; a new file's own path. */
static bool resolve(output_t *output, const char *path)
{
    char resolved[PATH_MAX];
    const char *found = realpath(path, resolved);
    if (found == NULL && errno != ENOENT) {
        return false;
    }
    found = found != NULL ? found : path;
    if (strlen(found) >= sizeof(output->path)) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(output->path, found, strlen(found) + 1);
    return true;
}

/* Behind the last '/'. */
static const char *name_of(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash != NULL ? slash + 1 : path;
}

/* The folder that a file is or would be in, with "." at its end. False: the path is too long. */
static bool folder_of(const char *path, char folder[PATH_MAX])
{
    size_t length = (size_t)(name_of(path) - path);
    if (length + sizeof(".") > PATH_MAX) {
        errno = ENAMETOOLONG;
        return false;
    }
    memcpy(folder, path, length);
    memcpy(folder + length, ".", sizeof("."));
    return true;
}

/* A descriptor of a file in the folder of output->path that has no name yet: it is gone with the
 * process, however that ends. -1: the file system has no such files, or nothing could name it. */
static int open_unnamed(const output_t *output)
{
    char folder[PATH_MAX];
    return folder_of(output->path, folder) && access("/proc/self/fd", X_OK) == 0
               ? open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0666)
               : -1;
}

/* A descriptor, or -1. */
static int open_temporary(output_t *output)
{
    int length = snprintf(
        output->temporary, sizeof(output->temporary), "%s.XXXXXX", output->path);
    if (length < 0 || (size_t)length >= sizeof(output->temporary)) {
        errno = ENAMETOOLONG;
        output->temporary[0] = '\0';
        return -1;
    }
    int fd = open_unnamed(output);
    if (fd >= 0) {
        output->is_unnamed = true;
        return fd;
    }
    fd = mkostemp(output->temporary, O_CLOEXEC);
    if (fd < 0) {
        output->temporary[0] = '\0';
        return -1;
    }
    (void)fchmod(fd, 0666 & ~current_umask());
    return fd;
}

/* The unnamed file gets the name output->temporary, because a link replaces no file. */
static bool name_file(output_t *output)
{
    char opened[32];
    bool good = false;
    size_t length = strlen(output->temporary);
    (void)snprintf(opened, sizeof(opened), "/proc/self/fd/%d", fileno(output->file));
    for (unsigned int i = 0; i < 1000000 && !good; i++) {
        (void)snprintf(
            output->temporary + length - 6, 7, "%06u",
            ((unsigned int)getpid() + i) % 1000000);
        good =
            linkat(AT_FDCWD, opened, AT_FDCWD, output->temporary, AT_SYMLINK_FOLLOW) ==
            0;
        if (!good && errno != EEXIST) {
            break;
        }
    }
    output->is_unnamed = !good;
    return good;
}

static bool is_same_file(const struct stat *status, const struct stat *other)
{
    return status->st_dev == other->st_dev && status->st_ino == other->st_ino;
}

/* Do two files that do not exist yet have the same name in the same folder, however it is named? */
static bool is_same_name(const char *path, const char *other_path)
{
    char folder[PATH_MAX], other_folder[PATH_MAX];
    struct stat status, other;
    return strcmp(name_of(path), name_of(other_path)) == 0 && folder_of(path, folder) &&
           folder_of(other_path, other_folder) && stat(folder, &status) == 0 &&
           stat(other_folder, &other) == 0 && is_same_file(&status, &other);
}

bool output_is_same(const char *path, const char *other_path)
{
    struct stat status, other;
    if (path == NULL || other_path == NULL) {
        return false;
    }
    bool is_there = stat(path, &status) == 0;
    if (stat(other_path, &other) != 0) {
        return !is_there && is_same_name(path, other_path);
    }
    return is_there && S_ISREG(status.st_mode) && is_same_file(&status, &other);
}

bool output_open(output_t *output, const char *path)
{
    struct stat status;
    *output = (output_t){.file = NULL};
    if (!resolve(output, path)) {
        return false;
    }
    bool is_there = stat(output->path, &status) == 0;
    if (is_there && S_ISDIR(status.st_mode)) {
        errno = EISDIR;
        return false;
    }
    int fd = is_there && !S_ISREG(status.st_mode)
                 ? open(output->path, O_WRONLY | O_CLOEXEC)
                 : open_temporary(output);
    if (fd < 0) {
        return false;
    }
    output->file = fdopen(fd, "w");
    if (output->file == NULL) {
        close(fd);
        output_discard(output);
    }
    return output->file != NULL;
}

void output_discard(output_t *output)
{
    int error = errno;
    if (output->file != NULL) {
        (void)fclose(output->file);
        output->file = NULL;
    }
    if (output->temporary[0] != '\0' && !output->is_unnamed) {
        (void)unlink(output->temporary);
    }
    output->temporary[0] = '\0';
    errno = error;
}

bool output_commit(output_t *output)
{
    errno = 0;
    bool good = fflush(output->file) == 0 && ferror(output->file) == 0;
    if (!good && errno == 0) {
        errno = EIO; /* an earlier write failed, and its error is lost */
    }
    if (good && output->is_unnamed) {
        good = name_file(output);
    }
    int closed = good ? fclose(output->file) : 0;
    output->file = good ? NULL : output->file;
    good = good && closed == 0;
    if (good && output->temporary[0] != '\0') {
        good = rename(output->temporary, output->path) == 0;
    }
    if (good) {
        output->temporary[0] = '\0';
    }
    output_discard(output);
    return good;
}
