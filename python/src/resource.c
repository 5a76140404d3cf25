/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base type of all resources in Python: one reference of a C resource.
 *
 * From a C resource back to its Python object: hooks.wrap looks it up. The last result is kept
 * in `recent`, which makes the default resource of a device cheap for each buffer. The entry is
 * borrowed, and emptied when the object ends. The object holds its C resource, so no other can
 * have that address meanwhile.
 */
#include <stddef.h>

#include "module.h"

PyTypeObject *resource_type;

static struct {
    rmm_resource_t *mr;
    PyObject *wrapper;
} recent;

/* --- lookup --------------------------------------------------------------------------- */

rmm_resource_t *resource_of(PyObject *object)
{
    rmm_resource_t *mr;

    if (!PyObject_TypeCheck(object, resource_type)) {
        raise_with_type(
            PyExc_TypeError, "a memory resource is needed, not '%U'", object);
        return NULL;
    }
    mr = ((resource_object_t *)object)->mr;
    if (mr == NULL) {
        raise_with_type(
            PyExc_RuntimeError, "'%U' was not initialised: its __init__() did not run",
            object);
    }
    return mr;
}

PyObject *resource_wrapper(rmm_resource_t *mr)
{
    PyObject *address, *wrapper;

    if (recent.mr == mr && mr != NULL) {
        return Py_NewRef(recent.wrapper);
    }
    address = PyLong_FromVoidPtr(mr);
    if (address == NULL) {
        return NULL;
    }
    wrapper = PyObject_CallFunctionObjArgs(hooks.wrap, address, NULL);
    Py_DECREF(address);
    if (wrapper != NULL && resource_of(wrapper) == NULL) {
        Py_CLEAR(wrapper);
    }
    if (wrapper != NULL) {
        recent.mr = mr;
        recent.wrapper = wrapper;
    }
    return wrapper;
}

bool resource_adopt(resource_object_t *self, rmm_resource_t *mr, PyObject *upstream)
{
    if (self->mr != NULL) {
        rmm_resource_release(mr);
        PyErr_SetString(PyExc_RuntimeError, "the resource is initialised already");
        return false;
    }
    self->mr = mr;
    self->upstream = upstream != NULL ? Py_NewRef(upstream) : NULL;
    return true;
}

PyObject *resource_call(PyObject *object, rmm_status_t (*run)(rmm_resource_t *mr))
{
    rmm_resource_t *mr = resource_of(object);
    library_call_t call;
    rmm_status_t status;

    if (mr == NULL) {
        return NULL;
    }
    library_enter(&call);
    status = run(mr);
    return library_leave(&call, status) ? Py_NewRef(Py_None) : NULL;
}

