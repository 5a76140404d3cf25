/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Figures of resources: statistics of each, properties of some, scopes of the statistics
 * adaptor, live blocks of the tracking adaptor.
 */
#include <stdlib.h>
#include <string.h>

#include "module.h"

/* --- every resource ------------------------------------------------------------------- */

static bool set_number(PyObject *map, const char *name, uint64_t value)
{
    PyObject *number = PyLong_FromUnsignedLongLong(value);
    bool done = number != NULL && PyDict_SetItemString(map, name, number) == 0;

    Py_XDECREF(number);
    return done;
}

static PyObject *stats(PyObject *module, PyObject *object)
{
    rmm_resource_t *mr = resource_of(object);
    rmm_stats_t figures = RMM_STATS_INIT;
    library_call_t call;
    rmm_status_t status;
    PyObject *map;

    (void)module;
    if (mr == NULL) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_resource_get_stats(mr, &figures);
    if (!library_leave(&call, status) || (map = PyDict_New()) == NULL) {
        return NULL;
    }
    if (!set_number(map, "current_bytes", figures.current_bytes) ||
        !set_number(map, "current_count", figures.current_count) ||
        !set_number(map, "peak_bytes", figures.peak_bytes) ||
        !set_number(map, "peak_count", figures.peak_count) ||
        !set_number(map, "total_bytes", figures.total_bytes) ||
        !set_number(map, "total_count", figures.total_count) ||
        !set_number(map, "reserved_bytes", figures.reserved_bytes) ||
        !set_number(map, "oom_count", figures.oom_count) ||
        !set_number(map, "invalid_free_count", figures.invalid_free_count) ||
        !set_number(map, "free_bytes", figures.free_bytes) ||
        !set_number(map, "largest_free_bytes", figures.largest_free_bytes) ||
        !set_number(map, "maximum_bytes", figures.maximum_bytes) ||
        !set_number(map, "asleep_bytes", figures.asleep_bytes)) {
        Py_CLEAR(map);
    }
    return map;
}

/* --- figures by name ------------------------------------------------------------------ */

/* One function of the library that fills a figure: a number, or statistics. */
typedef struct figure {
    const char *name;
    rmm_status_t (*number)(const rmm_resource_t *mr, uint64_t *out);
    rmm_status_t (*scope)(rmm_resource_t *mr, rmm_stats_t *out);
} figure_t;

/* The figure that the arguments (resource, name) ask for; a table ends with an empty name.
 * NULL: an exception. */
static const figure_t *
figure_of(PyObject *args, const figure_t *table, rmm_resource_t **mr_out)
{
    PyObject *object;
    const char *name;

    if (!PyArg_ParseTuple(args, "Os", &object, &name) ||
        (*mr_out = resource_of(object)) == NULL) {
        return NULL;
    }
    for (; table->name != NULL; table++) {
        if (strcmp(table->name, name) == 0) {
            return table;
        }
    }
    PyErr_Format(PyExc_ValueError, "no figure '%s'", name);
    return NULL;
}

/* --- properties of some --------------------------------------------------------------- */

static const figure_t properties[] = {
    {"pool_maximum", .number = rmm_pool_get_maximum},
    {"async_release_threshold", .number = rmm_async_get_release_threshold},
    {"sam_headroom", .number = rmm_sam_headroom_get_headroom},
    {"fixed_size_block_bytes", .number = rmm_fixed_size_get_block_bytes},
    {"fixed_size_blocks_per_chunk", .number = rmm_fixed_size_get_blocks_per_chunk},
    {"aligned_alignment", .number = rmm_aligned_get_alignment},
    {"aligned_threshold", .number = rmm_aligned_get_threshold},
    {"fallback_alternate_count", .number = rmm_fallback_get_alternate_count},
    {"limiting_allocated", .number = rmm_limiting_get_allocated},
    {"limiting_alignment", .number = rmm_limiting_get_alignment},
    {"limiting_limit", .number = rmm_limiting_get_limit},
    {"wait_waiting", .number = rmm_wait_get_waiting},
    {NULL},
};

static PyObject *query(PyObject *module, PyObject *args)
{
    rmm_resource_t *mr;
    const figure_t *figure = figure_of(args, properties, &mr);
    rmm_status_t status;
    uint64_t value;

    (void)module;
    if (figure == NULL) {
        return NULL;
    }
    status = figure->number(mr, &value);
    return status == RMM_OK ? PyLong_FromUnsignedLongLong(value) : raise_status(status);
}

static PyObject *async_pool_handle(PyObject *module, PyObject *object)
{
    rmm_resource_t *mr = resource_of(object);

    (void)module;
    return mr != NULL ? PyLong_FromVoidPtr(rmm_async_resource_pool_handle(mr)) : NULL;
}

