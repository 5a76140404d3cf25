/* SPDX-License-Identifier: Apache-2.0 */
/* rmm-replay as a user runs it, on the simulated GPU: its output, its errors and its status. */
#include "harness/program.h"

#include <stdint.h>
#include <time.h>
#include <zlib.h>

#include <jansson.h>

#include "sim/programs/location.h"

#define TRACE DATA "/resnet_train.csv.gz"
#define TRACE_PEAK 5648896016
#define TRACE_OPERATIONS 34039

static program_t program;

static void run(const char *arguments)
{
    char command[2048];
    snprintf(command, sizeof command, REPLAY " %s", arguments);
    program_run(&program, command);
}

static void assert_error_line(const char *arguments, int status, const char *line)
{
    char expected[1024];
    run(arguments);
    program_assert_status(&program, status);
    snprintf(expected, sizeof expected, "rmm-replay: %s\n", line);
    assert_string_equal(program.err, expected);
    assert_string_equal(program.out, "");
}

/* The program succeeded and printed each text of this list, which ends with NULL. */
static void assert_printed(const char *const *texts)
{
    program_assert_status(&program, 0);
    for (; *texts != NULL; texts++) {
        if (strstr(program.out, *texts) == NULL) {
            fail_msg("\"%s\" is not in\n%s", *texts, program.out);
        }
    }
}

#define ASSERT_PRINTED(...) assert_printed((const char *const[]){__VA_ARGS__, NULL})

/* The object that --json printed; the caller drops it. */
static json_t *parsed_output(void)
{
    json_error_t error;
    json_t *object = json_loads(program.out, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL) {
        fail_msg("not JSON: %s\n%s", error.text, program.out);
    }
    return object;
}

static json_int_t integer(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (!json_is_integer(value)) {
        fail_msg("%s is no integer in %s", key, program.out);
    }
    return json_integer_value(value);
}

/* A text file in the private folder; path() names it. */
static const char *path(const char *name)
{
    static char text[512];
    snprintf(text, sizeof text, "%s/%s", runtime.path, name);
    return text;
}

