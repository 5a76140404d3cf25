/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Devices, and the default resource of each.
 */
#include "module.h"

static PyObject *device_count(PyObject *module, PyObject *unused)
{
    rmm_status_t status;
    int count;

    (void)module;
    (void)unused;
    status = rmm_device_count(&count);
    return status == RMM_OK ? PyLong_FromLong(count) : raise_status(status);
}

static PyObject *driver_name(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyUnicode_FromString(rmm_driver_name());
}

static PyObject *device_current(PyObject *module, PyObject *unused)
{
    rmm_status_t status;
    int device;

    (void)module;
    (void)unused;
    status = rmm_device_current(&device);
    return status == RMM_OK ? PyLong_FromLong(device) : raise_status(status);
}

static PyObject *device_set(PyObject *module, PyObject *args)
{
    library_call_t call;
    rmm_status_t status;
    int device;

    (void)module;
    if (!PyArg_ParseTuple(args, "i", &device)) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_device_set(device);
    return library_leave(&call, status) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *device_supports(PyObject *module, PyObject *args)
{
    library_call_t call;
    rmm_status_t status;
    int device, ability;
    bool is_supported = false;

    (void)module;
    if (!PyArg_ParseTuple(args, "ii", &device, &ability)) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_device_supports(device, (rmm_device_ability_t)ability, &is_supported);
    return library_leave(&call, status) ? PyBool_FromLong(is_supported) : NULL;
}

static PyObject *available_device_memory(PyObject *module, PyObject *unused)
{
    size_t free_bytes = 0, total_bytes = 0;
    library_call_t call;
    rmm_status_t status;

    (void)module;
    (void)unused;
    library_enter(&call);
    status = rmm_available_device_memory(&free_bytes, &total_bytes);
    if (!library_leave(&call, status)) {
        return NULL;
    }
    return Py_BuildValue("nn", (Py_ssize_t)free_bytes, (Py_ssize_t)total_bytes);
}

static PyObject *percent_of_free_device_memory(PyObject *module, PyObject *args)
{
    library_call_t call;
    rmm_status_t status;
    size_t bytes = 0;
    int percent;

    (void)module;
    if (!PyArg_ParseTuple(args, "i", &percent)) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_percent_of_free_device_memory(percent, &bytes);
    return library_leave(&call, status) ? PyLong_FromSize_t(bytes) : NULL;
}

/* --- the default resource ------------------------------------------------------------- */

static PyObject *default_resource_prefer_auto(PyObject *module, PyObject *args)
{
    (void)module;
    (void)args;
    rmm_default_resource_prefer_auto();
    Py_RETURN_NONE;
}

/* known: the Python resource that was the default, or None. Returns it if it still is, else
 * a bare Resource with the reference. */
static PyObject *get_per_device_resource(PyObject *module, PyObject *args)
{
    rmm_resource_t *mr = NULL;
    PyObject *known, *bare;
    library_call_t call;
    rmm_status_t status;
    int device;

    (void)module;
    if (!PyArg_ParseTuple(args, "iO", &device, &known)) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_get_per_device_resource(device, &mr);
    if (!library_leave(&call, status)) {
        return NULL;
    }
    if (known != Py_None && resource_of(known) == mr) {
        rmm_resource_release(mr); /* not the last one */
        return Py_NewRef(known);
    }
    bare = PyErr_Occurred() ? NULL : PyObject_CallNoArgs((PyObject *)resource_type);
    if (bare == NULL || !resource_adopt((resource_object_t *)bare, mr, NULL)) {
        rmm_resource_release(mr);
        Py_CLEAR(bare);
    }
    return bare;
}

static PyObject *set_per_device_resource(PyObject *module, PyObject *args)
{
    rmm_resource_t *mr = NULL;
    PyObject *object;
    library_call_t call;
    rmm_status_t status;
    int device;

    (void)module;
    if (!PyArg_ParseTuple(args, "iO", &device, &object) ||
        (object != Py_None && (mr = resource_of(object)) == NULL)) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_set_per_device_resource(device, mr, NULL);
    return library_leave(&call, status) ? Py_NewRef(Py_None) : NULL;
}

/* Give a fresh Python resource the C resource at an address, which is alive, or that of another
 * Python resource. */
static PyObject *share(PyObject *module, PyObject *args)
{
    PyObject *self, *other;
    rmm_resource_t *mr;
    void *address;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O", resource_type, &self, &other)) {
        return NULL;
    }
    if (PyObject_TypeCheck(other, resource_type)) {
        mr = resource_of(other);
    } else {
        mr = as_address(other, &address) ? address : NULL;
    }
    if (mr == NULL ||
        !resource_adopt((resource_object_t *)self, rmm_resource_retain(mr), NULL)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *request_thread_start(PyObject *module, PyObject *args)
{
    library_call_t call;
    rmm_status_t status;

    (void)args;
    (void)module;
    library_enter(&call);
    status = rmm_request_thread_start();
    if (!library_leave(&call, status)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *request_thread_stop(PyObject *module, PyObject *args)
{
    library_call_t call;

    (void)args;
    (void)module;
    library_enter(
        &call); /* without the GIL, which a callback on the thread may wait for */
    rmm_request_thread_stop();
    if (!library_leave(&call, RMM_OK)) {
        return NULL;
    }
    Py_RETURN_NONE;
}

static PyObject *kind_at(PyObject *module, PyObject *args)
{
    void *address;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&", as_address, &address)) {
        return NULL;
    }
    return PyUnicode_FromString(rmm_resource_type(address));
}

PyMethodDef device_functions[] = {
    {"default_resource_prefer_auto", default_resource_prefer_auto, METH_NOARGS, NULL},
    {"driver_name", driver_name, METH_NOARGS, NULL},
    {"device_count", device_count, METH_NOARGS, NULL},
    {"device_current", device_current, METH_NOARGS, NULL},
    {"device_set", device_set, METH_VARARGS, NULL},
    {"device_supports", device_supports, METH_VARARGS, NULL},
    {"available_device_memory", available_device_memory, METH_NOARGS, NULL},
    {"percent_of_free_device_memory", percent_of_free_device_memory, METH_VARARGS,
     NULL},
    {"get_per_device_resource", get_per_device_resource, METH_VARARGS, NULL},
    {"set_per_device_resource", set_per_device_resource, METH_VARARGS, NULL},
    {"request_thread_start", request_thread_start, METH_NOARGS, NULL},
    {"request_thread_stop", request_thread_stop, METH_NOARGS, NULL},
    {"share", share, METH_VARARGS, NULL},
    {"kind_at", kind_at, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
