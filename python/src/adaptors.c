/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function for each adaptor of the library, as creators.c. The failure callback adaptor is in
 * callbacks.c.
 */
#include "module.h"

RMM_CREATOR(aligned_adaptor)
RMM_CREATOR(limiting_adaptor)
RMM_CREATOR(logging_adaptor)
RMM_CREATOR(prefetch_adaptor)
RMM_CREATOR(statistics_adaptor)
RMM_CREATOR(thread_safe_adaptor)
RMM_CREATOR(tracking_adaptor)

static PyObject *create_aligned(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"self", "upstream", "alignment_bytes", "threshold_bytes",
                            "name", NULL};
    rmm_aligned_options_t options = RMM_ALIGNED_OPTIONS_INIT;
    PyObject *self, *upstream;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!O|O&O&z", names, resource_type, &self, &upstream,
            as_uint64, &options.alignment_bytes, as_uint64, &options.threshold_bytes,
            &options.name)) {
        return NULL;
    }
    return resource_create(self, upstream, create_aligned_adaptor, &options);
}

static PyObject *create_limiting(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"self", "upstream", "limit_bytes", "alignment_bytes",
                            "name", NULL};
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;
    PyObject *self, *upstream;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!OO&|O&z", names, resource_type, &self, &upstream,
            as_uint64, &options.limit_bytes, as_uint64, &options.alignment_bytes,
            &options.name)) {
        return NULL;
    }
    return resource_create(self, upstream, create_limiting_adaptor, &options);
}

static PyObject *create_logging(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {
        "self", "upstream",          "path", "auto_flush", "extended",
        "name", "flush_interval_ms", NULL};
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    PyObject *self, *upstream, *path = NULL, *result;
    int auto_flush = 0, extended = 0;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!O|O&ppzO&", names, resource_type, &self, &upstream,
            PyUnicode_FSConverter, &path, &auto_flush, &extended, &options.name,
            as_uint32, &options.flush_interval_ms)) {
        Py_XDECREF(path);
        return NULL;
    }
    options.path = path != NULL ? PyBytes_AS_STRING(path) : NULL;
    options.auto_flush = auto_flush != 0;
    options.format = extended ? RMM_LOGGING_FORMAT_EXTENDED : RMM_LOGGING_FORMAT_RMM;
    result = resource_create(self, upstream, create_logging_adaptor, &options);
    Py_XDECREF(path);
    return result;
}

static PyObject *create_tracking(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"self",       "upstream", "capture_stacks",
                            "max_frames", "name",     NULL};
    rmm_tracking_options_t options = RMM_TRACKING_OPTIONS_INIT;
    PyObject *self, *upstream;
    int capture = 0;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!O|pO&z", names, resource_type, &self, &upstream, &capture,
            as_uint32, &options.max_frames, &options.name)) {
        return NULL;
    }
    options.capture_stacks = capture != 0;
    return resource_create(self, upstream, create_tracking_adaptor, &options);
}

/* --- adaptors whose only option is a name --------------------------------------------- */

static bool parse_named(
    PyObject *args, PyObject *kwargs, PyObject **self, PyObject **upstream,
    const char **name)
{
    static char *names[] = {"self", "upstream", "name", NULL};

    return PyArg_ParseTupleAndKeywords(
        args, kwargs, "O!O|z", names, resource_type, self, upstream, name);
}

static PyObject *create_prefetch(PyObject *module, PyObject *args, PyObject *kwargs)
{
    rmm_prefetch_options_t options = RMM_PREFETCH_OPTIONS_INIT;
    PyObject *self, *upstream;

    (void)module;
    if (!parse_named(args, kwargs, &self, &upstream, &options.name)) {
        return NULL;
    }
    return resource_create(self, upstream, create_prefetch_adaptor, &options);
}

static PyObject *create_statistics(PyObject *module, PyObject *args, PyObject *kwargs)
{
    rmm_statistics_options_t options = RMM_STATISTICS_OPTIONS_INIT;
    PyObject *self, *upstream;

    (void)module;
    if (!parse_named(args, kwargs, &self, &upstream, &options.name)) {
        return NULL;
    }
    return resource_create(self, upstream, create_statistics_adaptor, &options);
}

static PyObject *create_thread_safe(PyObject *module, PyObject *args, PyObject *kwargs)
{
    rmm_thread_safe_options_t options = RMM_THREAD_SAFE_OPTIONS_INIT;
    PyObject *self, *upstream;

    (void)module;
    if (!parse_named(args, kwargs, &self, &upstream, &options.name)) {
        return NULL;
    }
    return resource_create(self, upstream, create_thread_safe_adaptor, &options);
}

#define ADAPTOR(name)                                                                  \
    {                                                                                  \
#name, KEYWORD_FUNCTION(name), METH_VARARGS | METH_KEYWORDS, NULL              \
    }

PyMethodDef adaptor_functions[] = {
    ADAPTOR(create_aligned),     ADAPTOR(create_limiting), ADAPTOR(create_logging),
    ADAPTOR(create_tracking),    ADAPTOR(create_prefetch), ADAPTOR(create_statistics),
    ADAPTOR(create_thread_safe), {NULL, NULL, 0, NULL},
};
