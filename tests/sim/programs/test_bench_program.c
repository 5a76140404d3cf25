/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-bench as a user runs it, on the simulated GPU: that it measures what it says and says
 * what it cannot. No figure is compared with a time.
 */
#include "harness/program.h"

#include <fcntl.h>
#include <pty.h>

#include <stdint.h>

#include <jansson.h>

#include "sim/programs/location.h"

static program_t program;

static void run(const char *arguments)
{
    char command[2048];
    snprintf(command, sizeof command, BENCH " %s", arguments);
    program_run(&program, command);
}

static void assert_error_line(const char *arguments, int status, const char *line)
{
    char expected[1024];
    run(arguments);
    program_assert_status(&program, status);
    snprintf(expected, sizeof expected, "rmm-bench: %s\n", line);
    assert_string_equal(program.err, expected);
    assert_string_equal(program.out, "");
}

/* What --json prints; the caller drops it. */
static json_t *measured(const char *arguments)
{
    char words[1024];
    json_error_t error;
    snprintf(
        words, sizeof words, "--quick --quiet --repetitions 2 --json %s", arguments);
    run(words);
    program_assert_status(&program, 0);
    assert_string_equal(program.err, "");
    json_t *object = json_loads(program.out, JSON_REJECT_DUPLICATES, &error);
    if (object == NULL) {
        fail_msg("not JSON: %s\n%s", error.text, program.out);
    }
    return object;
}

static json_t *member(json_t *object, const char *key)
{
    json_t *value = json_object_get(object, key);
    if (value == NULL) {
        fail_msg("no %s in %s", key, program.out);
    }
    return value;
}

static const char *text(json_t *object, const char *key)
{
    const char *value = json_string_value(member(object, key));
    if (value == NULL) {
        fail_msg("%s is no text in %s", key, program.out);
    }
    return value;
}

/* The result of a workload on a resource. */
static json_t *result(json_t *object, const char *workload, const char *resource)
{
    json_t *found = NULL, *entry;
    size_t i;
    json_array_foreach(member(object, "results"), i, entry)
    {
        if (strcmp(text(entry, "workload"), workload) == 0 &&
            strcmp(text(entry, "resource"), resource) == 0) {
            assert_null(found);
            found = entry;
        }
    }
    if (found == NULL) {
        fail_msg("no %s on %s in %s", workload, resource, program.out);
    }
    return found;
}

/* Figures of two repetitions, none of them nothing. */
static void assert_measured(json_t *entry)
{
    json_t *values = member(entry, "values");
    double least = json_number_value(member(entry, "min"));
    double most = json_number_value(member(entry, "max"));
    double median = json_number_value(member(entry, "median"));
    assert_true(json_is_null(member(entry, "problem")));
    assert_int_equal(json_array_size(values), 2);
    assert_true(least > 0 && least <= median && median <= most);
    assert_true(json_integer_value(member(entry, "operations")) > 0);
}

static void assert_percentiles(json_t *entry)
{
    json_int_t p50 = json_integer_value(member(entry, "p50_ns"));
    json_int_t p99 = json_integer_value(member(entry, "p99_ns"));
    json_int_t p999 = json_integer_value(member(entry, "p999_ns"));
    assert_true(p50 > 0 && p50 <= p99 && p99 <= p999);
    assert_true(json_integer_value(member(entry, "latencies")) > 0);
    assert_int_equal(json_array_size(member(entry, "p99_values")), 2);
}

TEST_CASE(measures_our_resources_beside_the_drivers)
{
    const char *const resources[] = {"cuda",  "async",   "pool",      "pool_virtual",
                                     "arena", "binning", "fixed_size"};
    json_t *object = measured("--filter pair-created");
    assert_int_equal(json_array_size(member(object, "results")), 7);
    for (size_t i = 0; i < sizeof resources / sizeof *resources; i++) {
        json_t *entry = result(object, "pair-created", resources[i]);
        assert_measured(entry);
        assert_percentiles(entry);
        assert_string_equal(text(entry, "unit"), "ns a pair");
    }
    assert_string_equal(text(object, "driver"), "sim");
    assert_int_equal(json_integer_value(member(object, "repetitions")), 2);
    assert_true(json_integer_value(member(object, "cores")) > 0);
    assert_true(json_is_null(member(object, "gpu_driver")));
    assert_true(json_is_true(member(object, "quick")));
    json_decref(object);
}

