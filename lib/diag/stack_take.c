/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The stack of the calling thread. The unwinder takes 0.1 to 0.3 us for each frame; but a program
 * makes most of its calls from the same places again and again, a training from some hundred. So
 * each thread remembers its stacks, each with where on the stack the return addresses are. If all
 * of these places still have the same addresses it is the same stack: one load for each frame.
 *
 * The places are looked at from the innermost on, and only as long as they agree: so no more
 * memory is read than the unwinder would read.
 *
 * From Python 3.11 on a call from one function of Python to another is none in C: so a stack is the
 * same only if its Python frames are, too.
 *
 * A loop takes its stacks in the same order each time, so the stack that followed the last one
 * before is tried first, then those of the same depth.
 *
 * Limit: a frame whose size changes from call to call (alloca) may still have a return address of
 * an earlier call where its own was. Then frames outside of it can be those of the earlier call.
 *
 * Threads: any; what is remembered is the thread's own, until it ends. Memory: up to 770 KB for
 * each thread that was here, of which it touches 8 KB and 368 bytes for each stack, and 97 MB for
 * the stacks of all. If there is no room for another stack the thread forgets all of its own.
 */
#include "core/hash.h"
#include "diag/python_frames.h"
#include "diag/stacks.h"

#include <execinfo.h>
#include <unwind.h>

#if defined(                                                                           \
    __x86_64__) /* where the return address is directly below the caller's frame */

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>

enum {
    KEPT_MAX = 2048,
    KEPT_BY_ALL = 128 * KEPT_MAX,
    BUCKETS = 2048, /* a power of two */
    NONE = 0
};

typedef struct kept {
    uintptr_t depth;   /* place of the innermost address */
    uint64_t python;   /* which Python frames; 0: none */
    uint32_t next;     /* in its bucket */
    uint32_t follower; /* which was taken after it the last time */
    uint32_t
        offsets[RMM_STACK_RAW_FRAMES]; /* from `depth` to the place of each address */
    rmm_stack_raw_t stack;
} kept_t;

typedef struct memory {
    uint32_t count;            /* of kept[1..]; kept[NONE] is none */
    uint32_t most;             /* that it ever was: their pages are written */
    uint32_t last;             /* taken */
    uint32_t buckets[BUCKETS]; /* by depth: the one that was added last */
    kept_t kept[KEPT_MAX + 1];
} memory_t;

static _Thread_local memory_t *memory;
static _Atomic(uint32_t) kept_by_all; /* `most` of all threads */

/* --- memory ------------------------------------------------------------------------ */

static pthread_once_t once = PTHREAD_ONCE_INIT;
static pthread_key_t key; /* of each thread's memory, for its end */
static bool has_key;

static void thread_ends(void *ended)
{
    const memory_t *own = ended;

    memory = NULL;
    atomic_fetch_sub_explicit(&kept_by_all, own->most, memory_order_relaxed);
    (void)munmap(ended, sizeof(memory_t));
}

static void make_key(void)
{
    has_key = pthread_key_create(&key, thread_ends) == 0;
}

/* NULL: no memory. Pages that are not written take none. */
static memory_t *make_memory(void)
{
    void *made = MAP_FAILED;

    if (pthread_once(&once, make_key) != 0 || !has_key) {
        return NULL;
    }
    made = mmap(
        NULL, sizeof(memory_t), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
        0);
    if (made == MAP_FAILED) {
        return NULL;
    }
    if (pthread_setspecific(key, made) != 0) {
        (void)munmap(made, sizeof(memory_t));
        return NULL;
    }
    return made;
}

/* --- what is remembered ------------------------------------------------------------- */

/* A place agrees only behind those that are further in: so each is one of a frame. */
__attribute__((no_sanitize_address)) static bool
is_here(const kept_t *kept, uintptr_t depth, uint64_t python)
{
    if (kept->depth != depth || kept->python != python) {
        return false;
    }
    for (uint32_t i = 0; i < kept->stack.count; i++) {
        if (*(const uintptr_t *)(depth + kept->offsets[i]) !=
            (uintptr_t)kept->stack.frames[i]) {
            return false;
        }
    }
    return true;
}

static uint32_t *bucket_of(uintptr_t depth, uint64_t python)
{
    return &memory->buckets[(rmm__hash((depth >> 3) ^ python) >> 32) % BUCKETS];
}

