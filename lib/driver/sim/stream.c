/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and events, as the CUDA functions of the same names. What waits in them is
 * work.c's, what a capture makes of them capture.c's.
 */
#include "driver/sim/internal.h"

#include <stdlib.h>

#define EVENT_TAG 0x4556u /* "EV" */

static sim_table_t events = {.what = "event", .tag = EVENT_TAG};

/* The handle is free at once, the stream goes when its work is done. */
static void end_locked(sim_stream_t *stream)
{
    rmm__sim_capture_forget_locked(stream);
    rmm__sim_stream_end_locked(stream);
}

/* At a thread's exit. */
static void own_streams_end(void *argument)
{
    sim_thread_t *thread = argument;

    rmm__mutex_lock(&rmm__sim_lock);
    for (int i = 0; i < SIM_DEVICE_MAX; i++) {
        if (thread->streams[i] != NULL) {
            end_locked(thread->streams[i]->object);
            thread->streams[i] = NULL;
        }
    }
    rmm__mutex_unlock(&rmm__sim_lock);
}

int rmm__sim_streams_open(void)
{
    rmm__sim_legacy_open();
    return rmm__sim_stream_table_open(own_streams_end);
}

/* ---- streams ---- */

int rmm__sim_stream_create(uint32_t flags, rmm_stream_t *stream_out)
{
    uint64_t word = flags & RMM_STREAM_NON_BLOCKING;
    int error;

    if ((flags & ~RMM_STREAM_NON_BLOCKING) != 0) {
        return RMM_DRIVER_INVALID_VALUE;
    }
    error = rmm__sim_enter("stream_create");
    if (error != RMM_DRIVER_OK) {
        return error;
    }
    if (rmm__sim_stream_create_locked(
            (flags & RMM_STREAM_NON_BLOCKING) == 0, stream_out) == NULL) {
        error = RMM_DRIVER_MEMORY_ALLOCATION;
    }
    rmm__sim_leave();
    if (error == RMM_DRIVER_OK) {
        rmm__sim_tell(&(sim_observation_t){
            .kind = RMM_DIAG_STREAM_CREATE,
            .device = rmm__sim_thread.device,
            .stream = *stream_out,
            .words = &word,
            .word_count = 1});
    }
    return error;
}

int rmm__sim_stream_destroy(rmm_stream_t handle)
{
    sim_stream_t *stream;
    int error;

    if (rmm_stream_is_default(handle) || rmm_stream_is_per_thread_default(handle)) {
        return RMM_DRIVER_INVALID_HANDLE;
    }
    /* first: after the call another thread may have made a stream of this handle */
    rmm__sim_tell(&(sim_observation_t){
        .kind = RMM_DIAG_STREAM_DESTROY,
        .device = rmm__sim_thread.device,
        .stream = handle});
    stream = rmm__sim_enter_stream(handle, "stream_destroy", &error);
    if (stream == NULL) {
        return error;
    }
    end_locked(stream);
    rmm__sim_leave();
    return RMM_DRIVER_OK;
}

int rmm__sim_stream_flags(rmm_stream_t handle, uint32_t *flags)
{
    int error;
    sim_stream_t *stream = rmm__sim_enter_stream(handle, "stream_flags", &error);

    if (stream != NULL) {
        *flags = stream->blocking ? 0 : RMM_STREAM_NON_BLOCKING;
        rmm__sim_leave();
    }
    return error;
}

static int finish_locked(sim_stream_t *stream)
{
    int error = rmm__sim_capture_check_wait_locked(stream);

    if (error == RMM_DRIVER_OK) {
        rmm__sim_finish_stream_locked(stream);
        rmm__sim_mempool_settle_locked(stream->device);
    }
    return error;
}

int rmm__sim_stream_synchronize(rmm_stream_t handle)
{
    int error;
    sim_stream_t *stream = rmm__sim_enter_stream(handle, "stream_synchronize", &error);
    int device;

    if (stream == NULL) {
        return error;
    }
    device = stream->device;
    error = finish_locked(stream);
    rmm__sim_leave();
    if (error == RMM_DRIVER_OK) {
        rmm__sim_tell(&(sim_observation_t){
            .kind = RMM_DIAG_STREAM_SYNC, .device = device, .stream = handle});
    }
    return error;
}

int rmm__sim_device_synchronize(void)
{
    int error = rmm__sim_enter("device_synchronize");
    int device = rmm__sim_thread.device;

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    error = rmm__sim_capture_check_device_locked(device);
    if (error == RMM_DRIVER_OK) {
        rmm__sim_finish_device_locked(device);
        rmm__sim_mempool_settle_locked(device);
    }
    rmm__sim_leave();
    if (error == RMM_DRIVER_OK) {
        rmm__sim_tell(
            &(sim_observation_t){.kind = RMM_DIAG_DEVICE_SYNC, .device = device});
    }
    return error;
}

/* ---- events ---- */

