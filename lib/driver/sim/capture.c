/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stream capture: what capturing changes of the other calls. A stream that captures, or
 * that waited for an event recorded in a capture, adds its work to a graph; which work
 * comes after which is kept as edges (graph.c).
 *
 * These calls ruin a capture, with CUDA's error codes: synchronising or querying what is being
 * captured, the legacy stream while a blocking stream captures, dependencies across the
 * border, and the calls that CUDA calls unsafe, on every thread for which the capture's and the
 * thread's mode forbid them: allocation and free (of a pool too, outside of the capture), event
 * query and synchronisation of an event or of any stream. A ruined capture returns 901 until it
 * is ended.
 *
 * Locking: all under rmm__sim_lock.
 */
#include "driver/sim/internal.h"

#include <stdlib.h>

struct sim_capture {
    uint64_t id;
    int mode;
    uint64_t thread_id; /* of the thread that began it */
    bool ruined;
    sim_stream_t *origin;
    sim_stream_t *members; /* by next_in_capture; origin among them */
    sim_graph_t *graph;
    sim_capture_t *next;
};

static sim_capture_t *captures;
static uint64_t last_capture_id;

/* relaxed: read by the thread that uses the stream */
static void show_id(const sim_stream_t *stream, uint64_t id)
{
    if (stream->entry != NULL) {
        atomic_store_explicit(&stream->entry->capture_id, id, memory_order_relaxed);
    }
}

/* From here on it has no id any more, as with CUDA. */
static int ruin(sim_capture_t *capture, int error)
{
    capture->ruined = true;
    for (const sim_stream_t *stream = capture->members; stream != NULL;
         stream = stream->next_in_capture) {
        show_id(stream, RMM_CAPTURE_RUINED);
    }
    return error;
}

/* ---- modes ---- */

int rmm__sim_capture_mode_exchange(int *mode)
{
    int previous = rmm__sim_thread.capture_mode;

    if (*mode < RMM_CAPTURE_MODE_GLOBAL || *mode > RMM_CAPTURE_MODE_RELAXED) {
        return RMM_DRIVER_INVALID_VALUE;
    }
    rmm__sim_thread.capture_mode = *mode;
    *mode = previous;
    return RMM_DRIVER_OK;
}

static bool forbids(const sim_capture_t *capture, int thread_mode)
{
    if (capture->ruined || thread_mode == RMM_CAPTURE_MODE_RELAXED) {
        return false;
    }
    if (capture->thread_id == rmm__sim_thread_id_locked()) {
        return capture->mode != RMM_CAPTURE_MODE_RELAXED;
    }
    return capture->mode == RMM_CAPTURE_MODE_GLOBAL &&
           thread_mode == RMM_CAPTURE_MODE_GLOBAL;
}

int rmm__sim_capture_forbids_locked(void)
{
    int error = RMM_DRIVER_OK;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    for (sim_capture_t *capture = captures; capture != NULL; capture = capture->next) {
        if (forbids(capture, rmm__sim_thread.capture_mode)) {
            error = ruin(capture, RMM_DRIVER_CAPTURE_UNSUPPORTED);
        }
    }
    return error;
}

int rmm__sim_enter_unsafe(const char *call)
{
    int error = rmm__sim_enter(call);

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = rmm__sim_capture_forbids_locked();
    if (error != RMM_DRIVER_OK) {
        rmm__sim_leave();
    }
    return error;
}

/* ---- members ---- */

static void stream_joins(sim_stream_t *stream, sim_capture_t *capture)
{
    stream->capture = capture;
    stream->next_in_capture = capture->members;
    capture->members = stream;
    show_id(stream, capture->id);
}

static void stream_parts(sim_stream_t *stream)
{
    stream->capture = NULL;
    rmm__sim_nodes_clear(&stream->tails);
    show_id(stream, 0);
}

/* The graph stays with the caller. */
static void capture_end(sim_capture_t *capture)
{
    sim_capture_t **link = &captures;

    for (sim_stream_t *stream = capture->members; stream != NULL;
         stream = stream->next_in_capture) {
        stream_parts(stream);
    }
    while (*link != capture) {
        link = &(*link)->next;
    }
    *link = capture->next;
    free(capture);
}

uint64_t rmm__sim_capture_id_locked(const sim_stream_t *stream)
{
    return stream->capture != NULL ? stream->capture->id : 0;
}

sim_graph_t *rmm__sim_capture_graph_locked(const sim_stream_t *stream)
{
    return stream->capture != NULL ? stream->capture->graph : NULL;
}