TEST_CASE(measures_each_workload_on_the_resource_that_is_named)
{
    const char *const names[] = {"pair-legacy",   "pair-per-thread", "churn-100",
                                 "random-1",      "random-64",       "handoff",
                                 "threads-own-4", "threads-one-2",   "growth",
                                 "trim",          "largest-free"};
    char arguments[512] = "--resource pool --filter ";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        strcat(strcat(arguments, i > 0 ? "," : ""), names[i]);
    }
    json_t *object = measured(arguments);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_measured(result(object, names[i], "pool"));
    }
    json_decref(object);
}

TEST_CASE(measures_adaptors_against_what_is_below_them)
{
    const char *const names[] = {
        "adaptor-aligned",     "adaptor-failure_callback", "adaptor-limiting",
        "adaptor-logging",     "adaptor-prefetch",         "adaptor-statistics",
        "adaptor-thread_safe", "adaptor-tracking",         "adaptor-stacks"};
    json_t *object = measured("--filter adaptor");
    assert_int_equal(json_array_size(member(object, "results")), 10);
    assert_true(
        json_is_null(member(result(object, "adaptor-none", "pool"), "difference")));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        json_t *entry = result(object, names[i], "pool");
        assert_measured(entry);
        assert_string_equal(text(entry, "against"), "adaptor-none");
        assert_true(json_is_real(member(entry, "difference")));
    }
    json_decref(object);
}

TEST_CASE(reads_its_own_segment_meanwhile)
{
    json_t *object = measured("--filter reader");
    assert_measured(result(object, "reader-off", "pool"));
    assert_measured(result(object, "reader-on", "pool"));
    json_decref(object);
}

TEST_CASE(says_that_there_is_no_segment_to_read)
{
    setenv("RMM_PUBLISH", "0", 1);
    json_t *object = measured("--filter reader");
    unsetenv("RMM_PUBLISH");
    json_t *entry = result(object, "reader-on", "pool");
    assert_string_equal(
        text(entry, "problem"),
        "this process has no segment to read (is RMM_PUBLISH=0?)");
    assert_true(json_is_null(member(entry, "median")));
    assert_measured(result(object, "reader-off", "pool"));
    json_decref(object);
}

TEST_CASE(fails_in_full_resources_until_it_knows_how_long_that_takes)
{
    json_t *object = measured("--filter full --resource pool,arena,cuda");
    assert_int_equal(
        json_array_size(member(object, "results")), 2); /* cuda has no size */
    assert_measured(result(object, "full", "pool"));
    assert_measured(result(object, "full", "arena"));
    json_decref(object);
}

TEST_CASE(asks_pools_that_grew_for_all_that_they_have_free)
{
    json_t *object =
        measured("--filter largest --resource pool,pool_virtual,arena,cuda");
    assert_int_equal(json_array_size(member(object, "results")), 4); /* pools grow */
    json_t *entry = result(object, "largest-free", "pool_virtual");
    assert_measured(entry);
    assert_true(json_real_value(member(entry, "median")) == 100);
    assert_measured(result(object, "largest-holes", "pool"));
    json_decref(object);
}

TEST_CASE(says_that_streams_of_cuda_need_a_real_gpu)
{
    json_t *object = measured("--filter pair-foreign --resource pool");
    assert_string_equal(
        text(result(object, "pair-foreign", "pool"), "problem"),
        "needs a CUDA GPU, whose driver creates the stream");
    json_decref(object);
}

