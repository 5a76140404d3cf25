/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guards of librmm-inject with a CUPTI and a driver that the test plays: what is queued on the
 * program's streams, and when nothing may be. The memory of blocks is the host's.
 */
#include "unit/inject_fixture.h"

#include "diag/guards.h"

enum { DEVICE = 3, BYTES = 1000, ROOM = 1280 };

static unsigned char memory[4 * ROOM];
static fake_cuda_control_t *cuda;

static uint64_t address_of(const unsigned char *at)
{
    return (uint64_t)(uintptr_t)at;
}

static rmm_diag_block_v1_t block_at(unsigned char *at)
{
    return (rmm_diag_block_v1_t){
        .address = address_of(at),
        .bytes = BYTES,
        .stream_id = 7,
        .resource_id = 1,
        .device = DEVICE,
        .flags = RMM_DIAG_BLOCK_IN_STREAM_ORDER,
        .end = address_of(at) + ROOM};
}

static void take(unsigned char *at)
{
    rmm_diag_block_v1_t block = block_at(at);

    hooks.on_alloc(hooks.context, &block);
}

static void drop(unsigned char *at)
{
    rmm_diag_block_v1_t block = block_at(at);

    hooks.on_free(hooks.context, &block);
}

static void find_cuda(void)
{
    fake_cuda_control_t *(*control)(void) = NULL;

    get(load("RMM_TEST_FAKE_CUDA"), "fake_cuda_control", &control);
    cuda = control();
    cuda->current = (CUcontext)(uintptr_t)3;
}

static void start_guards(void)
{
    find_cuda();
    start("guards");
    assert_string_equal(header()->source, "active");
    assert_string_equal(header()->mode, "guards");
    assert_int_equal(hooks.guard_bytes, RMM_GUARD_BYTES);
}

static void launch_on(const unsigned char *at, const char *name)
{
    launch_through(
        CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel, &function_of_two, address_of(at), name);
}

/* What the kernel does is done before its launch returns. */
static void launch_that_writes(unsigned char *at, size_t offset, const char *name)
{
    at[offset] = 0;
    launch_on(at, name);
}

CASE(no_room_is_asked_for_without_the_mode)
{
    find_cuda();
    start("usage,bounds,order");
    assert_int_equal(hooks.guard_bytes, 0);
    take(memory);
    launch_on(memory, "k");
    drop(memory);
    assert_int_equal(cuda->loads, 0);
    assert_int_equal(cuda->launches, 0);
}

CASE(a_guard_is_filled_up_to_the_end_of_its_block)
{
    start_guards();
    memset(memory, 0, sizeof(memory));
    take(memory);
    assert_int_equal(cuda->loads, 1);
    assert_int_equal(cuda->launches, 1);
    assert_int_equal(memory[BYTES - 1], 0);
    for (size_t i = BYTES; i < ROOM; i++) {
        assert_int_equal(memory[i], RMM_GUARD_PATTERN);
    }
    assert_int_equal(memory[ROOM], 0);
}

CASE(a_broken_guard_is_a_finding_of_the_kernel)
{
    const rmm_diag_finding_t *found = NULL;

    start_guards();
    take(memory);
    launch_on(memory, "innocent");
    launch_that_writes(memory, BYTES + 24, "guilty");
    launch_on(memory, "late");
    assert_int_equal(header()->findings_total, 1);
    found = finding(0);
    assert_int_equal(found->kind, RMM_DIAG_OUT_OF_BOUNDS);
    assert_int_equal(found->call, RMM_DIAG_LAUNCH);
    assert_int_equal(found->access, RMM_DIAG_WRITES);
    assert_int_equal(found->block_address, address_of(memory));
    assert_int_equal(found->block_bytes, BYTES);
    assert_int_equal(found->address - found->block_address, BYTES + 24);
    assert_int_equal(found->device, DEVICE);
    assert_string_equal(kernel_name(found->user), "guilty");
    launch_on(memory, "later");
    drop(memory);
    assert_int_equal(header()->findings_total, 1);
    assert_int_equal(header()->guard_checks, 5);
}

static const rmm_diag_stack_t *stack_at(uint32_t offset)
{
    return (const void *)((const char *)side_memory + offset);
}

CASE(a_finding_has_the_stacks_of_launch_and_allocation)
{
    start_guards();
    take(memory);
    launch_that_writes(memory, BYTES, "guilty");
    take(memory + ROOM);
    assert_int_equal(header()->findings_total, 1);
    assert_true(stack_at(header()->stacks.offset)->frame_count > 0);
    assert_true(stack_at(header()->origins.offset)->frame_count > 0);
    /* the first frame is the sanitizer's own where there is one */
    assert_memory_not_equal(
        stack_at(header()->stacks.offset), stack_at(header()->origins.offset),
        sizeof(rmm_diag_stack_t));
}

CASE(the_guard_before_a_block_is_checked_with_it)
{
    start_guards();
    take(memory);
    take(memory + ROOM);
    memory[ROOM - 1] = 0;
    launch_on(memory + ROOM, "guilty");
    drop(memory);
    assert_int_equal(header()->findings_total, 1);
    assert_int_equal(finding(0)->block_address, address_of(memory + ROOM));
    assert_int_equal((int64_t)(finding(0)->address - finding(0)->block_address), -1);
}

