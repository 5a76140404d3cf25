/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's cases of cuda_async_mr, cuda_async_managed_mr, cuda_async_view_mr and system_mr.
 * Where the device lacks what a case needs it is skipped, with the reason; the simulated
 * one lacks nothing.
 */
#include "conformance/rmm_cases.h"

#include "driver/sim/control.h"

typedef struct options {
    uint64_t initial_bytes, threshold_bytes;
    uint32_t handle_types;
} options_t;

static rmm_resource_t *async_resource(options_t wanted)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.initial_pool_bytes = wanted.initial_bytes;
    options.release_threshold_bytes = wanted.threshold_bytes;
    options.handle_types = wanted.handle_types;
    assert_ok(rmm_async_resource_create(&options, &mr));
    return mr;
}

/* Ends the case where this machine cannot: `status` is of a creator. */
static void need(rmm_status_t status)
{
    if (status == RMM_ERR_UNSUPPORTED && !rmm_sim_active()) {
        print_message("not supported here: %s\n", rmm_last_error_message());
        skip();
    }
    assert_ok(status);
}

static void use_once(rmm_resource_t *mr, size_t bytes)
{
    rmm_stream_t stream;
    void *ptr;

    assert_ok(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream));
    assert_ok(rmm_resource_alloc(mr, bytes, 0, stream, &ptr));
    use(ptr, bytes, stream);
    rmm_resource_dealloc(mr, ptr, bytes, 0, stream);
    assert_ok(rmm_stream_destroy(stream));
}

static uint64_t threshold_of(const rmm_resource_t *mr)
{
    uint64_t bytes = 0;

    assert_int_equal(
        gpu()->mempool_get_threshold(rmm_async_resource_pool_handle(mr), &bytes),
        RMM_DRIVER_OK);
    return bytes;
}

/* --- cuda_async_mr ------------------------------------------------------------------ */

static void explicit_initial_pool_size(void **state)
{
    rmm_resource_t *mr = async_resource((options_t){.initial_bytes = 100});

    use_once(mr, 100);
    rmm_resource_release(mr);
}

static void explicit_release_threshold(void **state)
{
    rmm_resource_t *mr =
        async_resource((options_t){.initial_bytes = 100, .threshold_bytes = 1000});

    use_once(mr, 100);
    rmm_resource_release(mr);
}

static void default_release_threshold_is_uint64_max(void **state)
{
    rmm_resource_t *mr = async_resource((options_t){.initial_bytes = 0});

    assert_true(threshold_of(mr) == UINT64_MAX);
    rmm_resource_release(mr);
}

static void explicit_release_threshold_is_applied(void **state)
{
    rmm_resource_t *mr = async_resource((options_t){.threshold_bytes = 1000});

    assert_int_equal(threshold_of(mr), 1000);
    rmm_resource_release(mr);
}

static void different_pools_unequal(void **state)
{
    rmm_resource_t *first = async_resource((options_t){.initial_bytes = 100});
    rmm_resource_t *second = async_resource((options_t){.initial_bytes = 100});

    assert_true(rmm_resource_is_equal(first, first));
    assert_false(rmm_resource_is_equal(first, second));
    assert_true(
        rmm_async_resource_pool_handle(first) !=
        rmm_async_resource_pool_handle(second));
    rmm_resource_release(first);
    rmm_resource_release(second);
}

/* Where the device has them they work; else the creation says so. */
static void fabric_handles_support(void **state)
{
    rmm_async_options_t options = RMM_ASYNC_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;
    int supported = 0;

    assert_int_equal(
        gpu()->device_attribute(RMM_ATTRIBUTE_MEMORY_POOL_HANDLE_TYPES, 0, &supported),
        RMM_DRIVER_OK);
    options.handle_types = RMM_ASYNC_HANDLE_FABRIC;
    if (((uint32_t)supported & RMM_ASYNC_HANDLE_FABRIC) == 0) {
        assert_int_equal(rmm_async_resource_create(&options, &mr), RMM_ERR_UNSUPPORTED);
        assert_null(mr);
        return;
    }
    need(rmm_async_resource_create(&options, &mr));
    use_once(mr, 100);
    rmm_resource_release(mr);
}

/* --- cuda_async_managed_mr ---------------------------------------------------------- */

static rmm_resource_t *async_managed_resource(void)
{
    rmm_resource_t *mr = NULL;

    need(rmm_async_managed_resource_create(&mr));
    return mr;
}

