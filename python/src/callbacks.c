/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Calls into the library, and Python functions that the library calls back.
 *
 * An exception in a callback cannot pass through C. It waits in the innermost call of the thread
 * and is raised when that call returns. If the call succeeds all the same (a pool tried again
 * with less), or if no Python code called the library (a thread of PyTorch), the exception goes
 * to sys.unraisablehook, so it is never lost.
 *
 * Lifetime of the functions of a callback resource: while its Python object lives, that object
 * owns them, so the garbage collector sees them and can collect a cycle through them. When it
 * ends before the C resource does, which another C resource or PyTorch may still use,
 * callbacks_hand_over() gives the functions to the C resource, whose destroy() releases them.
 *
 * A failure callback has no destroy(). The C adaptor knows a number, and a table leads from it
 * to the Python object; without that object the allocation fails as it would without callback.
 *
 * At the end of the interpreter no Python function can run: allocations fail, frees do nothing.
 *
 * Locking: the GIL protects all state here but `innermost`, which belongs to its thread.
 */
#include "module.h"

#include <stdlib.h>

struct callbacks {
    PyObject *functions; /* (allocate, deallocate): borrowed of the wrapper, or owned */
    bool is_owner;
};

static _Thread_local library_call_t *innermost;

static PyObject *failure_table; /* id -> weak reference to a failure callback adaptor */
static uint64_t last_failure_id;

/* --- calls ---------------------------------------------------------------------------- */

void library_enter(library_call_t *call)
{
    call->outer = innermost;
    call->type = NULL;
    innermost = call;
    call->thread = PyEval_SaveThread();
}

static void return_to_python(library_call_t *call)
{
    PyEval_RestoreThread(call->thread);
    innermost = call->outer;
}

static void report_unraisable(library_call_t *call)
{
    if (call->type != NULL) {
        PyErr_Restore(call->type, call->value, call->traceback);
        PyErr_WriteUnraisable(NULL);
    }
}

bool library_leave(library_call_t *call, rmm_status_t status)
{
    return_to_python(call);
    if (status == RMM_OK) {
        report_unraisable(call);
        return true;
    }
    if (call->type != NULL) {
        PyErr_Restore(call->type, call->value, call->traceback);
    } else {
        raise_status(status);
    }
    return false;
}

bool library_leave_void(library_call_t *call)
{
    return_to_python(call);
    if (call->type != NULL) {
        PyErr_Restore(call->type, call->value, call->traceback);
        return false;
    }
    return true;
}

void library_leave_quietly(library_call_t *call)
{
    return_to_python(call);
    report_unraisable(call);
}

/* --- in a callback -------------------------------------------------------------------- */

/* The exception of a callback: for the call that runs it. The last one wins. */
static void keep_exception(void)
{
    library_call_t *call = innermost;

    if (call == NULL) {
        PyErr_WriteUnraisable(NULL);
        return;
    }
    if (call->type != NULL) {
        Py_DECREF(call->type);
        Py_XDECREF(call->value);
        Py_XDECREF(call->traceback);
    }
    PyErr_Fetch(&call->type, &call->value, &call->traceback);
}

/* The status that an allocation has whose callback raised. */
static rmm_status_t status_of_exception(void)
{
    rmm_status_t status = PyErr_ExceptionMatches(PyExc_MemoryError)
                              ? RMM_ERR_OUT_OF_MEMORY
                              : RMM_ERR_BAD_ALLOC;

    keep_exception();
    return status;
}

/* For rmm_c.rapids: an exception of RMM becomes the one that the call of this thread raises, if a
 * call from Python it is. */
static void raise_in_call(int is_memory_error, const char *message)
{
    PyGILState_STATE state;

    if (innermost == NULL || !Py_IsInitialized()) {
        return;
    }
    state = PyGILState_Ensure();
    PyErr_SetString(is_memory_error ? PyExc_MemoryError : PyExc_RuntimeError, message);
    keep_exception();
    PyGILState_Release(state);
}

static PyObject *raise_function(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromUnsignedLongLong((uintptr_t)raise_in_call);
}

static PyObject *stream_at(rmm_stream_t stream)
{
    PyObject *number = PyLong_FromVoidPtr(stream);
    PyObject *object = NULL;

    if (number != NULL) {
        object = (PyObject *)stream_from(number);
        Py_DECREF(number);
    }
    return object;
}

/* The types of functions and methods of Python, borrowed from the module types for ever. */
static PyTypeObject *function_type, *method_type;

bool callbacks_init(void)
{
    PyObject *types = PyImport_ImportModule("types");

    if (types != NULL) {
        function_type = (PyTypeObject *)PyObject_GetAttrString(types, "FunctionType");
        method_type = (PyTypeObject *)PyObject_GetAttrString(types, "MethodType");
        Py_DECREF(types);
    }
    return function_type != NULL && method_type != NULL;
}

