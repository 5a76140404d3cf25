/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The types that the library passes to HIP's runtime and gets from it, declared here so that it
 * builds on machines without ROCm. tests/hip/test_hip_abi.c compares each type, value and
 * signature with the headers of ROCm at compile time.
 *
 * Enums are unsigned int, as the C ABI has them. No type here differs between the HIP
 * versions that are used with it: hip_allocation_t is that of 5.3, which brought the
 * attribute that says whether a device has virtual memory.
 */
#ifndef RMM_DRIVER_HIP_TYPES_H
#define RMM_DRIVER_HIP_TYPES_H

#include <stddef.h>
#include <stdint.h>

typedef unsigned int hip_error_t;                /* hipError_t */
typedef unsigned int hip_attribute_t;            /* hipDeviceAttribute_t */
typedef unsigned int hip_copy_kind_t;            /* hipMemcpyKind */
typedef unsigned int hip_advice_t;               /* hipMemoryAdvise */
typedef unsigned int hip_capture_status_t;       /* hipStreamCaptureStatus */
typedef unsigned int hip_capture_mode_t;         /* hipStreamCaptureMode */
typedef unsigned int hip_pool_attribute_t;       /* hipMemPoolAttr */
typedef unsigned int hip_granularity_t;          /* ..Granularity_flags */
typedef int hip_device_t;                        /* hipDevice_t */
typedef struct ihipStream_t *hip_stream_t;       /* hipStream_t */
typedef struct ihipEvent_t *hip_event_t;         /* hipEvent_t */
typedef struct ihipMemPoolHandle_t *hip_pool_t;  /* hipMemPool_t */
typedef struct ihipGraph *hip_graph_t;           /* hipGraph_t */
typedef struct hipGraphNode *hip_graph_node_t;   /* hipGraphNode_t */
typedef struct hipUserObject *hip_user_object_t; /* hipUserObject_t */
typedef struct ihipMemGenericAllocationHandle *hip_memory_t; /* ..AllocationHandle_t */
typedef void (*hip_host_fn_t)(void *context);                /* hipHostFn_t */

enum {
    HIP_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS = 9,
    HIP_ATTRIBUTE_MANAGED_MEMORY = 24,
    HIP_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS = 65,
    HIP_ATTRIBUTE_MEMORY_POOLS = 88,
    HIP_ATTRIBUTE_VIRTUAL_MEMORY = 89,           /* from 5.3 */
    HIP_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES = 91, /* from 6.1 */

    HIP_EVENT_DISABLE_TIMING = 2,
    HIP_HOST_PORTABLE = 1,
    HIP_MANAGED_ATTACH_GLOBAL = 1,
    HIP_COPY_DEFAULT = 4,
    HIP_ADVICE_PREFERRED_LOCATION = 3,

    HIP_CAPTURE_STATUS_NONE = 0,
    HIP_CAPTURE_STATUS_ACTIVE = 1,
    HIP_USER_OBJECT_NO_DESTRUCTOR_SYNC = 1, /* from 5.3 */
    HIP_GRAPH_USER_OBJECT_MOVE = 1,         /* from 5.3 */

    HIP_POOL_RELEASE_THRESHOLD = 4,
    HIP_POOL_RESERVED_BYTES = 5,
    HIP_POOL_USED_BYTES = 7,

    HIP_ALLOCATION_PINNED = 1,
    HIP_LOCATION_DEVICE = 1,
    HIP_ACCESS_READ_WRITE = 3,
    HIP_GRANULARITY_MINIMUM = 0
};

typedef struct hip_uuid { /* hipUUID */
    char bytes[16];
} hip_uuid_t;

typedef struct hip_location { /* hipMemLocation */
    unsigned int type;
    int id;
} hip_location_t;

typedef struct hip_pool_properties { /* hipMemPoolProps */
    unsigned int allocType;
    unsigned int handleTypes;
    hip_location_t location;
    void *win32SecurityAttributes;
    unsigned char reserved[64]; /* zero; later versions have names for some of it */
} hip_pool_properties_t;

typedef struct hip_allocation { /* hipMemAllocationProp, from 5.3 */
    unsigned int type;
    unsigned int requestedHandleType;
    hip_location_t location;
    void *win32HandleMetaData;
    struct {
        unsigned char compressionType;
        unsigned char gpuDirectRDMACapable;
        unsigned short usage;
    } allocFlags;
} hip_allocation_t;

typedef struct hip_access { /* hipMemAccessDesc */
    hip_location_t location;
    unsigned int flags;
} hip_access_t;

#endif /* RMM_DRIVER_HIP_TYPES_H */
