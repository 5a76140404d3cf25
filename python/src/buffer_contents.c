/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changes a buffer, copies its contents, and shows them to others.
 *
 * Each begins with buffer_settle(). A copy to or from a Python object waits for its stream:
 * the object may end or change before the stream runs the copy. Memory that the host can
 * access can be viewed without a copy (memoryview, numpy.frombuffer); while a view exists,
 * the memory does not move, and what the package queues on it is waited for.
 */
#include "buffer.h"

/* --- changes -------------------------------------------------------------------------- */

typedef rmm_status_t (*size_fn)(rmm_device_buffer_t *, size_t, rmm_stream_t);

static PyObject *change(buffer_object_t *self, size_fn fn, uint64_t bytes, PyObject *on)
{
    stream_object_t *stream;
    library_call_t call;
    rmm_status_t status;
    place_t at;

    if (self->pins != 0) {
        PyErr_SetString(
            PyExc_BufferError, "a view of the memory exists: it cannot be moved");
        return NULL;
    }
    stream = stream_from(on);
    if (stream == NULL) {
        return NULL;
    }
    at = place_on(stream, self->own_place.device);
    if (!buffer_settle(self, &at)) {
        Py_DECREF(stream);
        return NULL;
    }
    library_enter(&call);
    status = fn(&self->buffer, bytes, stream->stream);
    if (!library_leave(&call, status)) {
        Py_DECREF(stream);
        return NULL;
    }
    buffer_look(self);
    buffer_set_place(self, at);
    Py_RETURN_NONE;
}

static rmm_status_t
shrink(rmm_device_buffer_t *buffer, size_t unused, rmm_stream_t stream)
{
    (void)unused;
    return rmm_device_buffer_shrink_to_fit(buffer, stream);
}

static PyObject *resize(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"new_size", "stream", NULL};
    PyObject *stream = NULL;
    uint64_t bytes;

    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O&|O", names, as_uint64, &bytes, &stream)) {
        return NULL;
    }
    return change((buffer_object_t *)self, rmm_device_buffer_resize, bytes, stream);
}

static PyObject *reserve(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"new_capacity", "stream", NULL};
    PyObject *stream = NULL;
    uint64_t bytes;

    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O&|O", names, as_uint64, &bytes, &stream)) {
        return NULL;
    }
    return change((buffer_object_t *)self, rmm_device_buffer_reserve, bytes, stream);
}

static PyObject *shrink_to_fit(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"stream", NULL};
    PyObject *stream = NULL;

    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "|O", names, &stream)) {
        return NULL;
    }
    return change((buffer_object_t *)self, shrink, 0, stream);
}

/* Wait for what a consumer at a stream of the current device (None: anywhere) is not behind. */
static PyObject *settle_for(PyObject *object, PyObject *on)
{
    buffer_object_t *self = (buffer_object_t *)object;
    stream_object_t *stream;
    rmm_status_t status;
    bool is_good;
    place_t at;
    int device = 0;

    if (on == Py_None) {
        return buffer_settle(self, NULL) ? Py_NewRef(Py_None) : NULL;
    }
    stream = stream_from(on);
    status = stream != NULL ? rmm_device_current(&device) : RMM_OK;
    if (stream == NULL || status != RMM_OK) {
        Py_XDECREF(stream);
        return stream != NULL ? raise_status(status) : NULL;
    }
    at = place_on(stream, device);
    is_good = buffer_settle(self, &at);
    Py_DECREF(stream);
    return is_good ? Py_NewRef(Py_None) : NULL;
}

/* --- contents ------------------------------------------------------------------------- */

