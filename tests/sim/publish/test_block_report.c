/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports of blocks: they agree with the accounting and with what the program holds, whatever
 * else goes on, and one that cannot be made costs nobody an allocation.
 */
#include "sim/pool/pool_harness.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "harness/in_child.h"
#include "harness/limit_requests.h"
#include "harness/random.h"
#include "harness/runtime.h"

#include "core/host_memory.h"
#include "segment/segment_blocks_reader.h"

#define THREADS 4
#define ROUNDS 300
#define HELD 200
#define STREAMS 3

static runtime_t runtime;

typedef struct report {
    uint64_t bytes[RMM_BLOCK_STATES];
    uint32_t counts[RMM_BLOCK_STATES];
    rmm_blocks_resource_t resource;
    rmm_blocks_row_t rows[RMM_BLOCKS_ROWS_MAX];
    uint32_t row_count;
} report_t;

static report_t report;

static int open_report(rmm_blocks_file_t *file)
{
    char name[RMM_SEGMENT_NAME_BYTES];

    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, name), 1);
    return rmm__block_report_open(file, runtime.fd, name, geteuid());
}

static void read_report(const rmm_resource_t *mr)
{
    rmm_blocks_file_t file;

    memset(report.bytes, 0, sizeof(report.bytes));
    memset(report.counts, 0, sizeof(report.counts));
    assert_int_equal(open_report(&file), 0);
    assert_int_equal(file.header.number, atomic_load(&control_page()->report_number));
    assert_true(rmm__block_report_find(&file, mr->instance_id, &report.resource));
    report.row_count = rmm__block_report_read(&file, &report.resource, report.rows);
    assert_int_equal(report.row_count, report.resource.row_count);
    for (uint32_t i = 0; i < report.row_count; i++) {
        report.bytes[report.rows[i].state] += report.rows[i].bytes;
        report.counts[report.rows[i].state]++;
    }
    rmm__block_report_close(&file);
}

/* One that a resource without blocks obeys, so that it changes nothing. */
static void look_at(const rmm_resource_t *mr, rmm_resource_t *other)
{
    ask_report(RMM_BLOCKS_ROWS_MAX);
    give(other, take(other, 1000, NULL), 1000, NULL);
    assert_true(report_is_done());
    read_report(mr);
}

static int by_address(const void *left, const void *right)
{
    const rmm_blocks_row_t *a = left, *b = right;

    return a->address != b->address ? (a->address < b->address ? -1 : 1)
                                    : (a->state > b->state) - (a->state < b->state);
}

/* Chunks are covered by their blocks, each byte once. */
static void assert_tiled(void)
{
    uint64_t at = 0, end = 0;

    qsort(report.rows, report.row_count, sizeof(report.rows[0]), by_address);
    for (uint32_t i = 0; i < report.row_count; i++) {
        const rmm_blocks_row_t *row = &report.rows[i];

        if (row->state == RMM_BLOCK_CHUNK) {
            assert_int_equal(at, end);
            at = row->address;
            end = row->address + row->bytes;
        } else {
            assert_int_equal(row->address, at);
            at += row->bytes;
        }
    }
    assert_int_equal(at, end);
}

static uint64_t padding_of(const rmm_resource_t *mr)
{
    rmm_accounting_sums_t sums;

    rmm__accounting_sums(&mr->accounting, &sums);
    return sums.padding_bytes;
}

static void assert_agrees(const rmm_resource_t *mr)
{
    rmm_stats_t stats = stats_of(mr);
    uint64_t sum = 0, padding = 0;

    for (uint32_t state = RMM_BLOCK_USED; state < RMM_BLOCK_STATES; state++) {
        sum += report.bytes[state];
    }
    for (uint32_t i = 0; i < report.row_count; i++) {
        padding += report.rows[i].padding;
    }
    assert_int_equal(report.resource.left_out_count, 0);
    assert_int_equal(report.resource.moving_bytes, 0);
    assert_int_equal(report.bytes[RMM_BLOCK_CHUNK], stats.reserved_bytes);
    assert_int_equal(sum, stats.reserved_bytes);
    assert_int_equal(padding, padding_of(mr));
    assert_int_equal(report.bytes[RMM_BLOCK_USED], stats.current_bytes + padding);
    assert_int_equal(report.counts[RMM_BLOCK_USED], stats.current_count);
    assert_tiled();
}

/* --- against a model ----------------------------------------------------------------- */

