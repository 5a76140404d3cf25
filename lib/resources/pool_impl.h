/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the pool, shared by its files:
 *   fixed_size_resource.c  a pool of blocks of one size: its options
 *   pool_resource.c  the ops, the creator, the books
 *   pool_growth.c    how it grows, and by how much
 *   pool_ladder.c    what is tried, in order, when the fast path finds no block
 *   pool_streams.c   who freed what behind which event
 *   pool_capture.c   what captured graphs use, and when it comes back
 *   pool_chunks.c    memory from upstream, addresses <-> units
 *   pool_range.c     memory of a virtual pool: mapped where it is wanted
 *   pool_gather.c    its free pieces: mapped anew, or given back
 *   pool_pieces.h    what these two share
 *   pool_trim.c      what is free goes back
 *   pool_hopeless.c  what cannot be served, without trying again
 *   pool_report.c    what is said when nothing helped
 *   pool_crowd.c     many threads at once: the front (pool_front.h)
 *
 * How a block gets from one stream to another. Every stream that frees has a slot with a
 * heap of its own: its blocks are reused on that stream at once. Frees are stamped with
 * the slot's open stamp. After POOL_BATCH_FREES frees, or once they are POOL_BATCH_BYTES
 * or a POOL_BATCH_SHARE-th of the pool, though at least POOL_BATCH_LEAST (and after the
 * very first free of a stream), the stamp is closed: an event is recorded on the freeing
 * call's stream, which that call proves to be alive, and covers every free stamped so
 * far. Behind that event the blocks may go to the clean heap (event done) or to another
 * stream's heap (that stream waits for the event). Blocks that no event covers move only
 * behind a synchronise of the whole device. A stream handle is never kept.
 *
 * Alone. While one stream only has asked the pool for anything, nobody waits for its
 * blocks, and its batches are POOL_BATCH_ALONE times as large. What no event covers when
 * another stream comes is a 64th of the pool at most (or 1 MiB, if that is more) and one
 * block; it is covered with the first stream's next free. Should none come, it waits for a
 * synchronise.
 *
 * Capture. Memory freed on a capturing stream is used again whenever the graph is
 * launched, on any stream, which no event covers: it stays in a slot of that capture until
 * the graph is gone for good.
 *
 * Range. A virtual pool has one chunk for good: its range of addresses. What has no memory
 * behind it is free in the heap `absent`, which no request is served from. Growth moves a
 * part of it to the heap `moving`, maps it without any lock but grow_lock, and moves it on
 * to the clean heap, where it merges with its neighbours; trim goes the other way. Only
 * the clean heap is unmapped: no work of the GPU and no graph can use it.
 *
 * Locking: `lock` protects every field below it; no driver or upstream call is made under
 * it. `grow_lock` lets one thread at a time ask upstream or synchronise the device, so
 * that two threads that miss together do not both take a chunk; it is held across these
 * calls on purpose, and taken before `lock`.
 */
#ifndef RMM_RESOURCES_POOL_IMPL_H
#define RMM_RESOURCES_POOL_IMPL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include <rmm/pool_resource.h>

#include "core/assert.h"
#include "core/mutex.h"
#include "core/resource_impl.h"
#include "driver/driver.h"
#include "suballoc/suballoc.h"

enum {
    POOL_BATCH_FREES = 64, /* as XLA's virtual-memory allocator batches its markers */
    POOL_STREAM_BATCHES =
        16 /* events kept per stream; then the oldest two become one */
};
#define POOL_BATCH_BYTES ((uint64_t)64 * 1024 * 1024)
#define POOL_BATCH_LEAST ((uint64_t)64 * 1024)
#define POOL_BATCH_SHARE                                                               \
    1024                    /* of what the pool holds: a smaller limit than the bytes */