static PyObject *copy(PyObject *object, PyObject *args, bool to_host)
{
    buffer_object_t *self = (buffer_object_t *)object;
    PyObject *host, *on, *result = NULL;
    stream_object_t *stream;
    library_call_t call;
    rmm_status_t status;
    Py_buffer view;
    uint64_t offset;
    place_t at;

    if (!PyArg_ParseTuple(args, "OO&O", &host, as_uint64, &offset, &on) ||
        (stream = stream_from(on)) == NULL) {
        return NULL;
    }
    at = place_on(stream, self->own_place.device);
    if (buffer_settle(self, &at) &&
        PyObject_GetBuffer(host, &view, to_host ? PyBUF_CONTIG : PyBUF_CONTIG_RO) ==
            0) {
        library_enter(&call);
        status = to_host ? rmm_device_buffer_copy_to_host(
                               &self->buffer, offset, view.buf, (size_t)view.len,
                               stream->stream)
                         : rmm_device_buffer_copy_from_host(
                               &self->buffer, offset, view.buf, (size_t)view.len,
                               stream->stream);
        result = library_leave(&call, status) ? Py_NewRef(Py_None) : NULL;
        PyBuffer_Release(&view);
    }
    Py_DECREF(stream);
    return result;
}

static PyObject *read_into(PyObject *object, PyObject *args)
{
    return copy(object, args, true);
}

static PyObject *write_from(PyObject *object, PyObject *args)
{
    return copy(object, args, false);
}

/* Copies `bytes` bytes from an address to the beginning of the buffer; the caller has checked
 * the size. What is no buffer's memory is waited for, because nothing else would order its
 * end. */
static rmm_status_t
queue_copy(buffer_object_t *self, const void *from, uint64_t bytes, rmm_stream_t stream)
{
    rmm_device_scope_t scope;
    rmm_status_t status = rmm_device_scope_enter(self->own_place.device, &scope);

    if (status == RMM_OK) {
        status = rmm_memcpy_async(
            rmm_device_buffer_data(&self->buffer), from, bytes, stream);
        rmm_device_scope_leave(&scope);
    }
    return status;
}

static bool copy_between(
    buffer_object_t *self, PyObject *sources, const void *from, uint64_t bytes,
    const place_t *at)
{
    library_call_t call;
    rmm_status_t status;

    if (!buffers_settle(sources, at) || !buffer_settle(self, at)) {
        return false;
    }
    library_enter(&call);
    status = queue_copy(self, from, bytes, at->stream->stream);
    if (status == RMM_OK && PyList_Size(sources) == 0 && at->device >= 0) {
        status = stream_wait_on(at->stream->stream, at->device);
    }
    return library_leave(&call, status) && buffers_queued(sources, at) &&
           buffer_queued(self, at);
}

static PyObject *copy_from(PyObject *object, PyObject *args)
{
    buffer_object_t *self = (buffer_object_t *)object;
    PyObject *on, *source, *sources;
    stream_object_t *stream;
    bool is_good = false;
    uint64_t bytes;
    void *from;
    place_t at;

    if (!PyArg_ParseTuple(
            args, "OO&O&O", &source, as_address, &from, as_uint64, &bytes, &on) ||
        (stream = stream_from(on)) == NULL) {
        return NULL;
    }
    if (bytes > rmm_device_buffer_size(&self->buffer)) {
        PyErr_SetString(PyExc_ValueError, "more bytes than the buffer has");
    } else {
        at = place_on(stream, self->own_place.device);
        sources = PyObject_TypeCheck(source, buffer_type) ? Py_BuildValue("[O]", source)
                                                          : buffers_at(from, bytes);
        is_good = sources != NULL && copy_between(self, sources, from, bytes, &at);
        Py_XDECREF(sources);
    }
    Py_DECREF(stream);
    return is_good ? Py_NewRef(Py_None) : NULL;
}

/* Without the constructor of a subclass, whose arguments are not known. */
static PyObject *copy_as(PyObject *object, PyObject *type)
{
    buffer_object_t *self = (buffer_object_t *)object;
    place_t at = place_on(self->own_place.stream, self->own_place.device);
    buffer_object_t *made;

    if (!PyType_Check(type) || !PyType_IsSubtype((PyTypeObject *)type, buffer_type)) {
        PyErr_SetString(PyExc_TypeError, "a class of buffers is needed");
        return NULL;
    }
    if (!buffer_settle(self, &at)) {
        return NULL;
    }
    made = (buffer_object_t *)PyType_GenericAlloc((PyTypeObject *)type, 0);
    if (made != NULL &&
        !(buffer_begin_copy(made, self, &at) && buffer_queued(self, &at))) {
        Py_CLEAR(made);
    }
    return (PyObject *)made;
}

