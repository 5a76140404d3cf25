/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Internals of the engine: its structures, and what each of its files offers to those above
 * it. Calls go downwards only: engine_life.c and alloc.c, alloc_slow.c, source (chunks.c, range.c),
 * waits.c, events.c, open_frees.c, streams.c and captures.c, blocks.c and index.c.
 *
 * Locking: `lock` protects everything but constants. A function whose name ends in _locked
 * is called with it, the others without. No call to the driver or the source is made under
 * it.
 */
#ifndef RMM_POOL_ENGINE_IMPL_H
#define RMM_POOL_ENGINE_IMPL_H

#include <stdatomic.h>

#include "core/assert.h"
#include "core/error.h"
#include "core/pointer_map.h"
#include "core/round.h"
#include "core/turn.h"
#include "pool/blocks_impl.h"
#include "pool/engine.h"

enum {
    STREAM_BATCHES = 16,  /* events kept for a stream; then the oldest two become one */
    LARGE_UNITS = 1024,   /* 256 KiB: worth querying events for */
    ENGINES_MOST = 65,    /* synchronised together: an arena has so many */
    ASKED_FOR_LARGE = 16, /* streams, before memory beyond the frontier is used */
    BATCH_FREES_SINGLE = 1024,
    BATCH_FREES = 64 /* as XLA's virtual-memory allocator batches its markers */
};

/* Tag of a block that was freed but is never used again. Other tags are the padding. */
#define TAG_GIVEN_UP UINT32_MAX
/* Tag of a block that another engine divides (rmm__engine_refill()). */
#define TAG_SUPERBLOCK (TAG_GIVEN_UP - 1)

/* Tags of heaps: the stream or graph that the blocks of a heap belong to; 0: none. */
#define HEAP_OF_GRAPH UINT64_MAX
#define HEAP_OF_STREAM(id) ((id) + 1)

/* `event` covers all frees of the stream that are stamped up to `stamp`. */
typedef struct engine_batch {
    uint64_t stamp;
    rmm_driver_event_t event;
} engine_batch_t;

typedef struct engine_stream {
    uint64_t id; /* rmm_stream_key_t.stream_id */
    rmm_heap_t heap;
    uint64_t open_bytes; /* freed since its last event, approximately */
    uint32_t open_frees;
    bool is_native;      /* a stream of this device: an event was recorded on it */
    bool is_foreign;     /* a stream of another device: no event of ours fits it */
    bool may_be_foreign; /* not native, with frees that nothing waited for: our device's
                         synchronise may not cover them */
    uint64_t foreign_stamp; /* of the last of these */
    uint32_t batch_count;
    engine_batch_t batches[STREAM_BATCHES]; /* oldest first, stamps rising */
    struct engine_stream *previous, *next;  /* in the ring of streams with batches */
} engine_stream_t;

typedef struct engine_streams {
    engine_stream_t **table; /* by id, at most half full; NULL: empty */
    uint32_t capacity, count;
    engine_stream_t *last;         /* found last */
    engine_stream_t *with_batches; /* a ring; the next one to query */
    engine_stream_t
        *single;          /* the only stream there ever was: its heap is the clean one
                               (streams.c); NULL: none */
    bool is_multi_stream; /* there was another stream, or a capture */
    uint32_t
        suspensions; /* threads between rmm__engine_single_stream_suspend() and _resume() */
    uint64_t proven_stamp; /* of `single`: its work up to here is done */
    uint64_t stamp;        /* of a free now; from 1 */
    uint32_t waits_begun;  /* for the device or a stream, and not ended */
    /* engine_t.changes when the first began, and set the merge boundary: later frees do not merge
     * with older ones */
    uint64_t boundary_changes;
    uint64_t open_bytes;      /* of all streams */
    uint64_t open_bound;      /* for these */
    uint64_t open_free_least; /* a free counts as so many bytes at least */
    rmm_heap_t
        spare_heap;      /* empty; becomes the clean one when single-stream mode ends */
    rmm_heap_t unproven; /* frees whose earlier work is of a stream, perhaps of another
                            device, that is not known (waits.c) */
    bool others_work; /* the last synchronise did not prove them, nor would another */
    rmm_driver_event_t *spare_events;
    uint32_t spare_count, spare_capacity;
    bool is_only_device; /* constant: the process sees no other device */
} engine_streams_t;

