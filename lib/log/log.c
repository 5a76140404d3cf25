/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Formats one line and writes it with one write(2), so that lines of several threads and
 * processes do not mix. Where it goes is decided once, at the first message:
 * RMM_DEBUG_LOG_FILE (appended to) with level RMM_LOG_LEVEL or info, else stderr with
 * RMM_LOG_LEVEL or warn.
 *
 * Line: [thread][HH:MM:SS:microseconds][level] message
 */
#include "log/log.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>
#include <unistd.h>

#include "core/descriptor.h"

#define LINE_BYTES 1024

static const char *const level_names[] = {
    "trace", "debug", "info", "warn", "error", "critical", "off",
};

static pthread_once_t once = PTHREAD_ONCE_INIT;
static int sink_fd = STDERR_FILENO;
static rmm_log_level_t threshold = RMM_LOG_LEVEL_WARN;

static void write_line(rmm_log_level_t level, const char *message)
{
    char line[LINE_BYTES];
    struct timespec now;
    struct tm local;
    int length;

    clock_gettime(CLOCK_REALTIME, &now);
    localtime_r(&now.tv_sec, &local);
    length = snprintf(
        line, sizeof(line), "[%d][%02d:%02d:%02d:%06ld][%s] %s\n", gettid(),
        local.tm_hour, local.tm_min, local.tm_sec, now.tv_nsec / 1000,
        level_names[level], message);
    if (length >= (int)sizeof(line)) { /* cut, but still one line */
        length = (int)sizeof(line) - 1;
        line[length - 1] = '\n';
    }
    while (write(sink_fd, line, (size_t)length) < 0 && errno == EINTR) {
    }
}

static void read_level(void)
{
    const char *wish = getenv("RMM_LOG_LEVEL");
    char message[256];

    if (wish == NULL || wish[0] == '\0') {
        return;
    }
    for (int i = RMM_LOG_LEVEL_TRACE; i <= RMM_LOG_LEVEL_OFF; i++) {
        if (strcasecmp(wish, level_names[i]) == 0) {
            threshold = (rmm_log_level_t)i;
            return;
        }
    }
    snprintf(
        message, sizeof(message),
        "RMM_LOG_LEVEL is '%.32s': use trace, debug, info, warn, error, critical or "
        "off",
        wish);
    write_line(RMM_LOG_LEVEL_WARN, message);
}

static void open_sink(void)
{
    const char *path = getenv("RMM_DEBUG_LOG_FILE");
    char message[512];
    int fd;

    if (path != NULL && path[0] != '\0') {
        fd = rmm__descriptor_above_standard(
            open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
        if (fd >= 0) {
            sink_fd = fd;
            threshold = RMM_LOG_LEVEL_INFO;
        } else {
            snprintf(
                message, sizeof(message),
                "RMM_DEBUG_LOG_FILE %.300s cannot be opened: "
                "%s; logging to stderr",
                path, strerror(errno));
            write_line(RMM_LOG_LEVEL_WARN, message);
        }
    }
    read_level();
}

void rmm__log(rmm_log_level_t level, const char *format, ...)
{
    char message[LINE_BYTES];
    va_list arguments;

    pthread_once(&once, open_sink);
    if (level < threshold || threshold == RMM_LOG_LEVEL_OFF) {
        return;
    }
    va_start(arguments, format);
    vsnprintf(message, sizeof(message), format, arguments);
    va_end(arguments);
    write_line(level, message);
}
