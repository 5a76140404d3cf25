/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guards: the memory between the last byte that was requested and the end of what belongs to the
 * block alone is filled with a pattern, and compared with it after every launch that may have
 * used the block. So a kernel that writes past the end of a block is found, with its name, although
 * the bytes belong to a pool.
 *
 * The guard of a block is also what lies before the block that follows it at once.
 *
 * Work. The table makes work (rmm_guard_job_t) that the owner queues on a GPU, in the order of a
 * stream: fill a guard, check some after a launch, check one for the last time before a free. What
 * the work found comes back by memory that the host and the GPU share, and is looked at later.
 *
 * No false finding. Nothing orders a check on one stream behind the fill on another, or before the
 * free and the next use of the memory, where a kernel is given a pointer that it does not follow.
 * So each guard has a state of three words in the shared memory. A word gets the guard's number
 * when the guard is open (written by the host), filled (by the fill), or over (by a close, and by a
 * check that found it broken). A guard counts as broken if it was filled before the bytes were
 * read, and was open and not over after that. The host may close it at any time: checks that are
 * queued or running then find nothing.
 *
 * Work is queued with no lock held, so another thread may free a block meanwhile that a launch
 * was given. A free in the order of a stream has its close before the memory can be somebody
 * else's. One that waits for the GPU needs none, because what is queued runs before it; only what
 * is not queued yet would run behind it. So the host closes a guard then, if a check of it is
 * still to be queued.
 *
 * No word has two kinds of writers, so none undoes another's. A compare-and-swap would not do: that
 * of a GPU on the host's memory is not atomic for the host (CUDA's guide on mapped memory).
 *
 * Slots of states are used again in turn, the one freed longest ago first.
 *
 * Not locked: the engine's lock protects it. Shared words are atomic.
 */
#ifndef RMM_DIAG_GUARDS_H
#define RMM_DIAG_GUARDS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/sys/diag.h>

#include "diag/diag_format.h"
#include "diag/stacks.h"

#define RMM_GUARD_BYTES 256u      /* wanted behind each block */
#define RMM_GUARD_BYTES_MAX 4096u /* of a guard, its padding included */
#define RMM_GUARD_PATTERN 0xb7u   /* of each byte; seldom in data */
#define RMM_GUARDS_AT_ONCE 16u    /* in one piece of work */
#define RMM_GUARD_CHECKS 1024u    /* whose results are not there yet */

/* --- what is queued on a GPU ---------------------------------------------------------- */

typedef enum rmm_guard_action {
    RMM_GUARD_FILL = 1, /* unless it is over */
    RMM_GUARD_CHECK = 2,
    RMM_GUARD_CLOSE = 3 /* check, then it is over */
} rmm_guard_action_t;

typedef struct rmm_guard {
    uint64_t address;
    uint32_t bytes;
    uint32_t slot;
    uint32_t number; /* not 0; no two of the same slot have the same */
    uint32_t reserved;
} rmm_guard_t;

/* The state of a slot. Each word is the number of a guard, or 0. */
typedef struct rmm_guard_state {
    _Atomic(uint32_t) open;
    _Atomic(uint32_t) filled;
    _Atomic(uint32_t) over;
    uint32_t reserved;
} rmm_guard_state_t;

/* The parameter of the kernel: its layout is known to guards.ptx. */
typedef struct rmm_guard_job {
    uint64_t states;  /* address of rmm_guard_state_t[] */
    uint64_t results; /* of uint64_t[], one for each guard */
    uint32_t action;
    uint32_t count; /* of guards */
    uint32_t tag;   /* in the upper half of the results */
    uint32_t
        shared_bytes; /* of the memory that begins with the states and has the results */
    rmm_guard_t guards[RMM_GUARDS_AT_ONCE];
} rmm_guard_job_t;

/* The lower half of a result. */
#define RMM_GUARD_BROKEN 0x80000000u
#define RMM_GUARD_OFFSET 0x0000ffffu /* of the first byte that differs */

/* The outcome of a piece of work. */
typedef enum rmm_guard_answer {
    RMM_GUARD_QUEUED = 0,
    RMM_GUARD_REFUSED =
        1, /* not this one: the stream captures a graph, or is of another context */
    RMM_GUARD_FAILED = 2 /* none ever will be */
} rmm_guard_answer_t;

/* Queue work behind what the stream has. Called with no lock held, from any thread. *error_out
 * receives the driver's error where it failed. */
typedef rmm_guard_answer_t (*rmm_guard_queue_fn)(
    int32_t device, rmm_stream_t stream, const rmm_guard_job_t *job, int *error_out);

/* --- the table ------------------------------------------------------------------------ */

typedef struct rmm_guard_entry {
    rmm_guard_t guard; /* bytes 0: the block has none */
    int32_t device;
    bool in_stream_order; /* the block */
    rmm_stream_t stream;  /* that it was allocated on */
    rmm_stream_t
        used_on;     /* of the launch that used the block last; at first the same */
    uint64_t graphs; /* graphs launched when it was last checked */
    rmm_stack_raw_t stack; /* of the allocation */
} rmm_guard_entry_t;

/* Which guard a check is of, and whose error it would be. */
typedef struct rmm_guard_suspect {
    rmm_guard_t guard;
    rmm_diag_block_v1_t block;
    rmm_stack_raw_t stack; /* of the block's allocation */
    rmm_stream_t stream;   /* the same */
    bool had_graphs;       /* a graph was launched since the last check */
} rmm_guard_suspect_t;

