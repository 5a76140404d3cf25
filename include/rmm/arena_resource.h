/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/arena_resource.h
 *
 * An arena resource takes one block from its upstream when it is created, never
 * another, and divides it among up to 64 arenas, so that threads do not wait for each
 * other, also on one stream. The number of the thread and the id of the stream choose
 * the arena; two that meet in one share its lock.
 *
 * Small requests are served by the chosen arena, from superblocks that it borrows from
 * the global arena; larger ones by the global arena itself. Small is up to a 4096th of
 * arena_bytes, but at least 64 KiB and at most 1 MiB; a superblock is a 1024th, 1 to 8
 * MiB, or less where there is less.
 *
 * Any block may be freed on any stream, by any thread. It can be allocated on that
 * stream at once; on another one only when an event that was recorded behind the free
 * has finished, behind a wait for that event on the device, or after a synchronise of
 * the device. Memory of ended threads and destroyed streams serves other threads and
 * streams.
 *
 * When nothing fits, all arenas return the free parts of their superblocks, in units of
 * 64 KiB: first those that finished events cover, then the others after a synchronise of
 * the device (not for an allocation in a graph capture). A part with a live block in it stays
 * where it is. So near its end an arena may refuse a request for which a pool of its
 * size (rmm/pool_resource.h) has room: take an arena for the throughput of many threads
 * on small blocks, else a pool.
 *
 * Lifetime: as rmm/resource.h. rmm_resource_trim() is RMM_ERR_UNSUPPORTED: there is one
 * block, and it stays until the last release, which waits for the device.
 *
 * Threads: as rmm/resource.h. No lock is held during a call of upstream.
 *
 * Blocking: an allocation that finds no free block may ask the driver, order its stream
 * behind another one, or synchronise the device; one that fails may write the dump. A
 * free may record an event; on a stream of another device it waits for that stream.
 * Each may allocate host memory.
 *
 * Units: bytes. Sizes are rounded up to 256; statistics count the requested bytes.
 * Alignment: 256, or more when asked for, to RMM_ALIGN_MAX. In /rmm, largest_free_bytes
 * is that of the global arena.
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
 *         RMM_ERR_OUT_OF_MEMORY       upstream cannot give arena_bytes, or half of what
 *                                     the device has free is less than 1 MiB
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
