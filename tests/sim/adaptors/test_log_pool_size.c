/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The columns of a log that tell the size of the pool: of which resource they are, and at what
 * time.
 */
#include "sim/adaptors/logging_harness.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <rmm/async_resource.h>
#include <rmm/logging_adaptor.h>
#include <rmm/resource_spec.h>

#define TIB (UINT64_C(1) << 40)

static const char *next_row(const char *text)
{
    const char *end = strchr(text, '\n');

    assert_non_null(end);
    return end + 1;
}

/* The figures that end each row behind its header; returns how many rows there are. */
static int pool_columns(const char *text, uint64_t figures[][2], int most)
{
    int rows = 0;

    for (const char *row = next_row(text); *row != '\0'; row = next_row(row)) {
        unsigned long long pool, used;
        int end = 0;

        assert_true(rows < most);
        assert_int_equal(
            sscanf(
                row, "%*u,%*[^,],%*[^,],%*[^,],%*u,%*[^,],%llu,%llu%n", &pool, &used,
                &end),
            2);
        assert_true(row[end] == '\n' || row[end] == ',');
        figures[rows][0] = pool;
        figures[rows++][1] = used;
    }
    return rows;
}

/* What a log of `mr` says of two blocks of 1000 and 2000 bytes, and of a failure. */
static int
log_two_blocks(rmm_resource_t *mr, uint32_t format, uint64_t figures[][2], int most)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    char text[4096];
    void *first, *second, *none = NULL;

    unlink(path_of("pool.csv"));
    options.path = path_of("pool.csv");
    options.format = format;
    mr = make_logging(mr, &options);
    first = take(mr, 1000, NULL);
    second = take(mr, 2000, NULL);
    assert_true(rmm_resource_alloc(mr, TIB, 0, NULL, &none) != RMM_OK);
    give(mr, first, 1000, NULL);
    give(mr, second, 2000, NULL);
    end_adaptor(mr);
    read_file(path_of("pool.csv"), text, sizeof(text));
    assert_int_equal(
        strncmp(text, rmm_logging_header(format), strlen(rmm_logging_header(format))),
        0);
    return pool_columns(text, figures, most);
}

static rmm_resource_t *from_spec(const char *spec)
{
    rmm_resource_t *mr = NULL;

    assert_ok(rmm_resource_create_from_spec(spec, &mr));
    return mr;
}

static void expect_pool_figures(const char *spec, uint32_t format, uint64_t pool_bytes)
{
    const uint64_t used[] = {1000, 3000, 3000, 3000, 2000};
    uint64_t figures[5][2];

    assert_int_equal(log_two_blocks(from_spec(spec), format, figures, 5), 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(figures[i][1], used[i]);
        assert_int_equal(figures[i][0], pool_bytes != 0 ? pool_bytes : used[i]);
    }
}

TEST_CASE(a_row_has_the_size_of_the_pool_on_request)
{
    const uint32_t pool_size = RMM_LOGGING_FORMAT_POOL_SIZE;

    assert_string_equal(rmm_logging_header(pool_size), HEADER ",PoolBytes,UsedBytes");
    assert_string_equal(
        rmm_logging_header(pool_size | RMM_LOGGING_FORMAT_EXTENDED),
        HEADER ",PoolBytes,UsedBytes,Device,DurationNs,Caller");
    expect_pool_figures("pool:4MiB:4MiB", pool_size, 4 << 20);
    expect_pool_figures(
        "pool:4MiB:4MiB", pool_size | RMM_LOGGING_FORMAT_EXTENDED, 4 << 20);
    expect_pool_figures("async", pool_size, 32 << 20);
    expect_pool_figures("arena:8MiB", pool_size, 8 << 20);
    expect_pool_figures("cuda", pool_size, 0); /* what is live */
}

TEST_CASE(the_pool_of_a_row_is_below_adaptors_and_bins)
{
    uint64_t figures[5][2];

    expect_pool_figures(
        "statistics+limiting:1GiB+tracking+pool:4MiB:4MiB",
        RMM_LOGGING_FORMAT_POOL_SIZE, 4 << 20);
    assert_int_equal(
        log_two_blocks(
            from_spec("aligned:4KiB+binning:16MiB:16MiB"), RMM_LOGGING_FORMAT_POOL_SIZE,
            figures, 5),
        5);
    assert_int_equal(figures[0][0], 16 << 20);
}

