/* SPDX-License-Identifier: Apache-2.0 */
/*
 * librmm-inject itself, loaded as the CUDA driver loads it, with a fake CUPTI and a fake
 * librmm-c. It keeps its state for the life of a process, so each case runs in a child.
 */
#include "harness/harness.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmm/sys/diag.h>

#include "diag/diag_format.h"
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

static rmm_status_t side_file(const char *suffix, size_t bytes, void **memory_out)
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

static void observe(rmm_diag_event_fn fn, void *context)
{
    observer = fn;
    observer_context = context;
}

static rmm_status_t
attach(const rmm_diag_hooks_v1_t *new_hooks, rmm_diag_services_v1_t *services)
{
    hooks = *new_hooks;
    services->driver_name = driver_name;
    services->observe = strcmp(driver_name, "sim") == 0 ? observe : NULL;
    services->side_file = side_file;
    return RMM_OK;
}

static rmm_status_t
refuse(const rmm_diag_hooks_v1_t *new_hooks, rmm_diag_services_v1_t *services)
{
    (void)new_hooks;
    (void)services;
    return RMM_ERR_UNSUPPORTED;
}

static const rmm_diag_header_t *header(void)
{
    return side_memory;
}

static const rmm_diag_row_t *row_of(uint64_t address)
{
    const char *rows = (const char *)side_memory + header()->rows_offset;

    for (uint32_t i = 0; i < header()->rows_used; i++) {
        const rmm_diag_row_t *row =
            (const void *)(rows + (size_t)i * header()->rows_stride);

        if (row->live && row->address == address) {
            return row;
        }
    }
    return NULL;
}

static const char *kernel_name(uint32_t index)
{
    const char *kernels = (const char *)side_memory + header()->kernels_offset;
    const rmm_diag_kernel_t *kernel =
        (const void *)(kernels + (size_t)index * header()->kernels_stride);

    return index < header()->kernels_used ? kernel->name : "none";
}

static void add_block(uint64_t address, uint64_t bytes)
{
    rmm_diag_block_v1_t block = {.address = address, .bytes = bytes, .resource_id = 1};

    hooks.on_alloc(hooks.context, &block);
}

static void remove_block(uint64_t address, uint64_t bytes)
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

static void get(void *library, const char *name, void *function_out)
{
    void *symbol = dlsym(library, name);

    assert_non_null(symbol);
    memcpy(function_out, &symbol, sizeof(symbol));
}

static void *load(const char *variable)
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

static void load_all(void)
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

static void start(const char *mode)
{
    load_all();
    setenv("RMM_DIAG", mode, 1);
    lib.injected(attach);
}

/* Run a case in a child; its failed assertions end it with another status. */
static void in_child(void (*body)(void))
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

static CUpti_CallbackData
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