#define POOL_BATCH_ALONE 16 /* times as much, while no other stream wants it */
/* Blocks of one size are counted: from 4 to POOL_BATCH_FREES, else such a share of all. */
#define POOL_BATCH_BLOCKS 4
#define POOL_BATCH_BLOCKS_SHARE 32
#define POOL_LARGE_UNITS 1024u /* 256 KiB: worth asking other streams' events for */
#define POOL_UNIT ((uint64_t)RMM_SUBALLOC_UNIT_BYTES)
/* A chunk's units, behind their phase, fit 32 bits: 1 TiB, all but 2 MiB. */
#define POOL_CHUNK_BYTES (((uint64_t)UINT32_MAX - RMM_SUBALLOC_PHASES) * POOL_UNIT)

/* A capture that the pool was used in (pool_capture.c). */
typedef struct pool_capture pool_capture_t;

/* All frees of the slot stamped up to `stamp` are behind `event`. */
typedef struct pool_batch {
    uint64_t stamp;
    rmm_driver_event_t event;
} pool_batch_t;

typedef struct pool_stream {
    rmm_stream_key_t key;
    rmm_heap_t heap;
    uint32_t pins;       /* calls that use this slot without the lock */
    uint64_t open_stamp; /* of frees that no event covers yet; from 1 */
    uint32_t open_frees; /* so stamped */
    uint64_t open_bytes;
    uint64_t sync_stamp; /* a synchronise under way covers up to here; 0: none */
    bool eventless;      /* an event proves nothing: a capture's slot, or unproven */
    pool_capture_t *capture; /* of a capture's shelf; others NULL */
    bool foreign;            /* a stream of another device: no event of ours fits it */
    bool native;             /* a stream of the pool's device: an event was recorded */
    bool doubtful;           /* not native, and holds frees that nothing waited for: our
                            device's synchronise may say nothing of them */
    uint32_t batch_count;
    pool_batch_t batches[POOL_STREAM_BATCHES]; /* oldest first, stamps rising */
} pool_stream_t;

typedef struct pool_chunk {
    char *address;
    uint64_t bytes;
    uint32_t first_unit;
    uint32_t serial; /* rises: the youngest has the highest */
} pool_chunk_t;

/* Physical memory, and where in the range it is mapped. */
typedef struct pool_piece {
    uint64_t offset, bytes;
    rmm_driver_physical_t physical;
    bool is_stuck; /* it could be neither used nor unmapped; its addresses are lost */
    bool is_free;  /* while free pieces are gathered: all of it is clean */
} pool_piece_t;

/* Of a virtual pool; all zero in others. */
typedef struct pool_range {
    char *address; /* NULL: memory comes from upstream */
    uint64_t bytes, granule_bytes;
    uint32_t first_unit;
    rmm_heap_t absent;      /* addresses without memory */
    rmm_heap_t moving;      /* being mapped or unmapped; empty but under grow_lock */
    rmm_heap_t lost;        /* could not be unmapped: never used again */
    uint32_t peers;         /* bit d: device d may use what is mapped */
    uint64_t initial_bytes; /* what the pool begins with; 0: it grows from nothing */
    /* grow_lock protects all below */
    uint64_t tidied_bytes; /* mapped anew since the pool grew last */
    uint32_t tidied_count; /* so often it was synchronised for that since then */
    uint32_t tidied_ever;  /* and since it was made */
    pool_piece_t *pieces;  /* by offset */
    uint32_t piece_count, piece_capacity;
} pool_range_t;

/* Who waited for the lock (pool_crowd.c). */
typedef struct pool_crowd {
    uint64_t since;  /* allocations ever when the window began */
    uint32_t waits;  /* in it */
    bool is_crowded; /* who has the lock opens a front when he gives it back */
} pool_crowd_t;

