/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Kernels, copies and fills on their way into a stream's queue or a capture's graph, and
 * the events that an observer gets of them.
 */
#include "driver/sim/internal.h"

#include <string.h>

static bool is_device_memory(const void *ptr)
{
    return rmm__sim_memory_is_device_locked(ptr) || rmm__sim_virtual_holds_locked(ptr);
}

/* Both ends of a copy, unless it names two devices. */
static bool is_within_reach(const sim_task_t *task, int device)
{
    const void *const ends[] = {task->dst, task->src};

    if (task->kind != SIM_TASK_COPY ||
        (!task->is_direct && is_device_memory(task->dst) &&
         is_device_memory(task->src))) {
        return true;
    }
    for (int i = 0; i < 2; i++) {
        if (!rmm__sim_reaches_locked("a copy", ends[i], device)) {
            return false;
        }
    }
    return true;
}

/* Queue a task, of which the reference passes on to here; NULL: no host memory. */
static int submit(const char *call, sim_task_t *task, sim_observation_t *observation)
{
    int error = task != NULL ? rmm__sim_enter(call) : RMM_DRIVER_MEMORY_ALLOCATION;
    sim_stream_t *stream;

    if (error != RMM_DRIVER_OK) {
        rmm__sim_task_release_locked(task); /* not shared yet */
        return error;
    }
    task->may_run = rmm__sim_task_may_run;
    stream = rmm__sim_stream_find_locked(observation->stream, call, &error);
    if (stream != NULL) {
        observation->device = stream->device;
        observation->graph =
            rmm__sim_captured_graph(rmm__sim_capture_id_locked(stream));
        /* as CUDA: kernels only where the stream's device is current */
        error = observation->kind == RMM_DIAG_LAUNCH &&
                        stream->device != rmm__sim_thread.device
                    ? RMM_DRIVER_INVALID_HANDLE
                : !is_within_reach(task, stream->device)
                    ? RMM_DRIVER_INVALID_VALUE
                    : rmm__sim_submit_locked(stream, task, &observation->capturing);
    }
    rmm__sim_task_release_locked(task);
    rmm__sim_leave();
    if (error == RMM_DRIVER_OK) {
        rmm__sim_tell(observation);
    }
    return error;
}

typedef struct params {
    const void *const *values;
    const size_t *bytes;
    size_t count;
} params_t;

/* The whole 8-byte words of the small parameters, or of the large ones. */
static size_t collect_words(uint64_t *words, const params_t *params, bool is_large)
{
    size_t count = 0;

    for (size_t i = 0; i < params->count; i++) {
        size_t whole = params->bytes[i] / sizeof(*words);

        if ((params->bytes[i] >= RMM_DIAG_LARGE_STRUCT_BYTES) == is_large) {
            memcpy(words + count, params->values[i], whole * sizeof(*words));
            count += whole;
        }
    }
    return count;
}

static bool params_are_valid(
    const void *const *params, const size_t *param_bytes, size_t param_count)
{
    size_t total = 0;

    if (param_count != 0 && (params == NULL || param_bytes == NULL)) {
        return false;
    }
    for (size_t i = 0; i < param_count; i++) {
        if (params[i] == NULL || param_bytes[i] == 0 ||
            param_bytes[i] > SIM_PARAM_BYTES_MAX - total) {
            return false;
        }
        total += param_bytes[i];
    }
    return true;
}

int rmm__sim_launch(
    const char *name, rmm_sim_kernel_fn fn, rmm_stream_t stream,
    const void *const *params, const size_t *param_bytes, size_t param_count)
{
    const params_t all = {params, param_bytes, param_count};
    uint64_t words[SIM_PARAM_BYTES_MAX / sizeof(uint64_t)];
    sim_observation_t observation = {
        .kind = RMM_DIAG_LAUNCH, .stream = stream, .kernel = fn, .name = name};

    if (fn == NULL || !params_are_valid(params, param_bytes, param_count)) {
        return RMM_DRIVER_INVALID_VALUE;
    }
    if (rmm__sim_is_observed()) {
        size_t small = collect_words(words, &all, false);

        observation.words = words;
        observation.stale_words = collect_words(words + small, &all, true);
        observation.word_count = small + observation.stale_words;
    }
    return submit(
        "launch", rmm__sim_task_kernel(fn, params, param_bytes, param_count),
        &observation);
}

