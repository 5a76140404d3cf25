/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The module rmm_c._core: its parts, its hooks into Python, statuses as exceptions.
 *
 * One interpreter: the hooks are global, so a second interpreter of the process gets an
 * ImportError.
 */
#include "module.h"

#include <dlfcn.h>

module_hooks_t hooks;

/* --- exceptions ----------------------------------------------------------------------- */

PyObject *raise_status(rmm_status_t status)
{
    PyObject *code, *type, *error;
    const char *message = rmm_last_error_message();

    code = PyLong_FromLong(status);
    if (code == NULL) {
        return NULL;
    }
    type = hooks.error_types != NULL ? PyDict_GetItemWithError(hooks.error_types, code)
                                     : NULL;
    if (type == NULL) {
        if (!PyErr_Occurred()) {
            PyErr_Format(
                PyExc_RuntimeError, "%s: %s", rmm_status_name(status), message);
        }
        Py_DECREF(code);
        return NULL;
    }
    error = PyObject_CallFunction(
        type, "Os", code, message[0] != '\0' ? message : rmm_status_text(status));
    if (error != NULL) {
        PyErr_SetObject(type, error);
        Py_DECREF(error);
    }
    Py_DECREF(code);
    return NULL;
}

void raise_with_type(PyObject *exception, const char *format, PyObject *object)
{
    PyObject *name = PyObject_GetAttrString((PyObject *)Py_TYPE(object), "__name__");

    if (name != NULL) {
        PyErr_Format(exception, format, name);
        Py_DECREF(name);
    }
}

/* --- converters ----------------------------------------------------------------------- */

int as_uint64(PyObject *object, void *out)
{
    PyObject *number = PyNumber_Index(object);
    unsigned long long value;

    if (number == NULL) {
        return 0;
    }
    value = PyLong_AsUnsignedLongLong(number);
    Py_DECREF(number);
    if (value == (unsigned long long)-1 && PyErr_Occurred()) {
        return 0;
    }
    *(uint64_t *)out = value;
    return 1;
}

int as_uint32(PyObject *object, void *out)
{
    uint64_t value;

    if (!as_uint64(object, &value)) {
        return 0;
    }
    if (value > UINT32_MAX) {
        PyErr_SetString(PyExc_OverflowError, "the number needs more than 32 bits");
        return 0;
    }
    *(uint32_t *)out = (uint32_t)value;
    return 1;
}

int as_address(PyObject *object, void *out)
{
    uint64_t value;

    if (!as_uint64(object, &value)) {
        return 0;
    }
    *(void **)out = (void *)(uintptr_t)value;
    return 1;
}

/* --- functions ------------------------------------------------------------------------ */

static PyObject *set_hooks(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"error_types", "default_stream", "as_stream", "wrap", NULL};
    module_hooks_t fresh;

    (void)module;
    if (PyInterpreterState_GetID(PyInterpreterState_Get()) != 0) { /* 0: the main one */
        PyErr_SetString(
            PyExc_ImportError, "rmm_c works in the main interpreter of a process only: "
                               "its hooks are global");
        return NULL;
    }
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "$O!O!OO", names, &PyDict_Type, &fresh.error_types,
            stream_type, &fresh.default_stream, &fresh.as_stream, &fresh.wrap)) {
        return NULL;
    }
    Py_INCREF(fresh.error_types);
    Py_INCREF(fresh.default_stream);
    Py_INCREF(fresh.as_stream);
    Py_INCREF(fresh.wrap);
    hooks = fresh; /* the former ones, if any, stay: another thread may use them */
    Py_RETURN_NONE;
}

static const struct {
    const char *name;
    int value;
} statuses[] = {
#define X(name, value, text) {"RMM_" #name, value},
    RMM_STATUS_MAP(X)
#undef X
};

static PyObject *status_map(PyObject *module, PyObject *unused)
{
    PyObject *map = PyDict_New();

    (void)module;
    (void)unused;
    for (size_t i = 0; map != NULL && i < sizeof(statuses) / sizeof(statuses[0]); i++) {
        PyObject *value = PyLong_FromLong(statuses[i].value);

        if (value == NULL || PyDict_SetItemString(map, statuses[i].name, value) < 0) {
            Py_CLEAR(map);
        }
        Py_XDECREF(value);
    }
    return map;
}

static PyObject *version(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(rmm_version_string());
}

static PyObject *is_built_for_newer(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyBool_FromLong(
        rmm_version() <
        RMM_C_VERSION_MAJOR * 10000 + RMM_C_VERSION_MINOR * 100 + RMM_C_VERSION_PATCH);
}

static PyObject *library_path(PyObject *module, PyObject *unused)
{
    Dl_info info;

    (void)module;
    (void)unused;
    if (dladdr((void *)(uintptr_t)&rmm_version, &info) == 0 || info.dli_fname == NULL) {
        PyErr_SetString(PyExc_OSError, "the loader does not name the file of librmm-c");
        return NULL;
    }
    return PyUnicode_DecodeFSDefault(info.dli_fname);
}