TEST_CASE(says_what_a_device_is_too_small_for)
{
    setenv("RMM_SIM_MEMORY", "1GiB", 1);
    json_t *object = measured("--filter random-64 --resource pool");
    unsetenv("RMM_SIM_MEMORY");
    assert_string_equal(
        text(result(object, "random-64", "pool"), "problem"),
        "needs 18.0 GiB of device memory, 1.0 are free");
    json_decref(object);
}

TEST_CASE(names_what_failed_and_ends_with_1)
{
    run("--quick --quiet --repetitions 1 --filter random-1,pair-legacy --resource "
        "pool:1MiB:2MiB");
    program_assert_status(&program, 1);
    assert_non_null(strstr(
        program.err, "rmm-bench: random-1 on pool:1MiB:2MiB: pool 'pool': no room"));
    assert_ptr_equal(strchr(program.err, '\n'), program.err + strlen(program.err) - 1);
    assert_non_null(strstr(program.out, "pair-legacy              pool:1MiB:2MiB"));
}

/* Values below 10 have three digits behind the point, others one. */
static void assert_digits(const char *workload)
{
    const char *row = strstr(program.out, workload);
    char median[32] = "";

    assert_non_null(row);
    assert_int_equal(sscanf(row, "%*s %*s %31s", median), 1);
    assert_non_null(strchr(median, '.'));
    assert_int_equal(strlen(strchr(median, '.')) - 1, atof(median) < 10 ? 3 : 1);
}

TEST_CASE(prints_a_table_with_the_machine_above)
{
    run("--quick --filter pair-legacy,threads-one-2 --resource pool,statistics+pool");
    program_assert_status(&program, 0);
    assert_non_null(strstr(program.out, "gpu      simulated (RMM_DRIVER=sim)"));
    assert_non_null(strstr(program.out, "each     3 times, quick;"));
    assert_non_null(strstr(program.out, "pair-legacy              pool "));
    assert_non_null(strstr(program.out, "pair-legacy              statistics+pool "));
    assert_digits("pair-legacy ");
    assert_digits("threads-one-2 ");
}

TEST_CASE(lists_workloads_without_a_gpu)
{
    setenv("RMM_DRIVER", "none", 1);
    run("--list");
    setenv("RMM_DRIVER", "sim", 1);
    program_assert_status(&program, 0);
    assert_non_null(strstr(program.out, "churn-100000             ns a step "));
    assert_non_null(strstr(program.out, "adaptor-stacks "));
}

TEST_CASE(ends_with_2_when_used_wrongly)
{
    run("pool --help");
    program_assert_status(&program, 0);
    assert_error_line("--loud", 2, "unknown option --loud; see --help");
    assert_error_line("pool", 2, "unexpected argument \"pool\"; see --help");
    assert_error_line("--seed x", 2, "--seed: \"x\" is not a number");
    assert_error_line(
        "--repetitions 0", 2,
        "--repetitions: \"0\" is not a number of times, 1 to 1000");
    assert_error_line(
        "--list --repetitions 1001", 2,
        "--repetitions: \"1001\" is not a number of times, 1 to 1000");
    assert_error_line(
        "--resource pool,,cuda", 2,
        "--resource: \"pool,,cuda\" is not resources, such as pool,cuda,"
        "statistics+arena");
    run("--resource nonsense");
    program_assert_status(&program, 2);
    assert_non_null(
        strstr(program.err, "no resource is named 'nonsense'; the names are"));
}

/* --list with `count` resources, whose names have `length` letters, the last `last_length`. */
static void
assert_list_status(size_t count, size_t length, size_t last_length, int status)
{
    char command[4096];
    size_t at = (size_t)snprintf(command, sizeof command, BENCH " --list --resource ");

    assert_true(at + count * (length + 1) + last_length < sizeof command);
    for (size_t i = 1; i < count; i++) {
        memset(command + at, 'a', length);
        command[at + length] = ',';
        at += length + 1;
    }
    memset(command + at, 'a', last_length);
    command[at + last_length] = '\0';
    program_run(&program, command);
    program_assert_status(&program, status);
}

