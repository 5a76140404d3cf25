/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which stream a handle names, and captures.
 *
 * HIP uses a handle again after its stream's end, as CUDA does, but only from 7.1 on it has an
 * id that is never used again (hipStreamGetId). Before that, each handle that the library
 * meets has an id of the library's own and a *witness*: an event. Each look at the handle
 * makes its stream wait for the witness and records it there again. If the handle has passed to
 * another stream meanwhile, that stream is therefore ordered after everything that was queued
 * on the old one before the library's last look. That is all that an id promises to its
 * users: they look at a stream in each allocation and free, and what they know of an id is
 * about work that was queued before a free. So both streams may have the same id.
 *
 * Streams of rmm_stream_create() need no witness: they end in rmm_stream_destroy(), which
 * forgets their ids (stream_ids.h). Their frees touch none, so the witness of the handle is
 * forgotten when such a stream ends: it would vouch for less than the id stands for. The
 * legacy default stream has id 0; per-thread default streams are identified by their thread and
 * device.
 *
 * A handle that has lost its witness gets a new id, which is always right: nothing is known
 * of it. So the table is bounded, and an event that cannot be made or recorded costs reuse of
 * memory only. A thread that uses a witness pins it, because a thread that replaces a witness in
 * the table destroys its event.
 *
 * Locking: `witnesses` is protected by `lock`, under which HIP is not called.
 * Cost: one call of HIP for a stream of the library, two for another one, three before 7.1.
 */
#include "core/hash.h"
#include "driver/hip_internal.h"

#include <string.h>

#include "core/assert.h"
#include "core/mutex.h"
#include "driver/stream_ids.h"

enum { WITNESS_SETS = 256, WITNESS_WAYS = 4 };

typedef struct witness {
    hip_stream_t stream; /* NULL: free */
    hip_event_t event;
    uint64_t id;
    uint32_t users; /* threads in touch(): they keep it */
} witness_t;

static rmm_mutex_t lock = RMM_MUTEX_INITIALIZER;
static witness_t witnesses[WITNESS_SETS][WITNESS_WAYS];
static uint32_t next_victim;
static _Atomic(uint64_t) last_id;

static uint64_t fresh_id(void)
{
    return RMM_STREAM_ID_MADE_UP |
           (1 + atomic_fetch_add_explicit(&last_id, 1, memory_order_relaxed));
}

static witness_t *set_of(hip_stream_t stream)
{
    uint64_t hash = rmm__hash((uintptr_t)stream >> 4);

    return witnesses[hash >> 56];
}

static_assert(WITNESS_SETS == 1 << 8, "the hash's highest 8 bits choose the set");

static witness_t *find_locked(hip_stream_t stream)
{
    witness_t *set = set_of(stream);

    RMM_ASSERT_LOCKED(&lock);
    for (int i = 0; i < WITNESS_WAYS; i++) {
        if (set[i].stream == stream) {
            return &set[i];
        }
    }
    return NULL;
}

/* A place for another stream: a free one, or one whose witness no thread has pinned, or NULL. */
static witness_t *place_locked(hip_stream_t stream)
{
    witness_t *set = set_of(stream);

    RMM_ASSERT_LOCKED(&lock);
    for (int i = 0; i < WITNESS_WAYS; i++) {
        if (set[i].stream == NULL) {
            return &set[i];
        }
    }
    for (int i = 0; i < WITNESS_WAYS; i++) {
        witness_t *victim = &set[next_victim++ % WITNESS_WAYS];

        if (victim->users == 0) {
            return victim;
        }
    }
    return NULL;
}

static void destroy_event(hip_event_t event)
{
    if (event != NULL) {
        (void)CALL(rmm__hip.hipEventDestroy(event));
    }
}

/* Takes the witness out of the table; its event, for the caller to destroy. */
static hip_event_t take_event_locked(witness_t *witness)
{
    hip_event_t event = witness->event;

    memset(witness, 0, sizeof(*witness));
    return event;
}

static int touch(hip_stream_t stream, hip_event_t event)
{
    int error = CALL(rmm__hip.hipStreamWaitEvent(stream, event, 0));

    return error != RMM_DRIVER_OK ? error
                                  : CALL(rmm__hip.hipEventRecord(event, stream));
}