PyObject *resource_create(
    PyObject *self, PyObject *upstream, create_fn create, const void *options)
{
    rmm_resource_t *above = upstream != NULL ? resource_of(upstream) : NULL;
    rmm_resource_t *mr = NULL;
    library_call_t call;
    rmm_status_t status;

    if (upstream != NULL && above == NULL) {
        return NULL;
    }
    library_enter(&call);
    status = create(above, options, &mr);
    if (!library_leave(&call, status) ||
        !resource_adopt((resource_object_t *)self, mr, upstream)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

/* --- life ----------------------------------------------------------------------------- */

static int resource_traverse(PyObject *object, visitproc visit, void *arg)
{
    resource_object_t *self = (resource_object_t *)object;

    Py_VISIT(Py_TYPE(object));
    Py_VISIT(self->upstream);
    Py_VISIT(self->functions);
    return 0;
}

/* No tp_clear: a resource works until its end, so a cycle is broken at another object of it. A
 * cycle has one, because none of the references here can be made after the creation. */
static void resource_dealloc(PyObject *object)
{
    resource_object_t *self = (resource_object_t *)object;
    PyTypeObject *type = Py_TYPE(object);
    PyObject *error, *value, *traceback;
    library_call_t call;

    PyObject_GC_UnTrack(object);
    PyErr_Fetch(&error, &value, &traceback);
    if (self->weak_references != NULL) {
        PyObject_ClearWeakRefs(object);
    }
    if (recent.wrapper == object) {
        recent.mr = NULL;
        recent.wrapper = NULL;
    }
    if (self->failure_id != 0 && !failure_forget(self)) {
        PyErr_WriteUnraisable(NULL);
    }
    callbacks_hand_over(self);
    if (self->mr != NULL) {
        library_enter(&call);
        rmm_resource_release(self->mr);
        library_leave_quietly(&call);
    }
    Py_XDECREF(self->functions);
    Py_XDECREF(self->upstream);
    PyErr_Restore(error, value, traceback);
    PyObject_GC_Del(object);
    Py_DECREF(type);
}

/* --- allocation ----------------------------------------------------------------------- */

static bool parse_fast(
    PyObject *const *args, Py_ssize_t count, PyObject *names, Py_ssize_t needed,
    const char *const *parameters, PyObject **values)
{
    Py_ssize_t named = names != NULL ? PyTuple_Size(names) : 0;
    Py_ssize_t limit = 0;

    while (parameters[limit] != NULL) {
        limit++;
    }
    if (count > limit) {
        PyErr_Format(PyExc_TypeError, "at most %zd arguments are expected", limit);
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        values[i] = args[i];
    }
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        Py_ssize_t k = 0;

        while (k < limit &&
               PyUnicode_CompareWithASCIIString(name, parameters[k]) != 0) {
            k++;
        }
        if (k == limit || values[k] != NULL) {
            PyErr_Format(PyExc_TypeError, "unexpected argument '%U'", name);
            return false;
        }
        values[k] = args[count + i];
    }
    for (Py_ssize_t i = 0; i < needed; i++) {
        if (values[i] == NULL) {
            PyErr_Format(PyExc_TypeError, "argument '%s' is missing", parameters[i]);
            return false;
        }
    }
    return true;
}

static PyObject *
allocate(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const char *const parameters[] = {"nbytes", "stream", "alignment", NULL};
    PyObject *values[3] = {NULL, NULL, NULL};
    rmm_resource_t *mr = resource_of(object);
    stream_object_t *stream;
    uint64_t bytes, align = 0;
    library_call_t call;
    rmm_status_t status;
    void *ptr = NULL;

    if (mr == NULL || !parse_fast(args, count, names, 1, parameters, values) ||
        !as_uint64(values[0], &bytes) ||
        (values[2] != NULL && !as_uint64(values[2], &align)) ||
        (stream = stream_from(values[1])) == NULL) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_resource_alloc(mr, bytes, align, stream->stream, &ptr);
    return stream_leave(&call, status, stream) ? PyLong_FromVoidPtr(ptr) : NULL;
}

static PyObject *
deallocate(PyObject *object, PyObject *const *args, Py_ssize_t count, PyObject *names)
{
    static const char *const parameters[] = {
        "ptr", "nbytes", "stream", "alignment", NULL};
    PyObject *values[4] = {NULL, NULL, NULL, NULL};
    rmm_resource_t *mr = resource_of(object);
    stream_object_t *stream;
    uint64_t bytes, align = 0;
    library_call_t call;
    void *ptr;

    if (mr == NULL || !parse_fast(args, count, names, 2, parameters, values) ||
        !as_address(values[0], &ptr) || !as_uint64(values[1], &bytes) ||
        (values[3] != NULL && !as_uint64(values[3], &align)) ||
        (stream = stream_from(values[2])) == NULL) {
        return NULL;
    }
    library_enter(&call);
    rmm_resource_dealloc(mr, ptr, bytes, align, stream->stream);
    if (!library_leave_void(&call)) {
        Py_DECREF(stream);
        return NULL;
    }
    Py_DECREF(stream);
    Py_RETURN_NONE;
}

static PyObject *trim(PyObject *object, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"keep_bytes", NULL};
    rmm_resource_t *mr = resource_of(object);
    uint64_t keep = 0;
    library_call_t call;
    rmm_status_t status;

    if (mr == NULL ||
        !PyArg_ParseTupleAndKeywords(args, kwargs, "|O&", names, as_uint64, &keep)) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_resource_trim(mr, keep);
    return library_leave(&call, status) ? Py_NewRef(Py_None) : NULL;
}

/* --- questions ------------------------------------------------------------------------ */

static PyObject *is_equal(PyObject *object, PyObject *other)
{
    rmm_resource_t *a = resource_of(object);
    rmm_resource_t *b = a != NULL ? resource_of(other) : NULL;

    return b != NULL ? PyBool_FromLong(rmm_resource_is_equal(a, b)) : NULL;
}

