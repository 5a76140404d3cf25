/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Tells a tool (nvtx_memory.h) which memory belongs to pools and which blocks in it users hold,
 * so that compute-sanitizer reports an access past the end of a block inside a pool.
 *
 * A chunk that a pool takes from CUDA becomes a heap. A chunk inside a heap (a pool over a
 * pool) does not: heaps are flat. Every call of the program that yields a block in a heap makes
 * it a region of the bytes requested, whichever resource it called; what one resource takes
 * from another is no region. Where a region cannot be exact it is too large, never too small:
 * a correct program is never reported.
 *
 *  - A free waits, for a while, for the work queued on its stream, because that may still use
 *    the block. If the work does not end, or the stream captures a graph, which uses the block
 *    at every launch, the region is kept until its chunk ends.
 *  - A block that overlaps other regions is merged with them, and that region is kept.
 *  - If a region cannot be recorded, the whole heap ends.
 *
 * Order: a region is registered before the program sees the block, and unregistered before
 * the resource can hand out the memory again. Called with no lock of a resource held.
 *
 * Threads: any. One lock of its own, held while the tool is called: the tool sees the calls in
 * the order in which they are recorded here.
 */
#ifndef RMM_BASE_ANNOTATE_H
#define RMM_BASE_ANNOTATE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <rmm/stream.h>

/* A call of the program on a resource: which block, and how it was made. */
typedef struct rmm_annotate_block {
    const void *ptr;
    size_t bytes; /* as requested, > 0 */
    rmm_stream_t stream;
    uint32_t resource_id;
    int device;       /* of the memory; -1: none, it is the host's */
    uint32_t flags;   /* RMM_DIAG_BLOCK_...: how it is ordered */
    bool in_callback; /* made by a program's own function that the library has called */
    uintptr_t
        end; /* of an allocation: of what is its own, the gap included; 0: unknown */
    const char *resource_type, *resource_name; /* of an allocation */
} rmm_annotate_block_t;

extern atomic_bool rmm__annotate_on;

/*
 * Before a resource that divides memory takes its first chunk on this device: true if a tool
 * listens. Decided once in a process, by the environment; loads the tool.
 */
bool rmm__annotate_open(int device);

static inline bool rmm__annotate_is_on(void)
{
    /* acquire: pairs with rmm__annotate_open(); the tool is initialised */
    return atomic_load_explicit(&rmm__annotate_on, memory_order_acquire);
}

/* A pool has taken a chunk from its upstream, or is about to give it back. is_cuda: it comes from
 * cudaMalloc() or cudaMallocManaged(); tools refuse other memory. */
void rmm__annotate_chunk(int device, const void *ptr, size_t bytes, bool is_cuda);
void rmm__annotate_chunk_gone(int device, const void *ptr, size_t bytes);

/* After a block was obtained. */
void rmm__annotate_block(const rmm_annotate_block_t *block);

/* Before a block is freed. The bytes of the region that ended, for annotating it again if the
 * resource refuses the free; 0: none ended. May wait for the stream. */
size_t rmm__annotate_free(const rmm_annotate_block_t *block);

#endif /* RMM_BASE_ANNOTATE_H */
