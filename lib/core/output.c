/* SPDX-License-Identifier: Apache-2.0 */
/* Writing without harm to the program; see output.h. */
#include "core/output.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "core/host_memory.h"
#include "core/uncancelled.h"

#define PRINT_BYTES 1024
#define PIPE_BYTES (1024 * 1024) /* as much as everybody may have */

/* --- signals ------------------------------------------------------------------------ */

/* The signals that a write may raise in its thread. */
static const int raised[] = {SIGPIPE, SIGXFSZ};
#define RAISED (sizeof(raised) / sizeof(raised[0]))

typedef struct quiet {
    sigset_t before; /* the thread's mask */
    bool was_pending[RAISED];
} quiet_t;

static void begin_quiet(quiet_t *quiet)
{
    sigset_t all, pending;

    sigemptyset(&all);
    sigpending(&pending);
    for (size_t i = 0; i < RAISED; i++) {
        sigaddset(&all, raised[i]);
        quiet->was_pending[i] = sigismember(&pending, raised[i]) == 1;
    }
    pthread_sigmask(SIG_BLOCK, &all, &quiet->before);
}

/* Takes back what the write has raised. */
static void end_quiet(const quiet_t *quiet, bool has_failed)
{
    const struct timespec at_once = {0, 0};

    for (size_t i = 0; has_failed && i < RAISED; i++) {
        sigset_t one;

        sigemptyset(&one);
        sigaddset(&one, raised[i]);
        if (!quiet->was_pending[i]) {
            (void)sigtimedwait(&one, NULL, &at_once);
        }
    }
    pthread_sigmask(SIG_SETMASK, &quiet->before, NULL);
}

/* --- files -------------------------------------------------------------------------- */

/* How many of the bytes are whole lines within RLIMIT_FSIZE, at the end of the file. */
static size_t
lines_that_fit(int fd, const struct stat *file, const char *lines, size_t length)
{
    bool appends = (fcntl(fd, F_GETFL) & O_APPEND) != 0;
    off_t at = appends ? file->st_size : lseek(fd, 0, SEEK_CUR);
    struct rlimit limit;
    const char *end;
    size_t room;

    if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY ||
        at < 0) {
        return length;
    }
    room = limit.rlim_cur > (uint64_t)at ? (size_t)(limit.rlim_cur - (uint64_t)at) : 0;
    if (room >= length) {
        return length;
    }
    end = room != 0 ? memrchr(lines, '\n', room) : NULL;
    return end != NULL ? (size_t)(end - lines) + 1 : 0;
}

static size_t
put_in_file(int fd, const struct stat *file, const char *lines, size_t length)
{
    size_t most = lines_that_fit(fd, file, lines, length);
    size_t done = 0;

    while (done < most) {
        ssize_t put = write(fd, lines + done, most - done);

        if (put < 0 && errno != EINTR) {
            return done;
        }
        done += put > 0 ? (size_t)put : 0;
    }
    errno = done < length ? EFBIG : 0;
    return done;
}

/* --- pipes, terminals, sockets ------------------------------------------------------ */

static bool has_room(int fd, int timeout_ms)
{
    struct pollfd asked = {.fd = fd, .events = POLLOUT};

    return poll(&asked, 1, timeout_ms) == 1;
}

/*
 * A terminal's poll() promises room for a byte, and write() waits there until the last one has
 * fitted. Another opening of the same terminal does not block, and leaves the program's as it is.
 * -1: it has none (there is no /proc, or the terminal is another user's).
 */
