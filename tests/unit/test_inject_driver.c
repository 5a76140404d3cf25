/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A program that does not use this library, under librmm-inject: what it takes from the driver
 * is in the segment that librmm-c, which is loaded for it, publishes. The driver's calls are
 * played through a fake CUPTI; librmm-c is the real one, over the simulated GPU.
 */
#include "harness/runtime.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>

#include <rmm/sys/diag.h>

#include "diag/stacks_reader.h"
#include "harness/diag_file.h"
#include "unit/fake/fake_cupti.h"

#define CBID(call) CUPTI_DRIVER_TRACE_CBID_##call
#define BASE 0x7f4000000000ull
#define MiB (UINT64_C(1) << 20)

static runtime_t runtime;

static int set_up(void **state)
{
    runtime_open(&runtime);
    return 0;
}

static int tear_down(void **state)
{
    runtime_close(&runtime);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

/* --- the program's driver ------------------------------------------------------------- */

static struct {
    fake_cupti_control_t *(*control)(void);
    bool (*enabled)(CUpti_CallbackDomain, CUpti_CallbackId);
    void (*call)(CUpti_CallbackDomain, CUpti_CallbackId, const void *);
    int (*initialize)(void);
} lib;

static void *load(const char *variable)
{
    void *library = dlopen(getenv(variable), RTLD_NOW | RTLD_LOCAL);

    CHECK(library != NULL);
    return library;
}

static void get(void *library, const char *name, void *function_out)
{
    void *symbol = dlsym(library, name);

    CHECK(symbol != NULL);
    memcpy(function_out, &symbol, sizeof(symbol));
}

/* As rmm-run starts a program; the driver loads the library. */
static void start(const char *modes, bool has_driver)
{
    void *cupti = load("RMM_TEST_FAKE_CUPTI");

    setenv("RMM_DIAG", modes, 1);
    setenv("CUDA_INJECTION64_PATH", getenv("RMM_TEST_INJECT"), 1);
    get(cupti, "fake_cupti_control", &lib.control);
    get(cupti, "fake_cupti_enabled", &lib.enabled);
    get(cupti, "fake_cupti_call", &lib.call);
    get(load("RMM_TEST_INJECT"), "InitializeInjection", &lib.initialize);
    if (has_driver) {
        (void)load("RMM_TEST_FAKE_CUDA");
    }
    CHECK(lib.initialize() == 1);
}

static void call_in(
    CUpti_ApiCallbackSite site, CUpti_CallbackId id, const void *params,
    CUresult result, int device)
{
    const CUpti_CallbackData data = {
        .callbackSite = site,
        .functionParams = params,
        .functionReturnValue = &result,
        .context = (CUcontext)(uintptr_t)device, /* what the fake CUPTI answers */
        .contextUid = (uint32_t)device + 1};

    lib.call(CUPTI_CB_DOMAIN_DRIVER_API, id, &data);
}

static void call(CUpti_CallbackId id, const void *params)
{
    call_in(CUPTI_API_ENTER, id, params, CUDA_ERROR_UNKNOWN, 0);
    call_in(CUPTI_API_EXIT, id, params, CUDA_SUCCESS, 0);
}

static void take(uint64_t address, size_t bytes)
{
    CUdeviceptr fresh = address;
    const cuMemAlloc_v2_params params = {&fresh, bytes};

    call(CBID(cuMemAlloc_v2), &params);
}

static void give(uint64_t address)
{
    const cuMemFree_v2_params params = {address};

    call(CBID(cuMemFree_v2), &params);
}

/* --- cases ------------------------------------------------------------------------------- */

static void take_and_give(child_t *self, void *argument)
{
    CUdeviceptr second = BASE + 4 * MiB;
    const cuMemAlloc_v2_params refused = {&second, 64 * MiB},
                               other = {&second, 2 * MiB};

    start("driver", true);
    CHECK(lib.control()->subscribed == 1);
    take(BASE, 3 * MiB);
    call_in(CUPTI_API_EXIT, CBID(cuMemAlloc_v2), &refused, CUDA_ERROR_OUT_OF_MEMORY, 0);
    call_in(CUPTI_API_EXIT, CBID(cuMemAlloc_v2), &other, CUDA_SUCCESS, 1);
    child_pause(self, 'r');
    give(BASE);
    give(BASE); /* the driver refuses it */
    give(0);
    child_pause(self, 'f');
}

CASE(what_the_program_takes_is_published)
{
    rmm_segment_t segment;
    rmm_record_t record;
    child_t child;

    child_start_until(&child, take_and_give, NULL, 'r');
    runtime_segment(&runtime, &segment);
    assert_location(&segment, current_bytes, 3 * MiB);
    assert_location(&segment, reserved_bytes, 3 * MiB);
    assert_int_equal(
        location_figure(&segment, 1, RMM_LOCATION_STAT_current_bytes), 2 * MiB);
    assert_true(rmm__segment_read_slot(&segment, 0, &record, NULL));
    assert_string_equal(rmm__record_slot(&record)->type, "driver");
    child_go_on_until(&child, 'f');
    assert_location(&segment, current_bytes, 0);
    assert_location(&segment, invalid_free_count, 0);
    assert_location(&segment, peak_bytes, 3 * MiB);
    child_end(&child);
    rmm__segment_close(&segment);
}

/* Each kind of call, with sizes that tell them apart. */
static void take_in_each_way(child_t *self, void *argument)
{
    CUdeviceptr at[] = {BASE, BASE + MiB, BASE + 2 * MiB, BASE + 3 * MiB};
    void *host[] = {
        (void *)(uintptr_t)(BASE + 8 * MiB), (void *)(uintptr_t)(BASE + 9 * MiB)};
    size_t pitch = 512;
    const cuMemAllocManaged_params managed = {&at[0], 1, 0};
    const cuMemAllocPitch_v2_params rows = {&at[1], &pitch, 500, 20, 4};
    const cuMemAllocAsync_params async = {&at[2], 100, NULL};
    const cuMemAllocFromPoolAsync_ptsz_params from_pool = {&at[3], 200000, NULL, NULL};
    const cuMemAllocHost_v2_params pinned = {&host[0], 7};
    const cuMemHostAlloc_params flagged = {&host[1], 70, 0};
    CUdeviceptr unknown = BASE + 10 * MiB;
    const cuMemAlloc_v2_params lost = {&unknown, 5};

    start("driver", true);
    call(CBID(cuMemAllocManaged), &managed);
    call(CBID(cuMemAllocPitch_v2), &rows);
    call(CBID(cuMemAllocAsync), &async);
    call(CBID(cuMemAllocFromPoolAsync_ptsz), &from_pool);
    call(CBID(cuMemAllocHost_v2), &pinned);
    call(CBID(cuMemHostAlloc), &flagged);
    /* of a device that CUPTI does not tell: not the host's */
    call_in(CUPTI_API_EXIT, CBID(cuMemAlloc_v2), &lost, CUDA_SUCCESS, -1);
    child_pause(self, 'r');
    give(at[0]);
    give(at[1]);
    call(CBID(cuMemFreeAsync), &(cuMemFreeAsync_params){at[2], NULL});
    call(CBID(cuMemFreeAsync_ptsz), &(cuMemFreeAsync_ptsz_params){at[3], NULL});
    call(CBID(cuMemFreeHost), &(cuMemFreeHost_params){host[0]});
    call(CBID(cuMemFreeHost), &(cuMemFreeHost_params){host[1]});
    child_pause(self, 'f');
}

CASE(every_kind_of_call_is_seen)
{
    rmm_segment_t segment;
    child_t child;
    const uint32_t host = RMM_SEGMENT_HOST_LOCATION;

    child_start_until(&child, take_in_each_way, NULL, 'r');
    runtime_segment(&runtime, &segment);
    assert_location(&segment, current_bytes, 1 + 512 * 20 + 100 + 200000);
    assert_location(&segment, total_count, 4);
    assert_int_equal(
        location_figure(&segment, host, RMM_LOCATION_STAT_current_bytes), 77);
    child_go_on_until(&child, 'f');
    assert_location(&segment, current_bytes, 0);
    assert_int_equal(
        location_figure(&segment, host, RMM_LOCATION_STAT_current_bytes), 0);
    child_end(&child);
    rmm__segment_close(&segment);
}

/* The handles that the pretended driver gives are no addresses. */
static void take_arrays(child_t *self, void *argument)
{
    CUarray handles[] = {(CUarray)1000, (CUarray)1001, (CUarray)1002, (CUarray)1003};
    CUmipmappedArray levelled[] = {(CUmipmappedArray)1004, (CUmipmappedArray)1005};
    const CUDA_ARRAY_DESCRIPTOR line = {100, 0, CU_AD_FORMAT_HALF, 1};
    CUDA_ARRAY3D_DESCRIPTOR box = {8, 4, 2, CU_AD_FORMAT_FLOAT, 4, 0};
    CUDA_ARRAY3D_DESCRIPTOR layers = {
        8, 0, 16, CU_AD_FORMAT_SIGNED_INT8, 1, CUDA_ARRAY3D_LAYERED};
    CUDA_ARRAY3D_DESCRIPTOR sparse = {
        1024, 1024, 0, CU_AD_FORMAT_FLOAT, 4, CUDA_ARRAY3D_SPARSE};

    start("driver,bounds", true);
    take(BASE, MiB);
    call(CBID(cuArrayCreate_v2), &(cuArrayCreate_v2_params){&handles[0], &line});
    call(CBID(cuArray3DCreate_v2), &(cuArray3DCreate_v2_params){&handles[1], &box});
    call(CBID(cuArray3DCreate_v2), &(cuArray3DCreate_v2_params){&handles[2], &layers});
    call(CBID(cuArray3DCreate_v2), &(cuArray3DCreate_v2_params){&handles[3], &sparse});
    call(
        CBID(cuMipmappedArrayCreate),
        &(cuMipmappedArrayCreate_params){&levelled[0], &box, 3});
    call(
        CBID(cuMipmappedArrayCreate),
        &(cuMipmappedArrayCreate_params){&levelled[1], &layers, 2});
    child_pause(self, 'r');
    for (size_t i = 0; i < sizeof(handles) / sizeof(handles[0]); i++) {
        call(CBID(cuArrayDestroy), &(cuArrayDestroy_params){handles[i]});
    }
    for (size_t i = 0; i < 2; i++) {
        call(
            CBID(cuMipmappedArrayDestroy),
            &(cuMipmappedArrayDestroy_params){levelled[i]});
    }
    child_pause(self, 'f');
}

CASE(arrays_are_counted_and_no_blocks_for_the_diagnosis)
{
    const uint64_t line = 200, box = 8 * 4 * 2 * 16, layers = 8 * 16;
    const uint64_t levels = box + 4 * 2 * 1 * 16 + 2 * 1 * 1 * 16;
    const uint64_t levels_of_layers = layers + 4 * 16; /* of as many layers */
    rmm_segment_t segment;
    diag_file_t diag;
    child_t child;
    char path[512];

    child_start_until(&child, take_arrays, NULL, 'r');
    runtime_segment(&runtime, &segment);
    assert_location(
        &segment, current_bytes, MiB + line + box + layers + levels + levels_of_layers);
    assert_location(&segment, total_count, 6);
    assert_true(diag_file_find(runtime.path, path));
    assert_true(diag_file_read(&diag, path));
    assert_int_equal(diag.header->rows.used, 1);
    diag_file_close(&diag);
    child_go_on_until(&child, 'f');
    assert_location(&segment, current_bytes, MiB);
    assert_location(&segment, invalid_free_count, 0);
    child_end(&child);
    rmm__segment_close(&segment);
}

/* PyTorch's expandable segments: one range, mapped piece by piece. */
static void map_and_unmap(child_t *self, void *argument)
{
    cuMemMap_params piece = {.ptr = BASE, .size = 2 * MiB};

    start("driver,bounds", true);
    take(BASE + 64 * MiB, MiB); /* a block, with which the side file is made */
    call(CBID(cuMemMap), &piece);
    piece.ptr += 2 * MiB;
    call(CBID(cuMemMap), &piece);
    piece.ptr += 2 * MiB;
    call(CBID(cuMemMap), &piece);
    child_pause(self, 'r');
    call(CBID(cuMemUnmap), &(cuMemUnmap_params){BASE, 4 * MiB});
    child_pause(self, 'f');
}

CASE(a_range_that_is_mapped_in_pieces_is_no_block_for_the_diagnosis)
{
    rmm_segment_t segment;
    diag_file_t diag;
    child_t child;
    char path[512];

    child_start_until(&child, map_and_unmap, NULL, 'r');
    runtime_segment(&runtime, &segment);
    assert_location(&segment, current_bytes, 7 * MiB);
    assert_true(diag_file_find(runtime.path, path));
    assert_true(diag_file_read(&diag, path));
    assert_int_equal(diag.header->rows.used, 1);
    diag_file_close(&diag);
    child_go_on_until(&child, 'f');
    assert_location(&segment, current_bytes, 3 * MiB);
    child_end(&child);
    rmm__segment_close(&segment);
}

static void take_with_usage(child_t *self, void *argument)
{
    start("usage,driver", true);
    take(BASE, 3 * MiB);
    child_pause(self, 'r');
}

CASE(the_diagnosis_follows_these_blocks_too)
{
    diag_file_t diag;
    child_t child;
    char path[512];

    child_start_until(&child, take_with_usage, NULL, 'r');
    assert_true(diag_file_find(runtime.path, path));
    assert_true(diag_file_read(&diag, path));
    assert_int_equal(diag.header->rows.used, 1);
    assert_int_equal(diag.rows[0].address, BASE);
    assert_int_equal(diag.rows[0].bytes, 3 * MiB);
    diag_file_close(&diag);
    child_end(&child);
}

static void take_with_bounds(child_t *self, void *argument)
{
    start("bounds,driver", true);
    take(BASE, 3 * MiB);
    child_pause(self, 'r');
}

/* The diagnosis is called by CUPTI, and again by librmm-c, which it told of the block. */
CASE(the_place_of_a_block_has_no_frame_of_the_diagnosis)
{
    rmm_diag_file_t file;
    rmm_diag_stack_info_t stack;
    rmm_diag_module_info_t module;
    child_t child;
    char path[512];

    child_start_until(&child, take_with_bounds, NULL, 'r');
    assert_true(diag_file_find(runtime.path, path));
    assert_int_equal(rmm__diag_attach(&file, open(path, O_RDONLY | O_CLOEXEC)), 0);
    assert_true(rmm__diag_read_site(&file, 1, &stack));
    assert_true(stack.frame_count > 1);
    for (uint32_t i = 0; i < stack.frame_count; i++) {
        assert_true(rmm__diag_read_module(&file, stack.modules[i], &module));
        assert_null(strstr(module.path, "/librmm-"));
    }
    rmm__diag_close(&file);
    child_end(&child);
}

static void start_otherwise(child_t *self, void *argument)
{
    const char *modes = argument;

    if (strcmp(modes, "no driver") == 0) {
        start("driver", false);
    } else {
        start(modes, true);
    }
    CHECK(lib.control()->subscribed == 0);
    take(BASE, MiB);
}

CASE(follows_nothing_by_default)
{
    static const char *const others[] = {"usage", "off", "", "nonsense", "no driver"};

    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++) {
        child_run(start_otherwise, (void *)(uintptr_t)others[i]);
        assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, NULL), 0);
    }
}

