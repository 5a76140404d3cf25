/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/request_thread.h
 *
 * A thread that obeys what operators write into /rmm while the program itself allocates nothing.
 *
 * A program obeys limits, trims and requests for its blocks (`map`, `allocations`) within its
 * own allocations, so one that is idle, such as a notebook between two cells, does not. With this
 * thread, named "rmm-requests", it does: the daemon wakes it. Without requests it looks at one word
 * of memory each second.
 *
 *   trim          is obeyed at once, as within an allocation
 *   map, ...      the blocks are listed at once
 *   limit_bytes   of the process on a GPU: pools give back free memory until the process holds no
 *                 more, whenever the limit is new or an idle program has freed more. Growth
 *                 beyond a limit is refused with and without the thread
 *
 * It is off unless the program starts it, or RMM_REQUEST_THREAD=1 is in the environment.
 *
 * Devices: the thread makes no device's context; memory of a device whose context is not there
 * is left alone. Captures: as rmm_resource_trim(), the thread ruins none. Functions of the
 * program below a pool (custom and callback resources) and of its log may be called on it.
 *
 * Signals: all are blocked in it but those of a fault of its own. Fork: a child does not have the
 * thread, and needs none, because nobody sees a child in /rmm until it calls exec. Exit: an exit
 * handler stops it, and waits for what it does, but at most 2 seconds. A program whose main
 * thread ends by pthread_exit() ends within 2 seconds of its last other thread.
 *
 * Threads: any function, any thread; not in a function of the program that the thread calls.
 */
#ifndef RMM_REQUEST_THREAD_H
#define RMM_REQUEST_THREAD_H

#include <rmm/export.h>
#include <rmm/status.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Start the thread; before the first resource of the process: as soon as that is created. Without
 * effect if it runs.
 *
 * @return RMM_OK, or
 *         RMM_ERR_OUT_OF_HOST_MEMORY  no thread could be created
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_request_thread_start(void);

/**
 * Stop the thread and wait until it has ended, also if RMM_REQUEST_THREAD started it. Without
 * effect if there is none.
 */
RMM_API void rmm_request_thread_stop(void);

#ifdef __cplusplus
}
#endif

#endif /* RMM_REQUEST_THREAD_H */
