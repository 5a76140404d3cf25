/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The call stack of an allocation or a free: captured as addresses, which become names only when
 * the stack is printed.
 *
 * It is captured with libunwind, which caches what it learns about each function, or with
 * backtrace(3) on a machine without libunwind. Either is loaded at the first capture: a program
 * that captures nothing loads nothing, and this library is built and linked without both.
 */
#ifndef RMM_ADAPTORS_CALL_STACK_H
#define RMM_ADAPTORS_CALL_STACK_H

#include <stddef.h>
#include <stdint.h>

#define RMM_CALL_STACK_DEPTH 64u /* as RMM's */
#define RMM_FRAME_BYTES 512u     /* longest text of a frame, with its NUL */

typedef struct rmm_call_stack {
    uint32_t count;
    uint32_t note;  /* the owner's */
    void *frames[]; /* return addresses, innermost first */
} rmm_call_stack_t;

/* Load what captures. Any number of times, any thread. */
void rmm__call_stack_prepare(void);

/* "libunwind" or "backtrace"; after prepare. */
const char *rmm__call_stack_method(void);

/* The caller's stack, `depth` frames at most, or NULL without host memory. To be freed
 * with rmm__free(). prepare was called. */
rmm_call_stack_t *rmm__call_stack_capture(uint32_t depth);

/* How many frames at the front are this library's own; 0 if that is unknown, because
 * library and program are one file. */
size_t rmm__call_stack_own_frames(void *const *frames, size_t count);

/* "symbol+0x1f from /lib/libc.so.6", or "0x7f.. from file+0x1234", cut to fit. */
void rmm__call_stack_describe(void *frame, char text[RMM_FRAME_BYTES]);

#endif /* RMM_ADAPTORS_CALL_STACK_H */