typedef struct pool {
    rmm_resource_t base; /* first member */
    const rmm_driver_t *driver;
    _Atomic(struct pool_front *) front; /* pool_front.h; NULL: not open, or a shard */
    /* Written under `lock`, read without it where there is a front: */
    _Atomic(uint32_t)
        far_chunks; /* whose units are not numbered by their distance from: */
    _Atomic(uintptr_t) near_start; /* the address that unit 0 has, or would have */
    /* What the ladder found out (pool_hopeless.c); 0: nothing. Written without the lock. */
    _Atomic(uint64_t) hopeless;
    uint64_t maximum_bytes; /* UINT64_MAX: none */
    uint32_t block_units;   /* every block has this size; 0: any */
    uint64_t growth_bytes;  /* of every chunk; 0: as the ladder sees fit */
    bool keeps_barrier;     /* a block for rmm__driver_barrier() */
    rmm_mutex_t grow_lock;
    pool_range_t range;

    rmm_mutex_t lock; /* protects all below */
    pool_crowd_t crowd;
    rmm_suballoc_t *blocks;
    rmm_heap_t clean;  /* free for any stream */
    bool shares_books; /* others than the holder of `lock` write the books */
    uint64_t reserved_bytes;
    uint64_t absent_units;       /* in the heaps `absent`, `moving` and `lost` */
    uint64_t largest_free_units; /* over all heaps */
    rmm_heap_t largest_heap;     /* one that has such a block */

    pool_stream_t **streams; /* hash table by key, at most half full; NULL: empty */
    uint32_t stream_capacity, stream_count;
    uint32_t batch_slots;       /* of these, that have a batch */
    pool_stream_t *last_stream; /* most recent hit */
    uint32_t watched_captures;  /* whose graph will tell when it is gone */
    uint64_t graphs_gone;       /* of the process, when they were last looked for */
    bool is_only_device;        /* constant: the process sees no other */
    rmm_stream_key_t sole;      /* the only stream so far; none: no bit is 0 */
    bool is_shared;             /* there was another one */
    uint32_t batch_frees;       /* what a slot may have open; at either the */
    uint64_t batch_bytes;       /* stamp is closed */
    pool_stream_t *unproven;    /* frees on streams that could not be told: a slot of
                                   its own, emptied only behind a synchronise */
    pool_chunk_t *by_address, *by_unit; /* the same chunks in two orders */
    uint32_t chunk_count, chunk_capacity;
    uint32_t chunk_serial;
    rmm_driver_event_t *spare_events;
    uint32_t spare_count, spare_capacity;
    uint32_t hopeless_serial; /* of tries to find out what is hopeless */
    _Atomic(uint64_t) hopeless_graphs;
    _Atomic(uint64_t) device_free_bytes, device_free_ns; /* when it was asked last */
} pool_t;

/* A request as the ladder passes it on. */
typedef struct pool_want {
    const rmm_request_t *request;
    rmm_stream_key_t key;
    uint32_t units, align_units;
} pool_want_t;

static inline pool_t *pool_from_base(rmm_resource_t *mr)
{
    return RMM_CONTAINER_OF(mr, pool_t, base);
}

/* --- pool_resource.c ---------------------------------------------------------------- */

/* What a pool is to be; sizes are multiples of 256. */
typedef struct pool_plan {
    const rmm_resource_ops_t *ops; /* the pool's or rmm__fixed_size_ops */
    const char *name;              /* NULL: the type's */
    uint64_t initial_bytes, maximum_bytes;
    uint64_t block_bytes; /* 0: any, else at most POOL_BLOCK_BYTES */
    uint64_t chunk_bytes; /* a multiple of block_bytes; 0: as the ladder sees fit */
    uint64_t flags;       /* RMM_POOL_* */
} pool_plan_t;

/* A block's padding is its tag: 32 bits, of which one value is taken. */
#define POOL_BLOCK_BYTES (((uint64_t)UINT32_MAX) / POOL_UNIT * POOL_UNIT)

