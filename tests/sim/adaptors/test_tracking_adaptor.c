/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tracking adaptor: RMM's cases by name, its reports as text, and that what it knows
 * stays true when frees are refused, blocks reused or host memory runs out. Run twice: with
 * libunwind, where the machine has it, and with something of that name that is of no use.
 */
#include "sim/adaptors/adaptor_harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rmm/log.h>

#include "adaptors/call_stack.h"

#define THREADS 4
#define BLOCKS 10

static rmm_resource_t *make_tracking(rmm_resource_t *upstream, bool capture_stacks)
{
    rmm_tracking_options_t options = RMM_TRACKING_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.capture_stacks = capture_stacks;
    assert_ok(rmm_tracking_adaptor_create(upstream, &options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

static size_t outstanding(rmm_resource_t *mr)
{
    rmm_tracking_block_t *blocks;
    size_t count = SIZE_MAX;

    assert_ok(rmm_tracking_outstanding(mr, &blocks, &count));
    assert_true((count == 0) == (blocks == NULL));
    for (size_t i = 1; i < count; i++) {
        assert_true((uintptr_t)blocks[i - 1].ptr < (uintptr_t)blocks[i].ptr);
    }
    rmm_tracking_free(blocks);
    return count;
}

static uint64_t allocated(const rmm_resource_t *mr)
{
    return stats_of(mr).current_bytes;
}

/* --- what the log says -------------------------------------------------------------- */

typedef struct heard {
    char text[16384];
    size_t length;
    int lines;
} heard_t;

static void hear(rmm_log_level_t level, const char *message, void *arg)
{
    heard_t *heard = arg;

    heard->lines++;
    heard->length += (size_t)snprintf(
        heard->text + heard->length, sizeof(heard->text) - heard->length, "%s\n",
        message);
    assert_true(heard->length < sizeof(heard->text));
}

static void listen(heard_t *heard)
{
    *heard = (heard_t){{0}, 0, 0};
    assert_ok(rmm_log_set_level(RMM_LEVEL_INFO));
    assert_ok(rmm_log_to_callback(hear, heard));
}

static void stop_listening(void)
{
    rmm_log_to_stderr();
    assert_ok(rmm_log_set_level(RMM_LEVEL_OFF));
}

/* --- RMM's cases -------------------------------------------------------------------- */

TEST_CASE(is_empty_at_first)
{
    rmm_resource_t *mr = make_tracking(make_cuda(), false);

    assert_int_equal(outstanding(mr), 0);
    assert_int_equal(allocated(mr), 0);
    end_adaptor(mr);
}

TEST_CASE(is_empty_again_when_all_is_freed)
{
    rmm_resource_t *mr = make_tracking(make_cuda(), true);
    void *blocks[BLOCKS];

    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = take(mr, 10 * MIB, NULL);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        give(mr, blocks[i], 10 * MIB, NULL);
    }
    assert_int_equal(outstanding(mr), 0);
    assert_int_equal(allocated(mr), 0);
    end_adaptor(mr);
}

static void knows_allocations_left(rmm_resource_t *mr, bool with_stacks)
{
    rmm_tracking_block_t *left;
    void *blocks[BLOCKS];
    size_t count;

    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = take(mr, 10 * MIB + i, NULL);
    }
    for (size_t i = 0; i < BLOCKS; i += 2) {
        give(mr, blocks[i], 10 * MIB + i, NULL);
    }
    assert_ok(rmm_tracking_outstanding(mr, &left, &count));
    assert_int_equal(count, BLOCKS / 2);
    assert_int_equal(allocated(mr), 5 * 10 * MIB + 1 + 3 + 5 + 7 + 9);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(left[i].bytes % (10 * MIB) % 2, 1);
        assert_ptr_equal(left[i].ptr, blocks[left[i].bytes % (10 * MIB)]);
        assert_true((left[i].frame_count >= 3) == with_stacks);
        assert_true((left[i].frames != NULL) == with_stacks);
    }
    for (size_t i = 1; i < BLOCKS; i += 2) {
        give(mr, blocks[i], 10 * MIB + i, NULL);
    }
    assert_int_equal(count, BLOCKS / 2); /* a copy */
    rmm_tracking_free(left);
    end_adaptor(mr);
}

TEST_CASE(knows_allocations_left_with_stacks)
{
    knows_allocations_left(make_tracking(make_cuda(), true), true);
}

