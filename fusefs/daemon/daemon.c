/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Life of the daemon; see daemon.h.
 *
 * Threads: main runs libfuse's loop, whose workers answer requests; `background`
 * refreshes the model when a directory changes and five times a second; one of the watch reads
 * lists of locks (holders.h); `signals` waits
 * for the end. SIGTERM, SIGINT and SIGHUP are blocked from before the mount in all other
 * threads, so no handler interrupts them.
 */
#include "daemon/daemon.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

#include "daemon/mountpoint.h"
#include "daemon/notify.h"
#include "programs/watch.h"
#include "segment/driver_gpus.h"
#include "segment/runtime_dir.h"
#include "segments/dirs.h"
#include "session/ll_ops.h"
#include "support/daemon_log.h"

#define TICK_MS 200
#define TICK_SOON_MS 20   /* while a reader waits for a log, or a trim is pending */
#define TICK_LATER_MS 100 /* while a reader waits for events */
#define PAUSE_NS 1000000  /* between two ticks, however much happens */
#define WAKE_NS 20000000  /* until main has noticed that it should end */
#define REASON_BYTES 512

typedef struct rmmfs {
    const options_t *options;
    mountpoint_t mountpoint;
    session_t *session;
    watch_t *watch;
    pthread_t main, background, signals;
    int stop_fd; /* eventfd: ends `background` */
    atomic_bool done;
    char reason[REASON_BYTES];
} rmmfs_t;

/* --- threads -------------------------------------------------------------------------- */

static void forget_process(uint32_t serial, void *arg)
{
    session_forget(arg, serial);
}

/* How often systemd wants to hear that the daemon is alive, sd_watchdog_enabled(3), four times
 * over; 0: it does not. */
static uint64_t watchdog_every_ns(void)
{
    const char *wanted = getenv("WATCHDOG_USEC"), *pid = getenv("WATCHDOG_PID");
    if (wanted == NULL || (pid != NULL && strtol(pid, NULL, 10) != (long)getpid())) {
        return 0;
    }
    return strtoull(wanted, NULL, 10) * 1000u / 4u;
}

/* After a tick: the model's lock was to be had, which all readers wait for. */
static void tell_alive(uint64_t every_ns, uint64_t *next_ns)
{
    uint64_t now = rmm__clock_ns(CLOCK_MONOTONIC);
    if (every_ns != 0 && now >= *next_ns) {
        notify_manager("WATCHDOG=1");
        *next_ns = now + every_ns;
    }
}

static void *run_background(void *arg)
{
    rmmfs_t *rmmfs = arg;
    const uint64_t alive_every_ns = watchdog_every_ns();
    uint64_t alive_next_ns = 0;
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    struct pollfd waits[] = {
        {.fd = rmmfs->stop_fd, .events = POLLIN},
        {.fd = watch_news_fd(rmmfs->watch), .events = POLLIN},
        {.fd = session_news_fd(rmmfs->session), .events = POLLIN}};
    static const int wait_ms[] = {
        [SESSION_IDLE] = TICK_MS,
        [SESSION_LATER] = TICK_LATER_MS,
        [SESSION_SOON] = TICK_SOON_MS};
    session_due_t due = SESSION_IDLE;
    bool has_more = false;
    while (!atomic_load_explicit(&rmmfs->done, memory_order_relaxed)) {
        if (!has_more) {
            (void)poll(waits, 3, wait_ms[due]);
        }
        has_more = watch_tick(rmmfs->watch, forget_process, rmmfs->session);
        due = session_wake(rmmfs->session);
        tell_alive(alive_every_ns, &alive_next_ns);
        (void)nanosleep(&pause, NULL);
    }
    return NULL;
}

static void fill_end_signals(sigset_t *set)
{
    sigemptyset(set);
    sigaddset(set, SIGTERM);
    sigaddset(set, SIGINT);
    sigaddset(set, SIGHUP);
}