/* Which shrinks by itself, when the program synchronises. */
TEST_CASE(a_row_has_the_size_of_a_cuda_pool_as_it_is_now)
{
    rmm_async_options_t async_options = RMM_ASYNC_OPTIONS_INIT;
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;
    uint64_t figures[4][2];
    char text[4096];
    void *small, *large;

    async_options.flags = RMM_ASYNC_RELEASE_UNUSED;
    assert_ok(rmm_async_resource_create(&async_options, &mr));
    options.path = path_of("shrinks.csv");
    options.format = RMM_LOGGING_FORMAT_POOL_SIZE;
    mr = make_logging(mr, &options);
    small = take(mr, 1000, NULL);
    large = take(mr, 100 << 20, NULL);
    give(mr, large, 100 << 20, NULL);
    assert_cuda(rmm_sim_device_synchronize());
    give(mr, small, 1000, NULL);
    end_adaptor(mr);
    read_file(path_of("shrinks.csv"), text, sizeof(text));
    assert_int_equal(pool_columns(text, figures, 4), 4);
    assert_int_equal(figures[0][0], 32 << 20);
    assert_true(figures[2][0] >= (32 + 100) << 20);
    assert_int_equal(figures[3][0], 32 << 20);
}

/* A spec has it as a word; and a file of the other format is no file of this one. */
TEST_CASE(a_spec_asks_for_the_size_of_the_pool)
{
    rmm_resource_t *mr = NULL;
    uint64_t figures[2][2];
    char text[4096];

    setenv("RMM_LOG_FILE", path_of("spec.csv"), 1);
    mr = from_spec("logging:auto_flush:pool_size+pool:4MiB:4MiB");
    give(mr, take(mr, 500, NULL), 500, NULL);
    read_file(path_of("spec.csv"), text, sizeof(text)); /* flushed */
    assert_int_equal(pool_columns(text, figures, 2), 2);
    assert_int_equal(figures[0][0], 4 << 20);
    assert_int_equal(figures[1][1], 500);
    end_adaptor(mr);
    assert_int_equal(rmm_resource_create_from_spec("logging+cuda", &mr), RMM_ERR_IO);
    unsetenv("RMM_LOG_FILE");
}

/* --- threads ---------------------------------------------------------------------------- */

enum { THREADS = 4, PAIRS = 2000 };

static void *alloc_and_free(void *arg)
{
    rmm_resource_t *mr = arg;
    rmm_stream_t stream;

    if (rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream) != RMM_OK) {
        return arg;
    }
    for (size_t i = 1; i <= PAIRS; i++) {
        void *ptr = NULL;

        if (rmm_resource_alloc(mr, i * 1000, 0, stream, &ptr) != RMM_OK) {
            return arg;
        }
        rmm_resource_dealloc(mr, ptr, i * 1000, 0, stream);
    }
    return rmm_stream_destroy(stream) == RMM_OK ? NULL : arg;
}

/* No row says that more is in use than the pool has. */
static void count_rows(const char *rows, size_t length, void *arg)
{
    const char *end = rows + length;
    uint64_t *seen = arg;

    while (rows < end) {
        const char *newline = memchr(rows, '\n', (size_t)(end - rows));
        unsigned long long pool, used;

        if (sscanf(
                rows, "%*u,%*[^,],%*[^,],%*[^,],%*u,%*[^,],%llu,%llu", &pool, &used) ==
            2) {
            seen[0]++;
            seen[1] += used > pool;
        }
        rows = newline + 1;
    }
}

static void log_from_threads(const char *spec)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    uint64_t seen[2] = {0, 0};
    pthread_t threads[THREADS];
    rmm_resource_t *mr;

    options.sink = count_rows;
    options.sink_arg = seen;
    options.format = RMM_LOGGING_FORMAT_POOL_SIZE;
    mr = make_logging(from_spec(spec), &options);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, alloc_and_free, mr), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed = mr;

        assert_int_equal(pthread_join(threads[i], &failed), 0);
        assert_null(failed);
    }
    end_adaptor(mr);
    assert_int_equal(seen[0], 2 * THREADS * PAIRS);
    assert_int_equal(seen[1], 0);
}

TEST_CASE(rows_of_threads_never_have_more_in_use_than_the_pool)
{
    log_from_threads("pool");
    log_from_threads("async");
    log_from_threads("arena:1GiB");
}

int main(void)
{
    return harness_run_cases(make_folder, remove_folder);
}
