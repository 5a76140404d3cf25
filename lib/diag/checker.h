/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A checker looks for one kind of error or figure. The engine follows blocks, streams and events,
 * and calls the checkers. A checker has a state of its own, reads what the engine knows, and adds
 * findings. A new one is a file, with its rmm__NAME_checker, and its name in RMM_CHECKER_MAP.
 *
 * The engine's lock is held in every function but settle(), enter() and leave(). A checker's state
 * is protected by that lock, too.
 */
#ifndef RMM_DIAG_CHECKER_H
#define RMM_DIAG_CHECKER_H

#include "core/mutex.h"
#include "diag/engine.h"
#include "diag/event_range.h"
#include "diag/findings.h"
#include "diag/freed.h"
#include "diag/guards.h"
#include "diag/live_blocks.h"
#include "diag/mode_switch.h"
#include "diag/stack_depot.h"
#include "diag/stacks.h"
#include "diag/stream_names.h"
#include "diag/users.h"

/* The work on guards that one call of the engine queues on a GPU (guard_checker.c). */
#define RMM_GUARD_JOBS (RMM_BLOCKS_LISTED * 2 / RMM_GUARDS_AT_ONCE)

typedef struct rmm_guard_plan {
    bool is_on; /* else nothing below is set */
    int32_t device;
    rmm_stream_t stream;
    uint32_t job_count;
    rmm_stack_raw_t stack; /* of the call */
    rmm_guard_job_t jobs[RMM_GUARD_JOBS];
} rmm_guard_plan_t;

/* One call of the engine. Its members are set in the order in which they stand here. */
typedef struct rmm_diag_call {
    rmm_diag_engine_t *engine;
    const rmm_diag_block_v1_t *block; /* that is allocated or freed; NULL: an event */
    const rmm_diag_event_v1_t *event; /* NULL: no event */
    uint32_t modes;                   /* in force */
    uint32_t index;                   /* of the block */
    /* by enter() */
    rmm_stack_raw_t *stack; /* of an allocation or free; NULL: not wanted */
    rmm_guard_plan_t guards;
    /* of a free */
    rmm_freed_block_t freed;
    bool
        is_plain; /* neither is the memory a graph's, nor is it freed through a resource that may
                      refuse it */
    /* of an event that is about to happen: for each of its ranges */
    rmm_event_range_t range;
    uint32_t culprit;  /* the block whose error it is; RMM_LIVE_NONE: none is known */
    bool is_explained; /* it is in a freed block */
    /* of an event that has happened */
    bool is_captured; /* into a graph that is known */
    uint32_t user;    /* who was counted, or RMM_DIAG_NO_USER */
    uint32_t site;    /* of an allocation: entry of its stack to be written + 1, or 0 */
} rmm_diag_call_t;

/* Members may be NULL. */
typedef struct rmm_checker {
    size_t state_bytes; /* zeroed before init() */
    /* The description has what the checker needs. NULL: it always has. */
    bool (*is_wanted)(const rmm_diag_engine_desc_t *desc);
    /* False: no host memory; nothing is left to undo. */
    bool (*init)(
        void *state, rmm_diag_engine_t *engine, const rmm_diag_engine_desc_t *desc);
    void (*fini)(void *state);

    /* Without the lock: turns results of earlier work into findings; prepares for a call about
     * memory or work on a GPU; ends that call. */
    void (*settle)(void *state, rmm_diag_engine_t *engine);
    void (*enter)(void *state, rmm_diag_call_t *call);
    void (*leave)(void *state, rmm_diag_call_t *call);

    /* The block at call->index is live now. */
    void (*allocated)(void *state, rmm_diag_call_t *call);
    /* The program frees that block, which is live until the next function returns. */
    void (*freed)(void *state, rmm_diag_call_t *call);
    /* This block ends: freed; or `by` takes its memory; or its GPU was reset (NULL). */
    void (*ended)(void *state, uint32_t index, const rmm_diag_block_v1_t *by);
    /* The program frees memory that is no live block. */
    void (*freed_unknown)(void *state, rmm_diag_call_t *call);
    /* From now on this memory may belong to somebody whom the engine does not know. */
    void (*gone)(void *state, uint64_t start, uint64_t end);

    /* A copy, fill or prefetch is about to access call->range. */
    void (*before)(void *state, rmm_diag_call_t *call);
    /* An event happened. Of a launch, copy, fill or prefetch the blocks are listed
     * (live_blocks.h). */
    void (*after)(void *state, rmm_diag_call_t *call);

    bool (*check)(void *state); /* walks everything; for tests */
} rmm_checker_t;

