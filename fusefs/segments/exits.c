/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See exits.h. An epoll set holds the pidfds and inotify's descriptor; one query shows whether
 * any of them is readable.
 */
#include "segments/exits.h"

#include <poll.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <unistd.h>

#define INOTIFY_SERIAL 0u /* of no member */

struct exits {
    int epoll_fd;
};

static bool add(const exits_t *exits, int fd, uint64_t serial)
{
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = serial};
    return epoll_ctl(exits->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

exits_t *exits_open(int inotify_fd)
{
    exits_t *exits = calloc(1, sizeof(*exits));
    if (exits == NULL) {
        return NULL;
    }
    exits->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (exits->epoll_fd < 0 ||
        (inotify_fd >= 0 && !add(exits, inotify_fd, INOTIFY_SERIAL))) {
        exits_close(exits);
        return NULL;
    }
    return exits;
}

void exits_close(exits_t *exits)
{
    if (exits != NULL) {
        if (exits->epoll_fd >= 0) {
            (void)close(exits->epoll_fd);
        }
        free(exits);
    }
}

int exits_fd(const exits_t *exits)
{
    return exits->epoll_fd;
}

bool exits_have_news(const exits_t *exits)
{
    struct pollfd one = {.fd = exits->epoll_fd, .events = POLLIN};
    return poll(&one, 1, 0) > 0;
}

int exits_watch(exits_t *exits, pid_t pid, uint64_t serial)
{
    int pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
    if (pidfd >= 0 && !add(exits, pidfd, serial)) {
        (void)close(pidfd);
        pidfd = -1;
    }
    return pidfd;
}

void exits_forget(exits_t *exits, int pidfd)
{
    (void)epoll_ctl(exits->epoll_fd, EPOLL_CTL_DEL, pidfd, NULL);
    (void)close(pidfd);
}

int exits_take(exits_t *exits, uint64_t serials[EXITS_AT_ONCE])
{
    struct epoll_event events[EXITS_AT_ONCE];
    int count = epoll_wait(exits->epoll_fd, events, EXITS_AT_ONCE, 0);
    int kept = 0;
    for (int i = 0; i < count; i++) {
        if (events[i].data.u64 != INOTIFY_SERIAL) {
            serials[kept++] = events[i].data.u64;
        }
    }
    return kept;
}