/* Only managed memory can be told to move. */
static void expect_managed(void *ptr, size_t bytes)
{
    assert_int_equal(
        gpu()->mem_prefetch(ptr, bytes, RMM_DRIVER_HOST, RMM_STREAM_LEGACY),
        RMM_DRIVER_OK);
    assert_int_equal(gpu()->stream_synchronize(RMM_STREAM_LEGACY), RMM_DRIVER_OK);
}

static void basic_allocate_deallocate(void **state)
{
    rmm_resource_t *mr = async_managed_resource();

    use_once(mr, 100);
    rmm_resource_release(mr);
}

static void equality_with_same_pool(void **state)
{
    rmm_resource_t *first = async_managed_resource();
    rmm_resource_t *second = async_managed_resource();

    assert_true(rmm_resource_is_equal(first, second));
    assert_ptr_equal(
        rmm_async_resource_pool_handle(first), rmm_async_resource_pool_handle(second));
    rmm_resource_release(first);
    rmm_resource_release(second);
}

static void allocated_pointer_is_managed(void **state)
{
    rmm_resource_t *mr = async_managed_resource();
    void *ptr = take(mr, KIB);

    expect_managed(ptr, KIB);
    give(mr, ptr, KIB);
    rmm_resource_release(mr);
}

static void allocated_pointer_is_accessible_from_host(void **state)
{
    rmm_resource_t *mr = async_managed_resource();
    unsigned char *ptr = take(mr, KIB);

    memset(ptr, 3, KIB);
    assert_int_equal(ptr[KIB - 1], 3);
    use(ptr, KIB, RMM_STREAM_LEGACY);
    assert_int_equal(ptr[0], 7);
    give(mr, ptr, KIB);
    rmm_resource_release(mr);
}

