/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What test_diag_inject.c and test_diag_inject_order.c are made of: a librmm-c that only
 * attaches, the libraries with a fake CUPTI and a fake driver, launches, and cases that run in
 * a child each.
 */
#ifndef RMM_TESTS_UNIT_INJECT_FIXTURE_H
#define RMM_TESTS_UNIT_INJECT_FIXTURE_H

#include "harness/harness.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmm/sys/diag.h>

#include "diag/diag_format.h"
#include "diag/modes.h"
#include "unit/fake/fake_cupti.h"

#define BASE 0x7f4000000000ull

/* --- a librmm-c that only attaches ------------------------------------------------- */

static rmm_diag_hooks_v1_t hooks; /* on_alloc NULL: nobody attached */
static void *side_memory;
static size_t side_bytes;
static const char *driver_name = "cuda";
static rmm_diag_event_fn observer;
static void *observer_context;
static uint32_t side_files_to_refuse;

static inline rmm_status_t
side_file(const char *suffix, size_t bytes, void **memory_out)
{
    assert_string_equal(suffix, "diag");
    if (side_files_to_refuse > 0) {
        side_files_to_refuse--;
        return RMM_ERR_OUT_OF_HOST_MEMORY;
    }
    side_memory = calloc(1, bytes);
    assert_non_null(side_memory);
    side_bytes = bytes;
    *memory_out = side_memory;
    return RMM_OK;
}

static inline void observe(rmm_diag_event_fn fn, void *context)
{
    observer = fn;
    observer_context = context;
}

static inline rmm_status_t
attach(const rmm_diag_hooks_v1_t *new_hooks, rmm_diag_services_v1_t *services)
{
    hooks = *new_hooks;
    services->driver_name = driver_name;
    services->observe = strcmp(driver_name, "sim") == 0 ? observe : NULL;
    services->side_file = side_file;
    services->block_bytes = sizeof(rmm_diag_block_v1_t);
    return RMM_OK;
}

static inline rmm_status_t
refuse(const rmm_diag_hooks_v1_t *new_hooks, rmm_diag_services_v1_t *services)
{
    return RMM_ERR_UNSUPPORTED;
}

static inline const rmm_diag_header_t *header(void)
{
    return side_memory;
}

static inline const rmm_diag_row_t *row_of(uint64_t address)
{
    const char *rows = (const char *)side_memory + header()->rows.offset;

    for (uint32_t i = 0; i < header()->rows.used; i++) {
        const rmm_diag_row_t *row =
            (const void *)(rows + (size_t)i * header()->rows.stride);

        if (row->live && row->address == address) {
            return row;
        }
    }
    return NULL;
}

static inline const char *kernel_name(uint32_t index)
{
    const char *kernels = (const char *)side_memory + header()->kernels.offset;
    const rmm_diag_kernel_t *kernel =
        (const void *)(kernels + (size_t)index * header()->kernels.stride);

    return index < header()->kernels.used ? kernel->name : "none";
}

static inline void add_block(uint64_t address, uint64_t bytes)
{
    rmm_diag_block_v1_t block = {.address = address, .bytes = bytes, .resource_id = 1};

    hooks.on_alloc(hooks.context, &block);
}

static inline void remove_block(uint64_t address, uint64_t bytes)
{
    rmm_diag_block_v1_t block = {.address = address, .bytes = bytes, .resource_id = 1};

    hooks.on_free(hooks.context, &block);
}

/* --- the libraries ----------------------------------------------------------------- */

static struct {
    fake_cupti_control_t *(*control)(void);
    bool (*enabled)(CUpti_CallbackDomain, CUpti_CallbackId);
    void (*call)(CUpti_CallbackDomain, CUpti_CallbackId, const void *);
    uint32_t (*queries)(void);
    int (*initialize)(void);
    rmm_diag_injected_fn injected;
} lib;

static inline void get(void *library, const char *name, void *function_out)
{
    void *symbol = dlsym(library, name);

    assert_non_null(symbol);
    memcpy(function_out, &symbol, sizeof(symbol));
}

static inline void *load(const char *variable)
{
    const char *path = getenv(variable);
    void *library = NULL;

    assert_non_null(path);
    library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) {
        fail_msg("%s", dlerror());
    }
    return library;
}

