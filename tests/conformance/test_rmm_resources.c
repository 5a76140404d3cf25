/* SPDX-License-Identifier: Apache-2.0 */
/*
 * RMM's cases of pool_mr, pinned_host_pool_mr, binning_mr and callback_mr, and those of
 * aligned_mr and failure_callback_mr that need a mock.
 */
#include "conformance/rmm_cases.h"

/* --- pool_mr_tests ------------------------------------------------------------------ */

static void max_less_than_initial(rmm_resource_t *upstream)
{
    rmm_resource_t *mr = NULL;

    assert_int_equal(pool_over(upstream, 1024, 256, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_null(mr);
}

static void throw_max_less_than_initial(void **state)
{
    max_less_than_initial(cuda_resource());
}

static uint64_t percent_of_free(uint64_t percent)
{
    uint64_t free_bytes;
    uint64_t total_bytes;

    assert_int_equal(gpu()->memory_info(&free_bytes, &total_bytes), RMM_DRIVER_OK);
    return free_bytes / 100 * percent / 256 * 256;
}

static void allocate_ninety_percent(void **state)
{
    rmm_resource_t *mr;

    assert_ok(pool_over(cuda_resource(), percent_of_free(90), 0, &mr));
    rmm_resource_release(mr);
}

static void two_large_buffers(void **state)
{
    rmm_resource_t *mr;
    size_t quarter = percent_of_free(25);
    void *first;
    void *second;

    assert_ok(pool_over(cuda_resource(), percent_of_free(50), 0, &mr));
    first = take(mr, quarter);
    second = take(mr, quarter);
    use(first, 256, NULL);
    use(second, 256, NULL);
    give(mr, first, quarter);
    give(mr, second, quarter);
    rmm_resource_release(mr);
}

static rmm_resource_t *limited_cuda(uint64_t limit_bytes)
{
    rmm_limiting_options_t options = RMM_LIMITING_OPTIONS_INIT;
    rmm_resource_t *cuda = cuda_resource();
    rmm_resource_t *mr;

    options.limit_bytes = limit_bytes;
    assert_ok(rmm_limiting_adaptor_create(cuda, &options, &mr));
    rmm_resource_release(cuda);
    return mr;
}

/* With a maximum RMM's pool takes half of the rest at once and so refuses 4000; ours has
 * room for it. */
static void force_growth(void **state)
{
    static const uint64_t maxima[] = {0, 8192};

    for (size_t i = 0; i < 2; i++) {
        rmm_resource_t *mr;
        void *small, *large;

        assert_ok(pool_over(limited_cuda(6000), 0, maxima[i], &mr));
        small = take(mr, 1000);
        large = take(mr, 4000);
        give(mr, take(mr, 500), 500);
        refuse(mr, 2000);
        give(mr, small, 1000);
        give(mr, large, 4000);
        give(mr, take(mr, 5800), 5800); /* the three chunks go back first */
        rmm_resource_release(mr);
    }
}

static void deleted_stream(void **state)
{
    rmm_resource_t *mr;
    rmm_stream_t stream;
    void *ptr;

    assert_ok(pool_over(cuda_resource(), 0, 0, &mr));
    assert_ok(rmm_stream_create(0, &stream));
    assert_ok(rmm_resource_alloc(mr, 10000, 0, stream, &ptr));
    rmm_resource_dealloc(mr, ptr, 10000, 0, stream);
    assert_ok(rmm_stream_destroy(stream));
    ptr = take(mr, 10000);
    use(ptr, 10000, NULL);
    give(mr, ptr, 10000);
    rmm_resource_release(mr);
}

static void initial_and_max_equal(rmm_resource_t *upstream)
{
    rmm_resource_t *mr;

    assert_ok(pool_over(upstream, 1000192, 1000192, &mr));
    give(mr, take(mr, 1000), 1000);
    rmm_resource_release(mr);
}

static void initial_and_max_pool_size_equal(void **state)
{
    initial_and_max_equal(cuda_resource());
}

/* RMM refuses them; here they are rounded up, as the header says. */
static void non_aligned(rmm_resource_t *(*upstream)(void))
{
    rmm_stats_t stats = RMM_STATS_INIT;
    rmm_resource_t *mr;
    void *first;
    void *second;

    assert_ok(pool_over(upstream(), 1000031, 1000192, &mr));
    assert_ok(rmm_resource_get_stats(mr, &stats));
    assert_int_equal(stats.reserved_bytes, 1000192);
    give(mr, take(mr, 1000), 1000);
    rmm_resource_release(mr);
    assert_ok(pool_over(upstream(), 1000192, 1000200, &mr));
    first = take(mr, 1000192);
    second = take(mr, 256); /* all that the maximum allows, rounded up */
    refuse(mr, 1);
    give(mr, first, 1000192);
    give(mr, second, 256);
    rmm_resource_release(mr);
}

static void non_aligned_pool_size(void **state)
{
    non_aligned(cuda_resource);
}

static void upstream_doesnt_support_mem_info(void **state)
{
    rmm_resource_t *lower;
    rmm_resource_t *upper;

    assert_ok(pool_over(cuda_resource(), 0, 0, &lower));
    assert_ok(pool_over(lower, 0, 0, &upper));
    give(upper, take(upper, 1024), 1024);
    rmm_resource_release(upper);
}

static void multidevice_pool(void **state)
{
    rmm_resource_t *pools[2];
    void *blocks[2];
    int count;

    assert_int_equal(gpu()->device_count(&count), RMM_DRIVER_OK);
    if (count < 2) {
        print_message("one device only\n");
        skip();
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpu()->device_set(i), RMM_DRIVER_OK);
        assert_ok(pool_over(cuda_resource(), 1024, 1024, &pools[i]));
        assert_ok(rmm_set_per_device_resource(i, pools[i], NULL));
    }
    for (int i = 0; i < 2; i++) {
        assert_int_equal(gpu()->device_set(i), RMM_DRIVER_OK);
        assert_ok(
            rmm_resource_alloc(pools[i], 16, 0, RMM_STREAM_PER_THREAD, &blocks[i]));
    }
    for (int i = 0; i < 2; i++) { /* while device 1 is current */
        rmm_resource_dealloc(pools[i], blocks[i], 16, 0, NULL);
        assert_ok(rmm_reset_per_device_resource(i));
        rmm_resource_release(pools[i]);
    }
    assert_int_equal(gpu()->device_set(0), RMM_DRIVER_OK);
}

static void get_upstream_resource(void **state)
{
    rmm_resource_t *cuda = cuda_resource();
    rmm_resource_t *mr;

    assert_ok(pool_over(rmm_resource_retain(cuda), 0, 0, &mr));
    assert_ptr_equal(rmm_resource_upstream(mr), cuda);
    assert_true(rmm_resource_is_equal(rmm_resource_upstream(mr), cuda));
    assert_null(rmm_resource_upstream(cuda));
    rmm_resource_release(mr);
    rmm_resource_release(cuda);
}

static void allocate_deallocate(void **state)
{
    rmm_resource_t *mr;
    void *ptr;

    assert_ok(pool_over(cuda_resource(), 0, 0, &mr));
    ptr = take(mr, 1024);
    use(ptr, 1024, NULL);
    give(mr, ptr, 1024);
    rmm_resource_release(mr);
}

static void shared_ownership(void **state)
{
    rmm_resource_t *mr;
    rmm_resource_t *copy;
    void *ptr;

    assert_ok(pool_over(cuda_resource(), 0, 0, &mr));
    copy = rmm_resource_retain(mr);
    ptr = take(mr, 1024);
    rmm_resource_release(mr);
    use(ptr, 1024, NULL);
    give(copy, ptr, 1024);
    rmm_resource_release(copy);
}

static void equality(void **state)
{
    rmm_resource_t *mr;
    rmm_resource_t *copy;
    rmm_resource_t *other;

    assert_ok(pool_over(cuda_resource(), 0, 0, &mr));
    assert_ok(pool_over(cuda_resource(), 0, 0, &other));
    copy = rmm_resource_retain(mr);
    assert_true(rmm_resource_is_equal(mr, copy));
    assert_false(rmm_resource_is_equal(mr, other));
    rmm_resource_release(copy);
    rmm_resource_release(mr);
    rmm_resource_release(other);
}

static void pool_size(void **state)
{
    rmm_stats_t stats = RMM_STATS_INIT;
    rmm_resource_t *mr;

    assert_ok(pool_over(cuda_resource(), MIB, 0, &mr));
    assert_ok(rmm_resource_get_stats(mr, &stats));
    assert_true(stats.reserved_bytes >= MIB);
    rmm_resource_release(mr);
}

/* --- pinned_host_pool_mr_tests ------------------------------------------------------ */

static void pinned_throw_max_less_than_initial(void **state)
{
    max_less_than_initial(pinned_resource());
}

static void pinned_initial_and_max_pool_size_equal(void **state)
{
    initial_and_max_equal(pinned_resource());
}

static void pinned_non_aligned_pool_size(void **state)
{
    non_aligned(pinned_resource);
}

static void pinned_throw_out_of_memory(void **state)
{
    rmm_resource_t *mr;
    void *ptr;

    assert_ok(pool_over(pinned_resource(), 0, 1024, &mr));
    ptr = take(mr, 1024);
    memset(ptr, 1, 1024);
    refuse(mr, 1024);
    give(mr, ptr, 1024);
    rmm_resource_release(mr);
}

/* --- binning_mr_tests ---------------------------------------------------------------- */

static void explicit_bin_mr(void **state)
{
    rmm_resource_t *cuda = cuda_resource();
    rmm_stats_t stats = RMM_STATS_INIT;
    rmm_resource_t *mr;
    rmm_resource_t *bin;
    void *ptr;

    assert_ok(rmm_binning_resource_create(cuda, NULL, &mr));
    assert_ok(pool_over(cuda, 0, 0, &bin));
    assert_ok(rmm_binning_resource_add_bin(mr, 1024, bin));
    ptr = take(mr, 512);
    assert_ok(rmm_resource_get_stats(bin, &stats));
    assert_int_equal(stats.current_bytes, 512);
    use(ptr, 512, NULL);
    give(mr, ptr, 512);
    rmm_resource_release(bin);
    rmm_resource_release(mr);
}

/* RMM's mock_resource: returns what the test sets, and notes how it is called. */
typedef struct mock {
    void *answer;
    int allocs, deallocs;
    size_t bytes, align;
    rmm_stream_t stream;
    void *ptr; /* the last one that came back */
} mock_t;

static rmm_status_t mock_alloc(
    size_t bytes, size_t align, rmm_stream_t stream, void *payload, void **ptr_out)
{
    mock_t *mock = payload;

    mock->allocs++;
    mock->bytes = bytes;
    mock->align = align;
    mock->stream = stream;
    *ptr_out = mock->answer;
    return RMM_OK;
}

static void
mock_dealloc(void *ptr, size_t bytes, size_t align, rmm_stream_t stream, void *payload)
{
    mock_t *mock = payload;

    mock->deallocs++;
    mock->bytes = bytes;
    mock->align = align;
    mock->stream = stream;
    mock->ptr = ptr;
}

static rmm_resource_t *mock_resource(mock_t *mock)
{
    rmm_custom_resource_ops_t ops = RMM_CUSTOM_RESOURCE_OPS_INIT;
    rmm_resource_t *mr;

    ops.alloc = mock_alloc;
    ops.dealloc = mock_dealloc;
    ops.flags = RMM_CUSTOM_UNCHECKED;
    assert_ok(rmm_custom_resource_create(&ops, mock, &mr));
    return mr;
}

/* What is asked of `mr` comes to the mock as it is, both ways. */
static void passes_through(rmm_resource_t *mr, mock_t *mock, size_t bytes, size_t align)
{
    int calls = mock->allocs;
    rmm_stream_t stream;
    void *ptr;

    assert_ok(rmm_stream_create(0, &stream));
    assert_ok(rmm_resource_alloc(mr, bytes, align, stream, &ptr));
    assert_ptr_equal(ptr, mock->answer);
    assert_int_equal(mock->allocs, calls + 1);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(mock->bytes, bytes);
        assert_int_equal(mock->align, align != 0 ? align : RMM_ALIGN_DEFAULT);
        assert_ptr_equal(mock->stream, stream);
        if (i == 0) {
            *mock = (mock_t){.answer = ptr, .allocs = mock->allocs};
            rmm_resource_dealloc(mr, ptr, bytes, align, stream);
        }
    }
    assert_int_equal(mock->deallocs, 1);
    assert_ptr_equal(mock->ptr, ptr);
    assert_ok(rmm_stream_destroy(stream));
}