/* Queue work on a stream; one that is capturing is refused. */
static int queue_unobserved(rmm_stream_t handle, sim_task_t *task)
{
    static const char call[] = "queue";
    int error;
    bool capturing;
    sim_stream_t *stream = rmm__sim_stream_find_locked(handle, call, &error);

    if (stream == NULL) {
        return error;
    }
    return stream->capture != NULL || (stream->is_legacy && rmm__sim_captures_locked())
               ? RMM_DRIVER_CAPTURE_UNSUPPORTED
               : rmm__sim_submit_locked(stream, task, &capturing);
}

int rmm__sim_queue_work(
    int device, rmm_stream_t stream, rmm_sim_kernel_fn fn, const void *parameter,
    size_t bytes)
{
    const void *const params[] = {parameter};
    const size_t param_bytes[] = {bytes};
    sim_task_t *task = rmm__sim_task_kernel(fn, params, param_bytes, 1);
    int current = rmm__sim_thread.device;
    int error = task != NULL ? rmm__sim_enter("queue") : RMM_DRIVER_MEMORY_ALLOCATION;

    if (error != RMM_DRIVER_OK) {
        rmm__sim_task_release_locked(task); /* not shared yet */
        return error;
    }
    task->may_run = rmm__sim_task_may_run;
    rmm__sim_thread.device = device; /* the default streams are this one's */
    error = queue_unobserved(stream, task);
    rmm__sim_thread.device = current;
    rmm__sim_task_release_locked(task);
    rmm__sim_leave();
    return error;
}

static int memcpy_async(
    void *dst, const void *src, size_t bytes, rmm_stream_t stream, bool is_direct)
{
    sim_task_t *task;
    uint64_t words[] = {(uint64_t)(uintptr_t)dst, (uint64_t)(uintptr_t)src};
    sim_observation_t observation = {
        .kind = RMM_DIAG_COPY,
        .name = "memcpy_async",
        .stream = stream,
        .words = words,
        .word_count = 2,
        .bytes = bytes};

    if (bytes == 0) {
        return RMM_DRIVER_OK;
    }
    if (dst == NULL || src == NULL) {
        return RMM_DRIVER_INVALID_VALUE;
    }
    rmm__sim_tell_before(&observation);
    task = rmm__sim_task_copy(dst, src, bytes);
    if (task != NULL) {
        task->is_direct = is_direct;
    }
    return submit("memcpy_async", task, &observation);
}

int rmm__sim_memcpy_async(void *dst, const void *src, size_t bytes, rmm_stream_t stream)
{
    return memcpy_async(dst, src, bytes, stream, false);
}

int rmm__sim_memcpy_direct(
    void *dst, const void *src, size_t bytes, rmm_stream_t stream)
{
    return memcpy_async(dst, src, bytes, stream, true);
}

int rmm__sim_memset_async(void *dst, int value, size_t bytes, rmm_stream_t stream)
{
    uint64_t words[] = {(uint64_t)(uintptr_t)dst};
    sim_observation_t observation = {
        .kind = RMM_DIAG_SET,
        .name = "memset_async",
        .stream = stream,
        .words = words,
        .word_count = 1,
        .bytes = bytes};

    if (bytes == 0) {
        return RMM_DRIVER_OK;
    }
    if (dst == NULL) {
        return RMM_DRIVER_INVALID_VALUE;
    }
    rmm__sim_tell_before(&observation);
    return submit("memset_async", rmm__sim_task_set(dst, value, bytes), &observation);
}
