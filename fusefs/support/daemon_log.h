/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's own log: stderr until it leaves the terminal, then syslog. Levels as in
 * the library's log; changed while running through /rmm/daemon/log_level. A line on stderr
 * is "rmmfs: [TIME][level] message", in the journal of systemd "<PRIORITY>message".
 *
 * Threads: any.
 */
#ifndef RMM_FUSEFS_DAEMON_LOG_H
#define RMM_FUSEFS_DAEMON_LOG_H

#include <stdbool.h>
#include <sys/types.h>

/* In rising order of weight, so that a level shows itself and all after it. */
typedef enum log_level {
    LOG_LEVEL_DEBUG,
    LOG_LEVEL_INFO,
    LOG_LEVEL_WARN,
    LOG_LEVEL_ERROR,
    LOG_LEVEL_OFF,
    LOG_LEVEL_COUNT
} log_level_t;

void log_message(log_level_t level, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* The same about what a user's programs left: at most LOG_USER_LINES in ten seconds for each
 * user, then one line that says how many were left out. */
#define LOG_USER_LINES 20u
void log_of_user(uid_t uid, log_level_t level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#define log_debug(...) log_message(LOG_LEVEL_DEBUG, __VA_ARGS__)
#define log_info(...) log_message(LOG_LEVEL_INFO, __VA_ARGS__)
#define log_warn(...) log_message(LOG_LEVEL_WARN, __VA_ARGS__)
#define log_error(...) log_message(LOG_LEVEL_ERROR, __VA_ARGS__)

/* Why the daemon does not start: the answer to a command, so without the time. */
void log_reason(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Until then stderr, which may be a terminal in use, gets messages of this level and above only. */
void log_terminal_from(log_level_t level);

/* From here on write to syslog: the daemon has left its terminal. */
void log_to_syslog(void);

log_level_t log_level_get(void);
void log_level_set(log_level_t level);

const char *log_level_name(log_level_t level);
/* False: no such level; *level_out is untouched. */
bool log_level_parse(const char *name, log_level_t *level_out);

#endif /* RMM_FUSEFS_DAEMON_LOG_H */
