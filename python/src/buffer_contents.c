/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What changes a buffer, copies its contents, and shows them to others.
 *
 * A copy to or from a Python object waits for its stream: the object may end or change before
 * the stream runs the copy. Memory that the host can access can be viewed without a copy
 * (memoryview, numpy.frombuffer); while a view exists, the memory does not move.
 */
#include "buffer.h"

/* --- changes -------------------------------------------------------------------------- */

void buffer_take_stream(buffer_object_t *self, stream_object_t *stream)
{
    Py_XSETREF(self->stream, stream);
}

typedef rmm_status_t (*size_fn)(rmm_device_buffer_t *, size_t, rmm_stream_t);

static PyObject *change(buffer_object_t *self, size_fn fn, uint64_t bytes, PyObject *on)
{
    stream_object_t *stream;
    library_call_t call;
    rmm_status_t status;

    if (self->pins != 0) {
        PyErr_SetString(
            PyExc_BufferError, "a view of the memory exists: it cannot be moved");
        return NULL;
    }
    stream = stream_from(on);
    if (stream == NULL) {
        return NULL;
    }
    library_enter(&call);
    status = fn(&self->buffer, bytes, stream->stream);
    if (!library_leave(&call, status)) {
        Py_DECREF(stream);
        return NULL;
    }
    buffer_take_stream(self, stream);
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

    if (!PyArg_ParseTuple(args, "OO&O", &host, as_uint64, &offset, &on) ||
        (stream = stream_from(on)) == NULL) {
        return NULL;
    }
    if (PyObject_GetBuffer(host, &view, to_host ? PyBUF_CONTIG : PyBUF_CONTIG_RO) ==
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

static PyObject *prefetch_to(PyObject *object, PyObject *args)
{
    buffer_object_t *self = (buffer_object_t *)object;
    stream_object_t *stream;
    library_call_t call;
    rmm_status_t status;
    PyObject *on;
    int device;

    if (!PyArg_ParseTuple(args, "iO", &device, &on) ||
        (stream = stream_from(on)) == NULL) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_device_buffer_prefetch(&self->buffer, device, stream->stream);
    return stream_leave(&call, status, stream) ? Py_NewRef(Py_None) : NULL;
}

/* --- views ---------------------------------------------------------------------------- */

/* The memory may be fresh in stream order only: wait until its stream has reached this point.
 * Memory that no device can access is not ordered by streams. */
static rmm_status_t make_ready(const buffer_object_t *self)
{
    if (rmm_resource_device(rmm_device_buffer_resource(&self->buffer)) < 0) {
        return RMM_OK;
    }
    return rmm_stream_synchronize(self->stream->stream);
}

int buffer_get_view(PyObject *object, Py_buffer *view, int flags)
{
    buffer_object_t *self = (buffer_object_t *)object;
    rmm_device_buffer_t *memory = &self->buffer;
    library_call_t call;
    rmm_status_t status;

    view->obj = NULL;
    if (!(rmm_resource_properties(rmm_device_buffer_resource(memory)) &
          RMM_HOST_ACCESSIBLE)) {
        PyErr_SetString(
            PyExc_BufferError,
            "the host cannot access this memory: copy it (tobytes(), copy_to_host())");
        return -1;
    }
    buffer_pin(object);
    library_enter(&call);
    status = make_ready(self);
    if (!library_leave(&call, status) ||
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
     "resize($self, new_size, stream=None)\n--\n\n"
     "To new_size bytes, with the contents up to there; added bytes are "
     "uninitialised.\n"
     "Above the capacity the memory moves, in the order of the stream, by default the\n"
     "legacy default stream. Raises BufferError while a view or a DLPack array uses\n"
     "the memory, and MemoryError; the buffer is unchanged then."},
    {"reserve", KEYWORD_FUNCTION(reserve), METH_VARARGS | METH_KEYWORDS,
     "reserve($self, new_capacity, stream=None)\n--\n\n"
     "Raise the capacity to at least new_capacity bytes. Otherwise as resize()."},
    {"shrink_to_fit", KEYWORD_FUNCTION(shrink_to_fit), METH_VARARGS | METH_KEYWORDS,
     "shrink_to_fit($self, stream=None)\n--\n\n"
     "Make the capacity the size. Otherwise as resize()."},
    {"capacity", capacity, METH_NOARGS,
     "capacity($self)\n--\n\nThe bytes that fit without a reallocation."},
    {"_read_into", read_into, METH_VARARGS, NULL},
    {"_write_from", write_from, METH_VARARGS, NULL},
    {"_prefetch_to", prefetch_to, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