/* The garbage collector clears the parts of a cycle one by one. A function of Python that was
 * cleared, so that its globals read as None, crashes when it is called. A method has the
 * attributes of its function. False, with an exception: this one was. */
static bool is_whole(PyObject *function)
{
    bool is_cleared;
    PyObject *globals;

    if (Py_TYPE(function) != function_type && Py_TYPE(function) != method_type) {
        return true;
    }
    globals = PyObject_GetAttrString(function, "__globals__");
    is_cleared = globals == Py_None;
    if (globals == NULL) { /* a method of what is no function */
        PyErr_Clear();
    }
    Py_XDECREF(globals);
    if (is_cleared) {
        PyErr_SetString(
            PyExc_RuntimeError,
            "a callback cannot run: the garbage collector has cleared its function");
    }
    return !is_cleared;
}

static rmm_status_t call_allocate(
    const callbacks_t *callbacks, size_t bytes, rmm_stream_t stream, void **ptr_out)
{
    PyObject *on = stream_at(stream);
    PyObject *result = NULL;
    int converted = 0;

    if (on != NULL && is_whole(PyTuple_GetItem(callbacks->functions, 0))) {
        result = PyObject_CallFunction(
            PyTuple_GetItem(callbacks->functions, 0), "nO", (Py_ssize_t)bytes, on);
    }
    Py_XDECREF(on);
    if (result != NULL) {
        converted = as_address(result, ptr_out);
        Py_DECREF(result);
    }
    return converted ? RMM_OK : status_of_exception();
}

static rmm_status_t callback_alloc(
    size_t bytes, size_t align, rmm_stream_t stream, void *payload, void **ptr_out)
{
    PyGILState_STATE state;
    rmm_status_t status;

    (void)align; /* the library refuses a block that is aligned to less */
    if (!Py_IsInitialized()) {
        return RMM_ERR_BAD_ALLOC;
    }
    state = PyGILState_Ensure();
    status = call_allocate(payload, bytes, stream, ptr_out);
    PyGILState_Release(state);
    return status;
}

static void callback_dealloc(
    void *ptr, size_t bytes, size_t align, rmm_stream_t stream, void *payload)
{
    const callbacks_t *callbacks = payload;
    PyObject *on, *result = NULL;
    PyGILState_STATE state;

    (void)align;
    if (!Py_IsInitialized()) {
        return;
    }
    state = PyGILState_Ensure();
    on = stream_at(stream);
    if (on != NULL && is_whole(PyTuple_GetItem(callbacks->functions, 1))) {
        result = PyObject_CallFunction(
            PyTuple_GetItem(callbacks->functions, 1), "KnO",
            (unsigned long long)(uintptr_t)ptr, (Py_ssize_t)bytes, on);
    }
    Py_XDECREF(on);
    if (result == NULL) {
        keep_exception();
    }
    Py_XDECREF(result);
    PyGILState_Release(state);
}

static void callback_destroy(void *payload)
{
    callbacks_t *callbacks = payload;
    PyGILState_STATE state;

    if (callbacks->is_owner && Py_IsInitialized()) {
        state = PyGILState_Ensure();
        Py_DECREF(callbacks->functions);
        PyGILState_Release(state);
    }
    free(callbacks);
}

void callbacks_hand_over(resource_object_t *self)
{
    if (self->callbacks != NULL) {
        self->callbacks->is_owner = true;
        Py_INCREF(self->callbacks->functions);
        self->callbacks = NULL;
    }
}

/* --- failure callbacks ---------------------------------------------------------------- */

/* A new reference to the adaptor of this number, or NULL, with or without an exception. */
static resource_object_t *failure_adaptor(uint64_t id)
{
    PyObject *key = PyLong_FromUnsignedLongLong(id);
    PyObject *reference, *object;

    if (key == NULL) {
        return NULL;
    }
    reference = PyDict_GetItemWithError(failure_table, key);
    Py_DECREF(key);
    if (reference == NULL) {
        return NULL;
    }
    object = PyObject_CallFunctionObjArgs(reference, NULL); /* None: it is gone */
    if (object == Py_None) {
        Py_CLEAR(object);
    }
    return (resource_object_t *)object;
}

static bool failure_callback(size_t bytes, void *arg)
{
    resource_object_t *adaptor;
    PyGILState_STATE state;
    PyObject *result = NULL;
    int again = 0;

    if (!Py_IsInitialized()) {
        return false;
    }
    state = PyGILState_Ensure();
    adaptor = failure_adaptor((uintptr_t)arg);
    if (adaptor != NULL && is_whole(PyTuple_GetItem(adaptor->functions, 0))) {
        result = PyObject_CallFunction(
            PyTuple_GetItem(adaptor->functions, 0), "n", (Py_ssize_t)bytes);
        again = result != NULL ? PyObject_IsTrue(result) : -1;
        Py_XDECREF(result);
    }
    Py_XDECREF((PyObject *)adaptor);
    if (PyErr_Occurred()) {
        keep_exception();
    }
    PyGILState_Release(state);
    return again > 0;
}