static void write_file(const char *name, const char *data, size_t bytes)
{
    FILE *file = fopen(path(name), "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
}

TEST_CASE(replays_the_recorded_training_trace)
{
    run("--json " TRACE);
    program_assert_status(&program, 0);
    assert_string_equal(program.err, "");
    json_t *object = parsed_output();
    assert_int_equal(integer(object, "operations"), TRACE_OPERATIONS);
    assert_int_equal(integer(object, "peak_bytes"), TRACE_PEAK);
    assert_int_equal(integer(object, "log_peak_bytes"), TRACE_PEAK);
    assert_int_equal(integer(object, "skipped_rows"), 0);
    assert_true(json_real_value(json_object_get(object, "ns_per_operation")) > 0);
    assert_true(json_is_null(json_object_get(object, "capacity_bytes")));
    assert_true(json_is_null(json_object_get(object, "capacity_over_peak")));
    assert_true(json_is_null(json_object_get(object, "capacity_curve")));
    assert_true(json_is_null(json_object_get(object, "safe_over_peak")));
    assert_true(json_is_null(json_object_get(object, "holes")));
    assert_string_equal(json_string_value(json_object_get(object, "driver")), "sim");
    json_decref(object);
}

/* The log of a replay, made by the logging adaptor, is that log again; what was left at
 * its end was freed by the tool. */
TEST_CASE(a_log_of_the_adaptor_replays_to_the_same_figures)
{
    char arguments[640];
    setenv("RMM_LOG_FILE", path("again.csv"), 1);
    run("--json --resource logging+pool " TRACE);
    unsetenv("RMM_LOG_FILE");
    program_assert_status(&program, 0);
    json_t *first = parsed_output();
    snprintf(arguments, sizeof arguments, "--json %s", path("again.csv"));
    run(arguments);
    program_assert_status(&program, 0);
    assert_string_equal(program.err, "");
    json_t *second = parsed_output();
    assert_int_equal(integer(second, "peak_bytes"), TRACE_PEAK);
    assert_int_equal(integer(second, "log_peak_bytes"), TRACE_PEAK);
    assert_int_equal(integer(second, "skipped_rows"), 0);
    assert_int_equal(
        integer(second, "operations"), TRACE_OPERATIONS + integer(first, "left_count"));
    json_decref(first);
    json_decref(second);
}

/* Each process frees what it allocated, so one can be replayed after the other. */
TEST_CASE(a_log_of_two_processes_is_replayed_whole)
{
    char arguments[640];
    setenv("RMM_LOG_FILE", path("twice.csv"), 1);
    run("--json --resource logging+pool " DATA "/replay/small.csv");
    json_t *once = parsed_output();
    run("--json --resource logging+pool " DATA "/replay/small.csv");
    unsetenv("RMM_LOG_FILE");
    snprintf(arguments, sizeof arguments, "--json %s", path("twice.csv"));
    run(arguments);
    program_assert_status(&program, 0);
    assert_string_equal(program.err, "");
    json_t *twice = parsed_output();
    assert_int_equal(integer(twice, "skipped_rows"), 0);
    assert_int_equal(
        integer(twice, "operations"),
        2 * (integer(once, "operations") + integer(once, "left_count")));
    json_decref(once);
    json_decref(twice);
}

TEST_CASE(prints_a_table_without_json)
{
    run(DATA "/replay/small.csv");
    ASSERT_PRINTED(
        "operations              5\n", "peak bytes              3000\n",
        "left allocated, bytes   500\n", "simulated (RMM_DRIVER=sim)");
}

TEST_CASE(verifies_the_trace_under_several_seeds)
{
    const char *const seeds[] = {"1", "2", "77"};
    for (size_t i = 0; i < 3; i++) {
        setenv("RMM_SIM_SEED", seeds[i], 1);
        run("--verify --json " TRACE);
        unsetenv("RMM_SIM_SEED");
        program_assert_status(&program, 0);
        json_t *object = parsed_output();
        assert_int_equal(integer(object, "verify_mismatches"), 0);
        assert_int_equal(integer(object, "peak_bytes"), TRACE_PEAK);
        assert_true(json_is_null(json_object_get(object, "ns_per_operation")));
        json_decref(object);
    }
}

TEST_CASE(verifies_threads_and_streams_under_many_seeds)
{
    for (int seed = 1; seed <= 20; seed++) {
        char text[16];
        snprintf(text, sizeof text, "%d", seed);
        setenv("RMM_SIM_SEED", text, 1);
        run("--verify --repeat 5 --json " DATA "/replay/streams.csv");
        unsetenv("RMM_SIM_SEED");
        program_assert_status(&program, 0);
        assert_string_equal(program.err, "");
        json_t *object = parsed_output();
        assert_int_equal(integer(object, "operations"), 10);
        assert_int_equal(integer(object, "repeats"), 5);
        assert_int_equal(integer(object, "threads"), 2);
        assert_int_equal(integer(object, "streams"), 4);
        assert_int_equal(integer(object, "peak_bytes"), 170001);
        assert_int_equal(integer(object, "left_count"), 0);
        assert_int_equal(integer(object, "verify_mismatches"), 0);
        json_decref(object);
    }
}

TEST_CASE(reports_and_skips_rows_that_cannot_be_replayed)
{
    run("--json " DATA "/replay/faulty.csv");
    program_assert_status(&program, 0);
#define AT "rmm-replay: " DATA "/replay/faulty.csv:"
    assert_string_equal(
        program.err,
        AT "3: 4 columns where 6 are expected (Thread,Time,Action,Pointer,Size,Stream)"
           "; row skipped\n" AT
           "4: Size \"99999999999999999999\" does not fit in 64 bits; row skipped\n" AT
           "5: Action \"resize\" is none of allocate, free, allocate failure; row "
           "skipped\n" AT "6: Pointer \"abc\" is not a number; row skipped\n" AT
           "7: free of an address that is not allocated, 0x9000 (10 bytes); row "
           "skipped\n" AT
           "8: allocate of an address that is still allocated, 0x1000 (10 bytes); row "
           "skipped\n" AT
           "10: free of 0x1000 with 999 bytes, allocated with 1000; the allocation's "
           "size is used\n" AT "11: Time \"soon\" is not HH:MM:SS.ffffff; row skipped\n"
           "rmm-replay: " DATA "/replay/faulty.csv: 7 rows skipped\n");
#undef AT
    json_t *object = parsed_output();
    assert_int_equal(integer(object, "operations"), 2);
    assert_int_equal(integer(object, "skipped_rows"), 7);
    assert_int_equal(integer(object, "peak_bytes"), 1000);
    assert_int_equal(integer(object, "left_bytes"), 0);
    json_decref(object);
}

TEST_CASE(stops_at_the_first_such_row_when_strict)
{
    assert_error_line(
        "--strict " DATA "/replay/faulty.csv", 1,
        DATA "/replay/faulty.csv:3: 4 columns where 6 are expected "
             "(Thread,Time,Action,Pointer,Size,Stream)");
    run("--strict " DATA "/replay/small.csv");
    program_assert_status(&program, 0);
}

TEST_CASE(strict_refuses_a_free_of_another_size)
{
    const char text[] = "1,10:00:00.1,allocate,0x10,8,0\n1,10:00:00.2,free,0x10,9,0\n";
    char arguments[600], line[700];
    write_file("sizes.csv", text, sizeof text - 1);
    snprintf(arguments, sizeof arguments, "--strict %s", path("sizes.csv"));
    snprintf(
        line, sizeof line, "%s:2: free of 0x10 with 9 bytes, allocated with 8",
        path("sizes.csv"));
    assert_error_line(arguments, 1, line);
}

TEST_CASE(counts_failures_of_the_log_without_replaying_them)
{
    run(DATA "/replay/failures.csv");
    ASSERT_PRINTED("operations              2\n", "failures in the log     1\n");
    run("--help");
    assert_non_null(strstr(program.out, "allocate failure"));
}

#ifndef __SANITIZE_THREAD__ /* twenty runs on one thread: minutes, and nothing to see */
/* It suffices, and a granule less does not. */
TEST_CASE(finds_the_smallest_capacity_close_to_the_peak)
{
    char arguments[256];
    run("--find-capacity --json " TRACE);
    program_assert_status(&program, 0);
    json_t *object = parsed_output();
    double ratio = json_real_value(json_object_get(object, "capacity_over_peak"));
    long long capacity = integer(object, "capacity_bytes");
    assert_true(ratio >= 1.0 && ratio <= 1.1);
    assert_true(capacity >= TRACE_PEAK);
    assert_int_equal(integer(object, "peak_bytes"), TRACE_PEAK);
    json_decref(object);

    snprintf(arguments, sizeof arguments, "--pool-bytes %lld " TRACE, capacity);
    run(arguments);
    program_assert_status(&program, 0);
    snprintf(
        arguments, sizeof arguments, "--pool-bytes %lld " TRACE,
        capacity - TRACE_PEAK / 1000);
    run(arguments);
    program_assert_status(&program, 1);
}
#endif

TEST_CASE(reports_which_allocation_failed_and_skips_its_free)
{
    run("--pool-bytes 2304 --json " DATA "/replay/small.csv");
    program_assert_status(&program, 1);
    const char *begin =
        "rmm-replay: " DATA "/replay/small.csv:3: allocating 2000 bytes failed: ";
    assert_memory_equal(program.err, begin, strlen(begin));
    assert_ptr_equal(strchr(program.err, '\n'), program.err + strlen(program.err) - 1);
    json_t *object = parsed_output();
    assert_int_equal(integer(object, "failed_allocations"), 1);
    assert_int_equal(integer(object, "peak_bytes"), 1000);
    json_decref(object);
}

TEST_CASE(accepts_pool_sizes_that_are_not_a_multiple_of_256)
{
    run("--pool-bytes 3839 --json " DATA "/replay/small.csv"); /* 3584 suffice */
    program_assert_status(&program, 0);
    json_t *object = parsed_output();
    assert_int_equal(integer(object, "reserved_bytes"), 3584);
    json_decref(object);
}

TEST_CASE(serves_from_each_resource_that_has_no_size)
{
    static const char *const names[] = {
        "async",
        "async_managed",
        "cuda",
        "managed",
        "system",
        "sam_headroom",
        "pinned",
        "pool_pinned",
        "pool_managed",
        "fixed_size",
        "pool:1MiB:8MiB",
        "statistics+arena",
        "limiting:50%+pool",
        "binning"};

    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char command[256];
        snprintf(
            command, sizeof command,
            "--resource %s --verify --json %s/replay/streams.csv", names[i], DATA);
        run(command);
        program_assert_status(&program, 0);
        json_t *object = parsed_output();
        assert_string_equal(
            json_string_value(json_object_get(object, "resource")), names[i]);
        assert_int_equal(integer(object, "peak_bytes"), 170001);
        json_decref(object);
    }
}

