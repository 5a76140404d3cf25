/* SPDX-License-Identifier: Apache-2.0 */
/*
 * See nvtx_tool.h. NVTX_TOOL_MODE says what is wrong with the tool:
 *   refuses   InitializeInjectionNvtxExtension() returns 0
 *   partial   it has no function that registers regions
 *   no_core   InitializeInjectionNvtx2() returns 0: there are no domains
 *   no_heaps  every heap is refused
 *
 * Locking: one lock for all.
 */
#include "sim/nvtx/nvtx_tool.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/nvtx_abi.h"

typedef struct area {
    uintptr_t begin, end;
    struct area *next;
} area_t;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static area_t *heaps, *regions;
static nvtx_tool_state_t seen = {.has_domain = true};
static const char domain[] = "rmm-c";
static pid_t owner;  /* a forked child has no tool */
static bool is_over; /* its static objects are gone, as those of a tool in C++ */

/* The names that NVTX's protocol and nvtx_tool.h prescribe. */
int InitializeInjectionNvtx2(nvtx_abi_tables_fn tables);
int InitializeInjectionNvtxExtension(nvtx_abi_module_t *module);
void nvtx_tool_state(nvtx_tool_state_t *out);
bool nvtx_tool_allows(const void *ptr, size_t bytes);

static bool mode_is(const char *mode)
{
    const char *set = getenv("NVTX_TOOL_MODE");

    return set != NULL && strcmp(set, mode) == 0;
}

__attribute__((format(printf, 1, 2))) static void violation(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(seen.last_violation, sizeof(seen.last_violation), format, arguments);
    va_end(arguments);
    fprintf(stderr, "nvtx_tool: %s\n", seen.last_violation);
    seen.violations++;
}

/* --- areas ----------------------------------------------------------------------------- */

static area_t *find(area_t *list, uintptr_t begin, uintptr_t end)
{
    while (list != NULL && (list->end <= begin || end <= list->begin)) {
        list = list->next;
    }
    return list;
}

static void add(area_t **list, uintptr_t begin, uintptr_t end)
{
    area_t *area = malloc(sizeof(*area));

    if (area == NULL) {
        abort();
    }
    *area = (area_t){begin, end, *list};
    *list = area;
}

static bool take_out(area_t **list, uintptr_t begin)
{
    while (*list != NULL && (*list)->begin != begin) {
        list = &(*list)->next;
    }
    if (*list != NULL) {
        area_t *area = *list;

        *list = area->next;
        free(area);
        return true;
    }
    return false;
}

/* Called under the lock, with each annotation. */
static void look_at(void *given)
{
    if (is_over) {
        violation("called after its end");
    }
    seen.has_domain = seen.has_domain && given == (void *)(uintptr_t)domain;
}

/* --- the memory extension -------------------------------------------------------------- */

/* The handle of a heap is its address. */
static void *heap_register(void *given, const nvtx_abi_heap_t *heap)
{
    const nvtx_abi_range_t *range = heap->range;
    uintptr_t begin = (uintptr_t)range->ptr;

    if (mode_is("no_heaps")) {
        return NULL;
    }
    pthread_mutex_lock(&lock);
    look_at(given);
    if (heap->compat_id != NVTX_ABI_MEMORY_COMPAT ||
        heap->struct_size != sizeof(*heap) ||
        heap->usage != NVTX_ABI_HEAP_SUB_ALLOCATOR ||
        heap->type != NVTX_ABI_VIRTUAL_ADDRESS || heap->range_bytes != sizeof(*range) ||
        range->bytes == 0) {
        violation("a heap at %#jx is described wrongly", (uintmax_t)begin);
    }
    if (find(heaps, begin, begin + range->bytes) != NULL) {
        violation("a heap at %#jx overlaps another", (uintmax_t)begin);
    }
    add(&heaps, begin, begin + range->bytes);
    seen.heaps++;
    seen.heaps_begun++;
    pthread_mutex_unlock(&lock);
    return (void *)begin;
}

static void heap_unregister(void *given, void *handle)
{
    area_t *heap;

    pthread_mutex_lock(&lock);
    look_at(given);
    heap = find(heaps, (uintptr_t)handle, (uintptr_t)handle + 1);
    if (heap != NULL && find(regions, heap->begin, heap->end) != NULL) {
        violation("a heap at %p ends with regions in it", handle);
    }
    if (take_out(&heaps, (uintptr_t)handle)) {
        seen.heaps--;
    } else {
        violation("no heap at %p ends", handle);
    }
    pthread_mutex_unlock(&lock);
}

static void begin_region(const nvtx_abi_regions_t *desc, const nvtx_abi_range_t *range)
{
    uintptr_t begin = (uintptr_t)range->ptr;
    uintptr_t end = begin + range->bytes;
    area_t *heap = find(heaps, (uintptr_t)desc->heap, (uintptr_t)desc->heap + 1);

    if (heap == NULL || heap->begin != (uintptr_t)desc->heap || begin < heap->begin ||
        end > heap->end || range->bytes == 0) {
        violation("a region at %#jx is not inside of its heap", (uintmax_t)begin);
    }
    if (find(regions, begin, end) != NULL) {
        violation("a region at %#jx overlaps another", (uintmax_t)begin);
    }
    add(&regions, begin, end);
    seen.regions++;
    seen.regions_begun++;
}