/* Tag of a block that was freed but can never be used again; others: the padding. */
#define POOL_TAG_GIVEN_UP UINT32_MAX
/* Tag of a block that is lent to a shard (pool_front.h). */
#define POOL_TAG_SUPERBLOCK (POOL_TAG_GIVEN_UP - 1)

extern const rmm_resource_ops_t rmm__fixed_size_ops;

/* As rmm_pool_resource_create(), the arguments checked. */
rmm_status_t rmm__pool_create(
    rmm_resource_t *upstream, const pool_plan_t *plan, rmm_resource_t **out);

/*
 * Take a block for `want` from its own stream's heap or the clean one, and enter it in the
 * books. RMM_OK, RMM_ERR_OUT_OF_MEMORY (nothing fits; last error untouched) or
 * RMM_ERR_OUT_OF_HOST_MEMORY.
 */
rmm_status_t
rmm__pool_take_locked(pool_t *self, const pool_want_t *want, void **ptr_out);

/* The tighter fit of the stream's own heap and the clean one; no books. */
rmm_suballoc_result_t
rmm__pool_take_block_locked(pool_t *self, const pool_want_t *want, rmm_block_t *block);

/* The live block of these bytes that begins at this unit, or NONE and in *refusal_out why
 * there is none. */
#define POOL_NO_SUCH_BLOCK                                                             \
    "not a live block of this resource: never allocated here, freed already, or not "  \
    "its first byte"
rmm_block_t rmm__pool_block_at_locked(
    const pool_t *self, uint32_t unit, size_t bytes, const char **refusal_out);

/* Keep the largest block of all: `block` was freed into the heap just now; a block was
 * taken out of the heap, or of either of two. */
void rmm__pool_note_freed_locked(pool_t *self, rmm_heap_t heap, rmm_block_t block);
void rmm__pool_note_taken_locked(pool_t *self, rmm_heap_t heap);

/* The block manager, its clean heap, and the slot for unproven frees. */
rmm_status_t rmm__pool_blocks_init(pool_t *self);

/* Free, and with memory behind it. */
static inline uint64_t pool_free_bytes(const pool_t *self)
{
    return (rmm__suballoc_total_free_units(self->blocks) - self->absent_units) *
           POOL_UNIT;
}

/* After a change of one block. Free bytes are what is not live (rmm__books_free_is_rest),
 * and change with it. */
static inline void rmm__pool_show_largest_locked(pool_t *self)
{
    RMM_BOOKS_SET(
        &self->base.books, largest_free_bytes, self->largest_free_units * POOL_UNIT);
}

/* After heaps changed other than by one alloc or free: recount what /rmm shows. */
void rmm__pool_figures_locked(pool_t *self);

/* --- pool_hopeless.c ---------------------------------------------------------------- */

/* Around a try of everything; is_hopeless: all of it was done, and nothing fits. */
uint64_t rmm__pool_try_begin(pool_t *self, const pool_want_t *want);
void rmm__pool_try_end(pool_t *self, uint64_t word, bool is_hopeless);
/* Only growth can help. */
bool rmm__pool_is_hopeless(const pool_t *self, const pool_want_t *want);
/* There is something new. */
void rmm__pool_hope(pool_t *self);
void rmm__pool_look_for_hope_locked(pool_t *self, rmm_block_t block);

/* A block was freed just now. */
static inline void rmm__pool_note_room_locked(pool_t *self, rmm_block_t block)
{
    if (atomic_load_explicit(&self->hopeless, memory_order_relaxed) != 0) {
        rmm__pool_look_for_hope_locked(self, block);
    }
}

/* --- pool_growth.c ------------------------------------------------------------------ */

uint64_t rmm__pool_reserved(pool_t *self);

/* So many bytes, or more: blocks of one size come in whole chunks of them. */
uint64_t rmm__pool_whole_growth(const pool_t *self, uint64_t bytes);

/* What to ask upstream for first: a share of what is held, but at least the request. */
uint64_t rmm__pool_growth_wish(pool_t *self, uint64_t need);

