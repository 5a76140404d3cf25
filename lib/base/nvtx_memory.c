/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See nvtx_memory.h. A tool is initialised twice, as NVIDIA's headers do it: the core, which
 * gives a domain, and then the memory extension. A tool without the core still works: the
 * domain is the global one, NULL.
 *
 * The tool writes its functions into `core_slots` and `slots` while it initialises, on the
 * thread that opens it; they do not change later. The tool stays loaded until the process ends.
 */
#include "base/nvtx_memory.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/nvtx_abi.h"
#include "log/log.h"

static nvtx_abi_function_t core_slots[NVTX_ABI_MODULES][NVTX_ABI_MODULE_SLOTS];
static nvtx_abi_function_t *core_tables[NVTX_ABI_MODULES][NVTX_ABI_MODULE_SLOTS];
static intptr_t slots[NVTX_ABI_MEMORY_SLOTS];
static void *domain;
static bool is_loaded;    /* these two: what rmm__nvtx_memory_log() says */
static char refusal[256]; /* "": none */

static nvtx_abi_heap_register_fn heap_register;
static nvtx_abi_heap_unregister_fn heap_unregister;
static nvtx_abi_regions_register_fn regions_register;
static nvtx_abi_regions_unregister_fn regions_unregister;

/* --- the core -------------------------------------------------------------------------- */

static int
module_table(int module, nvtx_abi_function_t ***slots_out, unsigned int *count_out)
{
    /* slot 0 is none; by module: none, core, CUDA, OpenCL, CUDART, core 2, sync */
    static const unsigned int counts[NVTX_ABI_MODULES] = {0, 16, 9, 15, 7, 16, 7};

    if (module <= 0 || module >= NVTX_ABI_MODULES) {
        return 0;
    }
    for (unsigned int i = 0; i < counts[module]; i++) {
        core_tables[module][i] = &core_slots[module][i];
    }
    if (count_out != NULL) {
        *count_out = counts[module];
    }
    if (slots_out != NULL) {
        *slots_out = core_tables[module];
    }
    return 1;
}

static void set_tool_version(uint32_t version)
{
    (void)version;
}

static const void *tables(uint32_t table_id)
{
    static const nvtx_abi_callbacks_t callbacks = {sizeof(callbacks), module_table};
    static const nvtx_abi_version_t version = {
        sizeof(version), NVTX_ABI_VERSION, 0, set_tool_version};

    return table_id == NVTX_ABI_TABLE_CALLBACKS ? (const void *)&callbacks
           : table_id == NVTX_ABI_TABLE_VERSION ? (const void *)&version
                                                : NULL;
}

static void open_domain(void *library)
{
    void *symbol = dlsym(library, NVTX_ABI_CORE_INIT);
    nvtx_abi_core_init_fn init;
    nvtx_abi_domain_create_fn create;

    if (symbol == NULL) {
        (void)dlerror(); /* leave no message for the program to find */
        return;
    }
    memcpy(&init, &symbol, sizeof(init));
    if (init(tables) == 0) {
        return;
    }
    memcpy(
        &create, &core_slots[NVTX_ABI_MODULE_CORE2][NVTX_ABI_DOMAIN_CREATE_A],
        sizeof(create));
    domain = create != NULL ? create("rmm-c") : NULL;
}

/* --- the extension --------------------------------------------------------------------- */

static bool has_function(int slot)
{
    return slots[slot] != 0 && slots[slot] != NVTX_ABI_SLOT_DISABLED;
}

/* NULL, or why the tool cannot be used. */
static const char *open_extension(void *library)
{
    static nvtx_abi_segment_t segment = {1, NVTX_ABI_MEMORY_SLOTS, slots};
    static nvtx_abi_module_t module = {
        .nvtx_version = NVTX_ABI_VERSION,
        .struct_size = sizeof(module),
        .module_id = NVTX_ABI_MEMORY_MODULE,
        .compat_id = NVTX_ABI_MEMORY_COMPAT,
        .segment_count = 1,
        .segments = &segment,
    };
    void *symbol = dlsym(library, NVTX_ABI_EXTENSION_INIT);
    nvtx_abi_extension_init_fn init;

    if (symbol == NULL) {
        (void)dlerror();
        return "it has no " NVTX_ABI_EXTENSION_INIT;
    }
    memcpy(&init, &symbol, sizeof(init));
    if (init(&module) == 0) {
        return "it refuses NVTX's memory extension";
    }
    if (!has_function(NVTX_ABI_HEAP_REGISTER) ||
        !has_function(NVTX_ABI_HEAP_UNREGISTER) ||
        !has_function(NVTX_ABI_REGIONS_REGISTER) ||
        !has_function(NVTX_ABI_REGIONS_UNREGISTER)) {
        return "it lacks the functions for heaps and regions";
    }
    memcpy(&heap_register, &slots[NVTX_ABI_HEAP_REGISTER], sizeof(heap_register));
    memcpy(&heap_unregister, &slots[NVTX_ABI_HEAP_UNREGISTER], sizeof(heap_unregister));
    memcpy(
        &regions_register, &slots[NVTX_ABI_REGIONS_REGISTER], sizeof(regions_register));
    memcpy(
        &regions_unregister, &slots[NVTX_ABI_REGIONS_UNREGISTER],
        sizeof(regions_unregister));
    return NULL;
}

