/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thread that obeys operators while the program is idle; see rmm/request_thread.h.
 *
 * How it waits: for a word of the control page, which the daemon raises with each request, and
 * wakes as a futex. So an idle program costs nothing, and a request takes effect in the 100 ms that
 * the daemon waits for it, which would take a poll 20 times a second. The other ways: inotify is
 * scarce (128 instances of a user) and needs descriptors; a poll with a daemon that waits longer
 * for programs that have this thread needs a field as well. Each second the thread looks all the
 * same: an older daemon does not wake, and a limit may concern what was freed since.
 *
 * Threads: `lock` protects the static variables, and is never held while the thread is waited
 * for. Each thread has a number, and runs until `stopped` reaches it; so a stop concerns the
 * threads that were started before it.
 *
 * Fork: the lock is made anew, and the child has no thread.
 */
#include "base/request_thread.h"

#include <rmm/request_thread.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/limits.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/mutex.h"
#include "core/uncancelled.h"
#include "log/log.h"

#define LOOK_S 1
#define SLACK_NS 50000000 /* by which the kernel may join that wakeup with others */
#define JOIN_NS 20000000
#define EXIT_JOINS 100 /* 2 seconds */
#define STACK_BYTES ((size_t)512 << 10)

static rmm_mutex_t lock = RMM_MUTEX_INITIALIZER;
static bool has_resources;     /* the control page is there */
static bool is_wanted;         /* start before there are resources */
static bool environment_asked; /* RMM_REQUEST_THREAD was looked at */
static bool stops_at_exit;     /* the handler is installed */
static bool is_running;        /* `thread` is to be joined */
static pthread_t thread;
static uint32_t last_number;      /* of threads */
static _Atomic(uint32_t) stopped; /* threads up to this number end */
static atomic_bool is_settled;    /* another resource changes nothing */
static _Thread_local bool is_own_thread;

static void forget_in_child(void)
{
    lock = (rmm_mutex_t)RMM_MUTEX_INITIALIZER;
    is_running = false;
    is_wanted = false;
    atomic_store_explicit(&stopped, last_number, memory_order_relaxed);
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_REQUEST_THREAD, NULL, forget_in_child);
}

/* --- the thread ----------------------------------------------------------------------- */

static bool goes_on(uint32_t number)
{
    return atomic_load_explicit(&stopped, memory_order_relaxed) < number;
}

/* Has the main thread ended by pthread_exit(), and every other thread too? Then this one, which
 * blocks the signals that could end the process, would keep it for ever. */
static bool is_last_thread(void)
{
    char text[512];
    char state = 0;
    long threads = 0; /* with a main thread that has ended */
    const char *end;
    int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
    ssize_t count = fd >= 0 ? read(fd, text, sizeof(text) - 1) : -1;

    if (fd >= 0) {
        (void)close(fd);
    }
    text[count > 0 ? count : 0] = '\0';
    end = strrchr(text, ')'); /* of the program's name, which may have any character */
    return end != NULL &&
           sscanf(
               end + 1,
               " %c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d "
               "%ld",
               &state, &threads) == 2 &&
           state == 'Z' && threads <= 2;
}

static void *obey_until_stopped(void *arg)
{
    const struct timespec pause = {.tv_sec = LOOK_S};
    const _Atomic(uint32_t) *count = rmm__requests_count();
    uint32_t number = (uint32_t)(uintptr_t)arg;

    is_own_thread = true;
    (void)pthread_setname_np(pthread_self(), "rmm-requests");
    (void)prctl(PR_SET_TIMERSLACK, SLACK_NS);
    while (goes_on(number)) {
        /* acquire: the daemon writes it last */
        uint32_t seen = atomic_load_explicit(count, memory_order_acquire);

        if (rmm__requests_pending()) {
            rmm__limits_obey_idle();
        }
        if (goes_on(number) &&
            syscall(SYS_futex, count, FUTEX_WAIT, seen, &pause, NULL, 0) != 0 &&
            errno == ETIMEDOUT && is_last_thread()) {
            break;
        }
    }
    return NULL;
}

/* A fault of its own ends the program as anywhere else. */
static void block_signals(sigset_t *before)
{
    static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};
    sigset_t blocked;

    sigfillset(&blocked);
    for (size_t i = 0; i < sizeof(faults) / sizeof(faults[0]); i++) {
        sigdelset(&blocked, faults[i]);
    }
    (void)pthread_sigmask(SIG_BLOCK, &blocked, before);
}

