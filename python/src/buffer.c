/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base type of rmm_c.DeviceBuffer: an rmm_device_buffer_t.
 *
 * This is the hot path of Python programs, so it parses its own arguments. The rest of
 * DeviceBuffer, which no loop calls, is Python.
 *
 * A buffer holds its resource and its stream.
 *
 * Threads: as rmm_device_buffer_t: one thread changes a buffer at a time.
 */
#include <stddef.h>

#include "buffer.h"

PyTypeObject *buffer_type;
static PyObject *name_ptr, *name_size, *name_stream, *name_mr;

rmm_device_buffer_t *buffer_memory(PyObject *object)
{
    if (!PyObject_TypeCheck(object, buffer_type)) {
        raise_with_type(PyExc_TypeError, "a DeviceBuffer is needed, not '%U'", object);
        return NULL;
    }
    return &((buffer_object_t *)object)->buffer;
}

void buffer_pin(PyObject *object)
{
    ((buffer_object_t *)object)->pins++;
}

void buffer_unpin(PyObject *object)
{
    ((buffer_object_t *)object)->pins--;
}

/* --- creation ------------------------------------------------------------------------- */

typedef struct arguments {
    PyObject *stream, *mr;
    void *ptr;
    uint64_t size;
} arguments_t;

static bool read_argument(PyObject *name, PyObject *value, arguments_t *out)
{
    if (name == name_size || PyUnicode_Compare(name, name_size) == 0) {
        return as_uint64(value, &out->size);
    }
    if (name == name_stream || PyUnicode_Compare(name, name_stream) == 0) {
        out->stream = value;
        return true;
    }
    if (name == name_mr || PyUnicode_Compare(name, name_mr) == 0) {
        out->mr = value != Py_None ? value : NULL;
        return true;
    }
    if (PyUnicode_Compare(name, name_ptr) == 0) {
        return as_address(value, &out->ptr);
    }
    PyErr_Format(PyExc_TypeError, "DeviceBuffer() has no argument '%U'", name);
    return false;
}

static bool read_arguments(PyObject *args, PyObject *kwargs, arguments_t *out)
{
    PyObject *name, *value;
    Py_ssize_t position = 0;

    if (PyTuple_Size(args) != 0) {
        PyErr_SetString(
            PyExc_TypeError,
            "DeviceBuffer() takes keywords only: ptr, size, stream, mr");
        return false;
    }
    while (kwargs != NULL && PyDict_Next(kwargs, &position, &name, &value)) {
        if (!read_argument(name, value, out)) {
            return false;
        }
    }
    return true;
}

/* The memory at the address may be the host's, or freed behind the call, so this waits: device
 * memory takes part in it as the host's does. */
static bool copy_in(buffer_object_t *self, const arguments_t *with)
{
    PyObject *sources = buffers_at(with->ptr, with->size);
    library_call_t call;
    rmm_status_t status;
    bool is_good;

    if (sources == NULL || !buffers_settle(sources, &self->own_place)) {
        Py_XDECREF(sources);
        return false;
    }
    library_enter(&call);
    status = rmm_device_buffer_copy_from_host(
        &self->buffer, 0, with->ptr, with->size, self->own_place.stream->stream);
    is_good = library_leave(&call, status);
    Py_DECREF(sources);
    return is_good;
}

static bool create(buffer_object_t *self, const arguments_t *with)
{
    stream_object_t *stream = stream_from(with->stream);
    rmm_resource_t *mr = NULL;
    library_call_t call;
    rmm_status_t status;

    self->own_place.stream = stream;
    if (stream == NULL || (with->mr != NULL && (mr = resource_of(with->mr)) == NULL)) {
        return false;
    }
    library_enter(&call);
    status = rmm_device_buffer_init(&self->buffer, with->size, stream->stream, mr);
    if (!library_leave(&call, status)) {
        return false;
    }
    self->own_place = place_on(stream, rmm_device_buffer_device(&self->buffer));
    self->mr = with->mr != NULL
                   ? Py_NewRef(with->mr)
                   : resource_wrapper(rmm_device_buffer_resource(&self->buffer));
    if (self->mr == NULL || (with->ptr != NULL && !copy_in(self, with))) {
        return false;
    }
    buffer_enlist(self);
    return true;
}

static rmm_status_t
init_copy(buffer_object_t *self, const buffer_object_t *from, const place_t *at)
{
    const rmm_device_buffer_t *memory = &from->buffer;
    rmm_device_scope_t scope; /* memory of the host has the device that is current */
    rmm_status_t status = rmm_device_scope_enter(at->device, &scope);

    if (status == RMM_OK) {
        status = rmm_device_buffer_init_copy_from(
            &self->buffer, rmm_device_buffer_data(memory),
            rmm_device_buffer_size(memory), at->stream->stream,
            rmm_device_buffer_resource(memory));
        rmm_device_scope_leave(&scope);
    }
    return status;
}

bool buffer_begin_copy(
    buffer_object_t *self, const buffer_object_t *from, const place_t *at)
{
    library_call_t call;
    rmm_status_t status;

    self->own_place = *at;
    Py_INCREF(at->stream);
    self->mr = Py_NewRef(from->mr);
    library_enter(&call);
    status = init_copy(self, from, at);
    if (!library_leave(&call, status)) {
        return false;
    }
    buffer_enlist(self);
    return true;
}

