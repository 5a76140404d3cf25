/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The logging adaptor: RMM's cases by name (FilenameConstructor, MultiSinkConstructor,
 * EnvironmentPath, AllocateFailure, ...), rows that are whole and there once from many
 * threads, and sinks that fail.
 */
#include "sim/adaptors/logging_harness.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rmm/host_resource.h>
#include <rmm/log.h>
#include <rmm/logging_adaptor.h>

#include "harness/in_child.h"

#define TIB (UINT64_C(1) << 40)

/* The action, pointer, size and stream of a row, and that the rest is as it should be. */
static void assert_row(const char *row, const char *expected)
{
    unsigned thread, hours, minutes, seconds, micros;
    int end = 0;

    assert_int_equal(
        sscanf(
            row, "%u,%2u:%2u:%2u.%6u,%n", &thread, &hours, &minutes, &seconds, &micros,
            &end),
        5);
    assert_int_equal(thread, (unsigned)gettid());
    assert_true(hours < 24 && minutes < 60 && seconds < 61);
    assert_int_equal(strncmp(row + end, expected, strlen(expected)), 0);
    assert_int_equal(row[(size_t)end + strlen(expected)], '\n');
}

static const char *next_row(const char *text)
{
    const char *end = strchr(text, '\n');

    assert_non_null(end);
    return end + 1;
}

/* One block allocated and freed on a stream. */
static void one_of_each(rmm_resource_t *mr, rmm_stream_t stream, char rows[2][128])
{
    void *ptr = take(mr, 1000, stream);
    char number[32];

    snprintf(number, sizeof(number), stream == NULL ? "0" : "%p", (void *)stream);
    snprintf(rows[0], 128, "allocate,%p,1000,%s", ptr, number);
    snprintf(rows[1], 128, "free,%p,1000,%s", ptr, number);
    give(mr, ptr, 1000, stream);
}

TEST_CASE(writes_the_file_of_its_name)
{
    rmm_resource_t *mr = log_to(path_of("named.csv"));
    char rows[4][128];
    char text[4096];
    const char *at = text;
    rmm_stream_t stream;

    assert_string_equal(rmm_logging_path(mr), path_of("named.csv"));
    assert_ok(rmm_stream_create(0, &stream));
    one_of_each(mr, NULL, rows);
    one_of_each(mr, stream, rows + 2);
    assert_ok(rmm_logging_flush(mr));
    read_file(path_of("named.csv"), text, sizeof(text));
    assert_int_equal(strncmp(text, HEADER "\n", sizeof(HEADER)), 0);
    for (int i = 0; i < 4; i++) {
        at = next_row(at);
        assert_row(at, rows[i]);
    }
    assert_string_equal(next_row(at), "");
    assert_ok(rmm_stream_destroy(stream));
    end_adaptor(mr);
}

TEST_CASE(the_last_release_writes_what_is_left)
{
    rmm_resource_t *mr = log_to(path_of("left.csv"));
    char rows[2][128];
    char text[4096];

    one_of_each(mr, NULL, rows);
    read_file(path_of("left.csv"), text, sizeof(text));
    assert_string_equal(text, HEADER "\n"); /* gathered */
    end_adaptor(mr);
    read_file(path_of("left.csv"), text, sizeof(text));
    assert_row(next_row(text), rows[0]);
    assert_row(next_row(next_row(text)), rows[1]);
}

typedef struct collected {
    char text[8192];
    size_t length;
    int calls;
    rmm_resource_t *mr; /* allocates through it, too */
} collected_t;

static void collect(const char *rows, size_t length, void *arg)
{
    collected_t *collected = arg;

    assert_true(length > 0 && rows[length - 1] == '\n');
    assert_true(collected->length + length < sizeof(collected->text));
    memcpy(collected->text + collected->length, rows, length);
    collected->length += length;
    collected->calls++;
}

TEST_CASE(a_file_and_a_sink_get_the_same_rows)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    static collected_t collected;
    char rows[2][128];
    char text[4096];
    rmm_resource_t *mr;

    options.path = path_of("both.csv");
    options.sink = collect;
    options.sink_arg = &collected;
    mr = make_logging(make_cuda(), &options);
    one_of_each(mr, NULL, rows);
    end_adaptor(mr);
    assert_int_equal(
        read_file(path_of("both.csv"), text, sizeof(text)), collected.length);
    assert_memory_equal(text, collected.text, collected.length);
}

