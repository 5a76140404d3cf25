/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an engine's memory comes from. chunks.c takes chunks from an upstream; range.c maps
 * memory of the device into one range of addresses.
 *
 * Every function is called without the lock, by one thread at a time as a rule (the turn),
 * but works with several.
 */
#ifndef RMM_POOL_SOURCE_H
#define RMM_POOL_SOURCE_H

#include "pool/engine_impl.h"

/* How much the source knows, when the engine ends, of queued work that uses its memory. */
typedef enum engine_end {
    ENGINE_END_IDLE,           /* there is none */
    ENGINE_END_USED_ELSEWHERE, /* another device may have some; it cannot be waited for */
    ENGINE_END_UNKNOWN /* the device cannot be waited for, or the process exits */
} engine_end_t;

/* How much is done to move free memory together. */
typedef enum engine_gather {
    ENGINE_GATHER_IF_WORTH, /* before growth, if much is free; not all of it is clean */
    ENGINE_GATHER_SOME,     /* all is clean now, as below */
    ENGINE_GATHER_ALL
} engine_gather_t;

struct engine_source_ops {
    /* For a new engine. After a failure of this or of fill() fini() is called as well. */
    rmm_status_t (*open)(engine_t *engine, const engine_plan_t *plan);
    /* Take its initial bytes. */
    rmm_status_t (*fill)(engine_t *engine, uint64_t bytes);
    /* Take enough for a block of this size and alignment, and some more if available. RMM_OK, or
     * the last error has the reason. */
    rmm_status_t (*grow)(engine_t *engine, const rmm_blocks_request_t *request);
    /* Does the maximum allow such growth? */
    bool (*can_grow_locked)(
        const engine_t *engine, const rmm_blocks_request_t *request);
    /* Move free memory together. True: try again. False, with *status set: it could not be
     * tried. */
    bool (*gather)(
        engine_t *engine, const rmm_blocks_request_t *request, engine_gather_t how,
        rmm_status_t *status);
    /* Return free memory, the highest addresses first, down to keep_bytes. */
    rmm_status_t (*trim)(engine_t *engine, uint64_t keep_bytes);
    /* Give everything back that nothing can use any more. */
    void (*fini)(engine_t *engine, engine_end_t end);
};

extern const engine_source_ops_t rmm__engine_chunks; /* chunks.c */
extern const engine_source_ops_t rmm__engine_range;  /* range.c */

/*
 * grow() of the source. Before it, and while the engine holds memory, a small block is kept
 * for rmm__driver_barrier(), which must not fail because the engine took all memory of the
 * device. Taken later, it might not exist, or split the memory that is left. An engine without
 * memory gives it up where a request needs the very last of the device.
 */
rmm_status_t rmm__engine_grow(engine_t *engine, const rmm_blocks_request_t *request);

#endif /* RMM_POOL_SOURCE_H */
