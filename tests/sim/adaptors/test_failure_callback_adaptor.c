/* SPDX-License-Identifier: Apache-2.0 */
/* The failure callback adaptor: RMM's cases by name, and what a callback may do. */
#include "sim/adaptors/adaptor_harness.h"

typedef struct program {
    int calls;
    int retries; /* answers true this often */
    size_t bytes;
    void (*act)(void *argument);
    void *argument;
} program_t;

static bool on_failure(size_t bytes, void *arg)
{
    program_t *program = arg;

    program->calls++;
    program->bytes = bytes;
    if (program->act != NULL) {
        program->act(program->argument);
    }
    return program->calls <= program->retries;
}

static rmm_resource_t *
make_failure_callback(rmm_resource_t *upstream, program_t *program, uint32_t flags)
{
    rmm_failure_callback_options_t options = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.callback = on_failure;
    options.arg = program;
    options.flags = flags;
    assert_ok(rmm_failure_callback_adaptor_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

TEST_CASE(retries_an_allocation_once)
{
    mock_t *mock = make_mock();
    program_t program = {.retries = 1};
    rmm_resource_t *mr = make_failure_callback(&mock->base, &program, 0);
    void *mark = &mark;
    void *ptr = mark;

    mock->failures = 5;
    assert_int_equal(rmm_resource_alloc(mr, 512, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_ptr_equal(ptr, mark);
    assert_int_equal(program.calls, 2);
    assert_int_equal(program.bytes, 512);
    assert_int_equal(mock->allocs, 2);
    assert_int_equal(stats_of(mr).oom_count, 1);
    end_adaptor(mr);
}

TEST_CASE(gives_what_a_retry_got)
{
    mock_t *mock = make_mock();
    program_t program = {.retries = 3};
    rmm_resource_t *mr = make_failure_callback(&mock->base, &program, 0);
    void *ptr;

    mock->failures = 3;
    ptr = take(mr, 512, NULL);
    assert_int_equal(program.calls, 3);
    assert_int_equal(stats_of(mr).oom_count, 0);
    assert_int_equal(stats_of(mr).total_count, 1);
    give(mr, ptr, 512, NULL);
    assert_int_equal(program.calls, 3);
    end_adaptor(mr);
}

TEST_CASE(forwards_the_alignment)
{
    mock_t *mock = make_mock();
    program_t program = {.retries = 1};
    rmm_resource_t *mr = make_failure_callback(&mock->base, &program, 0);
    rmm_stream_t stream = make_stream(0);
    void *ptr;

    mock->address = 4096;
    mock->failures = 1;
    assert_ok(rmm_resource_alloc(mr, 100, 512, stream, &ptr));
    assert_int_equal(mock->asked.align, 512);
    assert_int_equal(mock->asked.bytes, 100);
    assert_ptr_equal(mock->asked.stream, stream);
    rmm_resource_dealloc(mr, ptr, 100, 512, stream);
    assert_int_equal(mock->given.align, 512);
    assert_int_equal(mock->given.bytes, 100);
    assert_ptr_equal(mock->given.stream, stream);
    assert_ok(rmm_stream_destroy(stream));
    end_adaptor(mr);
}

TEST_CASE(calls_back_only_for_the_selected_failures)
{
    static const struct {
        rmm_status_t failure;
        uint32_t flags;
        int calls;
    } rows[] = {
        {RMM_ERR_OUT_OF_MEMORY, 0, 1},
        {RMM_ERR_OUT_OF_MEMORY, RMM_FAILURE_CALLBACK_ANY, 1},
        {RMM_ERR_BAD_ALLOC, 0, 0},
        {RMM_ERR_BAD_ALLOC, RMM_FAILURE_CALLBACK_ANY, 1},
        {RMM_ERR_OUT_OF_HOST_MEMORY, RMM_FAILURE_CALLBACK_ANY, 0},
        {RMM_ERR_UNSUPPORTED, RMM_FAILURE_CALLBACK_ANY, 0},
    };

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        mock_t *mock = make_mock();
        program_t program = {0};
        rmm_resource_t *mr =
            make_failure_callback(&mock->base, &program, rows[i].flags);
        void *ptr;

        mock->failure = rows[i].failure;
        mock->failures = 1;
        assert_int_equal(rmm_resource_alloc(mr, 8, 0, NULL, &ptr), rows[i].failure);
        assert_int_equal(program.calls, rows[i].calls);
        end_adaptor(mr);
    }
}

typedef struct hoard {
    rmm_resource_t *mr;
    void *ptr;
    size_t bytes;
} hoard_t;

static void give_up_hoard(void *argument)
{
    hoard_t *hoard = argument;

    give(hoard->mr, hoard->ptr, hoard->bytes, NULL);
    hoard->ptr = NULL;
}

/* What it is for: the callback makes room in the same resource. */
TEST_CASE(lets_the_callback_make_room)
{
    program_t program = {.retries = 1, .act = give_up_hoard};
    rmm_resource_t *mr = make_failure_callback(make_pool(0, 4 * MIB), &program, 0);
    hoard_t hoard = {mr, take(mr, 3 * MIB, NULL), 3 * MIB};
    void *ptr;

    program.argument = &hoard;
    ptr = take(mr, 2 * MIB, NULL);
    assert_int_equal(program.calls, 1);
    assert_null(hoard.ptr);
    assert_int_equal(location_bytes(), 2 * MIB);
    give(mr, ptr, 2 * MIB, NULL);
    end_adaptor(mr);
}

static void fail_elsewhere(void *argument)
{
    assert_int_equal(rmm_cuda_resource_create(argument), RMM_ERR_INVALID_ARGUMENT);
}

TEST_CASE(keeps_the_reason_whatever_the_callback_did)
{
    mock_t *mock = make_mock();
    program_t program = {.act = fail_elsewhere};
    rmm_resource_t *mr = make_failure_callback(&mock->base, &program, 0);
    void *ptr;

    mock->failures = 1;
    assert_int_equal(rmm_resource_alloc(mr, 8, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_string_equal(rmm_last_error_message(), "mock: told to fail");
    end_adaptor(mr);
}

TEST_CASE(refuses_options_that_cannot_be)
{
    rmm_failure_callback_options_t options = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = NULL;

    assert_int_equal(
        rmm_failure_callback_adaptor_create(cuda, NULL, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_failure_callback_adaptor_create(cuda, &options, &mr),
        RMM_ERR_INVALID_ARGUMENT);
    options.callback = on_failure;
    options.flags = 2;
    assert_int_equal(
        rmm_failure_callback_adaptor_create(cuda, &options, &mr),
        RMM_ERR_INVALID_ARGUMENT);
    assert_null(mr);
    rmm_resource_release(cuda);
}

static void count_end(void *arg)
{
    program_t *program = arg;

    program->calls++;
}

TEST_CASE(frees_its_argument_when_it_ends)
{
    rmm_failure_callback_options_t options = RMM_FAILURE_CALLBACK_OPTIONS_INIT;
    program_t program = {.calls = 0};
    rmm_resource_t *cuda, *mr = NULL;

    options.callback = on_failure;
    options.arg = &program;
    options.destroy = count_end;
    options.flags = 2;
    assert_ok(rmm_cuda_resource_create(&cuda));
    assert_int_equal(
        rmm_failure_callback_adaptor_create(cuda, &options, &mr),
        RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(program.calls, 0); /* the caller still owns it */
    options.flags = 0;
    assert_ok(rmm_failure_callback_adaptor_create(cuda, &options, &mr));
    rmm_resource_release(cuda);
    assert_ptr_equal(rmm_resource_retain(mr), mr);
    rmm_resource_release(mr);
    assert_int_equal(program.calls, 0);
    rmm_resource_release(mr);
    assert_int_equal(program.calls, 1);
}
