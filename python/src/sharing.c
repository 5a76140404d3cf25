/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory for other processes (rmm/pool_sharing.h), for rmm_c/sharing.py: an export is a tuple of
 * the record and the numbers of its descriptors, which are the caller's to close; an import is the
 * address of its struct, its memory, its size and its device.
 */
#include "module.h"

/* The descriptors leave `exported`; its record is freed. */
static PyObject *as_tuple(rmm_pool_exported_t *exported)
{
    PyObject *record =
        PyBytes_FromStringAndSize(exported->record, (Py_ssize_t)exported->record_bytes);
    PyObject *fds = PyList_New((Py_ssize_t)exported->descriptor_count);
    PyObject *result = NULL;

    for (size_t i = 0; fds != NULL && i < exported->descriptor_count; i++) {
        PyObject *fd = PyLong_FromLong(exported->descriptors[i]);

        if (fd == NULL) {
            Py_CLEAR(fds);
            break;
        }
        (void)PyList_SetItem(fds, (Py_ssize_t)i, fd);
    }
    if (record != NULL && fds != NULL) {
        result = PyTuple_Pack(2, record, fds);
    }
    if (result != NULL) {
        exported->descriptor_count = 0;
    }
    Py_XDECREF(record);
    Py_XDECREF(fds);
    rmm_pool_export_release(exported);
    return result;
}

/* From the tuple's members; descriptors is PyMem_Free()'s. */
static bool
from_parts(Py_buffer *record, PyObject *fds, rmm_pool_exported_t *exported_out)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    Py_ssize_t count = PyList_Size(fds);

    if (count < 0) {
        return false;
    }
    exported.record = record->buf;
    exported.record_bytes = (size_t)record->len;
    exported.descriptor_count = (size_t)count;
    exported.descriptors = PyMem_Calloc((size_t)count + 1, sizeof(int));
    if (exported.descriptors == NULL) {
        PyErr_NoMemory();
        return false;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        exported.descriptors[i] = (int)PyLong_AsLong(PyList_GetItem(fds, i));
    }
    if (PyErr_Occurred() != NULL) {
        PyMem_Free(exported.descriptors);
        return false;
    }
    *exported_out = exported;
    return true;
}

static PyObject *pool_export(PyObject *module, PyObject *args)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    uint64_t bytes, flags;
    library_call_t call;
    rmm_resource_t *mr;
    rmm_status_t status;
    PyObject *resource;
    void *ptr;

    (void)module;
    if (!PyArg_ParseTuple(
            args, "OO&O&O&", &resource, as_address, &ptr, as_uint64, &bytes, as_uint64,
            &flags) ||
        (mr = resource_of(resource)) == NULL) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_pool_export(mr, ptr, (size_t)bytes, flags, &exported);
    return library_leave(&call, status) ? as_tuple(&exported) : NULL;
}

static PyObject *pool_export_send(PyObject *module, PyObject *args)
{
    rmm_pool_exported_t exported;
    library_call_t call;
    rmm_status_t status;
    Py_buffer record;
    PyObject *fds;
    int socket;
    bool is_good;

    (void)module;
    if (!PyArg_ParseTuple(args, "y*O!i", &record, &PyList_Type, &fds, &socket)) {
        return NULL;
    }
    is_good = from_parts(&record, fds, &exported);
    if (is_good) {
        library_enter(&call);
        status = rmm_pool_export_send(&exported, socket);
        is_good = library_leave(&call, status);
        PyMem_Free(exported.descriptors);
    }
    PyBuffer_Release(&record);
    return is_good ? Py_NewRef(Py_None) : NULL;
}

static PyObject *pool_export_receive(PyObject *module, PyObject *args)
{
    rmm_pool_exported_t exported = RMM_POOL_EXPORTED_INIT;
    library_call_t call;
    rmm_status_t status;
    int socket;

    (void)module;
    if (!PyArg_ParseTuple(args, "i", &socket)) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_pool_export_receive(socket, &exported);
    return library_leave(&call, status) ? as_tuple(&exported) : NULL;
}

static PyObject *pool_import(PyObject *module, PyObject *args)
{
    rmm_pool_imported_t *imported = NULL;
    rmm_pool_exported_t exported;
    library_call_t call;
    rmm_status_t status;
    Py_buffer record;
    PyObject *fds;
    bool is_good;

    (void)module;
    if (!PyArg_ParseTuple(args, "y*O!", &record, &PyList_Type, &fds)) {
        return NULL;
    }
    is_good = from_parts(&record, fds, &exported);
    if (is_good) {
        library_enter(&call);
        status = rmm_pool_import(&exported, &imported);
        is_good = library_leave(&call, status);
        PyMem_Free(exported.descriptors);
    }
    PyBuffer_Release(&record);
    return is_good ? Py_BuildValue(
                         "KKKi", (unsigned long long)(uintptr_t)imported,
                         (unsigned long long)(uintptr_t)imported->ptr,
                         (unsigned long long)imported->bytes, imported->device)
                   : NULL;
}

static PyObject *pool_import_release(PyObject *module, PyObject *args)
{
    library_call_t call;
    void *imported;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&", as_address, &imported)) {
        return NULL;
    }
    library_enter(&call);
    rmm_pool_import_release(imported);
    library_leave_quietly(&call);
    Py_RETURN_NONE;
}

PyMethodDef sharing_functions[] = {
    {"pool_export", pool_export, METH_VARARGS, NULL},
    {"pool_export_send", pool_export_send, METH_VARARGS, NULL},
    {"pool_export_receive", pool_export_receive, METH_VARARGS, NULL},
    {"pool_import", pool_import, METH_VARARGS, NULL},
    {"pool_import_release", pool_import_release, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
