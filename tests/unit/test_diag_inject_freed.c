/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks of the driver that were freed, in librmm-inject with mode driver, with a CUPTI that the
 * test plays, and the part of a librmm-c that counts the program's memory.
 */
#include "unit/inject_fixture.h"

#include <elf.h>

#include "unit/fake/fake_library.h"

enum { BYTES = 4096 };

#define CBID(call) CUPTI_DRIVER_TRACE_CBID_##call

static fake_library_control_t *library;

/* --- the program --------------------------------------------------------------------------- */

static void take(uint64_t address)
{
    CUdeviceptr fresh = address;
    const cuMemAlloc_v2_params params = {&fresh, BYTES};

    call(CBID(cuMemAlloc_v2), &params, NULL);
}

static void give(uint64_t address)
{
    const cuMemFree_v2_params params = {address};
    CUresult result = CUDA_ERROR_UNKNOWN;
    CUpti_CallbackData data = call_data(&params, NULL, &result);

    data.callbackSite = CUPTI_API_ENTER;
    lib.call(CUPTI_CB_DOMAIN_DRIVER_API, CBID(cuMemFree_v2), &data);
    call(CBID(cuMemFree_v2), &params, NULL);
}

static void launch(uint64_t pointer)
{
    launch_through(
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &function_of_two, pointer, "late");
}

static uint64_t total(void)
{
    return header()->findings_total;
}

/* One block was taken and given back. */
static void start_with(const char *modes)
{
    fake_library_control_t *(*control)(void) = NULL;

    get(dlopen(getenv("RMM_TEST_FAKE_LIBRARY"), RTLD_NOW | RTLD_GLOBAL),
        "fake_library_control", &control);
    library = control();
    library->hooks = &hooks;
    setenv("RMM_DIAG", modes, 1); /* before the driver is opened */
    start(modes);
    assert_string_equal(header()->source, "active");
    take(BASE);
    give(BASE);
}

static void start_here(void)
{
    start_with("usage,bounds,driver");
}

CASE(a_kernel_that_is_given_a_freed_block_of_the_driver_is_found)
{
    start_here();
    launch(BASE + 8);
    assert_int_equal(total(), 1);
    assert_int_equal(finding(0)->kind, RMM_DIAG_USE_AFTER_FREE);
    assert_int_equal(finding(0)->block_address, BASE);
    assert_string_equal(kernel_name(finding(0)->user), "late");
}

CASE(nothing_is_found_without_mode_driver)
{
    start_with("usage,bounds");
    launch(BASE + 8);
    assert_int_equal(total(), 0);
}

CASE(an_address_allocated_again_is_not_freed_memory)
{
    start_here();
    take(BASE);
    launch(BASE + 8);
    assert_int_equal(total(), 0);
}

CASE(what_a_pool_takes_from_the_driver_is_not_freed)
{
    start_here();
    library->is_in_library = true;
    take(BASE);
    library->is_in_library = false;
    launch(BASE + 8);
    assert_int_equal(total(), 0);
}

CASE(what_is_mapped_there_is_not_freed)
{
    const cuMemMap_params piece = {.ptr = BASE, .size = BYTES};

    start_here();
    call(CBID(cuMemMap), &piece, NULL);
    launch(BASE + 8);
    assert_int_equal(total(), 0);
}

CASE(a_variable_of_a_module_that_lies_there_is_not_freed)
{
    CUdeviceptr variable = BASE + 512;
    size_t bytes = 64;
    const cuModuleGetGlobal_v2_params module = {&variable, &bytes, NULL, "name"};

    start_here();
    call(CBID(cuModuleGetGlobal_v2), &module, NULL);
    launch(BASE + 512);
    launch(BASE + 575);
    assert_int_equal(total(), 0);
    launch(BASE + 576);
    assert_int_equal(total(), 1);
}

/* As the driver loads it; sections of this name have bytes. */
static void load_module(const char *section)
{
    struct {
        Elf64_Ehdr head;
        Elf64_Shdr sections[2]; /* that of names first */
        char names[64];
    } cubin = {
        .head = {
            .e_shoff = offsetof(__typeof__(cubin), sections),
            .e_shentsize = sizeof(Elf64_Shdr),
            .e_shnum = 2}};
    CUpti_ModuleResourceData module = {
        .pCubin = (const char *)&cubin, .cubinSize = sizeof(cubin)};
    const CUpti_ResourceData data = {.resourceDescriptor = &module};

    memcpy(cubin.head.e_ident, ELFMAG, SELFMAG);
    cubin.head.e_ident[EI_CLASS] = ELFCLASS64;
    cubin.sections[0].sh_offset = offsetof(__typeof__(cubin), names);
    cubin.sections[0].sh_size = sizeof(cubin.names);
    cubin.sections[1].sh_name = 1;
    cubin.sections[1].sh_size = 4;
    snprintf(&cubin.names[1], sizeof(cubin.names) - 1, "%s", section);
    lib.call(CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_MODULE_LOADED, &data);
}

CASE(variables_of_a_module_may_lie_anywhere)
{
    static const char *const sections[] = {
        ".nv.global", ".nv.global.init", ".nv.constant3"};

    start_here();
    for (size_t i = 0; i < sizeof(sections) / sizeof(sections[0]); i++) {
        take(BASE);
        give(BASE);
        load_module(sections[i]);
        launch(BASE + 8);
        assert_int_equal(total(), 0);
    }
}

