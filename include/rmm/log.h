/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/log.h
 *
 * The library's debug log: what pools do, why an allocation failed, which frees were
 * refused. (The log of every allocation is the logging adaptor's.)
 *
 * A message goes to two places:
 *   - the ring in the process's segment, always: /rmm/proc/<pid>/log shows it;
 *   - one sink: stderr, a file, or a function of the program's.
 *
 * Level. The log's level decides about both. From the start it is what RMM_LOG_LEVEL
 * names, else info; but stderr then shows warnings and worse only, unless RMM_LOG_LEVEL
 * or rmm_log_set_level() asked for more. What an operator writes into
 * /rmm/proc/<pid>/log_level overrides the log's level, not what stderr shows.
 * Messages below RMM_LOGGING_LEVEL (a CMake option, debug by default) are not in the
 * library at all.
 *
 * Sink. RMM_DEBUG_LOG_FILE names a file to append to; else stderr. A line is
 *   [thread][YYYY-MM-DDTHH:MM:SS.microseconds+HH:MM][level] message
 * with the local time and its offset from UTC. Where stderr goes to the journal of systemd
 * (JOURNAL_STREAM names it) it has the priority instead of the time:
 *   <3>[thread][error] message
 * A line is written at once with one write(2): there is nothing to flush, and lines of
 * threads and processes that share a file do not mix.
 *
 * An allocation that fails because memory is short is logged as an error when the caller
 * gets the failure, not when a resource or an adaptor in between could satisfy it after all;
 * other failures of allocations at level info. At most ten a second of them are logged.
 *
 * Nothing here fails an allocation: a sink that cannot be written loses its messages.
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

/** As RMM's levels; the value is how bad a message is. */
typedef enum rmm_log_level {
    RMM_LEVEL_TRACE = 0,
    RMM_LEVEL_DEBUG = 1,
    RMM_LEVEL_INFO = 2,
    RMM_LEVEL_WARN = 3,
    RMM_LEVEL_ERROR = 4,
    RMM_LEVEL_CRITICAL = 5,
    RMM_LEVEL_OFF = 6 /**< as the log's level: no message at all */
} rmm_log_level_t;

/** "warn"; "unknown" for what is no level. Static. */
RMM_API const char *rmm_log_level_name(rmm_log_level_t level);

/** The level in force: an operator's request, else the program's. */
RMM_API rmm_log_level_t rmm_log_get_level(void);

/**
 * Messages of this level and worse are logged from now on, also to stderr.
 *
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  not a level
 *         RMM_ERR_UNSUPPORTED       such messages are compiled out; nothing changed
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_log_set_level(rmm_log_level_t level);

/** Would a message of this level go anywhere now? */
RMM_API bool rmm_log_should_log(rmm_log_level_t level);

/** The sink is stderr from now on. */
RMM_API void rmm_log_to_stderr(void);

/**
 * The sink is a file from now on, appended to; made (mode 0644) if there is none.
 *
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    path is NULL or empty
 *         RMM_ERR_IO                  it cannot be opened; nothing changed
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_log_to_file(const char *path);

/**
 * Receives one message, without a newline; `message` is valid during the call. Called on
 * the thread that logs, by several at once, with no lock of the library held. What the
 * library logs because of calls made in here goes to the ring only.
 */
typedef void (*rmm_log_fn)(rmm_log_level_t level, const char *message, void *arg);

/**
 * The sink is a function from now on; NULL: no sink but the ring. A message that is
 * under way at that moment may still reach the sink before it: keep `arg` alive.
 *
 * @return RMM_OK or RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_log_to_callback(rmm_log_fn fn, void *arg);

/**
 * rmm_log_to_callback() that also tells which function the sink was before, in one step, so
 * that the new one can pass messages on to it, and it can be brought back later by the
 * same call or rmm_log_to_callback(). Where the sink was stderr or a file that is a
 * function of the library's that writes there.
 *
 * @param previous_fn_out   receives it; NULL: there was no sink but the ring
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
