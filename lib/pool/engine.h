/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of every pool: it allocates blocks in stream order. A resource adds options and
 * accounting. The engine calls the driver; it does not know resources, statistics or the log.
 *
 *   engine_life.c creation and destruction, trim
 *   alloc.c       allocate and free on the fast path
 *   alloc_slow.c      what is tried, in order, when the fast path finds no block
 *   streams.c     which stream freed which memory, and which event covers it
 *   open_frees.c  how much of it no event covers, and when an event is due
 *   events.c      records events and queries them
 *   waits.c       waits for events on the device, and for the device
 *   captures.c    memory that captured graphs use, and when it becomes free again
 *   graph_watch.c which of these graphs are gone
 *   exports.c     what another process needs to map a block
 *   sleep.c       gives all memory back to the device for a time; saved.c keeps the contents
 *   source.h      where memory comes from: chunks.c from an upstream, range.c by mapping
 *   blocks.c      free blocks and their fit; index.c finds them
 *
 * How a block moves from one stream to another. Every stream that frees has a heap of its
 * own, whose memory it can use again at once. Every free gets the engine's stamp, a number
 * that only rises. From time to time the engine records an event on the stream of a freeing
 * call; the call proves that the stream exists. The event covers all frees of that stream
 * with a stamp up to its own. When the event is done, these blocks move to the clean heap,
 * which every stream uses. Before that, they may move to another stream that waits for the
 * event on the device. Memory that no event covers moves only after a synchronise of the
 * device. The engine never keeps a stream handle.
 *
 * Memory that no event covers is bounded for all streams together by a share of what the
 * engine holds (open_frees.c): its stream may end, and then only a synchronise makes it clean.
 *
 * One lock: the engine refuses a request, or takes memory from the source, only if it would
 * do the same for one thread alone. It holds no lock while it calls the source, the driver or
 * a callback other than those of engine_owner_t. Threads that find no block take turns
 * (core/turn.h) on the slow path.
 */
#ifndef RMM_POOL_ENGINE_H
#define RMM_POOL_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include <rmm/status.h>
#include <rmm/stream.h>

#include "core/mutex.h"
#include "driver/driver.h"
#include "pool/blocks.h"

typedef struct engine engine_t;

/* A request to allocate, on its caller's stack. */
typedef struct engine_alloc {
    uint64_t bytes;             /* as requested, at least 1 */
    rmm_blocks_request_t block; /* to take for it */
    rmm_stream_t stream;
    rmm_stream_key_t key;
    bool is_marked; /* the owner's; kept with the block, for freed() */
} engine_alloc_t;

/* A request to free, likewise. */
typedef struct engine_free {
    void *ptr;
    uint64_t bytes;
    rmm_stream_t stream;
    rmm_stream_key_t key;
    bool has_key; /* false: the stream could not be identified */
} engine_free_t;

/* Written under the lock. */
typedef struct engine_figures {
    uint64_t reserved_bytes; /* held from the source now */
    uint64_t free_bytes;     /* of these, not handed out */
    uint64_t largest_free_bytes;
    uint64_t growth_count, sync_count, cross_stream_count;
    uint64_t
        map_count; /* pieces of a range that were mapped, again or for the first time */
    uint64_t asleep_bytes; /* given back by a sleep, not in reserved_bytes */
    uint64_t sleep_count, wake_count;
} engine_figures_t;

/*
 * The first four are called under the lock: the owner does no more than count. Each but freed()
 * may be NULL. allocated() and freed() are called before another thread can know of the block;
 * of the figures only largest_free_bytes is up to date then. figures() follows any other change
 * of them.
 */
typedef struct engine_owner {
    void (*allocated)(
        void *owner, const engine_alloc_t *alloc, uint64_t padding,
        const engine_figures_t *figures);
    void (*freed)(
        void *owner, const engine_free_t *freed, uint64_t padding,
        const engine_figures_t *figures, bool is_marked);
    /* A block is lost: its memory is neither live nor free, and never allocated again. */
    void (*lost)(void *owner, uint64_t bytes);
    void (*figures)(void *owner, const engine_figures_t *figures);
    /* Before so many bytes are mapped, and after figures() has reported them or the mapping failed:
     * RMM_OK, or the last error is what forbids it. Called without the lock, and may trim
     * this engine, too. NULL: nothing does. */
    rmm_status_t (*begin_growth)(void *owner, uint64_t bytes, uint64_t *promised_out);
    void (*end_growth)(void *owner, uint64_t promised);
} engine_owner_t;

