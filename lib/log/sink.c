/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one sink beside the ring: stderr, a file, or a function of the program's.
 *
 * Who writes takes no lock, so a sink that is replaced may still be in use: sinks are
 * never freed (they are few and small), and a file keeps its descriptor, which the next
 * file takes over with dup3(). `lock` is for those who replace,
 * and held over fork() (core/fork.h).
 */
#include "log/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/descriptor.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/host_memory.h"
#include "core/local_time.h"
#include "core/mutex.h"

#define LINE_BYTES (RMM_LOG_MESSAGE_BYTES + 64)

typedef enum sink_kind { SINK_STDERR, SINK_FILE, SINK_CALLBACK } sink_kind_t;

typedef struct sink {
    sink_kind_t kind;
    rmm_log_fn fn; /* NULL: nowhere */
    void *arg;
    struct sink *previous; /* of all callbacks, so that none counts as leaked */
} sink_t;

static const sink_t stderr_sink = {.kind = SINK_STDERR};
static const sink_t file_sink = {.kind = SINK_FILE};
static _Atomic(const sink_t *) current = &stderr_sink;

static rmm_mutex_t lock = RMM_MUTEX_INITIALIZER;
static sink_t *callbacks;         /* under lock */
static _Atomic(int) file_fd = -1; /* once open it stays; written under lock */

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_LOG, &lock, NULL);
}

/* --- writing ------------------------------------------------------------------------ */

static void write_line(int fd, const rmm_log_record_t *record)
{
    char line[LINE_BYTES];
    struct tm local;
    int length;

    rmm__local_time((time_t)(record->time_ns / 1000000000u), &local);
    length = snprintf(
        line, sizeof(line), "[%u][%02d:%02d:%02d:%06u][%s] %s\n", record->thread,
        local.tm_hour, local.tm_min, local.tm_sec,
        (unsigned)(record->time_ns % 1000000000u / 1000u),
        rmm_log_level_name(record->level), record->message);
    if (length >= (int)sizeof(line)) { /* cut, but still one line */
        length = (int)sizeof(line) - 1;
        line[length - 1] = '\n';
    }
    while (write(fd, line, (size_t)length) < 0 && errno == EINTR) {
    }
}

static void call_back(const sink_t *sink, const rmm_log_record_t *record)
{
    rmm_error_kept_t kept;

    rmm__error_keep(&kept);
    sink->fn(record->level, record->message, sink->arg);
    rmm__error_restore(&kept);
}

void rmm__log_sink_write(const rmm_log_record_t *record, rmm_log_level_t stderr_level)
{
    /* acquire: pairs with the release in use() */
    const sink_t *sink = atomic_load_explicit(&current, memory_order_acquire);

    if (sink->kind == SINK_CALLBACK) {
        if (sink->fn != NULL) {
            call_back(sink, record);
        }
    } else if (sink->kind == SINK_FILE) {
        write_line(atomic_load_explicit(&file_fd, memory_order_relaxed), record);
    } else if (record->level >= stderr_level) {
        write_line(STDERR_FILENO, record);
    }
}

/* --- choosing ----------------------------------------------------------------------- */

static void use(const sink_t *sink)
{
    atomic_store_explicit(&current, sink, memory_order_release);
}

/* 0 or an errno. */
static int open_file(const char *path)
{
    int fresh = rmm__descriptor_above_standard(
        open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
    int error = fresh < 0 ? errno : 0;
    int kept;

    if (error != 0) {
        return error;
    }
    rmm__mutex_lock(&lock);
    kept = atomic_load_explicit(&file_fd, memory_order_relaxed);
    if (kept < 0) {
        atomic_store_explicit(&file_fd, fresh, memory_order_relaxed);
    } else {
        error = dup3(fresh, kept, O_CLOEXEC) < 0 ? errno : 0;
        close(fresh);
    }
    rmm__mutex_unlock(&lock);
    return error;
}

void rmm__log_sink_open(char *complaint, size_t complaint_bytes)
{
    const char *path = getenv("RMM_DEBUG_LOG_FILE");
    int error;

    if (path == NULL || path[0] == '\0') {
        return;
    }
    error = open_file(path);
    if (error == 0) {
        use(&file_sink);
    } else {
        snprintf(
            complaint, complaint_bytes,
            "RMM_DEBUG_LOG_FILE %.300s cannot be opened: %s; logging to stderr", path,
            strerror(error));
    }
}

void rmm_log_to_stderr(void)
{
    (void)rmm_log_get_level(); /* the environment's choice comes first, and once */
    use(&stderr_sink);
}

rmm_status_t rmm_log_to_file(const char *path)
{
    int error;

    if (path == NULL || path[0] == '\0') {
        return rmm__error(RMM_ERR_INVALID_ARGUMENT, "path is NULL or empty");
    }
    (void)rmm_log_get_level();
    error = open_file(path);
    if (error != 0) {
        return rmm__error(
            RMM_ERR_IO, "cannot open the log file %.300s: %s", path, strerror(error));
    }
    use(&file_sink);
    return RMM_OK;
}

rmm_status_t rmm_log_to_callback(rmm_log_fn fn, void *arg)
{
    sink_t *sink = rmm__calloc(1, sizeof(*sink));

    if (sink == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    (void)rmm_log_get_level();
    sink->kind = SINK_CALLBACK;
    sink->fn = fn;
    sink->arg = arg;
    rmm__mutex_lock(&lock);
    sink->previous = callbacks;
    callbacks = sink;
    use(sink);
    rmm__mutex_unlock(&lock);
    return RMM_OK;
}