/* --- open ------------------------------------------------------------------------------ */

static const char *tool_path(void)
{
    const char *path = secure_getenv("NVTX_INJECTION64_PATH");

    return path != NULL && path[0] != '\0' ? path : NULL;
}

bool rmm__nvtx_memory_is_asked_for(void)
{
    const char *setting = getenv("RMM_NVTX");

    return tool_path() != NULL && (setting == NULL || strcmp(setting, "off") != 0);
}

/* Anything but "on" and "off" is a mistake, and taken for on. */
static bool setting_is_known(void)
{
    const char *setting = getenv("RMM_NVTX");

    return setting == NULL || strcmp(setting, "on") == 0 || strcmp(setting, "off") == 0;
}

bool rmm__nvtx_memory_open(void)
{
    const char *path = tool_path();
    void *library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
    const char *problem = NULL;

    if (library == NULL) {
        is_loaded = false;
        problem = path != NULL ? dlerror() : "NVTX_INJECTION64_PATH is not set";
    } else {
        is_loaded = true;
        open_domain(library);
        problem = open_extension(library);
    }
    if (problem != NULL) { /* stays loaded: the core may have been initialised */
        snprintf(refusal, sizeof(refusal), "%s", problem);
    }
    return problem == NULL;
}

void rmm__nvtx_memory_log(void)
{
    const char *path = tool_path();

    path = path != NULL ? path : "";
    if (!setting_is_known()) {
        rmm__log_warn(
            "RMM_NVTX '%s' is ignored: expected on or off", getenv("RMM_NVTX"));
    }
    if (!is_loaded) {
        rmm__log_warn(
            "NVTX_INJECTION64_PATH '%s' cannot be loaded, so the blocks of pools "
            "are not annotated: %s",
            path, refusal);
    } else if (refusal[0] != '\0') { /* usual: a profiler wants ranges only */
        rmm__log_info(
            "NVTX_INJECTION64_PATH '%s': the blocks of pools are not annotated: %s",
            path, refusal);
    } else {
        rmm__log_info("the blocks of pools are annotated for '%s' (NVTX)", path);
    }
}

/* --- annotations ----------------------------------------------------------------------- */

void *rmm__nvtx_heap_register(const void *ptr, size_t bytes)
{
    const nvtx_abi_range_t range = {bytes, ptr};
    const nvtx_abi_heap_t heap = {
        .compat_id = NVTX_ABI_MEMORY_COMPAT,
        .struct_size = sizeof(heap),
        .usage = NVTX_ABI_HEAP_SUB_ALLOCATOR,
        .type = NVTX_ABI_VIRTUAL_ADDRESS,
        .range_bytes = sizeof(range),
        .range = &range,
    };
    void *handle = heap_register(domain, &heap);

    return handle != NVTX_ABI_NO_HANDLE ? handle : NULL;
}

void rmm__nvtx_heap_unregister(void *heap)
{
    heap_unregister(domain, heap);
}

void rmm__nvtx_region_register(void *heap, const void *ptr, size_t bytes)
{
    const nvtx_abi_range_t range = {bytes, ptr};
    const nvtx_abi_regions_t regions = {
        .compat_id = NVTX_ABI_MEMORY_COMPAT,
        .struct_size = sizeof(regions),
        .type = NVTX_ABI_VIRTUAL_ADDRESS,
        .heap = heap,
        .count = 1,
        .element_bytes = sizeof(range),
        .elements = &range,
    };

    regions_register(domain, &regions);
}

void rmm__nvtx_region_unregister(const void *ptr)
{
    const nvtx_abi_region_refs_t refs = {
        .compat_id = NVTX_ABI_MEMORY_COMPAT,
        .struct_size = sizeof(refs),
        .type = NVTX_ABI_REF_POINTER,
        .count = 1,
        .element_bytes = sizeof(ptr),
        .elements = &ptr,
    };

    regions_unregister(domain, &refs);
}