void rmm__sim_capture_forget_locked(sim_stream_t *stream)
{
    sim_capture_t *capture = stream->capture;
    sim_stream_t **link;

    if (capture == NULL) {
        return;
    }
    (void)ruin(capture, 0);
    if (capture->origin == stream) { /* no stream can end it any more */
        rmm__sim_graph_free_locked(capture->graph);
        capture_end(capture);
        return;
    }
    link = &capture->members;
    while (*link != stream) {
        link = &(*link)->next_in_capture;
    }
    *link = stream->next_in_capture;
    stream_parts(stream);
}

/* ---- what capturing forbids ---- */

static bool has_blocking_member(const sim_capture_t *capture, int device)
{
    for (const sim_stream_t *stream = capture->members; stream != NULL;
         stream = stream->next_in_capture) {
        if (stream->blocking && stream->device == device) {
            return true;
        }
    }
    return false;
}

/* The legacy stream would depend on what a blocking stream captures. */
static int legacy_check(const sim_stream_t *stream)
{
    int error = RMM_DRIVER_OK;

    for (sim_capture_t *capture = captures; capture != NULL; capture = capture->next) {
        if (has_blocking_member(capture, stream->device)) {
            error = ruin(capture, SIM_ERROR_CAPTURE_IMPLICIT);
        }
    }
    return error;
}

int rmm__sim_legacy_is_open(int *is_open)
{
    int error = rmm__sim_enter("legacy_is_open");

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    *is_open = 1;
    for (const sim_capture_t *capture = captures; capture != NULL;
         capture = capture->next) {
        *is_open &= !has_blocking_member(capture, rmm__sim_thread.device);
    }
    rmm__sim_leave();
    return RMM_DRIVER_OK;
}

/* May this stream take work? */
static int work_check(const sim_stream_t *stream)
{
    if (captures == NULL) {
        return RMM_DRIVER_OK;
    }
    if (stream->is_legacy) {
        return legacy_check(stream);
    }
    return stream->capture != NULL && stream->capture->ruined
               ? RMM_DRIVER_CAPTURE_INVALIDATED
               : RMM_DRIVER_OK;
}

bool rmm__sim_captures_locked(void)
{
    return captures != NULL;
}

int rmm__sim_capture_check_wait_locked(const sim_stream_t *stream)
{
    int error = work_check(stream);

    if (error == RMM_DRIVER_OK && stream->capture != NULL) {
        error = ruin(stream->capture, RMM_DRIVER_CAPTURE_UNSUPPORTED);
    } else if (error == RMM_DRIVER_OK) {
        error = rmm__sim_capture_forbids_locked();
    }
    return error;
}

int rmm__sim_capture_check_device_locked(int device)
{
    int error = RMM_DRIVER_OK;

    for (sim_capture_t *capture = captures; capture != NULL; capture = capture->next) {
        if (!capture->ruined && capture->origin->device == device) {
            error = ruin(capture, RMM_DRIVER_CAPTURE_UNSUPPORTED);
        }
    }
    return error;
}

static sim_capture_t *capture_of_event(const sim_event_t *event)
{
    sim_capture_t *capture = captures;

    while (capture != NULL && capture->id != event->capture_id) {
        capture = capture->next;
    }
    return capture;
}

int rmm__sim_capture_check_event_locked(const sim_event_t *event)
{
    sim_capture_t *capture;

    if (event->capture_id == 0) {
        return captures != NULL ? rmm__sim_capture_forbids_locked() : RMM_DRIVER_OK;
    }
    capture = capture_of_event(event);
    return capture != NULL ? ruin(capture, SIM_ERROR_CAPTURED_EVENT)
                           : SIM_ERROR_CAPTURED_EVENT;
}

/* ---- work ---- */

int rmm__sim_submit_locked(sim_stream_t *stream, sim_task_t *task, bool *capturing_out)
{
    int error = work_check(stream);

    *capturing_out = stream->capture != NULL;
    if (error != RMM_DRIVER_OK) {
        return error;
    }
    return stream->capture == NULL ? rmm__sim_queue_locked(stream, task, NULL, NULL)
                                   : rmm__sim_graph_add_locked(
                                         stream->capture->graph, task, &stream->tails);
}

