/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of the calling thread. The unwinder takes 0.3 us for each frame; but a thread makes
 * most of its calls from few places. So each thread remembers its last stacks, each with where on
 * the stack the return addresses are. If the call is made at the same depth, and all of these
 * places still have the same addresses, it is the same stack: one load for each frame.
 *
 * The places are looked at from the innermost on, and only as long as they agree: so no more
 * memory is read than the unwinder would read.
 *
 * Threads: any; what is remembered is the thread's own. 17 KB for each that was here.
 */
#include "diag/stacks.h"

#include <execinfo.h>
#include <unwind.h>

#if defined(                                                                           \
    __x86_64__) /* where the return address is directly below the caller's frame */

#define KEPT 32u

typedef struct kept {
    rmm_stack_raw_t stack;
    uintptr_t places[RMM_STACK_RAW_FRAMES]; /* of the frames' addresses */
} kept_t;

typedef struct memory {
    uintptr_t depths[KEPT]; /* place of the innermost address; 0: nothing is kept */
    kept_t kept[KEPT];
    uint32_t next; /* to be replaced */
} memory_t;

static _Thread_local memory_t memory;

typedef struct walk {
    kept_t *kept;
    bool is_first; /* the frame of this file */
    bool is_plain; /* every address is where it should be */
} walk_t;

/* The canonical frame address that is told with a frame is the one of the frame inside of it. */
static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
    walk_t *walk = arg;
    rmm_stack_raw_t *stack = &walk->kept->stack;
    uintptr_t address = _Unwind_GetIP(context);
    uintptr_t place = _Unwind_GetCFA(context) - sizeof(address);

    if (walk->is_first) {
        walk->is_first = false;
        return _URC_NO_REASON;
    }
    if (address == 0 || stack->count == RMM_STACK_RAW_FRAMES) {
        return _URC_END_OF_STACK;
    }
    walk->is_plain = walk->is_plain && *(const uintptr_t *)place == address;
    walk->kept->places[stack->count] = place;
    stack->frames[stack->count++] = (void *)address;
    return _URC_NO_REASON;
}

__attribute__((no_sanitize_address)) static bool is_same(const kept_t *kept)
{
    for (uint32_t i = 0; i < kept->stack.count; i++) {
        if (*(const uintptr_t *)kept->places[i] != (uintptr_t)kept->stack.frames[i]) {
            return false;
        }
    }
    return true;
}

__attribute__((noinline)) void rmm__stack_take(rmm_stack_raw_t *raw)
{
    uintptr_t depth = (uintptr_t)__builtin_frame_address(0) + sizeof(uintptr_t);
    kept_t *kept = NULL;
    walk_t walk;

    for (uint32_t i = 0; i < KEPT; i++) {
        if (memory.depths[i] == depth && is_same(&memory.kept[i])) {
            *raw = memory.kept[i].stack;
            return;
        }
    }
    kept = &memory.kept[memory.next];
    kept->stack.count = 0;
    walk = (walk_t){kept, true, true};
    (void)_Unwind_Backtrace(step, &walk);
    *raw = kept->stack;
    memory.depths[memory.next] = 0;
    if (walk.is_plain && kept->stack.count > 0 && kept->places[0] == depth) {
        memory.depths[memory.next] = depth;
        memory.next = (memory.next + 1) % KEPT;
    }
}

#else

void rmm__stack_take(rmm_stack_raw_t *raw)
{
    int count = backtrace(raw->frames, (int)RMM_STACK_RAW_FRAMES);

    raw->count = count > 0 ? (uint32_t)count : 0;
}

#endif