/* It changes nothing of the contents, so it is behind nothing; but the free is behind it. */
static PyObject *prefetch_to(PyObject *object, PyObject *args)
{
    buffer_object_t *self = (buffer_object_t *)object;
    stream_object_t *stream;
    library_call_t call;
    rmm_status_t status;
    bool is_good;
    PyObject *on;
    place_t at;
    int device;

    if (!PyArg_ParseTuple(args, "iO", &device, &on) ||
        (stream = stream_from(on)) == NULL) {
        return NULL;
    }
    at = place_on(stream, self->own_place.device);
    library_enter(&call);
    status = rmm_device_buffer_prefetch(&self->buffer, device, stream->stream);
    is_good = library_leave(&call, status) && buffer_queued(self, &at);
    Py_DECREF(stream);
    return is_good ? Py_NewRef(Py_None) : NULL;
}

/* --- views ---------------------------------------------------------------------------- */

int buffer_get_view(PyObject *object, Py_buffer *view, int flags)
{
    buffer_object_t *self = (buffer_object_t *)object;
    rmm_device_buffer_t *memory = &self->buffer;

    view->obj = NULL;
    if (!(rmm_resource_properties(rmm_device_buffer_resource(memory)) &
          RMM_HOST_ACCESSIBLE)) {
        PyErr_SetString(
            PyExc_BufferError,
            "the host cannot access this memory: copy it (tobytes(), copy_to_host())");
        return -1;
    }
    buffer_pin(object);
    if (!buffer_settle(self, NULL) ||
        PyBuffer_FillInfo(
            view, object, rmm_device_buffer_data(memory),
            (Py_ssize_t)rmm_device_buffer_size(memory), 0, flags) < 0) {
        buffer_unpin(object);
        return -1;
    }
    return 0;
}

void buffer_release_view(PyObject *object, Py_buffer *view)
{
    (void)view;
    buffer_unpin(object);
}

/* --- the methods ---------------------------------------------------------------------- */

static PyObject *capacity(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyLong_FromSize_t(
        rmm_device_buffer_capacity(&((buffer_object_t *)object)->buffer));
}

PyMethodDef buffer_methods[] = {
    {"resize", KEYWORD_FUNCTION(resize), METH_VARARGS | METH_KEYWORDS,
     "resize($self, new_size, stream=...)\n--\n\n"
     "To new_size bytes, with the contents up to there; added bytes are "
     "uninitialised.\n"
     "Above the capacity the memory moves, in the order of the stream, by default the\n"
     "legacy default stream. That becomes the buffer's, behind the former one.\n"
     "Raises BufferError while a view or a DLPack array uses the memory, and\n"
     "MemoryError; the buffer is unchanged then."},
    {"reserve", KEYWORD_FUNCTION(reserve), METH_VARARGS | METH_KEYWORDS,
     "reserve($self, new_capacity, stream=...)\n--\n\n"
     "Raise the capacity to at least new_capacity bytes. Otherwise as resize()."},
    {"shrink_to_fit", KEYWORD_FUNCTION(shrink_to_fit), METH_VARARGS | METH_KEYWORDS,
     "shrink_to_fit($self, stream=...)\n--\n\n"
     "Make the capacity the size. Otherwise as resize()."},
    {"capacity", capacity, METH_NOARGS,
     "capacity($self)\n--\n\nThe bytes that fit without a reallocation."},
    {"_read_into", read_into, METH_VARARGS, NULL},
    {"_write_from", write_from, METH_VARARGS, NULL},
    {"_prefetch_to", prefetch_to, METH_VARARGS, NULL},
    {"_copy_from", copy_from, METH_VARARGS, NULL},
    {"_copy_as", copy_as, METH_O, NULL},
    {"_settle_for", settle_for, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