TEST_CASE(auto_flush_writes_each_row_at_once)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    char text[4096];
    rmm_resource_t *mr;
    void *ptr;

    options.path = path_of("auto.csv");
    options.auto_flush = true;
    mr = make_logging(make_cuda(), &options);
    ptr = take(mr, 64, NULL);
    read_file(path_of("auto.csv"), text, sizeof(text));
    assert_non_null(strstr(next_row(text), ",allocate,"));
    give(mr, ptr, 64, NULL);
    read_file(path_of("auto.csv"), text, sizeof(text));
    assert_non_null(strstr(text, ",free,"));
    end_adaptor(mr);
}

static void count_frees(const char *rows, size_t length, void *arg)
{
    *(int *)arg += strstr(rows, ",free,") != NULL;
}

static void note_frees(mock_t *mock, void *ptr)
{
    mock->allocs = *(int *)mock->argument; /* rows when the block became free */
}

/* Another thread may allocate it again at once, and log that. */
TEST_CASE(a_free_is_a_row_before_the_block_is_free)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    mock_t *mock = make_mock();
    rmm_resource_t *mr;
    int frees = 0;

    options.sink = count_frees;
    options.sink_arg = &frees;
    options.auto_flush = true;
    mock->freed = note_frees;
    mock->argument = &frees;
    mr = make_logging(&mock->base, &options);
    give(mr, take(mr, 64, NULL), 64, NULL);
    assert_int_equal(mock->allocs, 1);
    end_adaptor(mr);
}

