/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What orders work on a buffer's memory behind earlier work.
 *
 * A buffer has a place of its own: its stream, on its device. Work that the program queues on the
 * memory by means that the package does not see is there. The package itself may queue work
 * elsewhere (a copy on another stream); the last such place is `other_place`. Before work at a
 * place begins, that place is ordered behind both (rmm_stream_order()). So all work on the memory
 * that is not done is at one of the two, or at what they are behind, and a free at the own place
 * is ordered behind `other_place` alone.
 *
 * The host waits where no stream can: for the per-thread default stream of another thread, for
 * a view, and for work on a stream that nothing keeps alive, because later nobody can be asked
 * about it.
 *
 * Raw addresses are ordered as well: the live buffers are in a list, and a function that gets
 * an address looks for the buffers there. The search is linear, which only these functions
 * pay.
 *
 * Locking: the GIL. A wait releases it, so everything is looked at again afterwards.
 */
#include "buffer.h"

/* --- waiting -------------------------------------------------------------------------- */

typedef struct wait {
    rmm_stream_t stream;
    int device;
    bool is_other_thread; /* its per-thread default stream, which has no name here */
    const void *memory;   /* of the buffer */
    bool is_for_host;     /* else for what is queued next on the following */
    rmm_stream_t next;
    int next_device;
} wait_t;

static wait_t
wait_for(const buffer_object_t *self, const place_t *place, const place_t *at)
{
    place_t here = place_on(place->stream, place->device);

    return (wait_t){
        .stream = place->stream->stream,
        .device = place->device,
        .is_other_thread = here.thread != place->thread,
        .memory = self->memory,
        .is_for_host = at == NULL,
        .next = at != NULL ? at->stream->stream : NULL,
        .next_device = at != NULL ? at->device : -1,
    };
}

/* The legacy default stream runs a copy after the work of all per-thread ones of its device. */
static rmm_status_t wait_by_copy(const wait_t *wait)
{
    rmm_device_scope_t scope;
    rmm_status_t status = rmm_device_scope_enter(wait->device, &scope);
    char byte;

    if (status == RMM_OK) {
        status = rmm_memcpy(&byte, wait->memory, 1, RMM_STREAM_LEGACY);
        rmm_device_scope_leave(&scope);
    }
    return status;
}

/* Without the GIL. A device below 0: there is no GPU, and nothing is queued. Unsupported is
 * the answer in a forked child, whose buffers and queues are the parent's. */
static rmm_status_t run_wait(const wait_t *wait)
{
    rmm_status_t status;

    if (wait->device < 0 || wait->memory == NULL) {
        return RMM_OK;
    }
    if (wait->is_other_thread) {
        status = wait_by_copy(wait);
    } else if (wait->is_for_host) {
        status = stream_wait_on(wait->stream, wait->device);
    } else {
        status =
            rmm_stream_order(wait->device, wait->stream, wait->next_device, wait->next);
    }
    return status == RMM_ERR_UNSUPPORTED ? RMM_OK : status;
}

/* Waits for a place before work at another one; NULL: the host waits. */
static bool
wait_at(const buffer_object_t *self, const place_t *place, const place_t *at)
{
    wait_t wait = wait_for(self, place, at);
    library_call_t call;

    library_enter(&call);
    return library_leave(&call, run_wait(&wait));
}

/* --- order ---------------------------------------------------------------------------- */

void buffer_set_place(buffer_object_t *self, place_t place)
{
    stream_object_t *before = self->own_place.stream;
    stream_object_t *other = self->other_place.stream;

    self->own_place = place;
    self->other_place = (place_t){NULL, 0, 0};
    self->other_place_count++;
    Py_XDECREF(before);
    Py_XDECREF(other);
}

static bool is_elsewhere(const place_t *place, const place_t *at)
{
    return place->stream != NULL && (at == NULL || !place_is(place, at));
}

static bool settle_own(buffer_object_t *self, const place_t *at)
{
    place_t own = self->own_place;
    bool is_good = true;

    if (is_elsewhere(&own, at)) {
        Py_INCREF(own.stream);
        is_good = wait_at(self, &own, at);
        Py_DECREF(own.stream);
    }
    return is_good;
}