static uint32_t find(uintptr_t depth, uint64_t python)
{
    uint32_t number = memory->kept[memory->last].follower;

    if (number != NONE && is_here(&memory->kept[number], depth, python)) {
        return number;
    }
    number = *bucket_of(depth, python);
    while (number != NONE && !is_here(&memory->kept[number], depth, python)) {
        number = memory->kept[number].next;
    }
    return number;
}

/* One more than ever before. */
static bool may_grow(void)
{
    if (memory->most == KEPT_MAX) {
        return false;
    }
    if (atomic_fetch_add_explicit(&kept_by_all, 1, memory_order_relaxed) <
        KEPT_BY_ALL) {
        return true;
    }
    atomic_fetch_sub_explicit(&kept_by_all, 1, memory_order_relaxed);
    return false;
}

/* The entry for another stack; NULL: there is none. */
static kept_t *make_room(void)
{
    if (memory->count == memory->most && may_grow()) {
        memory->most++;
    } else if (memory->most == 0) {
        return NULL;
    } else if (memory->count == memory->most) {
        memset(memory->buckets, 0, sizeof(memory->buckets));
        memory->count = 0;
        memory->last = NONE;
        memory->kept[NONE].follower = NONE;
    }
    return &memory->kept[memory->count + 1];
}

static uint32_t keep(kept_t *kept)
{
    uint32_t *bucket = bucket_of(kept->depth, kept->python);

    kept->next = *bucket;
    kept->follower = NONE;
    *bucket = ++memory->count;
    return memory->count;
}

/* --- the unwinder ------------------------------------------------------------------- */

typedef struct walk {
    kept_t *kept;
    bool is_plain; /* every address is where it should be */
} walk_t;

/* The canonical frame address that comes with a frame is that of the frame inside of it. */
static _Unwind_Reason_Code step(struct _Unwind_Context *context, void *arg)
{
    walk_t *walk = arg;
    rmm_stack_raw_t *stack = &walk->kept->stack;
    uintptr_t depth = walk->kept->depth;
    uintptr_t address = _Unwind_GetIP(context);
    uintptr_t place = _Unwind_GetCFA(context) - sizeof(address);

    if (stack->count == 0 && place < depth) {
        return _URC_NO_REASON; /* frames of this file */
    }
    if (address == 0 || stack->count == RMM_STACK_RAW_FRAMES) {
        return _URC_END_OF_STACK;
    }
    walk->is_plain = walk->is_plain && place >= depth && place - depth <= UINT32_MAX &&
                     *(const uintptr_t *)place == address;
    walk->kept->offsets[stack->count] = (uint32_t)(place - depth);
    stack->frames[stack->count++] = (void *)address;
    return _URC_NO_REASON;
}

/* True: it can be remembered. */
static bool unwind(kept_t *kept, uintptr_t depth, const rmm_python_stack_t *python)
{
    walk_t walk = {kept, true};

    kept->depth = depth;
    kept->python = python->key;
    kept->stack.line_count = rmm__python_lines(python, kept->stack.lines);
    kept->stack.count = 0;
    kept->stack.number = 0;
    (void)_Unwind_Backtrace(step, &walk);
    return walk.is_plain && kept->stack.count > 0 && kept->offsets[0] == 0;
}

/* ----------------------------------------------------------------------------------- */

__attribute__((noinline)) rmm_stack_raw_t *rmm__stack_take(void)
{
    static _Thread_local kept_t only; /* without memory */
    uintptr_t depth = (uintptr_t)__builtin_frame_address(0) + sizeof(uintptr_t);
    uint32_t number = NONE;
    rmm_python_stack_t python;

    rmm__python_take(&python);
    if (memory == NULL) {
        memory = make_memory();
    }
    if (memory == NULL) {
        (void)unwind(&only, depth, &python);
        return &only.stack;
    }
    number = find(depth, python.key);
    if (number == NONE) {
        kept_t *kept = make_room();
        bool is_kept = kept != NULL;

        kept = is_kept ? kept : &only;
        if (!unwind(kept, depth, &python) || !is_kept) {
            return &kept->stack;
        }
        number = keep(kept);
    }
    memory->kept[memory->last].follower = number;
    memory->last = number;
    return &memory->kept[number].stack;
}

#else

rmm_stack_raw_t *rmm__stack_take(void)
{
    static _Thread_local rmm_stack_raw_t stack;
    rmm_python_stack_t python;
    int count = backtrace(stack.frames, (int)RMM_STACK_RAW_FRAMES);

    rmm__python_take(&python);
    stack.line_count = rmm__python_lines(&python, stack.lines);
    stack.count = count > 0 ? (uint32_t)count : 0;
    stack.number = 0;
    return &stack;
}

#endif
