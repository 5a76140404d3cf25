/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The one sink beside the ring: stderr, a file, or a function of the program's.
 *
 * A sink that is replaced may still be in use: sinks are never freed (they are few and small).
 * `lock` protects the file and the list of functions; it is held over fork() (core/fork.h), while
 * a line is written to the file, and not while a function runs. A signal handler that interrupts
 * a thread there logs to the ring only (log.c), so it does not wait for its own thread.
 *
 * Lines that stderr or the file did not take are counted (core/output.h), and the next that it
 * takes says how many.
 */
#include "log/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <unistd.h>

#include "core/assert.h"
#include "core/error.h"
#include "core/fork.h"
#include "core/host_memory.h"
#include "core/local_time.h"
#include "core/mutex.h"
#include "core/output.h"
#include "core/uncancelled.h"
#include "segment/clean_text.h"
#include "segment/log_text.h"

#define LINE_BYTES (RMM_LOG_MESSAGE_BYTES + RMM_LOG_TIME_BYTES + 64)

typedef enum sink_kind { SINK_STDERR, SINK_FILE, SINK_CALLBACK } sink_kind_t;

typedef struct sink {
    sink_kind_t kind;
    rmm_log_fn
        fn; /* NULL: nowhere; of the two below: what a program may call instead */
    void *arg;
    struct sink *previous; /* of all callbacks, so that none counts as leaked */
} sink_t;

static void pass_to_stderr(rmm_log_level_t level, const char *message, void *arg);
static void pass_to_file(rmm_log_level_t level, const char *message, void *arg);

static const sink_t stderr_sink = {.kind = SINK_STDERR, .fn = pass_to_stderr};
static const sink_t file_sink = {.kind = SINK_FILE, .fn = pass_to_file};
static _Atomic(const sink_t *) current = &stderr_sink;

static rmm_mutex_t lock = RMM_MUTEX_INITIALIZER;
static sink_t *callbacks; /* these under lock */
static rmm_output_t file = RMM_OUTPUT_NONE;
static bool file_has_failed;
static rmm_journal_t journal; /* written before the first message */
static _Atomic(uint64_t) stderr_dropped, file_dropped;

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_LOG, &lock, NULL);
}

/* --- writing ------------------------------------------------------------------------ */

static int print_line(char line[LINE_BYTES], const rmm_log_record_t *record)
{
    char time[RMM_LOG_TIME_BYTES];
    struct tm local;

    rmm__local_time((time_t)(record->time_ns / 1000000000u), &local);
    rmm__log_time(time, record->time_ns, &local);
    return snprintf(
        line, LINE_BYTES, "[%u][%s][%s] %s\n", record->thread, time,
        rmm_log_level_name(record->level), record->message);
}

/* The journal keeps the time itself, and shows lines by their priority (sd-daemon(3)). */
static int print_for_journal(char line[LINE_BYTES], const rmm_log_record_t *record)
{
    static const int priorities[] = {
        [RMM_LEVEL_TRACE] = LOG_DEBUG, [RMM_LEVEL_DEBUG] = LOG_DEBUG,
        [RMM_LEVEL_INFO] = LOG_INFO,   [RMM_LEVEL_WARN] = LOG_WARNING,
        [RMM_LEVEL_ERROR] = LOG_ERR,   [RMM_LEVEL_CRITICAL] = LOG_CRIT,
        [RMM_LEVEL_OFF] = LOG_EMERG, /* no message has it */
    };

    return snprintf(
        line, LINE_BYTES, "<%d>[%u][%s] %s\n", priorities[record->level],
        record->thread, rmm_log_level_name(record->level), record->message);
}

/* Returns its length. */
static size_t
print_to(char line[LINE_BYTES], const rmm_log_record_t *record, bool is_for_journal)
{
    int length =
        is_for_journal ? print_for_journal(line, record) : print_line(line, record);

    if (length >= LINE_BYTES) { /* cut, but still one line */
        length = LINE_BYTES - 1;
        line[length - 1] = '\n';
    }
    return (size_t)length;
}

/* Prints the note before a line if some were dropped; returns its length, or 0. */
static size_t print_dropped(char line[LINE_BYTES], uint64_t count, bool is_for_journal)
{
    char message[64] = "";
    rmm_log_record_t record = rmm__log_record(RMM_LEVEL_WARN, message);

    snprintf(
        message, sizeof(message), "%" PRIu64 " messages before this were dropped",
        count);
    return count != 0 ? print_to(line, &record, is_for_journal) : 0;
}

static void write_to_stderr(const rmm_log_record_t *record)
{
    bool is_for_journal = rmm__journal_reads(&journal, STDERR_FILENO);
    uint64_t dropped =
        atomic_exchange_explicit(&stderr_dropped, 0, memory_order_relaxed);
    char lines[2 * LINE_BYTES];
    size_t length = print_dropped(lines, dropped, is_for_journal);

    length += print_to(lines + length, record, is_for_journal);
    if (rmm__output_put_error(lines, length) != length) {
        atomic_fetch_add_explicit(&stderr_dropped, dropped + 1, memory_order_relaxed);
    }
}

