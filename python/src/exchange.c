/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers and resources of C as Python objects, and back: the functions of rmm/python.h, and what
 * rmm_c.rapids needs to hand the memory of a buffer to RMM.
 */
#include <rmm/python.h>

#include "buffer.h"

/* --- from C --------------------------------------------------------------------------- */

/* The class DeviceBuffer, which is Python's: a new reference. */
static PyTypeObject *buffer_class(void)
{
    PyObject *module = PyImport_ImportModule("rmm_c.pylibrmm.device_buffer");
    PyObject *found = NULL;

    if (module != NULL) {
        found = PyObject_GetAttrString(module, "DeviceBuffer");
        Py_DECREF(module);
    }
    return (PyTypeObject *)found;
}

/* A new reference to the Stream of a buffer: what the caller gives, or a bare one. */
static stream_object_t *stream_for(const rmm_device_buffer_t *buffer, PyObject *given)
{
    rmm_stream_t handle = rmm_device_buffer_stream(buffer);
    PyObject *number = given == NULL ? PyLong_FromVoidPtr(handle) : Py_NewRef(given);
    stream_object_t *stream = number != NULL ? stream_from(number) : NULL;

    Py_XDECREF(number);
    if (stream != NULL && stream->stream != handle) {
        Py_DECREF(stream);
        PyErr_SetString(
            PyExc_ValueError, "the buffer is on another stream than the given one");
        return NULL;
    }
    return stream;
}

/* The buffer is moved from at the very end: nothing fails after that. */
static PyObject *buffer_from(rmm_device_buffer_t *buffer, PyObject *given)
{
    rmm_resource_t *mr = buffer != NULL ? rmm_device_buffer_resource(buffer) : NULL;
    PyTypeObject *type;
    buffer_object_t *self;

    if (mr == NULL) {
        PyErr_SetString(PyExc_ValueError, "the buffer has no resource");
        return NULL;
    }
    if ((type = buffer_class()) == NULL) {
        return NULL;
    }
    self = (buffer_object_t *)PyType_GenericAlloc(type, 0);
    Py_DECREF(type);
    if (self == NULL) {
        return NULL;
    }
    self->own_place.stream = stream_for(buffer, given);
    self->mr = self->own_place.stream != NULL ? resource_wrapper(mr) : NULL;
    if (self->mr == NULL) {
        Py_DECREF(self);
        return NULL;
    }
    self->own_place =
        place_on(self->own_place.stream, rmm_device_buffer_device(buffer));
    rmm_device_buffer_move(&self->buffer, buffer);
    buffer_enlist(self);
    return (PyObject *)self;
}

static PyObject *resource_from(rmm_resource_t *mr)
{
    if (mr == NULL) {
        PyErr_SetString(PyExc_ValueError, "the resource is NULL");
        return NULL;
    }
    return resource_wrapper(mr);
}

/* --- to C ----------------------------------------------------------------------------- */

static const rmm_device_buffer_t *buffer_borrow(PyObject *object)
{
    rmm_device_buffer_t *buffer = buffer_memory(object);
    buffer_object_t *self = (buffer_object_t *)object;

    if (buffer == NULL) {
        return NULL;
    }
    buffer_pin(object);
    if (!buffer_settle(self, &self->own_place)) {
        buffer_unpin(object);
        return NULL;
    }
    return buffer;
}

/* An empty buffer of the same resource and stream takes the place of the memory. */
static bool buffer_take(PyObject *object, rmm_device_buffer_t *out)
{
    rmm_device_buffer_t *buffer = buffer_memory(object), rest;
    buffer_object_t *self = (buffer_object_t *)object;
    rmm_status_t status;

    if (buffer == NULL || !buffer_settle(self, &self->own_place)) {
        return false;
    }
    if (self->pins != 0) {
        PyErr_SetString(
            PyExc_BufferError, "a view of the memory exists: it cannot be moved");
        return false;
    }
    status = rmm_device_buffer_init_aligned(
        &rest, 0, rmm_device_buffer_alignment(buffer), rmm_device_buffer_stream(buffer),
        rmm_device_buffer_resource(buffer));
    if (status != RMM_OK) {
        raise_status(status);
        return false;
    }
    *out = (rmm_device_buffer_t)RMM_DEVICE_BUFFER_INIT;
    rmm_device_buffer_move(out, buffer);
    rmm_device_buffer_move(buffer, &rest);
    buffer_look(self);
    return true;
}

/* The memory as a block of the resource, which the caller frees: (address, capacity). The object
 * is empty then. */
static PyObject *take_block(PyObject *module, PyObject *object)
{
    rmm_device_buffer_t *buffer = buffer_memory(object), taken;
    void *ptr;
    size_t bytes;

    (void)module;
    if (buffer != NULL && rmm_device_buffer_alignment(buffer) != RMM_ALIGN_DEFAULT) {
        PyErr_SetString(PyExc_ValueError, "the buffer has an alignment of its own");
        return NULL;
    }
    if (buffer == NULL || !buffer_take(object, &taken)) {
        return NULL;
    }
    ptr = rmm_device_buffer_data(&taken);
    bytes = rmm_device_buffer_capacity(&taken);
    rmm_resource_release(taken.mr); /* of the struct: the memory is the caller's */
    return Py_BuildValue("(Kn)", (unsigned long long)(uintptr_t)ptr, (Py_ssize_t)bytes);
}

/* --- the module ----------------------------------------------------------------------- */

static const rmm_python_api_t api = {
    .struct_size = sizeof(rmm_python_api_t),
    .resource_retain = rmm_resource_retain,
    .buffer_from = buffer_from,
    .buffer_take = buffer_take,
    .buffer_borrow = buffer_borrow,
    .buffer_give_back = buffer_unpin,
    .resource_from = resource_from,
    .resource_of = resource_of,
};

bool add_exchange(PyObject *module)
{
    PyObject *capsule =
        PyCapsule_New((void *)(uintptr_t)&api, RMM_PYTHON_CAPSULE, NULL);

    if (capsule == NULL || PyModule_AddObject(module, "api", capsule) < 0) {
        Py_XDECREF(capsule);
        return false;
    }
    return true;
}

PyMethodDef exchange_functions[] = {
    {"take_block", take_block, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
