/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a finding was made first: the stack of the thread that made the call, as offsets in
 * modules, and these modules. Stack i belongs to finding i.
 *
 * Captured once for each entry of the findings, by the thread that made it, and without the
 * engine's lock: the unwinder and the loader have locks of their own. rmm__stacks_init()
 * makes them load what they need.
 *
 * The stacks that blocks were allocated from are here as well, each once: the first thread that
 * allocates from a new one writes it, also without the engine's lock.
 *
 * An error that is found after the call that made it (guards.h) needs the stack of that call, which
 * is kept as addresses until then: rmm__stack_take() costs no more than the unwinder does.
 *
 * In a program of Python a stack has the lines of Python, too (python_frames.h), and two stacks
 * that differ only in these are two.
 *
 * Threads: any.
 */
#ifndef RMM_DIAG_STACKS_H
#define RMM_DIAG_STACKS_H

#include "core/mutex.h"
#include "diag/diag_format.h"

#define RMM_DIAG_MODULES_COUNT 512u
/* The frames that are shown, and up to 8 of the diagnosis library's own */
#define RMM_STACK_RAW_FRAMES (RMM_DIAG_FRAMES_COUNT + 8u)

/* A stack as the unwinder gives it: addresses behind the calls, innermost first. */
typedef struct rmm_stack_raw {
    uint32_t count;
    uint32_t number; /* in the depot with this serial; 0: not known (stack_depot.h) */
    uint64_t depot;
    void *frames[RMM_STACK_RAW_FRAMES];
    uint32_t line_count; /* of Python, 0: none; by number (python_lines.h) */
    uint32_t lines[RMM_DIAG_STACK_LINES];
} rmm_stack_raw_t;

typedef struct rmm_stacks {
    rmm_diag_header_t *header; /* all seven in the side file; borrowed */
    rmm_diag_stack_t *entries;
    rmm_diag_stack_t *origins;
    rmm_diag_stack_t *frees;
    rmm_diag_stack_t *sites;
    rmm_diag_module_t *modules;
    rmm_diag_line_t *lines;
    rmm_mutex_t lock; /* protects writes to them */
} rmm_stacks_t;

void rmm__stacks_init(rmm_stacks_t *stacks, rmm_diag_header_t *header);
void rmm__stacks_fini(rmm_stacks_t *stacks);

/* The caller's stack is that of the findings [first, end). No lock is held. */
void rmm__stacks_capture(rmm_stacks_t *stacks, uint32_t first, uint32_t end);

/* The caller's stack; see stack_take.c. It is there until the thread's next call of this. */
rmm_stack_raw_t *rmm__stack_take(void);

/* This is the stack of a finding's call, of its block's allocation, of its block's free. No lock is
 * held. */
void rmm__stacks_put_call(
    rmm_stacks_t *stacks, uint32_t finding, const rmm_stack_raw_t *raw);
void rmm__stacks_put_origin(
    rmm_stacks_t *stacks, uint32_t finding, const rmm_stack_raw_t *raw);
void rmm__stacks_put_free(
    rmm_stacks_t *stacks, uint32_t finding, const rmm_stack_raw_t *raw);

/* This is the stack of the site of that index. No lock is held. */
void rmm__stacks_put_site(
    rmm_stacks_t *stacks, uint32_t index, const rmm_stack_raw_t *raw);

#endif /* RMM_DIAG_STACKS_H */
