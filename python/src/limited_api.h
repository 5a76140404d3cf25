/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Python's limited API as of 3.9, and the little that it lacks, so that one binary serves every
 * Python from 3.9 on. Included instead of Python.h.
 *
 * The buffer protocol and METH_FASTCALL have been part of the stable ABI since 3.11 and 3.10. In
 * 3.9 and 3.10, which change no more, they are the same: the struct, the numbers and the
 * functions, which those interpreters export. Headers leave them out where the limited API of
 * 3.9 is asked for, so they are declared here.
 *
 * Interpreters without a GIL have no stable ABI: setup.py then builds for the one version.
 */
#ifndef RMM_PYTHON_LIMITED_API_H
#define RMM_PYTHON_LIMITED_API_H

#define PY_SSIZE_T_CLEAN
#include <Python.h>

#if defined(Py_LIMITED_API) && Py_LIMITED_API + 0 < 0x030A0000
#define METH_FASTCALL 0x0080
#endif

#if defined(Py_LIMITED_API) && Py_LIMITED_API + 0 < 0x030B0000
typedef struct {
    void *buf;
    PyObject *obj;
    Py_ssize_t len, itemsize;
    int readonly, ndim;
    char *format;
    Py_ssize_t *shape, *strides, *suboffsets;
    void *internal;
} Py_buffer;

#define PyBUF_CONTIG 0x0009 /* PyBUF_ND | PyBUF_WRITABLE */
#define PyBUF_CONTIG_RO 0x0008
#define Py_bf_getbuffer 1
#define Py_bf_releasebuffer 2

PyAPI_FUNC(int) PyObject_GetBuffer(PyObject *object, Py_buffer *view, int flags);
PyAPI_FUNC(void) PyBuffer_Release(Py_buffer *view);
PyAPI_FUNC(int) PyBuffer_FillInfo(
    Py_buffer *view, PyObject *object, void *buf, Py_ssize_t len, int readonly,
    int flags);
#endif

#if PY_VERSION_HEX < 0x030A0000
static inline PyObject *Py_NewRef(PyObject *object)
{
    Py_INCREF(object);
    return object;
}
#endif

#endif /* RMM_PYTHON_LIMITED_API_H */
