/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The part of NVTX's binary interface that nvtx_memory.c needs: what a tool that
 * NVTX_INJECTION64_PATH names exports, and what it is given. Declared here because the
 * library must not need the CUDA toolkit to be built; tests/sim/nvtx/test_nvtx_abi.c
 * compares each struct and number with NVIDIA's headers (nvToolsExtMem.h,
 * nvtxDetail/nvtxExtTypes.h, nvtxDetail/nvtxTypes.h of NVTX 3).
 */
#ifndef RMM_BASE_NVTX_ABI_H
#define RMM_BASE_NVTX_ABI_H

#include <stddef.h>
#include <stdint.h>

#define NVTX_ABI_VERSION 3
#define NVTX_ABI_NO_HANDLE ((void *)(intptr_t)-1) /* what a tool that is off returns */

/* --- the core: exported as InitializeInjectionNvtx2 --------------------------------------- */

#define NVTX_ABI_CORE_INIT "InitializeInjectionNvtx2"

enum {
    NVTX_ABI_TABLE_CALLBACKS = 1,
    NVTX_ABI_TABLE_VERSION = 3,
    NVTX_ABI_MODULES = 7,         /* core 1, CUDA, OpenCL, CUDART, core 2, sync 6 */
    NVTX_ABI_MODULE_CORE2 = 5,    /* the one with domains */
    NVTX_ABI_MODULE_SLOTS = 16,   /* the most that a module has */
    NVTX_ABI_DOMAIN_CREATE_A = 12 /* in core 2 */
};

typedef void (*nvtx_abi_function_t)(void);
typedef const void *(*nvtx_abi_tables_fn)(uint32_t table_id);
typedef int (*nvtx_abi_core_init_fn)(nvtx_abi_tables_fn tables);
typedef void *(*nvtx_abi_domain_create_fn)(const char *name);

typedef struct nvtx_abi_callbacks {
    size_t struct_size;
    /* 1, and the module's slots, into which the tool writes its functions; or 0 */
    int (*module_table)(
        int module, nvtx_abi_function_t ***slots_out, unsigned int *count_out);
} nvtx_abi_callbacks_t;

typedef struct nvtx_abi_version {
    size_t struct_size;
    uint32_t version;
    uint32_t reserved;
    void (*set_tool_version)(uint32_t version);
} nvtx_abi_version_t;

/* --- extensions: exported as InitializeInjectionNvtxExtension ------------------------------ */

#define NVTX_ABI_EXTENSION_INIT "InitializeInjectionNvtxExtension"

typedef struct nvtx_abi_segment {
    size_t id;
    size_t slot_count;
    intptr_t *slots; /* the tool writes its functions into them */
} nvtx_abi_segment_t;

typedef struct nvtx_abi_module {
    uint16_t nvtx_version;
    uint16_t struct_size;
    uint16_t module_id;
    uint16_t compat_id;
    size_t segment_count;
    nvtx_abi_segment_t *segments;
    intptr_t (*export_function)(uint32_t id); /* NULL: none */
    const void *info;                         /* NULL: none */
} nvtx_abi_module_t;

typedef int (*nvtx_abi_extension_init_fn)(nvtx_abi_module_t *module);

/* --- the memory extension ----------------------------------------------------------------- */

enum {
    NVTX_ABI_MEMORY_MODULE = 1,
    NVTX_ABI_MEMORY_COMPAT = 0x0102,
    NVTX_ABI_MEMORY_SLOTS = 63,

    NVTX_ABI_HEAP_REGISTER = 0, /* slots */
    NVTX_ABI_HEAP_UNREGISTER = 1,
    NVTX_ABI_REGIONS_REGISTER = 3,
    NVTX_ABI_REGIONS_UNREGISTER = 5,

    NVTX_ABI_SLOT_DISABLED = 1, /* and 0: the tool does not have this function */
    NVTX_ABI_HEAP_SUB_ALLOCATOR = 1,
    NVTX_ABI_VIRTUAL_ADDRESS = 1,
    NVTX_ABI_REF_POINTER = 1
};

typedef struct nvtx_abi_range {
    size_t bytes;
    const void *ptr;
} nvtx_abi_range_t;

typedef struct nvtx_abi_heap {
    uint16_t compat_id;
    uint16_t struct_size;
    uint32_t reserved;
    uint32_t usage;
    uint32_t type;
    size_t range_bytes; /* of the struct that range points to */
    const void *range;
    uint32_t category;
    uint32_t message_type; /* 0: no message */
    const void *message;
} nvtx_abi_heap_t;

typedef struct nvtx_abi_regions {
    uint16_t compat_id;
    uint16_t struct_size;
    uint32_t type;
    void *heap;
    size_t count;
    size_t element_bytes;
    const void *elements;
    void **handles_out; /* NULL: regions are named by their address */
} nvtx_abi_regions_t;

typedef struct nvtx_abi_region_refs {
    uint16_t compat_id;
    uint16_t struct_size;
    uint32_t type;
    size_t count;
    size_t element_bytes;
    const void *elements; /* pointers */
} nvtx_abi_region_refs_t;

typedef void *(*nvtx_abi_heap_register_fn)(void *domain, const nvtx_abi_heap_t *heap);
typedef void (*nvtx_abi_heap_unregister_fn)(void *domain, void *heap);
typedef void (*nvtx_abi_regions_register_fn)(
    void *domain, const nvtx_abi_regions_t *regions);
typedef void (*nvtx_abi_regions_unregister_fn)(
    void *domain, const nvtx_abi_region_refs_t *refs);

#endif /* RMM_BASE_NVTX_ABI_H */
