/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug log and the log of allocations.
 */
#include "module.h"

static PyObject *log_get_level(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    return PyLong_FromLong(rmm_log_get_level());
}

static PyObject *log_set_level(PyObject *module, PyObject *args)
{
    rmm_status_t status;
    int level;

    (void)module;
    if (!PyArg_ParseTuple(args, "i", &level)) {
        return NULL;
    }
    status = rmm_log_set_level((rmm_log_level_t)level);
    return status == RMM_OK ? Py_NewRef(Py_None) : raise_status(status);
}

static PyObject *log_should_log(PyObject *module, PyObject *args)
{
    int level;

    (void)module;
    if (!PyArg_ParseTuple(args, "i", &level)) {
        return NULL;
    }
    return PyBool_FromLong(rmm_log_should_log((rmm_log_level_t)level));
}

static PyObject *log_levels(PyObject *module, PyObject *unused)
{
    PyObject *list = PyList_New(0);

    (void)module;
    (void)unused;
    for (int level = RMM_LEVEL_TRACE; list != NULL && level <= RMM_LEVEL_OFF; level++) {
        PyObject *name =
            PyUnicode_FromString(rmm_log_level_name((rmm_log_level_t)level));

        if (name == NULL || PyList_Append(list, name) < 0) {
            Py_CLEAR(list);
        }
        Py_XDECREF(name);
    }
    return list;
}

static PyObject *log_to_file(PyObject *module, PyObject *args)
{
    PyObject *path = NULL;
    rmm_status_t status;

    (void)module;
    if (!PyArg_ParseTuple(args, "O&", PyUnicode_FSConverter, &path)) {
        return NULL;
    }
    status = rmm_log_to_file(PyBytes_AsString(path));
    Py_DECREF(path);
    return status == RMM_OK ? Py_NewRef(Py_None) : raise_status(status);
}

static PyObject *log_to_stderr(PyObject *module, PyObject *unused)
{
    (void)module;
    (void)unused;
    rmm_log_to_stderr();
    Py_RETURN_NONE;
}

static PyObject *logging_flush(PyObject *module, PyObject *object)
{
    (void)module;
    return resource_call(object, rmm_logging_flush);
}

static PyObject *logging_path(PyObject *module, PyObject *object)
{
    rmm_resource_t *mr = resource_of(object);

    (void)module;
    return mr != NULL ? PyUnicode_DecodeFSDefault(rmm_logging_path(mr)) : NULL;
}

PyMethodDef log_functions[] = {
    {"log_get_level", log_get_level, METH_NOARGS, NULL},
    {"log_set_level", log_set_level, METH_VARARGS, NULL},
    {"log_should_log", log_should_log, METH_VARARGS, NULL},
    {"log_levels", log_levels, METH_NOARGS, NULL},
    {"log_to_file", log_to_file, METH_VARARGS, NULL},
    {"log_to_stderr", log_to_stderr, METH_NOARGS, NULL},
    {"logging_flush", logging_flush, METH_O, NULL},
    {"logging_path", logging_path, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
