/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See mount_helper.h. The helper answers each request by parts, of which the last has no bytes. It
 * is forked, so it uses only what a signal handler may use.
 */
#include "top/mount_helper.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SOCKET_FD 0 /* the helper's only descriptor */

typedef struct request {
    char path[PATH_MAX];
    size_t bytes_max; /* 0: a directory, which is only opened */
} request_t;

typedef struct part {
    int error;
    size_t bytes; /* that follow; 0: it was the last */
} part_t;

/* False: the other side has gone. */
static bool send_all(int fd, const void *data, size_t bytes)
{
    const char *at = data;
    while (bytes > 0) {
        ssize_t put = send(fd, at, bytes, MSG_NOSIGNAL);
        if (put < 0 && errno != EINTR) {
            return false;
        }
        at += put > 0 ? put : 0;
        bytes -= put > 0 ? (size_t)put : 0;
    }
    return true;
}

static bool receive_all(int fd, void *data, size_t bytes)
{
    char *at = data;
    while (bytes > 0) {
        ssize_t got = recv(fd, at, bytes, 0);
        if (got == 0 || (got < 0 && errno != EINTR)) {
            return false;
        }
        at += got > 0 ? got : 0;
        bytes -= got > 0 ? (size_t)got : 0;
    }
    return true;
}

/* --- the helper --------------------------------------------------------------------------- */

static bool send_part(int error, const char *text, size_t bytes)
{
    const part_t part = {error, bytes};
    return send_all(SOCKET_FD, &part, sizeof(part)) && send_all(SOCKET_FD, text, bytes);
}

static bool answer(const request_t *request)
{
    static char text[65536];
    size_t left = request->bytes_max;
    ssize_t got = 1;
    int fd = open(request->path, O_RDONLY | O_CLOEXEC | (left == 0 ? O_DIRECTORY : 0));
    int error = fd < 0 ? errno : 0;
    bool is_taken = true;
    while (fd >= 0 && is_taken && left > 0 && got > 0) {
        got = read(fd, text, left < sizeof(text) ? left : sizeof(text));
        error = got < 0 ? errno : 0;
        if (got > 0) {
            is_taken = send_part(0, text, (size_t)got);
            left -= (size_t)got;
        }
    }
    if (fd >= 0) {
        (void)close(fd);
    }
    return is_taken && send_part(error, NULL, 0);
}

static _Noreturn void serve(int fd, pid_t parent)
{
    static request_t request;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() == parent && dup2(fd, SOCKET_FD) == SOCKET_FD &&
        close_range(SOCKET_FD + 1, ~0u, 0) == 0) {
        while (receive_all(SOCKET_FD, &request, sizeof(request)) && answer(&request)) {
        }
    }
    _exit(0);
}

/* --- its caller --------------------------------------------------------------------------- */

bool mount_helper_start(mount_helper_t *helper)
{
    int pair[2];
    pid_t self = getpid();
    helper->fd = -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0) {
        return false;
    }
    helper->pid = fork();
    if (helper->pid == 0) {
        serve(pair[1], self);
    }
    int error = errno;
    (void)close(pair[1]);
    if (helper->pid < 0) {
        (void)close(pair[0]);
        errno = error;
        return false;
    }
    helper->fd = pair[0];
    return true;
}

/* -1 with errno. */
static ssize_t
ask(mount_helper_t *helper, const char *path, char *text, size_t bytes_max)
{
    request_t request = {.bytes_max = bytes_max};
    part_t part = {0, 1};
    size_t used = 0;
    if (strlen(path) >= sizeof(request.path)) {
        errno = ENAMETOOLONG;
        return -1;
    }
    strcpy(request.path, path);
    bool is_there = send_all(helper->fd, &request, sizeof(request));
    while (is_there && part.bytes > 0) {
        is_there = receive_all(helper->fd, &part, sizeof(part)) &&
                   part.bytes <= bytes_max - used &&
                   receive_all(helper->fd, text + used, part.bytes);
        used += is_there ? part.bytes : 0;
    }
    errno = is_there ? part.error : EPIPE;
    return is_there && part.error == 0 ? (ssize_t)used : -1;
}

ssize_t
mount_helper_read(mount_helper_t *helper, const char *path, char *text, size_t bytes)
{
    ssize_t got = ask(helper, path, text, bytes - 1);
    text[got > 0 ? got : 0] = '\0';
    return got;
}

int mount_helper_open_directory(mount_helper_t *helper, const char *path)
{
    return (int)ask(helper, path, NULL, 0);
}

void mount_helper_stop(mount_helper_t *helper)
{
    if (helper->fd >= 0) {
        (void)kill(helper->pid, SIGKILL);
        (void)shutdown(helper->fd, SHUT_RDWR);
    }
}

/* Not waited for: it may be one that cannot be killed. */
void mount_helper_fini(mount_helper_t *helper)
{
    if (helper->fd >= 0) {
        (void)close(helper->fd);
        (void)waitpid(helper->pid, NULL, WNOHANG);
        helper->fd = -1;
    }
}
