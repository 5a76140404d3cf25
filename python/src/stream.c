/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base type of rmm_c.pylibrmm.stream.Stream: a handle, and what keeps it alive.
 *
 * A stream that this type made is destroyed with the object. Buffers hold a reference, so the
 * stream of a buffer exists when the buffer frees on it.
 */
#include <stddef.h>

#include "module.h"

PyTypeObject *stream_type;

static const char pool_name[] = "rmm_stream_pool_t";

/* --- the type ------------------------------------------------------------------------- */

static int stream_traverse(PyObject *object, visitproc visit, void *arg)
{
    Py_VISIT(Py_TYPE(object));
    Py_VISIT(((stream_object_t *)object)->owner);
    return 0;
}

static void stream_dealloc(PyObject *object)
{
    stream_object_t *self = (stream_object_t *)object;
    PyTypeObject *type = Py_TYPE(object);

    PyObject_GC_UnTrack(object);
    if (self->weak_references != NULL) {
        PyObject_ClearWeakRefs(object);
    }
    if (self->is_owned) {
        PyThreadState *thread = PyEval_SaveThread();

        (void)rmm_stream_destroy(self->stream);
        PyEval_RestoreThread(thread);
    }
    Py_XDECREF(self->owner);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

static PyObject *stream_repr(PyObject *object)
{
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");
    PyObject *text = NULL;

    if (name != NULL) {
        text = PyUnicode_FromFormat(
            "<%U at %p>", name, ((stream_object_t *)object)->stream);
        Py_DECREF(name);
    }
    return text;
}

static Py_hash_t stream_hash(PyObject *object)
{
    rmm_stream_t stream = ((stream_object_t *)object)->stream;

    return rmm_stream_is_default(stream) ? 1 : (Py_hash_t)((uintptr_t)stream >> 1);
}

static PyObject *stream_compare(PyObject *left, PyObject *right, int operation)
{
    rmm_stream_t a, b;
    bool are_equal;

    if ((operation != Py_EQ && operation != Py_NE) ||
        !PyObject_TypeCheck(right, stream_type)) {
        Py_RETURN_NOTIMPLEMENTED;
    }
    a = ((stream_object_t *)left)->stream;
    b = ((stream_object_t *)right)->stream;
    are_equal = a == b || (rmm_stream_is_default(a) && rmm_stream_is_default(b));
    return PyBool_FromLong(are_equal == (operation == Py_EQ));
}

static PyObject *stream_synchronize(PyObject *object, PyObject *unused)
{
    library_call_t call;
    rmm_status_t status;

    (void)unused;
    library_enter(&call);
    status = rmm_stream_synchronize(((stream_object_t *)object)->stream);
    return library_leave(&call, status) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *stream_is_default(PyObject *object, PyObject *unused)
{
    (void)unused;
    return PyBool_FromLong(rmm_stream_is_default(((stream_object_t *)object)->stream));
}

static PyObject *stream_handle(PyObject *object, void *unused)
{
    (void)unused;
    return PyLong_FromVoidPtr(((stream_object_t *)object)->stream);
}

static PyObject *stream_owner(PyObject *object, void *unused)
{
    PyObject *owner = ((stream_object_t *)object)->owner;

    (void)unused;
    return Py_NewRef(owner != NULL ? owner : Py_None);
}

static PyMethodDef methods[] = {
    {"synchronize", stream_synchronize, METH_NOARGS,
     "synchronize($self)\n--\n\nWait until all work queued on the stream is done. "
     "Raises "
     "CudaError if that work failed."},
    {"is_default", stream_is_default, METH_NOARGS,
     "is_default($self)\n--\n\nTrue for the legacy default stream."},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"handle", stream_handle, NULL, "The cudaStream_t as a number.", NULL},
    {"owner", stream_owner, NULL, "The object that owns a foreign stream, or None.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(stream_object_t, weak_references),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, stream_dealloc},
    {Py_tp_traverse, stream_traverse},
    {Py_tp_repr, stream_repr},
    {Py_tp_hash, stream_hash},
    {Py_tp_richcompare, stream_compare},
    {Py_tp_methods, methods},
    {Py_tp_getset, attributes},
    {Py_tp_members, members},
    {0, NULL},
};

static PyType_Spec spec = {
    "rmm_c._core.Stream", sizeof(stream_object_t), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

stream_object_t *stream_from(PyObject *object)
{
    PyObject *made;

    if (object == NULL) {
        object = hooks.default_stream;
    }
    if (object == Py_None) { /* a mistake: None makes Stream() a new stream */
        PyErr_SetString(PyExc_TypeError, "stream argument cannot be None");
        return NULL;
    }
    if (PyObject_TypeCheck(object, stream_type)) {
        Py_INCREF(object);
        return (stream_object_t *)object;
    }
    made = PyObject_CallFunctionObjArgs(hooks.as_stream, object, NULL);
    if (made != NULL && !PyObject_TypeCheck(made, stream_type)) {
        Py_DECREF(made);
        PyErr_SetString(PyExc_TypeError, "as_stream() made no Stream");
        made = NULL;
    }
    return (stream_object_t *)made;
}

bool stream_leave(library_call_t *call, rmm_status_t status, stream_object_t *stream)
{
    bool is_good = library_leave(call, status);

    Py_DECREF(stream);
    return is_good;
}

/* --- places --------------------------------------------------------------------------- */

place_t place_on(stream_object_t *stream, int device)
{
    bool is_per_thread = rmm_stream_is_per_thread_default(stream->stream);

    return (place_t){
        stream, device, is_per_thread ? PyThreadState_GetID(PyThreadState_Get()) : 0};
}

bool place_is(const place_t *a, const place_t *b)
{
    rmm_stream_t first = a->stream->stream;
    rmm_stream_t second = b->stream->stream;

    if (rmm_stream_is_default(first)) {
        return rmm_stream_is_default(second) && a->device == b->device;
    }
    return first == second && a->thread == b->thread &&
           (a->device == b->device || !rmm_stream_is_per_thread_default(first));
}

rmm_status_t stream_wait_on(rmm_stream_t stream, int device)
{
    rmm_device_scope_t scope;
    rmm_status_t status;

    if (!rmm_stream_is_default(stream) && !rmm_stream_is_per_thread_default(stream)) {
        return rmm_stream_synchronize(stream);
    }
    status = rmm_device_scope_enter(device, &scope);
    if (status == RMM_OK) {
        status = rmm_stream_synchronize(stream);
        rmm_device_scope_leave(&scope);
    }
    return status;
}

bool stream_is_kept(const stream_object_t *stream)
{
    if (stream->owner != NULL && PyObject_TypeCheck(stream->owner, stream_type)) {
        return stream_is_kept((const stream_object_t *)stream->owner);
    }
    return stream->is_owned || rmm_stream_is_default(stream->stream) ||
           rmm_stream_is_per_thread_default(stream->stream) ||
           (stream->owner != NULL && !PyLong_Check(stream->owner));
}

bool add_stream(PyObject *module)
{
    return add_type(module, "Stream", &spec, &stream_type);
}

/* --- functions ------------------------------------------------------------------------ */

static bool is_fresh(const stream_object_t *self)
{
    if (self->is_owned || self->owner != NULL) {
        PyErr_SetString(PyExc_RuntimeError, "the Stream is initialised already");
        return false;
    }
    return true;
}

static PyObject *stream_create(PyObject *module, PyObject *args)
{
    stream_object_t *self;
    uint32_t flags;
    library_call_t call;
    rmm_status_t status;
    rmm_stream_t stream = NULL;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O&", stream_type, &self, as_uint32, &flags) ||
        !is_fresh(self)) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_stream_create(flags, &stream);
    if (!library_leave(&call, status)) {
        return NULL;
    }
    self->stream = stream;
    self->is_owned = true;
    Py_RETURN_NONE;
}

static PyObject *stream_wait(PyObject *module, PyObject *args)
{
    stream_object_t *stream;
    library_call_t call;
    rmm_status_t status;
    PyObject *on;
    int device;

    (void)module;
    if (!PyArg_ParseTuple(args, "Oi", &on, &device) ||
        (stream = stream_from(on)) == NULL) {
        return NULL;
    }
    library_enter(&call);
    status = stream_wait_on(stream->stream, device);
    return stream_leave(&call, status, stream) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *stream_wrap(PyObject *module, PyObject *args)
{
    stream_object_t *self;
    PyObject *owner = Py_None;
    void *handle;

    (void)module;
    if (!PyArg_ParseTuple(
            args, "O!O&|O", stream_type, &self, as_address, &handle, &owner) ||
        !is_fresh(self)) {
        return NULL;
    }
    self->stream = handle;
    self->owner = owner != Py_None ? Py_NewRef(owner) : NULL;
    Py_RETURN_NONE;
}

/* --- stream pools --------------------------------------------------------------------- */

static void pool_destroy(PyObject *capsule)
{
    rmm_stream_pool_t *pool = PyCapsule_GetPointer(capsule, pool_name);
    PyThreadState *thread = PyEval_SaveThread();

    rmm_stream_pool_destroy(pool);
    PyEval_RestoreThread(thread);
}

static PyObject *stream_pool_create(PyObject *module, PyObject *args)
{
    uint64_t count;
    uint32_t flags;
    rmm_stream_pool_t *pool = NULL;
    PyObject *capsule;
    library_call_t call;
    rmm_status_t status;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&O&", as_uint64, &count, as_uint32, &flags)) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_stream_pool_create(count, flags, &pool);
    if (!library_leave(&call, status)) {
        return NULL;
    }
    capsule = PyCapsule_New(pool, pool_name, pool_destroy);
    if (capsule == NULL) {
        rmm_stream_pool_destroy(pool);
    }
    return capsule;
}

static PyObject *stream_pool_get(PyObject *module, PyObject *args)
{
    rmm_stream_pool_t *pool;
    PyObject *capsule, *index = Py_None;
    uint64_t number;

    (void)module;
    if (!PyArg_ParseTuple(args, "O|O", &capsule, &index) ||
        (pool = PyCapsule_GetPointer(capsule, pool_name)) == NULL) {
        return NULL;
    }
    if (index == Py_None) {
        return PyLong_FromVoidPtr(rmm_stream_pool_get(pool));
    }
    if (!as_uint64(index, &number)) {
        return NULL;
    }
    return PyLong_FromVoidPtr(rmm_stream_pool_get_at(pool, number));
}

PyMethodDef stream_functions[] = {
    {"stream_create", stream_create, METH_VARARGS, NULL},
    {"stream_wrap", stream_wrap, METH_VARARGS, NULL},
    {"stream_wait", stream_wait, METH_VARARGS, NULL},
    {"stream_pool_create", stream_pool_create, METH_VARARGS, NULL},
    {"stream_pool_get", stream_pool_get, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
