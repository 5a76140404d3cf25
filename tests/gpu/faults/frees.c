/* SPDX-License-Identifier: Apache-2.0 */
/* Frees that the resource refuses, once beside the right ones. The twin makes only these. */
#include "gpu/faults/faults.h"

enum { BYTES = 1000, OTHER_BYTES = 3000 };

/* The wrong free, of a block that is live. */
static void around(
    scene_t *scene, bool is_faulty, rmm_resource_t *through, size_t offset,
    size_t bytes)
{
    char *block = scene_take(scene, BYTES, scene->a);

    scene->culprit = block;
    gpu_call(GPU_SET, block, NULL, BYTES, scene->a);
    if (is_faulty) {
        rmm_resource_dealloc(through, block + offset, bytes, 0, scene->a);
    }
    gpu_call(GPU_SET, block, NULL, BYTES, scene->a); /* it lives on */
    gpu_synchronize();
    scene_drop(scene, block, BYTES, scene->a);
}

static void of_another_size(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    (void)fault;
    around(scene, is_faulty, scene->mr, 0, BYTES * 50);
}

static void within_a_block(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    around(scene, is_faulty, scene->mr, (size_t)fault->offset, BYTES);
}

static void through_another(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    rmm_resource_t *other = NULL;

    (void)fault;
    if (rmm_resource_create_from_spec("pool:1MiB", &other) == RMM_OK) {
        around(scene, is_faulty, other, 0, BYTES);
        rmm_resource_release(other);
    }
}

static void twice(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    char *block = scene_take(scene, BYTES, scene->a);
    void *other = scene_take(scene, OTHER_BYTES, scene->a);

    (void)fault;
    scene->culprit = block;
    gpu_call(GPU_SET, block, NULL, BYTES, scene->a);
    gpu_call(GPU_SET, other, NULL, OTHER_BYTES, scene->a);
    gpu_synchronize();
    scene_drop(scene, block, BYTES, scene->a);
    scene_drop(scene, other, OTHER_BYTES, scene->a); /* another free meanwhile */
    if (is_faulty) {
        scene_drop(scene, block, BYTES, scene->a);
    }
}

#define FREE(word, spec, how, at)                                                      \
    .modes = "usage,bounds,order", .resource = spec, .plant = how, .kind = word,       \
    .access = "free", .bytes = BYTES, .offset = at

static const fault_t faults[] = {
    {.name = "pool_free_twice", FREE("double_free", "pool:64MiB", twice, 0)},
    {.name = "virtual_free_twice", FREE("double_free", "pool_virtual:64MiB", twice, 0)},
    {.name = "arena_free_twice", FREE("double_free", "arena:64MiB", twice, 0)},
    {.name = "fixed_free_twice", FREE("double_free", "fixed_size:4KiB", twice, 0)},
    {.name = "binning_free_twice", FREE("double_free", "binning:64MiB", twice, 0)},
    {.name = "cuda_free_twice", FREE("double_free", "cuda", twice, 0)},
    {.name = "managed_free_twice", FREE("double_free", "managed", twice, 0)},
    {.name = "async_free_twice", FREE("double_free", "async:64MiB", twice, 0)},
    {.name = "adaptors_free_twice",
     FREE("double_free", "statistics+limiting:32MiB+pool:64MiB", twice, 0)},
    {.name = "aligned_free_twice",
     FREE("double_free", "aligned:4KiB+pool:64MiB", twice, 0)},
    {.name = "pool_free_of_wrong_size",
     FREE("wrong_size_free", "pool:64MiB", of_another_size, 0)},
    {.name = "cuda_free_of_wrong_size",
     FREE("wrong_size_free", "cuda", of_another_size, 0)},
    {.name = "async_free_of_wrong_size",
     FREE("wrong_size_free", "async:64MiB", of_another_size, 0)},
    {.name = "arena_free_of_wrong_size",
     FREE("wrong_size_free", "arena:64MiB", of_another_size, 0)},
    {.name = "pool_free_within_block",
     FREE("invalid_free", "pool:64MiB", within_a_block, 256)},
    {.name = "cuda_free_within_block", FREE("invalid_free", "cuda", within_a_block, 8)},
    {.name = "pool_free_through_another",
     FREE("invalid_free", "pool:64MiB", through_another, 0)},
    {.name = "cuda_free_through_another",
     FREE("invalid_free", "cuda", through_another, 0)},
};

const fault_table_t faults_frees = {faults, sizeof(faults) / sizeof(faults[0])};
