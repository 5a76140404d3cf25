/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams and events, as the CUDA functions of the same names. What waits in them is
 * work.c's, what a capture makes of them capture.c's.
 *
 * A stream or event that was destroyed is refused at every use, with a line on stderr:
 * a real driver crashes or, once the handle is used again, says nothing.
 *
 * stream_key takes no lock, as it is on the allocation path: identities live in the
 * handle's entry, as atomics.
 */
#include "driver/sim/internal.h"

#include <pthread.h>
#include <stdlib.h>

#include "driver/stream_ids.h"

#define STREAM_TAG 0x5354u /* "ST": handles 0x5354_0000_0010 and so on */
#define EVENT_TAG 0x4556u  /* "EV" */

static sim_table_t streams = {.what = "stream", .tag = STREAM_TAG};
static sim_table_t events = {.what = "event", .tag = EVENT_TAG};
static sim_stream_t legacy[SIM_DEVICE_MAX];
static uint64_t last_stream_id; /* protected by rmm__sim_lock */
static pthread_key_t thread_end;

/* ---- handles ---- */

sim_stream_t *rmm__sim_legacy(int device)
{
    return &legacy[device];
}

static sim_stream_t *stream_create_locked(bool blocking)
{
    sim_stream_t *stream = calloc(1, sizeof(*stream));

    if (stream == NULL) {
        return NULL;
    }
    stream->entry = rmm__sim_entry_take_locked(&streams, stream);
    if (stream->entry == NULL) {
        free(stream);
        return NULL;
    }
    stream->id = ++last_stream_id;
    stream->place = stream->entry->index + 1;
    stream->device = rmm__sim_thread.device;
    stream->blocking = blocking;
    stream->active_index = SIM_IDLE;
    /* release: pairs with key_of_entry() */
    atomic_store_explicit(&stream->entry->id, stream->id, memory_order_release);
    return stream;
}

void rmm__sim_stream_release_locked(sim_stream_t *stream)
{
    RMM_ASSERT(stream->destroyed && stream->head == NULL);
    free(stream);
}

/* The handle is free at once, the stream goes when its work is done. */
static void stream_end_locked(sim_stream_t *stream)
{
    rmm__sim_capture_forget_locked(stream);
    rmm__sim_entry_give_locked(&streams, stream->entry);
    stream->entry = NULL;
    stream->destroyed = true;
    if (stream->head == NULL) {
        rmm__sim_stream_release_locked(stream);
    }
}

/* The calling thread's own stream on its device, created at its first use. */
static sim_entry_t *own_entry_locked(void)
{
    sim_thread_t *thread = &rmm__sim_thread;
    sim_stream_t *stream;

    if (thread->streams[thread->device] == NULL) {
        stream = stream_create_locked(true);
        if (stream == NULL) {
            return NULL;
        }
        thread->streams[thread->device] = stream->entry;
        pthread_setspecific(thread_end, thread);
    }
    return thread->streams[thread->device];
}

/* At a thread's exit. */
static void own_streams_end(void *argument)
{
    sim_thread_t *thread = argument;

    rmm__mutex_lock(&rmm__sim_lock);
    for (int i = 0; i < SIM_DEVICE_MAX; i++) {
        if (thread->streams[i] != NULL) {
            stream_end_locked(thread->streams[i]->object);
            thread->streams[i] = NULL;
        }
    }
    rmm__mutex_unlock(&rmm__sim_lock);
}

int rmm__sim_streams_open(void)
{
    for (int i = 0; i < SIM_DEVICE_MAX; i++) {
        legacy[i] = (sim_stream_t){
            .device = i, .is_legacy = true, .blocking = true, .active_index = SIM_IDLE};
    }
    return pthread_key_create(&thread_end, own_streams_end);
}

sim_stream_t *
rmm__sim_stream_find_locked(rmm_stream_t handle, const char *call, int *error)
{
    sim_entry_t *entry;

    RMM_ASSERT_LOCKED(&rmm__sim_lock);
    if (rmm_stream_is_default(handle)) {
        return rmm__sim_legacy(rmm__sim_thread.device);
    }
    if (rmm_stream_is_per_thread_default(handle)) {
        entry = own_entry_locked();
        *error = entry != NULL ? RMM_DRIVER_OK : RMM_DRIVER_MEMORY_ALLOCATION;
        return entry != NULL ? entry->object : NULL;
    }
    return rmm__sim_find_locked(&streams, handle, call, error);
}