TEST_CASE(knows_allocations_left_without_stacks)
{
    knows_allocations_left(make_tracking(make_cuda(), false), false);
}

TEST_CASE(tracks_at_several_levels)
{
    rmm_resource_t *outer = make_tracking(make_cuda(), true);
    rmm_resource_t *inner;
    void *blocks[15];

    for (size_t i = 0; i < 10; i++) {
        blocks[i] = take(outer, 10 * MIB, NULL);
    }
    inner = make_tracking(rmm_resource_retain(outer), false);
    for (size_t i = 10; i < 15; i++) {
        blocks[i] = take(inner, 10 * MIB, NULL);
    }
    assert_int_equal(outstanding(outer), 15);
    assert_int_equal(outstanding(inner), 5);
    assert_int_equal(allocated(outer), 150 * MIB);
    assert_int_equal(allocated(inner), 50 * MIB);
    assert_int_equal(location_bytes(), 150 * MIB);
    for (size_t i = 0; i < 15; i++) {
        give(i < 10 ? outer : inner, blocks[i], 10 * MIB, NULL);
    }
    assert_int_equal(outstanding(outer), 0);
    assert_int_equal(outstanding(inner), 0);
    rmm_resource_release(inner);
    end_adaptor(outer);
}

TEST_CASE(counts_nothing_for_blocks_of_an_outer_one)
{
    rmm_resource_t *outer = make_tracking(make_cuda(), false);
    rmm_resource_t *inner = make_tracking(rmm_resource_retain(outer), false);
    void *blocks[BLOCKS];

    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = take(outer, 10 * MIB, NULL);
    }
    for (size_t i = 0; i < BLOCKS; i++) {
        give(inner, blocks[i], 10 * MIB, NULL); /* unknown here: passed on */
    }
    assert_int_equal(outstanding(outer), 0);
    assert_int_equal(allocated(outer), 0);
    rmm_resource_release(inner);
    end_adaptor(outer);
}

TEST_CASE(does_not_underflow_on_an_untracked_deallocation)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = make_tracking(rmm_resource_retain(cuda), false);
    void *tracked = take(mr, 1000, NULL);
    void *untracked = take(cuda, 2000, NULL);
    heard_t heard;

    listen(&heard);
    give(mr, untracked, 2000, NULL);
    stop_listening();
    assert_non_null(
        strstr(heard.text, "which it did not allocate; passed on to upstream"));
    assert_int_equal(heard.lines, 1);
    assert_int_equal(allocated(mr), 1000);
    assert_int_equal(stats_of(mr).current_count, 1);
    assert_int_equal(stats_of(cuda).current_bytes, 1000); /* it was passed on */
    give(mr, tracked, 1000, NULL);
    assert_int_equal(allocated(mr), 0);
    rmm_resource_release(cuda);
    end_adaptor(mr);
}

TEST_CASE(frees_wrong_bytes_as_allocated)
{
    rmm_resource_t *mr = make_tracking(make_cuda(), false);
    void *blocks[BLOCKS];
    heard_t heard;

    for (size_t i = 0; i < BLOCKS; i++) {
        blocks[i] = take(mr, 1000 + i, NULL);
    }
    listen(&heard);
    for (size_t i = 0; i < BLOCKS; i++) {
        give(mr, blocks[i], 500 + i, NULL);
        assert_int_equal(outstanding(mr), BLOCKS - 1 - i);
    }
    stop_listening();
    assert_int_equal(heard.lines, BLOCKS);
    assert_non_null(
        strstr(heard.text, "with bytes 500, but it was allocated with 1000"));
    assert_int_equal(allocated(mr), 0);
    end_adaptor(mr);
}

TEST_CASE(logs_outstanding_allocations)
{
    rmm_resource_t *mr = make_tracking(make_cuda(), false);
    void *first = take(mr, 1000, NULL);
    void *second = take(mr, 2000, NULL);
    char line[100];
    heard_t heard;

    listen(&heard);
    assert_ok(rmm_tracking_report(mr, RMM_TRACKING_TO_LOG));
    assert_int_equal(heard.lines, 2);
    snprintf(line, sizeof(line), "tracking 'tracking': %p: 1000 B\n", first);
    assert_non_null(strstr(heard.text, line));
    snprintf(line, sizeof(line), "tracking 'tracking': %p: 2000 B\n", second);
    assert_non_null(strstr(heard.text, line));
    give(mr, first, 1000, NULL);
    give(mr, second, 2000, NULL);
    assert_ok(rmm_tracking_report(mr, RMM_TRACKING_TO_LOG));
    stop_listening();
    assert_non_null(strstr(heard.text, "no block is live"));
    end_adaptor(mr);
}

