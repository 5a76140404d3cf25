/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What lib/driver declares of HIP, compared at compile time with the headers of ROCm that
 * are installed: each type, value, layout and signature that this version has. At run time:
 * the library of the same version has each function.
 */
#define __HIP_PLATFORM_AMD__ 1
#include <hip/hip_runtime_api.h>

#include "harness/harness.h"

#include <assert.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "driver/driver.h"
#include "driver/hip_types.h"

#define VALUE(hip, ours) static_assert((long)(hip) == (long)(ours), "value of " #ours)
#define TYPE(hip, ours)                                                                \
    static_assert(__builtin_types_compatible_p(hip, ours), "type " #ours)
#define LAYOUT(hip, ours)                                                              \
    static_assert(                                                                     \
        sizeof(hip) == sizeof(ours) && _Alignof(hip) == _Alignof(ours),                \
        "size of " #ours)
#define MEMBER(hip, ours, member)                                                      \
    static_assert(                                                                     \
        offsetof(hip, member) == offsetof(ours, member) &&                             \
            sizeof(((hip *)0)->member) == sizeof(((ours *)0)->member),                 \
        #ours "." #member)

/* ---- errors: the library takes them for CUDA's ---- */

VALUE(hipSuccess, RMM_DRIVER_OK);
VALUE(hipErrorInvalidValue, RMM_DRIVER_INVALID_VALUE);
VALUE(hipErrorOutOfMemory, RMM_DRIVER_MEMORY_ALLOCATION);
VALUE(hipErrorDeinitialized, RMM_DRIVER_UNLOADING);
VALUE(hipErrorInsufficientDriver, RMM_DRIVER_INSUFFICIENT_DRIVER);
VALUE(hipErrorNoDevice, RMM_DRIVER_NO_DEVICE);
VALUE(hipErrorInvalidDevice, RMM_DRIVER_INVALID_DEVICE);
VALUE(hipErrorInvalidHandle, RMM_DRIVER_INVALID_HANDLE);
VALUE(hipErrorNotReady, RMM_DRIVER_NOT_READY);
VALUE(hipErrorNotSupported, RMM_DRIVER_NOT_SUPPORTED);
VALUE(hipErrorStreamCaptureUnsupported, RMM_DRIVER_CAPTURE_UNSUPPORTED);
VALUE(hipErrorStreamCaptureInvalidated, RMM_DRIVER_CAPTURE_INVALIDATED);

/* ---- values ---- */

VALUE(hipStreamCaptureModeGlobal, RMM_CAPTURE_MODE_GLOBAL);
VALUE(hipStreamCaptureModeThreadLocal, RMM_CAPTURE_MODE_THREAD_LOCAL);
VALUE(hipStreamCaptureModeRelaxed, RMM_CAPTURE_MODE_RELAXED);
VALUE(hipStreamCaptureStatusNone, HIP_CAPTURE_STATUS_NONE);
VALUE(hipStreamCaptureStatusActive, HIP_CAPTURE_STATUS_ACTIVE);
VALUE(hipStreamNonBlocking, RMM_STREAM_NON_BLOCKING);
VALUE(hipCpuDeviceId, RMM_DRIVER_HOST);
VALUE(hipEventDisableTiming, HIP_EVENT_DISABLE_TIMING);
VALUE(hipHostMallocPortable, HIP_HOST_PORTABLE);
VALUE(hipMemAttachGlobal, HIP_MANAGED_ATTACH_GLOBAL);
VALUE(hipMemcpyDefault, HIP_COPY_DEFAULT);
VALUE(hipMemAdviseSetPreferredLocation, HIP_ADVICE_PREFERRED_LOCATION);
VALUE(hipDeviceAttributeManagedMemory, HIP_ATTRIBUTE_MANAGED_MEMORY);
VALUE(hipDeviceAttributePageableMemoryAccess, HIP_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS);
VALUE(
    hipDeviceAttributeConcurrentManagedAccess, HIP_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS);
#if HIP_VERSION >= 50100000
VALUE(hipDeviceAttributeMemoryPoolsSupported, HIP_ATTRIBUTE_MEMORY_POOLS);
VALUE(hipMemPoolAttrReleaseThreshold, HIP_POOL_RELEASE_THRESHOLD);
VALUE(hipMemPoolAttrReservedMemCurrent, HIP_POOL_RESERVED_BYTES);
VALUE(hipMemPoolAttrUsedMemCurrent, HIP_POOL_USED_BYTES);
VALUE(hipMemAllocationTypePinned, HIP_ALLOCATION_PINNED);
VALUE(hipMemLocationTypeDevice, HIP_LOCATION_DEVICE);
VALUE(hipMemAccessFlagsProtReadWrite, HIP_ACCESS_READ_WRITE);
VALUE(hipMemAllocationGranularityMinimum, HIP_GRANULARITY_MINIMUM);
#endif
#if HIP_VERSION >= 50300000
VALUE(hipDeviceAttributeVirtualMemoryManagementSupported, HIP_ATTRIBUTE_VIRTUAL_MEMORY);
VALUE(hipUserObjectNoDestructorSync, HIP_USER_OBJECT_NO_DESTRUCTOR_SYNC);
VALUE(hipGraphUserObjectMove, HIP_GRAPH_USER_OBJECT_MOVE);
#endif
#if HIP_VERSION >= 60100000
VALUE(
    hipDeviceAttributeMemoryPoolSupportedHandleTypes,
    HIP_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES);
#endif

/* ---- types ---- */

TYPE(hipError_t, hip_error_t);
TYPE(hipDeviceAttribute_t, hip_attribute_t);
TYPE(hipMemcpyKind, hip_copy_kind_t);
TYPE(hipMemoryAdvise, hip_advice_t);
TYPE(hipStreamCaptureStatus, hip_capture_status_t);
TYPE(hipStreamCaptureMode, hip_capture_mode_t);
TYPE(hipDevice_t, hip_device_t);
TYPE(hipStream_t, hip_stream_t);
TYPE(hipEvent_t, hip_event_t);
TYPE(hipGraph_t, hip_graph_t);
TYPE(hipGraphNode_t, hip_graph_node_t);
TYPE(hipHostFn_t, hip_host_fn_t);
#if HIP_VERSION >= 50100000
TYPE(hipMemPoolAttr, hip_pool_attribute_t);
TYPE(hipMemAllocationGranularity_flags, hip_granularity_t);
TYPE(hipMemPool_t, hip_pool_t);
TYPE(hipMemGenericAllocationHandle_t, hip_memory_t);
LAYOUT(hipUUID, hip_uuid_t);
LAYOUT(hipMemLocation, hip_location_t);
MEMBER(hipMemLocation, hip_location_t, type);
MEMBER(hipMemLocation, hip_location_t, id);
LAYOUT(hipMemPoolProps, hip_pool_properties_t);
MEMBER(hipMemPoolProps, hip_pool_properties_t, allocType);
MEMBER(hipMemPoolProps, hip_pool_properties_t, handleTypes);
MEMBER(hipMemPoolProps, hip_pool_properties_t, location);
MEMBER(hipMemPoolProps, hip_pool_properties_t, win32SecurityAttributes);
LAYOUT(hipMemAccessDesc, hip_access_t);
MEMBER(hipMemAccessDesc, hip_access_t, location);
MEMBER(hipMemAccessDesc, hip_access_t, flags);
#endif
#if HIP_VERSION >= 50300000
TYPE(hipUserObject_t, hip_user_object_t);
LAYOUT(hipMemAllocationProp, hip_allocation_t);
MEMBER(hipMemAllocationProp, hip_allocation_t, type);
MEMBER(hipMemAllocationProp, hip_allocation_t, requestedHandleType);
MEMBER(hipMemAllocationProp, hip_allocation_t, location);
MEMBER(hipMemAllocationProp, hip_allocation_t, win32HandleMetaData);
MEMBER(hipMemAllocationProp, hip_allocation_t, allocFlags.usage);
#endif

/* ---- signatures: our list, with HIP's names for the types ---- */

#define hip_error_t hipError_t
#define hip_attribute_t hipDeviceAttribute_t
#define hip_copy_kind_t hipMemcpyKind
#define hip_advice_t hipMemoryAdvise
#define hip_capture_status_t hipStreamCaptureStatus
#define hip_capture_mode_t hipStreamCaptureMode
#define hip_pool_attribute_t hipMemPoolAttr
#define hip_granularity_t hipMemAllocationGranularity_flags
#define hip_device_t hipDevice_t
#define hip_stream_t hipStream_t
#define hip_event_t hipEvent_t
#define hip_pool_t hipMemPool_t
#define hip_graph_t hipGraph_t
#define hip_graph_node_t hipGraphNode_t
#define hip_user_object_t hipUserObject_t
#define hip_memory_t hipMemGenericAllocationHandle_t
#define hip_host_fn_t hipHostFn_t
#define hip_uuid_t hipUUID
#define hip_pool_properties_t hipMemPoolProps
#define hip_allocation_t hipMemAllocationProp
#define hip_access_t hipMemAccessDesc

#define HIP(need, result, name, parameters)                                            \
    static_assert(                                                                     \
        __builtin_types_compatible_p(__typeof__(&name), result(*) parameters),         \
        "signature of " #name);
#include "driver/hip_functions.def"
#undef HIP

/* ---- the library ---- */

static const char *const functions[] = {
#define HIP(need, result, name, parameters) #name,
#include "driver/hip_functions.def"
#undef HIP
};

static void library_has_each_function(void **state)
{
    char file[40];
    void *library;

    snprintf(file, sizeof(file), "libamdhip64.so.%d", HIP_VERSION_MAJOR);
    library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        printf("skipped: %s\n", dlerror());
        exit(77);
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++) {
        if (dlsym(library, functions[i]) == NULL) {
            fail_msg("%s has no %s", file, functions[i]);
        }
    }
}

/* A constant that no static assertion takes. */
static void per_thread_default_stream_has_the_same_handle(void **state)
{
    assert_ptr_equal(hipStreamPerThread, RMM_STREAM_PER_THREAD);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(per_thread_default_stream_has_the_same_handle),
        cmocka_unit_test(library_has_each_function)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
