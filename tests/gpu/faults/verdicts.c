/* SPDX-License-Identifier: Apache-2.0 */
/* Wasted memory: blocks that the twin uses in time, frees in time, or uses at all. */
#include "gpu/faults/faults.h"

enum { BYTES = 4096, OTHER_BYTES = 1 << 16, LAUNCHES = 3 };

/* Other work, as much as a verdict needs. */
static void work(const void *other, rmm_stream_t stream)
{
    for (int i = 0; i < LAUNCHES; i++) {
        gpu_launch(GPU_KERNEL_sum, other, NULL, stream);
    }
}

/* Work on another block comes before the use, behind it, or both. */
typedef struct life {
    bool waits, uses, lingers, is_freed;
} life_t;

static void live(scene_t *scene, life_t life)
{
    void *other = scene_take(scene, OTHER_BYTES, scene->a);
    void *block = NULL;

    gpu_launch(GPU_KERNEL_fill, other, NULL, scene->a);
    block = scene_take(scene, BYTES, scene->a);
    scene->culprit = block;
    if (life.waits) {
        work(other, scene->a);
    }
    if (life.uses) {
        gpu_launch(GPU_KERNEL_reduce, block, NULL, scene->a);
    }
    if (life.lingers) {
        work(other, scene->a);
    }
    gpu_launch(GPU_KERNEL_sum, other, NULL, scene->a);
    if (life.is_freed) {
        scene_drop(scene, block, BYTES, scene->a);
    }
    scene_drop(scene, other, OTHER_BYTES, scene->a);
}

static void leave_unused(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    (void)fault;
    live(scene, (life_t){.uses = !is_faulty, .is_freed = true});
}

static void allocate_early(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    (void)fault;
    live(scene, (life_t){.waits = is_faulty, .uses = true, .is_freed = true});
}

static void free_late(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    (void)fault;
    live(scene, (life_t){.uses = true, .lingers = is_faulty, .is_freed = true});
}

static void leak(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    (void)fault;
    live(scene, (life_t){.uses = true, .is_freed = !is_faulty});
}

/* Also where its resource frees it, at its end. */
static void leave_to_resource(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    leak(scene, fault, is_faulty);
    gpu_synchronize();
    rmm_resource_release(scene->mr);
}

#define VERDICT(word, spec, how, first_user)                                           \
    .modes = "usage", .resource = spec, .plant = how, .kind = word,                    \
    .is_verdict = true, .kernel = first_user, .bytes = BYTES

static const fault_t faults[] = {
    {.name = "pool_never_used",
     VERDICT("never_used", "pool:64MiB", leave_unused, NULL)},
    {.name = "cuda_never_used", VERDICT("never_used", "cuda", leave_unused, NULL)},
    {.name = "pool_allocated_early",
     VERDICT("allocated_early", "pool:64MiB", allocate_early, "reduce")},
    {.name = "async_allocated_early",
     VERDICT("allocated_early", "async:64MiB", allocate_early, "reduce")},
    {.name = "pool_freed_late",
     VERDICT("freed_late", "pool:64MiB", free_late, "reduce")},
    {.name = "fixed_freed_late",
     VERDICT("freed_late", "fixed_size:64KiB", free_late, "reduce")},
    {.name = "pool_leaked", VERDICT("leaked", "pool:64MiB", leak, "reduce")},
    {.name = "managed_leaked", VERDICT("leaked", "managed", leak, "reduce")},
    {.name = "pool_left", VERDICT("leaked", "pool:64MiB", leave_to_resource, "reduce")},
    {.name = "virtual_left",
     VERDICT("leaked", "pool_virtual:64MiB", leave_to_resource, "reduce")},
    {.name = "arena_left",
     VERDICT("leaked", "arena:64MiB", leave_to_resource, "reduce")},
    {.name = "fixed_left",
     VERDICT("leaked", "fixed_size:64KiB", leave_to_resource, "reduce")},
    {.name = "binning_left",
     VERDICT("leaked", "binning:64MiB", leave_to_resource, "reduce")},
    {.name = "cuda_left", VERDICT("leaked", "cuda", leave_to_resource, "reduce")},
    {.name = "async_left",
     VERDICT("leaked", "async:64MiB", leave_to_resource, "reduce")},
    {.name = "adaptors_left",
     VERDICT("leaked", "statistics+tracking+pool:64MiB", leave_to_resource, "reduce")},
};

const fault_table_t faults_verdicts = {faults, sizeof(faults) / sizeof(faults[0])};