/* Take `wish` bytes, or less down to `need`, from upstream into the clean heap. Both are
 * multiples of 256; grow_lock held. */
rmm_status_t rmm__pool_grow(pool_t *self, uint64_t need, uint64_t wish);

/* A barrier must not fail because the pool took all of the device: while it holds memory a
 * block is kept. grow_lock held, or the pool ends. */
void rmm__pool_keep_barrier(pool_t *self, bool keep);

/* It grew by so much; said once grow_lock is free again: a log's reader may be slow. */
void rmm__pool_log_growth(pool_t *self, uint64_t bytes);

/* --- pool_ladder.c ------------------------------------------------------------------ */

rmm_status_t
rmm__pool_alloc_slow(pool_t *self, const pool_want_t *want, void **ptr_out);

/*
 * Before a large block is cut, where others_have_batches(): take over what other streams
 * finished events have freed, so that it merges first.
 */
void rmm__pool_reclaim_others(pool_t *self, const pool_want_t *want);

/* Synchronise the device; every block freed before is clean then. RMM_OK or why not.
 * grow_lock held. */
rmm_status_t rmm__pool_clean_all(pool_t *self);

/* Take over what finished events have freed, in a scope. but: a stream whose slot is left
 * out; NULL: none. True if anything came. */
bool rmm__pool_reclaim_all(pool_t *self, const rmm_stream_key_t *but);

/* Is there an event to ask for, of a stream other than this one? */
bool rmm__pool_others_have_batches(pool_t *self, const rmm_stream_key_t *key);
bool rmm__pool_others_have_batches_locked(pool_t *self, const rmm_stream_key_t *key);

/* Let the wanting stream wait, on the device, for one other stream that has a large enough
 * block. True if that brought anything. */
bool rmm__pool_wait_for_one(
    pool_t *self, const pool_want_t *want, rmm_status_t *status);

/*
 * What was freed before now is covered by a synchronise that begins after: close every
 * slot's stamp, remember how far, and pin the slot meanwhile. Not what another device may
 * still use. One thread at a time, and always followed by settle: unpin; where the device
 * was synchronised, blocks up to the remembered stamp are clean.
 */
void rmm__pool_stamps_close(pool_t *self);
void rmm__pool_stamps_settle(pool_t *self, bool synchronised);

/* --- pool_report.c ------------------------------------------------------------------ */

/* 0 where the driver does not say; also shown in /rmm from now on. */
uint64_t rmm__pool_device_free(pool_t *self);
/* The same, but the last answer, and in *since_out when, if that is not long ago: the
 * driver takes its time. "" if it was asked now. */
uint64_t rmm__pool_device_free_lately(pool_t *self, const char **since_out);

/* Count it and set the last error: one line with all that an operator asks after an
 * out-of-memory, and the last error of before as its reason. Returns the status. */
rmm_status_t
rmm__pool_give_up(pool_t *self, const pool_want_t *want, rmm_status_t status);

/* --- pool_streams.c ----------------------------------------------------------------- */

/* The slot of a stream, or NULL. */
pool_stream_t *rmm__pool_stream_find_locked(pool_t *self, rmm_stream_key_t key);
/* A stream without a slot asked for something. */
void rmm__pool_note_stream_locked(pool_t *self, rmm_stream_key_t key);
/* The same, made when missing; NULL without host memory. */
pool_stream_t *rmm__pool_stream_get_locked(pool_t *self, rmm_stream_key_t key);
/*
 * Where a free goes. key NULL, a stream that cannot be told (the driver failed), and no
 * host memory for a slot: the one of unproven frees, which wait for the next synchronise
 * of the device. Only a capture's cannot, because the graph may run after it: NULL, and
 * the block is given up.
 */
pool_stream_t *rmm__pool_slot_for_free_locked(
    pool_t *self, const rmm_stream_key_t *key, rmm_block_t block);