int rmm__sim_record_locked(
    sim_stream_t *stream, sim_event_t *event, bool *capturing_out)
{
    int error = work_check(stream);
    sim_item_t *record = NULL;

    *capturing_out = stream->capture != NULL;
    if (error == RMM_DRIVER_OK && stream->capture == NULL) {
        error = rmm__sim_queue_locked(stream, NULL, NULL, &record);
    } else if (
        error == RMM_DRIVER_OK && !rmm__sim_nodes_copy(&event->tails, &stream->tails)) {
        error = RMM_DRIVER_MEMORY_ALLOCATION;
    }
    if (error == RMM_DRIVER_OK) {
        rmm__sim_item_release_locked(event->record);
        event->record = record;
        event->capture_id = stream->capture != NULL ? stream->capture->id : 0;
    }
    return error;
}

/* A stream that captures waits for an event. */
static int wait_in_capture(sim_stream_t *stream, const sim_event_t *event)
{
    sim_capture_t *other = capture_of_event(event);

    if (event->capture_id == 0 && event->record == NULL) {
        return RMM_DRIVER_OK; /* never recorded */
    }
    if (other == NULL) {
        return ruin(stream->capture, SIM_ERROR_CAPTURE_ISOLATION);
    }
    if (other != stream->capture) {
        ruin(other, SIM_ERROR_CAPTURE_MERGE);
        return ruin(stream->capture, SIM_ERROR_CAPTURE_MERGE);
    }
    return rmm__sim_nodes_merge(&stream->tails, &event->tails)
               ? RMM_DRIVER_OK
               : RMM_DRIVER_MEMORY_ALLOCATION;
}

/* A stream that does not capture waits for an event of a capture, and joins it. */
static int join(sim_stream_t *stream, const sim_event_t *event)
{
    sim_capture_t *capture = capture_of_event(event);

    if (capture == NULL) {
        return SIM_ERROR_CAPTURED_EVENT; /* whose graph is finished */
    }
    if (capture->ruined) {
        return RMM_DRIVER_CAPTURE_INVALIDATED;
    }
    if (stream->is_legacy) {
        return ruin(capture, SIM_ERROR_CAPTURE_IMPLICIT);
    }
    if (!rmm__sim_nodes_copy(&stream->tails, &event->tails)) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    stream_joins(stream, capture);
    return RMM_DRIVER_OK;
}

int rmm__sim_wait_locked(sim_stream_t *stream, sim_event_t *event, bool *capturing_out)
{
    int error = work_check(stream);

    if (error == RMM_DRIVER_OK && stream->capture != NULL) {
        error = wait_in_capture(stream, event);
    } else if (error == RMM_DRIVER_OK && event->capture_id != 0) {
        error = join(stream, event);
    } else if (
        error == RMM_DRIVER_OK && event->record != NULL &&
        !rmm__sim_item_is_done(event->record)) {
        error = rmm__sim_queue_locked(stream, NULL, event->record, NULL);
    }
    *capturing_out = stream->capture != NULL;
    return error;
}

/* ---- begin and end ---- */