/* --- reports ------------------------------------------------------------------------ */

/* What the report says, read back from a file. */
static void read_report(rmm_resource_t *mr, char *text, size_t bytes)
{
    FILE *file = tmpfile();
    size_t length;

    assert_non_null(file);
    assert_ok(rmm_tracking_report(mr, fileno(file)));
    rewind(file);
    length = fread(text, 1, bytes - 1, file);
    text[length] = '\0';
    fclose(file);
}

/* Named in the report, because test programs export their symbols. */
void *a_leaky_function(rmm_resource_t *mr);

__attribute__((noinline)) void *a_leaky_function(rmm_resource_t *mr)
{
    void *ptr = take(mr, 4242, NULL);

    assert_non_null(ptr); /* no tail call: the frame stays */
    return ptr;
}

TEST_CASE(prints_blocks_with_their_stacks)
{
    rmm_resource_t *mr = make_tracking(make_cuda(), true);
    void *ptr = a_leaky_function(mr);
    char text[16384];
    char line[100];

    read_report(mr, text, sizeof(text));
    snprintf(line, sizeof(line), "%p: 4242 B : callstack:\n#0 in ", ptr);
    assert_ptr_equal(strstr(text, line), text);
    assert_non_null(strstr(text, "in a_leaky_function+0x"));
    assert_non_null(strstr(text, "test_tracking_adaptor"));
    give(mr, ptr, 4242, NULL);
    read_report(mr, text, sizeof(text));
    assert_string_equal(text, "");
    end_adaptor(mr);
}

TEST_CASE(reports_into_a_buffer_as_far_as_there_is_room)
{
    rmm_resource_t *mr = make_tracking(make_cuda(), true);
    rmm_resource_t *cuda = make_cuda();
    void *first = a_leaky_function(mr);
    void *second = take(mr, 1000, NULL);
    char text[16384], part[100];
    size_t length;

    read_report(mr, text, sizeof(text));
    assert_ok(rmm_tracking_report_to_buffer(mr, NULL, 0, &length));
    assert_int_equal(length, strlen(text));
    for (size_t bytes = 1; bytes <= sizeof(part); bytes++) {
        memset(part, 'x', sizeof(part));
        assert_ok(rmm_tracking_report_to_buffer(mr, part, bytes, &length));
        assert_int_equal(length, strlen(text));
        assert_int_equal(strlen(part), bytes - 1);
        assert_memory_equal(part, text, bytes - 1);
        assert_true(bytes == sizeof(part) || part[bytes] == 'x');
    }
    assert_ok(rmm_tracking_report_to_buffer(mr, text + 8000, 8000, &length));
    assert_memory_equal(text + 8000, text, length + 1);
    give(mr, first, 4242, NULL);
    give(mr, second, 1000, NULL);
    assert_ok(rmm_tracking_report_to_buffer(mr, part, sizeof(part), &length));
    assert_int_equal(length, 0);
    assert_string_equal(part, "");
    assert_int_equal(
        rmm_tracking_report_to_buffer(cuda, part, 1, &length),
        RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_tracking_report_to_buffer(mr, NULL, 1, &length), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_tracking_report_to_buffer(mr, part, 1, NULL), RMM_ERR_INVALID_ARGUMENT);
    rmm_resource_release(cuda);
    end_adaptor(mr);
}

TEST_CASE(keeps_as_many_frames_as_wanted)
{
    rmm_tracking_options_t options = RMM_TRACKING_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = NULL;
    rmm_tracking_block_t *blocks;
    size_t count;
    void *ptr;

    options.capture_stacks = true;
    options.max_frames = 65;
    assert_int_equal(
        rmm_tracking_adaptor_create(cuda, &options, &mr), RMM_ERR_INVALID_ARGUMENT);
    options.max_frames = 2;
    assert_ok(rmm_tracking_adaptor_create(cuda, &options, &mr));
    rmm_resource_release(cuda);
    ptr = take(mr, 1000, NULL);
    assert_ok(rmm_tracking_outstanding(mr, &blocks, &count));
    assert_int_equal(blocks[0].frame_count, 2);
    rmm_tracking_free(blocks);
    give(mr, ptr, 1000, NULL);
    end_adaptor(mr);
}

