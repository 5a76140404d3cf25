/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Memory from a program's functions: what they are told, whose memory counts, and what is
 * kept from them.
 */
#include "driver/sim/control.h"
#include "sim/pool/pool_harness.h"

#include "base/resource_impl.h"

/* A program that takes its memory from one of our resources, and notes the calls. */
typedef struct program {
    rmm_resource_t *inner;
    rmm_status_t answer; /* other than RMM_OK: refuses */
    size_t offset;       /* of what it hands out: spoils the alignment */
    bool gives_null;
    int allocs, deallocs;
    size_t bytes;
    rmm_stream_t stream;
} program_t;

static rmm_status_t
program_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    program_t *program = payload;
    rmm_status_t status = program->answer;
    void *ptr = NULL;

    program->allocs++;
    program->bytes = bytes;
    program->stream = stream;
    if (status == RMM_OK && !program->gives_null) {
        status = rmm_resource_alloc(program->inner, bytes + 256, 0, stream, &ptr);
        ptr = (char *)ptr + program->offset;
    }
    *ptr_out = ptr;
    return status;
}

static void program_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    program_t *program = payload;

    program->deallocs++;
    program->bytes = bytes;
    program->stream = stream;
    rmm_resource_dealloc(
        program->inner, (char *)ptr - program->offset, bytes + 256, 0, stream);
}

static rmm_resource_t *make_callback(program_t *program)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *mr;

    program->inner = make_cuda();
    options.alloc = program_alloc;
    options.dealloc = program_dealloc;
    options.payload = program;
    options.name = "mine";
    assert_ok(rmm_callback_resource_create(&options, &mr));
    return mr;
}

static void end(program_t *program, rmm_resource_t *mr)
{
    rmm_resource_release(mr);
    rmm_resource_release(program->inner);
    assert_int_equal(program->inner == NULL ? 0 : rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

static uint64_t location_bytes(uint32_t location)
{
    return rmm__location_live(location).bytes;
}

TEST_CASE(passes_the_request_to_the_functions)
{
    program_t program = {0};
    rmm_resource_t *mr = make_callback(&program);
    rmm_stream_t stream = make_stream(0);
    void *ptr = take(mr, 1000, stream);

    assert_int_equal(program.allocs, 1);
    assert_int_equal(program.bytes, 1000);
    assert_ptr_equal(program.stream, stream);
    program.bytes = 0;
    program.stream = NULL;
    give(mr, ptr, 1000, stream);
    assert_int_equal(program.deallocs, 1);
    assert_int_equal(program.bytes, 1000);
    assert_ptr_equal(program.stream, stream);
    assert_string_equal(rmm_resource_name(mr), "mine");
    assert_cuda(sim_driver()->stream_destroy(stream));
    end(&program, mr);
}

TEST_CASE(counts_the_users_bytes_once)
{
    program_t program = {0};
    rmm_resource_t *mr = make_callback(&program);
    uint64_t before = location_bytes(0);
    void *ptr = take(mr, 1000, NULL);
    void *own;

    assert_int_equal(location_bytes(0) - before, 1000);
    assert_int_equal(stats_of(mr).current_bytes, 1000);
    assert_int_equal(stats_of(program.inner).current_bytes, 1256);
    own = take(program.inner, 500, NULL); /* outside: a user's again */
    assert_int_equal(location_bytes(0) - before, 1500);
    give(program.inner, own, 500, NULL);
    give(mr, ptr, 1000, NULL);
    assert_int_equal(location_bytes(0), before);
    end(&program, mr);
}

static uint64_t location_reserved(void)
{
    return rmm__figure_get(&rmm__locations[0].reserved_bytes);
}

static rmm_status_t
driver_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    assert_cuda(sim_driver()->mem_alloc(ptr_out, bytes));
    return RMM_OK;
}

static void driver_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    assert_cuda(sim_driver()->mem_free(ptr));
}

/* A program's function that frees a block of a user, and keeps one for later. */
typedef struct cache {
    rmm_resource_t *source;
    void *of_user, *kept;
} cache_t;

static rmm_status_t
cache_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    cache_t *cache = payload;

    rmm_resource_dealloc(cache->source, cache->of_user, 1000, 0, stream);
    return rmm_resource_alloc(cache->source, 3000, 0, stream, &cache->kept) == RMM_OK
               ? rmm_resource_alloc(cache->source, bytes, 0, stream, ptr_out)
               : RMM_ERR_BAD_ALLOC;
}

