/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where an engine's memory comes from. chunks.c takes chunks from an upstream; range.c maps
 * memory of the device into one range of addresses.
 *
 * Every function is called without the lock, by one thread at a time as a rule (the turn),
 * and is right with several.
 */
#ifndef RMM_POOL_SOURCE_H
#define RMM_POOL_SOURCE_H

#include "pool/engine_impl.h"

struct engine_source_ops {
    /* Into a new engine, with its initial bytes. After a failure fini() is called as well. */
    rmm_status_t (*open)(engine_t *engine, const engine_plan_t *plan);
    /* Take what lets a block of `need` bytes be had, a multiple of 256, and a little more
     * where there is more. RMM_OK, or the last error says why not. */
    rmm_status_t (*grow)(engine_t *engine, uint64_t need);
    /* Could growth, as far as the maximum goes? */
    bool (*can_grow_locked)(const engine_t *engine, uint64_t need);
    /* Rather than grow: move free memory together, where much is free. True: try again. */
    bool (*tidy)(engine_t *engine, uint64_t need);
    /* Move free memory together, all of it clean. True: try again. False, and *status is
     * set: it could not be tried. */
    bool (*gather)(engine_t *engine, uint64_t need, bool is_last, rmm_status_t *status);
    /* Give free memory back, the youngest first, down to keep_bytes. */
    rmm_status_t (*trim)(engine_t *engine, uint64_t keep_bytes);
    /* Everything goes; is_idle: no work of the device can use it any more. */
    void (*fini)(engine_t *engine, bool is_idle);
};

extern const engine_source_ops_t rmm__engine_chunks; /* chunks.c */
extern const engine_source_ops_t rmm__engine_range;  /* range.c */

/* A barrier must not fail because the engine took all of the device: while it holds memory
 * a block is kept. */
void rmm__engine_keep_barrier(engine_t *engine, bool keep);

#endif /* RMM_POOL_SOURCE_H */
