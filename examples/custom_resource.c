/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory of the program's own as a resource: eight slots of one large block, as in a program that
 * registers its memory with a network card once. Statistics, limits and /rmm work as for any other
 * resource.
 */
#include <rmm/rmm.h>
#include <stdatomic.h>
#include <stdio.h>

#define SLOT_BYTES ((size_t)1 << 20)
#define SLOT_COUNT 8

typedef struct slab {
    char *memory;
    atomic_bool taken[SLOT_COUNT];
} slab_t;

/* May run on several threads at once; no lock of the library is held. */
static rmm_status_t
slot_alloc(size_t bytes, size_t align, rmm_stream_t stream, void *payload, void **out)
{
    slab_t *slab = payload;
    (void)stream; /* a free slot is idle: see slot_dealloc() */
    if (bytes > SLOT_BYTES || align > RMM_ALIGN_DEFAULT) {
        return RMM_ERR_BAD_ALLOC;
    }
    for (int i = 0; i < SLOT_COUNT; i++) {
        if (!atomic_exchange(&slab->taken[i], true)) {
            *out = slab->memory + (size_t)i * SLOT_BYTES;
            return RMM_OK;
        }
    }
    return RMM_ERR_OUT_OF_MEMORY;
}

/* Queued work may still use the block: wait for it before another stream gets the slot. */
static void
slot_dealloc(void *ptr, size_t bytes, size_t align, rmm_stream_t stream, void *payload)
{
    slab_t *slab = payload;
    (void)bytes, (void)align;
    if (rmm_stream_synchronize(stream) == RMM_OK) {
        atomic_store(
            &slab->taken[((char *)ptr - slab->memory) / (long)SLOT_BYTES], false);
    }
}

int main(void)
{
    rmm_custom_resource_ops_t ops = RMM_CUSTOM_RESOURCE_OPS_INIT;
    slab_t slab = {0};
    rmm_resource_t *cuda, *slots;
    void *memory, *blocks[SLOT_COUNT + 1];
    int count = 0;

    ops.alloc = slot_alloc;
    ops.dealloc = slot_dealloc;
    ops.name = "slots";
    if (rmm_cuda_resource_create(&cuda) ||
        rmm_resource_alloc_sync(cuda, SLOT_COUNT * SLOT_BYTES, 0, &memory) ||
        rmm_custom_resource_create(&ops, &slab, &slots)) {
        return fprintf(stderr, "%s\n", rmm_last_error_message()), 1;
    }
    slab.memory = memory;
    while (count <= SLOT_COUNT && /* nine, of eight slots */
           rmm_resource_alloc(slots, 1000, 0, RMM_STREAM_DEFAULT, &blocks[count]) ==
               RMM_OK) {
        count++;
    }
    printf("%d blocks, then: %s\n", count, rmm_last_error_message());
    while (count-- > 0) {
        rmm_resource_dealloc(slots, blocks[count], 1000, 0, RMM_STREAM_DEFAULT);
    }
    rmm_resource_release(slots);
    rmm_resource_dealloc_sync(cuda, memory, SLOT_COUNT * SLOT_BYTES, 0);
    rmm_resource_release(cuda);
    return 0;
}
