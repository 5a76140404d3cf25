/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One thread's part of a case, on whatever GPU there is: it takes blocks, has the device
 * write each one's mark into both its ends, has it read back before the free, and compares.
 *
 * Failures are noted and not asserted, because most cases run on several threads, where
 * cmocka cannot.
 */
#ifndef RMM_TESTS_CONFORMANCE_WORKER_H
#define RMM_TESTS_CONFORMANCE_WORKER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "conformance/subjects.h"

#define THREADS 4
#define BLOCKS 100
#define END_BYTES 64 /* written and read at each end of a block */

typedef enum order {
    ORDER_SYNC, /* the synchronous twins */
    ORDER_DEFAULT_STREAM,
    ORDER_STREAM,
} order_t;

typedef struct block {
    void *ptr;
    size_t bytes;
    unsigned char mark;
} block_t;

/* What the device read at a block's ends, once its stream has come to it. */
typedef struct sample {
    unsigned char ends[2][END_BYTES];
    unsigned char mark;
    size_t end_bytes;
} sample_t;

typedef struct worker {
    const subject_t *subject;
    rmm_resource_t *mr;
    order_t order;
    rmm_stream_t stream;
    bool has_device; /* `device` is made current for what is queued on the stream */
    int device;
    bool spares_captures; /* its own calls may not ruin another thread's capture */
    uint64_t random;
    uint64_t failures;
    int first_failure; /* line */
    char message[200]; /* the library's, of the first failure */
    size_t sample_count;
    sample_t samples[BLOCKS];
} worker_t;

#define EXPECT(worker, condition) worker_note(worker, (condition), __LINE__)

bool worker_note(worker_t *worker, bool holds, int line);
uint64_t worker_draw(worker_t *worker, uint64_t limit);

rmm_status_t worker_obtain(worker_t *worker, size_t bytes, void **ptr);

/* A block, with a mark of the device queued on it; false if it failed, which is noted. */
bool worker_take(worker_t *worker, size_t bytes, block_t *block);

/* Has its mark read, and frees it. At most BLOCKS before worker_compare(). */
void worker_give(worker_t *worker, const block_t *block);

/* Waits for the worker's stream and compares what was read. */
void worker_compare(worker_t *worker);

/* Between two threads' streams: what was queued on it is done. */
void worker_wait(worker_t *worker);

/* Fails the test of the calling (main) thread with what the worker noted. */
void worker_assert(const worker_t *worker);

/* The rest of what a case checks on the main thread: nothing is out, no free was refused;
 * after the release the device's memory is back and the simulated GPU found no bug. */
void subject_end(rmm_resource_t *mr);

/* Fails the test unless it works. */
rmm_resource_t *subject_begin(const subject_t *subject);

#endif /* RMM_TESTS_CONFORMANCE_WORKER_H */
