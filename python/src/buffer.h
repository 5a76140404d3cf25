/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object of a buffer, for buffer.c (its life, questions), buffer_order.c (what its memory
 * waits for) and buffer_contents.c (changes, copies, views).
 */
#ifndef RMM_PYTHON_BUFFER_H
#define RMM_PYTHON_BUFFER_H

#include "module.h"

typedef struct buffer_object {
    PyObject_HEAD rmm_device_buffer_t buffer;
    PyObject *mr;               /* NULL until it is looked at or given */
    place_t own_place;          /* where the buffer is used and freed */
    place_t other_place;        /* where a method has queued work since, if anywhere */
    uint64_t other_place_count; /* changes of `other_place` */
    PyObject *weak_references;
    Py_ssize_t pins;                       /* views and DLPack tensors of the memory */
    struct buffer_object *next, *previous; /* of the live ones, for buffers_at() */
    bool is_listed;
    /* As in `buffer`, which a call without the GIL may be changing. */
    const void *memory;
    size_t room; /* the capacity */
} buffer_object_t;

/* The place becomes that of the buffer, with the reference. Nothing is queued elsewhere: the
 * caller has settled the buffer there. */
void buffer_set_place(buffer_object_t *self, place_t place);
/* For work on the memory that follows at a place: wait for what was queued elsewhere. NULL:
 * wait for everything. False: an exception is set. */
bool buffer_settle(buffer_object_t *self, const place_t *at);
/* Work on the memory was queued at a place, after buffer_settle(). Waits for it where nothing
 * can later. False: an exception is set. */
bool buffer_queued(buffer_object_t *self, const place_t *at);
/* Before the memory is freed: wait for what the free would not be ordered behind. Without
 * exceptions, the free cannot fail. */
void buffer_settle_before_free(buffer_object_t *self);

/* The live buffers, among which buffers_at() looks. One that is not live has nothing to wait
 * for. */
void buffer_enlist(buffer_object_t *self);
void buffer_delist(buffer_object_t *self);
/* The memory may be another one. */
void buffer_look(buffer_object_t *self);

/* Give a buffer that was only just made a copy of another one's memory. */
bool buffer_begin_copy(
    buffer_object_t *self, const buffer_object_t *from, const place_t *at);

extern PyTypeObject *buffer_type;
int buffer_get_view(PyObject *object, Py_buffer *view, int flags);
void buffer_release_view(PyObject *object, Py_buffer *view);
extern PyMethodDef buffer_methods[];

#endif /* RMM_PYTHON_BUFFER_H */