static int begin_locked(sim_stream_t *stream, int mode)
{
    sim_capture_t *capture;

    if (stream->is_legacy) {
        return RMM_DRIVER_CAPTURE_UNSUPPORTED;
    }
    if (stream->capture != NULL) {
        return SIM_ERROR_ILLEGAL_STATE;
    }
    capture = calloc(1, sizeof(*capture));
    if (capture == NULL) {
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    capture->graph = rmm__sim_graph_create();
    if (capture->graph == NULL) {
        free(capture);
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    capture->id = ++last_capture_id;
    capture->mode = mode;
    capture->thread_id = rmm__sim_thread_id_locked();
    capture->origin = stream;
    capture->next = captures;
    captures = capture;
    stream_joins(stream, capture);
    return RMM_DRIVER_OK;
}

int rmm__sim_begin_capture(rmm_stream_t handle, int mode)
{
    sim_stream_t *stream;
    uint64_t id = 0;
    int error;

    if (mode < RMM_CAPTURE_MODE_GLOBAL || mode > RMM_CAPTURE_MODE_RELAXED) {
        return RMM_DRIVER_INVALID_VALUE;
    }
    stream = rmm__sim_enter_stream(handle, "begin_capture", &error);
    if (stream != NULL) {
        error = begin_locked(stream, mode);
        id = rmm__sim_capture_id_locked(stream);
        rmm__sim_leave();
    }
    if (error == RMM_DRIVER_OK) {
        rmm__sim_tell(&(sim_observation_t){
            .kind = RMM_DIAG_CAPTURE_BEGIN,
            .device = rmm__sim_thread.device,
            .stream = handle});
        rmm__sim_tell_graph(RMM_DIAG_GRAPH_MADE, rmm__sim_captured_graph(id), 0);
    }
    return error;
}

static int end_locked(sim_stream_t *stream, rmm_sim_graph_t *graph_out)
{
    sim_capture_t *capture = stream->capture;
    int error = RMM_DRIVER_OK;

    if (capture == NULL) {
        return SIM_ERROR_ILLEGAL_STATE;
    }
    if (capture->origin != stream) {
        return ruin(capture, SIM_ERROR_CAPTURE_UNMATCHED);
    }
    if (capture->mode != RMM_CAPTURE_MODE_RELAXED &&
        capture->thread_id != rmm__sim_thread_id_locked()) {
        return ruin(capture, SIM_ERROR_CAPTURE_WRONG_THREAD);
    }
    if (capture->ruined) {
        error = RMM_DRIVER_CAPTURE_INVALIDATED;
    } else if (!rmm__sim_graph_ends_in(capture->graph, &stream->tails)) {
        error = SIM_ERROR_CAPTURE_UNJOINED;
    } else {
        error = rmm__sim_graph_publish_locked(capture->graph, graph_out);
    }
    if (error != RMM_DRIVER_OK) {
        rmm__sim_graph_free_locked(capture->graph);
    }
    capture_end(capture);
    return error;
}

int rmm__sim_end_capture(rmm_stream_t handle, rmm_sim_graph_t *graph_out)
{
    int error;
    sim_stream_t *stream = rmm__sim_enter_stream(handle, "end_capture", &error);
    uint64_t captured;
    bool has_ended;

    if (stream == NULL) {
        return error;
    }
    captured = rmm__sim_captured_graph(rmm__sim_capture_id_locked(stream));
    error = end_locked(stream, graph_out);
    has_ended = stream->capture == NULL;
    rmm__sim_leave();
    if (has_ended) { /* also one that gave no graph */
        rmm__sim_tell(&(sim_observation_t){
            .kind = RMM_DIAG_CAPTURE_END,
            .device = rmm__sim_thread.device,
            .stream = handle});
        if (error == RMM_DRIVER_OK) {
            rmm__sim_tell_graph(
                RMM_DIAG_GRAPH_MADE, (uint64_t)(uintptr_t)*graph_out, captured);
        }
        rmm__sim_tell_graph(RMM_DIAG_GRAPH_ENDS, captured, 0);
    }
    return error;
}

/* ---- watching ---- */

typedef struct sim_watch {
    void (*gone)(void *context);
    void *context;
} sim_watch_t;

static void watch_run(void *object)
{
    (void)object;
}

static void watch_drop(void *object)
{
    sim_watch_t *watch = object;
    bool was_in_kernel = rmm__sim_thread.in_kernel;

    rmm__sim_thread.in_kernel = true; /* it must call nothing of the driver */
    watch->gone(watch->context);
    rmm__sim_thread.in_kernel = was_in_kernel;
    free(watch);
}

static sim_task_t *watch_task(void (*gone)(void *context), void *context)
{
    sim_watch_t *watch = malloc(sizeof(*watch));
    sim_task_t *task =
        watch != NULL ? rmm__sim_task_call(watch_run, watch_drop, watch) : NULL;

    if (task == NULL) {
        free(watch);
        return NULL;
    }
    *watch = (sim_watch_t){gone, context};
    return task;
}

static int watch_locked(const sim_stream_t *stream, sim_task_t *task)
{
    if (stream->capture == NULL) {
        return SIM_ERROR_ILLEGAL_STATE;
    }
    if (stream->capture->ruined) {
        return RMM_DRIVER_CAPTURE_INVALIDATED;
    }
    return rmm__sim_graph_keep_locked(stream->capture->graph, task)
               ? RMM_DRIVER_OK
               : RMM_DRIVER_MEMORY_ALLOCATION;
}

int rmm__sim_capture_watch(
    rmm_stream_t handle, void (*gone)(void *context), void *context)
{
    sim_task_t *task = watch_task(gone, context);
    sim_stream_t *stream;
    int error;

    if (task == NULL) {
        gone(context);
        return RMM_DRIVER_MEMORY_ALLOCATION;
    }
    error = rmm__sim_enter("capture_watch");
    if (error != RMM_DRIVER_OK) { /* inside a kernel, with the lock */
        rmm__sim_task_release_locked(task);
        return error;
    }
    stream = rmm__sim_stream_find_locked(handle, "capture_watch", &error);
    if (stream != NULL) {
        error = watch_locked(stream, task);
    }
    rmm__sim_task_release_locked(task);
    rmm__sim_leave();
    return error;
}