static void zero_byte_allocations_use_bin_resource(void **state)
{
    rmm_resource_t *cuda = cuda_resource();
    mock_t mock = {0};
    rmm_resource_t *bin = mock_resource(&mock);
    rmm_resource_t *mr;
    void *ptr;

    assert_ok(rmm_binning_resource_create(cuda, NULL, &mr));
    assert_ok(rmm_binning_resource_add_bin(mr, 1024, bin));
    passes_through(mr, &mock, 0, 0);
    assert_ok(rmm_resource_alloc_sync(mr, 0, 0, &ptr));
    assert_null(ptr);
    rmm_resource_dealloc_sync(mr, NULL, 0, 0);
    assert_int_equal(mock.allocs, 2);
    assert_int_equal(mock.deallocs, 2);
    rmm_resource_release(bin);
    rmm_resource_release(mr);
    rmm_resource_release(cuda);
}

/* --- callback_mr_tests ---------------------------------------------------------------- */

static rmm_status_t
ask_mock(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    return mock_alloc(bytes, RMM_ALIGN_DEFAULT, stream, payload, ptr_out);
}

static void tell_mock(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    mock_dealloc(ptr, bytes, RMM_ALIGN_DEFAULT, stream, payload);
}

/* The mock returns NULL, as RMM's does. */
static void test_callbacks_are_invoked(void **state)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    mock_t mock = {0};
    rmm_resource_t *mr;

    options.alloc = ask_mock;
    options.dealloc = tell_mock;
    options.payload = &mock;
    options.flags = RMM_CUSTOM_UNCHECKED;
    assert_ok(rmm_callback_resource_create(&options, &mr));
    passes_through(mr, &mock, 10 * MIB, 0);
    rmm_resource_release(mr);
}

