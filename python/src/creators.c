/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A fresh Python resource gets its C resource: create(self, KIND, [upstream], OPTION=...) for each
 * line of KINDS. The options are fields of the C creator's, under their names. Callback resources
 * are in callbacks.c.
 */
#include "module.h"

enum { OPTIONS_MAX = 8 };

typedef rmm_pool_options_t rmm_auto_options_t; /* under the name that KINDS expects */

/*
 * What the library creates
 *   PLAIN(kind)             of nothing
 *   ALONE(kind, options)    of options
 *   OVER(kind, options)     of an upstream and options
 *   ADAPTOR(kind, options)  likewise, by rmm_KIND_adaptor_create()
 */
#define NO_OPTIONS
#define KINDS(PLAIN, ALONE, OVER, ADAPTOR)                                             \
    PLAIN(cuda)                                                                        \
    PLAIN(managed)                                                                     \
    PLAIN(pinned)                                                                      \
    PLAIN(host)                                                                        \
    PLAIN(system)                                                                      \
    PLAIN(async_managed)                                                               \
    ALONE(                                                                             \
        async,                                                                         \
        OPTION(async, initial_pool_bytes) OPTION(async, release_threshold_bytes)       \
            OPTION(async, handle_types) OPTION(async, flags) OPTION(async, location)   \
                OPTION(async, numa_node))                                              \
    ALONE(                                                                             \
        auto,                                                                          \
        OPTION(pool, initial_bytes) OPTION(pool, maximum_bytes) OPTION(pool, flags))   \
    ALONE(sam_headroom, OPTION(sam_headroom, headroom_bytes))                          \
    OVER(                                                                              \
        pool,                                                                          \
        OPTION(pool, initial_bytes) OPTION(pool, maximum_bytes) OPTION(pool, flags))   \
    OVER(arena, OPTION(arena, arena_bytes) OPTION(arena, dump_on_failure))             \
    OVER(                                                                              \
        fixed_size,                                                                    \
        OPTION(fixed_size, block_bytes) OPTION(fixed_size, blocks_per_chunk))          \
    OVER(binning, OPTION(binning, min_exponent) OPTION(binning, max_exponent))         \
    ADAPTOR(                                                                           \
        aligned, OPTION(aligned, alignment_bytes) OPTION(aligned, threshold_bytes))    \
    ADAPTOR(fallback, OPTION(fallback, alternate))                                     \
    ADAPTOR(limiting, OPTION(limiting, limit_bytes))                                   \
    ADAPTOR(                                                                           \
        logging, OPTION(logging, path) OPTION(logging, auto_flush)                     \
                     OPTION(logging, format) OPTION(logging, flush_interval_ms))       \
    ADAPTOR(prefetch, NO_OPTIONS)                                                      \
    ADAPTOR(retry, OPTION(retry, timeout_ms))                                          \
    ADAPTOR(statistics, NO_OPTIONS)                                                    \
    ADAPTOR(thread_safe, NO_OPTIONS)                                                   \
    ADAPTOR(tracking, OPTION(tracking, capture_stacks))                                \
    ADAPTOR(wait, OPTION(wait, timeout_ms))

/* --- their creators, in one shape ------------------------------------------------------- */

#define CREATOR(kind, call)                                                            \
    static rmm_status_t create_##kind(                                                 \
        rmm_resource_t *upstream, const void *options, rmm_resource_t **out)           \
    {                                                                                  \
        (void)upstream;                                                                \
        (void)options;                                                                 \
        return call;                                                                   \
    }