static void call(CUpti_CallbackId id, const void *params, const char *name)
{
    CUresult result = CUDA_SUCCESS;
    CUpti_CallbackData data = call_data(params, name, &result);

    lib.call(CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

static void launch_through(
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

CASE(does_nothing_unless_asked)
{
    load_all();
    unsetenv("RMM_DIAG");
    lib.injected(attach);
    setenv("RMM_DIAG", "off", 1);
    lib.injected(attach);
    setenv("RMM_DIAG", "", 1);
    lib.injected(attach);
    assert_null(hooks.on_alloc);
    assert_int_equal(lib.control()->subscribed, 0);
}

CASE(without_the_library_it_stays_idle)
{
    setenv("RMM_DIAG", "usage", 1);
    load_all(); /* and nobody calls rmm_diag_injected_v1() */
    assert_int_equal(lib.control()->subscribed, 0);
}

CASE(stays_idle_where_it_may_not_attach)
{
    load_all();
    setenv("RMM_DIAG", "usage", 1);
    lib.injected(refuse);
    assert_int_equal(lib.control()->subscribed, 0);
    assert_null(side_memory);
}

CASE(attaches_to_the_first_of_two_libraries)
{
    void *first = NULL;

    start("usage");
    first = side_memory;
    lib.injected(attach);
    assert_ptr_equal(side_memory, first);
    assert_int_equal(lib.control()->subscribed, 1);
}

CASE(a_mode_that_does_not_exist_is_said_and_nothing_done)
{
    start("bounds");
    assert_int_equal(header()->ready, 1);
    assert_string_equal(header()->source, "error:RMM_DIAG: no mode \"bounds\"");
    assert_int_equal(lib.control()->subscribed, 0);
    add_block(BASE, 4096);
    assert_int_equal(header()->rows_used, 0);
}

CASE(names_the_tool_that_was_first)
{
    load_all();
    lib.control()->subscribe_result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    lib.control()->rival = "CUPTI for Nsight Systems";
    setenv("RMM_DIAG", "usage", 1);
    lib.injected(attach);
    assert_int_equal(header()->ready, 1);
    assert_string_equal(header()->source, "conflict:CUPTI for Nsight Systems");
    assert_string_equal(header()->mode, "usage");
    add_block(BASE, 4096);
    remove_block(BASE, 4096);
    assert_int_equal(header()->rows_used, 0);
}

CASE(says_why_cupti_refuses)
{
    load_all();
    lib.control()->subscribe_result = CUPTI_ERROR_NOT_INITIALIZED;
    setenv("RMM_DIAG", "usage", 1);
    lib.injected(attach);
    assert_string_equal(
        header()->source, "error:cuptiSubscribe: CUPTI_ERROR_NOT_INITIALIZED (15)");
}

CASE(lets_go_of_cupti_when_callbacks_cannot_be_had)
{
    load_all();
    lib.control()->enable_result = CUPTI_ERROR_UNKNOWN;
    setenv("RMM_DIAG", "usage", 1);
    lib.injected(attach);
    assert_string_equal(
        header()->source, "error:cuptiEnableCallback: CUPTI_ERROR_OTHER (999)");
    assert_int_equal(lib.control()->subscribed, 1);
    assert_int_equal(lib.control()->unsubscribed, 1);
}

CASE(takes_a_smaller_side_file_where_there_is_no_room)
{
    side_files_to_refuse = 2;
    start("usage");
    assert_string_equal(header()->source, "active");
    assert_int_equal(header()->rows_count, 2048);
    assert_int_equal(header()->file_bytes, side_bytes);
}

CASE(gives_up_in_silence_without_any_side_file)
{
    side_files_to_refuse = 100;
    start("usage");
    assert_int_equal(lib.control()->subscribed, 0);
    add_block(BASE, 4096); /* the hooks stay, and do nothing */
    remove_block(BASE, 4096);
}

CASE(counts_launches_of_every_kind_of_call)
{
    start("usage");
    assert_string_equal(header()->source, "active");
    assert_string_equal(lib.control()->name, "rmm-c");
    add_block(BASE, 4096);
    launch_through(
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &function_of_two, BASE, "first");
    launch_through(
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel_ptsz, &kernel_of_two, BASE + 100, "k");
    {
        uint64_t pointer = BASE + 200;
        int number = 1;
        void *addresses[] = {&number, &pointer};
        CUlaunchConfig config = {.hStream = NULL};
        cuLaunchKernelEx_params ex = {
            .config = &config,
            .f = (CUfunction)(uintptr_t)&kernel_of_two,
            .kernelParams = addresses};
        cuLaunchCooperativeKernel_params cooperative = {
            .f = (CUfunction)(uintptr_t)&function_of_two, .kernelParams = addresses};

        call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx, &ex, "k");
        call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx_ptsz, &ex, "k");
        call(CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel, &cooperative, "k");
        call(
            CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel_ptsz, &cooperative,
            "last");
    }
    assert_int_equal(header()->launches, 6);
    assert_int_equal(header()->parameter_failures, 0);
    assert_int_equal(row_of(BASE)->launches, 6);
    assert_string_equal(kernel_name(row_of(BASE)->first_kernel), "first");
    assert_string_equal(kernel_name(row_of(BASE)->last_kernel), "last");
}

CASE(ignores_the_way_in_and_launches_that_the_driver_refused)
{
    uint64_t pointer = BASE;
    int number = 1;
    void *addresses[] = {&number, &pointer};
    cuLaunchKernel_params params = {
        .f = (CUfunction)(uintptr_t)&function_of_two, .kernelParams = addresses};
    CUresult result = CUDA_ERROR_INVALID_VALUE;
    CUpti_CallbackData data = call_data(&params, "k", &result);

    start("usage");
    add_block(BASE, 4096);
    lib.call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &data);
    result = CUDA_SUCCESS;
    data.callbackSite = CUPTI_API_ENTER;
    data.functionReturnValue = NULL;
    lib.call(CUPTI_CB_DOMAIN_DRIVER_API, CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &data);
    assert_int_equal(header()->launches, 0);
    assert_int_equal(row_of(BASE)->launches, 0);
}