/* An event of the stream's device, recorded on the stream; NULL if that fails. */
static hip_event_t make_event(hip_stream_t stream)
{
    int device = rmm__hip.hipGetStreamDeviceId(stream);
    hip_event_t event = NULL;
    int current;

    if (CALL(rmm__hip.hipGetDevice(&current)) != RMM_DRIVER_OK) {
        return NULL;
    }
    if (device < 0) {
        device = current;
    }
    if (device != current && CALL(rmm__hip.hipSetDevice(device)) != RMM_DRIVER_OK) {
        return NULL;
    }
    if (CALL(rmm__hip.hipEventCreateWithFlags(&event, HIP_EVENT_DISABLE_TIMING)) !=
        RMM_DRIVER_OK) {
        event = NULL;
    }
    if (device != current) {
        (void)CALL(rmm__hip.hipSetDevice(current));
    }
    if (event != NULL &&
        CALL(rmm__hip.hipEventRecord(event, stream)) != RMM_DRIVER_OK) {
        destroy_event(event);
        event = NULL;
    }
    return event;
}

/* The id of a stream that is not in the table. Another thread may have put it there by now:
 * then it has two ids, the later of which stays. */
static uint64_t id_of_new(hip_stream_t stream)
{
    hip_event_t event = make_event(stream);
    hip_event_t old = event;
    uint64_t id = fresh_id();
    witness_t *place;

    if (event == NULL) {
        return id;
    }
    rmm__mutex_lock(&lock);
    place = find_locked(stream) == NULL ? place_locked(stream) : NULL;
    if (place != NULL) {
        old = take_event_locked(place);
        *place = (witness_t){.stream = stream, .event = event, .id = id};
    }
    rmm__mutex_unlock(&lock);
    destroy_event(old);
    return id;
}

/* The id that a witness vouches for. */
static uint64_t id_by_witness(hip_stream_t stream)
{
    hip_event_t event = NULL;
    hip_event_t dropped = NULL;
    witness_t *witness;
    uint64_t id = 0;
    bool is_ordered;

    rmm__mutex_lock(&lock);
    witness = find_locked(stream);
    if (witness != NULL) {
        witness->users++;
        event = witness->event;
        id = witness->id;
    }
    rmm__mutex_unlock(&lock);
    if (witness == NULL) {
        return id_of_new(stream);
    }
    is_ordered = touch(stream, event) == RMM_DRIVER_OK;
    rmm__mutex_lock(&lock);
    witness->users--;
    if (!is_ordered && witness->users == 0) {
        dropped = take_event_locked(witness);
    }
    rmm__mutex_unlock(&lock);
    destroy_event(dropped);
    return is_ordered ? id : id_of_new(stream);
}

void rmm__hip_stream_forget(hip_stream_t handle)
{
    hip_event_t dropped = NULL;
    witness_t *witness;

    rmm__mutex_lock(&lock);
    witness = find_locked(handle);
    if (witness != NULL) { /* no other thread uses the stream */
        dropped = take_event_locked(witness);
    }
    rmm__mutex_unlock(&lock);
    destroy_event(dropped);
}

/* ---- keys ---- */

static int id_of_thread(uint64_t *id)
{
    int device;
    int error = CALL(rmm__hip.hipGetDevice(&device));

    if (error == RMM_DRIVER_OK) {
        *id = rmm__stream_id_of_thread(device);
    }
    return error;
}

/* As in cuda.c, the handle names a stream that captures: it cannot end before. */
static int capture_key(rmm_stream_t stream, rmm_stream_key_t *key)
{
    hip_capture_status_t status;
    unsigned long long capture;
    uint64_t id = (uint64_t)(uintptr_t)stream;
    int error = CALL(rmm__hip.hipStreamGetCaptureInfo_v2(
        rmm__hip_stream(stream), &status, &capture, NULL, NULL, NULL));

    if (error == RMM_DRIVER_OK && rmm_stream_is_per_thread_default(stream)) {
        error = id_of_thread(&id);
    }
    if (error == RMM_DRIVER_OK) {
        key->stream_id = id;
        key->capture_id =
            status == HIP_CAPTURE_STATUS_ACTIVE ? capture : RMM_CAPTURE_RUINED;
    }
    return error;
}