/* An adaptor holds nothing itself, nor does a binning resource. */
TEST_CASE(reports_what_is_held_below_the_resource)
{
    static const char *const names[] = {"statistics+cuda", "tracking+pool", "binning"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char command[256];
        snprintf(
            command, sizeof command, "--resource %s --json %s/replay/small.csv",
            names[i], DATA);
        run(command);
        program_assert_status(&program, 0);
        json_t *object = parsed_output();
        assert_int_equal(integer(object, "left_bytes"), 500);
        assert_true(integer(object, "reserved_bytes") >= 500);
        json_decref(object);
    }
}

TEST_CASE(serves_from_a_pool_that_maps_virtual_memory)
{
    run("--resource pool-virtual --verify --json " DATA "/replay/streams.csv");
    program_assert_status(&program, 0);
    json_t *object = parsed_output();
    assert_string_equal(
        json_string_value(json_object_get(object, "resource")), "pool-virtual");
    assert_int_equal(integer(object, "peak_bytes"), 170001);
    assert_int_equal(integer(object, "reserved_bytes"), 2 * 1024 * 1024);
    json_decref(object);
}

#define LARGE_BLOCKS 40
#define LARGE_PEAK (LARGE_BLOCKS << 20)

/* Blocks of 1 MiB, so that chunks of the smallest size do not matter. */
static void write_large_log(void)
{
    FILE *file = fopen(path("large.csv"), "w");
    assert_non_null(file);
    fputs("Thread,Time,Action,Pointer,Size,Stream\n", file);
    for (unsigned i = 1; i <= LARGE_BLOCKS; i++) {
        fprintf(file, "1,10:00:00.000000,allocate,0x%x,%u,0\n", i << 20, 1 << 20);
    }
    assert_int_equal(fclose(file), 0);
}