/* --- a second librmm-c --------------------------------------------------------------------- */

static rmm_diag_hooks_v1_t second_hooks;

static rmm_status_t
attach_second(const rmm_diag_hooks_v1_t *hooks, rmm_diag_services_v1_t *services)
{
    second_hooks = *hooks;
    services->block_bytes = sizeof(rmm_diag_block_v1_t);
    services->driver_name = "sim";
    return RMM_OK;
}

/* As one that the program links statically, when it has its first block. */
static void use_another_copy(child_t *self, void *argument)
{
    rmm_diag_injected_fn injected = NULL;
    const rmm_diag_block_v1_t block = {
        .address = BASE + 8 * MiB, .bytes = 100, .resource_id = 1};

    start("usage,driver", true);
    take(BASE, 3 * MiB);
    get(load("RMM_TEST_INJECT"), RMM_DIAG_INJECTED_SYMBOL, &injected);
    injected(attach_second);
    CHECK(second_hooks.on_alloc != NULL);
    second_hooks.on_alloc(second_hooks.context, &block);
    take(BASE + 4 * MiB, MiB);
    give(BASE);
    child_pause(self, 'r');
}

CASE(the_programs_own_copy_counts_by_itself)
{
    rmm_segment_t segment;
    diag_file_t diag;
    child_t child;
    char path[512];
    uint32_t live = 0;

    child_start_until(&child, use_another_copy, NULL, 'r');
    runtime_segment(&runtime, &segment);
    assert_location(&segment, current_bytes, 0);
    assert_true(diag_file_find(runtime.path, path));
    assert_true(diag_file_read(&diag, path));
    for (uint32_t i = 0; i < diag.header->rows.used; i++) {
        live += diag.rows[i].live;
        assert_true(!diag.rows[i].live || diag.rows[i].address == BASE + 8 * MiB);
    }
    assert_int_equal(live, 1);
    diag_file_close(&diag);
    child_end(&child);
    rmm__segment_close(&segment);
}

