/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's log; see daemon_log.h. A line is completed before it is written, because lines
 * of several threads must not mix.
 */
#include "support/daemon_log.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <syslog.h>
#include <time.h>
#include <unistd.h>

#include "segment/clean_text.h"
#include "segment/log_text.h"

#include "support/text.h"

#define LINE_BYTES 512

static const char *const level_names[LOG_LEVEL_COUNT] = {
    "debug", "info", "warn", "error", "off"};
static const int priorities[LOG_LEVEL_COUNT] = {
    LOG_DEBUG, LOG_INFO, LOG_WARNING, LOG_ERR, LOG_ERR};

static atomic_int threshold = LOG_LEVEL_INFO;
static atomic_int terminal_threshold = LOG_LEVEL_DEBUG;
static atomic_bool use_syslog;

static bool is_journal(void)
{
    const rmm_journal_t journal = rmm__journal_parse(getenv("JOURNAL_STREAM"));
    return rmm__journal_reads(&journal, STDERR_FILENO);
}

static void write_to_stderr(log_level_t level, const char *line)
{
    char time_text[RMM_LOG_TIME_BYTES];
    struct timespec now;
    struct tm local = {0};
    if (is_journal()) { /* which adds the time and the name */
        (void)fprintf(stderr, "<%d>%s\n", priorities[level], line);
        return;
    }
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)localtime_r(&now.tv_sec, &local);
    rmm__log_time(time_text, (uint64_t)now.tv_nsec, &local);
    (void)fprintf(stderr, "rmmfs: [%s][%s] %s\n", time_text, level_names[level], line);
}

static bool is_wanted(log_level_t level)
{
    return (int)level >= atomic_load_explicit(&threshold, memory_order_relaxed);
}

/* Names are in it: a control character of theirs must reach neither a terminal nor a log. */
__attribute__((format(printf, 2, 0))) static void
make_line(char line[LINE_BYTES], const char *format, va_list args)
{
    (void)vsnprintf(line, LINE_BYTES, format, args);
    rmm__text_clean(line, LINE_BYTES);
}

/* Other users' words are in it. A reason why the daemon does not start (log_reason) has the
 * operator's own paths instead, and is not changed so. */
static void show_ascii(char *line)
{
    for (; *line != '\0'; line++) {
        *line = text_shown(*line, '?');
    }
}

__attribute__((format(printf, 2, 0))) static void
write_line(log_level_t level, const char *format, va_list args)
{
    char line[LINE_BYTES];
    make_line(line, format, args);
    show_ascii(line);
    if (atomic_load_explicit(&use_syslog, memory_order_relaxed)) {
        syslog(priorities[level], "%s", line);
    } else if (
        (int)level >= atomic_load_explicit(&terminal_threshold, memory_order_relaxed)) {
        write_to_stderr(level, line);
    }
}

void log_message(log_level_t level, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    if (is_wanted(level)) {
        write_line(level, format, args);
    }
    va_end(args);
}

/* --- about users ---------------------------------------------------------------------- */

#define USERS 32u /* users with the same place share it */
#define WINDOW_SECONDS 10

/* Lines about one user since a time. */
static struct user_lines {
    uid_t uid;
    time_t since;
    uint64_t lines;
} user_lines[USERS];
static pthread_mutex_t user_lock = PTHREAD_MUTEX_INITIALIZER;

/* How many were left out before; the number of this line in its window is in *number_out. */
static uint64_t count_line(uid_t uid, uint64_t *number_out)
{
    struct user_lines *user = &user_lines[uid % USERS];
    struct timespec now;
    uint64_t left_out = 0;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    (void)pthread_mutex_lock(&user_lock);
    if (user->lines == 0 || now.tv_sec - user->since >= WINDOW_SECONDS) {
        left_out = user->lines > LOG_USER_LINES ? user->lines - LOG_USER_LINES : 0;
        *user = (struct user_lines){.uid = uid, .since = now.tv_sec};
    }
    *number_out = ++user->lines;
    (void)pthread_mutex_unlock(&user_lock);
    return left_out;
}

void log_of_user(uid_t uid, log_level_t level, const char *format, ...)
{
    uint64_t number;
    va_list args;
    if (!is_wanted(level)) {
        return;
    }
    uint64_t left_out = count_line(uid, &number);
    if (left_out > 0) {
        log_message(
            level, "%llu messages about uid %u were suppressed",
            (unsigned long long)left_out, (unsigned)uid);
    }
    va_start(args, format);
    if (number <= LOG_USER_LINES) {
        write_line(level, format, args);
    }
    va_end(args);
}

void log_reason(const char *format, ...)
{
    char line[LINE_BYTES];
    va_list args;
    va_start(args, format);
    make_line(line, format, args);
    va_end(args);
    if (is_journal()) {
        write_to_stderr(LOG_LEVEL_ERROR, line);
    } else {
        (void)fprintf(stderr, "rmmfs: %s\n", line);
    }
}

void log_terminal_from(log_level_t level)
{
    atomic_store_explicit(&terminal_threshold, (int)level, memory_order_relaxed);
}

void log_to_syslog(void)
{
    openlog("rmmfs", LOG_PID, LOG_DAEMON);
    atomic_store_explicit(&use_syslog, true, memory_order_relaxed);
}

log_level_t log_level_get(void)
{
    return (log_level_t)atomic_load_explicit(&threshold, memory_order_relaxed);
}

void log_level_set(log_level_t level)
{
    atomic_store_explicit(&threshold, (int)level, memory_order_relaxed);
}

const char *log_level_name(log_level_t level)
{
    return level_names[level];
}

bool log_level_parse(const char *name, log_level_t *level_out)
{
    for (int i = 0; i < LOG_LEVEL_COUNT; i++) {
        if (strcmp(name, level_names[i]) == 0) {
            *level_out = (log_level_t)i;
            return true;
        }
    }
    return false;
}