static void cache_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    cache_t *cache = payload;

    rmm_resource_dealloc(cache->source, ptr, bytes, 0, stream);
}

static void count_as_allocated(rmm_resource_t *source)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    const uint64_t before = location_bytes(0);
    cache_t cache = {.source = source, .of_user = take(source, 1000, NULL)};
    rmm_resource_t *mr;
    void *ptr;

    options.alloc = cache_alloc;
    options.dealloc = cache_dealloc;
    options.payload = &cache;
    assert_ok(rmm_callback_resource_create(&options, &mr));
    ptr = take(mr, 500, NULL);
    assert_int_equal(location_bytes(0) - before, 500);
    give(source, cache.kept, 3000, NULL);
    assert_int_equal(location_bytes(0) - before, 500);
    give(mr, ptr, 500, NULL);
    assert_int_equal(location_bytes(0) - before, 0);
    rmm_resource_release(mr);
    rmm_resource_release(source);
}

TEST_CASE(counts_a_block_for_whom_it_was_allocated_whoever_frees_it)
{
    rmm_aligned_options_t options = RMM_ALIGNED_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *aligned;

    options.alignment_bytes = 4096;
    assert_ok(rmm_aligned_adaptor_create(cuda, &options, &aligned));
    count_as_allocated(cuda);
    count_as_allocated(aligned);
}

TEST_CASE(counts_what_it_holds_of_the_device_once)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    program_t program = {0};
    rmm_resource_t *from_ours = make_callback(&program);
    rmm_resource_t *from_driver;
    uint64_t before = location_reserved();
    void *ptr = take(from_ours, 1000, NULL);

    assert_int_equal(
        location_reserved() - before, 1256); /* as the inner resource has it */
    assert_int_equal(stats_of(from_ours).reserved_bytes, 1000);
    give(from_ours, ptr, 1000, NULL);
    assert_int_equal(location_reserved(), before);

    options.alloc = driver_alloc;
    options.dealloc = driver_dealloc;
    assert_ok(rmm_callback_resource_create(&options, &from_driver));
    ptr = take(from_driver, 1000, NULL);
    assert_int_equal(location_reserved() - before, 1000);
    take(from_ours, 500, NULL);
    assert_int_equal(location_reserved() - before, 1000 + 756);
    give(from_driver, ptr, 1000, NULL);
    assert_int_equal(location_reserved() - before, 756);
    rmm_resource_release(from_driver);
    end(&program, from_ours); /* with a block out */
    assert_int_equal(location_reserved(), before);
}

TEST_CASE(passes_on_neither_nothing_nor_too_much)
{
    program_t program = {0};
    rmm_resource_t *mr = make_callback(&program);
    void *ptr = &ptr;

    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptr));
    assert_null(ptr);
    rmm_resource_dealloc(mr, NULL, 0, 0, NULL);
    assert_int_equal(
        rmm_resource_alloc(mr, (size_t)PTRDIFF_MAX + 1, 0, NULL, &ptr),
        RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(program.allocs + program.deallocs, 0);
    end(&program, mr);
}

static uint64_t location_refused(void)
{
    return rmm__figure_get(&rmm__locations[0].oom_count);
}

