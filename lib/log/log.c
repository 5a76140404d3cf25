/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Decides whether a message is wanted, formats it once, and hands it to the segment's
 * ring and to the sink.
 *
 * The environment is read at the first message or the first call of <rmm/log.h>; until
 * then the level is undecided, which is below every level, so that no message is missed.
 *
 * No lock. A message that a thread logs while it runs the program's log function goes to the ring
 * only: otherwise the function could call itself without end.
 */
#include "log/log.h"

#include <errno.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/error.h"
#include "core/uncancelled.h"
#include "segment/clean_text.h"

#define LEVEL_COUNT (RMM_LEVEL_OFF + 1)

static const char *const level_names[LEVEL_COUNT] = {
    "trace", "debug", "info", "warn", "error", "critical", "off",
};

static const _Atomic(uint32_t) no_request;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static _Atomic(int) stderr_level = RMM_LEVEL_WARN;
static _Atomic(rmm_log_publish_fn) publish;
static _Thread_local bool in_sink;
static _Atomic(uint32_t) shown_to_nobody;
static _Atomic(uint32_t) *_Atomic level_shown = &shown_to_nobody;

_Atomic(int) rmm__log_level = RMM_LOG_UNDECIDED;
const _Atomic(uint32_t) *_Atomic rmm__log_request = &no_request;

static bool is_level(int level)
{
    return level >= RMM_LEVEL_TRACE && level < LEVEL_COUNT;
}

/* --- the environment ---------------------------------------------------------------- */

rmm_log_record_t rmm__log_record(rmm_log_level_t level, const char *message)
{
    return (rmm_log_record_t){
        .level = level,
        .time_ns = rmm__clock_ns(CLOCK_REALTIME),
        .thread = (uint32_t)gettid(),
        .message = message};
}

rmm_log_level_t rmm__log_stderr_level(void)
{
    return (rmm_log_level_t)atomic_load_explicit(&stderr_level, memory_order_relaxed);
}

static void leave_sink(const bool *entered)
{
    (void)entered;
    in_sink = false;
}

/* Names that others chose are in it: no sink gets a line break or an escape sequence of theirs. */
static void write_record(rmm_log_level_t level, char *message, size_t bytes)
{
    const rmm_log_record_t record = rmm__log_record(level, message);
    rmm_log_publish_fn to_ring = atomic_load_explicit(&publish, memory_order_acquire);

    rmm__text_clean(message, bytes);

    if (to_ring != NULL) {
        to_ring(&record);
    }
    if (!in_sink) {
        RMM_AT_END(leave_sink) bool entered = true;

        in_sink = entered;
        rmm__log_sink_write(&record, rmm__log_stderr_level());
    }
}

/* RMM_LOG_UNDECIDED: unset or not a level. */
static int level_from_environment(char *complaint, size_t complaint_bytes)
{
    const char *request = getenv("RMM_LOG_LEVEL");

    if (request == NULL || request[0] == '\0') {
        return RMM_LOG_UNDECIDED;
    }
    for (int i = 0; i < LEVEL_COUNT; i++) {
        if (strcasecmp(request, level_names[i]) == 0) {
            return i;
        }
    }
    snprintf(
        complaint, complaint_bytes,
        "RMM_LOG_LEVEL is '%.32s': use trace, debug, info, warn, error, critical or "
        "off",
        request);
    return RMM_LOG_UNDECIDED;
}

static void read_environment(void)
{
    RMM_UNCANCELLED;
    char about_level[256] = "";
    char about_file[512] = "";
    int level = level_from_environment(about_level, sizeof(about_level));

    rmm__log_sink_open(about_file, sizeof(about_file));
    if (is_level(level)) {
        atomic_store_explicit(&stderr_level, level, memory_order_relaxed);
    } else {
        level = RMM_LEVEL_INFO;
    }
    atomic_store_explicit(&rmm__log_level, level, memory_order_relaxed);
    if (about_file[0] != '\0') {
        write_record(RMM_LEVEL_WARN, about_file, sizeof(about_file));
    }
    if (about_level[0] != '\0') {
        write_record(RMM_LEVEL_WARN, about_level, sizeof(about_level));
    }
}

/* --- logging ------------------------------------------------------------------------ */

void rmm__log(rmm_log_level_t level, const char *format, ...)
{
    RMM_UNCANCELLED;
    char message[RMM_LOG_MESSAGE_BYTES];
    int saved_errno = errno;
    va_list arguments;

    pthread_once(&once, read_environment);
    if (rmm__log_is_on(level)) { /* again: it may have been undecided */
        va_start(arguments, format);
        vsnprintf(message, sizeof(message), format, arguments);
        va_end(arguments);
        write_record(level, message, sizeof(message));
    }
    errno = saved_errno;
}

static void set_level(int level)
{
    atomic_store_explicit(&rmm__log_level, level, memory_order_relaxed);
    atomic_store_explicit(
        atomic_load_explicit(&level_shown, memory_order_acquire), 1 + (uint32_t)level,
        memory_order_relaxed);
}

void rmm__log_attach(
    rmm_log_publish_fn fn, const _Atomic(uint32_t) *request, _Atomic(uint32_t) *shown)
{
    pthread_once(&once, read_environment);
    atomic_store_explicit(&level_shown, shown, memory_order_release);
    set_level(atomic_load_explicit(&rmm__log_level, memory_order_relaxed));
    /* release: a thread that loads them sees what they name filled */
    atomic_store_explicit(&publish, fn, memory_order_release);
    atomic_store_explicit(&rmm__log_request, request, memory_order_release);
}

/* --- <rmm/log.h> -------------------------------------------------------------------- */

const char *rmm_log_level_name(rmm_log_level_t level)
{
    return is_level((int)level) ? level_names[level] : "unknown";
}

rmm_log_level_t rmm_log_get_level(void)
{
    pthread_once(&once, read_environment);
    return (rmm_log_level_t)rmm__log_level_in_force();
}

rmm_status_t rmm_log_set_level(rmm_log_level_t level)
{
    if (!is_level((int)level)) {
        return rmm__error(
            RMM_ERR_INVALID_ARGUMENT,
            "%d is not a log level: use %d (trace) to %d (off)", (int)level,
            RMM_LEVEL_TRACE, RMM_LEVEL_OFF);
    }
    if ((int)level < RMM_LOG_FLOOR) {
        return rmm__error(
            RMM_ERR_UNSUPPORTED,
            "%s messages are compiled out: build the library with "
            "-DRMM_LOGGING_LEVEL=%s",
            level_names[level], level_names[level]);
    }
    pthread_once(&once, read_environment);
    atomic_store_explicit(&stderr_level, (int)level, memory_order_relaxed);
    set_level((int)level);
    return RMM_OK;
}

bool rmm_log_should_log(rmm_log_level_t level)
{
    pthread_once(&once, read_environment);
    return is_level((int)level) && level != RMM_LEVEL_OFF &&
           (int)level >= RMM_LOG_FLOOR && rmm__log_is_on(level);
}
