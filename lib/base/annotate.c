/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See annotate.h. Heaps and regions are two search trees of the C library. Ranges that overlap
 * compare as equal, and no tree holds two that do, so one search finds what a range overlaps.
 *
 * Locking: `lock` protects both trees and orders the calls of the tool. Nothing is called under
 * it but the tool: it receives memory ranges, and does not call back.
 */
#include "base/annotate.h"

#include <pthread.h>
#include <sched.h>
#include <search.h>
#include <stdlib.h>
#include <time.h>

#include "base/diag_attach.h"
#include "base/nvtx_memory.h"
#include "core/assert.h"
#include "core/clock.h"
#include "core/fork.h"
#include "core/host_memory.h"
#include "core/uncancelled.h"
#include "driver/driver.h"
#include "log/log.h"

#define WAIT_NS ((uint64_t)10 * 1000 * 1000 * 1000)
#define WAIT_PAUSE_NS (50 * 1000)
#define WAIT_YIELDS 200 /* so often before the first pause: most waits are short */
#define TIMEOUTS_MAX 3  /* after this many timeouts in a process frees no longer wait */

/* A heap or a region. */
typedef struct area {
    uintptr_t begin;
    size_t bytes;
    void *heap;           /* heap: the tool's handle */
    uint32_t resource_id; /* region: which resource was called */
    bool in_callback;     /* region: by a program's own function */
    bool kept;            /* region: until its chunk ends */
} area_t;

atomic_bool rmm__annotate_on;

static const rmm_driver_t *driver; /* written before rmm__annotate_on */
static pthread_once_t open_once = PTHREAD_ONCE_INIT;
static rmm_mutex_t lock = RMM_MUTEX_INITIALIZER;
static void *heaps;   /* trees of area_t */
static void *regions; /* each inside one heap */
static _Atomic(uint32_t) timeouts;

/* The tool knows nothing of a child. */
static void stop_in_child(void)
{
    rmm__mutex_init(&lock);
    atomic_store_explicit(&rmm__annotate_on, false, memory_order_relaxed);
}

RMM_AT_LOAD static void join_forks(void)
{
    rmm__fork_join(RMM_FORK_ANNOTATIONS, NULL, stop_in_child);
}

/* --- the trees -------------------------------------------------------------------------- */

static int compare(const void *a, const void *b)
{
    const area_t *left = a;
    const area_t *right = b;

    return left->begin + left->bytes <= right->begin    ? -1
           : right->begin + right->bytes <= left->begin ? 1
                                                        : 0;
}

/* Any area that overlaps the range, or NULL. */
static area_t *find_locked(void *const *tree, const void *ptr, size_t bytes)
{
    const area_t range = {.begin = (uintptr_t)ptr, .bytes = bytes};
    area_t **node = tfind(&range, tree, compare);

    return node != NULL ? *node : NULL;
}

/* False without host memory. */
static bool insert_locked(void **tree, const area_t *area)
{
    area_t *copy = rmm__calloc(1, sizeof(*copy));

    if (copy == NULL) {
        return false;
    }
    *copy = *area;
    if (tsearch(copy, tree, compare) == NULL) {
        rmm__free(copy);
        return false;
    }
    return true;
}

static void remove_locked(void **tree, area_t *area)
{
    tdelete(area, tree, compare);
    rmm__free(area);
}

static void end_region_locked(area_t *region)
{
    rmm__nvtx_region_unregister((const void *)region->begin);
    remove_locked(&regions, region);
}

static bool contains(const area_t *outer, const area_t *inner)
{
    return outer->begin <= inner->begin &&
           inner->begin + inner->bytes <= outer->begin + outer->bytes;
}

/* The regions in a heap, or in a chunk inside of one. Of that chunk as a whole only its owner,
 * the upstream, ends the region. */
static void end_regions_locked(const area_t *range, bool is_heap)
{
    area_t *region;

    while ((region = find_locked(&regions, (void *)range->begin, range->bytes)) !=
               NULL &&
           (is_heap || !contains(region, range))) {
        end_region_locked(region);
    }
}

static void end_heap_locked(area_t *heap)
{
    end_regions_locked(heap, true);
    rmm__nvtx_heap_unregister(heap->heap);
    remove_locked(&heaps, heap);
}

/* --- chunks ---------------------------------------------------------------------------- */

/* The tool may ask for the current context, and the device's must be it. */
static bool enter(rmm_driver_scope_t *scope, int device)
{
    return rmm__annotate_is_on() && device >= 0 &&
           rmm__driver_scope_enter(scope, driver, device) == RMM_OK;
}