/* It is looked at when its own block is used or freed. */
CASE(a_guard_that_is_not_beside_a_block_is_not_checked_with_it)
{
    start_guards();
    take(memory);
    take(memory + ROOM + 64);
    memory[ROOM - 1] = 0;
    launch_on(memory + ROOM + 64, "innocent");
    drop(memory);
    take(memory);
    assert_int_equal(header()->findings_total, 1);
    assert_int_equal(finding(0)->block_address, address_of(memory));
    assert_int_equal(finding(0)->user, RMM_DIAG_NO_USER);
}

CASE(the_last_look_before_a_free_names_no_kernel)
{
    start_guards();
    take(memory);
    launch_on(memory, "innocent");
    memory[BYTES] = 0;
    drop(memory);
    take(memory);
    assert_int_equal(header()->findings_total, 1);
    assert_int_equal(finding(0)->user, RMM_DIAG_NO_USER);
    assert_int_equal(finding(0)->call, 0);
}

CASE(nothing_is_queued_on_a_stream_that_captures)
{
    start_guards();
    take(memory);
    assert_int_equal(cuda->launches, 1);
    cuda->capture_status = CU_STREAM_CAPTURE_STATUS_ACTIVE;
    launch_that_writes(memory, BYTES, "captured");
    take(memory + ROOM);
    drop(memory);
    cuda->capture_status = CU_STREAM_CAPTURE_STATUS_NONE;
    cuda->capture_result = CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
    launch_on(memory + ROOM, "legacy");
    assert_int_equal(cuda->launches, 1);
    assert_int_equal(header()->guards_missing, 1);
    assert_int_equal(header()->guards_unchecked, 2);
    assert_int_equal(header()->findings_total, 0);
    assert_int_equal(header()->modes_on, RMM_DIAG_MODE_GUARDS);
}

CASE(a_module_that_is_refused_ends_the_mode)
{
    start_guards();
    cuda->load_result = CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
    take(memory);
    launch_on(memory, "k");
    take(memory + ROOM);
    assert_int_equal(cuda->loads, 1);
    assert_int_equal(cuda->launches, 0);
    assert_int_equal(header()->modes_on, 0);
    assert_int_equal(header()->guards_error, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}

CASE(a_launch_that_fails_ends_the_mode_and_another_context_does_not)
{
    start_guards();
    take(memory);
    cuda->current = (CUcontext)(uintptr_t)4;
    launch_on(memory, "elsewhere");
    assert_int_equal(cuda->launches, 1);
    assert_int_equal(header()->guards_unchecked, 1);
    assert_int_equal(header()->modes_on, RMM_DIAG_MODE_GUARDS);
    cuda->current = (CUcontext)(uintptr_t)3;
    cuda->launch_result = CUDA_ERROR_ILLEGAL_ADDRESS;
    launch_on(memory, "k");
    launch_on(memory, "k");
    assert_int_equal(cuda->launches, 2);
    assert_int_equal(header()->guards_error, CUDA_ERROR_ILLEGAL_ADDRESS);
    assert_int_equal(header()->modes_on, 0);
}

static void end_context(uintptr_t context)
{
    const CUpti_ResourceData resource = {.context = (CUcontext)context};

    lib.call(
        CUPTI_CB_DOMAIN_RESOURCE, CUPTI_CBID_RESOURCE_CONTEXT_DESTROY_STARTING,
        &resource);
}

CASE(a_context_of_the_program_that_is_destroyed_ends_no_guards)
{
    start_guards();
    take(memory);
    end_context(5);
    launch_on(memory, "k");
    drop(memory);
    assert_int_equal(cuda->launches, 3);
    assert_int_equal(header()->modes_on, RMM_DIAG_MODE_GUARDS);
}

CASE(nothing_is_queued_once_the_primary_context_is_destroyed)
{
    start_guards();
    take(memory);
    end_context(3);
    launch_on(memory, "k");
    take(memory + ROOM);
    drop(memory);
    assert_int_equal(cuda->launches, 1);
    assert_int_equal(header()->modes_on, 0);
    assert_int_equal(header()->guards_error, CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

static void call_back(void)
{
    launch_on(memory, "rmm_guards");
}

CASE(its_own_launches_are_not_looked_at)
{
    start_guards();
    cuda->at_launch = call_back;
    take(memory);
    launch_on(memory, "k");
    drop(memory);
    assert_int_equal(header()->launches, 1);
    assert_int_equal(cuda->launches, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_room_is_asked_for_without_the_mode),
        cmocka_unit_test(a_guard_is_filled_up_to_the_end_of_its_block),
        cmocka_unit_test(a_broken_guard_is_a_finding_of_the_kernel),
        cmocka_unit_test(a_finding_has_the_stacks_of_launch_and_allocation),
        cmocka_unit_test(the_guard_before_a_block_is_checked_with_it),
        cmocka_unit_test(a_guard_that_is_not_beside_a_block_is_not_checked_with_it),
        cmocka_unit_test(the_last_look_before_a_free_names_no_kernel),
        cmocka_unit_test(nothing_is_queued_on_a_stream_that_captures),
        cmocka_unit_test(a_module_that_is_refused_ends_the_mode),
        cmocka_unit_test(
            a_launch_that_fails_ends_the_mode_and_another_context_does_not),
        cmocka_unit_test(a_context_of_the_program_that_is_destroyed_ends_no_guards),
        cmocka_unit_test(nothing_is_queued_once_the_primary_context_is_destroyed),
        cmocka_unit_test(its_own_launches_are_not_looked_at),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