typedef struct rmm_guard_check {
    uint32_t tag;     /* 0: nothing is expected */
    uint32_t count;   /* of suspects */
    uint32_t waiting; /* a bit for each whose result is not there */
    uint32_t call;    /* rmm_diag_event_kind_t; 0: a free */
    uint32_t user;
    bool is_unqueued; /* neither queued nor cancelled, as far as is known */
    rmm_stream_t stream;
    uint64_t stream_id;    /* UINT64_MAX: not known */
    rmm_stack_raw_t stack; /* of the launch or free */
    rmm_guard_suspect_t suspects[RMM_GUARDS_AT_ONCE];
} rmm_guard_check_t;

typedef struct rmm_guards {
    rmm_guard_entry_t *entries; /* by block, as rows; NULL: there are no guards */
    uint32_t *free_slots;       /* a ring of all slots */
    uint32_t slot_count, first_free, free_count;
    uint32_t last_number;      /* of a guard */
    rmm_guard_check_t *checks; /* a ring */
    uint32_t oldest, next;     /* of the checks, counted on for ever */
    uint32_t unqueued;         /* checks */
    uint64_t graphs;           /* launched */
    /* shared with the GPU */
    void *shared;
    size_t shared_bytes;
    rmm_guard_state_t *states;
    _Atomic(uint64_t) *results; /* RMM_GUARDS_AT_ONCE for each check */
} rmm_guards_t;

/* For so many blocks. False: no host memory; nothing is left to undo. */
bool rmm__guards_init(rmm_guards_t *guards, uint32_t block_count);
void rmm__guards_fini(rmm_guards_t *guards);

/*
 * Block `index` is new, and was allocated with this stack. True: `job` fills its guard. False: it
 * has none.
 */
bool rmm__guards_open(
    rmm_guards_t *guards, uint32_t index, const rmm_diag_block_v1_t *block,
    const rmm_stack_raw_t *stack, rmm_guard_job_t *job);

/* The block ended unobserved, so queued work finds nothing; or its guard was not filled. */
void rmm__guards_drop(rmm_guards_t *guards, uint32_t index);

/*
 * A check, which is about these blocks: begin, add each once, end. False from begin: too many
 * checks are pending. False from end: there is no guard to check. Else the owner queues `job` and
 * reports that, or cancels the check of its tag.
 */
bool rmm__guards_begin(
    rmm_guards_t *guards, uint32_t call, uint32_t user, rmm_stream_t stream);
/* Name the stream of the check that is begun. */
void rmm__guards_name_stream(rmm_guards_t *guards, uint64_t stream_id);
/* The guard of `index`, as an error on this block: its own, or the one behind it. */
void rmm__guards_add(
    rmm_guards_t *guards, uint32_t index, const rmm_diag_block_v1_t *block,
    int32_t device);
bool rmm__guards_end(
    rmm_guards_t *guards, const rmm_stack_raw_t *stack, rmm_guard_job_t *job);
void rmm__guards_queued(rmm_guards_t *guards, uint32_t tag);
void rmm__guards_cancel(rmm_guards_t *guards, uint32_t tag);

/*
 * The block is about to be freed. True: `job`, of a check that was begun and ended, closes its
 * guard in the order of the stream. False: there is nothing to queue.
 */
bool rmm__guards_close(
    rmm_guards_t *guards, uint32_t index, const rmm_diag_block_v1_t *freed,
    const rmm_diag_block_v1_t *block, const rmm_stack_raw_t *stack,
    rmm_guard_job_t *job);

/* The guard is over when a queued job of RMM_GUARD_CLOSE has run: the block has none any more. */
void rmm__guards_release(rmm_guards_t *guards, uint32_t index);

/* A job of RMM_GUARD_CLOSE was not queued: the host closes its guards. */
void rmm__guards_shut(rmm_guards_t *guards, const rmm_guard_job_t *job);

/* A guard that was found broken. */
typedef struct rmm_guard_broken {
    const rmm_guard_check_t *check; /* valid until the next call on the table */
    const rmm_guard_suspect_t *suspect;
    uint64_t address; /* of the first byte that differs */
} rmm_guard_broken_t;

/* The next one whose result is there; false: there is none now. */
bool rmm__guards_take(rmm_guards_t *guards, rmm_guard_broken_t *broken);

/* A launch on this stream uses the block. */
static inline void
rmm__guards_use(rmm_guards_t *guards, uint32_t index, rmm_stream_t stream)
{
    guards->entries[index].used_on = stream;
}

/* A launch on this stream may write to the guard only as what lies before the next block. So it is
 * checked where no other stream uses the block that it is behind: that could have broken it. */
static inline bool
rmm__guards_is_of(const rmm_guards_t *guards, uint32_t index, rmm_stream_t stream)
{
    return guards->entries[index].used_on == stream;
}
static inline bool rmm__guards_has(const rmm_guards_t *guards, uint32_t index)
{
    return guards->entries != NULL && guards->entries[index].guard.bytes != 0;
}

/* --- the work itself, on a GPU that is the host ------------------------------------------ */

void rmm__guards_run(const rmm_guard_job_t *job);

#endif /* RMM_DIAG_GUARDS_H */