typedef struct engine_capture engine_capture_t;
typedef struct graph_queue graph_queue_t; /* graph_watch.h */

typedef struct engine_captures {
    engine_capture_t *first; /* the latest one; a list */
    rmm_pointer_map_t by_id; /* owner: the engine_capture_t */
    graph_queue_t *queue;    /* constant; has the graphs that are gone */
} engine_captures_t;

/* The chunks from upstream, by address: a tree (index.h). */
typedef struct engine_chunks {
    rmm_index_nodes_t nodes;
    rmm_index_t tree;
    uint32_t count;
} engine_chunks_t;

/* Physical memory, and where in the range it is mapped. */
typedef struct engine_piece {
    uint64_t unit;
    uint32_t units;
    bool is_stuck;     /* can be neither used nor unmapped; its addresses are lost */
    bool is_absent;    /* its memory was given back: the engine sleeps (sleep.c) */
    bool is_forbidden; /* mapped again, but no device may use it yet */
    uint32_t exports;  /* times that it was: other processes may have it mapped */
    rmm_driver_physical_t physical;
} engine_piece_t;

/* For an engine that maps its memory; all zero in others. */
typedef struct engine_range {
    char *address; /* NULL: none */
    uint64_t bytes, granule_bytes;
    uint64_t capacity_bytes; /* of the device */
    uint32_t peers;          /* bit d: device d may use what is mapped */
    uint32_t physical_flags; /* of every piece, for the driver */
    rmm_heap_t absent;       /* addresses without memory */
    rmm_heap_t lost;         /* could not be unmapped: never used again */
    uint64_t begun_ns;       /* constant: when the range was opened */
    uint64_t mapping_ns; /* how long growths and compactions have taken since then */
    uint64_t compacted_bytes; /* mapped again since the last growth */
    uint32_t compacted_count; /* synchronises for that since then */
    engine_piece_t *pieces;   /* by unit; without those being mapped or unmapped */
    uint32_t piece_count, piece_capacity;
    uint32_t piece_promised; /* room reserved for pieces that will be inserted */
} engine_range_t;

/* The slow path's last failure: requests of so many units fail until something changes. */
typedef struct engine_known_failure {
    uint32_t units; /* 0: nothing */
    uint64_t changes, graphs_gone;
} engine_known_failure_t;

typedef struct engine_source_ops engine_source_ops_t;
typedef struct engine_sleep engine_sleep_t; /* sleep.c */

struct engine {
    const rmm_driver_t *driver;
    int device;
    void *owner;
    const engine_owner_t *owner_ops;
    const engine_upstream_t *upstream;
    const engine_source_ops_t *source;
    uint64_t maximum_bytes; /* UINT64_MAX: none */
    uint32_t block_units;
    uint64_t growth_bytes;
    rmm_turn_t turn; /* of the slow path, of trim and of queries of events */
    _Atomic(uint64_t) grown_bytes;    /* since the owner last read it */
    _Atomic(uint64_t) stuck_bytes;    /* likewise: could not be unmapped or released */
    _Atomic(uint64_t) exported_bytes; /* of the pieces that are */
    /* Peers that were refused access to a piece: since the owner last read it, and ever. */
    _Atomic(uint32_t) shut_out, shut_out_ever;
    _Atomic(int) shut_out_error; /* the driver's, of the last one */

    rmm_mutex_t lock; /* protects all below */
    rmm_blocks_t *blocks;
    rmm_heap_t clean; /* free for any stream */
    uint32_t
        slow_threads; /* threads on the slow path: more than one if a turn timed out */
    uint64_t slow_count; /* times that a thread entered it */
    bool keeps_barrier;  /* a block for rmm__driver_barrier(), before it has memory */
    uint64_t changes;    /* rises with each change that may let a request succeed */
    engine_known_failure_t known_failure;
    engine_figures_t figures;
    uint64_t absent_units;   /* of a range: absent, lost, or being mapped or unmapped */
    uint64_t transit_units;  /* of these, those that were clean at their departure */
    uint64_t promised_bytes; /* to growths under way */
    uint64_t largest_units;  /* of all heaps with memory */
    rmm_heap_t largest_heap; /* one that has such a block */
    uint64_t stream_largest; /* no stream's heap has a larger block */
    engine_streams_t streams;
    engine_captures_t captures;
    engine_chunks_t chunks;
    engine_range_t range;
    uint32_t sleep_state; /* engine_sleep_state_t: takes are served up to SETTLING */
    uint32_t movers; /* threads that may map or unmap: on the slow path, or in a trim */
    engine_sleep_t *sleep; /* constant; NULL: it cannot sleep */
};