/* A binning resource has a bin beside its pool. */
/* What it says as JSON of the large log with the option. */
static json_t *replay_large_log(const char *option, const char *resource)
{
    char command[1024];
    snprintf(
        command, sizeof command, "%s --json --resource %s %s", option, resource,
        path("large.csv"));
    run(command);
    program_assert_status(&program, 0);
    return parsed_output();
}

TEST_CASE(finds_the_capacity_of_each_resource_that_has_a_size)
{
    static const char *const names[] = {
        "pool",    "pool_virtual",    "pool_managed", "pool_pinned",
        "binning", "statistics+pool", "arena",        "tracking+arena"};
    write_large_log();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *object = replay_large_log("--find-capacity", names[i]);
        assert_true(integer(object, "capacity_bytes") >= LARGE_PEAK);
        assert_true(integer(object, "capacity_bytes") <= 4 * LARGE_PEAK);
        json_decref(object);
    }
}

/* The peak is whole blocks, so that every capacity from it on runs the log. */
TEST_CASE(reports_which_capacities_run_the_log)
{
    static const char *const names[] = {"pool", "pool_virtual", "tracking+arena"};
    write_large_log();
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *object = replay_large_log("--capacity-curve", names[i]);
        json_t *rows = json_object_get(object, "capacity_curve");
        assert_int_equal(json_array_size(rows), 41);
        json_t *last = json_array_get(rows, 40);
        assert_int_equal(integer(last, "bytes"), LARGE_PEAK / 10 * 14);
        assert_true(json_is_true(json_object_get(last, "fits")));
        assert_true(json_real_value(json_object_get(object, "safe_over_peak")) <= 1.05);
        assert_int_equal(integer(object, "holes"), 0);
        assert_true(json_is_null(json_object_get(object, "capacity_bytes")));
        json_decref(object);
    }
    char arguments[600];
    snprintf(arguments, sizeof arguments, "--capacity-curve %s", path("large.csv"));
    run(arguments);
    ASSERT_PRINTED(
        "\ncapacity 1.00           fits\n", "\ncapacity 1.40           fits\n",
        "\nsafe capacity           1.00\n", "\nholes                   0\n");
}