TEST_CASE(the_environment_names_the_file)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mark = (rmm_resource_t *)&cuda;
    rmm_resource_t *mr = mark;
    char text[4096];

    unsetenv("RMM_LOG_FILE");
    assert_int_equal(
        rmm_logging_adaptor_create(cuda, NULL, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_non_null(strstr(rmm_last_error_message(), "RMM_LOG_FILE"));
    assert_ptr_equal(/* no name of a helper before it */
                     strstr(rmm_last_error_message(), "the allocation log"),
                     rmm_last_error_message());
    assert_ptr_equal(mr, mark);
    setenv("RMM_LOG_FILE", path_of("env.csv"), 1);
    assert_ok(rmm_logging_adaptor_create(cuda, NULL, &mr));
    unsetenv("RMM_LOG_FILE");
    rmm_resource_release(cuda);
    assert_string_equal(rmm_logging_path(mr), path_of("env.csv"));
    end_adaptor(mr);
    read_file(path_of("env.csv"), text, sizeof(text));
    assert_string_equal(text, HEADER "\n");
    setenv("RMM_LOG_FILE", path_of("env.csv"), 1);
    options.path = path_of("own.csv");
    mr = make_logging(make_cuda(), &options);
    unsetenv("RMM_LOG_FILE");
    assert_string_equal(
        rmm_logging_path(mr), path_of("own.csv")); /* the caller's word */
    end_adaptor(mr);
}

TEST_CASE(a_failed_allocation_is_a_row)
{
    rmm_resource_t *mr = log_to(path_of("failure.csv"));
    char text[4096];
    void *ptr = NULL;

    assert_int_equal(rmm_resource_alloc(mr, TIB, 0, NULL, &ptr), RMM_ERR_OUT_OF_MEMORY);
    assert_int_equal(stats_of(mr).oom_count, 1);
    end_adaptor(mr);
    read_file(path_of("failure.csv"), text, sizeof(text));
    assert_row(next_row(text), "allocate failure,(nil),1099511627776,0");
}

TEST_CASE(nothing_is_a_row_too)
{
    rmm_resource_t *mr = log_to(path_of("nothing.csv"));
    char text[4096];
    void *ptr = mr;

    assert_ok(rmm_resource_alloc(mr, 0, 0, NULL, &ptr));
    assert_null(ptr);
    rmm_resource_dealloc(mr, ptr, 0, 0, NULL);
    end_adaptor(mr);
    read_file(path_of("nothing.csv"), text, sizeof(text));
    assert_row(next_row(text), "allocate,(nil),0,0");
    assert_row(next_row(next_row(text)), "free,(nil),0,0");
}

/* What is written to a standard descriptor by an adaptor over /dev/std...: the header. */
static void assert_header_on(int standard, const char *device)
{
    int saved = dup(standard);
    int fd = open(path_of("stdout"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    char text[4096];
    rmm_resource_t *mr;

    fflush(NULL);
    assert_true(saved >= 0 && dup2(fd, standard) == standard);
    mr = log_to(device);
    rmm_resource_release(mr);
    assert_true(dup2(saved, standard) == standard);
    close(saved);
    close(fd);
    read_file(path_of("stdout"), text, sizeof(text));
    assert_int_equal(
        strncmp(text, rmm_logging_header(RMM_LOGGING_FORMAT_RMM), strlen(HEADER)), 0);
}

TEST_CASE(standard_output_may_be_the_file)
{
    assert_header_on(STDOUT_FILENO, "/dev/stdout");
}

TEST_CASE(standard_error_may_be_the_file)
{
    assert_header_on(STDERR_FILENO, "/dev/stderr");
}

TEST_CASE(prints_more_columns_on_request_only)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    char text[4096];
    long long duration;
    rmm_resource_t *mr;
    void *ptr;
    int device, end = 0;
    const char *rest;

    options.path = path_of("extended.csv");
    options.format = RMM_LOGGING_FORMAT_EXTENDED;
    mr = make_logging(make_cuda(), &options);
    ptr = take(mr, 1000, NULL);
    give(mr, ptr, 1000, NULL);
    end_adaptor(mr);
    read_file(path_of("extended.csv"), text, sizeof(text));
    rest = next_row(text);
    assert_int_equal(strncmp(text, HEADER ",Device,DurationNs,Caller\n", 64 - 1), 0);
    rest = strstr(rest, ",1000,0,");
    assert_non_null(rest);
    assert_int_equal(sscanf(rest, ",1000,0,%d,%lld,%n", &device, &duration, &end), 2);
    assert_int_equal(device, 0);
    assert_true(duration > 0);
    assert_true(rest[end] != '\n'); /* somebody called */
    assert_null(
        strchr(rest + end, ',') < strchr(rest + end, '\n') ? strchr(rest + end, ',')
                                                           : NULL);
    rest = strstr(next_row(rest), ",1000,0,0,-1,");
    assert_non_null(rest);
    assert_null(rmm_logging_header(4));
}

/* The case above, in a program whose name would be a column more. */
TEST_CASE(a_caller_with_a_comma_is_one_column)
{
    char program[512], command[2048];
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);

    assert_true(length > 0);
    program[length] = '\0';
    snprintf(
        command, sizeof(command),
        "cp '%s' '%s' && '%s' prints_more_columns_on_request_only >/dev/null 2>&1",
        program, path_of("a,b"), path_of("a,b"));
    assert_int_equal(system(command), 0);
    assert_int_equal(unlink(path_of("a,b")), 0);
}

TEST_CASE(bad_options_are_refused)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = NULL;

    options.path = "/proc/nowhere/log.csv";
    assert_int_equal(rmm_logging_adaptor_create(cuda, &options, &mr), RMM_ERR_IO);
    assert_non_null(strstr(rmm_last_error_message(), "/proc/nowhere/log.csv"));
    options.format = 7;
    assert_int_equal(
        rmm_logging_adaptor_create(cuda, &options, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_logging_adaptor_create(NULL, &options, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(
        rmm_logging_adaptor_create(cuda, &options, NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_string_equal(
        rmm_last_error_message(), "rmm_logging_adaptor_create: out is NULL");
    assert_null(mr);
    assert_int_equal(rmm_logging_flush(NULL), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(rmm_logging_flush(cuda), RMM_ERR_INVALID_ARGUMENT);
    assert_string_equal(rmm_logging_path(cuda), "");
    rmm_resource_release(cuda);
}

/* --- sinks that fail ---------------------------------------------------------------- */

static int errors_logged;

static void count_errors(rmm_log_level_t level, const char *message, void *arg)
{
    errors_logged += level == RMM_LEVEL_ERROR && strstr(message, "allocation log");
}

TEST_CASE(a_disk_that_is_full_from_the_start_is_refused)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = NULL;

    options.path = "/dev/full";
    assert_int_equal(rmm_logging_adaptor_create(cuda, &options, &mr), RMM_ERR_IO);
    assert_null(mr);
    rmm_resource_release(cuda);
}

TEST_CASE(a_file_that_is_full_costs_rows_and_no_allocation)
{
    pid_t pid = fork_child();

    if (pid == 0) {
        execl(
            "/proc/self/exe", "test_logging_adaptor", "--fill-the-disk", folder,
            (char *)NULL);
        _exit(99);
    }
    assert_int_equal(exit_status_of(pid), 0);
}

/* --- threads ------------------------------------------------------------------------ */

enum { THREADS = 8 };
static int pairs_per_thread = 62500; /* a million rows */

static void *alloc_and_free(void *arg)
{
    rmm_resource_t *mr = arg;

    for (int i = 0; i < pairs_per_thread; i++) {
        void *ptr = NULL;

        if (rmm_resource_alloc(mr, 1 + (size_t)i, 0, NULL, &ptr) != RMM_OK) {
            return arg;
        }
        rmm_resource_dealloc(mr, ptr, 1 + (size_t)i, 0, NULL);
    }
    return NULL;
}

/* Rows by thread: sizes rise by one, an allocation before its free; times never fall. */
static void check_rows(const char *path)
{
    struct {
        unsigned id;
        uint64_t rows;
    } threads[THREADS] = {{0, 0}};
    FILE *file = fopen(path, "re");
    char line[256];
    char last_time[16] = "";
    uint64_t rows = 0;

    assert_non_null(file);
    assert_non_null(fgets(line, sizeof(line), file));
    assert_string_equal(line, HEADER "\n");
    while (fgets(line, sizeof(line), file) != NULL) {
        char time[16], action[16];
        unsigned id;
        uint64_t pointer, size;
        int t = 0;

        if (sscanf(
                line, "%u,%15[0-9:.],%15[a-z],0x%" SCNx64 ",%" SCNu64 ",0\n", &id, time,
                action, &pointer, &size) != 5) {
            fail_msg("torn: %s", line);
        }
        while (t < THREADS && threads[t].id != id && threads[t].id != 0) {
            t++;
        }
        assert_true(t < THREADS);
        threads[t].id = id;
        assert_string_equal(action, threads[t].rows % 2 == 0 ? "allocate" : "free");
        assert_int_equal(size, 1 + threads[t].rows / 2);
        assert_true(strcmp(time, last_time) >= 0);
        memcpy(last_time, time, sizeof(time));
        threads[t].rows++;
        rows++;
    }
    fclose(file);
    assert_int_equal(rows, 2 * (uint64_t)pairs_per_thread * THREADS);
}

TEST_CASE(a_million_rows_of_threads_are_whole_and_there_once)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    rmm_pool_options_t pool_options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *pool;
    rmm_resource_t *mr;
    pthread_t threads[THREADS];

    assert_ok(rmm_pool_resource_create(cuda, &pool_options, &pool));
    rmm_resource_release(cuda);
    options.path = path_of("million.csv");
    mr = make_logging(pool, &options);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, alloc_and_free, mr), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        void *failed;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    end_adaptor(mr);
    check_rows(path_of("million.csv"));
}

/* --- a sink that comes round again -------------------------------------------------- */

static void allocate_more(const char *rows, size_t length, void *arg)
{
    collected_t *collected = arg;

    collected->calls++;
    if (collected->mr != NULL && collected->calls < 100) {
        void *ptr = take(collected->mr, 100, NULL);

        give(collected->mr, ptr, 100, NULL);
        (void)rmm_logging_flush(collected->mr);
    }
}

TEST_CASE(a_sink_may_use_the_adaptor)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    static collected_t collected;
    rmm_resource_t *mr;

    options.sink = allocate_more;
    options.sink_arg = &collected;
    options.auto_flush = true;
    mr = make_logging(make_cuda(), &options);
    collected.mr = mr;
    give(mr, take(mr, 100, NULL), 100, NULL);
    collected.mr = NULL;
    end_adaptor(mr);
    assert_true(collected.calls > 2);
}

/* The rows that the end writes come before it. */
static void end_collected(void *arg)
{
    collected_t *collected = arg;

    collected->calls += 1000;
}

TEST_CASE(a_sink_is_destroyed_when_its_adaptor_ends)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    collected_t collected = {0};
    rmm_resource_t *cuda, *mr;
    void *ptr;

    options.sink = collect;
    options.sink_arg = &collected;
    options.sink_destroy = end_collected;
    options.format = 99;
    assert_ok(rmm_cuda_resource_create(&cuda));
    assert_int_equal(
        rmm_logging_adaptor_create(cuda, &options, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_int_equal(collected.calls, 0); /* the caller still owns it */
    options.format = RMM_LOGGING_FORMAT_RMM;
    assert_ok(rmm_logging_adaptor_create(cuda, &options, &mr));
    assert_ok(rmm_resource_alloc(mr, 100, 0, NULL, &ptr));
    rmm_resource_dealloc(mr, ptr, 100, 0, NULL);
    assert_true(collected.calls < 1000);
    rmm_resource_release(mr);
    rmm_resource_release(cuda);
    assert_int_equal(collected.calls, 1002); /* the header, both rows, the end */
}

TEST_CASE(a_sink_that_always_allocates_comes_to_an_end)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    static collected_t collected;
    rmm_resource_t *mr;

    options.sink = allocate_more; /* a hundred times would be as good as for ever */
    options.sink_arg = &collected;
    options.auto_flush = true;
    mr = make_logging(make_cuda(), &options);
    collected.mr = mr;
    give(mr, take(mr, 100, NULL), 100, NULL);
    assert_int_equal(collected.calls, 3); /* the header, allocated, freed */
    collected.mr = NULL;
    end_adaptor(mr);
    assert_int_equal(collected.calls, 4); /* what the sink did last */
}

/* Two adaptors whose sinks use each other: more rows than buffers hold. */
static void use_the_other(const char *rows, size_t length, void *arg)
{
    rmm_resource_t *const *other = arg;

    for (int i = 0; *other != NULL && i < 2000; i++) {
        void *ptr = take(*other, 1, NULL);

        give(*other, ptr, 1, NULL);
    }
}

TEST_CASE(sinks_may_use_each_others_adaptors)
{
    static rmm_resource_t *first, *second;
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    rmm_resource_t *kept[2];

    options.sink = use_the_other;
    options.sink_arg = &second;
    kept[0] = make_logging(make_cuda(), &options);
    options.sink_arg = &first;
    kept[1] = make_logging(make_cuda(), &options);
    first = kept[0];
    second = kept[1];
    give(first, take(first, 1, NULL), 1, NULL);
    (void)rmm_logging_flush(first);
    first = second = NULL;
    rmm_resource_release(kept[0]);
    end_adaptor(kept[1]);
}

/* --- ends --------------------------------------------------------------------------- */

TEST_CASE(exit_writes_and_a_fork_does_not)
{
    char text[4096];
    pid_t pid = fork_child();

    if (pid == 0) {
        execl("/proc/self/exe", "test_logging_adaptor", "--exit", folder, (char *)NULL);
        _exit(99);
    }
    assert_int_equal(exit_status_of(pid), 0);
    read_file(path_of("exit.csv"), text, sizeof(text));
    assert_non_null(strstr(text, ",allocate,"));
    assert_null(strstr(next_row(next_row(text)), "allocate")); /* once */
    read_file(path_of("child.csv"), text, sizeof(text));
    assert_non_null(strstr(text, ",allocate,"));
}

static rmm_resource_t *exiting;

/* Once, when the process exits: uses the library, and ends the log that it is the sink of. */
static void use_and_end(const char *rows, size_t length, void *arg)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    rmm_resource_t *ended = exiting;
    rmm_resource_t *another;
    void *ptr;

    exiting = NULL;
    if (ended == NULL) {
        return; /* the header, or a row of the use below */
    }
    options.path = arg;
    if (rmm_logging_adaptor_create(ended, &options, &another) != RMM_OK ||
        rmm_resource_alloc(another, 100, 0, NULL, &ptr) != RMM_OK) {
        _exit(2);
    }
    rmm_resource_dealloc(another, ptr, 100, 0, NULL);
    rmm_resource_release(another);
    rmm_resource_release(ended);
}

/* Not exec: a log is written in the child that made it. */
static void log_to_a_sink_and_exit(void)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    char path[256]; /* is there during exit() */
    rmm_resource_t *host, *mr;
    void *ptr;

    snprintf(path, sizeof(path), "%s", path_of("another.csv"));
    options.sink = use_and_end;
    options.sink_arg = path;
    alarm(100);
    if (rmm_host_resource_create(&host) != RMM_OK ||
        rmm_logging_adaptor_create(host, &options, &mr) != RMM_OK ||
        rmm_resource_alloc(mr, 100, 0, NULL, &ptr) != RMM_OK) {
        _exit(1);
    }
    rmm_resource_dealloc(mr, ptr, 100, 0, NULL);
    rmm_resource_release(host);
    exiting = mr;
    exit(0);
}