TEST_CASE(passes_a_refusal_on_with_its_reason)
{
    program_t program = {.answer = RMM_ERR_OUT_OF_MEMORY};
    rmm_resource_t *mr = make_callback(&program);
    uint64_t refused = location_refused();
    void *ptr = NULL;

    assert_int_equal(
        rmm_resource_alloc(mr, 9, 3, NULL, &ptr), RMM_ERR_INVALID_ALIGNMENT);
    assert_non_null(strstr(rmm_last_error_message(), "power of two"));
    assert_int_equal(rmm_resource_alloc(mr, 9, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rmm_last_error_message(), "refused 9 bytes"));
    assert_null(strstr(rmm_last_error_message(), "power of two")); /* an older error */
    assert_int_equal(stats_of(mr).oom_count, 1);
    program.answer = RMM_OK;
    assert_int_equal(
        rmm_resource_alloc(mr, (size_t)1 << 50, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_non_null(strstr(rmm_last_error_message(), "cudaMalloc"));
    assert_int_equal(location_refused() - refused, 2); /* the second once, not twice */
    assert_null(ptr);
    end(&program, mr);
}

TEST_CASE(refuses_an_invalid_block)
{
    program_t program = {.offset = 8};
    rmm_resource_t *mr = make_callback(&program);
    void *ptr = NULL;

    assert_int_equal(rmm_resource_alloc(mr, 100, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_int_equal(program.deallocs, 1); /* it got its block back */
    program.offset = 256;
    assert_int_equal(rmm_resource_alloc(mr, 100, 512, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_int_equal(program.deallocs, 2);
    program.gives_null = true;
    assert_int_equal(rmm_resource_alloc(mr, 100, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_int_equal(program.deallocs, 2);
    assert_null(ptr);
    assert_int_equal(stats_of(mr).current_count, 0);
    end(&program, mr);
}

TEST_CASE(keeps_wrong_frees_from_the_program)
{
    program_t program = {0};
    rmm_resource_t *mr = make_callback(&program);
    char *ptr = take(mr, 1000, NULL);

    give(mr, ptr + 256, 1000, NULL);
    give(mr, ptr, 999, NULL);
    assert_int_equal(program.deallocs, 0);
    give(mr, ptr, 1000, NULL);
    give(mr, ptr, 1000, NULL);
    assert_int_equal(program.deallocs, 1);
    assert_int_equal(stats_of(mr).invalid_free_count, 3);
    end(&program, mr);
}

TEST_CASE(gives_back_at_its_end_what_is_out)
{
    program_t program = {0};
    rmm_resource_t *mr = make_callback(&program);
    uint64_t before = location_bytes(0);

    take(mr, 1000, NULL);
    take(mr, 2000, NULL);
    rmm_resource_release(mr);
    assert_int_equal(program.deallocs, 2);
    assert_int_equal(location_bytes(0), before);
    end(&program, NULL);
}

TEST_CASE(a_pool_can_be_built_on_it)
{
    program_t program = {0};
    rmm_resource_t *mr = make_callback(&program);
    rmm_resource_t *pool;

    assert_ok(rmm_pool_resource_create(mr, NULL, &pool));
    rmm_resource_release(mr);
    give(pool, take(pool, 1000, NULL), 1000, NULL);
    assert_int_equal(program.allocs, 1);
    end(&program, pool);
}

/* Its memory is ready when the work that prepares it on the stream is done. */
static rmm_status_t
late_alloc(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    *ptr_out = (void *)(uintptr_t)(64 * MIB);
    assert_cuda(launch_mark(payload, 1, stream));
    return RMM_OK;
}

static void late_dealloc(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    assert_cuda(launch_mark(payload, 2, stream));
}

/* A pool uses its chunks on any stream. */
TEST_CASE(a_pool_waits_until_its_memory_is_ready)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    journal_t journal = {.count = 0};
    rmm_resource_t *mr, *pool;
    void *ptr = NULL;

    options.alloc = late_alloc;
    options.dealloc = late_dealloc;
    options.payload = &journal;
    assert_ok(rmm_callback_resource_create(&options, &mr));
    assert_ok(rmm_pool_resource_create(mr, NULL, &pool));
    assert_true(rmm_sim_fail("mem_free:1:1")); /* by which it waits for the device */
    assert_int_not_equal(rmm_resource_alloc(pool, 1000, 0, NULL, &ptr), RMM_OK);
    assert_true(rmm__sim_fault_has_struck());
    assert_true(rmm_sim_fail(NULL));
    assert_null(ptr);
    assert_int_equal(stats_of(mr).current_count, 0); /* the upstream has it back */
    assert_cuda(rmm_sim_device_synchronize());
    assert_int_equal(journal.count, 2);
    ptr = take(pool, 1000, NULL);
    assert_int_equal(journal.count, 3);
    give(pool, ptr, 1000, NULL);
    rmm_resource_release(pool);
    rmm_resource_release(mr);
    assert_cuda(rmm_sim_device_synchronize());
}

TEST_CASE(needs_both_functions)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;

    assert_int_equal(rmm_callback_resource_create(NULL, &mr), RMM_ERR_INVALID_ARGUMENT);
    options.alloc = program_alloc;
    assert_int_equal(
        rmm_callback_resource_create(&options, &mr), RMM_ERR_INVALID_ARGUMENT);
    options.dealloc = program_dealloc;
    options.properties = 4;
    assert_int_equal(
        rmm_callback_resource_create(&options, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_null(mr);
}