TEST_CASE(says_why_a_report_cannot_be_written)
{
    rmm_resource_t *mr = make_tracking(make_cuda(), false);
    rmm_resource_t *cuda = make_cuda();
    rmm_tracking_block_t *blocks;
    void *ptr = take(mr, 1000, NULL);
    size_t count;
    int ends[2];

    assert_int_equal(pipe(ends), 0);
    assert_int_equal(rmm_tracking_report(mr, ends[0]), RMM_ERR_IO);
    assert_non_null(strstr(rmm_last_error_message(), "Bad file descriptor"));
    close(ends[0]);
    assert_int_equal(rmm_tracking_report(mr, ends[1]), RMM_ERR_IO);
    assert_non_null(strstr(rmm_last_error_message(), "Broken pipe"));
    close(ends[1]);
    assert_int_equal(rmm_tracking_report(mr, -2), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_tracking_report(cuda, 1), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_tracking_report(NULL, 1), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_tracking_outstanding(cuda, &blocks, &count), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_tracking_outstanding(mr, NULL, &count), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_tracking_outstanding(mr, &blocks, NULL), RMM_ERR_INVALID_ARGUMENT);
    rmm_resource_release(cuda);
    give(mr, ptr, 1000, NULL);
    end_adaptor(mr);
}

TEST_CASE(reports_what_is_out_at_its_end)
{
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = make_tracking(rmm_resource_retain(cuda), false);
    enum { OUT = 101 }; /* one more than are listed */
    void *blocks[OUT];
    char line[100];
    heard_t heard;

    for (size_t i = 0; i < OUT; i++) {
        blocks[i] = take(mr, 1000 + i, NULL);
    }
    listen(&heard);
    rmm_resource_release(mr);
    stop_listening();
    assert_int_equal(heard.lines, 1 + 100 + 1);
    assert_non_null(strstr(heard.text, "last release with 101 allocations"));
    snprintf(line, sizeof(line), "%p: 1007 B\n", blocks[7]);
    assert_non_null(strstr(heard.text, line));
    assert_non_null(strstr(heard.text, "1 more live blocks are not listed\n"));
    for (size_t i = 0; i < OUT; i++) {
        give(cuda, blocks[i], 1000 + i, NULL);
    }
    end_adaptor(cuda);
}

/* --- corner cases ------------------------------------------------------------------- */

TEST_CASE(tracks_nothing_of_no_bytes_but_counts_it)
{
    rmm_resource_t *mr = make_tracking(make_cuda(), true);
    void *ptr = &ptr;

    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptr));
    assert_int_equal(outstanding(mr), 0);
    assert_int_equal(stats_of(mr).current_count, 1);
    rmm_resource_dealloc(mr, NULL, 0, 0, NULL);
    end_adaptor(mr);
}

TEST_CASE(keeps_tracking_a_block_whose_free_is_refused)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make_tracking(&mock->base, true);
    rmm_tracking_block_t *blocks;
    void *ptr = take(mr, 1000, NULL);
    size_t count;

    mock->refuses_frees = true;
    give(mr, ptr, 1000, NULL);
    assert_ok(rmm_tracking_outstanding(mr, &blocks, &count));
    assert_int_equal(count, 1);
    assert_int_equal(blocks[0].bytes, 1000);
    assert_true(blocks[0].frame_count >= 3);
    rmm_tracking_free(blocks);
    assert_int_equal(allocated(mr), 1000);
    assert_int_equal(stats_of(mr).invalid_free_count, 1);
    mock->refuses_frees = false;
    give(mr, ptr, 1000, NULL);
    assert_int_equal(outstanding(mr), 0);
    rmm_resource_release(mr);
    assert_int_equal(location_bytes(), 0);
}

TEST_CASE(forgets_a_block_that_was_freed_elsewhere)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make_tracking(&mock->base, true);
    heard_t heard;
    void *ptr;

    mock->address = 4096;
    ptr = take(mr, 1000, NULL);
    give(&mock->base, ptr, 1000, NULL); /* behind its back */
    listen(&heard);
    ptr = take(mr, 3000, NULL);
    stop_listening();
    assert_non_null(strstr(heard.text, "bytes 1000 was freed elsewhere"));
    assert_int_equal(outstanding(mr), 1);
    assert_int_equal(allocated(mr), 3000);
    give(mr, ptr, 3000, NULL);
    end_adaptor(mr);
}

