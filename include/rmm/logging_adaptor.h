/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/logging_adaptor.h
 *
 * Writes a row for every allocation and every free that passes, in RMM's CSV:
 *
 *   Thread,Time,Action,Pointer,Size,Stream
 *   4711,13:02:59.000123,allocate,0x7f6e40000000,1024,0
 *   4711,13:02:59.000131,free,0x7f6e40000000,1024,0
 *   4711,13:02:59.000150,allocate failure,(nil),1099511627776,0
 *
 * Time is local, Size what was asked for, Stream the handle. An allocation is written once
 * it has succeeded, a free before upstream sees it, so the order of rows is one in which
 * the calls can be made again: rmm-replay and RMM's own replay tool do.
 *
 * Rows are gathered in memory (64 KiB) and written by the thread whose row no longer fits.
 * They are written out by rmm_logging_flush(), by the last release and when the process
 * exits; a process that is killed loses the last ones, unless auto_flush is set.
 *
 * A file is never truncated, and lines are appended whole: adaptors of several devices,
 * processes and forked children may share one, and a later run adds to what an earlier one
 * left. The header is written only into an empty file. In the path %d stands for the device
 * (its CUDA ordinal, or "host") and %p for the process, so that each gets a file of its
 * own; %% is a per cent sign. Rows of several processes in one file can be replayed only if
 * their addresses differ, or if one process begins after another has freed everything. On a
 * network filesystem each host needs a file of its own.
 *
 * A sink that fails (a full disk) is one error in the debug log. Rows are dropped from
 * then on, and counted; allocations go on.
 *
 * Lifetime, threads: as rmm/resource.h; it retains its upstream. Blocks that are out at
 * its last release stay upstream's.
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
 * Three columns more: Device (CUDA ordinal; -1: host memory), DurationNs (what upstream
 * took for an allocation; -1 for a free) and Caller (function and offset, or the address,
 * of who called the library). Costs some microseconds a row.
 */
#define RMM_LOGGING_FORMAT_EXTENDED 1u

/**
 * Receives whole rows, @p length bytes with their newlines; not NUL-terminated, valid
 * during the call. Called in the order of the rows, by one thread at a time, on a thread
 * that allocates, frees or flushes, with no lock of the library held. What is allocated
 * through the same adaptor in here is logged only if there is room at once.
 */
typedef void (*rmm_logging_sink_fn)(const char *rows, size_t length, void *arg);

/** Zero in any field means its default. */
typedef struct rmm_logging_options {
    size_t struct_size; /**< set by RMM_LOGGING_OPTIONS_INIT; do not touch */
    const char *path;   /**< appended to, made with mode 0644; may have %d and %p; NULL:
                             RMM_LOG_FILE, unless there is a sink */
    rmm_logging_sink_fn sink; /**< also, or instead of a file */
    void *sink_arg;
    bool auto_flush;  /**< every row is written before the call returns */
    uint32_t format;  /**< RMM_LOGGING_FORMAT_* */
    const char *name; /**< shown in /rmm; copied; default "logging" */
} rmm_logging_options_t;

#define RMM_LOGGING_OPTIONS_INIT                                                       \
    {                                                                                  \
        sizeof(rmm_logging_options_t), NULL, NULL, NULL, false, 0, NULL                \
    }

/**
 * Create a logging adaptor over @p upstream, which it retains. The header row is written
 * at once, to the sink and to a file that is empty.
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
 *                                     line is not the header of this format: it is left
 *                                     as it is
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_logging_adaptor_create(
    rmm_resource_t *upstream, const rmm_logging_options_t *options,
    rmm_resource_t **out);

/**
 * Write out every row so far. Blocks.
 *
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  mr is no logging adaptor
 *         RMM_ERR_IO                rows were lost, now or before
 */
RMM_API rmm_status_t rmm_logging_flush(rmm_resource_t *mr);

/** The first row of a format, without its newline; NULL: no such format. Static. */
RMM_API const char *rmm_logging_header(uint32_t format);

/** The file, with %d and %p replaced; "" if there is none or mr is no logging adaptor. Lives as
 * long as mr. */
RMM_API const char *rmm_logging_path(const rmm_resource_t *mr);

#ifdef __cplusplus
}
#endif

#endif /* RMM_LOGGING_ADAPTOR_H */
