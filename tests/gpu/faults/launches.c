/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ways to launch a kernel and to pass its parameters: by each the same errors are found, a use
 * after the free of the block, and one on a stream that is not ordered after its allocation.
 */
#include <string.h>

#include "gpu/faults/faults.h"

enum { BYTES = 4096 };

static void launch(const scene_t *scene, const fault_t *fault, rmm_stream_t stream)
{
    gpu_parts_t parts;

    if (fault->way != GPU_NO_WAY) {
        gpu_launch_by(fault->way, scene->culprit, stream);
        return;
    }
    memset(&parts, 0, sizeof(parts)); /* between the members, too: no stale pointers */
    parts.count = GPU_PARTS;
    for (int i = 0; i < GPU_PARTS; i++) {
        parts.parts[i].column.memory = scene->host;
    }
    parts.parts[GPU_PARTS - 1].column.memory = (char *)scene->culprit + 64;
    gpu_launch_parts(&parts, stream);
}

static void launch_late(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    scene->culprit = scene_take(scene, BYTES, scene->a);
    gpu_call(GPU_SET, scene->culprit, NULL, BYTES, scene->a);
    if (!is_faulty) {
        launch(scene, fault, scene->a);
    }
    scene_drop(scene, scene->culprit, BYTES, scene->a);
    if (is_faulty) {
        launch(scene, fault, scene->a);
    }
}

static void launch_unordered(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    scene->culprit = scene_take(scene, BYTES, scene->a);
    if (!is_faulty) {
        gpu_wait(GPU_WAIT_EVENT, scene->a, scene->b);
    }
    launch(scene, fault, scene->b);
    gpu_synchronize();
    scene_drop(scene, scene->culprit, BYTES, scene->a);
}

/* In a capture, whose graph runs; the faulty one begins after the free. */
static void launch_captured(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    scene->culprit = scene_take(scene, BYTES, scene->a);
    gpu_call(GPU_SET, scene->culprit, NULL, BYTES, scene->a);
    if (is_faulty) {
        scene_drop(scene, scene->culprit, BYTES, scene->a);
    }
    gpu_capture_begin(scene->a);
    launch(scene, fault, scene->a);
    gpu_capture_end(scene->a, is_faulty ? 0 : 2, scene->a);
    if (!is_faulty) {
        scene_drop(scene, scene->culprit, BYTES, scene->a);
    }
}

/* --- the table ----------------------------------------------------------------------- */

#define LATE(spec, how)                                                                \
    .modes = "usage,bounds", .resource = spec, .plant = how, .bytes = BYTES,           \
    .kind = "use_after_free", .access = "use"
#define UNORDERED(spec)                                                                \
    .modes = "usage,bounds,order", .resource = spec, .plant = launch_unordered,        \
    .bytes = BYTES, .kind = "use_unordered", .access = "use", .other = ""
#define BY(name) .way = GPU_BY_##name, .kernel = "reduce"
#define PARTS .kernel = "gather"
#define POOL "pool:64MiB"

static const fault_t faults[] = {
    {.name = "parts_late", LATE(POOL, launch_late), PARTS},
    {.name = "parts_late_arena", LATE("arena:64MiB", launch_late), PARTS},
    {.name = "parts_captured", LATE(POOL, launch_captured), PARTS},
    {.name = "parts_unordered", UNORDERED(POOL), PARTS},
    {.name = "parts_unordered_virtual", UNORDERED("pool_virtual:64MiB"), PARTS},
    {.name = "cooperative_late", LATE(POOL, launch_late), BY(COOPERATIVE)},
    {.name = "cooperative_captured", LATE(POOL, launch_captured), BY(COOPERATIVE)},
    {.name = "cooperative_unordered", UNORDERED(POOL), BY(COOPERATIVE)},
    {.name = "extended_late", LATE(POOL, launch_late), BY(EXTENDED)},
    {.name = "extended_captured", LATE(POOL, launch_captured), BY(EXTENDED)},
    {.name = "extended_unordered", UNORDERED(POOL), BY(EXTENDED)},
    {.name = "cluster_late", LATE(POOL, launch_late), BY(CLUSTER)},
    {.name = "cluster_captured", LATE(POOL, launch_captured), BY(CLUSTER)},
    {.name = "cluster_unordered", UNORDERED(POOL), BY(CLUSTER)},
    {.name = "buffer_late", LATE(POOL, launch_late), BY(BUFFER)},
    {.name = "buffer_captured", LATE(POOL, launch_captured), BY(BUFFER)},
    {.name = "buffer_unordered", UNORDERED(POOL), BY(BUFFER)},
};

const fault_table_t faults_launches = {faults, sizeof(faults) / sizeof(faults[0])};