bool failure_forget(resource_object_t *self)
{
    PyObject *key = PyLong_FromUnsignedLongLong(self->failure_id);
    bool forgotten = key != NULL && PyDict_DelItem(failure_table, key) == 0;

    Py_XDECREF(key);
    return forgotten;
}

static bool failure_remember(resource_object_t *self)
{
    PyObject *key, *reference;
    bool done = false;

    if (failure_table == NULL && (failure_table = PyDict_New()) == NULL) {
        return false;
    }
    key = PyLong_FromUnsignedLongLong(last_failure_id + 1);
    reference = PyWeakref_NewRef((PyObject *)self, NULL);
    if (key != NULL && reference != NULL) {
        done = PyDict_SetItem(failure_table, key, reference) == 0;
    }
    if (done) {
        self->failure_id = ++last_failure_id;
    }
    Py_XDECREF(key);
    Py_XDECREF(reference);
    return done;
}

/* --- creators ------------------------------------------------------------------------- */

static bool are_callable(PyObject *functions)
{
    for (Py_ssize_t i = 0; i < PyTuple_Size(functions); i++) {
        if (!PyCallable_Check(PyTuple_GetItem(functions, i))) {
            raise_with_type(
                PyExc_TypeError, "a callback must be callable, not '%U'",
                PyTuple_GetItem(functions, i));
            return false;
        }
    }
    return true;
}

/* Gives the object its functions, a new reference or NULL. Not twice: those of a resource that
 * exists are in use. */
static bool take_functions(resource_object_t *self, PyObject *functions)
{
    if (functions != NULL && (self->mr != NULL || self->functions != NULL)) {
        PyErr_SetString(PyExc_RuntimeError, "the resource is initialised already");
    } else if (functions != NULL && are_callable(functions)) {
        self->functions = functions;
        return true;
    }
    Py_XDECREF(functions);
    return false;
}

static PyObject *create_callback(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"self",       "allocate", "deallocate",
                            "properties", "name",     NULL};
    rmm_custom_resource_ops_t ops = RMM_CUSTOM_RESOURCE_OPS_INIT;
    PyObject *allocate, *deallocate;
    resource_object_t *self;
    rmm_resource_t *mr = NULL;
    library_call_t call;
    rmm_status_t status;

    (void)module;
    ops.alloc = callback_alloc;
    ops.dealloc = callback_dealloc;
    ops.destroy = callback_destroy;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!OO|O&z", names, resource_type, &self, &allocate,
            &deallocate, as_uint32, &ops.properties, &ops.name)) {
        return NULL;
    }
    if (!take_functions(self, PyTuple_Pack(2, allocate, deallocate))) {
        return NULL;
    }
    self->callbacks = calloc(1, sizeof(*self->callbacks));
    if (self->callbacks == NULL) {
        Py_CLEAR(self->functions);
        return PyErr_NoMemory();
    }
    self->callbacks->functions = self->functions;
    library_enter(&call);
    status = rmm_custom_resource_create(&ops, self->callbacks, &mr);
    if (!library_leave(&call, status)) {
        free(self->callbacks);
        self->callbacks = NULL;
        Py_CLEAR(self->functions);
        return NULL;
    }
    if (!resource_adopt(self, mr, NULL)) { /* the end of mr has freed them */
        self->callbacks = NULL;
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *
create_failure_callback(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"self", "upstream", "callback", "flags", "name", NULL};
    rmm_failure_callback_options_t options = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    PyObject *upstream, *callback;
    resource_object_t *self;
    rmm_resource_t *above, *mr = NULL;
    library_call_t call;
    rmm_status_t status;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!OO|O&z", names, resource_type, &self, &upstream, &callback,
            as_uint32, &options.flags, &options.name) ||
        (above = resource_of(upstream)) == NULL) {
        return NULL;
    }
    if (!take_functions(self, PyTuple_Pack(1, callback))) {
        return NULL;
    }
    if (self->failure_id == 0 && !failure_remember(self)) {
        Py_CLEAR(self->functions);
        return NULL;
    }
    options.callback = failure_callback;
    options.arg = (void *)(uintptr_t)self->failure_id;
    library_enter(&call);
    status = rmm_failure_callback_adaptor_create(above, &options, &mr);
    if (!library_leave(&call, status)) {
        Py_CLEAR(self->functions);
        return NULL;
    }
    return resource_adopt(self, mr, upstream) ? Py_NewRef(Py_None) : NULL;
}

PyMethodDef callback_functions[] = {
    {"create_callback", KEYWORD_FUNCTION(create_callback), METH_VARARGS | METH_KEYWORDS,
     NULL},
    {"create_failure_callback", KEYWORD_FUNCTION(create_failure_callback),
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"raise_function", raise_function, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};