static int open_without_blocking(int fd)
{
    char name[sizeof("/proc/self/fd/") + 11];
    int flags = fcntl(fd, F_GETFL);

    if (flags < 0 || (flags & O_NONBLOCK) != 0 || !isatty(fd)) {
        return -1;
    }
    snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
    return open(name, O_WRONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
}

static ssize_t write_after_poll(int fd, const char *bytes, size_t length)
{
    int unblocked = open_without_blocking(fd);
    ssize_t put = -1;
    int error;

    if (unblocked >= 0) {
        put = write(unblocked, bytes, length);
        error = errno;
        close(unblocked);
        errno = error;
        return put;
    }
    if (!has_room(fd, 0)) {
        errno = EAGAIN;
        return -1;
    }
    return write(fd, bytes, length);
}

/*
 * The descriptor may be the program's, which wants it to block. So the kernel is told for this
 * write alone. Where it cannot (a terminal, before Linux 5.15 a pipe), poll() is asked first: a
 * pipe has room for PIPE_BUF bytes then, unless another writer takes it at that moment.
 */
static ssize_t write_at_once(int fd, bool is_socket, const char *bytes, size_t length)
{
    const struct iovec piece = {(void *)(uintptr_t)bytes, length};
    ssize_t put;

    if (is_socket) {
        return send(fd, bytes, length, MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    put = pwritev2(fd, &piece, 1, -1, RWF_NOWAIT);
    if (put >= 0 || (errno != EOPNOTSUPP && errno != ENOSYS && errno != EINVAL &&
                     errno != ESPIPE)) {
        return put;
    }
    return write_after_poll(fd, bytes, length);
}

/* Whole lines that a pipe takes in one piece, or what there is of a longer one. */
static size_t piece_of(const char *lines, size_t length)
{
    const char *end;

    if (length <= PIPE_BUF) {
        return length;
    }
    end = memrchr(lines, '\n', PIPE_BUF);
    return end != NULL ? (size_t)(end - lines) + 1 : PIPE_BUF;
}

/* True: try again. */
static bool wait_for_room(int fd, atomic_bool *stalled)
{
    bool is_known =
        stalled != NULL && atomic_load_explicit(stalled, memory_order_relaxed);

    if (is_known || !has_room(fd, RMM_OUTPUT_PATIENCE_MS)) {
        if (stalled != NULL) {
            atomic_store_explicit(stalled, true, memory_order_relaxed);
        }
        errno = EAGAIN;
        return false;
    }
    return true;
}

static size_t put_in_stream(
    int fd, bool is_socket, const char *lines, size_t length, atomic_bool *stalled)
{
    size_t done = 0;

    while (done < length) {
        ssize_t put = write_at_once(
            fd, is_socket, lines + done, piece_of(lines + done, length - done));

        if (put >= 0) {
            done += (size_t)put;
            if (stalled != NULL) {
                atomic_store_explicit(stalled, false, memory_order_relaxed);
            }
        } else if (errno == EAGAIN ? !wait_for_room(fd, stalled) : errno != EINTR) {
            break;
        }
    }
    return done;
}

size_t rmm__output_put(int fd, const char *lines, size_t length, atomic_bool *stalled)
{
    RMM_UNCANCELLED;
    struct stat file;
    quiet_t quiet;
    size_t done;
    int error;

    if (fstat(fd, &file) != 0) {
        return 0;
    }
    begin_quiet(&quiet);
    done = S_ISREG(file.st_mode)
               ? put_in_file(fd, &file, lines, length)
               : put_in_stream(fd, S_ISSOCK(file.st_mode), lines, length, stalled);
    error = errno;
    end_quiet(&quiet, done < length);
    errno = error;
    return done;
}

static bool had_standard_error = true;

__attribute__((constructor)) static void look_for_standard_error(void)
{
    had_standard_error = fcntl(STDERR_FILENO, F_GETFD) >= 0;
}

/* Where there was none, the number is that of a file of the program's, unless it is directed to
 * where messages go: as by daemon(3), to /dev/null. */
static bool is_standard_error(void)
{
    int flags = fcntl(STDERR_FILENO, F_GETFD);
    struct stat file;

    if (flags < 0 || (flags & FD_CLOEXEC) != 0) {
        return false;
    }
    return had_standard_error ||
           (fstat(STDERR_FILENO, &file) == 0 && S_ISCHR(file.st_mode));
}

size_t rmm__output_put_error(const char *lines, size_t length)
{
    static atomic_bool stalled;

    if (!is_standard_error()) {
        errno = EBADF;
        return 0;
    }
    return rmm__output_put(STDERR_FILENO, lines, length, &stalled);
}

void rmm__output_print(const char *format, ...)
{
    char line[PRINT_BYTES];
    int saved_errno = errno;
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(line, sizeof(line), format, arguments);
    va_end(arguments);
    (void)rmm__output_put_error(line, strlen(line));
    errno = saved_errno;
}

/* --- outputs ------------------------------------------------------------------------ */

/* 0 or ENOMEM. *out is NULL where the absolute path is unknown, or too long to open. */
static int make_absolute(const char *path, char **out)
{
    char folder[PATH_MAX], whole[PATH_MAX];

    *out = NULL;
    if (path[0] != '/') {
        if (getcwd(folder, sizeof(folder)) == NULL || folder[0] != '/' ||
            strlen(folder) + 1 + strlen(path) >= sizeof(whole)) {
            return 0;
        }
        stpcpy(stpcpy(stpcpy(whole, folder), "/"), path);
        path = whole;
    }
    *out = rmm__strdup(path);
    return *out != NULL ? 0 : ENOMEM;
}

static bool is_same(const rmm_output_t *self, const struct stat *file)
{
    return file->st_dev == self->device && file->st_ino == self->inode;
}

/* /dev/stdout and its like name whatever the program has there at the moment. */
static bool names_a_descriptor(const char *path)
{
    return strncmp(path, "/dev/", 5) == 0 || strncmp(path, "/proc/", 6) == 0;
}

static int open_named(rmm_output_t *self, const char *path)
{
    /* O_NONBLOCK: a FIFO without a reader is an error, not a wait */
    int fd = rmm__descriptor_above_standard(open(
        path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0644));
    struct stat file;

    if (fd < 0) {
        return errno;
    }
    if (fstat(fd, &file) != 0) {
        int error = errno;

        close(fd);
        return error;
    }
    if (S_ISFIFO(file.st_mode)) { /* more until a slow reader costs rows */
        (void)fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES);
    }
    self->fd = fd;
    self->device = file.st_dev;
    self->inode = file.st_ino;
    self->may_rotate = S_ISREG(file.st_mode) && !names_a_descriptor(path);
    self->is_cut = false;
    atomic_store_explicit(&self->stalled, false, memory_order_relaxed);
    return 0;
}

/* A socket is ENXIO, too. */
static bool is_fifo(const char *path)
{
    struct stat file;

    return stat(path, &file) == 0 && S_ISFIFO(file.st_mode);
}

int rmm__output_open(rmm_output_t *self, const char *path)
{
    RMM_UNCANCELLED;
    int error;

    *self = (rmm_output_t)RMM_OUTPUT_NONE;
    error = make_absolute(path, &self->path);
    if (error == 0) {
        error = open_named(self, path);
    }
    if (error != 0 && (error != ENXIO || !is_fifo(path))) {
        rmm__free(self->path);
        self->path = NULL;
    }
    return error;
}

/* A descriptor that is another file's now is not the library's to close. */
static bool has_own_descriptor(const rmm_output_t *self)
{
    struct stat file;

    return self->fd >= 0 && fstat(self->fd, &file) == 0 && is_same(self, &file);
}

static bool is_renamed(const rmm_output_t *self)
{
    struct stat named;

    if (!self->may_rotate || self->path == NULL) {
        return false;
    }
    return stat(self->path, &named) == 0 ? !is_same(self, &named)
                                         : errno == ENOENT || errno == ENOTDIR;
}

int rmm__output_renew(rmm_output_t *self, bool *is_fresh_out)
{
    RMM_UNCANCELLED;

    *is_fresh_out = false;
    if (!has_own_descriptor(self)) {
        self->fd = -1;
    } else if (is_renamed(self)) {
        close(self->fd);
        self->fd = -1;
    } else {
        return 0;
    }
    if (self->path == NULL) {
        return EBADF;
    }
    *is_fresh_out = true;
    return open_named(self, self->path);
}

size_t rmm__output_write(rmm_output_t *self, const char *lines, size_t length)
{
    size_t done;

    if (self->is_cut && rmm__output_put(self->fd, "\n", 1, &self->stalled) != 1) {
        return 0;
    }
    self->is_cut = false;
    done = rmm__output_put(self->fd, lines, length, &self->stalled);
    self->is_cut = done != 0 && lines[done - 1] != '\n';
    return done;
}

void rmm__output_close(rmm_output_t *self)
{
    RMM_UNCANCELLED;

    if (has_own_descriptor(self)) {
        close(self->fd);
    }
    rmm__free(self->path);
    self->path = NULL;
    self->fd = -1;
}