/* libfuse looks at its flag only when its wait is interrupted, and an interruption just
 * before the wait is lost: so again and again, until it has noticed. */
static void *run_signals(void *arg)
{
    rmmfs_t *rmmfs = arg;
    const struct timespec pause = {.tv_nsec = WAKE_NS};
    sigset_t set;
    int number;
    fill_end_signals(&set);
    (void)sigwait(&set, &number);
    session_exit(rmmfs->session);
    while (!atomic_load_explicit(&rmmfs->done, memory_order_relaxed)) {
        (void)pthread_kill(rmmfs->main, SIGUSR1);
        (void)nanosleep(&pause, NULL);
    }
    return NULL;
}

static void stop_signals(rmmfs_t *rmmfs)
{
    atomic_store_explicit(&rmmfs->done, true, memory_order_relaxed);
    (void)pthread_kill(rmmfs->signals, SIGTERM);
    (void)pthread_join(rmmfs->signals, NULL);
}

/* 0 or an errno. */
static int try_start_threads(rmmfs_t *rmmfs)
{
    rmmfs->main = pthread_self();
    rmmfs->stop_fd = eventfd(0, EFD_CLOEXEC);
    if (rmmfs->stop_fd < 0) {
        return errno;
    }
    if (!watch_start(rmmfs->watch)) {
        return EAGAIN;
    }
    int error = pthread_create(&rmmfs->signals, NULL, run_signals, rmmfs);
    if (error != 0) {
        return error;
    }
    error = pthread_create(&rmmfs->background, NULL, run_background, rmmfs);
    if (error != 0) {
        stop_signals(rmmfs);
    }
    return error;
}

static bool start_threads(rmmfs_t *rmmfs)
{
    int error = try_start_threads(rmmfs);
    if (error != 0) {
        log_error("cannot start threads: %s", strerror(error));
    }
    return error == 0;
}

static void stop_threads(rmmfs_t *rmmfs)
{
    const uint64_t one = 1;
    stop_signals(rmmfs);
    (void)!write(rmmfs->stop_fd, &one, sizeof(one));
    (void)pthread_join(rmmfs->background, NULL);
    (void)close(rmmfs->stop_fd);
}

/* --- before the mount ----------------------------------------------------------------- */

static void ignore_wake(int number)
{
    (void)number;
}

/* Before the mount, or a signal would leave one that no process serves: what comes is pending until
 * run_signals() takes it. Not earlier: what looks at the mount point may wait for another daemon
 * that does not answer, and then a signal ends it. The mask is set, not added to: a container's
 * runtime may leave SIGUSR1 blocked, without which main does not notice the end. */
static void hold_signals(void)
{
    const struct sigaction wake = {.sa_handler = ignore_wake}; /* no SA_RESTART */
    sigset_t set;
    fill_end_signals(&set);
    (void)sigaction(SIGUSR1, &wake, NULL);
    (void)signal(SIGPIPE, SIG_IGN);
    (void)signal(SIGXFSZ, SIG_IGN); /* the write fails, and is reported like others */
    (void)pthread_sigmask(SIG_SETMASK, &set, NULL);
}

static bool is_asked_to_end(void)
{
    sigset_t end, pending, both;
    fill_end_signals(&end);
    return sigpending(&pending) == 0 && sigandset(&both, &end, &pending) == 0 &&
           !sigisemptyset(&both);
}

/* A descriptor 0, 1 or 2 that is closed would be taken by a segment, and overwritten when
 * the daemon leaves the terminal. */
static void fill_standard_descriptors(void)
{
    int fd;
    do {
        fd = open("/dev/null", O_RDWR);
    } while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0) {
        (void)close(fd);
    }
}

