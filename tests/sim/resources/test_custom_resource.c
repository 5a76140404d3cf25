/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A resource over functions of the program: what they are told, when the synchronous ones
 * and is_equal() and destroy() run, what is kept from them, and what "unchecked" lets
 * through. What a callback resource shares with it is in test_callback_resource.c.
 */
#include "sim/pool/pool_harness.h"

#include <unistd.h>

#include "base/resource_impl.h"
#include "harness/in_child.h"

/* The program's side: memory from one of our resources, and the last call of each kind. */
typedef struct program {
    rmm_resource_t *inner;
    int allocs, deallocs, sync_allocs, sync_deallocs, destroys;
    size_t bytes, align;
    rmm_stream_t stream;
    void *answer; /* not NULL: the address that the next allocations get */
    bool gives_null;
    uint64_t kind; /* equal kinds are equal resources */
} program_t;

static rmm_status_t program_alloc(
    size_t bytes, size_t align, rmm_stream_t stream, void *payload, void **ptr_out)
{
    program_t *program = payload;

    program->allocs++;
    program->bytes = bytes;
    program->align = align;
    program->stream = stream;
    if (program->answer != NULL || program->gives_null) {
        *ptr_out = program->answer;
        return RMM_OK;
    }
    return rmm_resource_alloc(program->inner, bytes, align, stream, ptr_out);
}

static void program_dealloc(
    void *ptr, size_t bytes, size_t align, rmm_stream_t stream, void *payload)
{
    program_t *program = payload;

    program->deallocs++;
    program->bytes = bytes;
    program->align = align;
    program->stream = stream;
    if (program->answer == NULL && !program->gives_null) {
        rmm_resource_dealloc(program->inner, ptr, bytes, align, stream);
    }
}

static rmm_status_t
program_alloc_sync(size_t bytes, size_t align, void *payload, void **ptr_out)
{
    program_t *program = payload;

    program->sync_allocs++;
    return rmm_resource_alloc_sync(program->inner, bytes, align, ptr_out);
}

static void program_dealloc_sync(void *ptr, size_t bytes, size_t align, void *payload)
{
    program_t *program = payload;

    program->sync_deallocs++;
    rmm_resource_dealloc_sync(program->inner, ptr, bytes, align);
}

static bool program_is_equal(const void *payload, const void *other_payload)
{
    const program_t *one = payload;
    const program_t *other = other_payload;

    return one->kind == other->kind;
}

static void program_destroy(void *payload)
{
    program_t *program = payload;

    program->destroys++;
    rmm_resource_release(program->inner);
    program->inner = NULL;
}

/* Over a pool, which gives any alignment. */
static rmm_resource_t *
make_custom(program_t *program, const rmm_custom_resource_ops_t *more)
{
    rmm_custom_resource_ops_t ops = *more;
    rmm_resource_t *mr;

    program->inner = make_pool(0, 0);
    ops.alloc = program_alloc;
    ops.dealloc = program_dealloc;
    ops.destroy = program_destroy;
    assert_ok(rmm_custom_resource_create(&ops, program, &mr));
    return mr;
}

static const rmm_custom_resource_ops_t plain = RMM_CUSTOM_RESOURCE_OPS_INIT;

static void end(program_t *program, rmm_resource_t *mr)
{
    rmm_resource_release(mr);
    assert_int_equal(program->destroys, 1);
    assert_int_equal(rmm_sim_allocated_bytes(0), 0);
    assert_int_equal(rmm_sim_violations(), 0);
}

TEST_CASE(passes_on_size_alignment_and_stream)
{
    program_t program = {0};
    rmm_resource_t *mr = make_custom(&program, &plain);
    rmm_stream_t stream = make_stream(0);
    void *ptr;

    assert_ok(rmm_resource_alloc(mr, 1000, 4096, stream, &ptr));
    assert_int_equal(program.bytes, 1000);
    assert_int_equal(program.align, 4096);
    assert_ptr_equal(program.stream, stream);
    program = (program_t){.inner = program.inner, .allocs = 1};
    rmm_resource_dealloc(mr, ptr, 1000, 0, stream); /* knows better than the caller */
    assert_int_equal(program.bytes, 1000);
    assert_int_equal(program.align, 4096);
    assert_ptr_equal(program.stream, stream);
    give(mr, take(mr, 5, NULL), 5, NULL);
    assert_int_equal(program.align, 256);
    assert_string_equal(rmm_resource_type(mr), "custom");
    assert_int_equal(program.allocs, 2);
    assert_int_equal(program.deallocs, 2);
    assert_cuda(sim_driver()->stream_destroy(stream));
    end(&program, mr);
}