static inline uint32_t rmm__engine_to_units(uint64_t bytes)
{
    return (uint32_t)(bytes / RMM_BLOCKS_UNIT);
}

/* No request gets a block: the engine sleeps, or is about to (sleep.h). */
static inline bool rmm__engine_is_shut_locked(const engine_t *engine)
{
    return __builtin_expect(engine->sleep_state > ENGINE_SETTLING, false);
}

/* Bytes that a free block needs so that the request fits, wherever the block begins. */
static inline uint64_t rmm__engine_need(const rmm_blocks_request_t *request)
{
    return ((uint64_t)request->units + (request->align_units - 1)) * RMM_BLOCKS_UNIT;
}

static inline bool rmm__engine_captures(const engine_alloc_t *alloc)
{
    return alloc->key.capture_id != 0;
}

/* --- streams.c ----------------------------------------------------------------------- */

/* An event to record: no later free gets this stamp. */
typedef struct engine_closing {
    uint64_t stream_id, stamp;
    uint64_t open_bytes; /* that it will cover */
    uint32_t open_frees;
    bool is_needed; /* else there is nothing to do */
    bool is_foreign, is_native;
    rmm_driver_event_t event; /* NULL: create one */
} engine_closing_t;

rmm_status_t rmm__engine_streams_init(engine_t *engine);
void rmm__engine_streams_fini(engine_t *engine);

/* The stream's entry, or NULL. search() looks in the table, find() first at the entry that
 * was found last. */
engine_stream_t *rmm__engine_stream_search_locked(engine_t *engine, uint64_t id);

static inline engine_stream_t *
rmm__engine_stream_find_locked(engine_t *engine, uint64_t id)
{
    engine_stream_t *last = engine->streams.last;

    return last != NULL && last->id == id
               ? last
               : rmm__engine_stream_search_locked(engine, id);
}

/* The same, created if missing, which *is_new_out says; NULL without host memory. */
engine_stream_t *
rmm__engine_stream_get_locked(engine_t *engine, uint64_t id, bool *is_new_out);

/*
 * In single-stream mode the frees are in the clean heap. Before that heap serves anything
 * but requests of that stream, what is not known to be clean moves to a heap of the stream's
 * own. for_good: another stream or a capture has come.
 */
void rmm__engine_single_stream_end_locked(engine_t *engine, bool for_good);
/* Undo it, if there is still only one stream. */
void rmm__engine_single_stream_begin_locked(engine_t *engine);
/* The same around code that gives memory back or maps it elsewhere: there is no single-stream
 * mode between the two calls. */
void rmm__engine_single_stream_suspend(engine_t *engine);
void rmm__engine_single_stream_resume(engine_t *engine);

/* The stamp for memory that becomes clean. */
static inline uint64_t rmm__engine_clean_stamp_locked(const engine_t *engine)
{
    return engine->streams.single != NULL ? engine->streams.stamp : 0;
}

/* --- open_frees.c -------------------------------------------------------------------- */

/* A block was freed on the stream. The caller calls rmm__engine_record() next if
 * closing_out->is_needed. */
void rmm__engine_note_free_locked(
    engine_t *engine, engine_stream_t *stream, uint64_t bytes,
    engine_closing_t *closing_out);

/* After reserved_bytes changed. */
void rmm__engine_bound_open_locked(engine_t *engine);

/* Enough memory is covered by no event to be worth a synchronise. */
bool rmm__engine_is_worth_synchronising_locked(const engine_t *engine);

/* --- events.c ------------------------------------------------------------------------ */

/* Record the event. `stream` is alive: it is an argument of the free under way. */
void rmm__engine_record(
    engine_t *engine, const engine_closing_t *closing, rmm_stream_t stream);

/* Query events of at most `most` streams, and move what finished ones cover to the clean
 * heap. True if any memory moved. In a pool the caller has the engine's turn, if it
 * could get it (events.c); an arena's engines query without. */
bool rmm__engine_reclaim(engine_t *engine, uint32_t most);

/* The same before a large block is taken; repeatedly for a moment if it is huge. Takes the
 * turn; nothing if another thread has it. */
