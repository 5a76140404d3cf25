/* SPDX-License-Identifier: Apache-2.0 */
/* Pools that sleep (rmm/pool_sleep.h). The GIL is released around the copies. */
#include "module.h"

#include <rmm/pool_sleep.h>

/* The addresses of a sequence; NULL with an exception. *count_out: how many. */
static const void **addresses_of(PyObject *sequence, uint64_t *count_out)
{
    Py_ssize_t count = PySequence_Size(sequence);
    const void **addresses;

    if (count < 0) {
        return NULL;
    }
    addresses = PyMem_Calloc((size_t)count + 1, sizeof(*addresses));
    if (addresses == NULL) {
        PyErr_NoMemory();
        return NULL;
    }
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *item = PySequence_GetItem(sequence, i);
        void *address = NULL;
        bool is_read = item != NULL && as_address(item, &address);

        Py_XDECREF(item);
        if (!is_read) {
            PyMem_Free((void *)addresses);
            return NULL;
        }
        addresses[i] = address;
    }
    *count_out = (uint64_t)count;
    return addresses;
}

static PyObject *pool_sleep(PyObject *module, PyObject *args)
{
    PyObject *self, *discarded, *host;
    rmm_pool_sleep_options_t options = RMM_POOL_SLEEP_OPTIONS_INIT;
    const void **addresses;
    rmm_resource_t *mr;
    library_call_t call;
    rmm_status_t status;
    bool is_left;

    (void)module;
    if (!PyArg_ParseTuple(
            args, "OO&OO", &self, as_uint64, &options.flags, &discarded, &host) ||
        (mr = resource_of(self)) == NULL ||
        (host != Py_None && (options.host = resource_of(host)) == NULL)) {
        return NULL;
    }
    addresses = addresses_of(discarded, &options.discarded_count);
    if (addresses == NULL) {
        return NULL;
    }
    options.discarded = addresses;
    library_enter(&call);
    status = rmm_pool_sleep(mr, &options);
    is_left = library_leave(&call, status);
    PyMem_Free((void *)addresses);
    return is_left ? Py_NewRef(Py_None) : NULL;
}

static PyObject *pool_wake(PyObject *module, PyObject *self)
{
    rmm_resource_t *mr = resource_of(self);
    library_call_t call;
    rmm_status_t status;

    (void)module;
    if (mr == NULL) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_pool_wake(mr);
    return library_leave(&call, status) ? Py_NewRef(Py_None) : NULL;
}

static PyObject *pool_state(PyObject *module, PyObject *self)
{
    static const char *const names[] = {
        [RMM_POOL_AWAKE] = "awake",
        [RMM_POOL_FALLING_ASLEEP] = "falling asleep",
        [RMM_POOL_ASLEEP] = "asleep",
        [RMM_POOL_WAKING] = "waking"};
    rmm_resource_t *mr = resource_of(self);
    rmm_pool_state_t state;
    library_call_t call;
    rmm_status_t status;

    (void)module;
    if (mr == NULL) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_pool_get_state(mr, &state);
    return library_leave(&call, status) ? PyUnicode_FromString(names[state]) : NULL;
}

PyMethodDef sleep_functions[] = {
    {"pool_sleep", pool_sleep, METH_VARARGS, NULL},
    {"pool_wake", pool_wake, METH_O, NULL},
    {"pool_state", pool_state, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