static PyObject *get_handle(PyObject *object, void *unused)
{
    rmm_resource_t *mr = resource_of(object);

    (void)unused;
    return mr != NULL ? PyLong_FromVoidPtr(mr) : NULL;
}

static PyObject *get_kind(PyObject *object, void *unused)
{
    rmm_resource_t *mr = resource_of(object);

    (void)unused;
    return mr != NULL ? PyUnicode_FromString(rmm_resource_type(mr)) : NULL;
}

static PyObject *get_name(PyObject *object, void *unused)
{
    rmm_resource_t *mr = resource_of(object);

    (void)unused;
    return mr != NULL ? PyUnicode_DecodeFSDefault(rmm_resource_name(mr)) : NULL;
}

static PyObject *get_device(PyObject *object, void *unused)
{
    rmm_resource_t *mr = resource_of(object);

    (void)unused;
    return mr != NULL ? PyLong_FromLong(rmm_resource_device(mr)) : NULL;
}

static PyObject *get_properties(PyObject *object, void *unused)
{
    rmm_resource_t *mr = resource_of(object);

    (void)unused;
    return mr != NULL ? PyLong_FromUnsignedLong(rmm_resource_properties(mr)) : NULL;
}

/* The resource above; found by its address if this object was not created with it. */
static PyObject *get_upstream(PyObject *object, void *unused)
{
    resource_object_t *self = (resource_object_t *)object;
    rmm_resource_t *above;

    (void)unused;
    if (resource_of(object) == NULL) {
        return NULL;
    }
    if (self->upstream == NULL) {
        above = rmm_resource_upstream(self->mr);
        if (above == NULL) {
            Py_RETURN_NONE;
        }
        self->upstream = resource_wrapper(above);
    }
    return self->upstream != NULL ? Py_NewRef(self->upstream) : NULL;
}

static PyMethodDef methods[] = {
    {"allocate", KEYWORD_FUNCTION(allocate), METH_FASTCALL | METH_KEYWORDS,
     "allocate($self, nbytes, stream=..., alignment=0)\n--\n\n"
     "The address of nbytes bytes, usable in the order of a stream, by default the\n"
     "legacy default stream. The alignment is a power of two; 0: 256. No bytes: 0.\n"
     "Raises OutOfMemoryError, another BadAllocError, or what a callback raises."},
    {"deallocate", KEYWORD_FUNCTION(deallocate), METH_FASTCALL | METH_KEYWORDS,
     "deallocate($self, ptr, nbytes, stream=..., alignment=0)\n--\n\n"
     "Free memory in the order of a stream, with the size and the alignment of its\n"
     "allocation. A wrong free is logged, counted in stats().invalid_free_count, and\n"
     "changes nothing."},
    {"trim", KEYWORD_FUNCTION(trim), METH_VARARGS | METH_KEYWORDS,
     "trim($self, keep_bytes=0)\n--\n\n"
     "Return unused memory above keep_bytes to the upstream or the driver. Raises\n"
     "UnsupportedError if the resource keeps none."},
    {"is_equal", is_equal, METH_O,
     "is_equal($self, other, /)\n--\n\nMay each free the other's memory?"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef attributes[] = {
    {"handle", get_handle, NULL, "The address of the rmm_resource_t.", NULL},
    {"kind", get_kind, NULL, "The type in the library, such as 'pool'.", NULL},
    {"name", get_name, NULL, "The name shown in /rmm.", NULL},
    {"device", get_device, NULL, "The device; -1: memory of the host only.", NULL},
    {"properties", get_properties, NULL, "DEVICE_ACCESSIBLE | HOST_ACCESSIBLE", NULL},
    {"upstream_mr", get_upstream, NULL, "The resource that it allocates from, or None.",
     NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", T_PYSSIZET, offsetof(resource_object_t, weak_references),
     READONLY, NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, resource_dealloc}, {Py_tp_traverse, resource_traverse},
    {Py_tp_methods, methods},          {Py_tp_getset, attributes},
    {Py_tp_members, members},          {0, NULL},
};

static PyType_Spec spec = {
    "rmm_c._core.Resource", sizeof(resource_object_t), 0,
    Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, slots};

bool add_resource(PyObject *module)
{
    return add_type(module, "Resource", &spec, &resource_type);
}