/* Two descriptors a process; the default of 1024 is soon too few. */
static void raise_descriptor_limit(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool check_fuse(rmmfs_t *rmmfs)
{
    int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
    if (fd >= 0) {
        (void)close(fd);
        return true;
    }
    const char *advice =
        errno == ENOENT || errno == ENODEV || errno == ENXIO
            ? "`modprobe fuse`, or give the container --device /dev/fuse"
            : "ask for access as this user, or run rmmfs as root";
    (void)snprintf(
        rmmfs->reason, sizeof(rmmfs->reason), "cannot open /dev/fuse: %s: %s",
        strerror(errno), advice);
    return false;
}

static bool is_at_or_below(const char *path, const char *above)
{
    size_t length = strlen(above);
    return strncmp(path, above, length) == 0 &&
           (path[length] == '\0' || path[length] == '/');
}

/* Mounted over the segments the daemon would wait for itself. */
static bool check_not_over_segments(rmmfs_t *rmmfs)
{
    char dir[RMM_RUNTIME_DIR_BYTES], real[PATH_MAX];
    if (!dirs_check_wanted(rmmfs->reason, sizeof(rmmfs->reason)) ||
        !rmm__runtime_dir(dir, rmmfs->reason, sizeof(rmmfs->reason))) {
        return false;
    }
    const char *const folders[] = {
        realpath(dir, real) != NULL ? real : dir, RMM_SYSTEM_RUNTIME_DIR, "/run/user",
        "/dev/shm"};
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        if (is_at_or_below(folders[i], rmmfs->mountpoint.path)) {
            (void)snprintf(
                rmmfs->reason, sizeof(rmmfs->reason),
                "cannot mount on %.200s: it would hide the segments in %.200s; name "
                "another directory",
                rmmfs->mountpoint.path, folders[i]);
            return false;
        }
    }
    return true;
}

/* --- the mount ------------------------------------------------------------------------ */

static bool mount_tree(rmmfs_t *rmmfs)
{
    const options_t *options = rmmfs->options;
    const session_config_t config = {
        .debug = options->debug,
        .allow_other = options->allow_other || geteuid() == 0,
        .mount_options = options->mount_options};
    hold_signals();
    rmmfs->session = session_open(&config, rmmfs->reason, sizeof(rmmfs->reason));
    bool is_mounted =
        rmmfs->session != NULL && session_mount(
                                      rmmfs->session, rmmfs->mountpoint.path,
                                      rmmfs->reason, sizeof(rmmfs->reason));
    if (is_mounted) {
        mountpoint_note_mount(&rmmfs->mountpoint);
    }
    mountpoint_unlock(&rmmfs->mountpoint);
    return is_mounted;
}

static bool open_watch(rmmfs_t *rmmfs)
{
    const watch_config_t config = {
        .use_inotify = !rmmfs->options->no_inotify,
        .history_seconds = rmmfs->options->history_seconds,
        .driver_root = rmm__driver_gpus_root(),
        .hiding = rmmfs->options->hiding};
    rmmfs->watch = watch_open(&config, rmmfs->reason, sizeof(rmmfs->reason));
    if (rmmfs->watch != NULL) {
        session_serve(rmmfs->session, rmmfs->watch);
    }
    return rmmfs->watch != NULL;
}

static bool leave_terminal(rmmfs_t *rmmfs)
{
    if (rmmfs->options->foreground) {
        return true;
    }
    if (is_asked_to_end()) { /* a fork has no pending signals */
        (void)snprintf(
            rmmfs->reason, sizeof(rmmfs->reason),
            "a signal ended rmmfs while it started");
        return false;
    }
    if (!session_daemonize()) {
        (void)snprintf(
            rmmfs->reason, sizeof(rmmfs->reason), "cannot detach from the terminal: %s",
            strerror(errno));
        return false;
    }
    log_to_syslog();
    return true;
}