/* RMM_OK or RMM_ERR_OUT_OF_HOST_MEMORY; fini also after a failure. */
rmm_status_t rmm__pool_streams_init(pool_t *self);
void rmm__pool_streams_fini(pool_t *self);

/* A stamp that no free gets any more: its event is to be recorded. */
typedef struct pool_closing {
    pool_stream_t *slot; /* pinned; NULL: nothing to do */
    uint64_t stamp;
    rmm_driver_event_t event; /* NULL: one is to be made */
    bool foreign, native;     /* as the slot was */
} pool_closing_t;

/* After is_shared or reserved_bytes changed: how large batches are. */
void rmm__pool_batch_limits_locked(pool_t *self);
/* One more free was stamped with the open stamp. With a slot in *closing_out, the stamp is
 * closed and rmm__pool_batch_close() must follow, without the lock. */
void rmm__pool_batch_note_locked(
    pool_t *self, pool_stream_t *slot, uint64_t bytes, pool_closing_t *closing_out);
/* Record the event for the frees so far; unpins. `stream` is alive: the caller holds it. */
void rmm__pool_batch_close(
    pool_t *self, const pool_closing_t *closing, rmm_stream_t stream);

/* Move what finished events of a pinned slot have freed to the clean heap; in a scope.
 * True if anything moved. */
bool rmm__pool_reclaim(pool_t *self, pool_stream_t *slot);

/* The oldest batch that still covers free blocks, taken out of the slot; false: none. */
bool rmm__pool_batch_pop_locked(
    pool_t *self, pool_stream_t *slot, pool_batch_t *batch_out);
void rmm__pool_batch_insert_locked(
    pool_t *self, pool_stream_t *slot, const pool_batch_t *batch);
void rmm__pool_event_spare_locked(pool_t *self, rmm_driver_event_t event);
/* Drop the batches up to a stamp: their frees are behind something else. */
void rmm__pool_batches_drop_locked(pool_t *self, pool_stream_t *slot, uint64_t up_to);

/* --- pool_capture.c ----------------------------------------------------------------- */

/* Before something is taken or freed in a capture, on `stream`, which captures: see to it
 * that its graph is watched. Without any lock; asks the driver the first time. */
void rmm__pool_capture_open(pool_t *self, rmm_stream_key_t key, rmm_stream_t stream);
/* A block that begins here was taken in a capture. */
void rmm__pool_capture_note_locked(pool_t *self, rmm_stream_key_t key, uint32_t unit);
/* Where a free in a capture goes; NULL without host memory. */
pool_stream_t *
rmm__pool_capture_slot_locked(pool_t *self, rmm_stream_key_t key, rmm_block_t block);
/* What graphs used that are gone now becomes free for all. True if that is anything. */
bool rmm__pool_captures_settle_locked(pool_t *self);
/* How many graphs of the process, that pools were used in, are gone. */
uint64_t rmm__pool_graphs_gone(void);
/* The graph is not gone, as far as is known: the shelf must stay. NULL: no capture. */
bool rmm__pool_capture_is_open(const pool_capture_t *capture);
void rmm__pool_capture_destroy(pool_capture_t *capture);

/* --- pool_chunks.c ------------------------------------------------------------------ */

/* Room for one more chunk; false without host memory. */
bool rmm__pool_chunks_reserve_locked(pool_t *self);
void rmm__pool_chunks_insert_locked(pool_t *self, const pool_chunk_t *chunk);
void rmm__pool_chunks_remove_locked(pool_t *self, const pool_chunk_t *chunk);
/* The number that the units of a new chunk should begin with, so that a unit's number says
 * how far its address is from near_start; false: none such, any number will do. */
bool rmm__pool_chunk_number_locked(const pool_t *self, pool_chunk_t *chunk);
/* The chunk that this unit is in. */
const pool_chunk_t *rmm__pool_chunk_of_locked(const pool_t *self, uint32_t unit);
bool rmm__pool_unit_search_locked(
    const pool_t *self, const void *ptr, uint32_t *unit_out);
