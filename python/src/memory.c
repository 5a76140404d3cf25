/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between raw addresses, on streams of the current device. Where an address is in the
 * memory of a buffer, the copy is ordered as a method of that buffer.
 *
 * A copy to or from a Python object waits for its stream: the object may end or change before
 * the stream runs the copy.
 */
#include "module.h"

static PyObject *copy_host(PyObject *args, bool to_host)
{
    PyObject *object, *on, *buffers, *result = NULL;
    stream_object_t *stream;
    library_call_t call;
    rmm_status_t status;
    Py_buffer view;
    place_t at;
    void *ptr;

    if (!PyArg_ParseTuple(args, "O&OO", as_address, &ptr, &object, &on) ||
        PyObject_GetBuffer(object, &view, to_host ? PyBUF_CONTIG : PyBUF_CONTIG_RO) !=
            0) {
        return NULL;
    }
    stream = stream_from(on);
    buffers =
        stream != NULL ? buffers_settled(ptr, (uint64_t)view.len, stream, &at) : NULL;
    if (buffers != NULL) {
        library_enter(&call);
        status = rmm_memcpy(
            to_host ? view.buf : ptr, to_host ? ptr : view.buf, (size_t)view.len,
            stream->stream);
        result = library_leave(&call, status) ? Py_NewRef(Py_None) : NULL;
    }
    PyBuffer_Release(&view);
    Py_XDECREF(buffers);
    Py_XDECREF(stream);
    return result;
}

static PyObject *copy_to_host(PyObject *module, PyObject *args)
{
    (void)module;
    return copy_host(args, true);
}

static PyObject *copy_from_host(PyObject *module, PyObject *args)
{
    (void)module;
    return copy_host(args, false);
}

static PyObject *
queue_copy(void *dst, const void *src, uint64_t bytes, stream_object_t *stream)
{
    place_t to, from;
    PyObject *targets = buffers_settled(dst, bytes, stream, &to);
    PyObject *sources =
        targets != NULL ? buffers_settled(src, bytes, stream, &from) : NULL;
    library_call_t call;
    rmm_status_t status;
    bool is_good = false;

    if (sources != NULL) {
        library_enter(&call);
        status = rmm_memcpy_async(dst, src, bytes, stream->stream);
        is_good = library_leave(&call, status) && buffers_queued(targets, &to) &&
                  buffers_queued(sources, &from);
    }
    Py_XDECREF(targets);
    Py_XDECREF(sources);
    return is_good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *copy_device(PyObject *module, PyObject *args)
{
    stream_object_t *stream;
    PyObject *on, *result;
    void *src, *dst;
    uint64_t bytes;

    (void)module;
    if (!PyArg_ParseTuple(
            args, "O&O&O&O", as_address, &src, as_address, &dst, as_uint64, &bytes,
            &on) ||
        (stream = stream_from(on)) == NULL) {
        return NULL;
    }
    result = queue_copy(dst, src, bytes, stream);
    Py_DECREF(stream);
    return result;
}

PyMethodDef memory_functions[] = {
    {"copy_to_host", copy_to_host, METH_VARARGS, NULL},
    {"copy_from_host", copy_from_host, METH_VARARGS, NULL},
    {"copy_device", copy_device, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