/* False: the tool refuses it. */
static bool begin_heap_locked(const void *ptr, size_t bytes)
{
    area_t heap = {.begin = (uintptr_t)ptr, .bytes = bytes};

    heap.heap = rmm__nvtx_heap_register(ptr, bytes);
    if (heap.heap == NULL) {
        return false;
    }
    if (!insert_locked(&heaps, &heap)) {
        rmm__nvtx_heap_unregister(heap.heap);
        return false;
    }
    return true;
}

void rmm__annotate_chunk(int device, const void *ptr, size_t bytes, bool is_cuda)
{
    RMM_UNCANCELLED;
    static atomic_bool is_logged;
    rmm_driver_scope_t scope;
    bool good = true;

    if (!is_cuda || !enter(&scope, device)) {
        return;
    }
    rmm__mutex_lock(&lock);
    /* checked again: the process may have begun to exit, and the tool is not called any more */
    if (rmm__annotate_is_on() && find_locked(&heaps, ptr, bytes) == NULL) {
        good = begin_heap_locked(ptr, bytes);
    }
    rmm__mutex_unlock(&lock);
    rmm__driver_scope_leave(&scope);
    if (!good && !atomic_exchange_explicit(&is_logged, true, memory_order_relaxed)) {
        rmm__log_info(
            "chunk %p bytes %zu is not annotated: the tool refused it, or no host "
            "memory; further such chunks are not logged",
            ptr, bytes);
    }
}

void rmm__annotate_chunk_gone(int device, const void *ptr, size_t bytes)
{
    RMM_UNCANCELLED;
    const area_t chunk = {.begin = (uintptr_t)ptr, .bytes = bytes};
    rmm_driver_scope_t scope;
    area_t *heap;

    if (!enter(&scope, device)) {
        return;
    }
    rmm__mutex_lock(&lock);
    heap = find_locked(&heaps, ptr, bytes);
    if (heap != NULL && contains(&chunk, heap)) {
        end_heap_locked(heap);
    } else if (heap != NULL) {
        end_regions_locked(&chunk, false);
    }
    rmm__mutex_unlock(&lock);
    rmm__driver_scope_leave(&scope);
}

/* --- blocks ---------------------------------------------------------------------------- */

/* Grow `region` over all that it overlaps, which end; false: one of them has all of it. */
static bool merge_locked(area_t *region)
{
    area_t *other;

    while ((other = find_locked(&regions, (void *)region->begin, region->bytes)) !=
           NULL) {
        uintptr_t end = region->begin + region->bytes;
        uintptr_t other_end = other->begin + other->bytes;

        if (contains(other, region)) {
            return false;
        }
        region->begin = region->begin < other->begin ? region->begin : other->begin;
        region->bytes = (end > other_end ? end : other_end) - region->begin;
        region->kept = true;
        end_region_locked(other);
    }
    return true;
}

void rmm__annotate_block(const rmm_annotate_block_t *block)
{
    RMM_UNCANCELLED;
    area_t region = {
        .begin = (uintptr_t)block->ptr,
        .bytes = block->bytes,
        .resource_id = block->resource_id,
        .in_callback = block->in_callback,
    };
    rmm_driver_scope_t scope;
    area_t *heap;

    if (!enter(&scope, block->device)) {
        return;
    }
    rmm__mutex_lock(&lock);
    heap = find_locked(&heaps, block->ptr, block->bytes);
    if (heap != NULL && merge_locked(&region)) {
        if (insert_locked(&regions, &region)) {
            rmm__nvtx_region_register(
                heap->heap, (const void *)region.begin, region.bytes);
        } else {
            end_heap_locked(heap);
        }
    }
    rmm__mutex_unlock(&lock);
    rmm__driver_scope_leave(&scope);
}

/* --- frees ----------------------------------------------------------------------------- */

/* The region that this free ends, or NULL. What a program's own function has allocated ends
 * with that function's free, or a direct one, not with that of the resource that calls it. */
static area_t *find_freed_locked(const rmm_annotate_block_t *block)
{
    area_t *region = find_locked(&regions, block->ptr, 1);

    if (region == NULL || region->begin != (uintptr_t)block->ptr || region->kept) {
        return NULL;
    }
    return !region->in_callback || block->in_callback ||
                   region->resource_id == block->resource_id
               ? region
               : NULL;
}

static void pause_briefly(unsigned round)
{
    if (round < WAIT_YIELDS) {
        sched_yield();
    } else {
        nanosleep(&(struct timespec){.tv_nsec = WAIT_PAUSE_NS}, NULL);
    }
}

