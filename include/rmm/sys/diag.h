/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/sys/diag.h
 *
 * The interface between this library and a diagnosis library (tools/inject): the live
 * blocks, and the work that a GPU, real or simulated, was given. For authors of such
 * libraries; programs do not need it. Versioned by struct_size: fields are appended.
 *
 * Lifetime: hooks and their context must stay valid until the process ends.
 *
 * Threads: every hook may be called from any thread at any time, never with a lock of
 * this library held.
 */
#ifndef RMM_SYS_DIAG_H
#define RMM_SYS_DIAG_H

#include <stdbool.h>
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
    /* what follows: where rmm_diag_services_v1_t says that blocks have it */
    rmm_stream_t stream; /**< as passed by the program */
    uint32_t flags;      /**< RMM_DIAG_BLOCK_... */
    uint64_t end;        /**< of an allocation: up to here only this block may use the
                       memory behind it; 0: unknown */
    /* of the resource, at an allocation; valid during the call; NULL: not told */
    const char *resource_type;
    const char *resource_name;
} rmm_diag_block_v1_t;

/** The block is usable in stream order: work on other streams must be ordered after the
 * allocation, and the free must be ordered after that work. Without this flag every stream
 * may use the block at once, and its free waits for all work. */
#define RMM_DIAG_BLOCK_IN_STREAM_ORDER 1u
/** Allocated so that every stream may use it at once, whatever the resource (a call that
 * waits); of a free: the program has waited for all uses. */
#define RMM_DIAG_BLOCK_SYNC 2u
/** Of rmm_diag_driver_alloc_v1(): a piece of a range of addresses that is mapped in pieces. It is
 * counted, but not reported through on_alloc(): what the program uses as one block may lie on
 * several. */
#define RMM_DIAG_BLOCK_PIECE 4u
/** The resource keeps the memory when the block is freed, until on_gone() says that it has given
 * the memory back: until then only later blocks of this resource can lie there. */
#define RMM_DIAG_BLOCK_KEPT 8u
/** Its stream captures a graph. A free: the graph uses the memory at each launch. An allocation
 * with RMM_DIAG_BLOCK_RETURNED and RMM_DIAG_BLOCK_IN_STREAM_ORDER: the graph allocates it then. */
#define RMM_DIAG_BLOCK_CAPTURED 16u
/** When the block is freed the driver has its memory, and hands it out again. */
#define RMM_DIAG_BLOCK_RETURNED 32u
/** Of an allocation: the host cannot access it. Such memory is being filled still when a call that
 * fills it returns, also one that is not asynchronous by its name. */
#define RMM_DIAG_BLOCK_GPU_ONLY 64u

/** Of a free: the program did not make it. The block's resource ends, and frees what is left. */
#define RMM_DIAG_BLOCK_LEFT 128u

/** A kind of work that the GPU gets. Append only. */
typedef enum rmm_diag_event_kind {
    RMM_DIAG_LAUNCH = 1,       /**< a kernel */
    RMM_DIAG_COPY = 2,         /**< words[0] destination, words[1] source; with four
                                    words, [2] and [3] are the bytes from the first to the
                                    last that each side spans (a copy with pitches) */
    RMM_DIAG_SET = 3,          /**< words[0] destination */
    RMM_DIAG_EVENT_RECORD = 4, /**< words[0] event handle */
    RMM_DIAG_EVENT_WAIT = 5,   /**< words[0] event handle */
    RMM_DIAG_STREAM_SYNC = 6,  /**< the host waited for it, or a query found it done */
    RMM_DIAG_DEVICE_SYNC = 7,  /**< the host waited for `device`; -1: it may have waited
                                      for all devices */
    RMM_DIAG_STREAM_DESTROY = 8, /**< before the call: the handle may be reused soon */
    RMM_DIAG_EVENT_SYNC = 9,     /**< words[0] event handle; also a successful query */
    RMM_DIAG_PREFETCH = 10,      /**< words[0] start of the range */
    RMM_DIAG_STREAM_CREATE = 11, /**< words[0]: 1 it does not wait for the legacy
                                      default stream, else 0 */
    RMM_DIAG_EVENT_DESTROY = 12, /**< words[0] event handle */
    RMM_DIAG_CAPTURE_BEGIN = 13,
    RMM_DIAG_CAPTURE_END = 14,
    RMM_DIAG_STREAM_UNSURE = 15, /**< the stream waits for something that no event here
                                      describes, so its order is unknown */
    RMM_DIAG_ORDER_LOST = 16,    /**< from now on the order of all streams is unknown */
    RMM_DIAG_GRAPH_LAUNCH =
        17, /**< words[0] graph; its kernels and copies are not reported */
    RMM_DIAG_GRAPH_MADE =
        18, /**< words[0] a new graph: [1] 0: it is empty, and about to be
                                     captured, else the graph whose nodes it has (an
                                     executable, a clone); [2] if it is there, 1: it
                                     cannot be launched itself (a clone) */
    RMM_DIAG_GRAPH_CHANGED =
        19, /**< words[0] graph, 0: any; its nodes are not known any more */
    RMM_DIAG_GRAPH_ENDS = 20, /**< words[0] graph: before the call */
    RMM_DIAG_GRAPH_PART =
        21, /**< words[0] graph: it has the nodes of graph [1] in addition */
    RMM_DIAG_STREAM_SEEN =
        22 /**< a stream that exists: words[0] as of RMM_DIAG_STREAM_CREATE, words[1] its id
                (cudaStreamGetId); UINT64_MAX: not known */
} rmm_diag_event_kind_t;

