/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Uses and frees that the program orders by a wait for a device. The faulty one waits for the other
 * device.
 */
#include "gpu/faults/faults.h"

#include <stdio.h>
#include <stdlib.h>

enum { BYTES = 4096 };

static void set_device(int device)
{
    if (rmm_device_set(device) != RMM_OK) {
        fprintf(stderr, "device %d: %s\n", device, rmm_last_error_message());
        exit(EXIT_FAILURE);
    }
}

static void *take(scene_t *scene, rmm_stream_t stream)
{
    scene->culprit = scene_take(scene, BYTES, stream);
    return scene->culprit;
}

/* Device 0 is current before and after it. */
static void wait_for_device(int device)
{
    set_device(device);
    gpu_synchronize();
    set_device(0);
}

static rmm_stream_t make_stream(uint32_t flags)
{
    rmm_stream_t stream = NULL;

    return rmm_stream_create(flags, &stream) == RMM_OK ? stream : NULL;
}

/* --- memory of device 0 ------------------------------------------------------------------ */

static void use_after_wait(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a);

    (void)fault;
    gpu_launch(GPU_KERNEL_fill, block, NULL, scene->a);
    wait_for_device(is_faulty ? 1 : 0);
    gpu_launch(GPU_KERNEL_reduce, block, NULL, scene->b);
    gpu_synchronize();
    scene_drop(scene, block, BYTES, scene->a);
}

static void free_after_wait(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a);

    (void)fault;
    gpu_wait(GPU_WAIT_EVENT, scene->a, scene->b);
    gpu_launch(GPU_KERNEL_reduce, block, NULL, scene->b);
    wait_for_device(is_faulty ? 1 : 0);
    scene_drop(scene, block, BYTES, scene->a);
}

/* Device 1 is waited for in both, and in the correct one it waits for the use. */
static void free_after_wait_across(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    void *block = take(scene, scene->a);
    rmm_stream_t other = NULL;

    (void)fault;
    set_device(1);
    other = make_stream(RMM_STREAM_NON_BLOCKING);
    set_device(0);
    gpu_wait(GPU_WAIT_EVENT, scene->a, scene->b);
    gpu_launch(GPU_KERNEL_reduce, block, NULL, scene->b);
    if (!is_faulty) {
        gpu_wait(GPU_WAIT_EVENT, scene->b, other);
    }
    wait_for_device(1);
    scene_drop(scene, block, BYTES, scene->a);
    (void)rmm_stream_destroy(other);
}

/* --- memory of device 1 ------------------------------------------------------------------ */

/* Its own pool and streams; device 1 stays current. */
static scene_t scene_of_device_1(const fault_t *fault, uint32_t stream_flags)
{
    scene_t scene = {.mr = NULL};

    set_device(1);
    if (rmm_resource_create_from_spec(fault->resource, &scene.mr) != RMM_OK) {
        fprintf(stderr, "a pool of device 1: %s\n", rmm_last_error_message());
        exit(EXIT_FAILURE);
    }
    scene.a = make_stream(stream_flags);
    scene.b = make_stream(stream_flags);
    return scene;
}

static void free_on_second(
    scene_t *scene, const fault_t *fault, bool is_faulty, uint32_t stream_flags)
{
    scene_t second = scene_of_device_1(fault, stream_flags);
    void *block = take(&second, second.a);

    scene->culprit = block;
    gpu_wait(GPU_WAIT_EVENT, second.a, second.b);
    gpu_launch(GPU_KERNEL_reduce, block, NULL, second.b);
    wait_for_device(is_faulty ? 0 : 1);
    set_device(1);
    scene_drop(&second, block, BYTES, second.a);
    gpu_synchronize();
    (void)rmm_stream_destroy(second.a);
    (void)rmm_stream_destroy(second.b);
    set_device(0);
}

static void free_on_second_device(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    free_on_second(scene, fault, is_faulty, RMM_STREAM_NON_BLOCKING);
}

static void
free_on_second_blocking(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    free_on_second(scene, fault, is_faulty, 0);
}

/* --- the table --------------------------------------------------------------------------- */

#define TWO_GPUS                                                                       \
    .modes = "usage,bounds,order", .resource = "pool:64MiB", .bytes = BYTES,           \
    .needs_two_gpus = true
#define EARLY_FREE                                                                     \
    TWO_GPUS, .kind = "free_unordered", .access = "free", .other = "reduce"

static const fault_t faults[] = {
    {.name = "use_after_wait_for_other_device",
     .plant = use_after_wait,
     TWO_GPUS,
     .kind = "use_unordered",
     .access = "use",
     .kernel = "reduce",
     .other = ""},
    {.name = "free_after_wait_for_other_device", .plant = free_after_wait, EARLY_FREE},
    {.name = "free_after_wait_across_devices",
     .plant = free_after_wait_across,
     EARLY_FREE},
    {.name = "free_on_second_device", .plant = free_on_second_device, EARLY_FREE},
    {.name = "free_on_second_device_blocking",
     .plant = free_on_second_blocking,
     EARLY_FREE},
};

const fault_table_t faults_devices = {faults, sizeof(faults) / sizeof(faults[0])};