/* Three blocks of 65 bytes occupy 256 each: no capacity up to 1.40 of the peak runs it. */
TEST_CASE(reports_that_no_tried_capacity_is_safe)
{
    const char text[] = "1,10:00:00.1,allocate,0x100,65,0\n"
                        "1,10:00:00.2,allocate,0x200,65,0\n"
                        "1,10:00:00.3,allocate,0x300,65,0\n";
    char arguments[600];
    write_file("tiny.csv", text, sizeof text - 1);
    snprintf(arguments, sizeof arguments, "--capacity-curve %s", path("tiny.csv"));
    run(arguments);
    ASSERT_PRINTED(
        "\ncapacity 1.40           does not fit\n",
        "\nsafe capacity           >1.40\n");
    snprintf(
        arguments, sizeof arguments, "--capacity-curve --json %s", path("tiny.csv"));
    run(arguments);
    program_assert_status(&program, 0);
    json_t *object = parsed_output();
    assert_true(json_is_null(json_object_get(object, "safe_over_peak")));
    assert_int_equal(integer(object, "holes"), 0);
    json_decref(object);
}

/* The advice is true: the log runs in the size that it names, and in no less of that resource
 * than the curve has tried. */
TEST_CASE(advises_a_resource_and_a_size_that_run_the_log)
{
    char arguments[600];
    unsetenv("RMM_DRIVER"); /* --advise needs no GPU */
    run("--advise --json " TRACE);
    setenv("RMM_DRIVER", "sim", 1);
    program_assert_status(&program, 0);
    assert_string_equal(program.err, "");
    json_t *object = parsed_output();
    const char *spec = json_string_value(json_object_get(object, "resource"));
    assert_non_null(spec);
    const char *colon = strchr(spec, ':');
    assert_non_null(colon);
    assert_int_equal(integer(object, "log_peak_bytes"), TRACE_PEAK);
    assert_int_equal(json_array_size(json_object_get(object, "candidates")), 4);
    /* An arena takes one size; the others grow beyond the first without a second. */
    const char *most = strncmp(spec, "arena:", strlen("arena:")) == 0 ? "" : colon;
    snprintf(arguments, sizeof arguments, "--resource %s%s " TRACE, spec, most);
    json_decref(object);
    run(arguments);
    program_assert_status(&program, 0);
}

TEST_CASE(advises_by_a_table_that_names_what_is_not_measured)
{
    run("--advise " DATA "/replay/streams.csv");
    ASSERT_PRINTED(
        "\ngpu                     simulated\n",
        "\npool                              1.00",
        "\nadvice                  RMM_RESOURCE=pool:167KiB\n",
        "\nbecause                 pool runs the log in 1.00 of its peak, at ",
        "\nnote                    2 threads ran one at a time: their contention is "
        "not ");
    run("--advise " DATA "/replay/failures.csv");
    ASSERT_PRINTED("\nnote                    1 requests of the log failed: the "
                   "program needed more\n");
    assert_null(
        strstr(program.out, "arena")); /* its least size is above this log's peak */
    run("--advise " DATA "/replay/one_block.csv"); /* which is mapped as 2 MiB */
    ASSERT_PRINTED("\npool_virtual                      1.40 ");
}