#define CREATE_PLAIN(kind) CREATOR(kind, rmm_##kind##_resource_create(out))
#define CREATE_ALONE(kind, ...)                                                        \
    CREATOR(kind, rmm_##kind##_resource_create(options, out))
#define CREATE_OVER(kind, ...)                                                         \
    CREATOR(kind, rmm_##kind##_resource_create(upstream, options, out))
#define CREATE_ADAPTOR(kind, ...)                                                      \
    CREATOR(kind, rmm_##kind##_adaptor_create(upstream, options, out))

KINDS(CREATE_PLAIN, CREATE_ALONE, CREATE_OVER, CREATE_ADAPTOR)

/* --- the table ---------------------------------------------------------------------------- */

typedef enum option_type {
    IS_BOOL,
    IS_UINT32,
    IS_UINT64,
    IS_TEXT,
    IS_RESOURCE
} option_type_t;

typedef struct option {
    const char *name; /* NULL: there are no more */
    size_t offset;
    option_type_t type;
} option_t;

typedef struct kind {
    const char *name;
    create_fn create;
    size_t options_bytes; /* 0: it takes none */
    option_t options[OPTIONS_MAX];
} kind_t;

/* clang-format off */
#define TYPE_OF(field)                                                                 \
    _Generic((field),                                                                  \
        bool: IS_BOOL,                                                                 \
        uint32_t: IS_UINT32,                                                           \
        uint64_t: IS_UINT64,                                                           \
        const char *: IS_TEXT,                                                         \
        rmm_resource_t *: IS_RESOURCE)
/* clang-format on */
#define OPTION(kind, field)                                                            \
    {#field, offsetof(rmm_##kind##_options_t, field),                                  \
     TYPE_OF(((rmm_##kind##_options_t *)0)->field)},
#define PLAIN_ROW(kind) {#kind, create_##kind, 0, {{NULL}}},
#define ROW(kind, options)                                                             \
    {#kind, create_##kind, sizeof(rmm_##kind##_options_t), {options{NULL}}},

static const kind_t kinds[] = {KINDS(PLAIN_ROW, ROW, ROW, ROW)};

static const kind_t *kind_of(const char *name)
{
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    PyErr_Format(PyExc_ValueError, "no resource '%s'", name);
    return NULL;
}

/* --- options -------------------------------------------------------------------------------- */

static const option_t *option_of(const kind_t *kind, PyObject *name)
{
    for (const option_t *option = kind->options; option->name != NULL; option++) {
        if (PyUnicode_CompareWithASCIIString(name, option->name) == 0) {
            return option;
        }
    }
    PyErr_Format(PyExc_TypeError, "'%U' is no option of '%s'", name, kind->name);
    return NULL;
}

/* The bytes of a text stay as long as the list does. */
static bool take_text(PyObject *value, PyObject *texts, const char **out)
{
    PyObject *bytes = NULL;
    bool is_kept =
        PyUnicode_FSConverter(value, &bytes) && PyList_Append(texts, bytes) == 0;

    *out = is_kept ? PyBytes_AsString(bytes) : NULL;
    Py_XDECREF(bytes);
    return is_kept;
}

static bool take(option_type_t type, PyObject *value, PyObject *texts, void *field)
{
    int truth;

    switch (type) {
    case IS_BOOL:
        truth = PyObject_IsTrue(value);
        *(bool *)field = truth > 0;
        return truth >= 0;
    case IS_UINT32:
        return as_uint32(value, field);
    case IS_UINT64:
        return as_uint64(value, field);
    case IS_TEXT:
        return take_text(value, texts, field);
    case IS_RESOURCE:
        *(rmm_resource_t **)field = resource_of(value);
        return *(rmm_resource_t **)field != NULL;
    }
    return false;
}

/* Into an options struct of zeros, which are the defaults. */
static bool
take_options(const kind_t *kind, PyObject *named, PyObject *texts, char *options)
{
    PyObject *name, *value;
    Py_ssize_t position = 0;

    *(size_t *)(void *)options = kind->options_bytes; /* struct_size, the first field */
    while (named != NULL && PyDict_Next(named, &position, &name, &value)) {
        const option_t *option = option_of(kind, name);

        if (option == NULL ||
            !take(option->type, value, texts, options + option->offset)) {
            return false;
        }
    }
    return true;
}

static PyObject *create(PyObject *module, PyObject *args, PyObject *named)
{
    PyObject *self, *upstream = NULL, *texts, *result = NULL;
    const kind_t *kind;
    const char *name;
    char *options;

    (void)module;
    if (!PyArg_ParseTuple(args, "O!s|O", resource_type, &self, &name, &upstream) ||
        (kind = kind_of(name)) == NULL) {
        return NULL;
    }
    options = PyMem_Calloc(1, sizeof(size_t) + kind->options_bytes);
    texts = PyList_New(0);
    if (options == NULL) {
        PyErr_NoMemory();
    } else if (texts != NULL && take_options(kind, named, texts, options)) {
        result = resource_create(self, upstream, kind->create, options);
    }
    Py_XDECREF(texts);
    PyMem_Free(options);
    return result;
}

/* --- of one kind only ------------------------------------------------------------------- */

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
    {"create", KEYWORD_FUNCTION(create), METH_VARARGS | METH_KEYWORDS, NULL},
    {"create_async_view", create_async_view, METH_VARARGS, NULL},
    {"binning_add_bin", binning_add_bin, METH_VARARGS, NULL},
    {"create_from_spec", create_from_spec, METH_VARARGS, NULL},
    {"check_spec", check_spec, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
