/* SPDX-License-Identifier: Apache-2.0 */
/* An extension module that uses rmm/python.h: for test_c_api.py, which compiles it. */
#define PY_SSIZE_T_CLEAN
#include <Python.h>

#include <rmm/python.h>
#include <rmm/rmm.h>

static rmm_device_buffer_t kept = RMM_DEVICE_BUFFER_INIT;

/* make(bytes, resource or None, stream handle, Stream or None) */
static PyObject *make(PyObject *module, PyObject *args)
{
    const rmm_python_api_t *api = rmm_python_api_get();
    rmm_device_buffer_t buffer = RMM_DEVICE_BUFFER_INIT;
    PyObject *mr, *stream, *made;
    Py_ssize_t bytes;
    unsigned long long handle;

    (void)module;
    if (api == NULL || !PyArg_ParseTuple(args, "nOKO", &bytes, &mr, &handle, &stream)) {
        return NULL;
    }
    if (bytes >= 0 && rmm_device_buffer_init(
                          &buffer, (size_t)bytes, (rmm_stream_t)(uintptr_t)handle,
                          mr != Py_None ? api->resource_of(mr) : NULL) != RMM_OK) {
        return PyErr_NoMemory();
    }
    made = api->buffer_from(&buffer, stream != Py_None ? stream : NULL);
    if (made != NULL && rmm_device_buffer_resource(&buffer) != NULL) {
        PyErr_SetString(PyExc_AssertionError, "the buffer was not moved from");
        Py_CLEAR(made);
    }
    rmm_device_buffer_fini(&buffer);
    return made;
}

/* take(buffer) keeps its memory in the module; free() frees it. */
static PyObject *take(PyObject *module, PyObject *object)
{
    const rmm_python_api_t *api = rmm_python_api_get();

    (void)module;
    if (api == NULL || !api->buffer_take(object, &kept)) {
        return NULL;
    }
    return Py_BuildValue(
        "KnK", (unsigned long long)(uintptr_t)rmm_device_buffer_data(&kept),
        (Py_ssize_t)rmm_device_buffer_size(&kept),
        (unsigned long long)(uintptr_t)rmm_device_buffer_stream(&kept));
}

static PyObject *free_kept(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    rmm_device_buffer_fini(&kept);
    Py_RETURN_NONE;
}

static PyObject *borrow(PyObject *module, PyObject *object)
{
    const rmm_python_api_t *api = rmm_python_api_get();
    const rmm_device_buffer_t *buffer = api != NULL ? api->buffer_borrow(object) : NULL;

    (void)module;
    return buffer != NULL ? PyLong_FromVoidPtr(rmm_device_buffer_data(buffer)) : NULL;
}

static PyObject *give_back(PyObject *module, PyObject *object)
{
    const rmm_python_api_t *api = rmm_python_api_get();

    (void)module;
    if (api == NULL) {
        return NULL;
    }
    api->buffer_give_back(object);
    Py_RETURN_NONE;
}

/* through(resource): to C and back */
static PyObject *through(PyObject *module, PyObject *object)
{
    const rmm_python_api_t *api = rmm_python_api_get();
    rmm_resource_t *mr = api != NULL ? api->resource_of(object) : NULL;

    (void)module;
    return mr != NULL ? api->resource_from(mr) : NULL;
}

static PyObject *fresh_pool(PyObject *module, PyObject *unused)
{
    const rmm_python_api_t *api = rmm_python_api_get();
    rmm_resource_t *cuda, *pool;
    PyObject *made;

    (void)module;
    (void)unused;
    if (api == NULL || rmm_cuda_resource_create(&cuda) != RMM_OK ||
        rmm_pool_resource_create(cuda, NULL, &pool) != RMM_OK) {
        return PyErr_NoMemory();
    }
    made = api->resource_from(pool);
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
    return made;
}

static PyMethodDef methods[] = {
    {"make", make, METH_VARARGS, NULL},
    {"take", take, METH_O, NULL},
    {"free", free_kept, METH_NOARGS, NULL},
    {"borrow", borrow, METH_O, NULL},
    {"give_back", give_back, METH_O, NULL},
    {"through", through, METH_O, NULL},
    {"fresh_pool", fresh_pool, METH_NOARGS, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, .m_name = "exchange_module", .m_size = -1,
    .m_methods = methods};

PyMODINIT_FUNC PyInit_exchange_module(void)
{
    return PyModule_Create(&definition);
}