TEST_CASE(a_sink_may_use_the_library_while_the_process_exits)
{
    pid_t pid = fork_child();

    if (pid == 0) {
        log_to_a_sink_and_exit();
    }
    assert_int_equal(exit_status_of(pid), 0);
}

/* A log of its own, that is not ended. */
static int log_in_child(void)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    rmm_resource_t *host, *mr;
    void *ptr;

    options.path = path_of("child.csv");
    return rmm_host_resource_create(&host) == RMM_OK &&
                   rmm_logging_adaptor_create(host, &options, &mr) == RMM_OK &&
                   rmm_resource_alloc(mr, 100, 0, NULL, &ptr) == RMM_OK
               ? 0
               : 1;
}

/* In a process of its own: holds a block, forks a child that exits, and exits. */
static int run_exit(void)
{
    rmm_resource_t *mr = log_to(path_of("exit.csv"));
    int status;
    pid_t pid;

    (void)take(mr, 100, NULL);
    pid = fork();
    if (pid == 0) {
        exit(log_in_child());
    }
    waitpid(pid, &status, 0);
    exit(status == 0 ? 0 : 1);
}

/* Each row is in the file or lost. */
static bool all_rows_are_told(uint64_t rows)
{
    const char *at = strstr(rmm_last_error_message(), ": ");
    char text[256];
    uint64_t lost = 0;

    (void)read_file(path_of("full.csv"), text, sizeof(text));
    for (const char *c = text; *c != '\0'; c++) {
        rows -= *c == '\n';
    }
    return at != NULL && sscanf(at, ": %" SCNu64 " rows", &lost) == 1 && lost == rows;
}

