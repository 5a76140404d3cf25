/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The Python lines that the calling thread is in, if the program is run by CPython 3.9 to 3.14.
 *
 * Most calls of a GPU come from threads that have released the GIL: PyTorch does so around nearly
 * every operator. To take it here could deadlock, and without it no call may change a reference
 * count. But a thread that is in C code cannot change its own frames, and they keep what they
 * refer to: so they are read by plain loads (python_layout.h), and named by functions of Python
 * that only read.
 *
 * The offsets of these loads are believed only after a proof: once, while this thread has the GIL,
 * Python itself is asked for the frames, and must say the same. A program that has none of its
 * lines says why (rmm__python_state()).
 *
 * At the end of the interpreter Python frees the frames of threads that still run. So a function
 * for its atexit lets no more threads in, and waits for those that are here. Until it is
 * registered, by a call that Python makes itself, only a thread that has the GIL is let in; after
 * it the same holds.
 *
 * Limits: builds without a GIL have no lines. Up to 3.11, a thread that is in a subinterpreter
 * without the GIL has those of the main one. Python must be there before the GPU is used first, and
 * be visible to dlsym(): it is where the program is Python, or linked with it.
 *
 * Threads: any. Cost: without Python one branch.
 */
#ifndef RMM_DIAG_PYTHON_FRAMES_H
#define RMM_DIAG_PYTHON_FRAMES_H

#include <stdatomic.h>

#include "diag/diag_format.h"
#include "diag/python_layout.h"

typedef struct rmm_python_stack {
    uint32_t count; /* 0: none */
    uint64_t key;   /* of these frames, and no others; 0: none */
    rmm_python_frame_t frames[RMM_PYTHON_FRAMES];
} rmm_python_stack_t;

/* Looks for Python in this process, the first time. */
void rmm__python_find(void);

extern _Atomic(bool) rmm__python_is_on;
void rmm__python_read(rmm_python_stack_t *stack);

/* The frames of the calling thread, innermost first. */
static inline void rmm__python_take(rmm_python_stack_t *stack)
{
    stack->count = 0;
    stack->key = 0;
    if (atomic_load_explicit(&rmm__python_is_on, memory_order_relaxed)) {
        rmm__python_read(stack);
    }
}

/* Their lines (python_lines.h), by the thread that took them, before it returns to Python; how
 * many. A line that is not known is 0. */
uint32_t rmm__python_lines(
    const rmm_python_stack_t *stack, uint32_t lines[RMM_DIAG_STACK_LINES]);

/* "3.11.7"; "": no Python. */
/* In as much memory as the header of the side file has for it. */
const char *rmm__python_version(void);
rmm_diag_python_t rmm__python_state(void);

#endif /* RMM_DIAG_PYTHON_FRAMES_H */