/* Another thread that reads the memory may queue work meanwhile. */
static bool settle_other(buffer_object_t *self, const place_t *at)
{
    uint64_t count = self->other_place_count - 1;
    bool is_good = true;

    while (is_good && count != self->other_place_count &&
           is_elsewhere(&self->other_place, at)) {
        place_t other = self->other_place;

        count = self->other_place_count;
        Py_INCREF(other.stream);
        is_good = wait_at(self, &other, at);
        Py_DECREF(other.stream);
    }
    if (is_good && count == self->other_place_count &&
        (at == NULL || place_is(at, &self->own_place))) {
        Py_CLEAR(
            self->other_place.stream); /* it is done, or the own place is behind it */
        self->other_place_count++;
    }
    return is_good;
}

bool buffer_settle(buffer_object_t *self, const place_t *at)
{
    return self->memory == NULL || (settle_own(self, at) && settle_other(self, at));
}

bool buffer_queued(buffer_object_t *self, const place_t *at)
{
    stream_object_t *before;

    if (self->memory == NULL) {
        return true;
    }
    if (self->pins != 0 ||
        (!stream_is_kept(at->stream) && !place_is(at, &self->own_place))) {
        return wait_at(
            self, at,
            NULL); /* the host may look at any time; or nobody can ask later */
    }
    if (place_is(at, &self->own_place)) {
        return true;
    }
    if (!settle_other(self, at)) {
        return false;
    }
    Py_INCREF(at->stream);
    before = self->other_place.stream;
    self->other_place = *at;
    self->other_place_count++;
    Py_XDECREF(before);
    return true;
}

static void wait_quietly(const wait_t *wait)
{
    library_call_t call;

    library_enter(&call);
    (void)run_wait(wait);
    library_leave_quietly(&call);
}

void buffer_settle_before_free(buffer_object_t *self)
{
    wait_t wait;

    if (self->own_place.thread != 0 &&
        place_on(self->own_place.stream, 0).thread != self->own_place.thread) {
        wait = wait_for(self, &self->own_place, NULL);
        wait_quietly(&wait);
    }
    if (self->other_place.stream != NULL) {
        wait = wait_for(self, &self->other_place, &self->own_place);
        wait_quietly(&wait);
    }
}

/* --- raw addresses -------------------------------------------------------------------- */

static buffer_object_t *live;

void buffer_look(buffer_object_t *self)
{
    self->memory = rmm_device_buffer_data(&self->buffer);
    self->room = rmm_device_buffer_capacity(&self->buffer);
}

void buffer_enlist(buffer_object_t *self)
{
    buffer_look(self);
    self->next = live;
    self->previous = NULL;
    if (live != NULL) {
        live->previous = self;
    }
    live = self;
    self->is_listed = true;
}

void buffer_delist(buffer_object_t *self)
{
    self->memory = NULL;
    if (!self->is_listed) {
        return;
    }
    if (self->next != NULL) {
        self->next->previous = self->previous;
    }
    if (self->previous != NULL) {
        self->previous->next = self->next;
    } else {
        live = self->next;
    }
    self->is_listed = false;
}

PyObject *buffers_at(const void *ptr, uint64_t bytes)
{
    PyObject *found = PyList_New(0);
    uintptr_t begin = (uintptr_t)ptr;

    for (buffer_object_t *at = live; found != NULL && at != NULL; at = at->next) {
        uintptr_t data = (uintptr_t)at->memory;

        if ((data - begin < bytes || begin - data < at->room) &&
            PyList_Append(found, (PyObject *)at) < 0) {
            Py_CLEAR(found);
        }
    }
    return found;
}

PyObject *buffers_settled(
    const void *ptr, uint64_t bytes, stream_object_t *stream, place_t *at_out)
{
    PyObject *found = buffers_at(ptr, bytes);
    rmm_status_t status;

    *at_out = place_on(stream, -1);
    if (found == NULL || PyList_Size(found) == 0) {
        return found;
    }
    status = rmm_device_current(&at_out->device);
    if (status != RMM_OK && status != RMM_ERR_NO_DEVICE) {
        raise_status(status);
        Py_CLEAR(found);
    } else if (!buffers_settle(found, at_out)) {
        Py_CLEAR(found);
    }
    return found;
}

bool buffers_settle(PyObject *buffers, const place_t *at)
{
    bool is_good = true;

    for (Py_ssize_t i = 0; is_good && i < PyList_Size(buffers); i++) {
        is_good = buffer_settle((buffer_object_t *)PyList_GetItem(buffers, i), at);
    }
    return is_good;
}

bool buffers_queued(PyObject *buffers, const place_t *at)
{
    bool is_good = true;

    for (Py_ssize_t i = 0; is_good && i < PyList_Size(buffers); i++) {
        is_good = buffer_queued((buffer_object_t *)PyList_GetItem(buffers, i), at);
    }
    return is_good;
}