static PyMethodDef own_functions[] = {
    {"set_hooks", KEYWORD_FUNCTION(set_hooks), METH_VARARGS | METH_KEYWORDS, NULL},
    {"status_map", status_map, METH_NOARGS, NULL},
    {"version", version, METH_NOARGS, NULL},
    {"is_built_for_newer", is_built_for_newer, METH_NOARGS,
     "Is the library that is loaded older than the headers of this module?"},
    {"library_path", library_path, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

/* --- the module ----------------------------------------------------------------------- */

bool add_type(PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **out)
{
    PyObject *type = PyType_FromSpec(spec);

    if (type == NULL) {
        return false;
    }
    if (PyModule_AddObject(module, name, type) < 0) {
        Py_DECREF(type);
        return false;
    }
    Py_INCREF(type);
    *out = (PyTypeObject *)type;
    return true;
}

static const struct {
    const char *name;
    long value;
} numbers[] = {
    {"ABILITY_ASYNC", RMM_ABILITY_ASYNC},
    {"ABILITY_ASYNC_MANAGED", RMM_ABILITY_ASYNC_MANAGED},
    {"ABILITY_MANAGED", RMM_ABILITY_MANAGED},
    {"ABILITY_POOL_VIRTUAL", RMM_ABILITY_POOL_VIRTUAL},
    {"ABILITY_SYSTEM", RMM_ABILITY_SYSTEM},
    {"ASYNC_HANDLE_FABRIC", RMM_ASYNC_HANDLE_FABRIC},
    {"ASYNC_HANDLE_POSIX_FD", RMM_ASYNC_HANDLE_POSIX_FD},
    {"ASYNC_NO_PEER_ACCESS", RMM_ASYNC_NO_PEER_ACCESS},
    {"ASYNC_ON_HOST", RMM_ASYNC_ON_HOST},
    {"ASYNC_ON_NEAREST_NODE", RMM_ASYNC_ON_NEAREST_NODE},
    {"ASYNC_ON_NODE", RMM_ASYNC_ON_NODE},
    {"ASYNC_RELEASE_UNUSED", RMM_ASYNC_RELEASE_UNUSED},
    {"ASYNC_WAIT_BEFORE_REFUSAL", RMM_ASYNC_WAIT_BEFORE_REFUSAL},
    {"DEVICE_ACCESSIBLE", RMM_DEVICE_ACCESSIBLE},
    {"DEVICE_HOST", RMM_DEVICE_HOST},
    {"HOST_ACCESSIBLE", RMM_HOST_ACCESSIBLE},
    {"LOGGING_FORMAT_POOL_SIZE", RMM_LOGGING_FORMAT_POOL_SIZE},
    {"POOL_NO_PEER_ACCESS", RMM_POOL_NO_PEER_ACCESS},
    {"POOL_SLEEP_DISCARD", RMM_POOL_SLEEP_DISCARD},
    {"POOL_SLEEP_KEEP_HOST", RMM_POOL_SLEEP_KEEP_HOST},
    {"POOL_SLEEP_WAIT", RMM_POOL_SLEEP_WAIT},
    {"POOL_EXPORTABLE", RMM_POOL_EXPORTABLE},
    {"POOL_EXPORT_FABRIC", RMM_POOL_EXPORT_FABRIC},
    {"POOL_VIRTUAL", RMM_POOL_VIRTUAL},
    {"STREAM_LEGACY", 1},
    {"STREAM_NEVER_CAPTURES", RMM_STREAM_NEVER_CAPTURES},
    {"STREAM_NON_BLOCKING", RMM_STREAM_NON_BLOCKING},
    {"STREAM_PER_THREAD", 2},
};

static bool add_numbers(PyObject *module)
{
    for (size_t i = 0; i < sizeof(numbers) / sizeof(numbers[0]); i++) {
        if (PyModule_AddIntConstant(module, numbers[i].name, numbers[i].value) < 0) {
            return false;
        }
    }
    return true;
}

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT,
    .m_name = "rmm_c._core",
    .m_doc = "The C half of rmm_c; use the package.",
    .m_size = -1,
    .m_methods = own_functions,
};

PyMODINIT_FUNC PyInit__core(void)
{
    PyMethodDef *parts[] = {callback_functions, creator_functions, device_functions,
                            figure_functions,   log_functions,     memory_functions,
                            dlpack_functions,   stream_functions,  exchange_functions,
                            sharing_functions,  sleep_functions,   observed_functions};
    PyObject *module = PyModule_Create(&definition);

    if (module == NULL) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (PyModule_AddFunctions(module, parts[i]) < 0) {
            Py_DECREF(module);
            return NULL;
        }
    }
    if (!callbacks_init() || !add_stream(module) || !add_resource(module) ||
        !add_buffer(module) || !add_exchange(module) || !add_numbers(module)) {
        Py_DECREF(module);
        return NULL;
    }
    return module;
}