/* The id of a stream that does not capture. */
static int stream_id(rmm_stream_t stream, uint64_t *id)
{
    unsigned long long answer;
    int error;

    if (rmm_stream_is_per_thread_default(stream)) {
        return id_of_thread(id);
    }
    if (!rmm__hip.has[HIP_GROUP_STREAM_IDS]) {
        *id = id_by_witness(rmm__hip_stream(stream));
        return RMM_DRIVER_OK;
    }
    error = CALL(rmm__hip.hipStreamGetId(rmm__hip_stream(stream), &answer));
    if (error == RMM_DRIVER_OK) {
        *id = answer;
    }
    return error;
}

int rmm__hip_stream_key(rmm_stream_t stream, rmm_stream_key_t *key)
{
    hip_capture_status_t status = HIP_CAPTURE_STATUS_NONE;
    uint64_t known;
    uint64_t id;
    int error;

    if (rmm_stream_is_default(stream)) { /* cannot capture */
        *key = (rmm_stream_key_t){0, 0};
        return RMM_DRIVER_OK;
    }
    known = rmm__stream_id_find(stream); /* by rmm_stream_create() */
    if ((known & RMM_STREAM_ID_NEVER_CAPTURES) != 0 && !rmm__hip_is_exiting()) {
        *key = (rmm_stream_key_t){known & ~RMM_STREAM_ID_NEVER_CAPTURES, 0};
        return RMM_DRIVER_OK;
    }
    error = CALL(rmm__hip.hipStreamIsCapturing(rmm__hip_stream(stream), &status));
    if (error != RMM_DRIVER_OK) {
        return error;
    }
    if (status != HIP_CAPTURE_STATUS_NONE) {
        return capture_key(stream, key);
    }
    id = known;
    if (id == 0) {
        error = stream_id(stream, &id);
    }
    if (error == RMM_DRIVER_OK) {
        *key = (rmm_stream_key_t){id, 0};
    }
    return error;
}

/* ---- captures ---- */

int rmm__hip_legacy_is_open(int *is_open)
{
    hip_capture_status_t status;
    int error = CALL(
        rmm__hip.hipStreamIsCapturing(rmm__hip_stream(RMM_STREAM_LEGACY), &status));

    if (error == RMM_DRIVER_OK || error == RMM_DRIVER_CAPTURE_IMPLICIT) {
        *is_open = error == RMM_DRIVER_OK;
        return RMM_DRIVER_OK;
    }
    return error;
}

int rmm__hip_capture_mode_exchange(int *mode)
{
    hip_capture_mode_t native = (hip_capture_mode_t)*mode;
    int error = CALL(rmm__hip.hipThreadExchangeStreamCaptureMode(&native));

    if (error == RMM_DRIVER_OK) {
        *mode = (int)native;
    }
    return error;
}

/* The graph that the stream captures into. */
static int captured_graph(rmm_stream_t stream, hip_graph_t *graph)
{
    hip_capture_status_t status;
    unsigned long long id;
    int error = CALL(rmm__hip.hipStreamGetCaptureInfo_v2(
        rmm__hip_stream(stream), &status, &id, graph, NULL, NULL));

    return error == RMM_DRIVER_OK && status != HIP_CAPTURE_STATUS_ACTIVE
               ? RMM_DRIVER_CAPTURE_INVALIDATED
               : error;
}

/* Without user objects (before 5.3) the end of a graph cannot be detected. */
int rmm__hip_capture_watch(
    rmm_stream_t stream, void (*gone)(void *context), void *context)
{
    hip_user_object_t object;
    hip_graph_t graph;
    int error = captured_graph(stream, &graph);

    if (error == RMM_DRIVER_OK) {
        error = CALL_IF(
            USER_OBJECTS,
            rmm__hip.hipUserObjectCreate(
                &object, context, gone, 1, HIP_USER_OBJECT_NO_DESTRUCTOR_SYNC));
    }
    if (error != RMM_DRIVER_OK) {
        gone(context);
        return error;
    }
    error = CALL(rmm__hip.hipGraphRetainUserObject(
        graph, object, 1, HIP_GRAPH_USER_OBJECT_MOVE));
    if (error != RMM_DRIVER_OK) {
        (void)CALL(rmm__hip.hipUserObjectRelease(object, 1)); /* calls gone() */
    }
    return error;
}