TEST_CASE(advises_nothing_on_another_gpu_or_for_an_empty_log)
{
    const char text[] = "1,10:00:00.1,allocate,0x100,0,0\n";
    char arguments[600], line[700];
    setenv("RMM_DRIVER", "cuda", 1);
    assert_error_line(
        "--advise " DATA "/replay/small.csv", 1,
        "--advise runs on the simulated GPU: unset RMM_DRIVER (it is cuda)");
    setenv("RMM_DRIVER", "sim", 1);
    write_file("empty.csv", text, sizeof text - 1);
    snprintf(arguments, sizeof arguments, "--advise %s", path("empty.csv"));
    snprintf(
        line, sizeof line, "%s allocates nothing: there is nothing to advise",
        path("empty.csv"));
    assert_error_line(arguments, 1, line);
}

TEST_CASE(writes_what_was_held_while_the_log_ran)
{
    char command[1024], line[256];
    unsigned long long operation, time_ns, live, reserved;
    snprintf(
        command, sizeof command, "--json --csv %s --resource pool %s", path("held.csv"),
        DATA "/replay/small.csv");
    run(command);
    program_assert_status(&program, 0);
    json_t *object = parsed_output();
    assert_true(json_is_null(json_object_get(object, "ns_per_operation")));
    json_decref(object);
    FILE *file = fopen(path("held.csv"), "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "# log small.csv resource pool driver sim\n");
    assert_non_null(fgets(line, sizeof line, file));
    assert_string_equal(line, "operation,time_ns,live_bytes,reserved_bytes\n");
    const unsigned long long live_bytes[] = {1000, 3000, 2000, 2500, 500};
    for (unsigned i = 0; i < 5; i++) {
        assert_non_null(fgets(line, sizeof line, file));
        assert_int_equal(
            sscanf(line, "%llu,%llu,%llu,%llu", &operation, &time_ns, &live, &reserved),
            4);
        assert_int_equal(operation, i + 1);
        assert_int_equal(time_ns, 10000 * i);
        assert_int_equal(live, live_bytes[i]);
        assert_true(reserved >= live);
    }
    assert_null(fgets(line, sizeof line, file));
    fclose(file);
}

TEST_CASE(says_that_a_timeline_cannot_be_written)
{
    assert_error_line(
        "--csv /dev/null/held.csv " DATA "/replay/small.csv", 1,
        "cannot write /dev/null/held.csv: Not a directory");
    run("--csv /dev/full " DATA "/replay/small.csv");
    program_assert_status(&program, 1);
    assert_string_equal(
        program.err, "rmm-replay: cannot write /dev/full: No space left on device\n");
}

/* Recorded: 17 us from first to last row; at a factor of 0.0001 at least 170 ms. */
TEST_CASE(waits_for_the_recorded_moments)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    run("--speed 0.0001 --json " DATA "/replay/streams.csv");
    clock_gettime(CLOCK_MONOTONIC, &end);
    program_assert_status(&program, 0);
    int64_t ns = (int64_t)(end.tv_sec - begin.tv_sec) * 1000000000 +
                 (end.tv_nsec - begin.tv_nsec);
    assert_true(ns >= 170000000); /* sleeping less would be wrong, however slow it is */
}

/* Until the report is printed: then it holds. Ends by the test's timeout otherwise. */
static void wait_for_report(void)
{
    const struct timespec pause = {.tv_nsec = 20000000};
    while (strchr(program_out_so_far(&program), '}') == NULL) {
        nanosleep(&pause, NULL);
    }
}

