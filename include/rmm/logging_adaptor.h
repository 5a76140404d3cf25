/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/logging_adaptor.h
 *
 * Writes a row for every allocation and free that passes through it, in RMM's CSV format:
 *
 *   Thread,Time,Action,Pointer,Size,Stream
 *   4711,13:02:59.000123,allocate,0x7f6e40000000,1024,0
 *   4711,13:02:59.000131,free,0x7f6e40000000,1024,0
 *   4711,13:02:59.000150,allocate failure,(nil),1099511627776,0
 *
 * Time is local time, Size the requested size, Stream the handle. An allocation is logged
 * after it has succeeded, a free before it reaches upstream. So the calls can be repeated in
 * the order of the rows, as rmm-replay and RMM's own replay tool do.
 *
 * Rows are buffered (64 KiB) and written by the thread whose row no longer fits, or whose row
 * comes flush_interval_ms after the oldest one. rmm_logging_flush(), the last release and the end
 * of the process by exit() or quick_exit() write the rest; what handlers and destructors of static
 * objects allocate and free behind the library's own exit handler is written row by row. A process
 * that a signal or _exit() ends, or exec() replaces, loses the rows that are still buffered, unless
 * auto_flush is set or rmm_logging_flush() was called before. So does a forked child that
 * ends with _exit(), of the rows of its own adaptors.
 *
 * A file is never truncated, and lines are appended whole. So adaptors of several devices,
 * processes and forked children may share a file, and a later run appends to it. The header
 * is written only into an empty file. In the path, %d is replaced by the device (its CUDA
 * ordinal, or "host") and %p by the process id, for a file of each; %% is a per cent sign.
 * Rows of several processes in one file can be replayed only if their addresses differ, or
 * if one process begins after another has freed everything. On a network filesystem each
 * host needs its own file.
 *
 * Rotation: a file that was renamed, removed or truncated is noticed before the next write, which
 * goes to a new file of the old name, with a header. A relative path stays where it was when the
 * adaptor was created. /dev/stdout and its like are opened once.
 *
 * If the file cannot be written (a full disk, RLIMIT_FSIZE, a pipe without a reader, a
 * directory that was removed), the debug log gets one error. Rows are dropped and counted as long
 * as that lasts; allocations are not affected. There is no SIGPIPE and no SIGXFSZ. A reader of a
 * pipe that stops is waited for once, for a tenth of a second. A descriptor that the program has
 * closed is noticed: the file is opened again, and the program's next file is not written to.
 *
 * Lifetime, threads: as rmm/resource.h; it retains its upstream. Blocks that are live
 * at its last release stay allocated from upstream.
 */
#ifndef RMM_LOGGING_ADAPTOR_H
#define RMM_LOGGING_ADAPTOR_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Rows of RMM's six columns. */
#define RMM_LOGGING_FORMAT_RMM 0u
/**
 * Three more columns: Device (CUDA ordinal; -1: host memory), DurationNs (the time of
 * upstream's allocation; -1 for a free) and Caller (function and offset, or the address, of
 * the caller of the library). Costs some microseconds a row.
 */
#define RMM_LOGGING_FORMAT_EXTENDED 1u
/**
 * Combined with | with one of the above: two columns behind RMM's, PoolBytes (reserved_bytes) and
 * UsedBytes (current_bytes) of the pool below: the first resource below that is no adaptor and
 * no binning resource. They are figures of the pool as it is after an allocation and before a free,
 * for all its users, and of the time of the row, also while other threads use it. A row of a
 * CUDA memory pool (async) costs a call of the driver more.
 */
#define RMM_LOGGING_FORMAT_POOL_SIZE 2u

/** For flush_interval_ms: rows may be kept for any time. */
#define RMM_LOGGING_NO_INTERVAL UINT32_MAX

/**
 * Receives whole rows, @p length bytes with their newlines; not NUL-terminated, valid
 * during the call. Called in the order of the rows, by one thread at a time, on a thread
 * that allocates, frees or flushes, with no lock of the library held. An allocation that
 * the function makes through the same adaptor is logged only if the buffer has room. It ends by
 * return (rmm/resource.h, functions of the program).
 */
typedef void (*rmm_logging_sink_fn)(const char *rows, size_t length, void *arg);

/** Zero in any field means its default. */
typedef struct rmm_logging_options {
    size_t struct_size; /**< set by RMM_LOGGING_OPTIONS_INIT; do not touch */
    const char *path;   /**< appended to, created with mode 0644; may have %d and %p;
                             NULL: RMM_LOG_FILE, unless there is a sink */
    rmm_logging_sink_fn sink; /**< besides a file, or instead of one */
    void *sink_arg;
    bool auto_flush;  /**< write every row before the call returns */
    uint32_t format;  /**< RMM_LOGGING_FORMAT_*, combined with | */
    const char *name; /**< shown in /rmm; copied; default "logging" */
    /** Called with `sink_arg` when the adaptor has ended; NULL: nothing to free. Not called if
     * the creation fails, or in a forked child. */
    void (*sink_destroy)(void *sink_arg);
    /** Rows that are older are written together with the next one; RMM_LOGGING_NO_INTERVAL: when
     * the buffer is full; default 1000. */
    uint32_t flush_interval_ms;
} rmm_logging_options_t;

#define RMM_LOGGING_OPTIONS_INIT                                                       \
    {                                                                                  \
        sizeof(rmm_logging_options_t), NULL, NULL, NULL, false, 0, NULL, NULL, 0       \
    }

/**
 * Create a logging adaptor over @p upstream, which it retains. Writes the header row to the
 * sink, and to the file if it is empty.
 *
 * @param options  NULL: all defaults
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream or out is NULL, neither path, sink nor
 *                                     RMM_LOG_FILE is given, the format is unknown,
 *                                     another letter follows a % in the path, or
 *                                     options were not made with _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more
 *         RMM_ERR_IO                  the file cannot be opened or written, or its first
 *                                     line is not the header of this format; the file
 *                                     is unchanged
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_logging_adaptor_create(
    rmm_resource_t *upstream, const rmm_logging_options_t *options,
    rmm_resource_t **out);

/**
 * Write all buffered rows. Blocks.
 *
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  mr is not a logging adaptor
 *         RMM_ERR_IO                rows were lost, in this call or before
 */
RMM_API rmm_status_t rmm_logging_flush(rmm_resource_t *mr);

/** The first row of a format, without its newline; NULL: no such format. Static. */
RMM_API const char *rmm_logging_header(uint32_t format);

/** The path of the file, with %d and %p replaced; "" if there is none or mr is not a logging
 * adaptor. Lives as long as mr. */
RMM_API const char *rmm_logging_path(const rmm_resource_t *mr);

#ifdef __cplusplus
}
#endif

#endif /* RMM_LOGGING_ADAPTOR_H */
