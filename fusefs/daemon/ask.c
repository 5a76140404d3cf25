/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the tree, or the reason why not; see ask.h.
 */
#include "daemon/ask.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"

#define CHUNK_BYTES 4096
#define MS 1000000ull

/* Has nothing else open that somebody might wait for. */
static _Noreturn void read_apart(const char *path, int out)
{
    char chunk[CHUNK_BYTES];
    ssize_t got = -1;
    (void)dup2(out, STDIN_FILENO);
    (void)close_range(STDIN_FILENO + 1, ~0u, 0);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    while (fd >= 0 && (got = read(fd, chunk, sizeof(chunk))) > 0) {
        if (write(STDIN_FILENO, chunk, (size_t)got) != got) {
            _exit(EIO);
        }
    }
    _exit(got < 0 ? errno : 0);
}

/* What comes until the end of the pipe; what does not fit is dropped. False: it took too long. */
static bool take(int in, char *text, size_t bytes)
{
    const uint64_t until = rmm__clock_ns(CLOCK_MONOTONIC) + ASK_SECONDS * 1000 * MS;
    char chunk[CHUNK_BYTES];
    size_t used = 0;
    for (;;) {
        struct pollfd wait = {.fd = in, .events = POLLIN};
        uint64_t now = rmm__clock_ns(CLOCK_MONOTONIC);
        int ready = now < until ? poll(&wait, 1, (int)((until - now) / MS) + 1) : 0;
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        ssize_t got = ready > 0 ? read(in, chunk, sizeof(chunk)) : -1;
        if (got <= 0) {
            text[used] = '\0';
            return got == 0;
        }
        for (ssize_t i = 0; i < got && used + 1 < bytes; i++) {
            text[used++] = chunk[i];
        }
    }
}

int ask_tree(const char *path, char *text, size_t bytes)
{
    int ends[2], status = 0;
    text[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return errno;
    }
    pid_t pid = fork();
    if (pid == 0) {
        read_apart(path, ends[1]);
    }
    int error = pid < 0 ? errno : 0;
    (void)close(ends[1]);
    if (pid > 0 && !take(ends[0], text, bytes)) {
        (void)kill(pid, SIGKILL);
        error = ETIMEDOUT;
    } else if (pid > 0) {
        while (waitpid(pid, &status, 0) < 0 && errno == EINTR) {
        }
        error = WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
    }
    (void)close(ends[0]);
    if (error != 0) {
        text[0] = '\0';
    }
    return error;
}