static void regions_register(void *given, const nvtx_abi_regions_t *desc)
{
    const nvtx_abi_range_t *ranges = desc->elements;

    pthread_mutex_lock(&lock);
    look_at(given);
    if (desc->compat_id != NVTX_ABI_MEMORY_COMPAT ||
        desc->struct_size != sizeof(*desc) || desc->type != NVTX_ABI_VIRTUAL_ADDRESS ||
        desc->element_bytes != sizeof(*ranges) || desc->count == 0) {
        violation("regions of a heap at %p are described wrongly", desc->heap);
    }
    for (size_t i = 0; i < desc->count; i++) {
        begin_region(desc, &ranges[i]);
    }
    pthread_mutex_unlock(&lock);
}

static void regions_unregister(void *given, const nvtx_abi_region_refs_t *desc)
{
    const void *const *pointers = desc->elements;

    pthread_mutex_lock(&lock);
    look_at(given);
    if (desc->compat_id != NVTX_ABI_MEMORY_COMPAT ||
        desc->struct_size != sizeof(*desc) || desc->type != NVTX_ABI_REF_POINTER ||
        desc->element_bytes != sizeof(void *)) {
        violation("the end of %zu regions is described wrongly", desc->count);
    }
    for (size_t i = 0; i < desc->count; i++) {
        if (take_out(&regions, (uintptr_t)pointers[i])) {
            seen.regions--;
        } else {
            violation("no region at %p ends", pointers[i]);
        }
    }
    pthread_mutex_unlock(&lock);
}

/* --- what the protocol calls ------------------------------------------------------------- */

static void *create_domain(const char *name)
{
    return strcmp(name, domain) == 0 ? (void *)(uintptr_t)domain : NULL;
}

int InitializeInjectionNvtx2(nvtx_abi_tables_fn tables)
{
    const nvtx_abi_callbacks_t *callbacks = tables(NVTX_ABI_TABLE_CALLBACKS);
    nvtx_abi_function_t **slots;
    unsigned int count;

    if (mode_is("no_core") || callbacks == NULL ||
        tables(NVTX_ABI_TABLE_VERSION) == NULL ||
        callbacks->module_table(NVTX_ABI_MODULE_CORE2, &slots, &count) == 0 ||
        count <= NVTX_ABI_DOMAIN_CREATE_A) {
        return 0;
    }
    *slots[NVTX_ABI_DOMAIN_CREATE_A] = (nvtx_abi_function_t)create_domain;
    return 1;
}

int InitializeInjectionNvtxExtension(nvtx_abi_module_t *module)
{
    intptr_t *slots = module->segments[0].slots;

    if (mode_is("refuses") || module->nvtx_version != NVTX_ABI_VERSION ||
        module->struct_size != sizeof(*module) ||
        module->module_id != NVTX_ABI_MEMORY_MODULE ||
        module->compat_id != NVTX_ABI_MEMORY_COMPAT || module->segment_count != 1 ||
        module->segments[0].slot_count <= NVTX_ABI_REGIONS_UNREGISTER) {
        return 0;
    }
    slots[NVTX_ABI_HEAP_REGISTER] = (intptr_t)heap_register;
    slots[NVTX_ABI_HEAP_UNREGISTER] = (intptr_t)heap_unregister;
    slots[NVTX_ABI_REGIONS_REGISTER] =
        mode_is("partial") ? NVTX_ABI_SLOT_DISABLED : (intptr_t)regions_register;
    slots[NVTX_ABI_REGIONS_UNREGISTER] = (intptr_t)regions_unregister;
    return 1;
}

/* --- for tests ------------------------------------------------------------------------- */

void nvtx_tool_state(nvtx_tool_state_t *out)
{
    pthread_mutex_lock(&lock);
    *out = seen;
    pthread_mutex_unlock(&lock);
}

bool nvtx_tool_allows(const void *ptr, size_t bytes)
{
    uintptr_t begin = (uintptr_t)ptr;
    uintptr_t end = begin + bytes;
    area_t *region;
    bool allowed;

    pthread_mutex_lock(&lock);
    region = find(regions, begin, end);
    allowed = region != NULL ? region->begin <= begin && end <= region->end
                             : find(heaps, begin, end) == NULL;
    pthread_mutex_unlock(&lock);
    return allowed;
}

static void end(void)
{
    pthread_mutex_lock(&lock);
    is_over = getpid() == owner;
    if (is_over && (heaps != NULL || regions != NULL)) {
        violation(
            "%ju heaps and %ju regions are left", (uintmax_t)seen.heaps,
            (uintmax_t)seen.regions);
    }
    pthread_mutex_unlock(&lock);
}

__attribute__((constructor)) static void begin(void)
{
    owner = getpid();
    if (atexit(end) != 0) {
        abort();
    }
}

/* Also of a program that does not ask. */
__attribute__((destructor)) static void report(void)
{
    if (seen.violations != 0) {
        fprintf(
            stderr, "nvtx_tool: %ju violations, the last: %s\n",
            (uintmax_t)seen.violations, seen.last_violation);
        _exit(NVTX_TOOL_STATUS);
    }
}
