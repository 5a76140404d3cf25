/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/tracking_adaptor.h
 *
 * Records every live block, optionally with the call stack of its allocation, to find
 * leaks. It does not record blocks of 0 bytes.
 *
 * A free of an unknown block is logged as an error and passed on to upstream;
 * it does not count. A free with a wrong size is logged as an error too, and carried out
 * with the size of the allocation.
 *
 * A last release with live blocks logs each of them (the first 100), with its stack.
 *
 * Call stacks are captured with libunwind if it is installed (from 0.1 us for each
 * allocation), otherwise with backtrace(3) (some us). Symbols are looked up when a stack is
 * printed; link the program with -rdynamic to see the names of its own functions.
 *
 * Lifetime, threads: as rmm/resource.h; it retains its upstream. Blocks that are live
 * at its last release stay allocated from upstream.
 */
#ifndef RMM_TRACKING_ADAPTOR_H
#define RMM_TRACKING_ADAPTOR_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct rmm_tracking_options {
    size_t struct_size;  /**< set by RMM_TRACKING_OPTIONS_INIT; do not touch */
    bool capture_stacks; /**< remember the stack of each allocation; default false */
    uint32_t max_frames; /**< of a stack, innermost first; up to and default 64 */
    const char *name;    /**< shown in /rmm; copied; default "tracking" */
} rmm_tracking_options_t;

#define RMM_TRACKING_OPTIONS_INIT                                                      \
    {                                                                                  \
        sizeof(rmm_tracking_options_t), false, 0, NULL                                 \
    }

/** A live block. */
typedef struct rmm_tracking_block {
    void *ptr;
    size_t bytes;        /**< as requested */
    void *const *frames; /**< return addresses, innermost first; NULL: not captured */
    size_t frame_count;
} rmm_tracking_block_t;

/**
 * Create a tracking adaptor over @p upstream, which it retains.
 *
 * @param options  NULL: all defaults
 * @param out      receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream or out is NULL, max_frames is too large, or
 *                                     options were not made with _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_tracking_adaptor_create(
    rmm_resource_t *upstream, const rmm_tracking_options_t *options,
    rmm_resource_t **out);

/**
 * Copy the list of live blocks, by rising address. Later calls do not change the copy.
 *
 * @param mr          a tracking adaptor
 * @param blocks_out  receives an array, to be freed with rmm_tracking_free(); NULL if there
 *                    is no live block
 * @param count_out   receives its length
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    mr is not a tracking adaptor, an argument is NULL
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_tracking_outstanding(
    rmm_resource_t *mr, rmm_tracking_block_t **blocks_out, size_t *count_out);

/** Free an array of rmm_tracking_outstanding(), with its stacks. NULL is ignored. */
RMM_API void rmm_tracking_free(rmm_tracking_block_t *blocks);

/** rmm_tracking_report(): to the log, level info. */
#define RMM_TRACKING_TO_LOG (-1)

/**
 * Print the live blocks, a line each: "PTR: BYTES B". If its stack was captured,
 * " : callstack:" follows, and below it the frames as "#0 in SYMBOL from FILE". Nothing is
 * written to a descriptor if no block is live; the log has a line then.
 *
 * @param fd  a descriptor open for writing, or RMM_TRACKING_TO_LOG
 * @return as rmm_tracking_outstanding(), and RMM_ERR_IO if it cannot be written; there is
 *         no SIGPIPE
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_tracking_report(rmm_resource_t *mr, int fd);

/**
 * Write the same text to a buffer, as snprintf() does: it ends with a NUL, and is truncated
 * if it does not fit.
 *
 * @param buffer      NULL only with bytes 0
 * @param bytes       size of the buffer, with the NUL
 * @param length_out  receives the length of the whole text without the NUL. The text was
 *                    truncated if this is not below bytes
 * @return as rmm_tracking_outstanding()
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_tracking_report_to_buffer(
    rmm_resource_t *mr, char *buffer, size_t bytes, size_t *length_out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_TRACKING_ADAPTOR_H */
