/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/arena_resource.h
 *
 * An arena resource takes one block from its upstream when it is created, never another,
 * and divides it among arenas: one for each stream of each thread, up to 64, so that threads
 * do not wait for each other, also on one stream. Requests
 * of up to 1 MiB (where all is less than 4 GiB, of a 4096th part, but 64 KiB at least) are
 * served by the arena of thread and stream from superblocks of 1 MiB and more, which it borrows from
 * the global arena; larger ones by the global arena itself.
 *
 * Any block may be freed on any stream, by any thread: it is reused on that stream at once,
 * on another one only behind an event recorded while the freeing call proved that its
 * stream was alive, or behind a wait for the device. A thread that ends and a stream
 * that is destroyed leave nothing behind that others cannot have.
 *
 * When nothing fits, all arenas give back what is free of their superblocks, first what is
 * finished, then behind other streams' work; a request fails only if that does not help
 * either.
 *
 * Alignment: 256 bytes, or more when asked for, to RMM_ALIGN_MAX. Sizes are rounded up to
 * 256 bytes; the books count what was asked for. In /rmm, largest_free_bytes is that of
 * the global arena.
 *
 * Lifetime, threads: as rmm/resource.h. rmm_resource_trim() is RMM_ERR_UNSUPPORTED: there
 * is one block, and it stays.
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
 *         RMM_ERR_BAD_ALLOC           upstream failed otherwise
 *         RMM_ERR_OUT_OF_HOST_MEMORY
 */
RMM_API RMM_NODISCARD rmm_status_t rmm_arena_resource_create(
    rmm_resource_t *upstream, const rmm_arena_options_t *options, rmm_resource_t **out);

#ifdef __cplusplus
}
#endif

#endif /* RMM_ARENA_RESOURCE_H */