TEST_CASE(holds_what_is_left_until_sigterm_and_ends_well)
{
    const int signals[] = {SIGTERM, SIGINT};
    for (size_t i = 0; i < 2; i++) {
        rmm_segment_t segment;
        runtime_empty(&runtime);
        program_start(&program, REPLAY " --hold 1000 --json " DATA "/replay/small.csv");
        wait_for_report();
        runtime_segment(&runtime, &segment);
        assert_location(&segment, current_bytes, 500);
        assert_location(&segment, peak_bytes, 3000);
        kill(program.pid, signals[i]);
        program_finish(&program);
        program_assert_status(&program, 0);
        assert_string_equal(program.err, "");
        assert_location(&segment, current_bytes, 0);
        rmm__segment_close(&segment);
    }
}

TEST_CASE(ends_by_itself_when_the_hold_is_over)
{
    run("--hold 0.01 " DATA "/replay/small.csv");
    program_assert_status(&program, 0);
}

/* The report's figure of this name, after a run of the log. */
static int64_t figure_of(const char *log, const char *name)
{
    char arguments[600];
    snprintf(arguments, sizeof arguments, "--json %s", log);
    run(arguments);
    program_assert_status(&program, 0);
    json_t *object = parsed_output();
    int64_t figure = integer(object, name);
    json_decref(object);
    return figure;
}

/* mode: of gzopen(), "T" for plain text */
static void append(const char *name, const char *text, const char *mode)
{
    gzFile file = gzopen(path(name), mode);
    assert_non_null(file);
    assert_true(gzwrite(file, text, (unsigned)strlen(text)) > 0);
    assert_int_equal(gzclose(file), Z_OK);
}

TEST_CASE(reads_plain_and_compressed_logs_alike)
{
    const char text[] = "1,10:00:00.1,allocate,0x10,8,0\n";
    append("small.csv.gz", text, "wb");
    write_file("small.csv", text, sizeof text - 1);

    const char *const names[] = {"small.csv", "small.csv.gz"};
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(figure_of(path(names[i]), "left_bytes"), 8);
    }
}

TEST_CASE(reads_every_part_of_a_joined_log)
{
    const char *first = "Thread,Time,Action,Pointer,Size,Stream\n"
                        "1,10:00:00.1,allocate,0x10,8,0\n";
    const char *second = "Thread,Time,Action,Pointer,Size,Stream\n"
                         "1,10:00:00.2,allocate,0x20,8,0\n";
    append("joined.gz", first, "ab");
    append("joined.gz", second, "ab");
    append("joined.gz", "1,10:00:00.3,allocate,0x30,8,0\n", "aT");
    assert_int_equal(figure_of(path("joined.gz"), "left_bytes"), 24);
    assert_string_equal(program.err, "");
}

TEST_CASE(reads_standard_input)
{
    int saved = dup(STDIN_FILENO);
    int log = open(DATA "/replay/small.csv", O_RDONLY | O_CLOEXEC);
    assert_true(saved >= 0 && log >= 0);
    assert_int_equal(dup2(log, STDIN_FILENO), STDIN_FILENO);
    close(log);
    assert_int_equal(figure_of("-", "log_peak_bytes"), 3000);
    assert_int_equal(dup2(saved, STDIN_FILENO), STDIN_FILENO);
    close(saved);
}

TEST_CASE(reads_a_cut_compressed_log_up_to_its_end)
{
    static char data[1 << 20];
    char arguments[600];
    FILE *file = fopen(TRACE, "rb");
    assert_non_null(file);
    size_t bytes = fread(data, 1, sizeof data, file);
    fclose(file);
    assert_true(bytes > 1000);
    write_file("cut.csv.gz", data, bytes / 2);
    assert_true(figure_of(path("cut.csv.gz"), "operations") > 100);
    assert_int_equal(figure_of(path("cut.csv.gz"), "skipped_rows"), 1);
    assert_non_null(strstr(
        program.err, ": the compressed file ends too early: the rows from here on are "
                     "missing; row skipped\n"));
    snprintf(arguments, sizeof arguments, "--strict %s", path("cut.csv.gz"));
    run(arguments);
    program_assert_status(&program, 1);

    data[bytes / 2] = (char)~data[bytes / 2];
    write_file("bad.csv.gz", data, bytes);
    run(path("bad.csv.gz"));
    program_assert_status(&program, 1);
    assert_non_null(strstr(program.err, "bad.csv.gz"));
}

