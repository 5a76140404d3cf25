/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the files of the engine share: engine.c; engine_freed.c, which knows blocks that were freed
 * (freed.h); engine_refused.c, which explains frees that a resource refused;
 * engine_reset.c, which forgets the blocks of a GPU that was reset; engine_graphs.c,
 * which knows captured graphs (graphs.h); and engine_guards.c, which queues the work on
 * guards (guards.h) on a GPU and turns results into findings.
 *
 * A call of the engine that concerns guards first calls rmm__diag_guards_settle() and
 * rmm__diag_guards_begin() without the lock. It then does its own work under the lock, and calls
 * rmm__diag_guards_queue() without it, because queueing work on the GPU may block.
 */
#ifndef RMM_DIAG_ENGINE_IMPL_H
#define RMM_DIAG_ENGINE_IMPL_H

#include "core/mutex.h"
#include "diag/bounds.h"
#include "diag/engine.h"
#include "diag/event_range.h"
#include "diag/findings.h"
#include "diag/freed.h"
#include "diag/graphs.h"
#include "diag/guards.h"
#include "diag/live_map.h"
#include "diag/mode_switch.h"
#include "diag/order_findings.h"
#include "diag/peak.h"
#include "diag/stack_depot.h"
#include "diag/stacks.h"
#include "diag/stream_names.h"
#include "diag/timeline.h"
#include "diag/uses.h"
#include "diag/verdicts.h"

/* Of a live block, beside its row. */
typedef struct rmm_diag_block_note {
    uint32_t origin;  /* stack of the allocation (stack_depot.h) */
    bool is_kept;     /* RMM_DIAG_BLOCK_KEPT */
    bool is_returned; /* RMM_DIAG_BLOCK_RETURNED */
    bool is_of_graph; /* a graph allocates it, at each launch */
    uint32_t record;  /* of its uses by graphs (graphs.h) */
} rmm_diag_block_note_t;

enum { RMM_RECENT_FREES = 1024, RMM_DOUBTFUL_FREES = 8 };

/* For frees that a resource refuses. */
typedef struct rmm_refused {
    rmm_freed_block_t recent[RMM_RECENT_FREES]; /* the last frees, a ring */
    uint32_t recent_next;
    /* The last blocks that were freed through another resource than they came from, a ring: it
     * may refuse. */
    rmm_diag_block_v1_t doubtful[RMM_DOUBTFUL_FREES];
    uint32_t doubtful_origins[RMM_DOUBTFUL_FREES];
    uint32_t doubtful_next;
} rmm_refused_t;

struct rmm_diag_engine {
    rmm_mutex_t lock; /* protects all that follows, and writes to the side file */
    rmm_live_map_t map;
    rmm_uses_t uses;
    rmm_peaks_t peaks;
    rmm_verdicts_t verdicts;
    rmm_bounds_t bounds;
    rmm_findings_t findings;
    rmm_order_findings_t order; /* in mode order */
    rmm_timeline_t timeline;
    rmm_stream_names_t streams;
    rmm_freed_t freed;
    rmm_driver_memory_t driver_memory;
    rmm_refused_t refused;
    rmm_graphs_t graphs;
    uint32_t graph_gaps; /* of the modes, when the graphs were forgotten last */
    rmm_stack_depot_t depot;
    bool has_site[RMM_STACK_DEPOT_COUNT]; /* by stack: it is in the side file */
    rmm_diag_block_note_t *blocks;        /* as rows */
    rmm_guards_t guards;                  /* in mode guards at the start */
    rmm_guard_queue_fn queue;             /* the same; does not change */
    rmm_stacks_t stacks;                  /* has a lock of its own */
    rmm_mode_switch_t modes;              /* has no lock */
    rmm_diag_header_t *header;            /* in the side file, as rows */
    rmm_diag_row_t *rows;
    rmm_diag_resource_t *resources; /* the same */
};

static inline bool rmm__diag_mode_is_on(const rmm_diag_engine_t *engine, uint32_t mode)
{
    return (atomic_load_explicit(&engine->modes.modes, memory_order_relaxed) & mode) !=
           0;
}

/* --- engine.c --------------------------------------------------------------------------- */

/* The lock, for a call that may have findings: lock returns what unlock wants. Findings that came
 * meanwhile get this thread's stack. */
uint32_t rmm__diag_lock(rmm_diag_engine_t *engine);
void rmm__diag_unlock(rmm_diag_engine_t *engine, uint32_t findings);

/* The live block that this is exactly, or RMM_LIVE_NONE. */
uint32_t rmm__diag_find_block_locked(
    rmm_diag_engine_t *engine, const rmm_diag_block_v1_t *block);

/* The block, which was taken for freed, is live. Its index, or RMM_LIVE_NONE: there is no room. */
uint32_t
rmm__diag_add_again_locked(rmm_diag_engine_t *engine, const rmm_diag_block_v1_t *block);

/* The block is not live any more, for whatever reason. */
void rmm__diag_forget_block_locked(rmm_diag_engine_t *engine, uint32_t index);

/* --- engine_freed.c -------------------------------------------------------------------- */

