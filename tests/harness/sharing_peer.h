/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Starts the other process of a test of shared memory, and talks to it. It is the test's own
 * program once more, because a forked child has no driver: main() first calls sharing_peer_runs().
 */
#ifndef RMM_TESTS_HARNESS_SHARING_PEER_H
#define RMM_TESTS_HARNESS_SHARING_PEER_H

#include "harness/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* True: the arguments are those of the other process, which has run. */
bool sharing_peer_runs(int argc, char **argv, int *status_out);

typedef struct peer {
    pid_t pid;
    int socket;
} peer_t;

static inline peer_t
peer_start_over(int type, const char *role, const char *spec, const char *bytes)
{
    int pair[2];
    peer_t peer;

    assert_int_equal(socketpair(AF_UNIX, type | SOCK_CLOEXEC, 0, pair), 0);
    fflush(NULL);
    peer.pid = fork();
    assert_true(peer.pid >= 0);
    if (peer.pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (pair[1] == 3) {
            (void)fcntl(3, F_SETFD, 0);
        } else {
            dup2(pair[1], 3);
        }
        execl("/proc/self/exe", "peer", role, spec, bytes, (char *)NULL);
        _exit(127);
    }
    close(pair[1]);
    peer.socket = pair[0];
    return peer;
}

static inline peer_t peer_start(const char *role, const char *spec, const char *bytes)
{
    return peer_start_over(SOCK_STREAM, role, spec, bytes);
}

static inline int64_t peer_answer(const peer_t *peer)
{
    int64_t value = INT64_MIN;

    assert_int_equal(recv(peer->socket, &value, sizeof(value), MSG_WAITALL), 8);
    return value;
}

static inline int64_t peer_ask(const peer_t *peer, const char *command)
{
    for (; *command != '\0'; command++) { /* packets do not join */
        assert_int_equal(send(peer->socket, command, 1, MSG_NOSIGNAL), 1);
    }
    return peer_answer(peer);
}

static inline int peer_wait(peer_t *peer)
{
    int status = -1;

    assert_int_equal(waitpid(peer->pid, &status, 0), peer->pid);
    close(peer->socket);
    return status;
}

static inline void peer_kill(peer_t *peer)
{
    assert_int_equal(kill(peer->pid, SIGKILL), 0);
    assert_int_equal(peer_wait(peer), SIGKILL);
}

static inline void peer_quit(peer_t *peer)
{
    assert_int_equal(peer_ask(peer, "q"), 0);
    assert_int_equal(peer_wait(peer), 0);
}

#endif /* RMM_TESTS_HARNESS_SHARING_PEER_H */
