/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Several adaptors may write to one file: adaptors of several devices or processes, or one after
 * the other. So a file is never truncated, and whole lines are appended with one write, which Linux
 * does not interleave with other writes on a local filesystem.
 *
 * Locking: an adaptor that opens the file holds a lock on it while it checks the first and the last
 * line or writes the header. Only other adaptors that open the file wait for that lock. Rows are
 * written without it, so a process that is stopped in a write blocks no other.
 */
#include "adaptors/log_file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "core/error.h"
#include "core/host_memory.h"
#include "segment/temporary_file.h"

#define HEADER_BYTES 256  /* no header is longer */
#define REPLACED_BYTES 12 /* a number of 32 bits with its sign, and a NUL */

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

static size_t write_all(int fd, const char *bytes, size_t length)
{
    size_t done = 0;

    while (done < length) {
        ssize_t put = write(fd, bytes + done, length - done);

        if (put < 0 && errno != EINTR) {
            break;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    return done;
}

/* A write to a pipe without a reader raises SIGPIPE in its thread, which would end the program.
 * It is blocked here, and taken back unless one was pending before. */
static size_t write_without_signal(int fd, const char *bytes, size_t length)
{
    const struct timespec at_once = {0, 0};
    sigset_t pipe_only, before, pending;
    size_t done;
    int error;

    sigemptyset(&pipe_only);
    sigaddset(&pipe_only, SIGPIPE);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &pipe_only, &before);
    done = write_all(fd, bytes, length);
    error = errno;
    if (done < length && error == EPIPE && !sigismember(&pending, SIGPIPE)) {
        (void)sigtimedwait(&pipe_only, NULL, &at_once);
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    errno = error;
    return done;
}

/* A write beyond RLIMIT_FSIZE raises SIGXFSZ, which would end the program, too. */
size_t rmm__log_file_write(int fd, const char *bytes, size_t length)
{
    struct stat file;

    if (fstat(fd, &file) != 0 || !S_ISREG(file.st_mode)) {
        return write_without_signal(fd, bytes, length);
    }
    if (length > 0 && !rmm__file_size_is_allowed((uint64_t)file.st_size + length)) {
        errno = EFBIG;
        return 0;
    }
    return write_all(fd, bytes, length);
}

/* Not all filesystems have these locks. Without one the header may be written twice. */
static void lock_file(int fd, short type)
{
    struct flock whole = {.l_type = type, .l_whence = SEEK_SET};

    while (fcntl(fd, F_OFD_SETLKW, &whole) != 0 && errno == EINTR) {
    }
}

/* For a file that is not empty. `last_out` receives its last byte. */
static rmm_status_t
check_content(const char *path, off_t bytes, const char *header, char *last_out)
{
    char start[HEADER_BYTES];
    size_t length = strlen(header);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
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

/*
 * Lock held. After a partial line, which a killed process has left, rows begin a new line. The
 * line may also be one that another process is writing just now: then an empty line follows it,
 * which readers of CSV skip.
 */
static rmm_status_t begin_locked(int fd, const char *path, const char *header)
{
    const char *first = header;
    struct stat file;

    if (fstat(fd, &file) == 0 && S_ISREG(file.st_mode) && file.st_size > 0) {
        char last = '\0';
        rmm_status_t status = check_content(path, file.st_size, header, &last);

        if (status != RMM_OK) {
            return status;
        }
        first = last == '\n' ? "" : "\n";
    }
    return rmm__log_file_write(fd, first, strlen(first)) == strlen(first)
               ? RMM_OK
               : rmm__error(
                     RMM_ERR_IO, "cannot write the allocation log %.300s: %s", path,
                     strerror(errno));
}

rmm_status_t rmm__log_file_open(const char *path, const char *header, int *fd_out)
{
    rmm_status_t status;
    int fd = rmm__descriptor_above_standard(
        open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));

    if (fd < 0) {
        return rmm__error(
            RMM_ERR_IO, "cannot open the allocation log %.300s: %s", path,
            strerror(errno));
    }
    lock_file(fd, F_WRLCK);
    status = begin_locked(fd, path, header);
    lock_file(fd, F_UNLCK);
    if (status != RMM_OK) {
        close(fd);
        return status;
    }
    *fd_out = fd;
    return RMM_OK;
}
