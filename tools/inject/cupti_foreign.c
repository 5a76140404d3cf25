/* SPDX-License-Identifier: Apache-2.0 */
/* Addresses of what is no block; see cupti_foreign.h. */
#include "inject/cupti_foreign.h"

#include <cuda.h>

typedef struct foreign {
    uint16_t id;
    uint8_t address_at, bytes_at; /* where the driver writes; ABSENT: it does not say */
    bool is_recent;
} foreign_t;

/* CBID() here would name the newest version of a call: cuda.h has macros of these names. */
#define VARIABLE(name)                                                                 \
    {                                                                                  \
        CUPTI_DRIVER_TRACE_CBID_##name, offsetof(name##_params, dptr),                 \
            offsetof(name##_params, bytes), false                                      \
    }
#define UNTOLD(name, recent)                                                           \
    {                                                                                  \
        CUPTI_DRIVER_TRACE_CBID_##name, ABSENT, ABSENT, recent                         \
    }

static const foreign_t calls[] = {
    VARIABLE(cuModuleGetGlobal_v2),
    VARIABLE(cuLibraryGetGlobal),
    VARIABLE(cuLibraryGetManaged),
    UNTOLD(cuIpcOpenMemHandle, false),
    UNTOLD(cuIpcOpenMemHandle_v2, false),
    UNTOLD(cuExternalMemoryGetMappedBuffer, false),
    UNTOLD(cuGraphicsResourceGetMappedPointer_v2, false),
    UNTOLD(cuGraphicsResourceGetMappedEglFrame, false),
    UNTOLD(cuGLMapBufferObject_v2, false),
    UNTOLD(cuGLMapBufferObject_v2_ptds, false),
    UNTOLD(cuGLMapBufferObjectAsync_v2, false),
    UNTOLD(cuGLMapBufferObjectAsync_v2_ptsz, false),
    UNTOLD(cuMemPoolImportPointer, false),
    UNTOLD(cuMemHostGetDevicePointer_v2, false),
    UNTOLD(cuGraphAddMemAllocNode, false),
#if CUDA_VERSION >= 12020
    UNTOLD(cuGraphAddNode, true),
#endif
#if CUDA_VERSION >= 12030
    UNTOLD(cuGraphAddNode_v2, true),
#endif
};

enum { CALLS = sizeof(calls) / sizeof(calls[0]) };

bool cupti_foreign_call(size_t i, cupti_call_t *call_out)
{
    if (i >= CALLS) {
        return false;
    }
    *call_out = (cupti_call_t){.id = calls[i].id, .is_recent = calls[i].is_recent};
    return true;
}

/* NULL: it is not in the list. */
static const foreign_t *find_call(CUpti_CallbackId id)
{
    for (size_t i = 0; i < CALLS; i++) {
        if (calls[i].id == id) {
            return &calls[i];
        }
    }
    return NULL;
}

bool cupti_foreign_is_call(CUpti_CallbackId call)
{
    return find_call(call) != NULL;
}

bool cupti_foreign_after(
    CUpti_CallbackId id, const void *params, cupti_foreign_t *given_out)
{
    const foreign_t *call = find_call(id);

    if (call == NULL) {
        return false;
    }
    given_out->address = result_at(params, call->address_at);
    given_out->bytes = result_at(params, call->bytes_at);
    given_out->is_whole = given_out->address != 0 && given_out->bytes != 0;
    return true;
}
