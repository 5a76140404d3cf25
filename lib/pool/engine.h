/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The engine of every pool: it hands out blocks of memory in stream order. A resource is an
 * engine with options and accounting around it. It knows the driver, no resource, no
 * statistics and no log.
 *
 *   engine.c    life, allocate and free on the fast path
 *   ladder.c    what is tried, in order, when the fast path finds no block
 *   streams.c   which stream freed what, and what of it no event covers
 *   events.c    events: recorded, asked, waited for
 *   captures.c  what captured graphs use, and when it comes back
 *   source.h    where memory comes from: chunks.c of somebody else's, range.c mapped here
 *   blocks.c    free blocks and their fit; index.c finds them
 *
 * How a block gets from one stream to another. Every stream that frees has a heap of its
 * own; its blocks are used again on that stream at once. Every free is stamped with the
 * engine's stamp, a number that rises. From time to time an event is recorded on the
 * stream of the freeing call, which that call proves to be alive; it covers what that
 * stream freed up to then, which is all that has a stamp up to the event's. When the event
 * is done, these blocks go to the clean heap, from which every stream takes; before that
 * they may go to another stream that waits for the event on the device. What no event covers
 * moves only behind a synchronise of the whole device. A stream handle is never kept.
 *
 * What no event covers is bounded for all streams together by a share of what the engine
 * holds (streams.c), because a stream may end, and then only a synchronise brings it back.
 *
 * One lock, under which one thread does the work of many (core/combiner.h). So a request is
 * refused, and memory taken from the source, only when one lock would have refused or taken
 * it. No call out is made under it: not to the source, the driver or the owner's callbacks
 * but those of engine_owner_t. Threads that miss take turns (core/turn.h) on the ladder.
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

/* One request, on its caller's stack. */
typedef struct engine_want {
    uint64_t bytes;              /* as requested, at least 1 */
    uint32_t units, align_units; /* in units of 256 bytes */
    rmm_stream_t stream;
    rmm_stream_key_t key;
    uint32_t owner_flags; /* for taken() */
} engine_want_t;

/* One free, likewise. */
typedef struct engine_gift {
    void *ptr;
    uint64_t bytes;
    rmm_stream_t stream;
    rmm_stream_key_t key;
    bool has_key;         /* else the stream cannot be told */
    uint32_t owner_flags; /* for given() */
} engine_gift_t;

/* What is counted; written under the lock. */
typedef struct engine_figures {
    uint64_t reserved_bytes; /* held from the source now */
    uint64_t free_bytes;     /* of these not handed out */
    uint64_t largest_free_bytes;
    uint64_t growth_count, sync_count, cross_stream_count;
    uint64_t
        map_count; /* pieces of a range that were mapped, anew or for the first time */
} engine_figures_t;

/*
 * What the owner is told, under the lock: it does no more than count. Each may be NULL.
 * taken() and given() come before another thread can know of the block, and only
 * largest_free_bytes of the figures is new then; figures() when anything else has changed
 * them.
 */
typedef struct engine_owner {
    void (*taken)(
        void *owner, const engine_want_t *want, uint64_t padding,
        const engine_figures_t *figures);
    void (*given)(
        void *owner, const engine_gift_t *gift, uint64_t padding,
        const engine_figures_t *figures);
    /* A block that can never be handed out again: its memory is neither live nor free. */
    void (*lost)(void *owner, uint64_t bytes);
    void (*figures)(void *owner, const engine_figures_t *figures);
} engine_owner_t;

/* Somebody else's memory, for chunks.c. Called without any lock. */
typedef struct engine_upstream {
    /* As an allocation that every stream may use at once. */
    rmm_status_t (*obtain)(void *owner, uint64_t bytes, void **ptr_out);
    void (*give_back)(void *owner, void *ptr, uint64_t bytes);
} engine_upstream_t;

typedef struct engine_plan {
    const rmm_driver_t *driver;
    int device;
    void *owner;
    const engine_owner_t *owner_ops;
    const engine_upstream_t *upstream; /* NULL: memory is mapped, or comes by add() */
    bool is_range;                     /* it is mapped into a range of addresses */
    bool is_shared; /* the clean heap is used for others than this engine's requests */
    bool shares_with_peers; /* of a range: peer devices may use it as well */
    uint64_t initial_bytes; /* multiples of 256 */
    uint64_t maximum_bytes; /* UINT64_MAX: none */
    uint32_t block_units;   /* every block has this size; 0: any */
    uint64_t growth_bytes;  /* of every chunk; 0: as the ladder sees fit */
} engine_plan_t;

/* A chunk's units fit 32 bits: 1 TiB, but for a granule. */
#define ENGINE_RUN_BYTES (((uint64_t)UINT32_MAX - 8192) * RMM_BLOCKS_UNIT)
/* A block's padding is its tag: 32 bits, of which two values are taken. */
#define ENGINE_BLOCK_BYTES (((uint64_t)UINT32_MAX) / RMM_BLOCKS_UNIT * RMM_BLOCKS_UNIT)

/*
 * An engine without memory: RMM_OK or RMM_ERR_OUT_OF_HOST_MEMORY. open() takes the initial
 * memory, with the same plan: RMM_OK, or what the source said. close() follows in any case:
 * it waits for the device, tells `left` of each block that is still out, if it is not NULL,
 * and gives all memory back. The lock lasts until destroy().
 */
rmm_status_t rmm__engine_create(const engine_plan_t *plan, engine_t **out);
rmm_status_t rmm__engine_open(engine_t *engine, const engine_plan_t *plan);
void rmm__engine_close(
    engine_t *engine, void (*left)(void *owner, void *ptr, uint64_t bytes));
void rmm__engine_destroy(engine_t *engine);

/*
 * RMM_OK; RMM_ERR_OUT_OF_MEMORY, or what the source answered: there is no room, and the
 * last error says why as far as the source or the driver is concerned;
 * RMM_ERR_OUT_OF_HOST_MEMORY.
 */
rmm_status_t
rmm__engine_alloc(engine_t *engine, const engine_want_t *want, void **ptr_out);

/* NULL, or why the free cannot be right: then nothing has changed. */
#define RMM_ENGINE_NO_SUCH_BLOCK                                                       \
    "not a live block of this resource: never allocated here, freed already, or not "  \
    "its first byte"
const char *rmm__engine_free(engine_t *engine, const engine_gift_t *gift);

/* Give back what is free down to keep_bytes. RMM_OK or why not. */
rmm_status_t rmm__engine_trim(engine_t *engine, uint64_t keep_bytes);

/* A copy of the figures as they are now. */
void rmm__engine_figures(engine_t *engine, engine_figures_t *out);

/* Is there anything that the next two would tell? */
bool rmm__engine_has_news(const engine_t *engine);
/* How much it grew, and what could not be unmapped and is held unused, since this was asked
 * last; without the lock. */
uint64_t rmm__engine_grown_bytes(engine_t *engine);
uint64_t rmm__engine_stuck_bytes(engine_t *engine);

/* The engine's lock, for what the owner counts by itself. */
void rmm__engine_lock(engine_t *engine);
void rmm__engine_unlock(engine_t *engine);
rmm_mutex_t *rmm__engine_mutex(engine_t *engine);

#endif /* RMM_POOL_ENGINE_H */