TEST_CASE(takes_as_many_and_as_long_words_as_it_can_keep)
{
    assert_list_status(32, 1, 1, 0);
    assert_list_status(33, 1, 1, 2);
    assert_list_status(1, 0, 128, 0);
    assert_list_status(1, 0, 129, 2);
    assert_list_status(17, 125, 31, 0); /* 2047 characters */
    assert_list_status(17, 125, 32, 2);
    run("--list --repetitions 1000");
    program_assert_status(&program, 0);
}

TEST_CASE(says_that_nothing_is_left_to_measure)
{
    const char *line =
        "no workload matches: --list shows their names, and rmm-bench(1) which "
        "resources each supports";
    assert_error_line("--filter full --resource cuda", 1, line);
}

TEST_CASE(quotes_only_the_unknown_word_of_a_list)
{
    const char *begin =
        "rmm-bench: --filter: no workload has \"nonsense\" in its name; "
        "they are pair-legacy ";
    run("--filter churn,nonsense,pair");
    program_assert_status(&program, 2);
    assert_string_equal(program.out, "");
    assert_ptr_equal(strstr(program.err, begin), program.err);
    assert_non_null(strstr(program.err, " reader-on\n")); /* the last one */
    assert_ptr_equal(strchr(program.err, '\n'), program.err + strlen(program.err) - 1);
    run("--filter pair --resource cuda,nonsense,pool");
    program_assert_status(&program, 2);
    assert_non_null(strstr(program.err, "no resource is named 'nonsense'"));
    assert_null(strstr(program.err, "cuda,"));
}

TEST_CASE(shows_how_far_it_is_on_stderr_only)
{
    run("--quick --repetitions 2 --filter pair-legacy,full --resource pool");
    program_assert_status(&program, 0);
    assert_string_equal(
        program.err, "rmm-bench:   0% done, measuring pair\n"
                     "rmm-bench:  50% done, measuring full\n");
    assert_null(strstr(program.out, "done"));
    run("--quick --quiet --filter pair-legacy --resource pool");
    program_assert_status(&program, 0);
    assert_string_equal(program.err, "");
}

/* With a terminal as stderr: one line, written over, and blank at the end. */
TEST_CASE(shows_a_bar_on_a_terminal)
{
    char shown[65536];
    size_t length = 0;
    ssize_t got;
    int terminal, status = -1;
    pid_t pid;
    fflush(NULL);
    pid = forkpty(&terminal, NULL, NULL, NULL);
    if (pid == 0) {
        int nothing = open("/dev/null", O_WRONLY | O_CLOEXEC);
        dup2(nothing, STDOUT_FILENO);
        execl(
            BENCH, BENCH, "--quick", "--repetitions", "2", "--filter", "pair-legacy",
            "--resource", "pool", (char *)NULL);
        _exit(99);
    }
    assert_true(pid > 0);
    while (length < sizeof shown - 1 &&
           (got = read(terminal, shown + length, sizeof shown - 1 - length)) > 0) {
        length += (size_t)got;
    }
    shown[length] = '\0';
    close(terminal);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    assert_non_null(strstr(shown, "\r[............"));
    assert_non_null(strstr(shown, "]   0% pair-legacy on pool "));
    assert_non_null(strstr(shown, "]  50% pair-legacy on pool "));
    assert_null(strchr(shown, '\n'));
    assert_string_equal(shown + length - 3, "  \r");
}

TEST_CASE(says_that_there_is_no_gpu)
{
    setenv("RMM_DRIVER", "none", 1);
    run("--quick --filter pair");
    setenv("RMM_DRIVER", "sim", 1);
    program_assert_status(&program, 1);
    assert_ptr_equal(strstr(program.err, "rmm-bench: "), program.err);
    assert_string_equal(program.out, "");
}

int main(void)
{
    return harness_run_cases(make_location, leave_location);
}
