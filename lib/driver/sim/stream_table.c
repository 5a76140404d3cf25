/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams by their handles: those that the program made, and the own ones of threads.
 *
 * A stream that was destroyed is refused at every use, with a line on stderr: a real driver
 * crashes or, once the handle is used again, says nothing.
 *
 * stream_key takes no lock, as it is on the allocation path: identities are in the handle's entry,
 * as atomics.
 */
#include "driver/sim/internal.h"

#include <pthread.h>
#include <stdlib.h>

#define STREAM_TAG 0x5354u /* "ST": handles 0x5354_0000_0010 and so on */

static sim_table_t streams = {.what = "stream", .tag = STREAM_TAG};
static uint64_t last_stream_id; /* protected by rmm__sim_lock */
static pthread_key_t thread_end;

int rmm__sim_stream_table_open(void (*at_thread_end)(void *thread))
{
    return pthread_key_create(&thread_end, at_thread_end);
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

sim_stream_t *rmm__sim_stream_create_locked(bool blocking, rmm_stream_t *stream_out)
{
    sim_stream_t *stream = stream_create_locked(blocking);

    if (stream != NULL) {
        *stream_out = rmm__sim_entry_handle(&streams, stream->entry);
    }
    return stream;
}

void rmm__sim_stream_end_locked(sim_stream_t *stream)
{
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

/* ---- identities ---- */

/* While a stream captures CUDA tells no id, and the table has the handle. That of the per-thread
 * default stream is the same number in every thread: an id that no stream outside of a capture has
 * stands for it. */
static uint64_t capturing_id(rmm_stream_t handle, uint64_t id)
{
    return rmm_stream_is_per_thread_default(handle) ? id | UINT64_C(1) << 63
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
    key->stream_id = key->capture_id == 0 ? id : capturing_id(handle, id);
    return true;
}

bool (*rmm__sim_is_known_wrongly)(rmm_stream_t handle, const rmm_stream_key_t *key);

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
        if (rmm__sim_is_known_wrongly != NULL &&
            rmm__sim_is_known_wrongly(handle, key)) {
            report_known_wrongly(handle, key);
        }
        return RMM_DRIVER_OK;
    }
    return stream_key_slow(handle, key);
}
