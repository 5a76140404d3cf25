/* SPDX-License-Identifier: Apache-2.0 */
/* See reading.h. */
#include "exporter/reading.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/clock.h"

#define CHUNK_BYTES ((size_t)256 << 10)
#define CHILD_FD 3 /* the only one that the child has, beside the standard ones */

/* --- the child ---------------------------------------------------------------------------- */

static int write_all(int fd, const char *text, size_t bytes)
{
    while (bytes > 0) {
        ssize_t put = write(fd, text, bytes);
        if (put < 0) {
            return errno;
        }
        text += put;
        bytes -= (size_t)put;
    }
    return 0;
}

/* 0, or an errno. */
static int copy_text(const char *path, const char *head)
{
    static char chunk[CHUNK_BYTES];
    uint64_t used = 0;
    ssize_t got = 0;
    int error = write_all(CHILD_FD, head, strlen(head));
    int fd = error == 0 ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd < 0) {
        return error != 0 ? error : errno;
    }
    while (error == 0 && (got = read(fd, chunk, sizeof(chunk))) > 0) {
        used += (uint64_t)got;
        error =
            used > READING_BYTES_MAX ? EFBIG : write_all(CHILD_FD, chunk, (size_t)got);
    }
    return got < 0 ? errno : error;
}

/* Ends with the process that serves: nobody else would take the text. */
static _Noreturn void
run_child(int text_fd, pid_t parent, const char *path, const char *head)
{
    sigset_t none;
    sigemptyset(&none);
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(text_fd, CHILD_FD) < 0 ||
        close_range(CHILD_FD + 1, ~0u, 0) != 0) {
        _exit(EIO);
    }
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    int error = copy_text(path, head);
    _exit(error >= 0 && error <= 255 ? error : EIO);
}

/* --- the process that serves -------------------------------------------------------------- */

bool reading_start(
    reading_t *reading, const char *path, const char *head, uint64_t timeout_ns)
{
    pid_t self = getpid();
    int text_fd = memfd_create("rmm-exporter", MFD_CLOEXEC);
    if (text_fd < 0) {
        return false;
    }
    pid_t pid = fork();
    if (pid == 0) {
        run_child(text_fd, self, path, head);
    }
    if (pid < 0) {
        int error = errno;
        (void)close(text_fd);
        errno = error;
        return false;
    }
    *reading = (reading_t){pid, text_fd, clock_ns() + timeout_ns};
    return true;
}

static void drop_text(reading_t *reading)
{
    (void)close(reading->text_fd);
    *reading = (reading_t){.text_fd = -1};
}

void reading_abandon(reading_t *reading, readings_left_t *left)
{
    (void)kill(reading->pid, SIGKILL);
    left->pids[left->count++] = reading->pid;
    drop_text(reading);
}

reading_state_t reading_look(reading_t *reading, readings_left_t *left)
{
    int status;
    pid_t ended = waitpid(reading->pid, &status, WNOHANG);
    if (ended == 0 && clock_ns() < reading->until_ns) {
        return READING_UNDER_WAY;
    }
    if (ended == reading->pid && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        reading->pid = 0;
        return READING_DONE;
    }
    int error = ETIMEDOUT;
    if (ended == 0) {
        reading_abandon(reading, left);
    } else {
        error = ended == reading->pid && WIFEXITED(status) ? WEXITSTATUS(status) : EIO;
        drop_text(reading);
    }
    errno = error;
    return READING_FAILED;
}

int reading_take(reading_t *reading, uint64_t *bytes_out)
{
    struct stat status = {.st_size = 0};
    int fd = reading->text_fd;
    (void)fstat(fd, &status);
    *bytes_out = (uint64_t)status.st_size;
    *reading = (reading_t){.text_fd = -1};
    return fd;
}

bool readings_left_look(readings_left_t *left)
{
    size_t kept = 0;
    for (size_t i = 0; i < left->count; i++) {
        if (waitpid(left->pids[i], NULL, WNOHANG) == 0) {
            left->pids[kept++] = left->pids[i];
        }
    }
    left->count = kept;
    return kept < READING_LEFT_MAX;
}
