/* SPDX-License-Identifier: Apache-2.0 */
/*
 * No function of the library is a cancellation point: a thread that pthread_cancel() cancels in
 * the middle of an allocation would leave locks, turns and half a change behind. So each place
 * that may wait in the kernel, or that runs a function of the program, is in the scope of an
 * RMM_UNCANCELLED, and a cancellation takes effect behind the call of the library.
 *
 * Cost: two calls of a few ns, no system call. Not on the fast path, which never waits.
 *
 * The scope also ends where an exception of C++ leaves it (the library is compiled with
 * -fexceptions). Asynchronous cancellation is not supported: POSIX allows it in three functions.
 */
#ifndef RMM_CORE_UNCANCELLED_H
#define RMM_CORE_UNCANCELLED_H

#include <pthread.h>

static inline int rmm__cancel_off(void)
{
    int before = PTHREAD_CANCEL_ENABLE;

    (void)pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &before);
    return before;
}

static inline void rmm__cancel_restore(const int *before)
{
    int ours;

    (void)pthread_setcancelstate(*before, &ours);
}

/* Calls end(&variable) where the variable's scope ends, also by an exception. */
#define RMM_AT_END(end) __attribute__((cleanup(end), unused))

/* A declaration: to the end of the block the thread cannot be cancelled. */
#define RMM_UNCANCELLED                                                                \
    RMM_AT_END(rmm__cancel_restore) int uncancelled = rmm__cancel_off()

#endif /* RMM_CORE_UNCANCELLED_H */