/* --- a program's own memory, with a log of its calls ---------------------------------- */

typedef struct program {
    rmm_resource_t *inner;
    FILE *log;
} program_t;

static rmm_status_t
program_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    const program_t *program = payload;

    fprintf(program->log, "Allocating %zu bytes\n", bytes);
    return rmm_resource_alloc(program->inner, bytes, 0, stream, ptr_out);
}

static void program_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    const program_t *program = payload;

    fprintf(program->log, "Deallocating %zu bytes\n", bytes);
    rmm_resource_dealloc(program->inner, ptr, bytes, 0, stream);
}

static rmm_resource_t *program_resource(program_t *program)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *mr;

    program->inner = cuda_resource();
    options.alloc = program_alloc;
    options.dealloc = program_dealloc;
    options.payload = program;
    assert_ok(rmm_callback_resource_create(&options, &mr));
    return mr;
}

static void logging_test(void **state)
{
    char *text = NULL;
    size_t length = 0;
    program_t program = {.log = open_memstream(&text, &length)};
    rmm_resource_t *mr = program_resource(&program);

    assert_non_null(program.log);
    give(mr, take(mr, MIB), MIB);
    assert_int_equal(fclose(program.log), 0);
    assert_string_equal(text, "Allocating 1048576 bytes\nDeallocating 1048576 bytes\n");
    free(text);
    rmm_resource_release(mr);
    rmm_resource_release(program.inner);
}

