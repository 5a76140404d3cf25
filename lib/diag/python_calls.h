/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of CPython that the diagnosis calls, found in the process: it is built without
 * Python's headers, for all versions. All are part of Python's interface from 3.9 to 3.14.
 */
#ifndef RMM_DIAG_PYTHON_CALLS_H
#define RMM_DIAG_PYTHON_CALLS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* Each X(name, result, parameters). Without the GIL: they only read. */
#define RMM_PYTHON_READ_MAP(X)                                                         \
    X(Py_GetVersion, const char *, (void))                                             \
    X(Py_IsInitialized, int, (void))                                                   \
    X(PyGILState_GetThisThreadState, void *, (void))                                   \
    X(PyCode_Addr2Line, int, (const void *code, int at))                               \
    X(PyUnicode_GetLength, ssize_t, (const void *text))                                \
    X(PyUnicode_ReadChar, uint32_t, (const void *text, ssize_t index))                 \
    X(Py_AddPendingCall, int, (int (*call)(void *), void *argument))

/* With the GIL, for the proof */
#define RMM_PYTHON_PROOF_MAP(X)                                                        \
    X(PyEval_GetFrame, void *, (void))                                                 \
    X(PyFrame_GetBack, void *, (void *frame))                                          \
    X(PyFrame_GetCode, void *, (void *frame))                                          \
    X(PyFrame_GetLineNumber, int, (void *frame))                                       \
    X(PyObject_GetAttrString, void *, (void *object, const char *name))                \
    X(PyErr_Fetch, void, (void **type, void **value, void **trace))                    \
    X(PyErr_Restore, void, (void *type, void *value, void *trace))                     \
    X(Py_IncRef, void, (void *object))                                                 \
    X(Py_DecRef, void, (void *object))

/* With the GIL, and where Python code may run: to learn when the interpreter ends */
#define RMM_PYTHON_END_MAP(X)                                                          \
    X(PyErr_Clear, void, (void))                                                       \
    X(PyImport_ImportModule, void *, (const char *name))                               \
    X(PyCFunction_NewEx, void *, (void *definition, void *self, void *module))         \
    X(PyObject_CallMethod, void *,                                                     \
      (void *object, const char *name, const char *format, ...))                       \
    X(Py_BuildValue, void *, (const char *format, ...))

typedef struct rmm_python_calls {
#define MEMBER(name, result, parameters) result(*name) parameters;
    RMM_PYTHON_READ_MAP(MEMBER)
    RMM_PYTHON_PROOF_MAP(MEMBER)
    RMM_PYTHON_END_MAP(MEMBER)
#undef MEMBER
    void *(*PyThreadState_GetUnchecked)(void); /* of the thread that has the GIL */
    int (*PyGC_Disable)(void);                 /* both NULL in 3.9 */
    int (*PyGC_Enable)(void);
    const void *PyCode_Type, *PyUnicode_Type;
    const void *_PyRuntime; /* may be NULL */
} rmm_python_calls_t;

/* False: there is no CPython, or it lacks one of them: *lacking_out, or NULL. */
bool rmm__python_calls_find(rmm_python_calls_t *calls, const char **lacking_out);

#endif /* RMM_DIAG_PYTHON_CALLS_H */