/* In a process of its own: the file may grow to 100 bytes. A write beyond that would end it. */
static int run_fill_the_file(void)
{
    rmm_resource_t *mr = log_to(path_of("full.csv"));
    const struct rlimit limit = {100, 100};
    struct stat file;
    int lost;

    if (setrlimit(RLIMIT_FSIZE, &limit) != 0 ||
        rmm_log_set_level(RMM_LEVEL_ERROR) != RMM_OK ||
        rmm_log_to_callback(count_errors, NULL) != RMM_OK) {
        return 2;
    }
    for (int i = 0; i < 5000; i++) { /* several buffers */
        void *ptr = NULL;

        if (rmm_resource_alloc(mr, 100, 0, NULL, &ptr) != RMM_OK) {
            return 3;
        }
        rmm_resource_dealloc(mr, ptr, 100, 0, NULL);
    }
    lost = rmm_logging_flush(mr) == RMM_ERR_IO && all_rows_are_told(1 + 2 * 5000);
    rmm_resource_release(mr);
    return lost && errors_logged == 1 && stat(path_of("full.csv"), &file) == 0 &&
                   file.st_size <= 100
               ? 0
               : 4;
}

static int prepare(void **state)
{
    if (getenv("RMM_TEST_QUICK") != NULL) {
        pairs_per_thread = 2000;
    }
    return make_folder(state);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strncmp(argv[1], "--", 2) == 0) {
        snprintf(folder, sizeof(folder), "%s", argv[2]);
        return strcmp(argv[1], "--exit") == 0 ? run_exit() : run_fill_the_file();
    }
    return harness_run_cases(prepare, remove_folder);
}
