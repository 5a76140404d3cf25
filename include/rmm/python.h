/* SPDX-License-Identifier: Apache-2.0 */
/**
 * @file rmm/python.h
 *
 * For extension modules of Python: buffers and resources of C and C++ as objects of the package
 * rmm_c, and back, without a copy.
 *
 *     const rmm_python_api_t *api = rmm_python_api_get();
 *     if (api == NULL) { return NULL; }                an exception is set
 *     return api->buffer_from(&buffer, NULL);          a DeviceBuffer; `buffer` is empty
 *
 * The functions are in a capsule, rmm_c._core.api: a module needs no more of the package than
 * this header, and links librmm-c. rmm_device_buffer_t and the class rmmc::device_buffer
 * (its get() and adopt()) both serve.
 *
 * Needs no Python.h; struct _object is PyObject, and the order of includes does not matter.
 * Nothing here is defined in librmm-c.
 *
 * Lifetime: the table is static. Objects that a function returns are new references.
 *
 * Threads: with the GIL; the functions release it while they wait or free.
 *
 * Failures: NULL or false, and a Python exception is set.
 */
#ifndef RMM_PYTHON_H
#define RMM_PYTHON_H

#include <stdbool.h>
#include <stddef.h>

#include <rmm/device_buffer.h>
#include <rmm/resource.h>

#ifdef __cplusplus
extern "C" {
#endif

struct _object; /* PyObject */

/** New fields are only ever appended. */
typedef struct rmm_python_api {
    size_t struct_size;

    /** rmm_resource_retain() of the library that the package uses. */
    rmm_resource_t *(*resource_retain)(rmm_resource_t *mr);

    /**
     * A new DeviceBuffer with the memory, the stream and the resource of a buffer, which is moved
     * from on success. Nothing is copied, and nothing waits.
     *
     * @param buffer  has a resource, else ValueError
     * @param stream  what keeps the buffer's stream alive: a Stream of rmm_c, or of another
     *                package, of the same handle, else ValueError. NULL: the stream exists for
     *                as long as the DeviceBuffer may use it
     */
    struct _object *(*buffer_from)(rmm_device_buffer_t *buffer, struct _object *stream);

    /**
     * Move the memory of a DeviceBuffer to @p out, ordered on the DeviceBuffer's stream behind
     * all that the package has queued. The DeviceBuffer is empty afterwards, of the same
     * resource. The caller keeps that stream: rmm_device_buffer_stream(out).
     *
     * @param out  storage of the caller; what it holds is overwritten, not freed
     * @return false: not a DeviceBuffer (TypeError), or a view, a DLPack tensor or a borrower
     *         has its memory (BufferError)
     */
    bool (*buffer_take)(struct _object *object, rmm_device_buffer_t *out);

    /**
     * The buffer inside of a DeviceBuffer, for reads and writes of its memory on its stream, which
     * is ordered behind all that the package has queued. Until buffer_give_back() the memory
     * does not move: a resize raises BufferError. The caller holds a reference of the object for
     * as long.
     *
     * @return NULL: not a DeviceBuffer (TypeError)
     */
    const rmm_device_buffer_t *(*buffer_borrow)(struct _object *object);
    void (*buffer_give_back)(struct _object *object);

    /** The Python object of a resource: the one that there is, or a new one. */
    struct _object *(*resource_from)(rmm_resource_t *mr);
    /** The C resource of a Python one, borrowed; NULL: not a resource (TypeError). */
    rmm_resource_t *(*resource_of)(struct _object *object);
} rmm_python_api_t;

/** The name of the capsule. */
#define RMM_PYTHON_CAPSULE "rmm_c._core.api"

/* Functions of Python's stable ABI, as Python.h declares them. */
extern void *PyCapsule_Import(const char *name, int no_block);
extern void PyErr_SetString(struct _object *type, const char *text);
extern struct _object *PyExc_ImportError;

/**
 * The functions. Imports the package; NULL with an ImportError if that fails, if it is older than
 * this header, or if it uses another copy of librmm-c than this module.
 */
static inline const rmm_python_api_t *rmm_python_api_get(void)
{
    const rmm_python_api_t *api =
        (const rmm_python_api_t *)PyCapsule_Import(RMM_PYTHON_CAPSULE, 0);

    if (api != NULL && api->struct_size < sizeof(*api)) {
        PyErr_SetString(
            PyExc_ImportError, "rmm_c is older than this module's rmm/python.h");
        return NULL;
    }
    if (api != NULL && api->resource_retain != rmm_resource_retain) {
        PyErr_SetString(
            PyExc_ImportError, "rmm_c and this module use two copies of librmm-c");
        return NULL;
    }
    return api;
}

#ifdef __cplusplus
}
#endif

#endif /* RMM_PYTHON_H */