TEST_CASE(gives_back_at_its_end_with_the_alignment_of_each_block)
{
    program_t program = {0};
    rmm_resource_t *mr = make_custom(&program, &plain);
    void *ptr;

    assert_ok(rmm_resource_alloc(mr, 1000, RMM_ALIGN_MAX, NULL, &ptr));
    end(&program, mr);
    assert_int_equal(program.deallocs, 1);
    assert_int_equal(program.align, RMM_ALIGN_MAX);
    assert_ptr_equal(program.stream, RMM_STREAM_LEGACY);
}

TEST_CASE(counts_like_other_base_resources)
{
    program_t program = {0};
    rmm_resource_t *mr = make_custom(&program, &plain);
    uint64_t before = rmm__location_live(0).bytes;
    void *ptr = take(mr, 1000, NULL);
    rmm_stats_t stats = stats_of(mr);

    assert_int_equal(stats.current_bytes, 1000);
    assert_int_equal(stats.reserved_bytes, 1000);
    assert_int_equal(rmm__location_live(0).bytes - before, 1000);
    give(mr, (char *)ptr + 256, 1000, NULL);
    give(mr, ptr, 1000, NULL);
    give(mr, ptr, 1000, NULL);
    stats = stats_of(mr);
    assert_int_equal(stats.invalid_free_count, 2);
    assert_int_equal(stats.current_bytes + stats.reserved_bytes, 0);
    assert_int_equal(program.deallocs, 1);
    end(&program, mr);
}

TEST_CASE(calls_the_synchronous_functions_if_there_are_any)
{
    rmm_custom_resource_ops_t ops = RMM_CUSTOM_RESOURCE_OPS_INIT;
    program_t program = {0};
    rmm_resource_t *mr, *adaptor;
    void *ptr;

    ops.alloc_sync = program_alloc_sync;
    ops.dealloc_sync = program_dealloc_sync;
    mr = make_custom(&program, &ops);
    assert_ok(rmm_resource_alloc_sync(mr, 1000, 0, &ptr));
    rmm_resource_dealloc_sync(mr, ptr, 1000, 0);
    assert_ok(rmm_statistics_adaptor_create(mr, NULL, &adaptor));
    assert_ok(rmm_resource_alloc_sync(adaptor, 1000, 0, &ptr));
    rmm_resource_dealloc_sync(adaptor, ptr, 1000, 0);
    assert_int_equal(program.sync_allocs, 2);
    assert_int_equal(program.sync_deallocs, 2);
    assert_int_equal(program.allocs + program.deallocs, 0);
    give(mr, take(mr, 1000, NULL), 1000, NULL);
    assert_int_equal(program.allocs + program.deallocs, 2);
    rmm_resource_release(adaptor);
    end(&program, mr);
}

TEST_CASE(waits_for_the_stream_without_synchronous_functions)
{
    program_t program = {0};
    rmm_resource_t *mr = make_custom(&program, &plain);
    void *ptr;

    assert_ok(rmm_resource_alloc_sync(mr, 1000, 512, &ptr));
    assert_int_equal(program.allocs, 1);
    assert_int_equal(program.align, 512);
    assert_ptr_equal(program.stream, RMM_STREAM_LEGACY);
    rmm_resource_dealloc_sync(mr, ptr, 1000, 512);
    assert_int_equal(program.deallocs, 1);
    end(&program, mr);
}

TEST_CASE(is_equal_where_its_function_says_so)
{
    rmm_custom_resource_ops_t ops = RMM_CUSTOM_RESOURCE_OPS_INIT;
    program_t programs[3] = {{.kind = 1}, {.kind = 1}, {.kind = 2}};
    program_t other = {.kind = 1};
    rmm_resource_t *mrs[3];
    rmm_resource_t *without = make_custom(&other, &ops);

    ops.is_equal = program_is_equal;
    for (int i = 0; i < 3; i++) {
        mrs[i] = make_custom(&programs[i], &ops);
    }
    assert_true(rmm_resource_is_equal(mrs[0], mrs[0]));
    assert_true(rmm_resource_is_equal(mrs[0], mrs[1]));
    assert_true(rmm_resource_is_equal(mrs[1], mrs[0]));
    assert_false(rmm_resource_is_equal(mrs[0], mrs[2]));
    assert_false(rmm_resource_is_equal(mrs[0], without));
    assert_false(rmm_resource_is_equal(without, mrs[0]));
    assert_false(rmm_resource_is_equal(mrs[0], programs[0].inner));
    assert_false(rmm_resource_is_equal(mrs[0], NULL));
    assert_false(rmm_resource_is_equal(NULL, mrs[0]));
    rmm_resource_release(without);
    for (int i = 0; i < 3; i++) {
        rmm_resource_release(mrs[i]);
        assert_int_equal(programs[i].destroys, 1);
    }
}