sim_stream_t *rmm__sim_enter_stream(rmm_stream_t handle, const char *call, int *error)
{
    sim_stream_t *stream;

    *error = rmm__sim_enter(call);
    if (*error != RMM_DRIVER_OK) {
        return NULL;
    }
    stream = rmm__sim_stream_find_locked(handle, call, error);
    if (stream == NULL) {
        rmm__sim_leave();
    }
    return stream;
}

/* ---- streams ---- */

int rmm__sim_stream_create(uint32_t flags, rmm_stream_t *stream_out)
{
    uint64_t word = flags & RMM_STREAM_NON_BLOCKING;
    int error;
    sim_stream_t *stream;

    if ((flags & ~RMM_STREAM_NON_BLOCKING) != 0) {
        return RMM_DRIVER_INVALID_VALUE;
    }
    error = rmm__sim_enter("stream_create");
    if (error != RMM_DRIVER_OK) {
        return error;
    }
    stream = stream_create_locked((flags & RMM_STREAM_NON_BLOCKING) == 0);
    if (stream != NULL) {
        *stream_out = rmm__sim_entry_handle(&streams, stream->entry);
    } else {
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
    stream_end_locked(stream);
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

/* What cuda.c says of a stream that captures, because CUDA will not tell its id. */
static uint64_t capturing_id(rmm_stream_t handle)
{
    return rmm_stream_is_per_thread_default(handle)
               ? rmm__stream_id_of_thread(rmm__sim_thread.device)
               : (uint64_t)(uintptr_t)handle;
}

/* False: no live stream has this handle. No lock. */
static bool
key_of_entry(const sim_entry_t *entry, rmm_stream_t handle, rmm_stream_key_t *key)
{
    /* acquire: pairs with stream_create_locked() */
    uint64_t id = atomic_load_explicit(&entry->id, memory_order_acquire);

    if (id == 0) {
        return false;
    }
    key->capture_id = atomic_load_explicit(&entry->capture_id, memory_order_relaxed);
    key->stream_id = key->capture_id == 0 ? id : capturing_id(handle);
    return true;
}

/* The real GPU's table takes ids from stream_ids.h: an error there must show here. An id
 * that is not the simulated GPU's own says nothing: it runs behind HIP's table then. */
static bool is_known_wrongly(rmm_stream_t handle, const rmm_stream_key_t *key)
{
    uint64_t known = rmm__stream_id_find(handle);

    return key->capture_id != 0
               ? (known & RMM_STREAM_ID_NEVER_CAPTURES) != 0
               : known != 0 && (known & RMM_STREAM_ID_MADE_UP) == 0 &&
                     (known & ~RMM_STREAM_ID_NEVER_CAPTURES) != key->stream_id;
}

RMM_COLD static void
report_known_wrongly(rmm_stream_t handle, const rmm_stream_key_t *key)
{
    rmm__mutex_lock(&rmm__sim_lock);
    if (key->capture_id != 0) {
        rmm__sim_violation_locked(
            "stream_key: stream %p captures, and was made with "
            "RMM_STREAM_NEVER_CAPTURES",
            (void *)handle);
    } else {
        rmm__sim_violation_locked(
            "stream_key: stream %p was made by rmm_stream_create() and ended without "
            "rmm_stream_destroy(), another stream has its handle",
            (void *)handle);
    }
    rmm__mutex_unlock(&rmm__sim_lock);
}

/* The slow cases: a stale handle, a thread's first use of its own stream. */
RMM_COLD static int stream_key_slow(rmm_stream_t handle, rmm_stream_key_t *key)
{
    int error;
    sim_stream_t *stream = rmm__sim_enter_stream(handle, "stream_key", &error);

    if (stream != NULL) {
        key_of_entry(stream->entry, handle, key);
        rmm__sim_leave();
    }
    return error;
}

int rmm__sim_stream_key(rmm_stream_t handle, rmm_stream_key_t *key)
{
    const sim_entry_t *entry;

    if (rmm_stream_is_default(handle)) {
        *key = (rmm_stream_key_t){.stream_id = 0};
        return RMM_DRIVER_OK;
    }
    entry = rmm_stream_is_per_thread_default(handle)
                ? rmm__sim_thread.streams[rmm__sim_thread.device]
                : rmm__sim_entry(&streams, handle);
    if (entry != NULL && key_of_entry(entry, handle, key)) {
        if (is_known_wrongly(handle, key)) {
            report_known_wrongly(handle, key);
        }
        return RMM_DRIVER_OK;
    }
    return stream_key_slow(handle, key);
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
