/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A buffer for other packages, by DLPack: an array of bytes of one dimension.
 *
 * The structures are those of DLPack 1.0, and of the form before it, which has no version. The
 * consumer renames the capsule and calls the deleter; if there is none, the capsule does. While a
 * tensor exists, the buffer exists and its memory does not move.
 */
#include "module.h"

#include <stdlib.h>

#define DLPACK_MAJOR 1
#define DLPACK_MINOR 0
#define DLPACK_UNSIGNED 1
#define DLPACK_BYTE_BITS 8

typedef struct tensor {
    void *data;
    int32_t device_type, device_id;
    int32_t ndim;
    uint8_t type_code, type_bits;
    uint16_t type_lanes;
    int64_t *shape;
    int64_t *strides;
    uint64_t byte_offset;
} tensor_t;

typedef struct managed_tensor {
    tensor_t tensor;
    void *context;
    void (*deleter)(struct managed_tensor *);
} managed_tensor_t;

typedef struct versioned_tensor {
    uint32_t major, minor;
    void *context;
    void (*deleter)(struct versioned_tensor *);
    uint64_t flags;
    tensor_t tensor;
} versioned_tensor_t;

/* Both forms, and what they point to. */
typedef struct export
{
    managed_tensor_t plain;
    versioned_tensor_t versioned;
    int64_t shape, stride;
    PyObject *buffer;
}
export_t;

static const char plain_name[] = "dltensor";
static const char versioned_name[] = "dltensor_versioned";

/* Consumers call it with the GIL or without it. */
static void end_export(export_t *export)
{
    PyGILState_STATE state;

    if (Py_IsInitialized()) {
        state = PyGILState_Ensure();
        buffer_unpin(export->buffer);
        Py_DECREF(export->buffer);
        PyGILState_Release(state);
    }
    free(export);
}

static void delete_plain(managed_tensor_t *tensor)
{
    end_export(tensor->context);
}

static void delete_versioned(versioned_tensor_t *tensor)
{
    end_export(tensor->context);
}

static void end_capsule(PyObject *capsule)
{
    if (PyCapsule_IsValid(capsule, plain_name)) {
        managed_tensor_t *tensor = PyCapsule_GetPointer(capsule, plain_name);

        tensor->deleter(tensor);
    } else if (PyCapsule_IsValid(capsule, versioned_name)) {
        versioned_tensor_t *tensor = PyCapsule_GetPointer(capsule, versioned_name);

        tensor->deleter(tensor);
    }
}

static tensor_t describe(export_t *export, void *data, int32_t type, int32_t id)
{
    tensor_t tensor = {0};

    tensor.data = data;
    tensor.device_type = type;
    tensor.device_id = id;
    tensor.ndim = 1;
    tensor.type_code = DLPACK_UNSIGNED;
    tensor.type_bits = DLPACK_BYTE_BITS;
    tensor.type_lanes = 1;
    tensor.shape = &export->shape;
    tensor.strides = &export->stride;
    return tensor;
}

static PyObject *to_dlpack(PyObject *module, PyObject *args)
{
    rmm_device_buffer_t *memory;
    PyObject *buffer, *capsule;
    int type, id, is_versioned;
    export_t *export;
    tensor_t tensor;

    (void)module;
    if (!PyArg_ParseTuple(args, "Oiip", &buffer, &type, &id, &is_versioned) ||
        (memory = buffer_memory(buffer)) == NULL) {
        return NULL;
    }
    export = calloc(1, sizeof(*export));
    if (export == NULL) {
        return PyErr_NoMemory();
    }
    export->shape = (int64_t)rmm_device_buffer_size(memory);
    export->stride = 1;
    export->buffer = buffer;
    tensor = describe(export, rmm_device_buffer_data(memory), type, id);
    export->plain = (managed_tensor_t){tensor, export, delete_plain};
    export->versioned = (versioned_tensor_t){
        DLPACK_MAJOR, DLPACK_MINOR, export, delete_versioned, 0, tensor};
    capsule = is_versioned
                  ? PyCapsule_New(&export->versioned, versioned_name, end_capsule)
                  : PyCapsule_New(&export->plain, plain_name, end_capsule);
    if (capsule == NULL) {
        free(export);
        return NULL;
    }
    Py_INCREF(buffer);
    buffer_pin(buffer);
    return capsule;
}

PyMethodDef dlpack_functions[] = {
    {"to_dlpack", to_dlpack, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