static void start_beside_another_tool(child_t *self, void *argument)
{
    fake_cupti_control_t *control = NULL;

    get(load("RMM_TEST_FAKE_CUPTI"), "fake_cupti_control", &lib.control);
    control = lib.control();
    control->subscribe_result = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
    start("driver", true);
    take(BASE, MiB);
    CHECK(control->subscribed == 0);
}

CASE(beside_another_tool_the_program_runs_on)
{
    child_run(start_beside_another_tool, NULL);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, NULL), 0);
}

static void fork_under_it(child_t *self, void *argument)
{
    int status = 0;
    pid_t pid = 0;

    start("driver", true);
    take(BASE, MiB);
    pid = fork();
    if (pid == 0) {
        take(BASE + MiB, MiB);
        give(BASE);
        _exit(0);
    }
    CHECK(pid > 0 && waitpid(pid, &status, 0) == pid && status == 0);
    child_pause(self, 'r');
}

CASE(a_forked_child_changes_no_figure)
{
    rmm_segment_t segment;
    child_t child;

    child_start_until(&child, fork_under_it, NULL, 'r');
    runtime_segment(&runtime, &segment);
    assert_location(&segment, current_bytes, MiB);
    assert_location(&segment, total_count, 1);
    child_end(&child);
    rmm__segment_close(&segment);
}