void rmm__engine_reclaim_patiently(engine_t *engine, const engine_alloc_t *alloc);

/* Likewise when a new stream has come: of a few streams, and of more if there are many. */
void rmm__engine_reclaim_for_new(engine_t *engine);

/* --- waits.c ------------------------------------------------------------------------- */

/* For a stream that is or may be another device's: only to synchronise it now proves that
 * its work is done. */
void rmm__engine_close_by_waiting(
    engine_t *engine, const engine_closing_t *closing, rmm_stream_t handle);

/* Let the requesting stream wait, on the device, for others that have a large enough block.
 * True if it got any memory. */
bool rmm__engine_wait_for_others(engine_t *engine, const engine_alloc_t *alloc);

/* If blocks are unproven, synchronise all devices, which may hang (rmm__driver_others_idle()):
 * only in place of a refusal. True: they are clean. */
bool rmm__engine_synchronise_all(engine_t *engine);
bool rmm__engine_has_unproven(engine_t *engine);
/* One synchronise for several engines of a device, at most ENGINES_MOST; all: of all devices,
 * which may hang. *others_idle_out: unproven blocks are clean as well. */
rmm_status_t rmm__engines_synchronise(
    engine_t *const *engines, uint32_t count, bool all, bool *others_idle_out);

/* --- captures.c ---------------------------------------------------------------------- */

/* Before an allocation or a free on `stream`, which is capturing: have the graph watched.
 * Calls the driver the first time. */
void rmm__engine_capture_open(
    engine_t *engine, const rmm_stream_key_t *key, rmm_stream_t stream);
/* The heap that the capture takes from first; `clean` if it has none of its own. */
rmm_heap_t
rmm__engine_capture_heap_locked(engine_t *engine, const rmm_stream_key_t *key);
/* A block that begins here was taken in a capture. */
void rmm__engine_capture_note_locked(
    engine_t *engine, const rmm_stream_key_t *key, uint64_t unit);
/* The heap for a free in a capture; false without host memory. */
bool rmm__engine_capture_heap_for_free_locked(
    engine_t *engine, const rmm_stream_key_t *key, uint64_t unit, rmm_heap_t *heap_out);
/* Make the memory of graphs that are gone free again. True if there was any. */
bool rmm__engine_captures_settle_locked(engine_t *engine);
/* How many of the process's graphs that used engines are gone (graph_watch.c). */
uint64_t rmm__engine_graphs_gone(void);
/* Visit the heaps of all captures. */
void rmm__engine_captures_walk_locked(
    const engine_t *engine, void (*fn)(void *context, rmm_heap_t heap), void *context);
rmm_status_t rmm__engine_captures_init(engine_t *engine);
void rmm__engine_captures_fini(engine_t *engine);

/* --- sleep.c ------------------------------------------------------------------------- */

/* Of a range: before its first use, and at its end, when its pieces are gone. */
rmm_status_t rmm__sleep_init(engine_t *engine);
void rmm__sleep_fini(engine_t *engine);

/* Around all that maps or unmaps pieces. False: it sleeps or is about to; then do not end. */
bool rmm__sleep_move_begin_locked(engine_t *engine);
bool rmm__sleep_move_begin(engine_t *engine);
void rmm__sleep_move_end(engine_t *engine);

/* A request that found no block, or a move that could not begin: RMM_OK, the engine is awake, or
 * was a moment ago; or RMM_ERR_ASLEEP. */
rmm_status_t rmm__sleep_await(engine_t *engine);

/* --- alloc.c ------------------------------------------------------------------------- */

/* Take a block from the stream's own heap or the clean one, and let the owner count it.
 * RMM_ERR_OUT_OF_MEMORY: nothing fits (last error untouched), or, unless has_asked, events
 * are to be queried first. */
rmm_status_t rmm__engine_take(
    engine_t *engine, const engine_alloc_t *alloc, bool has_asked, void **ptr_out);
/* And if it fails, note that such requests fail until something changes. */
rmm_status_t rmm__engine_take_or_note_failure(
    engine_t *engine, const engine_alloc_t *alloc, void **ptr_out);

/* --- alloc_slow.c ------------------------------------------------------------------------ */

rmm_status_t
rmm__engine_alloc_slow(engine_t *engine, const engine_alloc_t *alloc, void **ptr_out);

#endif /* RMM_POOL_ENGINE_IMPL_H */
