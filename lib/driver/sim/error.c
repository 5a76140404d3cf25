/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names and texts of the cudaError_t values that the simulated GPU returns.
 */
#include "driver/sim/internal.h"

typedef struct sim_error {
    int value;
    const char *name;
    const char *text;
} sim_error_t;

static const sim_error_t errors[] = {
    {0, "cudaSuccess", "no error"},
    {1, "cudaErrorInvalidValue", "invalid argument"},
    {2, "cudaErrorMemoryAllocation", "out of memory"},
    {3, "cudaErrorInitializationError", "initialization error"},
    {4, "cudaErrorCudartUnloading", "driver shutting down"},
    {35, "cudaErrorInsufficientDriver", "the driver is older than the runtime"},
    {46, "cudaErrorDevicesUnavailable", "all devices are busy or unavailable"},
    {100, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {101, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {214, "cudaErrorECCUncorrectable", "uncorrectable memory error encountered"},
    {304, "cudaErrorOperatingSystem",
     "OS call failed or operation not supported on this OS"},
    {400, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {401, "cudaErrorIllegalState", "the object is in a state that forbids this"},
    {600, "cudaErrorNotReady", "device not ready"},
    {700, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {719, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {800, "cudaErrorNotPermitted", "operation not permitted"},
    {801, "cudaErrorNotSupported", "operation not supported"},
    {900, "cudaErrorStreamCaptureUnsupported",
     "operation not permitted when stream is capturing"},
    {901, "cudaErrorStreamCaptureInvalidated",
     "operation failed due to a previous error during capture"},
    {902, "cudaErrorStreamCaptureMerge",
     "operation would have merged two separate capture sequences"},
    {903, "cudaErrorStreamCaptureUnmatched",
     "the stream is not the one that began the capture"},
    {904, "cudaErrorStreamCaptureUnjoined",
     "the capture has work that was not joined to the stream that began it"},
    {905, "cudaErrorStreamCaptureIsolation",
     "a dependency would have crossed the border of the capture"},
    {906, "cudaErrorStreamCaptureImplicit",
     "operation would depend on a capturing stream through the legacy stream"},
    {907, "cudaErrorCapturedEvent",
     "operation not permitted on an event last recorded in a capturing stream"},
    {908, "cudaErrorStreamCaptureWrongThread", "the capture began in another thread"},
    {999, "cudaErrorUnknown", "unknown error"},
};

#define ERROR_COUNT (sizeof(errors) / sizeof(errors[0]))

static const sim_error_t *find(int value)
{
    for (size_t i = 0; i < ERROR_COUNT; i++) {
        if (errors[i].value == value) {
            return &errors[i];
        }
    }
    return &errors[ERROR_COUNT - 1];
}

const char *rmm__sim_error_name(int error)
{
    return find(error)->name;
}

const char *rmm__sim_error_text(int error)
{
    return find(error)->text;
}