static void multiple_allocations_are_managed(void **state)
{
    const size_t sizes[] = {256, 4 * KIB, MIB};
    rmm_resource_t *mr = async_managed_resource();
    void *blocks[3];

    for (size_t i = 0; i < 3; i++) {
        blocks[i] = take(mr, sizes[i]);
        expect_managed(blocks[i], sizes[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        give(mr, blocks[i], sizes[i]);
    }
    rmm_resource_release(mr);
}

/* --- cuda_async_view_mr ------------------------------------------------------------- */

static void use_pool(void **state)
{
    rmm_driver_mempool_t pool = NULL;
    rmm_resource_t *view;

    assert_int_equal(
        gpu()->mempool_create(0, RMM_DRIVER_ON_DEVICE, &pool), RMM_DRIVER_OK);
    assert_ok(rmm_async_view_resource_create(pool, &view));
    assert_ptr_equal(rmm_async_resource_pool_handle(view), pool);
    use_once(view, 100);
    rmm_resource_release(view);
    assert_int_equal(gpu()->mempool_destroy(pool), RMM_DRIVER_OK);
}

static void not_taking_ownership_of_pool(void **state)
{
    rmm_driver_mempool_t pool = NULL;
    rmm_resource_t *view;

    assert_int_equal(
        gpu()->mempool_create(0, RMM_DRIVER_ON_DEVICE, &pool), RMM_DRIVER_OK);
    for (int i = 0; i < 2; i++) {
        assert_ok(rmm_async_view_resource_create(pool, &view));
        use_once(view, 100);
        rmm_resource_release(view);
    }
    assert_int_equal(gpu()->mempool_destroy(pool), RMM_DRIVER_OK); /* the only one */
}

static void throw_if_nullptr_pool(void **state)
{
    rmm_resource_t *view = NULL;

    assert_int_equal(
        rmm_async_view_resource_create(NULL, &view), RMM_ERR_INVALID_ARGUMENT);
    assert_null(view);
}

/* --- system_mr ---------------------------------------------------------------------- */

static rmm_resource_t *system_resource(void)
{
    rmm_resource_t *mr = NULL;

    need(rmm_system_resource_create(&mr));
    return mr;
}

static rmm_resource_t *headroom_resource(uint64_t headroom_bytes)
{
    rmm_sam_headroom_options_t options = RMM_SAM_HEADROOM_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;

    options.headroom_bytes = headroom_bytes;
    need(rmm_sam_headroom_resource_create(&options, &mr));
    return mr;
}

static uint64_t free_memory(void)
{
    uint64_t free_bytes = 0, total_bytes;

    assert_int_equal(gpu()->memory_info(&free_bytes, &total_bytes), RMM_DRIVER_OK);
    return free_bytes;
}

static void throw_if_not_supported(void **state)
{
    rmm_resource_t *mr = NULL;
    rmm_status_t status = rmm_system_resource_create(&mr);
    int supported = 0;

    assert_int_equal(
        gpu()->device_attribute(RMM_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS, 0, &supported),
        RMM_DRIVER_OK);
    assert_int_equal(status, supported != 0 ? RMM_OK : RMM_ERR_UNSUPPORTED);
    assert_true((mr != NULL) == (supported != 0));
    rmm_resource_release(mr);
}

static void first_touch_on_cpu(void **state)
{
    rmm_resource_t *mr = system_resource();
    uint64_t before = free_memory();
    void *ptr = take(mr, 10 * MIB);

    memset(ptr, 1, 10 * MIB);
    assert_int_equal(free_memory(), before);
    give(mr, ptr, 10 * MIB);
    rmm_resource_release(mr);
}

static void first_touch_on_gpu(void **state)
{
    rmm_resource_t *mr = system_resource();
    uint64_t before = free_memory();
    void *ptr = take(mr, 10 * MIB);

    use(ptr, 10 * MIB, RMM_STREAM_LEGACY);
    assert_true(free_memory() <= before);
    give(mr, ptr, 10 * MIB);
    rmm_resource_release(mr);
}

static void headroom_mr_reserve_all_free_memory(void **state)
{
    rmm_resource_t *mr = headroom_resource(free_memory() + GIB);
    void *ptr = take(mr, 10 * MIB);

    use(ptr, 10 * MIB, RMM_STREAM_LEGACY);
    if (rmm_sim_active()) {
        assert_int_equal(rmm__sim_preferred_at(ptr, 10 * MIB), RMM_DRIVER_HOST);
    }
    give(mr, ptr, 10 * MIB);
    rmm_resource_release(mr);
}

static void headroom_mr_different_parameters_unequal(void **state)
{
    rmm_resource_t *first = headroom_resource(MIB);
    rmm_resource_t *second = headroom_resource(2 * MIB);

    assert_true(rmm_resource_is_equal(first, first));
    assert_false(rmm_resource_is_equal(first, second));
    rmm_resource_release(first);
    rmm_resource_release(second);
}

/* clang-format off */
static const struct CMUnitTest tests[] = {
    CASE("AsyncTest.ExplicitInitialPoolSize", explicit_initial_pool_size),
    CASE("AsyncTest.ExplicitReleaseThreshold", explicit_release_threshold),
    CASE("AsyncTest.DefaultReleaseThresholdIsUint64Max", default_release_threshold_is_uint64_max),
    CASE("AsyncTest.ExplicitReleaseThresholdIsApplied", explicit_release_threshold_is_applied),
    CASE("AsyncTest.DifferentPoolsUnequal", different_pools_unequal),
    CASE("AsyncTest.FabricHandlesSupport", fabric_handles_support),
    CASE("AsyncManagedTest.BasicAllocateDeallocate", basic_allocate_deallocate),
    CASE("AsyncManagedTest.EqualityWithSamePool", equality_with_same_pool),
    CASE("AsyncManagedTest.AllocatedPointerIsManaged", allocated_pointer_is_managed),
    CASE("AsyncManagedTest.AllocatedPointerIsAccessibleFromHost", allocated_pointer_is_accessible_from_host),
    CASE("AsyncManagedTest.MultipleAllocationsAreManaged", multiple_allocations_are_managed),
    CASE("AsyncViewTest.UsePool", use_pool),
    CASE("AsyncViewTest.NotTakingOwnershipOfPool", not_taking_ownership_of_pool),
    CASE("AsyncViewTest.ThrowIfNullptrPool", throw_if_nullptr_pool),
    CASE("SystemTest.ThrowIfNotSupported", throw_if_not_supported),
    CASE("SystemTest.FirstTouchOnCPU", first_touch_on_cpu),
    CASE("SystemTest.FirstTouchOnGPU", first_touch_on_gpu),
    CASE("SystemTest.HeadroomMRReserveAllFreeMemory", headroom_mr_reserve_all_free_memory),
    CASE("SystemTest.HeadroomMRDifferentParametersUnequal", headroom_mr_different_parameters_unequal),
};
/* clang-format on */

int main(void)
{
    int result = begin_cases();

    return result != 0 ? result : cmocka_run_group_tests(tests, NULL, NULL);
}