static inline void load_all(void)
{
    void *cupti = load("RMM_TEST_FAKE_CUPTI");
    void *inject = load("RMM_TEST_INJECT");

    get(cupti, "fake_cupti_control", &lib.control);
    get(cupti, "fake_cupti_enabled", &lib.enabled);
    get(cupti, "fake_cupti_call", &lib.call);
    get(load("RMM_TEST_FAKE_CUDA"), "fake_cuda_queries", &lib.queries);
    get(inject, "InitializeInjection", &lib.initialize);
    get(inject, RMM_DIAG_INJECTED_SYMBOL, &lib.injected);
    assert_int_equal(lib.initialize(), 1);
}

static inline void start(const char *mode)
{
    load_all();
    setenv("RMM_DIAG", mode, 1);
    lib.injected(attach);
}

/* Run a case in a child; its failed assertions end it with another status. */
static inline void in_child(void (*body)(void))
{
    pid_t child = 0;
    int status = 0;

    fflush(NULL);
    child = fork();
    if (child == 0) {
        body();
        fflush(NULL);
        _exit(42);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 42);
}

#define CASE(name)                                                                     \
    static void name##_body(void);                                                     \
    static void name(void **state)                                                     \
    {                                                                                  \
        (void)state;                                                                   \
        in_child(name##_body);                                                         \
    }                                                                                  \
    static void name##_body(void)

/* --- launches ---------------------------------------------------------------------- */

static inline CUpti_CallbackData
call_data(const void *params, const char *name, CUresult *result)
{
    return (CUpti_CallbackData){
        .callbackSite = CUPTI_API_EXIT,
        .functionParams = params,
        .functionReturnValue = result,
        .symbolName = name,
        .context = (CUcontext)(uintptr_t)3,
        .contextUid = 9,
    };
}

static inline void call(CUpti_CallbackId id, const void *params, const char *name)
{
    CUresult result = CUDA_SUCCESS;
    CUpti_CallbackData data = call_data(params, name, &result);

    lib.call(CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

static inline void launch_through(
    CUpti_CallbackId id, const fake_function_t *function, uint64_t pointer,
    const char *name)
{
    int number = 5;
    void *addresses[] = {&number, &pointer};
    cuLaunchKernel_params params = {
        .f = (CUfunction)(uintptr_t)function, .kernelParams = addresses};

    call(id, &params, name);
}

/* (int, void *) */
static const fake_function_t function_of_two = {
    .count = 2, .offsets = {0, 8}, .sizes = {4, 8}};

static const fake_function_t kernel_of_two = {
    .is_kernel = true, .count = 2, .offsets = {0, 8}, .sizes = {4, 8}};

/* The kernel reduce, which is given this pointer. */
static inline void
launch_reduce_with(CUpti_CallbackId id, CUstream stream, uint64_t pointer)
{
    int number = 5;
    void *addresses[] = {&number, &pointer};
    cuLaunchKernel_params params = {
        .f = (CUfunction)(uintptr_t)&function_of_two,
        .hStream = stream,
        .kernelParams = addresses};

    call(id, &params, "reduce");
}

/* It is given the block at BASE. */
static inline void launch_reduce_on(CUpti_CallbackId id, CUstream stream)
{
    launch_reduce_with(id, stream, BASE);
}

static inline const rmm_diag_finding_t *finding(uint32_t i)
{
    const char *findings = (const char *)side_memory + header()->findings.offset;

    assert_true(i < header()->findings.used);
    return (const void *)(findings + (size_t)i * header()->findings.stride);
}

/* As the driver would be called next. */
static inline void enter(CUpti_CallbackId id, const void *params, const char *name)
{
    CUpti_CallbackData data = call_data(params, NULL, NULL);

    data.callbackSite = CUPTI_API_ENTER;
    data.functionName = name;
    lib.call(CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

/* As an operator, by diag/mode: the next call or block applies it. */
static inline void want(uint32_t modes)
{
    rmm_diag_header_t *shown = side_memory;

    atomic_store(&shown->modes_wanted, modes | RMM_DIAG_MODES_SET);
}

#endif /* RMM_TESTS_UNIT_INJECT_FIXTURE_H */