/* RMM's MultiThreaded: an address is handed out again before its free has returned. */
TEST_CASE(lets_a_block_be_reused_while_it_is_freed)
{
    mock_t *mock = make_mock();
    rmm_resource_t *mr = make_tracking(&mock->base, true);
    reuse_t reuse = {mr, 1000, NULL};
    heard_t heard;
    void *ptr;

    mock->address = 4096;
    mock->freed = reuse_on_another_thread;
    mock->argument = &reuse;
    listen(&heard);
    ptr = take(mr, 1000, NULL);
    give(mr, ptr, 1000, NULL);
    assert_ptr_equal(reuse.ptr, ptr);
    assert_int_equal(outstanding(mr), 1);
    give(mr, ptr, 1000, NULL);
    stop_listening();
    assert_int_equal(heard.lines, 0);
    assert_int_equal(outstanding(mr), 0);
    end_adaptor(mr);
}

TEST_CASE(survives_failing_requests_for_host_memory)
{
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        rmm_resource_t *mr = make_tracking(make_pool(MIB, 0), true);
        rmm_tracking_block_t *blocks = NULL;
        rmm_status_t status, copied;
        size_t count = 77;
        void *ptr = NULL;

        rmm__host_memory_fail(nth);
        status = rmm_resource_alloc(mr, 1000, 0, NULL, &ptr);
        copied = rmm_tracking_outstanding(mr, &blocks, &count);
        struck = rmm__host_memory_fail_struck();
        rmm__host_memory_fail(0);
        assert_true(
            status == RMM_OK || (struck && status == RMM_ERR_OUT_OF_HOST_MEMORY));
        assert_true(
            copied == RMM_OK || (struck && copied == RMM_ERR_OUT_OF_HOST_MEMORY));
        assert_true((status == RMM_OK) == (ptr != NULL));
        if (copied == RMM_OK) {
            assert_int_equal(count, status == RMM_OK ? 1 : 0);
        } else {
            assert_int_equal(count, 77);
        }
        rmm_tracking_free(blocks);
        if (status == RMM_OK) {
            give(mr, ptr, 1000, NULL);
        }
        end_adaptor(mr);
        assert_true(nth > 2 || struck);
    }
}

/* --- threads ------------------------------------------------------------------------ */

typedef struct worker {
    rmm_resource_t *mr;
    pthread_t thread;
    uint64_t failures;
} worker_t;

static void *take_and_give(void *argument)
{
    worker_t *worker = argument;

    for (size_t round = 0; round < 20; round++) {
        void *blocks[50];

        for (size_t i = 0; i < 50; i++) {
            worker->failures +=
                rmm_resource_alloc(worker->mr, 1 + i, 0, NULL, &blocks[i]) != RMM_OK;
        }
        for (size_t i = 0; i < 50; i++) {
            rmm_resource_dealloc(worker->mr, blocks[i], 1 + i, 0, NULL);
        }
    }
    return NULL;
}

/* Snapshots while others allocate, each of which agrees with itself. */
TEST_CASE(gives_snapshots_while_others_allocate)
{
    rmm_resource_t *mr = make_tracking(make_pool(0, 0), true);
    worker_t workers[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){.mr = mr};
        assert_int_equal(
            pthread_create(&workers[i].thread, NULL, take_and_give, &workers[i]), 0);
    }
    for (int i = 0; i < 20; i++) {
        rmm_tracking_block_t *blocks;
        size_t count;

        assert_ok(rmm_tracking_outstanding(mr, &blocks, &count));
        assert_in_range(count, 0, THREADS * 50);
        for (size_t k = 0; k < count; k++) {
            assert_in_range(blocks[k].bytes, 1, 50);
            assert_true(blocks[k].frame_count > 0);
            assert_non_null(blocks[k].frames[blocks[k].frame_count - 1]);
        }
        rmm_tracking_free(blocks);
    }
    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
        assert_int_equal(workers[i].failures, 0);
    }
    assert_int_equal(outstanding(mr), 0);
    assert_int_equal(stats_of(mr).total_count, THREADS * 20 * 50);
    end_adaptor(mr);
}

TEST_CASE(captures_with_what_is_there)
{
    const char *method = getenv("RMM_TEST_UNWINDER");

    assert_non_null(method);
    rmm__call_stack_prepare();
    assert_string_equal(rmm__call_stack_method(), method);
}
