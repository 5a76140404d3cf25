/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The blocks of an engine, as they are at one moment: for an operator who looks.
 */
#ifndef RMM_POOL_LISTING_H
#define RMM_POOL_LISTING_H

#include "pool/engine.h"

typedef enum engine_block_state {
    ENGINE_BLOCK_CHUNK, /* contiguous memory of the source; blocks that lie in it follow */
    ENGINE_BLOCK_USED,
    ENGINE_BLOCK_FREE,   /* clean */
    ENGINE_BLOCK_CACHED, /* of a stream, or of one that could not be identified */
    ENGINE_BLOCK_GRAPH,  /* of a captured graph */
    ENGINE_BLOCK_LOST    /* never used again, but held */
} engine_block_state_t;

#define ENGINE_NO_STREAM UINT64_MAX

typedef struct engine_listed {
    engine_block_state_t state;
    uint64_t address, bytes;
    uint64_t stream; /* its id: of ENGINE_BLOCK_CACHED; else ENGINE_NO_STREAM */
    uint64_t padding;
} engine_listed_t;

/* How many blocks and chunks there may be, at most. */
uint32_t rmm__engine_list_bound(engine_t *engine);

/*
 * Visit all chunks, then all blocks; a block that another engine divides is listed by that one.
 * Under the lock: visit does no more than note it. What is being mapped or given back at the
 * moment is left out: returns how many bytes of what the engine holds.
 *
 * Cost: one step for each node that ever was in use, some 10 ns.
 */
typedef void (*engine_listed_fn)(void *context, const engine_listed_t *listed);
uint64_t rmm__engine_list(engine_t *engine, engine_listed_fn visit, void *context);

#endif /* RMM_POOL_LISTING_H */
