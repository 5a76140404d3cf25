/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base type of rmm_c.DeviceBuffer: an rmm_device_buffer_t.
 *
 * This is the hot path of Python programs, so it parses its own arguments. The rest of
 * DeviceBuffer, which no loop calls, is Python.
 *
 * A buffer holds its resource and its stream. Memory that the host can access can be viewed
 * (memoryview, numpy.frombuffer) without a copy; while a view exists, the memory does not move.
 *
 * Threads: as rmm_device_buffer_t: one thread changes a buffer at a time.
 */
#include <stddef.h>

#include "module.h"

typedef struct buffer_object {
    PyObject_HEAD rmm_device_buffer_t buffer;
    PyObject *mr; /* NULL until it is looked at or given */
    stream_object_t *stream;
    PyObject *weak_references;
    Py_ssize_t pins; /* views and DLPack tensors of the memory */
} buffer_object_t;

static PyTypeObject *buffer_type;
static PyObject *name_ptr, *name_size, *name_stream, *name_mr;

rmm_device_buffer_t *buffer_memory(PyObject *object)
{
    if (!PyObject_TypeCheck(object, buffer_type)) {
        PyErr_Format(
            PyExc_TypeError, "a DeviceBuffer is needed, not '%s'",
            Py_TYPE(object)->tp_name);
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

    if (PyTuple_GET_SIZE(args) != 0) {
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

static rmm_status_t init(
    rmm_device_buffer_t *buffer, const arguments_t *with, rmm_stream_t stream,
    rmm_resource_t *mr)
{
    rmm_status_t status;

    if (with->ptr == NULL || with->size == 0) {
        return rmm_device_buffer_init(buffer, with->size, stream, mr);
    }
    status =
        rmm_device_buffer_init_copy_from(buffer, with->ptr, with->size, stream, mr);
    if (status == RMM_OK && rmm_stream_is_default(stream)) {
        status = rmm_stream_synchronize(stream);
        if (status != RMM_OK) {
            rmm_device_buffer_fini(buffer);
        }
    }
    return status;
}

static bool create(buffer_object_t *self, const arguments_t *with)
{
    rmm_resource_t *mr = NULL;
    library_call_t call;
    rmm_status_t status;

    self->stream = stream_from(with->stream);
    if (self->stream == NULL ||
        (with->mr != NULL && (mr = resource_of(with->mr)) == NULL)) {
        return false;
    }
    library_enter(&call);
    status = init(&self->buffer, with, self->stream->stream, mr);
    if (!library_leave(&call, status)) {
        return false;
    }
    self->mr = with->mr != NULL
                   ? Py_NewRef(with->mr)
                   : resource_wrapper(rmm_device_buffer_resource(&self->buffer));
    return self->mr != NULL;
}

static PyObject *buffer_new(PyTypeObject *type, PyObject *args, PyObject *kwargs)
{
    arguments_t with = {NULL, NULL, NULL, 0};
    buffer_object_t *self;

    if (!read_arguments(args, kwargs, &with)) {
        return NULL;
    }
    self = (buffer_object_t *)type->tp_alloc(type, 0);
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
    Py_VISIT(self->stream);
    return 0;
}

/* No tp_clear: a buffer needs both references to free its memory. See resource_dealloc(). */
static void buffer_dealloc(PyObject *object)
{
    buffer_object_t *self = (buffer_object_t *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject *error, *value, *traceback;
    library_call_t call;

    PyObject_GC_UnTrack(object);
    if (self->weak_references != NULL) {
        PyObject_ClearWeakRefs(object);
    }
    PyErr_Fetch(&error, &value, &traceback);
    library_enter(&call);
    rmm_device_buffer_fini(&self->buffer);
    library_leave_quietly(&call);
    PyErr_Restore(error, value, traceback);
    Py_XDECREF(self->mr);
    Py_XDECREF(self->stream);
    type->tp_free(object);
    Py_DECREF(type);
}

/* --- changes -------------------------------------------------------------------------- */

static void take_stream(buffer_object_t *self, stream_object_t *stream)
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
    take_stream(self, stream);
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
    Py_DECREF(stream);
    return library_leave(&call, status) ? Py_NewRef(Py_None) : NULL;
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

static int get_view(PyObject *object, Py_buffer *view, int flags)
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

static void release_view(PyObject *object, Py_buffer *view)
{
    (void)view;
    buffer_unpin(object);
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

static PyObject *capacity(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyLong_FromSize_t(
        rmm_device_buffer_capacity(&((buffer_object_t *)object)->buffer));
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
    return Py_NewRef((PyObject *)((buffer_object_t *)object)->stream);
}

static int set_stream(PyObject *object, PyObject *value, void *unused)
{
    buffer_object_t *self = (buffer_object_t *)object;
    stream_object_t *stream = value != NULL ? stream_from(value) : NULL;

    (void)unused;
    if (stream == NULL) {
        if (value == NULL) {
            PyErr_SetString(PyExc_AttributeError, "a buffer always has a stream");
        }
        return -1;
    }
    rmm_device_buffer_set_stream(&self->buffer, stream->stream);
    take_stream(self, stream);
    return 0;
}

static PyMethodDef methods[] = {
    {"resize", KEYWORD_FUNCTION(resize), METH_VARARGS | METH_KEYWORDS,
     "resize(new_size, stream=DEFAULT_STREAM): keeps the contents up to the new size."},
    {"reserve", KEYWORD_FUNCTION(reserve), METH_VARARGS | METH_KEYWORDS,
     "reserve(new_capacity, stream=DEFAULT_STREAM): raises the capacity."},
    {"shrink_to_fit", KEYWORD_FUNCTION(shrink_to_fit), METH_VARARGS | METH_KEYWORDS,
     "shrink_to_fit(stream=DEFAULT_STREAM): makes the capacity the size."},
    {"capacity", capacity, METH_NOARGS, "The bytes that fit without a reallocation."},
    {"_read_into", read_into, METH_VARARGS, NULL},
    {"_write_from", write_from, METH_VARARGS, NULL},
    {"_prefetch_to", prefetch_to, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"ptr", get_ptr, NULL, "The address of the memory; 0: none.", NULL},
    {"size", get_size, NULL, "The size in bytes.", NULL},
    {"nbytes", get_size, NULL, "The size in bytes.", NULL},
    {"device", get_device, NULL, "The device of the memory.", NULL},
    {"mr", get_mr, NULL, "The resource of the memory.", NULL},
    {"stream", get_stream, set_stream, "The stream on which the buffer frees.", NULL},
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
    {Py_tp_traverse, buffer_traverse},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {Py_sq_length, length},
    {Py_bf_getbuffer, get_view},
    {Py_bf_releasebuffer, release_view},
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