typedef struct held {
    void *ptr;
    size_t bytes;
} held_t;

static bool is_reported(const held_t *held)
{
    for (uint32_t i = 0; i < report.row_count; i++) {
        const rmm_blocks_row_t *row = &report.rows[i];

        if (row->state == RMM_BLOCK_USED &&
            row->address == (uint64_t)(uintptr_t)held->ptr) {
            return row->bytes - row->padding == held->bytes;
        }
    }
    return false;
}

static void play(rmm_resource_t *mr, size_t most_bytes, rmm_stream_t *streams)
{
    rmm_resource_t *other = make_cuda();
    held_t held[HELD] = {{0}};
    uint64_t random = 1;

    for (int i = 0; i < ROUNDS * 10; i++) {
        held_t *one = &held[draw(&random, HELD)];
        rmm_stream_t stream = streams[draw(&random, STREAMS)];

        if (one->ptr != NULL) {
            give(mr, one->ptr, one->bytes, stream);
            one->ptr = NULL;
        } else {
            one->bytes = 1 + draw(&random, most_bytes);
            one->ptr = take(mr, one->bytes, stream);
        }
        if (i % ROUNDS == 0) {
            look_at(mr, other);
            assert_agrees(mr);
            for (size_t j = 0; j < HELD; j++) {
                assert_true(held[j].ptr == NULL || is_reported(&held[j]));
            }
        }
    }
    for (size_t i = 0; i < HELD; i++) {
        if (held[i].ptr != NULL) {
            give(mr, held[i].ptr, held[i].bytes, streams[0]);
        }
    }
    look_at(mr, other);
    assert_agrees(mr);
    rmm_resource_release(other);
    rmm_resource_release(mr);
}

TEST_CASE(agrees_with_the_accounting_of_each_kind_of_pool)
{
    rmm_stream_t streams[STREAMS];
    rmm_stream_t alone[STREAMS] = {NULL};

    for (size_t i = 0; i < STREAMS; i++) {
        streams[i] = make_stream(RMM_STREAM_NON_BLOCKING);
    }
    play(make_pool(0, 0), 100000, streams);
    play(make_pool(64 * MIB, 0), 100000, alone);
    play(make_virtual_pool(0, 0), 300000, streams);
    play(make_virtual_pool(0, 0), 300000, alone);
    play(make_fixed(10000, 7), 10000, streams);
    for (size_t i = 0; i < STREAMS; i++) {
        assert_cuda(sim_driver()->stream_destroy(streams[i]));
    }
}

TEST_CASE(shows_for_which_stream_a_block_is_kept)
{
    rmm_resource_t *other = make_cuda(), *pool = make_pool(4 * MIB, 0);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_stream_key_t key;
    void *first = take(pool, MIB, NULL), *second = take(pool, MIB, stream);
    uint32_t found = 0;

    assert_cuda(sim_driver()->stream_key(stream, &key));
    give(pool, first, MIB, NULL);
    give(pool, second, MIB, stream);
    look_at(pool, other);
    for (uint32_t i = 0; i < report.row_count; i++) {
        const rmm_blocks_row_t *row = &report.rows[i];

        if (row->address == (uint64_t)(uintptr_t)second) {
            assert_int_equal(row->state, RMM_BLOCK_CACHED);
            assert_int_equal(row->stream, key.stream_id);
            assert_int_equal(row->bytes, MIB);
            found++;
        }
    }
    assert_int_equal(found, 1);
    assert_int_equal(report.counts[RMM_BLOCK_CACHED], 2);
    assert_int_equal(report.bytes[RMM_BLOCK_FREE], 2 * MIB);
    rmm_resource_release(pool);
    rmm_resource_release(other);
    assert_cuda(sim_driver()->stream_destroy(stream));
}

TEST_CASE(leaves_a_capture_whole_and_shows_what_its_graph_keeps)
{
    rmm_resource_t *pool = make_pool(4 * MIB, 0);
    rmm_stream_t stream = make_stream(RMM_STREAM_NON_BLOCKING);
    rmm_sim_graph_t graph;
    void *ptr;

    give(pool, take(pool, 1000, NULL), 1000, NULL);
    assert_cuda(rmm_sim_begin_capture(stream, 0));
    ptr = take(pool, MIB, stream);
    give(pool, ptr, MIB, stream);
    ask_report(RMM_BLOCKS_ROWS_MAX);
    ptr = take(pool, 512 * KIB, stream);
    assert_true(report_is_done());
    read_report(pool);
    assert_int_equal(report.bytes[RMM_BLOCK_GRAPH], MIB);
    give(pool, ptr, 512 * KIB, stream);
    assert_cuda(rmm_sim_end_capture(stream, &graph));
    assert_cuda(rmm_sim_graph_destroy(graph));
    assert_cuda(sim_driver()->stream_destroy(stream));
    rmm_resource_release(pool);
}