CASE(asks_the_driver_once_a_function_and_again_after_an_unload)
{
    uint32_t asked = 0;

    start("usage");
    launch_through(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &kernel_of_two, BASE, "k");
    asked = lib.queries();
    assert_true(asked > 0);
    launch_through(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &kernel_of_two, BASE, "k");
    assert_int_equal(lib.queries(), asked);
    lib.call(
        CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_UNLOAD_STARTING, NULL);
    launch_through(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &kernel_of_two, BASE, "k");
    assert_true(lib.queries() > asked);
}

CASE(reads_packed_parameters)
{
    uint64_t buffer[2] = {1, BASE + 16};
    size_t bytes = sizeof(buffer);
    void *extra[] = {
        CU_LAUNCH_PARAM_BUFFER_POINTER, buffer, CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes,
        CU_LAUNCH_PARAM_END};
    cuLaunchKernel_params params = {
        .f = (CUfunction)(uintptr_t)&function_of_two, .extra = extra};

    start("usage");
    add_block(BASE, 4096);
    call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &params, "packed");
    assert_int_equal(row_of(BASE)->launches, 1);
    assert_int_equal(lib.queries(), 0);
}

CASE(a_launch_that_cannot_be_read_is_counted_as_such)
{
    void *extra[] = {(void *)99, NULL, NULL};
    cuLaunchKernel_params params = {
        .f = (CUfunction)(uintptr_t)&function_of_two, .extra = extra};

    start("usage");
    call(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &params, "odd");
    assert_int_equal(header()->launches, 1);
    assert_int_equal(header()->parameter_failures, 1);
}

CASE(a_forked_child_touches_nothing)
{
    pid_t child = 0;
    int status = 0;

    start("usage");
    add_block(BASE, 4096);
    child = fork();
    if (child == 0) {
        uint64_t launches = header()->launches;

        launch_through(
            CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &function_of_two, BASE, "k");
        add_block(BASE + 4096, 4096);
        _exit(header()->launches == launches && header()->rows_used == 1 ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    launch_through(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &function_of_two, BASE, "k");
    assert_int_equal(row_of(BASE)->launches, 1);
}

CASE(on_the_simulated_gpu_cupti_is_left_alone)
{
    uint64_t words[] = {BASE};
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = RMM_DIAG_LAUNCH,
        .name = "simulated",
        .words = words,
        .word_count = 1,
    };

    driver_name = "sim";
    start("usage");
    assert_string_equal(header()->source, "active");
    assert_int_equal(lib.control()->subscribed, 0);
    assert_non_null(observer);
    add_block(BASE, 4096);
    observer(observer_context, &event);
    assert_int_equal(row_of(BASE)->launches, 1);
    assert_string_equal(kernel_name(row_of(BASE)->first_kernel), "simulated");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(does_nothing_unless_asked),
        cmocka_unit_test(without_the_library_it_stays_idle),
        cmocka_unit_test(stays_idle_where_it_may_not_attach),
        cmocka_unit_test(attaches_to_the_first_of_two_libraries),
        cmocka_unit_test(a_mode_that_does_not_exist_is_said_and_nothing_done),
        cmocka_unit_test(names_the_tool_that_was_first),
        cmocka_unit_test(says_why_cupti_refuses),
        cmocka_unit_test(lets_go_of_cupti_when_callbacks_cannot_be_had),
        cmocka_unit_test(takes_a_smaller_side_file_where_there_is_no_room),
        cmocka_unit_test(gives_up_in_silence_without_any_side_file),
        cmocka_unit_test(counts_launches_of_every_kind_of_call),
        cmocka_unit_test(ignores_the_way_in_and_launches_that_the_driver_refused),
        cmocka_unit_test(asks_the_driver_once_a_function_and_again_after_an_unload),
        cmocka_unit_test(reads_packed_parameters),
        cmocka_unit_test(a_launch_that_cannot_be_read_is_counted_as_such),
        cmocka_unit_test(a_forked_child_touches_nothing),
        cmocka_unit_test(on_the_simulated_gpu_cupti_is_left_alone),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
