/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A function for each resource of the library, which gives a fresh Python resource its C
 * resource: create_NAME(self, [upstream], OPTION=...). Callback resources are in callbacks.c,
 * adaptors in adaptors.c.
 */
#include "module.h"

/* --- resources without options -------------------------------------------------------- */

static const struct {
    const char *kind;
    rmm_status_t (*create)(rmm_resource_t **out);
} plain_creators[] = {
    {"cuda", rmm_cuda_resource_create},
    {"managed", rmm_managed_resource_create},
    {"pinned", rmm_pinned_resource_create},
    {"host", rmm_host_resource_create},
    {"system", rmm_system_resource_create},
    {"async_managed", rmm_async_managed_resource_create},
};

static rmm_status_t
run_plain(rmm_resource_t *upstream, const void *options, rmm_resource_t **out)
{
    (void)upstream;
    return plain_creators[*(const size_t *)options].create(out);
}

static PyObject *create_plain(PyObject *module, PyObject *args)
{
    PyObject *self;
    const char *kind;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!s", resource_type, &self, &kind)) {
        return NULL;
    }
    for (size_t i = 0; i < sizeof(plain_creators) / sizeof(plain_creators[0]); i++) {
        if (strcmp(plain_creators[i].kind, kind) == 0) {
            return resource_create(self, NULL, run_plain, &i);
        }
    }
    return PyErr_Format(PyExc_ValueError, "no resource '%s' without options", kind);
}

/* --- resources of the driver ---------------------------------------------------------- */

static rmm_status_t
run_async(rmm_resource_t *upstream, const void *options, rmm_resource_t **out)
{
    (void)upstream;
    return rmm_async_resource_create(options, out);
}

static PyObject *create_async(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {
        "self",         "initial_pool_bytes",  "release_threshold_bytes",
        "handle_types", "release_unused",      "name",
        "peer_access",  "wait_before_refusal", NULL};
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    PyObject *self;
    int release_unused = 0;
    int peer_access = 1;
    int waits = 0;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!|O&O&O&pzpp", names, resource_type, &self, as_uint64,
            &options.initial_pool_bytes, as_uint64, &options.release_threshold_bytes,
            as_uint32, &options.handle_types, &release_unused, &options.name,
            &peer_access, &waits)) {
        return NULL;
    }
    options.flags = (release_unused ? RMM_ASYNC_RELEASE_UNUSED : 0) |
                    (peer_access ? 0 : RMM_ASYNC_NO_PEER_ACCESS) |
                    (waits ? RMM_ASYNC_WAIT_BEFORE_REFUSAL : 0);
    return resource_create(self, NULL, run_async, &options);
}

static rmm_status_t
run_async_view(rmm_resource_t *upstream, const void *pool, rmm_resource_t **out)
{
    (void)upstream;
    return rmm_async_view_resource_create(*(void *const *)pool, out);
}

static PyObject *create_async_view(PyObject *module, PyObject *args)
{
    PyObject *self;
    void *pool;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!O&", resource_type, &self, as_address, &pool)) {
        return NULL;
    }
    return resource_create(self, NULL, run_async_view, &pool);
}

static rmm_status_t
run_sam_headroom(rmm_resource_t *upstream, const void *options, rmm_resource_t **out)
{
    (void)upstream;
    return rmm_sam_headroom_resource_create(options, out);
}

static PyObject *create_sam_headroom(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"self", "headroom_bytes", "name", NULL};
    rmm_sam_headroom_options_t options = RMM_SAM_HEADROOM_OPTIONS_INIT;
    PyObject *self;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!O&|z", names, resource_type, &self, as_uint64,
            &options.headroom_bytes, &options.name)) {
        return NULL;
    }
    return resource_create(self, NULL, run_sam_headroom, &options);
}

/* --- resources over an upstream ------------------------------------------------------- */

RMM_CREATOR(pool_resource)
RMM_CREATOR(arena_resource)
RMM_CREATOR(fixed_size_resource)
RMM_CREATOR(binning_resource)

static PyObject *create_pool(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {
        "self", "upstream", "initial_bytes", "maximum_bytes", "flags", "name", NULL};
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    PyObject *self, *upstream;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!O|O&O&O&z", names, resource_type, &self, &upstream,
            as_uint64, &options.initial_bytes, as_uint64, &options.maximum_bytes,
            as_uint64, &options.flags, &options.name)) {
        return NULL;
    }
    upstream = upstream != Py_None ? upstream : NULL;
    return resource_create(self, upstream, create_pool_resource, &options);
}