/* --- aligned_mr_tests, failure_callback_mr_tests -------------------------------------- */

static rmm_resource_t *
aligned_over(mock_t *mock, uint64_t alignment_bytes, uint64_t threshold_bytes)
{
    rmm_aligned_options_t options = RMM_ALIGNED_OPTIONS_INIT;
    rmm_resource_t *upstream = mock_resource(mock);
    rmm_resource_t *mr;

    options.alignment_bytes = alignment_bytes;
    options.threshold_bytes = threshold_bytes;
    assert_ok(rmm_aligned_adaptor_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

static void default_allocation_alignment_passthrough(void **state)
{
    mock_t mock = {.answer = (void *)(uintptr_t)123};
    rmm_resource_t *mr = aligned_over(&mock, 0, 0);

    passes_through(mr, &mock, 5, 0);
    rmm_resource_release(mr);
}

static void below_alignment_threshold_passthrough(void **state)
{
    mock_t mock = {.answer = (void *)(uintptr_t)123};
    rmm_resource_t *mr = aligned_over(&mock, 4096, 65536);

    passes_through(mr, &mock, 3, 0);
    mock.answer = (void *)(uintptr_t)456;
    passes_through(mr, &mock, 65528, 0);
    rmm_resource_release(mr);
}

static bool never_again(size_t bytes, void *arg)
{
    return false;
}

static void forwards_alignment(void **state)
{
    rmm_failure_callback_options_t options = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    unsigned char byte;
    mock_t mock = {.answer = &byte};
    rmm_resource_t *upstream = mock_resource(&mock);
    rmm_resource_t *mr;

    options.callback = never_again;
    assert_ok(rmm_failure_callback_adaptor_create(upstream, &options, &mr));
    passes_through(mr, &mock, 1024, 512);
    rmm_resource_release(mr);
    rmm_resource_release(upstream);
}

/* clang-format off */
static const struct CMUnitTest tests[] = {
    CASE("PoolTest.ThrowMaxLessThanInitial", throw_max_less_than_initial),
    CASE("PoolTest.AllocateNinetyPercent", allocate_ninety_percent),
    CASE("PoolTest.TwoLargeBuffers", two_large_buffers),
    CASE("PoolTest.ForceGrowth", force_growth),
    CASE("PoolTest.DeletedStream", deleted_stream),
    CASE("PoolTest.InitialAndMaxPoolSizeEqual", initial_and_max_pool_size_equal),
    CASE("PoolTest.NonAlignedPoolSize", non_aligned_pool_size),
    CASE("PoolTest.UpstreamDoesntSupportMemInfo", upstream_doesnt_support_mem_info),
    CASE("PoolTest.MultidevicePool", multidevice_pool),
    CASE("PoolTest.GetUpstreamResource", get_upstream_resource),
    CASE("PoolTest.AllocateDeallocate", allocate_deallocate),
    CASE("PoolTest.SharedOwnership", shared_ownership),
    CASE("PoolTest.Equality", equality),
    CASE("PoolTest.PoolSize", pool_size),
    CASE("PinnedPoolTest.ThrowMaxLessThanInitial", pinned_throw_max_less_than_initial),
    CASE("PinnedPoolTest.InitialAndMaxPoolSizeEqual", pinned_initial_and_max_pool_size_equal),
    CASE("PinnedPoolTest.NonAlignedPoolSize", pinned_non_aligned_pool_size),
    CASE("PinnedPoolTest.ThrowOutOfMemory", pinned_throw_out_of_memory),
    CASE("BinningTest.ExplicitBinMR", explicit_bin_mr),
    CASE("BinningTest.ZeroByteAllocationsUseBinResource", zero_byte_allocations_use_bin_resource),
    CASE("CallbackTest.TestCallbacksAreInvoked", test_callbacks_are_invoked),
    CASE("CallbackTest.LoggingTest", logging_test),
    CASE("AlignedTest.DefaultAllocationAlignmentPassthrough", default_allocation_alignment_passthrough),
    CASE("AlignedTest.BelowAlignmentThresholdPassthrough", below_alignment_threshold_passthrough),
    CASE("FailureCallbackTest.ForwardsAlignment", forwards_alignment),
};
/* clang-format on */

int main(void)
{
    int result = begin_cases();

    return result != 0 ? result : cmocka_run_group_tests(tests, NULL, NULL);
}