static int serve(rmmfs_t *rmmfs)
{
    if (!start_threads(rmmfs)) {
        return EXIT_FAILURE;
    }
    notify_manager("READY=1");
    log_info("mounted on %s", rmmfs->mountpoint.path);
    bool good = session_loop(rmmfs->session);
    notify_manager("STOPPING=1");
    stop_threads(rmmfs);
    log_info("unmounting %s", rmmfs->mountpoint.path);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

static void *wait_to_be_cancelled(void *unused)
{
    (void)unused;
    for (;;) {
        (void)pause();
    }
    return NULL;
}

/* libfuse cancels its threads at the end. For the first cancellation the C library loads
 * libgcc_s.so.1, and aborts if no descriptor is left for that: so one is made now. */
static bool load_cancellation(rmmfs_t *rmmfs)
{
    pthread_t thread;
    int error = pthread_create(&thread, NULL, wait_to_be_cancelled, NULL);
    if (error != 0) {
        (void)snprintf(
            rmmfs->reason, sizeof(rmmfs->reason), "cannot start threads: %s",
            strerror(error));
        return false;
    }
    (void)pthread_cancel(thread);
    (void)pthread_join(thread, NULL);
    return true;
}

static bool start(rmmfs_t *rmmfs)
{
    const options_t *options = rmmfs->options;
    if (!options->foreground) {
        log_terminal_from(LOG_LEVEL_WARN);
    }
    fill_standard_descriptors();
    raise_descriptor_limit();
    if (!mountpoint_prepare(
            &rmmfs->mountpoint, options, rmmfs->reason, sizeof(rmmfs->reason))) {
        return false;
    }
    return load_cancellation(rmmfs) && check_not_over_segments(rmmfs) &&
           check_fuse(rmmfs) && mount_tree(rmmfs) && open_watch(rmmfs) &&
           leave_terminal(rmmfs);
}

/* An administrator can cut the connection (/sys/fs/fuse/connections/N/abort): libfuse takes
 * that for an unmount, and leaves a mount that no process serves. */
static bool clear_if_cut(const char *path)
{
    struct statfs space; /* stat() may be answered by the kernel alone, for a second */
    bool is_cut = statfs(path, &space) != 0 && errno == ENOTCONN;
    if (is_cut) {
        log_error("the connection to the kernel was cut");
        (void)mountpoint_detach(path);
    }
    return is_cut;
}

/* libfuse unmounts by the path what is on top there. So it does that only if our mount is;
 * elsewhere we do. False: it stays mounted. */
static bool unmount_elsewhere(const rmmfs_t *rmmfs)
{
    const mountpoint_t *mountpoint = &rmmfs->mountpoint;
    char path[PATH_MAX], type[64];
    if (!session_is_connected(rmmfs->session)) {
        return true;
    }
    bool found = mountpoint_find_own(mountpoint, path);
    bool is_covered =
        found && mountpoint_is_covered(mountpoint, path, type, sizeof(type));
    if (found && !is_covered && strcmp(path, mountpoint->path) == 0) {
        return true;
    }
    session_leave_mounted(rmmfs->session);
    if (is_covered) { /* a start after that one is gone clears ours */
        log_error(
            "a file system of type %s is mounted over %s: the tree below it stays "
            "mounted, and every access to it fails",
            type, path);
        return false;
    }
    if (found && !mountpoint_detach_own(mountpoint, path)) {
        log_error(
            "cannot unmount %s, where the tree was moved: %s", path, strerror(errno));
        return false;
    }
    return true;
}

int daemon_run(const options_t *options)
{
    rmmfs_t rmmfs = {.options = options};
    int status = EXIT_FAILURE;
    bool started = start(&rmmfs);
    if (started) {
        status = serve(&rmmfs);
    } else {
        log_reason("%s", rmmfs.reason);
    }
    if (!unmount_elsewhere(&rmmfs)) {
        status = EXIT_FAILURE;
    }
    session_close(rmmfs.session);
    if (rmmfs.watch != NULL) {
        watch_close(rmmfs.watch);
    }
    if (!started) {
        mountpoint_abandon(&rmmfs.mountpoint);
    } else if (clear_if_cut(rmmfs.mountpoint.path)) {
        status = EXIT_FAILURE;
    }
    return status;
}
