/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events that programs use again: on other streams, too early, too late, in chains and from other
 * threads. Each error has an event, only not one that orders the two.
 */
#include <pthread.h>

#include "gpu/faults/faults.h"

enum { BYTES = 4096 };

static void *take(scene_t *scene)
{
    void *block = scene_take(scene, BYTES, scene->a);

    scene->culprit = block;
    gpu_launch(GPU_KERNEL_fill, block, NULL, scene->a);
    return block;
}

static void use_on(const void *block, rmm_stream_t stream)
{
    gpu_launch(GPU_KERNEL_reduce, block, NULL, stream);
}

static void end(const scene_t *scene, void *block, gpu_event_t event)
{
    gpu_synchronize();
    scene_drop(scene, block, BYTES, scene->a);
    gpu_event_destroy(event);
}

/* --- a use behind the wrong event ------------------------------------------------------ */

/* A wait is for what was recorded when it was called. */
static void recorded_late(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    gpu_event_t event = gpu_event_create();
    void *block = NULL;

    (void)fault;
    gpu_event_record(event, scene->a);
    block = take(scene);
    if (is_faulty) {
        gpu_event_wait(scene->b, event);
        gpu_event_record(event, scene->a);
    } else {
        gpu_event_record(event, scene->a);
        gpu_event_wait(scene->b, event);
    }
    use_on(block, scene->b);
    end(scene, block, event);
}

/* The last record counts, and that is of the stream that waits. */
static void recorded_by_other(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    gpu_event_t event = gpu_event_create();
    void *block = take(scene);

    (void)fault;
    gpu_event_record(event, is_faulty ? scene->a : scene->b);
    gpu_event_record(event, is_faulty ? scene->b : scene->a);
    gpu_event_wait(scene->b, event);
    use_on(block, scene->b);
    end(scene, block, event);
}

/* One event, from a to b to the thread's stream; the faulty b passes it on before it waits. */
static void chain(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    gpu_event_t event = gpu_event_create();
    void *block = take(scene);

    (void)fault;
    if (is_faulty) {
        gpu_event_record(event, scene->b);
        gpu_event_wait(RMM_STREAM_PER_THREAD, event);
        gpu_event_record(event, scene->a);
        gpu_event_wait(scene->b, event);
    } else {
        gpu_event_record(event, scene->a);
        gpu_event_wait(scene->b, event);
        gpu_event_record(event, scene->b);
        gpu_event_wait(RMM_STREAM_PER_THREAD, event);
    }
    use_on(block, RMM_STREAM_PER_THREAD);
    end(scene, block, event);
}

typedef struct handed {
    gpu_event_t event;
    rmm_stream_t on;
} handed_t;

static void *record_in_thread(void *argument)
{
    const handed_t *handed = argument;

    gpu_event_record(handed->event, handed->on);
    return NULL;
}

static void recorded_in_thread(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    handed_t handed = {gpu_event_create(), is_faulty ? scene->b : scene->a};
    void *block = take(scene);
    pthread_t thread;

    (void)fault;
    if (pthread_create(&thread, NULL, record_in_thread, &handed) == 0) {
        pthread_join(thread, NULL);
    }
    gpu_event_wait(scene->b, handed.event);
    use_on(block, scene->b);
    end(scene, block, handed.event);
}

/* --- a free behind the wrong event ----------------------------------------------------- */

/* b uses the block, and a frees it behind an event of b. */
static void free_behind(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    gpu_event_t event = gpu_event_create();
    void *block = take(scene);

    (void)fault;
    gpu_wait(GPU_WAIT_EVENT, scene->a, scene->b);
    if (is_faulty) {
        gpu_event_record(event, scene->b);
    }
    use_on(block, scene->b);
    if (!is_faulty) {
        gpu_event_record(event, scene->b);
    }
    gpu_event_wait(scene->a, event);
    scene_drop(scene, block, BYTES, scene->a);
    gpu_event_destroy(event);
}