static PyObject *create_arena(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"self",      "upstream", "arena_bytes", "dump_on_failure",
                            "dump_path", "name",     NULL};
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;
    PyObject *self, *upstream;
    int dump = 0;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!O|O&pzz", names, resource_type, &self, &upstream,
            as_uint64, &options.arena_bytes, &dump, &options.dump_path,
            &options.name)) {
        return NULL;
    }
    options.dump_on_failure = (uint32_t)dump;
    return resource_create(self, upstream, create_arena_resource, &options);
}

static PyObject *create_fixed_size(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"self", "upstream", "block_bytes", "blocks_per_chunk",
                            "name", NULL};
    rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;
    PyObject *self, *upstream;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!O|O&O&z", names, resource_type, &self, &upstream,
            as_uint64, &options.block_bytes, as_uint64, &options.blocks_per_chunk,
            &options.name)) {
        return NULL;
    }
    return resource_create(self, upstream, create_fixed_size_resource, &options);
}

static PyObject *create_binning(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"self",         "upstream", "min_exponent",
                            "max_exponent", "name",     NULL};
    rmm_binning_options_t options = RMM_BINNING_OPTIONS_INIT;
    PyObject *self, *upstream;

    (void)module;
    if (!PyArg_ParseTupleAndKeywords(
            args, kwargs, "O!O|O&O&z", names, resource_type, &self, &upstream,
            as_uint32, &options.min_exponent, as_uint32, &options.max_exponent,
            &options.name)) {
        return NULL;
    }
    return resource_create(self, upstream, create_binning_resource, &options);
}

static PyObject *binning_add_bin(PyObject *module, PyObject *args)
{
    PyObject *self, *bin = Py_None;
    rmm_resource_t *mr, *bin_mr = NULL;
    uint64_t bytes;
    library_call_t call;
    rmm_status_t status;

    (void)module;
    if (!PyArg_ParseTuple(args, "OO&|O", &self, as_uint64, &bytes, &bin) ||
        (mr = resource_of(self)) == NULL ||
        (bin != Py_None && (bin_mr = resource_of(bin)) == NULL)) {
        return NULL;
    }
    library_enter(&call);
    status = rmm_binning_resource_add_bin(mr, bytes, bin_mr);
    return library_leave(&call, status) ? Py_NewRef(Py_None) : NULL;
}

/* --- from a text ---------------------------------------------------------------------- */

static rmm_status_t
run_spec(rmm_resource_t *upstream, const void *spec, rmm_resource_t **out)
{
    (void)upstream;
    return rmm_resource_create_from_spec(spec, out);
}

static PyObject *create_from_spec(PyObject *module, PyObject *args)
{
    PyObject *self;
    const char *spec;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!s", resource_type, &self, &spec)) {
        return NULL;
    }
    return resource_create(self, NULL, run_spec, spec);
}

static PyObject *check_spec(PyObject *module, PyObject *args)
{
    const char *spec;
    rmm_status_t status;

    (void)module;
    if (!PyArg_ParseTuple(args, "s", &spec)) {
        return NULL;
    }
    status = rmm_resource_check_spec(spec);
    return status == RMM_OK ? Py_NewRef(Py_None) : raise_status(status);
}

PyMethodDef creator_functions[] = {
    {"create_plain", create_plain, METH_VARARGS, NULL},
    {"create_async", KEYWORD_FUNCTION(create_async), METH_VARARGS | METH_KEYWORDS,
     NULL},
    {"create_async_view", create_async_view, METH_VARARGS, NULL},
    {"create_sam_headroom", KEYWORD_FUNCTION(create_sam_headroom),
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"create_pool", KEYWORD_FUNCTION(create_pool), METH_VARARGS | METH_KEYWORDS, NULL},
    {"create_arena", KEYWORD_FUNCTION(create_arena), METH_VARARGS | METH_KEYWORDS,
     NULL},
    {"create_fixed_size", KEYWORD_FUNCTION(create_fixed_size),
     METH_VARARGS | METH_KEYWORDS, NULL},
    {"create_binning", KEYWORD_FUNCTION(create_binning), METH_VARARGS | METH_KEYWORDS,
     NULL},
    {"binning_add_bin", binning_add_bin, METH_VARARGS, NULL},
    {"create_from_spec", create_from_spec, METH_VARARGS, NULL},
    {"check_spec", check_spec, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