/* 0, or the errno that says why the line was dropped. */
static int write_to_file_locked(const rmm_log_record_t *record)
{
    char lines[2 * LINE_BYTES];
    uint64_t dropped = atomic_load_explicit(&file_dropped, memory_order_relaxed);
    size_t length;
    bool is_fresh;
    int error = rmm__output_renew(&file, &is_fresh);

    if (error == 0) {
        length = print_dropped(lines, dropped, rmm__journal_reads(&journal, file.fd));
        length +=
            print_to(lines + length, record, rmm__journal_reads(&journal, file.fd));
        error = rmm__output_write(&file, lines, length) == length ? 0 : errno;
    }
    atomic_store_explicit(
        &file_dropped, error == 0 ? 0 : dropped + 1, memory_order_relaxed);
    return error;
}

/* stderr is told once that the file takes none: the file cannot be. */
static void write_to_file(const rmm_log_record_t *record)
{
    char message[512] = "";
    int error;

    rmm__mutex_lock(&lock);
    error = write_to_file_locked(record);
    if (error != 0 && !file_has_failed) {
        file_has_failed = true;
        snprintf(
            message, sizeof(message),
            "log file %.300s cannot be written: %s (%d); messages are dropped until it "
            "can",
            file.path != NULL ? file.path : "(unknown)", strerror(error), error);
    }
    rmm__mutex_unlock(&lock);
    rmm__text_clean(message, sizeof(message));
    if (message[0] != '\0') {
        const rmm_log_record_t about = rmm__log_record(RMM_LEVEL_WARN, message);

        write_to_stderr(&about);
    }
}

static void call_back(const sink_t *sink, const rmm_log_record_t *record)
{
    rmm_error_kept_t kept;

    rmm__error_keep(&kept);
    sink->fn(record->level, record->message, sink->arg);
    rmm__error_restore(&kept);
}

static void write_to(
    const sink_t *sink, const rmm_log_record_t *record, rmm_log_level_t stderr_level)
{
    if (sink->kind == SINK_CALLBACK) {
        if (sink->fn != NULL) {
            call_back(sink, record);
        }
    } else if (sink->kind == SINK_FILE) {
        write_to_file(record);
    } else if (record->level >= stderr_level) {
        write_to_stderr(record);
    }
}

void rmm__log_sink_write(const rmm_log_record_t *record, rmm_log_level_t stderr_level)
{
    /* acquire: pairs with the release in use() */
    write_to(
        atomic_load_explicit(&current, memory_order_acquire), record, stderr_level);
}

/* A program's sink passes a message on to the one before it. */
static void pass_on(const sink_t *sink, rmm_log_level_t level, const char *message)
{
    const rmm_log_record_t record = rmm__log_record(level, message);

    write_to(sink, &record, rmm__log_stderr_level());
}

static void pass_to_stderr(rmm_log_level_t level, const char *message, void *arg)
{
    (void)arg;
    pass_on(&stderr_sink, level, message);
}

static void pass_to_file(rmm_log_level_t level, const char *message, void *arg)
{
    (void)arg;
    pass_on(&file_sink, level, message);
}

/* --- choosing ----------------------------------------------------------------------- */

static void use(const sink_t *sink)
{
    atomic_store_explicit(&current, sink, memory_order_release);
}

/* 0 or an errno. */
static int open_file(const char *path)
{
    rmm_output_t fresh = RMM_OUTPUT_NONE, before;
    int error = rmm__output_open(&fresh, path);

    if (error != 0) {
        rmm__output_close(&fresh);
        return error;
    }
    rmm__mutex_lock(&lock);
    before = file;
    file = fresh;
    file_has_failed = false;
    atomic_store_explicit(&file_dropped, 0, memory_order_relaxed);
    rmm__mutex_unlock(&lock);
    rmm__output_close(&before);
    return 0;
}

void rmm__log_sink_open(char *complaint, size_t complaint_bytes)
{
    const char *path = secure_getenv("RMM_DEBUG_LOG_FILE");
    int error;

    journal = rmm__journal_parse(getenv("JOURNAL_STREAM"));
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

/* NULL without host memory. Of the library's own functions: the sink that they stand for. */
static const sink_t *make_sink(rmm_log_fn fn, void *arg)
{
    sink_t *sink;

    if (fn == pass_to_stderr || fn == pass_to_file) {
        return fn == pass_to_stderr ? &stderr_sink : &file_sink;
    }
    sink = rmm__calloc(1, sizeof(*sink));
    if (sink != NULL) {
        *sink = (sink_t){.kind = SINK_CALLBACK, .fn = fn, .arg = arg};
        rmm__mutex_lock(&lock);
        sink->previous = callbacks;
        callbacks = sink;
        rmm__mutex_unlock(&lock);
    }
    return sink;
}

rmm_status_t rmm_log_exchange_callback(
    rmm_log_fn fn, void *arg, rmm_log_fn *previous_fn_out, void **previous_arg_out)
{
    const sink_t *sink, *previous;

    RMM_CHECK_ARG(previous_fn_out != NULL, "previous_fn_out is NULL");
    RMM_CHECK_ARG(previous_arg_out != NULL, "previous_arg_out is NULL");
    sink = make_sink(fn, arg);
    if (sink == NULL) {
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    (void)rmm_log_get_level(); /* the environment's choice comes first, and once */
    /* release: the sink is filled; acquire: so is the one before */
    previous = atomic_exchange_explicit(&current, sink, memory_order_acq_rel);
    *previous_fn_out = previous->fn;
    *previous_arg_out = previous->arg;
    return RMM_OK;
}

rmm_status_t rmm_log_to_callback(rmm_log_fn fn, void *arg)
{
    rmm_log_fn previous_fn;
    void *previous_arg;

    return rmm_log_exchange_callback(fn, arg, &previous_fn, &previous_arg);
}