/* --- requests ------------------------------------------------------------------------ */

TEST_CASE(reports_all_pools_at_once_and_no_other_resource)
{
    rmm_resource_t *cuda = make_cuda(), *first = make_pool(0, 0);
    rmm_resource_t *second = make_fixed(1000, 10);
    rmm_blocks_file_t file;
    rmm_blocks_resource_t resource;
    void *ptr = take(first, 1000, NULL), *other = take(second, 1000, NULL);

    look_at(first, cuda);
    assert_int_equal(report.counts[RMM_BLOCK_USED], 1);
    read_report(second);
    assert_int_equal(report.counts[RMM_BLOCK_USED], 1);
    assert_int_equal(report.resource.row_count, 1 + 1 + 1); /* chunk, block, rest */
    assert_int_equal(open_report(&file), 0);
    assert_int_equal(file.header.resources_count, 2);
    assert_false(rmm__block_report_find(&file, cuda->instance_id, &resource));
    rmm__block_report_close(&file);
    give(first, ptr, 1000, NULL);
    give(second, other, 1000, NULL);
    rmm_resource_release(first);
    rmm_resource_release(second);
    rmm_resource_release(cuda);
}

TEST_CASE(does_nothing_for_a_report_that_was_withdrawn)
{
    rmm_resource_t *pool = make_pool(0, 0), *other = make_cuda();
    rmm_blocks_file_t before, after;

    look_at((give(pool, take(pool, 1000, NULL), 1000, NULL), pool), other);
    assert_int_equal(open_report(&before), 0);
    ask_report(0);
    give(other, take(other, 1000, NULL), 1000, NULL);
    assert_true(report_is_done());
    assert_int_equal(open_report(&after), 0);
    assert_int_equal(after.header.number, before.header.number);
    rmm__block_report_close(&before);
    rmm__block_report_close(&after);
    rmm_resource_release(pool);
    rmm_resource_release(other);
}

TEST_CASE(counts_what_finds_no_row_and_shares_the_rows)
{
    rmm_resource_t *pools[2] = {make_pool(MIB, MIB), make_pool(MIB, MIB)};
    rmm_resource_t *other = make_cuda();
    void *held[2][50];

    for (size_t i = 0; i < 50; i++) {
        held[0][i] = take(pools[0], 1000, NULL);
        held[1][i] = take(pools[1], 1000, NULL);
    }
    ask_report(40);
    give(other, take(other, 1000, NULL), 1000, NULL);
    for (size_t i = 0; i < 2; i++) {
        uint64_t shown = 0;

        read_report(pools[i]);
        assert_int_equal(report.resource.row_count, 20);
        assert_int_equal(report.resource.left_out_count, 1 + 50 + 1 - 20);
        for (uint32_t row = 0; row < report.row_count; row++) {
            shown +=
                report.rows[row].state != RMM_BLOCK_CHUNK ? report.rows[row].bytes : 0;
        }
        assert_int_equal(shown + report.resource.left_out_bytes, MIB);
        for (size_t j = 0; j < 50; j++) {
            give(pools[i], held[i][j], 1000, NULL);
        }
        rmm_resource_release(pools[i]);
    }
    rmm_resource_release(other);
}

/* --- threads, a fork, failures ------------------------------------------------------- */

static void *allocate_and_free(void *arg)
{
    rmm_resource_t *mr = arg;
    uint64_t failed = 0;

    for (int i = 0; i < 20 * ROUNDS; i++) {
        size_t bytes = 1 + (size_t)(i * 7919) % 100000;
        void *ptr;

        if (rmm_resource_alloc(mr, bytes, 0, NULL, &ptr) != RMM_OK) {
            failed++;
        } else {
            give(mr, ptr, bytes, NULL);
        }
    }
    return (void *)(uintptr_t)failed;
}