/* In a driver scope. */
static int wait_for(rmm_driver_event_t event)
{
    bool has_given_up =
        atomic_load_explicit(&timeouts, memory_order_relaxed) >= TIMEOUTS_MAX;
    uint64_t begin = rmm__clock_ns(CLOCK_MONOTONIC);
    int error = driver->event_query(event);

    for (unsigned round = 0; error == RMM_DRIVER_NOT_READY && !has_given_up &&
                             rmm__clock_ns(CLOCK_MONOTONIC) - begin < WAIT_NS;
         round++) {
        pause_briefly(round);
        error = driver->event_query(event);
    }
    if (error == RMM_DRIVER_NOT_READY && !has_given_up) {
        atomic_fetch_add_explicit(&timeouts, 1, memory_order_relaxed);
    }
    return error;
}

/* True: all that was queued on the stream is done. In a scope of the resource's device. */
static bool stream_is_done(rmm_stream_t stream)
{
    rmm_stream_key_t key;
    rmm_driver_event_t event;
    int error;

    if (driver->stream_key(stream, &key) != RMM_DRIVER_OK || key.capture_id != 0 ||
        driver->event_create(&event) != RMM_DRIVER_OK) {
        return false;
    }
    error = driver->event_record(event, stream);
    if (error == RMM_DRIVER_OK) {
        error = wait_for(event);
    }
    (void)driver->event_destroy(event);
    return error == RMM_DRIVER_OK;
}

static bool is_freed(const rmm_annotate_block_t *block)
{
    bool found;

    rmm__mutex_lock(&lock);
    found = find_freed_locked(block) != NULL;
    rmm__mutex_unlock(&lock);
    return found;
}

size_t rmm__annotate_free(const rmm_annotate_block_t *block)
{
    RMM_UNCANCELLED;
    rmm_driver_scope_t scope;
    size_t bytes = 0;
    area_t *region;
    bool is_done;

    if (!rmm__annotate_is_on() || !is_freed(block) || !enter(&scope, block->device)) {
        return 0;
    }
    is_done = stream_is_done(block->stream);
    rmm__mutex_lock(&lock);
    region = find_freed_locked(block); /* again: the lock was given up */
    if (region != NULL && is_done) {
        bytes = region->bytes;
        end_region_locked(region);
    } else if (region != NULL) {
        region->kept = true;
    }
    rmm__mutex_unlock(&lock);
    rmm__driver_scope_leave(&scope);
    return bytes;
}

/* --- opening --------------------------------------------------------------------------- */

/* The tool ends before programs that release their pools last, as static objects: it must not
 * be called then. Without heaps all memory is accessible, for what still runs. */
static void stop_at_exit(void)
{
    area_t *heap;

    rmm__mutex_lock(&lock);
    if (rmm__annotate_is_on()) { /* not in a child */
        atomic_store_explicit(&rmm__annotate_on, false, memory_order_relaxed);
        while ((heap = find_locked(&heaps, NULL, SIZE_MAX)) != NULL) {
            end_heap_locked(heap);
        }
    }
    rmm__mutex_unlock(&lock);
}

static void open_tool(void)
{
    rmm_status_t status;

    driver = rmm__driver(&status); /* open: start_cuda() has used it */
    if (rmm__nvtx_memory_open()) {
        /* registered behind the tool's handlers, so called before them */
        (void)atexit(stop_at_exit);
        /* release: pairs with rmm__annotate_is_on() */
        atomic_store_explicit(&rmm__annotate_on, true, memory_order_release);
        rmm__diag_listen();
    }
}

/* CUDA creates a device's context when first needed, and the tool wants it before. */
static bool start_cuda(int device)
{
    rmm_driver_scope_t scope;
    rmm_status_t status;
    const rmm_driver_t *table = rmm__driver(&status);
    uint64_t free_bytes, total_bytes;
    int error;

    if (table == NULL || rmm__driver_scope_enter(&scope, table, device) != RMM_OK) {
        return false;
    }
    error = table->memory_info(&free_bytes, &total_bytes);
    rmm__driver_scope_leave(&scope);
    return error == RMM_DRIVER_OK;
}

bool rmm__annotate_open(int device)
{
    static atomic_bool is_logged;

    if (rmm__nvtx_memory_is_asked_for() && start_cuda(device)) {
        pthread_once(&open_once, open_tool);
        /* not inside of it: the log's function may create a resource */
        if (!atomic_exchange_explicit(&is_logged, true, memory_order_relaxed)) {
            rmm__nvtx_memory_log();
        }
    }
    return rmm__annotate_is_on();
}
