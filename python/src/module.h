/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the parts of the extension module rmm_c._core share.
 *
 * Why an extension and not a foreign function interface: the compiler reads the library's own
 * headers, so no copy of a declaration can drift, and a call costs some tens of nanoseconds.
 * The module is thin. Whatever need not be fast or be C is Python, in rmm_c/.
 *
 * The interpreter's lock (GIL): released around every call of the library that may take a lock,
 * call the driver or run a callback, because a callback needs the GIL: library_enter() to
 * library_leave(). Everything else runs with it.
 *
 * References: a Python resource holds one reference of its C resource, and its Python upstream.
 * A buffer holds its resource and its stream. So the functions of a callback live at least as
 * long as all Python users of it.
 */
#ifndef RMM_PYTHON_MODULE_H
#define RMM_PYTHON_MODULE_H

#include "limited_api.h"

#include <structmember.h>

#include <rmm/rmm.h>

/* --- library calls (callbacks.c) ------------------------------------------------------ */

/* One call of the library by this thread. An exception that a callback raises during the call
 * is kept here until library_leave(). */
typedef struct library_call {
    struct library_call *outer;
    PyThreadState *thread;
    PyObject *type, *value, *traceback;
} library_call_t;

/* Release the GIL and begin a call. */
void library_enter(library_call_t *call);
/* End it, with the GIL. True: no exception is set. A failed status becomes an exception, or
 * that of the callback which made the call fail. */
bool library_leave(library_call_t *call, rmm_status_t status);
/* End a call that cannot fail. Exceptions of callbacks go to sys.unraisablehook. */
void library_leave_quietly(library_call_t *call);
/* End a call that returns no status. False: a callback has raised. */
bool library_leave_void(library_call_t *call);

/* --- state of the module (module.c) --------------------------------------------------- */

/* Set once by rmm_c/_hooks.py. */
typedef struct module_hooks {
    PyObject *error_types;    /* dict: status -> class */
    PyObject *default_stream; /* a Stream: what `stream` means when it is not given */
    PyObject *as_stream;      /* function: foreign stream -> Stream */
    PyObject *wrap;           /* function: address of a C resource -> Python resource */
} module_hooks_t;

extern module_hooks_t hooks;

PyObject *raise_status(rmm_status_t status);
/* An exception of this type whose message has the name of the object's type for its one %U. */
void raise_with_type(PyObject *exception, const char *format, PyObject *object);
bool add_type(
    PyObject *module, const char *name, PyType_Spec *spec, PyTypeObject **out);

/* --- converters for "O&" (module.c) --------------------------------------------------- */

int as_uint64(PyObject *object, void *out);  /* uint64_t */
int as_uint32(PyObject *object, void *out);  /* uint32_t */
int as_address(PyObject *object, void *out); /* void * */

/* --- streams (stream.c) --------------------------------------------------------------- */

typedef struct stream_object {
    PyObject_HEAD rmm_stream_t stream;
    PyObject *owner; /* what keeps a foreign stream alive, or NULL */
    PyObject *weak_references;
    bool is_owned; /* this object destroys it */
} stream_object_t;

extern PyTypeObject *stream_type;

/* A new reference to a Stream: of a Stream itself, of NULL the default one, of None none, else of
 * what as_stream makes of it. */
stream_object_t *stream_from(PyObject *object);
/* library_leave() of a call on a stream, of which this drops the caller's reference: not before
 * the GIL is back, because the end of a Stream is Python's work. */
bool stream_leave(library_call_t *call, rmm_status_t status, stream_object_t *stream);

/* Where work is queued. The handles of the default streams are the same on every device, and
 * that of the per-thread one also in every thread, so a handle alone does not name a queue.
 * */
typedef struct place {
    stream_object_t *stream; /* NULL: nowhere */
    int device;
    uint64_t thread; /* of Python, for the per-thread default stream; else 0 */
} place_t;

/* The place of a stream, borrowed, on a device for this thread. */
place_t place_on(stream_object_t *stream, int device);
bool place_is(const place_t *a, const place_t *b);
/* Wait until the work queued on a stream is done, with that device current for a default
 * stream. Without the GIL. */
