/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Takes and releases the locks of the whole library around fork(), in one place. A child has one
 * thread: a lock that another thread of the parent held is held for ever there, and what it
 * protects is half changed. So each such lock is one of these:
 *
 *   held over the fork   The fork waits until no thread is in the critical section. For data
 *                        that the child goes on with, and sections that are short.
 *   made anew            In the child the lock is free and its data are empty. For data of
 *                        the parent's that are worthless in the child.
 *
 * Locks of one resource need neither: in a child every inherited resource is replaced by one
 * that takes no lock (resource.c).
 *
 * Order: locks are taken before the fork in the order of rmm_fork_part_t, so one that is
 * held while another is taken comes before that one. No thread calls out of the library
 * while it holds one of them, so a callback may fork.
 *
 * The parts join when the library is loaded. If a part joined at its first use instead, a fork
 * by another thread at that moment would miss it. fork.c installs the handlers once.
 */
#ifndef RMM_CORE_FORK_H
#define RMM_CORE_FORK_H

#include <stdbool.h>

#include "core/mutex.h"

typedef enum rmm_fork_part {
    RMM_FORK_REQUEST_THREAD, /* request_thread.c: the thread, which the child lacks; anew */
    RMM_FORK_DEFAULTS,       /* device_resource.c: defaults being made; anew */
    RMM_FORK_TORCH,          /* torch.c: PyTorch's blocks; held */
    RMM_FORK_ROW_WRITERS,  /* row_writer.c: allocation logs; anew */
    RMM_FORK_WAIT_THREADS, /* wait_threads.c: who holds what of a wait adaptor; held */
    RMM_FORK_CALL_STACKS, /* call_stack.c: loading libunwind, left to the parent; held */
    RMM_FORK_INSTANCES,   /* tracked.c: shared instances; held */
    RMM_FORK_MEMPOOLS,    /* mempool.c: CUDA's pools; anew */
    RMM_FORK_ANNOTATIONS,    /* annotate.c: heaps and regions; anew, and off */
    RMM_FORK_PROGRAM_MEMORY, /* program_memory.c: what the program took; held */
    RMM_FORK_REGISTRY,  /* resource.c: all resources, which refuse in the child; held */
    RMM_FORK_LEAKS,     /* leak_rows.c: the list of leaks being opened; held */
    RMM_FORK_PUBLISHER, /* segment_writer.c: the segment; held */
    RMM_FORK_LOG,       /* sink.c: the log's sink; held */
    RMM_FORK_MARKS, /* accounting.c: resets of marks, held; writers of locations, anew */
    RMM_FORK_DRIVER,     /* driver.c: the choice, which refuses in the child; held */
    RMM_FORK_BARRIER,    /* barrier.c: kept blocks; anew */
    RMM_FORK_STREAM_IDS, /* stream_ids.c: the table of streams; held */
    RMM_FORK_SIM,        /* sim.c: the simulated GPU; held */
    RMM_FORK_SIM_FAULTS, /* driver/sim/fault.c: its fault plan; held */
    RMM_FORK_LOCAL_TIME, /* local_time.c: the C library's lock of time zones; held */
    RMM_FORK_DIAGNOSIS,  /* diag_attach.c: the diagnosis library, which is dropped */
    RMM_FORK_PART_COUNT
} rmm_fork_part_t;

/*
 * `held`: a lock to take before the fork and to give back behind it; NULL: none.
 * `in_child`: called in the child, while all that was held is still held; NULL: nothing to
 * do. It calls nothing that takes a lock or memory.
 */
void rmm__fork_join(rmm_fork_part_t part, rmm_mutex_t *held, void (*in_child)(void));

/* False: the handlers could not be installed, and no fork is survived. */
bool rmm__fork_is_watched(void);

/* Before a function without arguments: called when the library is loaded. */
#define RMM_AT_LOAD __attribute__((constructor(1001)))

#endif /* RMM_CORE_FORK_H */