TEST_CASE(is_whole_while_threads_allocate)
{
    rmm_resource_t *pool = make_pool(0, 0), *other = make_cuda();
    pthread_t threads[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, allocate_and_free, pool), 0);
    }
    give(pool, take(pool, 1000, NULL), 1000, NULL);
    for (int i = 0; i < 50; i++) {
        ask_report(RMM_BLOCKS_ROWS_MAX);
        give(other, take(other, 1000, NULL), 1000, NULL);
        while (!report_is_done()) { /* a thread has taken it */
        }
        read_report(pool);
        assert_tiled();
    }
    for (size_t i = 0; i < THREADS; i++) {
        void *failed;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    rmm_resource_release(pool);
    rmm_resource_release(other);
}

static int allocate_host_memory(void)
{
    rmm_resource_t *host;
    void *ptr;

    if (rmm_host_resource_create(&host) != RMM_OK ||
        rmm_resource_alloc(host, 1000, 0, NULL, &ptr) != RMM_OK) {
        return 1;
    }
    rmm_resource_dealloc(host, ptr, 1000, 0, NULL);
    rmm_resource_release(host);
    return 0;
}

/* What was asked of the parent only the parent obeys. */
TEST_CASE(a_forked_child_reports_nothing)
{
    rmm_resource_t *pool = make_pool(0, 0);

    give(pool, take(pool, 1000, NULL), 1000, NULL);
    ask_report(RMM_BLOCKS_ROWS_MAX);
    assert_int_equal(in_child(allocate_host_memory), 0);
    assert_false(report_is_done());
    give(pool, take(pool, 1000, NULL), 1000, NULL);
    assert_true(report_is_done());
    read_report(pool);
    rmm_resource_release(pool);
}

TEST_CASE(whatever_fails_the_allocation_succeeds_and_nothing_is_left)
{
    rmm_resource_t *pool = make_pool(4 * MIB, 0), *other = make_cuda();
    uint32_t made = 0, refused = 0;
    rmm_blocks_file_t file;
    void *ptr = take(pool, 1000, NULL);
    char error[RMM_ERROR_BYTES];
    bool struck = true;

    look_at(pool, other);
    assert_int_equal(rmm_log_set_level((rmm_log_level_t)99), RMM_ERR_INVALID_ARGUMENT);
    snprintf(error, sizeof(error), "%s", rmm_last_error_message());
    for (uint64_t nth = 1; struck; nth++) {
        ask_report(RMM_BLOCKS_ROWS_MAX);
        rmm__host_memory_fail(nth);
        give(pool, take(pool, 1000, NULL), 1000, NULL);
        struck = rmm__host_memory_fail_struck();
        rmm__host_memory_fail(0);
        assert_string_equal(rmm_last_error_message(), error); /* the program's own */
        assert_true(report_is_done());
        assert_int_equal(open_report(&file), 0); /* this one, or the last one */
        made += file.header.number == atomic_load(&control_page()->report_number);
        refused += file.header.number != atomic_load(&control_page()->report_number);
        rmm__block_report_close(&file);
        assert_int_equal(runtime_count(&runtime, RMM_FILE_TEMPORARY, NULL), 0);
    }
    assert_true(refused >= 6); /* list, directory, file, three writes, the name */
    assert_true(made >= 1);
    give(pool, ptr, 1000, NULL);
    rmm_resource_release(pool);
    rmm_resource_release(other);
}

/* The kernel would end the program with a signal. */
TEST_CASE(a_program_that_may_write_no_files_goes_on)
{
    rmm_resource_t *pool = make_pool(4 * MIB, 0);
    struct rlimit before, none;
    rmm_blocks_file_t file;

    give(pool, take(pool, 1000, NULL), 1000, NULL);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    none = (struct rlimit){0, before.rlim_max};
    ask_report(RMM_BLOCKS_ROWS_MAX);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &none), 0);
    give(pool, take(pool, 1000, NULL), 1000, NULL);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    assert_true(report_is_done());
    assert_int_equal(open_report(&file), 0);
    assert_int_not_equal(
        file.header.number, atomic_load(&control_page()->report_number));
    rmm__block_report_close(&file);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_TEMPORARY, NULL), 0);
    rmm_resource_release(pool);
}

static int set_up(void **state)
{
    runtime_open(&runtime);
    rmm_resource_release(make_cuda());
    want_nothing();
    return 0;
}

static int tear_down(void **state)
{
    runtime_close(&runtime);
    return 0;
}

int main(void)
{
    return harness_run_cases(set_up, tear_down);
}
