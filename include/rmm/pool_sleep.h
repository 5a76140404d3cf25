/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/pool_sleep.h
 *
 * A virtual pool (RMM_POOL_VIRTUAL) can sleep: the contents of its blocks are copied to host
 * memory or discarded, and its physical memory goes back to the device, for other programs or
 * other pools. The addresses stay reserved. When the pool wakes, every block is where it was,
 * with its contents: pointers stay valid, and captured graphs can be launched again.
 *
 * While the pool is asleep no work of a GPU may use its blocks: they have no memory, and an access
 * is an error of the device. The pool waits for work that was queued before the call.
 *
 * An allocation from a pool that is asleep fails with RMM_ERR_ASLEEP, or waits until the pool is
 * awake (RMM_POOL_SLEEP_WAIT). Blocks can be freed at any time. A trim has no effect.
 * rmm_resource_get_stats(): reserved_bytes is what the pool still holds, mostly 0;
 * asleep_bytes is what it will take again to wake, and current_bytes is as before.
 *
 * Each function takes a virtual pool, or adaptors over one. Not a resource over the pool that
 * divides its memory (an arena, another pool, binning): it would go on to hand out blocks.
 *
 * Lifetime: as rmm/resource.h. A pool may be released while it is asleep.
 *
 * Threads: as rmm/resource.h. A call waits until another thread's sleep or wake of the pool has
 * ended. Neither may be called from a callback of an allocation of this pool.
 *
 * Blocking: both functions wait for copies, and for the device. They call the driver once to three
 * times for each piece of the pool (docs/pool.md).
 */
#ifndef RMM_POOL_SLEEP_H
#define RMM_POOL_SLEEP_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Discard the contents of all blocks: after the pool has woken, they are undefined. A list of
 *  blocks is not looked at then. */
#define RMM_POOL_SLEEP_DISCARD (RMM_CAST(uint64_t, 1) << 0)

/** Allocations wait until the pool is awake, instead of failing with RMM_ERR_ASLEEP. A thread
 *  that waits is not cancelled by pthread_cancel(). */
#define RMM_POOL_SLEEP_WAIT (RMM_CAST(uint64_t, 1) << 1)

/**
 * Keep the host memory for the next sleep. To allocate pinned memory takes far longer than the
 * copy, so a pool that sleeps often should keep it. It goes back at the pool's end, or when the
 * pool wakes from a sleep without this flag.
 */
#define RMM_POOL_SLEEP_KEEP_HOST (RMM_CAST(uint64_t, 1) << 2)

/** Zero in any field means its default. */
typedef struct rmm_pool_sleep_options {
    size_t struct_size; /**< set by RMM_POOL_SLEEP_OPTIONS_INIT; do not touch */
    uint64_t flags;     /**< RMM_POOL_SLEEP_*, or-ed */
    const void *const *discarded; /**< blocks whose contents are discarded; not kept */
    uint64_t discarded_count;     /**< how many */
    rmm_resource_t
        *host; /**< where contents go: a resource of host memory, retained while it is
                               used; NULL: pinned memory */
} rmm_pool_sleep_options_t;

#define RMM_POOL_SLEEP_OPTIONS_INIT                                                    \
    {                                                                                  \
        sizeof(rmm_pool_sleep_options_t), 0, NULL, 0, NULL                             \
    }

/** What a pool does now. */
typedef enum rmm_pool_state {
    RMM_POOL_AWAKE = 0,          /**< it serves requests */
    RMM_POOL_FALLING_ASLEEP = 1, /**< a thread is in rmm_pool_sleep() */
    RMM_POOL_ASLEEP = 2,
    RMM_POOL_WAKING = 3 /**< a thread is in rmm_pool_wake() */
} rmm_pool_state_t;

/**
 * Let a pool sleep.
 *
 * After a failure the pool is awake, as if nothing had happened; all contents are there. Only if
 * the driver refuses to give memory back, and then refuses as well to return what it got, the
 * pool is asleep: rmm_pool_get_state() tells, and rmm_pool_wake() may succeed later.
 *
 * @param mr       a virtual pool, or an adaptor over one
 * @param options  NULL: all defaults
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    mr is NULL, a flag is unknown, a discarded block is no live
 *                                     block of the pool, host has no host memory, or options
 *                                     were not made with _INIT
 *         RMM_ERR_UNSUPPORTED         mr is no virtual pool, or divides the memory of one; or
 *                                     options of a newer version ask for more
 *         RMM_ERR_ASLEEP              it is asleep already
 *         RMM_ERR_IN_USE              memory of the pool was exported, a blocking stream of the
 *                                     device captures a graph, or another thread's call that
 *                                     grows or trims the pool did not end within 10 s
 *         RMM_ERR_OUT_OF_HOST_MEMORY  no host memory for the contents
 *         RMM_ERR_OUT_OF_MEMORY       the same: a limit of the host resource forbids it
 *         RMM_ERR_BAD_ALLOC           the host resource failed for another reason
 *         RMM_ERR_CUDA                a call of the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_pool_sleep(rmm_resource_t *mr, const rmm_pool_sleep_options_t *options);

/**
 * Wake a pool: take as much memory from the device as it had, at the same addresses, and copy the
 * contents back. Nothing to do for a pool that is awake.
 *
 * After a failure the pool is asleep as before, and holds no memory but what the driver did not
 * take back. Call again when there is more memory.
 *
 * @param mr  a virtual pool, or an adaptor over one
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  mr is NULL
 *         RMM_ERR_UNSUPPORTED       mr is no virtual pool, or divides the memory of one
 *         RMM_ERR_OUT_OF_MEMORY     the device has less memory than the pool needs, or a limit
 *                                   forbids it
 *         RMM_ERR_CUDA              a call of the driver failed
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_pool_wake(rmm_resource_t *mr);

/**
 * Report what a pool does now. Any other thread may change it at once.
 *
 * @param mr         a virtual pool, or an adaptor over one
 * @param state_out  receives the state; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT  mr or state_out is NULL
 *         RMM_ERR_UNSUPPORTED       mr is no virtual pool, or divides the memory of one
 */
RMM_API RMM_NODISCARD rmm_status_t
rmm_pool_get_state(const rmm_resource_t *mr, rmm_pool_state_t *state_out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_POOL_SLEEP_H */