int rmm__sim_event_create(rmm_driver_event_t *event_out)
{
    int error = rmm__sim_enter("event_create");
    sim_event_t *event;
    sim_entry_t *entry;

    if (error != RMM_DRIVER_OK) {
        return error;
    }
    event = calloc(1, sizeof(*event));
    entry = event != NULL ? rmm__sim_entry_take_locked(&events, event) : NULL;
    if (entry != NULL) {
        event->device = rmm__sim_thread.device;
        *event_out = rmm__sim_entry_handle(&events, entry);
    } else {
        free(event);
        error = RMM_DRIVER_MEMORY_ALLOCATION;
    }
    rmm__sim_leave();
    return error;
}

static void tell_event(
    rmm_diag_event_kind_t kind, int device, rmm_stream_t stream,
    rmm_driver_event_t event, bool capturing)
{
    uint64_t word = (uint64_t)(uintptr_t)event;

    rmm__sim_tell(&(sim_observation_t){
        .kind = kind,
        .device = device,
        .stream = stream,
        .words = &word,
        .word_count = 1,
        .capturing = capturing});
}

/* Waits that were queued keep the record. */
int rmm__sim_event_destroy(rmm_driver_event_t handle)
{
    int error;
    sim_event_t *event;

    /* first, as a stream's end */
    tell_event(RMM_DIAG_EVENT_DESTROY, rmm__sim_thread.device, NULL, handle, false);
    event = rmm__sim_enter_object(&events, handle, "event_destroy", &error);
    if (event != NULL) {
        rmm__sim_item_release_locked(event->record);
        rmm__sim_nodes_clear(&event->tails);
        free(event);
        rmm__sim_entry_give_locked(&events, rmm__sim_entry(&events, handle));
        rmm__sim_leave();
    }
    return error;
}

/* A call of a stream and an event. */
typedef struct event_call {
    const char *name;
    rmm_diag_event_kind_t kind;
    int (*run_locked)(sim_stream_t *stream, sim_event_t *event, bool *capturing_out);
} event_call_t;

static int run_event_call(
    const event_call_t *call, rmm_stream_t handle, rmm_driver_event_t event_handle)
{
    int error;
    sim_stream_t *stream = rmm__sim_enter_stream(handle, call->name, &error);
    sim_event_t *event;
    bool capturing = false;
    int device;

    if (stream == NULL) {
        return error;
    }
    device = stream->device;
    event = rmm__sim_find_locked(&events, event_handle, call->name, &error);
    if (event != NULL) {
        error = call->run_locked(stream, event, &capturing);
    }
    rmm__sim_leave();
    if (error == RMM_DRIVER_OK) {
        tell_event(call->kind, device, handle, event_handle, capturing);
    }
    return error;
}

static int record_locked(sim_stream_t *stream, sim_event_t *event, bool *capturing_out)
{
    return event->device == stream->device
               ? rmm__sim_record_locked(stream, event, capturing_out)
               : RMM_DRIVER_INVALID_HANDLE;
}

int rmm__sim_event_record(rmm_driver_event_t event, rmm_stream_t stream)
{
    static const event_call_t call = {
        "event_record", RMM_DIAG_EVENT_RECORD, record_locked};

    return run_event_call(&call, stream, event);
}

int rmm__sim_stream_wait_event(rmm_stream_t stream, rmm_driver_event_t event)
{
    static const event_call_t call = {
        "stream_wait_event", RMM_DIAG_EVENT_WAIT, rmm__sim_wait_locked};

    return run_event_call(&call, stream, event);
}

int rmm__sim_event_query(rmm_driver_event_t handle)
{
    int error;
    sim_event_t *event = rmm__sim_enter_object(&events, handle, "event_query", &error);
    int device;

    if (event == NULL) {
        return error;
    }
    device = event->device;
    error = rmm__sim_capture_check_event_locked(event);
    if (error == RMM_DRIVER_OK && event->record != NULL &&
        !rmm__sim_item_is_done(event->record)) {
        error = RMM_DRIVER_NOT_READY;
        rmm__sim_nudge_locked(event->record); /* so that a loop of queries ends */
    }
    rmm__sim_leave();
    if (error == RMM_DRIVER_OK) {
        tell_event(RMM_DIAG_EVENT_SYNC, device, NULL, handle, false);
    }
    return error;
}

static int finish_event_locked(sim_event_t *event)
{
    int error = rmm__sim_capture_check_event_locked(event);

    if (error == RMM_DRIVER_OK && event->record != NULL) {
        rmm__sim_finish_item_locked(event->record);
        rmm__sim_mempool_settle_locked(event->device);
    }
    return error;
}

int rmm__sim_event_synchronize(rmm_driver_event_t handle)
{
    int error;
    sim_event_t *event =
        rmm__sim_enter_object(&events, handle, "event_synchronize", &error);
    int device;

    if (event == NULL) {
        return error;
    }
    device = event->device;
    error = finish_event_locked(event);
    rmm__sim_leave();
    if (error == RMM_DRIVER_OK) {
        tell_event(RMM_DIAG_EVENT_SYNC, device, NULL, handle, false);
    }
    return error;
}
