/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Observed pools (rmm/observed_pool.h) for frameworks.py: a capsule for each, which ends it.
 * Figures are passed by their names in C; those that are not passed are 0.
 */
#include "module.h"

#define CAPSULE "rmm_c.observed_pool"

static void end(PyObject *capsule)
{
    rmm_observed_pool_t *pool = PyCapsule_GetPointer(capsule, CAPSULE);
    library_call_t call;

    library_enter(&call);
    rmm_observed_pool_destroy(pool);
    library_leave_quietly(&call);
}

static PyObject *observed_create(PyObject *module, PyObject *args)
{
    rmm_observed_pool_options_t options = RMM_OBSERVED_POOL_OPTIONS_INIT;
    rmm_observed_pool_t *pool = NULL;
    PyObject *capsule;
    library_call_t call;
    rmm_status_t status;

    (void)module;
    if (!PyArg_ParseTuple(args, "si", &options.name, &options.device)) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_observed_pool_create(&options, &pool);
    if (!library_leave(&call, status)) {
        return NULL;
    }
    capsule = PyCapsule_New(pool, CAPSULE, end);
    if (capsule == NULL) {
        rmm_observed_pool_destroy(pool);
    }
    return capsule;
}

static bool take_figures(PyObject *named, rmm_observed_pool_figures_t *figures)
{
    const struct {
        const char *name;
        uint64_t *field;
    } fields[] = {
        {"current_bytes", &figures->current_bytes},
        {"current_count", &figures->current_count},
        {"peak_bytes", &figures->peak_bytes},
        {"peak_count", &figures->peak_count},
        {"total_bytes", &figures->total_bytes},
        {"total_count", &figures->total_count},
        {"reserved_bytes", &figures->reserved_bytes},
        {"oom_count", &figures->oom_count},
        {"growth_count", &figures->growth_count},
    };
    const size_t count = sizeof(fields) / sizeof(fields[0]);
    PyObject *name, *value;
    Py_ssize_t position = 0;

    while (named != NULL && PyDict_Next(named, &position, &name, &value)) {
        size_t i = 0;

        while (i < count && PyUnicode_CompareWithASCIIString(name, fields[i].name)) {
            i++;
        }
        if (i == count) {
            PyErr_Format(
                PyExc_TypeError, "'%U' is no figure of an observed pool", name);
            return false;
        }
        if (!as_uint64(value, fields[i].field)) {
            return false;
        }
    }
    return true;
}

static PyObject *observed_set(PyObject *module, PyObject *args, PyObject *named)
{
    rmm_observed_pool_figures_t figures = RMM_OBSERVED_POOL_FIGURES_INIT;
    rmm_observed_pool_t *pool;
    PyObject *capsule;
    library_call_t call;
    rmm_status_t status;

    (void)module;
    if (!PyArg_ParseTuple(args, "O", &capsule) ||
        (pool = PyCapsule_GetPointer(capsule, CAPSULE)) == NULL ||
        !take_figures(named, &figures)) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_observed_pool_set(pool, &figures);
    return library_leave(&call, status) ? Py_NewRef(Py_None) : NULL;
}

PyMethodDef observed_functions[] = {
    {"observed_create", observed_create, METH_VARARGS, NULL},
    {"observed_set", KEYWORD_FUNCTION(observed_set), METH_VARARGS | METH_KEYWORDS,
     NULL},
    {NULL, NULL, 0, NULL},
};