/* The upstream of chunks.c. Called without any lock. */
typedef struct engine_upstream {
    /* Memory that every stream may use at once. */
    rmm_status_t (*obtain)(void *owner, uint64_t bytes, void **ptr_out);
    void (*give_back)(void *owner, void *ptr, uint64_t bytes);
} engine_upstream_t;

typedef struct engine_plan {
    const rmm_driver_t *driver;
    int device;
    void *owner;
    const engine_owner_t *owner_ops;
    const engine_upstream_t *upstream; /* NULL: memory is mapped, or another engine's */
    bool is_range;                     /* it is mapped into a range of addresses */
    bool is_shared; /* the clean heap also serves others than this engine's requests */
    bool shares_with_peers; /* of a range: peer devices may use it as well */
    bool is_exportable;     /* likewise: and other processes */
    uint64_t initial_bytes; /* multiples of 256 */
    uint64_t maximum_bytes; /* UINT64_MAX: none */
    uint32_t block_units;   /* every block has this size; 0: any */
    uint64_t growth_bytes;  /* of every chunk; 0: chunks.c decides */
} engine_plan_t;

/* A chunk's units fit 32 bits: just under 1 TiB. */
#define ENGINE_RUN_BYTES (((uint64_t)UINT32_MAX - 8192) * RMM_BLOCKS_UNIT)
/* A block's padding is its tag: 32 bits, of which two values are reserved. */
#define ENGINE_BLOCK_BYTES (((uint64_t)UINT32_MAX) / RMM_BLOCKS_UNIT * RMM_BLOCKS_UNIT)

/*
 * create() makes an engine without memory: RMM_OK or RMM_ERR_OUT_OF_HOST_MEMORY. open()
 * takes the initial memory, with the same plan: RMM_OK, or the source's error. close()
 * follows in any case: it waits for the device, calls `left`, if it is not NULL, for each
 * block that is still live, and gives all memory back. The lock lasts until destroy().
 *
 * Memory that another device may still use, where that could not be waited for, stays allocated:
 * then close() returns false. is_used: it returned false for a borrower of this memory
 * (refill.h).
 */
rmm_status_t rmm__engine_create(const engine_plan_t *plan, engine_t **out);
rmm_status_t rmm__engine_open(engine_t *engine, const engine_plan_t *plan);
bool rmm__engine_close(
    engine_t *engine, bool is_used,
    void (*left)(void *owner, void *ptr, uint64_t bytes));
void rmm__engine_destroy(engine_t *engine);

/*
 * RMM_OK; RMM_ERR_OUT_OF_MEMORY, or the source's error: there is no room, and the last error
 * has the source's or the driver's reason; RMM_ERR_OUT_OF_HOST_MEMORY.
 */
rmm_status_t
rmm__engine_alloc(engine_t *engine, const engine_alloc_t *alloc, void **ptr_out);

/* NULL, or why the free is invalid: then nothing has changed. */
#define RMM_ENGINE_NO_SUCH_BLOCK                                                       \
    "not a live block of this resource: never allocated here, freed already, or not "  \
    "its first byte"
const char *rmm__engine_free(engine_t *engine, const engine_free_t *freed);

/* Synchronise the device: every block freed before becomes clean, but for unproven ones if other
 * devices may work. RMM_OK or why not. */
rmm_status_t rmm__engine_synchronise(engine_t *engine);

/*
 * Free, and the block is not used again until rmm__engine_synchronise(), which is made also when a
 * request would fail otherwise and when the engine is trimmed. *kept_bytes_out: how many bytes the
 * engine keeps like this. A free that a capture records, and any where the process sees several
 * devices, is a usual one: 0.
 */
const char *rmm__engine_free_late(
    engine_t *engine, const engine_free_t *freed, uint64_t *kept_bytes_out);

/* Give free memory back, down to keep_bytes. RMM_OK or why not. */
rmm_status_t rmm__engine_trim(engine_t *engine, uint64_t keep_bytes);

/*
 * A sleep: the contents of the live blocks are in host memory, the physical memory is the device's
 * again, and the addresses stay the engine's. Only one with a range can sleep.
 *
 *   awake -> settling -> falling -> asleep -> waking -> awake
 *
 * Settling: no thread begins to map, unmap or grow, and those that do so end. Falling to waking:
 * no request gets a block; it is refused, or waits until the engine is awake. A free is accepted
 * in every state. A failure of any step undoes it, or leaves the engine asleep with all contents.
 */
