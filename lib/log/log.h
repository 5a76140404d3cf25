/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The library's only way to print. One line per call to stderr (warn and worse) or to
 * the file named by RMM_DEBUG_LOG_FILE (level RMM_LOG_LEVEL, default info there).
 *
 * Message style: lower case, values after their names without "=", native code always.
 *
 * Never call with a lock held: a sink may block.
 */
#ifndef RMM_LOG_LOG_H
#define RMM_LOG_LOG_H

typedef enum rmm_log_level {
    RMM_LOG_LEVEL_TRACE = 0,
    RMM_LOG_LEVEL_DEBUG = 1,
    RMM_LOG_LEVEL_INFO = 2,
    RMM_LOG_LEVEL_WARN = 3,
    RMM_LOG_LEVEL_ERROR = 4,
    RMM_LOG_LEVEL_CRITICAL = 5,
    RMM_LOG_LEVEL_OFF = 6
} rmm_log_level_t;

__attribute__((format(printf, 2, 3))) void
rmm__log(rmm_log_level_t level, const char *format, ...);

#define rmm__log_error(...) rmm__log(RMM_LOG_LEVEL_ERROR, __VA_ARGS__)
#define rmm__log_warn(...) rmm__log(RMM_LOG_LEVEL_WARN, __VA_ARGS__)
#define rmm__log_info(...) rmm__log(RMM_LOG_LEVEL_INFO, __VA_ARGS__)
#define rmm__log_debug(...) rmm__log(RMM_LOG_LEVEL_DEBUG, __VA_ARGS__)

#endif /* RMM_LOG_LOG_H */