static PyObject *buffer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    arguments_t with = {NULL, NULL, NULL, 0};
    buffer_object_t *self;

    if (!read_arguments(args, kwargs, &with)) {
        return NULL;
    }
    self = (buffer_object_t *)PyType_GenericAlloc(type, 0);
    if (self != NULL && !create(self, &with)) {
        Py_CLEAR(self);
    }
    return (PyObject *)self;
}

/* Everything is done in buffer_new(): a resource in the arguments is not object's business. */
static int buffer_init(PyObject *self, PyObject *args, PyObject *kwargs)
{
    (void)self;
    (void)args;
    (void)kwargs;
    return 0;
}

/* --- end ------------------------------------------------------------------------------ */

static int buffer_traverse(PyObject *object, visitproc visit, void *arg)
{
    buffer_object_t *self = (buffer_object_t *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->mr);
    Py_VISIT(self->own_place.stream);
    Py_VISIT(self->other_place.stream);
    return 0;
}

static void free_memory(buffer_object_t *self)
{
    PyObject *error, *value, *traceback;
    library_call_t call;

    PyErr_Fetch(&error, &value, &traceback);
    buffer_settle_before_free(self);
    buffer_delist(self);
    library_enter(&call);
    rmm_device_buffer_fini(&self->buffer);
    library_leave_quietly(&call);
    PyErr_Restore(error, value, traceback);
}

/* Frees a buffer in a cycle before the garbage collector clears any part of it: the free may run
 * functions of Python that are parts. A finalizer that revives the buffer finds it empty. */
static void buffer_finalize(PyObject *object)
{
    buffer_object_t *self = (buffer_object_t *)object;

    if (self->pins == 0) {
        free_memory(self);
    }
}

/* No tp_clear: a buffer needs both references to free its memory. See resource_dealloc(). */
static void buffer_dealloc(PyObject *object)
{
    buffer_object_t *self = (buffer_object_t *)object;
    PyTypeObject *type = Py_TYPE(object);

    PyObject_GC_UnTrack(object);
    if (self->weak_references != NULL) {
        PyObject_ClearWeakRefs(object);
    }
    if (rmm_device_buffer_resource(&self->buffer) != NULL) {
        free_memory(self);
    }
    Py_XDECREF(self->mr);
    Py_XDECREF(self->own_place.stream);
    Py_XDECREF(self->other_place.stream);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

/* --- questions ------------------------------------------------------------------------ */

static PyObject *get_ptr(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(
        rmm_device_buffer_data(&((buffer_object_t *)object)->buffer));
}

static PyObject *get_size(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromSize_t(
        rmm_device_buffer_size(&((buffer_object_t *)object)->buffer));
}

static Py_ssize_t length(PyObject *object)
{
    return (Py_ssize_t)rmm_device_buffer_size(&((buffer_object_t *)object)->buffer);
}

static PyObject *get_device(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromLong(
        rmm_device_buffer_device(&((buffer_object_t *)object)->buffer));
}

static PyObject *get_mr(PyObject *object, void *unused)
{
    (void)unused;
    return Py_NewRef(((buffer_object_t *)object)->mr);
}

static PyObject *get_stream(PyObject *object, void *unused)
{
    (void)unused;
    return Py_NewRef((PyObject *)((buffer_object_t *)object)->own_place.stream);
}

static int set_stream(PyObject *object, PyObject *value, void *unused)
{
    buffer_object_t *self = (buffer_object_t *)object;
    stream_object_t *stream = value != NULL ? stream_from(value) : NULL;
    place_t place;

    (void)unused;
    if (stream == NULL) {
        if (value == NULL) {
            PyErr_SetString(PyExc_AttributeError, "a buffer always has a stream");
        }
        return -1;
    }
    place = place_on(stream, self->own_place.device);
    if (!buffer_settle(self, &place)) {
        Py_DECREF(stream);
        return -1;
    }
    rmm_device_buffer_set_stream(&self->buffer, stream->stream);
    buffer_set_place(self, place);
    return 0;
}

static PyGetSetDef attributes[] = {
    {"ptr", get_ptr, NULL, "The address of the memory; 0: none.", NULL},
    {"size", get_size, NULL, "The size in bytes.", NULL},
    {"nbytes", get_size, NULL, "The size in bytes.", NULL},
    {"device", get_device, NULL, "The device of the memory.", NULL},
    {"mr", get_mr, NULL, "The resource of the memory.", NULL},
    {"stream", get_stream, set_stream,
     "The stream on which the buffer is used and freed. Setting it waits for the "
     "former one.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(buffer_object_t, weak_references),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_new, buffer_new},
    {Py_tp_init, buffer_init},
    {Py_tp_dealloc, buffer_dealloc},
    {Py_tp_finalize, buffer_finalize},
    {Py_tp_traverse, buffer_traverse},
    {Py_tp_methods, buffer_methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {Py_sq_length, length},
    {Py_bf_getbuffer, buffer_get_view},
    {Py_bf_releasebuffer, buffer_release_view},
    {0, NULL},
};

static PyType_Spec spec = {
    "rmm_c._core.Buffer", sizeof(buffer_object_t), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

bool add_buffer(PyObject *module)
{
    name_ptr = PyUnicode_InternFromString("ptr");
    name_size = PyUnicode_InternFromString("size");
    name_stream = PyUnicode_InternFromString("stream");
    name_mr = PyUnicode_InternFromString("mr");
    return name_ptr != NULL && name_size != NULL && name_stream != NULL &&
           name_mr != NULL && add_type(module, "Buffer", &spec, &buffer_type);
}