typedef enum engine_sleep_state {
    ENGINE_AWAKE,
    ENGINE_SETTLING,
    ENGINE_FALLING,
    ENGINE_ASLEEP,
    ENGINE_WAKING
} engine_sleep_state_t;

/* Memory of the host that every stream may use at once. Called without any lock. */
typedef struct engine_host {
    rmm_status_t (*obtain)(void *context, uint64_t bytes, void **ptr_out);
    void (*give_back)(void *context, void *ptr, uint64_t bytes);
    void (*close)(void *context); /* the engine calls no other of them any more */
} engine_host_t;

typedef struct engine_sleep_plan {
    const engine_host_t *host;
    void *host_context; /* the engine's, whatever the call returns: it will close it */
    bool keeps_host;    /* the buffers stay for the next sleep */
    bool lets_wait;     /* requests wait until the engine is awake */
    bool discards_all;
    const void *const *discarded; /* blocks whose contents are not kept */
    size_t discarded_count;
} engine_sleep_plan_t;

/*
 * Waits for another thread's sleep or wake, for threads that map or unmap, and for the device.
 * RMM_OK, or
 *   RMM_ERR_UNSUPPORTED         the engine has no range
 *   RMM_ERR_ASLEEP              it sleeps already
 *   RMM_ERR_IN_USE              others may use its memory, a stream captures, or a thread has not
 *                               ended a growth or a trim in time
 *   RMM_ERR_INVALID_ARGUMENT    a discarded block is no live block of it
 *   RMM_ERR_OUT_OF_HOST_MEMORY  or another status of the host's obtain()
 *   RMM_ERR_CUDA                the driver failed
 * After a failure it is awake as before. If the driver refuses that, too, it is asleep:
 * the state tells.
 */
rmm_status_t rmm__engine_sleep(engine_t *engine, const engine_sleep_plan_t *plan);

/* RMM_OK: it is awake. Else it is asleep as before: RMM_ERR_OUT_OF_MEMORY, RMM_ERR_CUDA, or what
 * the owner's begin_growth() returned. */
rmm_status_t rmm__engine_wake(engine_t *engine);

engine_sleep_state_t rmm__engine_sleep_state(engine_t *engine);

/* The addresses of an engine that maps its memory: how many bytes; 0: none. */
uint64_t rmm__engine_addresses(const engine_t *engine, void **address_out);

/*
 * An export to another process. rest_of_block(): how much of a live block is left from this byte
 * on; 0: none is there. export(): the physical memory behind these bytes of it, in the order of
 * the addresses, allocated for the caller. export_withdraw(): nothing of that has left the process.
 * export_types(): the RMM_DRIVER_HANDLE_* that it can be
 * exported by; 0: none. exported_bytes(): of pieces that were exported and are still the engine's,
 * which must not be given up behind a live block, because importers would keep them. One load.
 */
typedef struct engine_exported {
    char *address;
    uint64_t bytes;
    rmm_driver_physical_t physical;
} engine_exported_t;

uint64_t rmm__engine_rest_of_block(engine_t *engine, const void *ptr);
rmm_status_t rmm__engine_export(
    engine_t *engine, const void *ptr, uint64_t bytes, engine_exported_t **found_out,
    uint32_t *count_out);
void rmm__engine_export_withdraw(
    engine_t *engine, const engine_exported_t *found, uint32_t count);
uint32_t rmm__engine_export_types(const engine_t *engine);
uint64_t rmm__engine_exported_bytes(const engine_t *engine);

/* A copy of the figures as they are now. */
void rmm__engine_figures(engine_t *engine, engine_figures_t *out);

/* The events since the last call. */
typedef struct engine_news {
    uint64_t grown_bytes;
    uint64_t
        stuck_bytes; /* not unmapped or released: of no use to the pool and the device */
    uint32_t shut_out;  /* devices that were refused access, each of them once */
    int shut_out_error; /* the driver's, of one of them */
} engine_news_t;

/* Without the lock. has_news(): there is something. */
bool rmm__engine_has_news(const engine_t *engine);
engine_news_t rmm__engine_news(engine_t *engine);

/* The engine's lock, for the owner's own accounting. */
rmm_mutex_t *rmm__engine_mutex(engine_t *engine);

#endif /* RMM_POOL_ENGINE_H */