CASE(a_module_without_variables_lies_nowhere)
{
    start_here();
    load_module(".nv.info.kernel");
    launch(BASE + 8);
    assert_int_equal(total(), 1);
}

CASE(memory_from_elsewhere_may_lie_anywhere)
{
    static const CUpti_CallbackId calls[] = {
        CBID(cuIpcOpenMemHandle),
        CBID(cuIpcOpenMemHandle_v2),
        CBID(cuExternalMemoryGetMappedBuffer),
        CBID(cuGraphicsResourceGetMappedPointer_v2),
        CBID(cuGraphicsResourceGetMappedEglFrame),
        CBID(cuMemPoolImportPointer),
        CBID(cuMemHostGetDevicePointer_v2),
        CBID(cuGraphAddMemAllocNode)};
    static const char no_parameters[256];
    const CUresult refused = CUDA_ERROR_INVALID_VALUE;
    CUresult result = refused;
    CUpti_CallbackData data = call_data(no_parameters, NULL, &result);

    start_here();
    for (size_t i = 0; i < sizeof(calls) / sizeof(calls[0]); i++) {
        assert_true(lib.enabled(CUPTI_CB_DOMAIN_DRIVER_API, calls[i]));
        lib.call(CUPTI_CB_DOMAIN_DRIVER_API, calls[i], &data);
        launch(BASE + 8);
        assert_int_equal(total(), i + 1);
        call(calls[i], no_parameters, NULL);
        launch(BASE + 8);
        assert_int_equal(total(), i + 1);
        take(BASE);
        give(BASE);
    }
}

CASE(these_calls_are_seen_whatever_the_modes_are)
{
    rmm_diag_header_t *asked = NULL;

    start_here();
    asked = side_memory;
    atomic_store(&asked->modes_wanted, RMM_DIAG_MODES_SET);
    launch(BASE); /* applies it */
    assert_int_equal(header()->modes_on & RMM_DIAG_MODE_BOUNDS, 0);
    assert_true(lib.enabled(CUPTI_CB_DOMAIN_DRIVER_API, CBID(cuIpcOpenMemHandle_v2)));
    assert_true(lib.enabled(CUPTI_CB_DOMAIN_DRIVER_API, CBID(cuMemAlloc_v2)));
}

CASE(a_second_copy_of_the_library_takes_memory_unseen)
{
    start_here();
    lib.injected(refuse);
    launch(BASE + 8);
    take(BASE + BYTES);
    give(BASE + BYTES);
    launch(BASE + BYTES);
    assert_int_equal(total(), 0);
}

/* --- another copy, without mode driver ------------------------------------------------ */

static rmm_diag_hooks_v1_t other_hooks;
static const char *other_driver;

static rmm_status_t
attach_other(const rmm_diag_hooks_v1_t *given, rmm_diag_services_v1_t *services)
{
    other_hooks = *given;
    services->driver_name = other_driver;
    services->block_bytes = sizeof(rmm_diag_block_v1_t);
    return RMM_OK;
}

static void use_other(const char *driver)
{
    const rmm_diag_block_v1_t block = {
        .address = BASE + BYTES, .bytes = BYTES, .resource_id = 1};

    other_driver = driver;
    start_with("usage,bounds");
    add_block(BASE, BYTES);
    lib.injected(attach_other);
    assert_non_null(other_hooks.on_alloc);
    other_hooks.on_alloc(other_hooks.context, &block);
    launch(BASE);
    launch(BASE + BYTES);
}

CASE(the_blocks_of_a_second_copy_are_followed)
{
    use_other("cuda");
    assert_int_equal(row_of(BASE)->launches, 1);
    assert_int_equal(row_of(BASE + BYTES)->launches, 1);
}

/* Its events are not: all its blocks would look unused. */
CASE(the_blocks_of_a_second_simulated_gpu_are_not)
{
    use_other("sim");
    assert_int_equal(row_of(BASE)->launches, 1);
    assert_null(row_of(BASE + BYTES));
}

CASE(copies_beyond_those_that_have_a_place_are_not_followed)
{
    use_other("cuda");
    for (int i = 0; i < 100; i++) {
        other_hooks = (rmm_diag_hooks_v1_t){.struct_size = 0};
        lib.injected(attach_other);
    }
    assert_null(other_hooks.on_alloc);
    assert_int_equal(row_of(BASE)->launches, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kernel_that_is_given_a_freed_block_of_the_driver_is_found),
        cmocka_unit_test(nothing_is_found_without_mode_driver),
        cmocka_unit_test(an_address_allocated_again_is_not_freed_memory),
        cmocka_unit_test(what_a_pool_takes_from_the_driver_is_not_freed),
        cmocka_unit_test(what_is_mapped_there_is_not_freed),
        cmocka_unit_test(a_variable_of_a_module_that_lies_there_is_not_freed),
        cmocka_unit_test(variables_of_a_module_may_lie_anywhere),
        cmocka_unit_test(a_module_without_variables_lies_nowhere),
        cmocka_unit_test(memory_from_elsewhere_may_lie_anywhere),
        cmocka_unit_test(these_calls_are_seen_whatever_the_modes_are),
        cmocka_unit_test(a_second_copy_of_the_library_takes_memory_unseen),
        cmocka_unit_test(the_blocks_of_a_second_copy_are_followed),
        cmocka_unit_test(the_blocks_of_a_second_simulated_gpu_are_not),
        cmocka_unit_test(copies_beyond_those_that_have_a_place_are_not_followed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
