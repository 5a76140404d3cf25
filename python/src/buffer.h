/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The object of a buffer, for buffer.c (its life, questions) and buffer_contents.c (changes,
 * copies, views).
 */
#ifndef RMM_PYTHON_BUFFER_H
#define RMM_PYTHON_BUFFER_H

#include "module.h"

typedef struct buffer_object {
    PyObject_HEAD rmm_device_buffer_t buffer;
    PyObject *mr; /* NULL until it is looked at or given */
    stream_object_t *stream;
    PyObject *weak_references;
    Py_ssize_t pins; /* views and DLPack tensors of the memory */
} buffer_object_t;

/* The stream becomes that of the buffer, with the reference. */
void buffer_take_stream(buffer_object_t *self, stream_object_t *stream);

int buffer_get_view(PyObject *object, Py_buffer *view, int flags);
void buffer_release_view(PyObject *object, Py_buffer *view);
extern PyMethodDef buffer_methods[];

#endif /* RMM_PYTHON_BUFFER_H */