rmm_status_t stream_wait_on(rmm_stream_t stream, int device);
/* False: nothing keeps the stream alive, because only its number is known. */
bool stream_is_kept(const stream_object_t *stream);

/* --- resources (resource.c) ----------------------------------------------------------- */

typedef struct callbacks callbacks_t;

typedef struct resource_object {
    PyObject_HEAD rmm_resource_t *mr; /* NULL until a creator ran */
    PyObject *upstream;               /* a resource, or NULL */
    PyObject *functions;              /* a tuple of Python functions, or NULL */
    callbacks_t *callbacks;           /* what the C resource calls them by, or NULL */
    uint64_t failure_id;              /* of a failure callback, or 0 */
    PyObject *weak_references;
} resource_object_t;

extern PyTypeObject *resource_type;

/* The C resource; NULL with an exception: not a resource, or without a C resource. */
rmm_resource_t *resource_of(PyObject *object);
/* A new reference to the Python resource of a C resource. */
PyObject *resource_wrapper(rmm_resource_t *mr);
/* Give a fresh Python resource its C resource, which it then owns. */
bool resource_adopt(resource_object_t *self, rmm_resource_t *mr, PyObject *upstream);

/* Run a function of the library on the C resource of a Python one. None, or NULL. */
PyObject *resource_call(PyObject *object, rmm_status_t (*run)(rmm_resource_t *mr));

/* A creator of the library; without upstream it ignores that, without options these. */
typedef rmm_status_t (*create_fn)(
    rmm_resource_t *upstream, const void *options, rmm_resource_t **out);

/* Run it for a fresh Python resource; upstream: a Python resource, or NULL. None, or NULL. */
PyObject *resource_create(
    PyObject *self, PyObject *upstream, create_fn create, const void *options);

/* --- callbacks (callbacks.c) ---------------------------------------------------------- */

bool callbacks_init(void); /* once, before the others */
/* The wrapper of a resource over Python functions ends: from now on the C resource owns them.
 * */
void callbacks_hand_over(resource_object_t *self);
bool failure_forget(resource_object_t *self);

/* --- buffers (buffer.c) --------------------------------------------------------------- */

/* The memory of a buffer; NULL with an exception: not a buffer. */
rmm_device_buffer_t *buffer_memory(PyObject *object);
/* A new list of the live buffers with memory in a range, for work on raw addresses. */
PyObject *buffers_at(const void *ptr, uint64_t bytes);
/* The same, settled for work on a stream of the current device; at_out: that place, if there
 * is any. */
PyObject *buffers_settled(
    const void *ptr, uint64_t bytes, stream_object_t *stream, place_t *at_out);
/* buffer_settle() and buffer_queued() of each buffer of such a list. */
bool buffers_settle(PyObject *buffers, const place_t *at);
bool buffers_queued(PyObject *buffers, const place_t *at);
/* Between these calls the memory does not move, because its address is in use. With the GIL. */
void buffer_pin(PyObject *object);
void buffer_unpin(PyObject *object);

/* --- parts that add themselves to the module ------------------------------------------ */

bool add_stream(PyObject *module);
bool add_resource(PyObject *module);
bool add_buffer(PyObject *module);
bool add_exchange(PyObject *module);
extern PyMethodDef callback_functions[];
extern PyMethodDef creator_functions[];
extern PyMethodDef device_functions[];
extern PyMethodDef dlpack_functions[];
extern PyMethodDef exchange_functions[];
extern PyMethodDef sleep_functions[];
extern PyMethodDef figure_functions[];
extern PyMethodDef log_functions[];
extern PyMethodDef memory_functions[];
extern PyMethodDef observed_functions[];
extern PyMethodDef sharing_functions[];
extern PyMethodDef stream_functions[];

/* METH_VARARGS | METH_KEYWORDS functions have another signature than PyMethodDef says. */
#define KEYWORD_FUNCTION(function) ((PyCFunction)(void (*)(void))(function))

#endif /* RMM_PYTHON_MODULE_H */