/** A parameter of so many bytes is a large struct, which programs often fill only in part: the
 * rest has addresses of earlier calls. PyTorch's arrays of 16 sizes are as large. */
#define RMM_DIAG_LARGE_STRUCT_BYTES 128u
/** Where it is not known which bytes are one parameter, all of them are judged up to this. */
#define RMM_DIAG_SMALL_BUFFER_BYTES 256u

typedef struct rmm_diag_event_v1 {
    size_t struct_size;
    uint32_t kind;         /**< rmm_diag_event_kind_t */
    int32_t device;        /**< CUDA ordinal; -1: unknown */
    rmm_stream_t stream;   /**< as passed by the program */
    const void *function;  /**< launch: identifies the kernel, else NULL */
    const char *name;      /**< launch: kernel name; copy, set, prefetch: the function
                                that was called; valid during the call only */
    const uint64_t *words; /**< launch: every aligned 8-byte word of the parameters */
    size_t word_count;
    uint64_t bytes;     /**< copy, set, prefetch: length; else 0 */
    uint32_t capturing; /**< 1: recorded into a graph, not executed now */
    uint32_t before; /**< 1: copy, set, prefetch that is about to be made, with what the
                             program passed; 0: the call has succeeded */
    uint32_t has_pitch; /**< copy, set: bytes in between do not belong to it */
    uint32_t is_sync;   /**< copy, set: the host waits for it */
    uint64_t
        graph; /**< launch, copy, set, graph launch: recorded into this graph; 0: executed
                         now, or into a graph that is not known */
    size_t
        stale_words; /**< launch: so many words, the last ones, are of large structs */
} rmm_diag_event_v1_t;

/** The diagnosis library's function that receives each event; its context is that of the hooks. */
typedef void (*rmm_diag_event_fn)(void *context, const rmm_diag_event_v1_t *event);

/** on_alloc runs after a block was allocated, on_free before its memory can be reused. */
typedef struct rmm_diag_hooks_v1 {
    size_t struct_size;
    void *context;
    void (*on_alloc)(void *context, const rmm_diag_block_v1_t *block);
    void (*on_free)(void *context, const rmm_diag_block_v1_t *block);
    /** Minimum number of unused bytes behind each block of a GPU, for guards, or to tell the
     * end of a block from the begin of the next; 0: none.
     * Resources that exist already are not changed. */
    size_t guard_bytes;
    /** Freed memory that a resource had kept (RMM_DIAG_BLOCK_KEPT) may be used by others from
     * now on: the resource is about to return it to where it came from, or has passed it to a
     * function of the program. NULL: not called. */
    void (*on_gone)(void *context, uint64_t address, uint64_t bytes);
    /** The number of freed bytes that each pool should keep from being reused, for pools that
     * were created while RMM_DIAG_QUARANTINE was set; 0: none. NULL: 0. */
    uint64_t (*quarantine_bytes)(void *context);
    /** A resource divides this memory into blocks: until on_gone() only the holders of blocks
     * use it. NULL: not called. */
    void (*on_pool)(void *context, uint64_t address, uint64_t bytes);
    /** After on_free(), if there was one: the resource refuses this free. `bytes` may be 0. Or it
     * mends the size, and on_free() follows. NULL: not called. */
    void (*on_refused)(void *context, const rmm_diag_block_v1_t *block);
} rmm_diag_hooks_v1_t;