/* 0 or an error. A program's thread-local variables are a part of the stack, and may need more. */
static int create_thread(pthread_t *out, uint32_t number)
{
    void *arg = (void *)(uintptr_t)number;
    pthread_attr_t attributes;
    int error = pthread_attr_init(&attributes);

    if (error != 0) {
        return error;
    }
    (void)pthread_attr_setstacksize(&attributes, STACK_BYTES);
    error = pthread_create(out, &attributes, obey_until_stopped, arg);
    (void)pthread_attr_destroy(&attributes);
    return error == EINVAL ? pthread_create(out, NULL, obey_until_stopped, arg) : error;
}

/* --- start and stop ------------------------------------------------------------------- */

/* The thread that has to be waited for, if there is one. */
static bool end_locked(pthread_t *ended_out)
{
    bool was_running = is_running;

    RMM_ASSERT_LOCKED(&lock);
    *ended_out = thread;
    is_running = false;
    atomic_store_explicit(&stopped, last_number, memory_order_relaxed);
    return was_running;
}

/* False: it still runs. It may begin to wait just after the wake, so more than one is needed. */
static bool wake_and_join(pthread_t ended)
{
    struct timespec until;

    (void)syscall(SYS_futex, rmm__requests_count(), FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    if (clock_gettime(CLOCK_REALTIME, &until) != 0) {
        return false;
    }
    until.tv_nsec += JOIN_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    /* not pthread_clockjoin_np(), which sanitizers do not know */
    return pthread_timedjoin_np(ended, NULL, &until) != ETIMEDOUT;
}

static void stop_at_exit(void)
{
    pthread_t ended;
    bool was_running;

    rmm__mutex_lock(&lock);
    was_running = end_locked(&ended);
    rmm__mutex_unlock(&lock);
    for (int i = 0; was_running && !is_own_thread && i < EXIT_JOINS; i++) {
        if (wake_and_join(ended)) {
            return;
        }
    }
}

/* 0 or an error. */
static int start_locked(void)
{
    sigset_t before;
    int error;

    RMM_ASSERT_LOCKED(&lock);
    if (is_running || !has_resources) {
        return 0;
    }
    if (!stops_at_exit) {
        stops_at_exit = atexit(stop_at_exit) == 0;
    }
    block_signals(&before);
    error = stops_at_exit ? create_thread(&thread, last_number + 1) : ENOMEM;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    is_running = error == 0;
    last_number += is_running;
    return error;
}

rmm_status_t rmm_request_thread_start(void)
{
    RMM_UNCANCELLED;
    int error;

    rmm__mutex_lock(&lock);
    is_wanted = true;
    error = start_locked();
    rmm__mutex_unlock(&lock);
    return error == 0 ? RMM_OK
                      : rmm__error(
                            RMM_ERR_OUT_OF_HOST_MEMORY,
                            "the thread that obeys requests of /rmm could not be "
                            "created: %s (%d)",
                            strerror(error), error);
}

void rmm_request_thread_stop(void)
{
    RMM_UNCANCELLED;
    pthread_t ended;
    bool was_running;

    rmm__mutex_lock(&lock);
    is_wanted = false;
    environment_asked = true;
    was_running = end_locked(&ended);
    rmm__mutex_unlock(&lock);
    if (was_running && is_own_thread) {
        (void)pthread_detach(ended);
    } else {
        while (was_running && !wake_and_join(ended)) {
            continue;
        }
    }
}

/* --- the first resource --------------------------------------------------------------- */

/* Does RMM_REQUEST_THREAD ask for it? */
static bool environment_wants(char warning[64])
{
    const char *value = getenv("RMM_REQUEST_THREAD");

    if (value == NULL || value[0] == '\0' || strcmp(value, "0") == 0) {
        return false;
    }
    if (strcmp(value, "1") != 0) {
        strncpy(warning, value, 63);
        return false;
    }
    return true;
}

RMM_COLD static void settle(void)
{
    RMM_UNCANCELLED;
    char wrong[64] = "";
    int error = 0;

    rmm__mutex_lock(&lock);
    has_resources = true;
    if (!environment_asked) {
        environment_asked = true;
        is_wanted = environment_wants(wrong) || is_wanted;
    }
    if (is_wanted) {
        error = start_locked();
    }
    atomic_store_explicit(&is_settled, true, memory_order_relaxed);
    rmm__mutex_unlock(&lock);
    if (wrong[0] != '\0') {
        rmm__log_warn(
            "RMM_REQUEST_THREAD is '%s': set it to 1 for a thread that obeys requests "
            "of /rmm, or to 0 for none; there is none",
            wrong);
    }
    if (error != 0) {
        rmm__log_warn(
            "the thread that obeys requests of /rmm could not be created: %s (%d)",
            strerror(error), error);
    }
}

void rmm__request_thread_use(void)
{
    if (!atomic_load_explicit(&is_settled, memory_order_relaxed)) {
        settle();
    }
}