void *rmm__pool_address_search_locked(const pool_t *self, uint32_t unit);

/* relaxed: who asks about a live block has it from a thread that had the lock, and its
 * chunk stays */
static inline bool rmm__pool_has_far_chunks(const pool_t *self)
{
    return atomic_load_explicit(&self->far_chunks, memory_order_relaxed) != 0;
}

static inline uintptr_t rmm__pool_near_start(const pool_t *self)
{
    return atomic_load_explicit(&self->near_start, memory_order_relaxed);
}

/* False if no block of the pool can begin at this address; true says no more than that the
 * block manager may be asked. Only where there is no far chunk. */
static inline bool
rmm__pool_unit_near(const pool_t *self, const void *ptr, uint32_t *unit_out)
{
    uint64_t offset = (uint64_t)((uintptr_t)ptr - rmm__pool_near_start(self));

    *unit_out = (uint32_t)(offset / POOL_UNIT);
    return offset / POOL_UNIT <= UINT32_MAX && offset % POOL_UNIT == 0;
}

static inline void *rmm__pool_address_near(const pool_t *self, uint32_t unit)
{
    return (void *)(rmm__pool_near_start(self) + unit * POOL_UNIT);
}

/* The same wherever chunks are. */
static inline bool
rmm__pool_unit_of_locked(const pool_t *self, const void *ptr, uint32_t *unit_out)
{
    return rmm__pool_has_far_chunks(self)
               ? rmm__pool_unit_search_locked(self, ptr, unit_out)
               : rmm__pool_unit_near(self, ptr, unit_out);
}

static inline void *rmm__pool_address_of_locked(const pool_t *self, uint32_t unit)
{
    return rmm__pool_has_far_chunks(self) ? rmm__pool_address_search_locked(self, unit)
                                          : rmm__pool_address_near(self, unit);
}

/* To and from upstream, with the books of both sides. */
rmm_status_t rmm__pool_chunk_obtain(pool_t *self, uint64_t bytes, void **ptr_out);
void rmm__pool_chunk_return(pool_t *self, const pool_chunk_t *chunk);

/* --- pool_range.c ------------------------------------------------------------------- */

/* Reserve the addresses; in a pool that is new. After a failure close as well. */
rmm_status_t rmm__pool_range_open(pool_t *self, uint64_t flags, uint64_t initial_bytes);
/* Unmap and give back everything, if no work of the device can use it any more; else it
 * stays mapped. */
void rmm__pool_range_close(pool_t *self, bool is_idle);

/*
 * Map memory so that the clean heap has a block of `need` bytes: what is missing, and a
 * little more where the device has it. grow_lock held.
 */
rmm_status_t rmm__pool_range_grow(pool_t *self, uint64_t need);

/* --- pool_gather.c ------------------------------------------------------------------ */

/*
 * The same with free memory that lies scattered: whole free pieces are mapped anew beside
 * each other. True if anything moved. grow_lock held.
 */
bool rmm__pool_range_gather(pool_t *self, uint64_t need);

/*
 * The same where that was not enough, because the pieces are larger than what is missing
 * there: all that is needed is mapped anew in one place. Nothing is done unless the whole
 * free pieces are enough. grow_lock held.
 */
bool rmm__pool_range_gather_apart(pool_t *self, uint64_t need);

/* Give back whole free pieces, the uppermost first, down to keep_bytes. grow_lock held. */
rmm_status_t rmm__pool_range_trim(pool_t *self, uint64_t keep_bytes);

/* --- pool_trim.c -------------------------------------------------------------------- */

rmm_status_t rmm__pool_trim(rmm_resource_t *mr, size_t keep_bytes);

#endif /* RMM_RESOURCES_POOL_IMPL_H */