/** Runs in stream order on a simulated GPU, with a copy of what queue() was given. */
typedef void (*rmm_diag_work_fn)(const void *const *parameter);

/** Services of this library for the attached diagnosis library. */
typedef struct rmm_diag_services_v1 {
    size_t struct_size;
    /** "cuda", "hip" or "sim": selects the source of events; static. */
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
    /** sizeof(rmm_diag_block_v1_t) in this library. */
    size_t block_bytes;
    /**
     * Simulated GPU: queue work on a stream of a device without reporting an event; NULL for
     * a real GPU. Returns a cudaError_t. For a capturing stream it returns
     * cudaErrorStreamCaptureUnsupported and does not invalidate the capture.
     */
    int (*queue)(
        int device, rmm_stream_t stream, rmm_diag_work_fn fn, const void *parameter,
        size_t bytes);
    /**
     * Simulated GPU: a stream's flags (RMM_STREAM_NON_BLOCKING) and id; the id is UINT64_MAX while
     * the stream captures. NULL for a real GPU. Returns a cudaError_t.
     */
    int (*stream_facts)(rmm_stream_t stream, uint32_t *flags_out, uint64_t *id_out);
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
 *         RMM_ERR_INVALID_ARGUMENT  an argument is NULL, or hooks->struct_size or
 *                                   services_out->struct_size is too small
 *         RMM_ERR_UNSUPPORTED       another one is attached
 *         RMM_ERR_NO_DEVICE         no usable GPU
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_diag_attach_v1(
    const rmm_diag_hooks_v1_t *hooks, rmm_diag_services_v1_t *services_out);

/**
 * Count memory that the program took from the driver directly: it becomes a
 * block of a resource of type "driver", one for each GPU and one for the host's memory, which
 * /rmm shows like any other. Limits do not apply, because the program already has the
 * memory. An injected library calls this after the driver's call, unless
 * rmm_diag_in_library_v1() is true. A block with the address of a known block replaces it,
 * because that block's free was missed.
 *
 * @param block  the block; stream_id and resource_id are ignored
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    NULL, no address, no bytes, or an unknown flag
 *         RMM_ERR_OUT_OF_HOST_MEMORY  no host memory for the record; the block is not
 *                                     counted
 *         RMM_ERR_UNSUPPORTED         a device beyond those that are published, a forked child,
 *                                     after rmm_diag_driver_forget_v1(), or while another
 *                                     thread is opening the driver for more than a second
 *         RMM_ERR_NO_DEVICE           no usable GPU
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_diag_driver_alloc_v1(const rmm_diag_block_v1_t *block);

/**
 * The program is about to return such a block to the driver. Call this before the driver's
 * call, because another thread may get the same address at once.
 *
 * @param block  address, stream and flags are read
 * @return size of the block in bytes; 0 if no known block begins at this address
 */
RMM_API uint64_t rmm_diag_driver_free_v1(const rmm_diag_block_v1_t *block);

/**
 * The program has another copy of this library, which counts the memory that it takes from the
 * driver: all blocks of rmm_diag_driver_alloc_v1() count as freed, and no further ones are
 * counted.
 */
RMM_API void rmm_diag_driver_forget_v1(void);

/**
 * True while the calling thread takes memory from the driver for this library, or runs a
 * function of a custom resource: the resource counts that memory.
 */
RMM_API bool rmm_diag_in_library_v1(void);

/**
 * True while the calling thread copies memory for this library itself, as a pool does that falls
 * asleep or wakes: no use of a block, and the copy may go across the ends of several.
 */
RMM_API bool rmm_diag_copies_v1(void);

/**
 * The function that an injected library exports. This library looks for it once, just before it
 * would report its first block: in the library that CUDA_INJECTION64_PATH names if that is loaded,
 * else among the process's global symbols. Called with no lock held and with rmm_diag_attach_v1, so
 * that it works however this library was linked or loaded. No block is missed: other threads wait
 * until it returns.
 */
#define RMM_DIAG_INJECTED_SYMBOL "rmm_diag_injected_v1"

/** rmm_diag_attach_v1(), as the injected library receives it. */
typedef rmm_status_t (*rmm_diag_attach_fn)(
    const rmm_diag_hooks_v1_t *hooks, rmm_diag_services_v1_t *services_out);
/** The function that an injected library exports as RMM_DIAG_INJECTED_SYMBOL. */
typedef void (*rmm_diag_injected_fn)(rmm_diag_attach_fn attach);

#ifdef __cplusplus
}
#endif

#endif /* RMM_SYS_DIAG_H */
