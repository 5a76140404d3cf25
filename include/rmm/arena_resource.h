/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/arena_resource.h
 *
 * An arena resource allocates a single block from upstream, when it is created. It
 * divides the block among up to 64 arenas, so threads rarely wait for each other, even on
 * one stream. The number of the thread and the id of the stream select the arena. Threads
 * in the same arena share its lock.
 *
 * The chosen arena serves small requests, from superblocks that it borrows from the global
 * arena. The global arena serves the larger ones. A request is small up to a 4096th of
 * arena_bytes, but at least 64 KiB and at most 1 MiB. A superblock is a 1024th of
 * arena_bytes, 1 to 8 MiB, or less if less is free.
 *
 * Any thread may free any block, on any stream. That stream can allocate it again at once.
 * Another stream gets it only after an event that was recorded after the free has
 * finished, behind a wait for that event on the device, or after a synchronise of the
 * device. Memory of ended threads and destroyed streams serves other threads and streams.
 *
 * When nothing fits, all arenas return the free parts of their superblocks, in units of
 * 64 KiB: first those that finished events cover, then the others after a synchronise of
 * the device (not for an allocation in a graph capture). A part with a live block in it is
 * not returned. So a nearly full arena may refuse a request that a pool of the same size
 * (rmm/pool_resource.h) would serve: use an arena for the throughput of many threads on
 * small blocks, otherwise a pool.
 *
 * Lifetime: as rmm/resource.h. rmm_resource_trim() is RMM_ERR_UNSUPPORTED: the resource
 * keeps its one block until the last release, which waits for the device.
 *
 * Threads: as rmm/resource.h. No lock is held during a call of upstream.
 *
 * Blocking: an allocation that finds no free block may call the driver, order its stream
 * behind another one, or synchronise the device. An allocation that fails may write the
 * dump. A free may record an event; on a stream of another device it waits for that stream.
 * Each of these calls may allocate host memory.
 *
 * Units: bytes. Sizes are rounded up to 256; statistics count the requested bytes.
 * Alignment: 256, or more on request, up to RMM_ALIGN_MAX. In /rmm, largest_free_bytes is
 * that of the global arena.
 */
#ifndef RMM_ARENA_RESOURCE_H
#define RMM_ARENA_RESOURCE_H

#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Zero in any field means its default. */
typedef struct rmm_arena_options {
    size_t struct_size;   /**< set by RMM_ARENA_OPTIONS_INIT; do not touch */
    uint64_t arena_bytes; /**< 1 MiB or more, rounded down to 256; 0: half of what the
                                   device has free */
    uint32_t dump_on_failure; /**< not 0: write a file when a request finds no room */
    const char *dump_path;    /**< that file, replaced each time; copied; default
                                   "rmm_arena_memory_dump.log" */
    const char *name;         /**< shown in /rmm; copied; default "arena" */
} rmm_arena_options_t;

#define RMM_ARENA_OPTIONS_INIT                                                         \
    {                                                                                  \
        sizeof(rmm_arena_options_t), 0, 0, NULL, NULL                                  \
    }

/**
 * Create an arena resource over @p upstream, which it retains.
 *
 * @param upstream  where the one block comes from
 * @param options   NULL: all defaults
 * @param out       receives the resource, one reference; untouched on failure
 * @return RMM_OK, or
 *         RMM_ERR_INVALID_ARGUMENT    upstream or out is NULL, arena_bytes is less than
 *                                     1 MiB or more than an arena can divide (just under
 *                                     1 TiB), or options were not made with _INIT
 *         RMM_ERR_UNSUPPORTED         options of a newer version ask for more, or
 *                                     upstream belongs to no device (host memory)
 *         RMM_ERR_OUT_OF_MEMORY       upstream has no arena_bytes left, or half of the
 *                                     device's free memory is less than 1 MiB
 *         RMM_ERR_BAD_ALLOC           upstream failed for another reason
 *         RMM_ERR_CUDA                a call of the driver failed
 *         RMM_ERR_OUT_OF_HOST_MEMORY  no host memory for the resource
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_arena_resource_create(
    rmm_resource_t *upstream, const rmm_arena_options_t *options, rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_ARENA_RESOURCE_H */
