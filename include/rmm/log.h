/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/log.h
 *
 * The library's debug log: the actions of pools, reasons for failed allocations, refused
 * frees. (rmm/logging_adaptor.h logs every allocation.)
 *
 * A message goes to two places:
 *   - the ring in the process's segment, always: /rmm/proc/<pid>/log shows it;
 *   - one sink: stderr, a file, or a function of the program.
 *
 * Level. The log's level applies to both. RMM_LOG_LEVEL sets it at the start; the default is
 * info. But stderr shows only warnings and worse, unless RMM_LOG_LEVEL or
 * rmm_log_set_level() set the level. A write to /rmm/proc/<pid>/log_level overrides the log's
 * level from outside; it does not change what stderr shows. Messages below
 * RMM_LOGGING_LEVEL (a CMake option, debug by default) are not compiled in.
 *
 * Sink. RMM_DEBUG_LOG_FILE names a file to append to; else it is stderr. A line is
 *   [thread][YYYY-MM-DDTHH:MM:SS.microseconds+HH:MM][level] message
 * with the local time and its offset from UTC. If stderr goes to the journal of systemd
 * (JOURNAL_STREAM names it), the line has the priority instead of the time:
 *   <3>[thread][error] message
 * A line is written at once with one write(2): there is nothing to flush, and lines of
 * threads and processes that share a file do not mix. A file that was renamed or removed, as by
 * logrotate, is noticed: the next line goes to a new file of that name. A relative path stays
 * where it was when the file was opened. In every message of the library '?'
 * stands for each byte of a control character and of what is not UTF-8: names of files and
 * values of variables neither forge a line nor reach a terminal as a command.
 *
 * An allocation that fails for lack of memory is logged as an error when the failure reaches
 * the program, but not if a resource or an adaptor above can still satisfy the request.
 * Other failures of allocations are logged at level info. At most ten failures of each kind are
 * logged in a second.
 *
 * Logging never makes an allocation fail, and neither ends nor stops the program: there is no
 * SIGPIPE and no SIGXFSZ, a pipe without a reader is not opened, and a reader of a pipe or a
 * terminal that stops is waited for once, for a tenth of a second. What the sink does not take is
 * dropped and counted; the next line that it takes says how many were, and stderr is told once
 * that a file takes none. The ring has all messages. A descriptor that the program has closed, as
 * a daemon does, is noticed: the file is opened again.
 *
 * Threads: any function, any thread.
 */
#ifndef RMM_LOG_H
#define RMM_LOG_H

#include <stdbool.h>

#include <rmm/export.h>
#include <rmm/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/** RMM's levels, by rising severity. */
typedef enum rmm_log_level {
    RMM_LEVEL_TRACE = 0,
    RMM_LEVEL_DEBUG = 1,
    RMM_LEVEL_INFO = 2,
    RMM_LEVEL_WARN = 3,
    RMM_LEVEL_ERROR = 4,
    RMM_LEVEL_CRITICAL = 5,
    RMM_LEVEL_OFF = 6 /**< for rmm_log_set_level(): no messages */
} rmm_log_level_t;

/** The name of a level, "warn"; "unknown" for any other value. Static. */
RMM_API const char *rmm_log_level_name(rmm_log_level_t level);

/** The level in force: the one that an operator has set, else the program's. */
RMM_API rmm_log_level_t rmm_log_get_level(void);

/**
 * Log messages of this level and worse from now on, also to stderr.
 *
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  not a level
 *         RMM_ERR_UNSUPPORTED       such messages are compiled out; nothing changed
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_log_set_level(rmm_log_level_t level);

/** True if a message of this level would be logged now. */
RMM_API bool rmm_log_should_log(rmm_log_level_t level);

/** Make stderr the sink. */
RMM_API void rmm_log_to_stderr(void);

/**
 * Make a file the sink. The log appends to it, and creates it (mode 0644) if it is missing.
 *
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    path is NULL or empty
 *         RMM_ERR_IO                  it cannot be opened, or is a FIFO without a reader;
 *                                     nothing changed
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_log_to_file(const char *path);

/**
 * Receives one message, without a newline; `message` is valid during the call. Runs on the
 * thread that logs, on several threads at once, with no lock of the library held. Messages
 * that the library logs during this call go to the ring only. It ends by return (rmm/resource.h,
 * functions of the program).
 */
typedef void (*rmm_log_fn)(rmm_log_level_t level, const char *message, void *arg);

/**
 * Make a function the sink; NULL: the ring only. Another thread may still be sending a
 * message to the previous sink: keep its `arg` alive.
 *
 * @return RMM_OK or RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_log_to_callback(rmm_log_fn fn, void *arg);

/**
 * As rmm_log_to_callback(), and return the previous sink in the same step. The new function
 * can pass messages on to it, and this call or rmm_log_to_callback() can restore it. If the
 * sink was stderr or a file, the previous function is one of the library that writes there.
 *
 * @param previous_fn_out   receives the previous function; NULL: there was only the ring
 * @param previous_arg_out  receives its argument
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    one of the results is NULL
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_log_exchange_callback(
    rmm_log_fn fn, void *arg, rmm_log_fn *previous_fn_out, void **previous_arg_out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_LOG_H */
