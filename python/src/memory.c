/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies between raw addresses.
 *
 * A copy to or from a Python object waits for its stream: the object may end or change before
 * the stream runs the copy.
 */
#include "module.h"

static PyObject *copy_host(PyObject *args, bool to_host)
{
    PyObject *object, *result = NULL;
    stream_object_t *stream;
    library_call_t call;
    rmm_status_t status;
    Py_buffer view;
    void *ptr;

    if (!PyArg_ParseTuple(args, "O&OO", as_address, &ptr, &object, &result) ||
        (stream = stream_from(result)) == NULL) {
        return NULL;
    }
    result = NULL;
    if (PyObject_GetBuffer(object, &view, to_host ? PyBUF_CONTIG : PyBUF_CONTIG_RO) ==
        0) {
        library_enter(&call);
        status = rmm_memcpy(
            to_host ? view.buf : ptr, to_host ? ptr : view.buf, (size_t)view.len,
            stream->stream);
        result = library_leave(&call, status) ? Py_NewRef(Py_None) : NULL;
        PyBuffer_Release(&view);
    }
    Py_DECREF(stream);
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

static PyObject *copy_device(PyObject *module, PyObject *args)
{
    stream_object_t *stream;
    PyObject *on;
    library_call_t call;
    rmm_status_t status;
    void *src, *dst;
    uint64_t bytes;

    (void)module;
    if (!PyArg_ParseTuple(
            args, "O&O&O&O", as_address, &src, as_address, &dst, as_uint64, &bytes,
            &on) ||
        (stream = stream_from(on)) == NULL) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_memcpy_async(dst, src, bytes, stream->stream);
    return stream_leave(&call, status, stream) ? Py_NewRef(Py_None) : NULL;
}

PyMethodDef memory_functions[] = {
    {"copy_to_host", copy_to_host, METH_VARARGS, NULL},
    {"copy_from_host", copy_from_host, METH_VARARGS, NULL},
    {"copy_device", copy_device, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
