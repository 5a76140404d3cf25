/* SPDX-License-Identifier: Apache-2.0 */
/* The program as a child; see child.h. */
#include "run/child.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static const int passed_on[] = {SIGHUP, SIGTERM, SIGUSR1, SIGUSR2};
static const int of_terminals[] = {SIGINT, SIGQUIT};

enum {
    PASSED_ON = sizeof(passed_on) / sizeof(passed_on[0]),
    OF_TERMINALS = sizeof(of_terminals) / sizeof(of_terminals[0])
};

/* The signals that this process waits for, and so has blocked: a blocked signal is not lost,
 * whatever it was set to before. */
static void fill_waited_for(sigset_t *signals)
{
    (void)sigemptyset(signals);
    (void)sigaddset(signals, SIGCHLD);
    for (int i = 0; i < PASSED_ON; i++) {
        (void)sigaddset(signals, passed_on[i]);
    }
    for (int i = 0; i < OF_TERMINALS; i++) {
        (void)sigaddset(signals, of_terminals[i]);
    }
}

/* A terminal sends its signals to the program, too; a process may have sent one here alone. */
static bool is_passed_on(const siginfo_t *signal)
{
    bool found = signal->si_code != SI_KERNEL;
    for (int i = 0; i < PASSED_ON; i++) {
        found = found || passed_on[i] == signal->si_signo;
    }
    return found;
}

/* How signals were handled before. */
typedef struct found_signals {
    sigset_t blocked;
    struct sigaction of_child;
} found_signals_t;

/* Writes the errno to the pipe, which exec closes. */
__attribute__((noreturn)) static void
become(char **argv, const found_signals_t *found, int error_fd)
{
    (void)sigaction(SIGCHLD, &found->of_child, NULL);
    (void)sigprocmask(SIG_SETMASK, &found->blocked, NULL);
    execvp(argv[0], argv);
    int error = errno;
    (void)!write(error_fd, &error, sizeof(error));
    _exit(127);
}

/* 0: it runs the program. */
static int read_error(int error_fd)
{
    int error = 0;
    ssize_t got;
    do {
        got = read(error_fd, &error, sizeof(error));
    } while (got < 0 && errno == EINTR);
    return got == (ssize_t)sizeof(error) ? error : 0;
}

typedef struct looker {
    run_look_fn look;
    void *arg;
} looker_t;

/* 0 when it has ended, or an errno. */
static int wait_for(run_child_t *child, const sigset_t *signals, const looker_t *looker)
{
    const struct timespec pause = {.tv_sec = RUN_LOOK_SECONDS};
    pid_t ended = 0;
    while (ended == 0) {
        siginfo_t signal;
        int number = sigtimedwait(signals, &signal, &pause);
        if (number < 0 && errno == EAGAIN) {
            looker->look(looker->arg);
        } else if (number == SIGCHLD) {
            ended = waitpid(child->pid, &child->status, WNOHANG);
        } else if (number > 0 && is_passed_on(&signal)) {
            (void)kill(child->pid, number);
        } else if (number < 0 && errno != EINTR) {
            return errno;
        }
    }
    int error = ended > 0 ? 0 : errno;
    looker->look(looker->arg);
    return error;
}

int run_child(char **argv, run_child_t *child_out, run_look_fn look, void *arg)
{
    const looker_t looker = {look, arg};
    /* Ignored, it would take the child's status. Set before the fork: that drops pending ones. */
    const struct sigaction usual = {.sa_handler = SIG_DFL};
    found_signals_t found;
    sigset_t signals;
    int error_pipe[2];
    if (pipe2(error_pipe, O_CLOEXEC) != 0) {
        return errno;
    }
    fill_waited_for(&signals);
    (void)sigprocmask(SIG_BLOCK, &signals, &found.blocked);
    (void)sigaction(SIGCHLD, &usual, &found.of_child);
    child_out->pid = fork();
    int error = errno;
    if (child_out->pid == 0) {
        become(argv, &found, error_pipe[1]);
    }
    (void)close(error_pipe[1]);
    if (child_out->pid > 0) {
        error = read_error(error_pipe[0]);
        int wait_error = wait_for(child_out, &signals, &looker);
        error = error != 0 ? error : wait_error;
    }
    (void)close(error_pipe[0]);
    (void)sigprocmask(SIG_SETMASK, &found.blocked, NULL);
    return error;
}

static void unblock(int number)
{
    sigset_t one;
    (void)sigemptyset(&one);
    (void)sigaddset(&one, number);
    (void)sigprocmask(SIG_UNBLOCK, &one, NULL);
}

void run_end_like(const run_child_t *child)
{
    if (WIFSIGNALED(child->status)) {
        const struct rlimit no_core = {0, 0}; /* the child has left one, if wanted */
        const struct sigaction usual = {.sa_handler = SIG_DFL};
        (void)setrlimit(RLIMIT_CORE, &no_core);
        (void)sigaction(WTERMSIG(child->status), &usual, NULL);
        unblock(WTERMSIG(child->status));
        (void)raise(WTERMSIG(child->status));
        exit(128 + WTERMSIG(child->status));
    }
    exit(WEXITSTATUS(child->status));
}