bool rmm__diag_freed_init(rmm_diag_engine_t *engine, uint32_t row_count);
void rmm__diag_freed_fini(rmm_diag_engine_t *engine);

/* The caller's stack where it is wanted, in mode bounds; else NULL. No lock held. */
rmm_stack_raw_t *rmm__diag_freed_begin(const rmm_diag_engine_t *engine);

/* Of a stack, from 1 (stack_depot.h); 0: it was not taken, or has no place. */
uint32_t rmm__diag_number_of_locked(rmm_diag_engine_t *engine, rmm_stack_raw_t *stack);

/* The memory of a block is taken, whether or not the block can be followed; it is block `index`;
 * that is about to be freed, and reported. */
void rmm__diag_freed_taken_locked(
    rmm_diag_engine_t *engine, const rmm_diag_block_v1_t *block);
/* The site that the caller writes with rmm__stacks_put_site(): its index + 1, or 0. */
uint32_t rmm__diag_freed_allocated_locked(
    rmm_diag_engine_t *engine, uint32_t index, const rmm_diag_block_v1_t *block,
    rmm_stack_raw_t *stack);
void rmm__diag_freed_add_locked(
    rmm_diag_engine_t *engine, uint32_t index, const rmm_diag_block_v1_t *freed,
    rmm_stack_raw_t *stack);

/* True: the range begins in a freed block, which is a finding. */
bool rmm__diag_freed_range_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event,
    const rmm_event_range_t *range);

/* `uses` has the strays of this launch, by this user or a kernel that is not named yet. */
void rmm__diag_freed_launched_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event, uint32_t user);

/* The stacks of the block of a new finding. No lock held. */
void rmm__diag_freed_put_stacks(rmm_diag_engine_t *engine, uint32_t finding);

/* --- engine_refused.c ------------------------------------------------------------------ */

/* The block at this index is about to be freed; it was. */
void rmm__diag_refused_note_locked(
    rmm_diag_engine_t *engine, uint32_t index, const rmm_diag_block_v1_t *freed);
void rmm__diag_refused_freed_locked(
    rmm_diag_engine_t *engine, const rmm_freed_block_t *freed);

/* --- engine_graphs.c ------------------------------------------------------------------- */

/* Forget the graphs if events of them were lost since the last call. */
void rmm__diag_graphs_forget_stale_locked(rmm_diag_engine_t *engine);

/* True: a launch, copy or fill that is captured into a graph that is known, and which counts when
 * that is launched. `uses` has what it was given. */
bool rmm__diag_graphs_captured_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event);
void rmm__diag_graphs_launched_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event);
/* False: the event is not about a graph's life. */
bool rmm__diag_graphs_event_locked(
    rmm_diag_engine_t *engine, const rmm_diag_event_v1_t *event);
/* The block at this index is about to be freed, and not into a capture. */
void rmm__diag_graphs_freed_locked(
    rmm_diag_engine_t *engine, uint32_t index, const rmm_freed_block_t *freed);

/* --- engine_guards.c ------------------------------------------------------------------- */

/* What one call of the engine queues on a GPU. */
#define RMM_GUARD_JOBS (RMM_USES_LISTED * 2 / RMM_GUARDS_AT_ONCE)

typedef struct rmm_guard_plan {
    bool is_on; /* else nothing below is set */
    int32_t device;
    rmm_stream_t stream;
    uint32_t job_count;
    rmm_stack_raw_t stack; /* of the call */
    rmm_guard_job_t jobs[RMM_GUARD_JOBS];
} rmm_guard_plan_t;

/* Turn the results that are there into findings. No lock held. */
void rmm__diag_guards_settle(rmm_diag_engine_t *engine);

/* A call about this stream. No lock held. */
void rmm__diag_guards_begin(
    rmm_diag_engine_t *engine, rmm_guard_plan_t *plan, int32_t device,
    rmm_stream_t stream);

/* Block `index` is new; is freed now; or a launch has used the blocks that `uses` lists. */
void rmm__diag_guards_allocated_locked(
    rmm_diag_engine_t *engine, rmm_guard_plan_t *plan, uint32_t index,
    const rmm_diag_block_v1_t *block);
void rmm__diag_guards_freed_locked(
    rmm_diag_engine_t *engine, rmm_guard_plan_t *plan, uint32_t index,
    const rmm_diag_block_v1_t *freed);
void rmm__diag_guards_launched_locked(
    rmm_diag_engine_t *engine, rmm_guard_plan_t *plan, const rmm_diag_event_v1_t *event,
    uint32_t user);

/* A copy or fill is about to write this range, and may write to guards: they are closed before it.
 * False: it does not. */
bool rmm__diag_guards_overwritten_locked(
    rmm_diag_engine_t *engine, rmm_guard_plan_t *plan, const rmm_diag_event_v1_t *event,
    const rmm_event_range_t *range);

/* Queue what was planned. No lock held. */
void rmm__diag_guards_queue(rmm_diag_engine_t *engine, rmm_guard_plan_t *plan);

#endif /* RMM_DIAG_ENGINE_IMPL_H */