TEST_CASE(leaves_the_payload_alone_when_it_cannot_be_made)
{
    rmm_custom_resource_ops_t ops = RMM_CUSTOM_RESOURCE_OPS_INIT;
    rmm_resource_t *mr = NULL;
    program_t program = {0};

    assert_int_equal(
        rmm_custom_resource_create(NULL, &program, &mr), RMM_ERR_INVALID_ARGUMENT);
    ops.alloc = program_alloc;
    ops.destroy = program_destroy;
    assert_int_equal(
        rmm_custom_resource_create(&ops, &program, &mr), RMM_ERR_INVALID_ARGUMENT);
    ops.dealloc = program_dealloc;
    ops.alloc_sync = program_alloc_sync;
    assert_int_equal(
        rmm_custom_resource_create(&ops, &program, &mr), RMM_ERR_INVALID_ARGUMENT);
    ops.dealloc_sync = program_dealloc_sync;
    ops.properties = 4;
    assert_int_equal(
        rmm_custom_resource_create(&ops, &program, &mr), RMM_ERR_INVALID_ARGUMENT);
    ops.properties = 0;
    ops.flags = 2;
    assert_int_equal(
        rmm_custom_resource_create(&ops, &program, &mr), RMM_ERR_INVALID_ARGUMENT);
    ops.flags = 0;
    ops.struct_size = 8;
    assert_int_equal(
        rmm_custom_resource_create(&ops, &program, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_null(mr);
    assert_int_equal(program.destroys, 0);
}

TEST_CASE(carries_pools_arenas_and_adaptors)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;
    program_t program = {0};
    rmm_resource_t *mr = make_custom(&program, &plain);
    rmm_resource_t *pool, *arena, *aligned;

    options.arena_bytes = 16 * MIB;
    assert_ok(rmm_pool_resource_create(mr, NULL, &pool));
    assert_ok(rmm_arena_resource_create(mr, &options, &arena));
    assert_ok(rmm_aligned_adaptor_create(mr, NULL, &aligned));
    give(pool, take(pool, 1000, NULL), 1000, NULL);
    give(arena, take(arena, 1000, NULL), 1000, NULL);
    give(aligned, take(aligned, 1000, NULL), 1000, NULL);
    assert_int_equal(program.allocs, 3);
    rmm_resource_release(pool);
    rmm_resource_release(arena);
    rmm_resource_release(aligned);
    end(&program, mr);
    assert_int_equal(program.deallocs, 3);
}

/* In a forked child the memory is the parent's: no function runs. */
TEST_CASE(calls_nothing_in_a_forked_child)
{
    program_t program = {0};
    rmm_resource_t *mr = make_custom(&program, &plain);
    void *ptr = take(mr, 1000, NULL);
    pid_t child = fork_child();

    if (child == 0) {
        bool works = rmm_resource_alloc(mr, 9, 0, NULL, &ptr) != RMM_ERR_UNSUPPORTED;

        rmm_resource_dealloc(mr, ptr, 1000, 0, NULL);
        rmm_resource_release(mr);
        _exit(works + program.deallocs + program.destroys + (program.allocs - 1));
    }
    assert_int_equal(exit_status_of(child), 0);
    give(mr, ptr, 1000, NULL);
    end(&program, mr);
}

/* --- unchecked -------------------------------------------------------------------------- */

static rmm_resource_t *make_unchecked(program_t *program)
{
    rmm_custom_resource_ops_t ops = RMM_CUSTOM_RESOURCE_OPS_INIT;

    ops.flags = RMM_CUSTOM_UNCHECKED;
    return make_custom(program, &ops);
}

TEST_CASE(hands_any_address_on_if_unchecked)
{
    program_t program = {.answer = (void *)(uintptr_t)123};
    rmm_resource_t *mr = make_unchecked(&program);
    void *ptr;

    assert_ok(rmm_resource_alloc(mr, 5, 512, NULL, &ptr));
    assert_ptr_equal(ptr, program.answer);
    rmm_resource_dealloc(mr, ptr, 5, 512, NULL);
    assert_int_equal(program.deallocs, 1);
    assert_int_equal(stats_of(mr).invalid_free_count, 0);
    end(&program, mr);
}

TEST_CASE(hands_null_on_if_unchecked)
{
    program_t program = {.gives_null = true};
    rmm_resource_t *mr = make_unchecked(&program);
    rmm_resource_t *adaptor;
    void *ptr = &ptr;

    assert_ok(rmm_resource_alloc(mr, 1000, 0, NULL, &ptr));
    assert_null(ptr);
    assert_int_equal(stats_of(mr).current_bytes, 1000);
    assert_int_equal(stats_of(mr).reserved_bytes, 0);
    rmm_resource_dealloc(mr, NULL, 1001, 0, NULL); /* more than there is: ignored */
    assert_int_equal(program.deallocs, 0);
    rmm_resource_dealloc(mr, NULL, 1000, 0, NULL);
    rmm_resource_dealloc(mr, NULL, 1000, 0, NULL);
    assert_int_equal(program.deallocs, 1);
    assert_int_equal(program.bytes, 1000);
    assert_int_equal(stats_of(mr).current_bytes, 0);
    assert_ok(rmm_statistics_adaptor_create(mr, NULL, &adaptor));
    assert_ok(rmm_resource_alloc(adaptor, 1000, 0, NULL, &ptr));
    rmm_resource_dealloc(adaptor, NULL, 1000, 0, NULL);
    assert_int_equal(program.deallocs, 2);
    assert_int_equal(stats_of(mr).current_bytes + stats_of(adaptor).current_bytes, 0);
    rmm_resource_release(adaptor);
    end(&program, mr);
}

TEST_CASE(passes_requests_of_no_bytes_if_unchecked)
{
    program_t program = {.gives_null = true};
    rmm_resource_t *mr = make_unchecked(&program);
    void *ptr = &ptr;

    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptr));
    assert_null(ptr);
    rmm_resource_dealloc(mr, NULL, 0, 0, NULL);
    rmm_resource_dealloc(mr, NULL, 0, 0, NULL);
    assert_int_equal(program.allocs, 1);
    assert_int_equal(program.deallocs, 1);
    program.answer = (void *)(uintptr_t)4096;
    assert_int_equal(rmm_resource_alloc(mr, 0, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_int_equal(program.deallocs, 2); /* it has that back */
    assert_int_equal(stats_of(mr).current_count, 0);
    end(&program, mr);
}

TEST_CASE(a_pool_refuses_unusable_memory_of_an_unchecked_resource)
{
    program_t program = {.gives_null = true};
    rmm_resource_t *mr = make_unchecked(&program);
    rmm_resource_t *pool, *tracking, *binning;
    void *ptr;

    assert_ok(rmm_pool_resource_create(mr, NULL, &pool));
    assert_ok(rmm_tracking_adaptor_create(mr, NULL, &tracking));
    assert_ok(rmm_binning_resource_create(mr, NULL, &binning));
    assert_int_equal(rmm_resource_alloc(pool, 9, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_int_equal(rmm_resource_alloc(tracking, 9, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_int_equal(rmm_resource_alloc(binning, 9, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    assert_int_equal(stats_of(mr).current_bytes, 0);
    program.answer = (void *)(uintptr_t)123;
    assert_int_equal(rmm_resource_alloc(pool, 9, 0, NULL, &ptr), RMM_ERR_BAD_ALLOC);
    rmm_resource_release(pool);
    rmm_resource_release(tracking);
    rmm_resource_release(binning);
    end(&program, mr);
}

/* Freed a second time, the block would be lost to its first user. */
TEST_CASE(refuses_the_address_of_a_block_that_is_out)
{
    program_t program = {0};
    rmm_resource_t *mr = make_custom(&program, &plain);
    rmm_resource_t *pool;
    void *chunk, *first, *second;

    assert_ok(rmm_pool_resource_create(mr, NULL, &pool));
    first = take(mr, 1000, NULL);
    chunk = take(pool, 1000, NULL);
    program.answer = first;
    assert_int_equal(rmm_resource_alloc(mr, 1000, 0, NULL, &second), RMM_ERR_BAD_ALLOC);
    assert_non_null(
        strstr(rmm_last_error_message(), "address of a block that is still live"));
    assert_int_equal(
        rmm_resource_alloc(pool, 64u << 20, 0, NULL, &second), RMM_ERR_BAD_ALLOC);
    assert_int_equal(program.deallocs, 0);
    program.answer = NULL;
    assert_int_equal(stats_of(mr).current_count, 2); /* and the pool's chunk */
    give(mr, first, 1000, NULL);
    give(pool, chunk, 1000, NULL);
    rmm_resource_release(pool);
    assert_int_equal(stats_of(mr).current_count, 0);
    end(&program, mr);
}