/* All checkers, in the order in which they are called. A launch that is captured is not counted:
 * graph is before usage. What names the user of a launch is behind usage. A range in a freed block
 * is no error of another one: freed is before bounds, which finds whose error it is. */
#define RMM_CHECKER_MAP(X)                                                             \
    X(sites)                                                                           \
    X(resource_names)                                                                  \
    X(refused)                                                                         \
    X(graph)                                                                           \
    X(usage)                                                                           \
    X(freed)                                                                           \
    X(bounds)                                                                          \
    X(verdicts)                                                                        \
    X(peaks)                                                                           \
    X(timeline)                                                                        \
    X(guard)                                                                           \
    X(order)

#define RMM_CHECKER_DECLARE(name) extern const rmm_checker_t rmm__##name##_checker;
RMM_CHECKER_MAP(RMM_CHECKER_DECLARE)
#undef RMM_CHECKER_DECLARE

/* The functions that are called for blocks and events: the engine has a list of each. */
#define RMM_CHECKER_HOOK_MAP(X)                                                        \
    X(settle)                                                                          \
    X(enter)                                                                           \
    X(leave)                                                                           \
    X(allocated)                                                                       \
    X(freed)                                                                           \
    X(ended)                                                                           \
    X(freed_unknown)                                                                   \
    X(gone)                                                                            \
    X(before)                                                                          \
    X(after)

#define RMM_CHECKERS_MAX 16u

typedef struct rmm_active_checker {
    const rmm_checker_t *checker; /* NULL: the list ends */
    void *state;
} rmm_active_checker_t;

struct rmm_diag_engine {
    rmm_mutex_t lock; /* protects all that follows, and writes to the side file */
    rmm_live_blocks_t blocks;
    rmm_users_t users;
    rmm_stream_names_t streams;
    rmm_findings_t findings;
    rmm_stack_depot_t depot;
    rmm_stacks_t stacks;                           /* has a lock of its own */
    rmm_mode_switch_t modes;                       /* has no lock */
    rmm_diag_header_t *header;                     /* in the side file */
    rmm_active_checker_t active[RMM_CHECKERS_MAX]; /* do not change, as the next */
#define RMM_CHECKER_LIST(hook) rmm_active_checker_t on_##hook[RMM_CHECKERS_MAX];
    RMM_CHECKER_HOOK_MAP(RMM_CHECKER_LIST)
#undef RMM_CHECKER_LIST
};

/* Calls `hook` of each checker that has it. */
#define RMM_CHECKERS_CALL(engine, hook, ...)                                           \
    do {                                                                               \
        for (const rmm_active_checker_t *active_ = (engine)->on_##hook;                \
             active_->checker != NULL; active_++) {                                    \
            active_->checker->hook(active_->state, __VA_ARGS__);                       \
        }                                                                              \
    } while (0)

/* The state of this checker; NULL: it is not wanted. */
void *rmm__checker_state(rmm_diag_engine_t *engine, const rmm_checker_t *checker);

/* The modes in force. A mode that is off under the lock was off since the lock was taken. */
static inline uint32_t rmm__diag_modes(const rmm_diag_engine_t *engine)
{
    return atomic_load_explicit(&engine->modes.modes, memory_order_relaxed);
}

/* A call without block, event and stack. */
static inline void rmm__diag_call_init(rmm_diag_call_t *call, rmm_diag_engine_t *engine)
{
    call->engine = engine;
    call->block = NULL;
    call->event = NULL;
    call->modes = rmm__diag_modes(engine);
    call->index = RMM_LIVE_NONE;
    call->stack = NULL;
    call->guards.is_on = false; /* the rest is large, and not read */
    call->is_captured = false;
    call->user = RMM_DIAG_NO_USER;
    call->site = 0;
}

/* The lock, for a call that may have findings: lock returns what unlock wants. Findings that came
 * meanwhile get this thread's stack. */
uint32_t rmm__diag_lock(rmm_diag_engine_t *engine);
void rmm__diag_unlock(rmm_diag_engine_t *engine, uint32_t findings);

/* The block of the call is live from now on: call->index, or RMM_LIVE_NONE if there is no room. */
void rmm__diag_add_block_locked(rmm_diag_call_t *call);

/* The number of a stack, from 1 (stack_depot.h); 0: it was not taken, or has no place. */
uint32_t rmm__diag_number_of_locked(rmm_diag_engine_t *engine, rmm_stack_raw_t *stack);

/* The end of the block and of the padding behind it. */
uint64_t rmm__diag_padded_end(const rmm_diag_block_v1_t *block);

#endif /* RMM_DIAG_CHECKER_H */