TEST_CASE(says_in_one_line_why_a_log_cannot_be_read)
{
    char line[700];
    assert_error_line(
        "/proc/nowhere.csv", 1,
        "cannot read /proc/nowhere.csv: No such file or directory");
    assert_error_line("/tmp", 1, "cannot read /tmp: it is a directory, not a log");
    assert_error_line("''", 1, "cannot read \"\": No such file or directory");

    write_file("empty.csv", "", 0);
    snprintf(line, sizeof line, "%s: the log has no operation", path("empty.csv"));
    assert_error_line(path("empty.csv"), 1, line);

    const char header[] = "Thread,Time,Action,Pointer,Size,Stream\n";
    write_file("header.csv", header, sizeof header - 1);
    snprintf(line, sizeof line, "%s: the log has no operation", path("header.csv"));
    assert_error_line(path("header.csv"), 1, line);
}

TEST_CASE(refuses_a_file_that_is_not_a_log)
{
    char line[1024];
    char text[4096] = "";
    for (int i = 0; i < 200; i++) {
        strcat(text, "some other text\n");
    }
    write_file("other.txt", text, strlen(text));
    snprintf(
        line, sizeof line,
        "%s: not an allocation log: line 1: 1 column where 6 are expected "
        "(Thread,Time,Action,Pointer,Size,Stream)",
        path("other.txt"));
    assert_error_line(path("other.txt"), 1, line);
}

TEST_CASE(replays_a_snapshot_of_pytorch)
{
    run("--json --strict " DATA "/torch/snapshot.json");
    program_assert_status(&program, 0);
    json_t *object = parsed_output();
    assert_int_equal(integer(object, "operations"), 4);
    assert_int_equal(integer(object, "peak_bytes"), 5120);
    json_decref(object);
    write_file("node.json", "{}", 2);
    run(path("node.json"));
    program_assert_status(&program, 1);
    assert_non_null(strstr(program.err, "not a memory snapshot of PyTorch"));
}

TEST_CASE(ends_with_2_when_used_wrongly)
{
    assert_error_line("", 2, "which log? Name one file; see --help");
    assert_error_line(
        "--resource cuda:1MiB x", 2,
        "--resource: the spec is 'cuda:1MiB' (examples: pool:50%, "
        "statistics+arena:8GiB): 'cuda' takes no size");
    assert_error_line("--nonsense", 2, "unknown option --nonsense; see --help");
}

TEST_CASE(without_a_gpu_says_what_to_set)
{
    if (access("/dev/nvidiactl", F_OK) == 0) {
        print_message("a GPU is here: nothing to refuse\n");
        skip();
    }
    unsetenv("RMM_DRIVER");
    run(DATA "/replay/small.csv");
    setenv("RMM_DRIVER", "sim", 1);
    program_assert_status(&program, 1);
    assert_non_null(strstr(program.err, "RMM_DRIVER=sim"));
    assert_ptr_equal(strchr(program.err, '\n'), program.err + strlen(program.err) - 1);
}

TEST_CASE(help_and_man_page_name_every_option)
{
    static char man[65536];
    FILE *file = fopen(MAN "/rmm-replay.1", "r");
    assert_non_null(file);
    size_t bytes = fread(man, 1, sizeof man - 1, file);
    fclose(file);
    man[bytes] = '\0';

    run("--help");
    program_assert_status(&program, 0);
    int options = 0;
    for (char *c = strstr(program.out, "\n  --"); c != NULL; c = strstr(c, "\n  --")) {
        char name[64], *to = name;
        for (c += 5; *c != ' ' && *c != '\n'; c++) {
            if (*c == '-') {
                *to++ = '\\'; /* troff's minus */
            }
            *to++ = *c;
        }
        *to = '\0';
        if (strstr(man, name) == NULL) {
            fail_msg("the man page does not name --%s", name);
        }
        options++;
    }
    assert_true(options >= 11);
}

int main(void)
{
    return harness_run_cases(make_location, leave_location);
}
