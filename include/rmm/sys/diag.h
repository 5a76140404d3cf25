/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/sys/diag.h
 *
 * The seam between this library and a diagnosis library (tools/inject): which blocks
 * live, and what a GPU, real or simulated, was told to do. For authors of such
 * libraries; programs do not need it. Versioned by struct_size: fields are appended.
 *
 * Lifetime: hooks and their context must stay valid until the process ends.
 *
 * Threads: every hook may be called from any thread at any time, never with a lock of
 * this library held.
 */
#ifndef RMM_SYS_DIAG_H
#define RMM_SYS_DIAG_H

#include <stddef.h>
#include <stdint.h>

#include <rmm/export.h>
#include <rmm/status.h>
#include <rmm/stream.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A block that a user holds (not what one resource takes from another). */
typedef struct rmm_diag_block_v1 {
    uint64_t address;
    uint64_t bytes;       /**< as requested, > 0 */
    uint64_t stream_id;   /**< as cudaStreamGetId; 0: legacy default stream;
                               UINT64_MAX: the driver did not say */
    uint32_t resource_id; /**< instance of the resource the user called */
    int32_t device;       /**< CUDA ordinal; -1: host memory */
} rmm_diag_block_v1_t;

/** What the GPU was told to do. Append only. */
typedef enum rmm_diag_event_kind {
    RMM_DIAG_LAUNCH = 1,       /**< a kernel */
    RMM_DIAG_COPY = 2,         /**< words[0] destination, words[1] source */
    RMM_DIAG_SET = 3,          /**< words[0] destination */
    RMM_DIAG_EVENT_RECORD = 4, /**< words[0] event handle */
    RMM_DIAG_EVENT_WAIT = 5,   /**< words[0] event handle */
    RMM_DIAG_STREAM_SYNC = 6,
    RMM_DIAG_DEVICE_SYNC = 7,
    RMM_DIAG_STREAM_DESTROY = 8,
    RMM_DIAG_EVENT_SYNC = 9 /**< words[0] event handle */
} rmm_diag_event_kind_t;

typedef struct rmm_diag_event_v1 {
    size_t struct_size;
    uint32_t kind;         /**< rmm_diag_event_kind_t */
    int32_t device;        /**< CUDA ordinal */
    rmm_stream_t stream;   /**< as passed by the program */
    const void *function;  /**< launch: identifies the kernel, else NULL */
    const char *name;      /**< launch: kernel name, valid during the call only */
    const uint64_t *words; /**< launch: every aligned 8-byte word of the parameters */
    size_t word_count;
    uint64_t bytes;     /**< copy, set: length; else 0 */
    uint32_t capturing; /**< 1: recorded into a graph, not executed now */
    uint32_t reserved;
} rmm_diag_event_v1_t;

typedef void (*rmm_diag_event_fn)(void *context, const rmm_diag_event_v1_t *event);

/** Called after a block was obtained, and before a block can be handed out again. */
typedef struct rmm_diag_hooks_v1 {
    size_t struct_size;
    void *context;
    void (*on_alloc)(void *context, const rmm_diag_block_v1_t *block);
    void (*on_free)(void *context, const rmm_diag_block_v1_t *block);
} rmm_diag_hooks_v1_t;

/** What the library does for the one that attaches. */
typedef struct rmm_diag_services_v1 {
    size_t struct_size;
    /** "cuda" or "sim": which source of events is the right one; static. */
    const char *driver_name;
    /** Simulated GPU: send its events to fn from now on; NULL for a real one. */
    void (*observe)(rmm_diag_event_fn fn, void *context);
    /**
     * Map a zeroed file of @p bytes beside this process's segment, named
     * "<segment>.<suffix>", where rmmfs finds it; private memory where the process does
     * not publish. Stays mapped until exit; not inherited by a forked child. RMM_ERR_IO
     * where the file cannot be made (no space: fewer bytes may fit).
     */
    rmm_status_t (*side_file)(const char *suffix, size_t bytes, void **memory_out);
} rmm_diag_services_v1_t;

/**
 * Attach a diagnosis library, at most one, once per process. Opens the driver if that
 * has not happened: so do not call this from InitializeInjection(), which runs while the
 * driver is being opened. A library loaded through CUDA_INJECTION64_PATH exports
 * RMM_DIAG_INJECTED_SYMBOL instead, and attaches when it is called.
 *
 * @param hooks         copied; struct_size set
 * @param services_out  struct_size set by the caller; receives the services
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  a NULL, or a struct_size smaller than v1
 *         RMM_ERR_UNSUPPORTED       another one is attached
 *         RMM_ERR_NO_DEVICE         no usable GPU
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_diag_attach_v1(
    const rmm_diag_hooks_v1_t *hooks, rmm_diag_services_v1_t *services_out);

/**
 * What an injected library exports. This library looks for it once, just before it would
 * report its first block: in the library that CUDA_INJECTION64_PATH names if that is
 * loaded, else among the process's global symbols. Called with no lock held and with
 * rmm_diag_attach_v1, so that it works however this library was linked or loaded. No
 * block is missed: other threads wait until it returns.
 */
#define RMM_DIAG_INJECTED_SYMBOL "rmm_diag_injected_v1"

typedef rmm_status_t (*rmm_diag_attach_fn)(
    const rmm_diag_hooks_v1_t *hooks, rmm_diag_services_v1_t *services_out);
typedef void (*rmm_diag_injected_fn)(rmm_diag_attach_fn attach);

#ifdef __cplusplus
}
#endif

#endif /* RMM_SYS_DIAG_H */
