/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several adaptors may write to one file: adaptors of several devices or processes, or one after
 * the other. So a file is never truncated, and whole lines are appended with one write, which Linux
 * does not interleave with other writes on a local filesystem.
 *
 * Locking: an adaptor that opens the file holds a lock on it while it checks the first and the last
 * line or writes the header. Only other adaptors that open the file wait for that lock, and not
 * for long. Rows are written without it, so a process that is stopped in a write blocks no other.
 *
 * Rotation: before each write core/output.h looks whether the file was renamed, and opens the one
 * that has the name now; an empty file gets the header again.
 */
#include "adaptors/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/error.h"
#include "core/host_memory.h"
#include "core/uncancelled.h"

#define REPLACED_BYTES 12 /* a number of 32 bits with its sign, and a NUL */
#define LOCK_TRIES 100
#define LOCK_PAUSE_NS 1000000

/* --- its name ----------------------------------------------------------------------- */

/* The text that replaces %`letter`. False: no such letter. */
static bool replace(char letter, int device, char text[REPLACED_BYTES])
{
    if (letter == 'd' && device >= 0) {
        snprintf(text, REPLACED_BYTES, "%d", device);
    } else if (letter == 'd') {
        snprintf(text, REPLACED_BYTES, "host");
    } else if (letter == 'p') {
        snprintf(text, REPLACED_BYTES, "%jd", (intmax_t)getpid());
    } else {
        snprintf(text, REPLACED_BYTES, "%%");
    }
    return letter == 'd' || letter == 'p' || letter == '%';
}

rmm_status_t rmm__log_file_name(const char *pattern, int device, char **path_out)
{
    /* two characters of the pattern become at most REPLACED_BYTES - 1 */
    char *path = rmm__calloc(strlen(pattern) + 1, REPLACED_BYTES / 2);
    char *end = path;
    char text[REPLACED_BYTES];

    if (path == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    for (const char *at = pattern; *at != '\0'; at++) {
        if (*at != '%') {
            *end++ = *at;
        } else if (replace(*++at, device, text)) {
            end = stpcpy(end, text);
        } else {
            rmm__free(path);
            return rmm__error(
                RMM_ERR_INVALID_ARGUMENT,
                "allocation log %.300s: after a %% only d (device), p (process id) or "
                "%% is valid",
                pattern);
        }
    }
    *path_out = path;
    return RMM_OK;
}

/* --- its content -------------------------------------------------------------------- */

/*
 * Not all filesystems have these locks. Without one the header may be written twice, which
 * readers skip. A process that was stopped while it holds the lock stops no other.
 */
static void lock_file(int fd, short type)
{
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};
    const struct timespec pause = {.tv_nsec = LOCK_PAUSE_NS};

    for (int i = 0; i < LOCK_TRIES && fcntl(fd, F_OFD_SETLK, &whole) != 0; i++) {
        if (errno != EAGAIN && errno != EACCES && errno != EINTR) {
            break;
        }
        nanosleep(&pause, NULL);
    }
}

/* For a file that is not empty. `last_out` receives its last byte. */
static rmm_status_t
check_content(const char *path, off_t bytes, const char *header, char *last_out)
{
    char start[RMM_LOG_HEADER_BYTES];
    size_t length = strlen(header);
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t at_start = fd >= 0 ? pread(fd, start, length, 0) : -1;
    ssize_t at_end = at_start >= 0 ? pread(fd, last_out, 1, bytes - 1) : -1;
    int error = errno;

    if (fd >= 0) {
        close(fd);
    }
    if (at_end != 1) {
        return rmm__error(
            RMM_ERR_IO, "cannot read the start of the allocation log %.300s: %s", path,
            at_end < 0 ? strerror(error) : "the file is being truncated");
    }
    return (size_t)at_start == length && memcmp(start, header, length) == 0
               ? RMM_OK
               : rmm__error(
                     RMM_ERR_IO,
                     "cannot append to %.300s: its first line is not the header of an "
                     "allocation log in this format; remove the file or name another "
                     "one",
                     path);
}

static rmm_status_t cannot_write(const rmm_log_file_t *self, int error)
{
    return rmm__error(
        RMM_ERR_IO, "cannot write the allocation log %.300s: %s (%d)", self->path,
        error == EAGAIN  ? "its reader does not read"
        : error == EPIPE ? "it has no reader"
                         : strerror(error),
        error);
}

/*
 * Lock held. After a partial line, which a killed process has left, rows begin a new line. The
 * line may also be one that another process is writing just now: then an empty line follows it,
 * which readers of CSV skip.
 */
static rmm_status_t begin_locked(rmm_log_file_t *self)
{
    const char *path = self->output.path != NULL ? self->output.path : self->path;
    const char *first = self->header;
    struct stat file;

    if (fstat(self->output.fd, &file) == 0 && S_ISREG(file.st_mode) &&
        file.st_size > 0) {
        char last = '\0';
        rmm_status_t status = check_content(path, file.st_size, self->header, &last);

        if (status != RMM_OK) {
            return status;
        }
        first = last == '\n' ? "" : "\n";
    }
    return rmm__output_write(&self->output, first, strlen(first)) == strlen(first)
               ? RMM_OK
               : cannot_write(self, errno);
}

static rmm_status_t begin(rmm_log_file_t *self)
{
    rmm_status_t status;

    lock_file(self->output.fd, F_WRLCK);
    status = begin_locked(self);
    lock_file(self->output.fd, F_UNLCK);
    self->has_begun = status == RMM_OK;
    return status;
}

/* Truncated, as by the copytruncate of logrotate. */
static bool is_empty(const rmm_log_file_t *self)
{
    struct stat file;

    return fstat(self->output.fd, &file) == 0 && S_ISREG(file.st_mode) &&
           file.st_size == 0;
}

rmm_status_t rmm__log_file_write(
    rmm_log_file_t *self, const char *rows, size_t length, size_t *done_out)
{
    RMM_UNCANCELLED;
    bool is_fresh;
    int error = rmm__output_renew(&self->output, &is_fresh);
    rmm_status_t status = RMM_OK;

    *done_out = 0;
    if (error != 0) {
        return cannot_write(self, error);
    }
    if (is_fresh || !self->has_begun || is_empty(self)) {
        status = begin(self);
    }
    if (status == RMM_OK) {
        *done_out = rmm__output_write(&self->output, rows, length);
        status = *done_out == length ? RMM_OK : cannot_write(self, errno);
    }
    return status;
}

rmm_status_t
rmm__log_file_open(rmm_log_file_t *self, const char *path, const char *header)
{
    RMM_UNCANCELLED;
    rmm_status_t status;
    int error;

    self->path = path;
    self->has_begun = false;
    snprintf(self->header, sizeof(self->header), "%s", header);
    error = rmm__output_open(&self->output, path);
    if (error == ENXIO && self->output.path != NULL) {
        return RMM_OK; /* the rows begin when somebody reads */
    }
    if (error != 0) {
        return rmm__error(
            RMM_ERR_IO, "cannot open the allocation log %.300s: %s", path,
            strerror(error));
    }
    status = begin(self);
    if (status != RMM_OK) {
        rmm__output_close(&self->output);
    }
    return status;
}

void rmm__log_file_close(rmm_log_file_t *self)
{
    rmm__output_close(&self->output);
}