/* a uses its block, and b frees it. */
static void free_on_other(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    gpu_event_t event = gpu_event_create();
    void *block = take(scene);

    (void)fault;
    gpu_event_record(event, scene->a);
    if (is_faulty) {
        use_on(block, scene->a);
    }
    gpu_event_wait(scene->b, event);
    scene_drop(scene, block, BYTES, scene->b);
    gpu_event_destroy(event);
}

/* Two others use it; the faulty free waits for one of them. */
static void free_behind_one(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    gpu_event_t event = gpu_event_create();
    void *block = take(scene);

    (void)fault;
    gpu_event_record(event, scene->a);
    gpu_event_wait(scene->b, event);
    gpu_event_wait(RMM_STREAM_PER_THREAD, event);
    use_on(block, scene->b);
    gpu_launch(GPU_KERNEL_sum, block, NULL, RMM_STREAM_PER_THREAD);
    gpu_event_record(event, scene->b);
    gpu_event_wait(scene->a, event);
    if (!is_faulty) {
        gpu_event_record(event, RMM_STREAM_PER_THREAD);
        gpu_event_wait(scene->a, event);
    }
    scene_drop(scene, block, BYTES, scene->a);
    gpu_event_destroy(event);
}

/* --- right in both ------------------------------------------------------------------- */

/* Two streams that hand a block to each other, by one event. */
static void to_and_fro(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    gpu_event_t event = gpu_event_create();
    void *block = take(scene);

    (void)fault, (void)is_faulty;
    for (int i = 0; i < 100; i++) {
        rmm_stream_t first = i % 2 == 0 ? scene->a : scene->b;
        rmm_stream_t later = i % 2 == 0 ? scene->b : scene->a;

        gpu_event_record(event, first);
        gpu_event_wait(later, event);
        gpu_call(GPU_SET, block, NULL, BYTES, later);
    }
    scene_drop(scene, block, BYTES, scene->a);
    gpu_event_destroy(event);
}

/* An event that is destroyed is still waited for. */
static void destroyed_event(scene_t *scene, const fault_t *fault, bool is_faulty)
{
    gpu_event_t event = gpu_event_create();
    void *block = take(scene);

    (void)fault, (void)is_faulty;
    gpu_event_record(event, scene->a);
    gpu_event_wait(scene->b, event);
    gpu_event_destroy(event);
    event = gpu_event_create(); /* may have its handle */
    use_on(block, scene->b);
    gpu_event_record(event, scene->b);
    gpu_event_wait(scene->a, event);
    scene_drop(scene, block, BYTES, scene->a);
    gpu_event_destroy(event);
}

/* --- the table ----------------------------------------------------------------------- */

#define ORDER(spec, how)                                                               \
    .modes = "usage,bounds,order", .bytes = BYTES, .resource = spec, .plant = how
#define EARLY_USE(how)                                                                 \
    ORDER("pool:64MiB", how), .kind = "use_unordered", .access = "use",                \
                              .kernel = "reduce", .other = ""
#define EARLY_FREE(spec, how, by)                                                      \
    ORDER(spec, how), .kind = "free_unordered", .access = "free", .other = by

static const fault_t faults[] = {
    {.name = "event_recorded_late", EARLY_USE(recorded_late)},
    {.name = "event_recorded_by_other", EARLY_USE(recorded_by_other)},
    {.name = "event_chain", EARLY_USE(chain)},
    {.name = "event_recorded_in_thread", EARLY_USE(recorded_in_thread)},
    {.name = "event_before_use_and_free",
     EARLY_FREE("pool:64MiB", free_behind, "reduce")},
    {.name = "arena_event_before_use_and_free",
     EARLY_FREE("arena:64MiB", free_behind, "reduce")},
    {.name = "free_on_other_stream", EARLY_FREE("pool:64MiB", free_on_other, "reduce")},
    {.name = "free_behind_one_of_two",
     EARLY_FREE("pool:64MiB", free_behind_one, "sum")},
    {.name = "event_to_and_fro", ORDER("pool:64MiB", to_and_fro)},
    {.name = "event_destroyed", ORDER("pool:64MiB", destroyed_event)},
};

const fault_table_t faults_streams = {faults, sizeof(faults) / sizeof(faults[0])};