static PyObject *fallback_alternate(PyObject *module, PyObject *object)
{
    rmm_resource_t *mr = resource_of(object);

    (void)module;
    return mr != NULL ? PyLong_FromVoidPtr(rmm_fallback_get_alternate(mr)) : NULL;
}

/* --- scopes --------------------------------------------------------------------------- */

static const figure_t scope_calls[] = {
    {"get", .scope = rmm_statistics_get},
    {"push", .scope = rmm_statistics_push},
    {"pop", .scope = rmm_statistics_pop},
    {"thread_get", .scope = rmm_statistics_thread_get},
    {"thread_push", .scope = rmm_statistics_thread_push},
    {"thread_pop", .scope = rmm_statistics_thread_pop},
    {NULL},
};

static PyObject *scope_figures(const rmm_stats_t *figures)
{
    return Py_BuildValue(
        "LLKKKK", (long long)rmm_stats_difference(figures->current_bytes),
        (long long)rmm_stats_difference(figures->current_count),
        (unsigned long long)figures->peak_bytes,
        (unsigned long long)figures->peak_count,
        (unsigned long long)figures->total_bytes,
        (unsigned long long)figures->total_count);
}

static PyObject *statistics(PyObject *module, PyObject *args)
{
    rmm_resource_t *mr;
    const figure_t *figure = figure_of(args, scope_calls, &mr);
    rmm_stats_t figures = RMM_STATS_INIT;
    rmm_status_t status;

    (void)module;
    if (figure == NULL) {
        return NULL;
    }
    status = figure->scope(mr, &figures);
    return status == RMM_OK ? scope_figures(&figures) : raise_status(status);
}

/* --- live blocks ---------------------------------------------------------------------- */

static PyObject *tracking_outstanding(PyObject *module, PyObject *object)
{
    rmm_resource_t *mr = resource_of(object);
    rmm_tracking_block_t *blocks = NULL;
    size_t count = 0;
    rmm_status_t status;
    PyObject *list;

    (void)module;
    if (mr == NULL) {
        return NULL;
    }
    status = rmm_tracking_outstanding(mr, &blocks, &count);
    if (status != RMM_OK) {
        return raise_status(status);
    }
    list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *pair = Py_BuildValue(
            "Kn", (unsigned long long)(uintptr_t)blocks[i].ptr,
            (Py_ssize_t)blocks[i].bytes);

        if (pair == NULL) {
            Py_CLEAR(list);
        } else {
            (void)PyList_SetItem(list, (Py_ssize_t)i, pair);
        }
    }
    rmm_tracking_free(blocks);
    return list;
}

static rmm_status_t report_into(rmm_resource_t *mr, char **text_out, size_t *length_out)
{
    char *text = NULL;
    size_t bytes = 0, length = 0;
    rmm_status_t status;

    for (;;) { /* until it fits: other threads may allocate meanwhile */
        status = rmm_tracking_report_to_buffer(mr, text, bytes, &length);
        if (status != RMM_OK || length < bytes) {
            break;
        }
        free(text);
        bytes = length + length / 8 + 1;
        text = malloc(bytes);
        if (text == NULL) {
            return RMM_ERR_OUT_OF_HOST_MEMORY;
        }
    }
    *text_out = text;
    *length_out = length;
    return status;
}

static PyObject *tracking_report(PyObject *module, PyObject *object)
{
    rmm_resource_t *mr = resource_of(object);
    PyObject *result = NULL;
    char *text = NULL;
    size_t length = 0;
    library_call_t call;
    rmm_status_t status;

    (void)module;
    if (mr == NULL) {
        return NULL;
    }
    library_enter(&call);
    status = report_into(mr, &text, &length);
    if (library_leave(&call, status)) {
        result = PyUnicode_DecodeFSDefaultAndSize(text, (Py_ssize_t)length);
    }
    free(text);
    return result;
}

static rmm_status_t report_to_log(rmm_resource_t *mr)
{
    return rmm_tracking_report(mr, RMM_TRACKING_TO_LOG);
}

static PyObject *tracking_log(PyObject *module, PyObject *object)
{
    (void)module;
    return resource_call(object, report_to_log);
}

PyMethodDef figure_functions[] = {
    {"stats", stats, METH_O, NULL},
    {"query", query, METH_VARARGS, NULL},
    {"async_pool_handle", async_pool_handle, METH_O, NULL},
    {"fallback_alternate", fallback_alternate, METH_O, NULL},
    {"statistics", statistics, METH_VARARGS, NULL},
    {"tracking_outstanding", tracking_outstanding, METH_O, NULL},
    {"tracking_report", tracking_report, METH_O, NULL},
    {"tracking_log", tracking_log, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
