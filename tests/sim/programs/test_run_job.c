/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-run where the program is a launcher: every process that it starts, and those that they start,
 * is diagnosed and told of, however it ended.
 */
#include "harness/program.h"
#include "harness/runtime.h"

#include <fcntl.h>
#include <jansson.h>
#include <sys/stat.h>

static runtime_t runtime;
static program_t program;
static char report_path[sizeof(runtime.path) + 8];
static char script_path[sizeof(runtime.path) + 8];

static int set_up(void **state)
{
    runtime_open(&runtime);
    snprintf(report_path, sizeof(report_path), "%s.json", runtime.path);
    snprintf(script_path, sizeof(script_path), "%s.sh", runtime.path);
    return 0;
}

static int tear_down(void **state)
{
    (void)unlink(report_path);
    (void)unlink(script_path);
    runtime_close(&runtime);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

/* The lines of a shell script, under rmm-run with these options. */
static void run(const char *options, const char *script)
{
    char command[1024];
    int fd = open(script_path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);

    assert_true(fd >= 0);
    assert_true(dprintf(fd, "#!/bin/sh\nexec >/dev/null\n%s\n", script) > 0);
    assert_int_equal(close(fd), 0);
    snprintf(command, sizeof(command), RUN " %s -- %s", options, script_path);
    program_run(&program, command);
}

static void run_reported(const char *options, const char *script)
{
    char text[512];

    snprintf(text, sizeof(text), "--report %s %s", report_path, options);
    run(text, script);
}

static json_t *read_report(void)
{
    json_error_t error;
    json_t *report = json_load_file(report_path, 0, &error);

    if (report == NULL) {
        fail_msg("%s: %s", report_path, error.text);
    }
    return report;
}

static int64_t number_in(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);

    assert_true(json_is_integer(value));
    return json_integer_value(value);
}

static void expect(const char *text)
{
    if (strstr(program.err, text) == NULL) {
        fail_msg("no \"%s\" in\n%s", text, program.err);
    }
}

/* The i-th of the processes that were started. */
static void
check_process(const json_t *report, size_t i, const char *rank, int findings)
{
    const json_t *process = json_array_get(json_object_get(report, "processes"), i);

    assert_non_null(process);
    assert_string_equal(
        json_string_value(json_object_get(process, "program")), "rmm_diag_progra");
    assert_string_equal(json_string_value(json_object_get(process, "rank")), rank);
    assert_int_equal(number_in(process, "findings_total"), findings);
    assert_int_equal(
        json_array_size(json_object_get(process, "findings")), findings != 0);
    assert_true(json_is_true(json_object_get(process, "ended")));
}

/* As torchrun, mpirun and srun start them; here the last rank ends first. */
CASE(tells_of_each_rank)
{
    json_t *report;

    run_reported(
        "--summary", "RANK=10 " PROGRAM "\n"
                     "OMPI_COMM_WORLD_RANK=2 " PROGRAM " overrun\n"
                     "SLURM_PROCID=0 " PROGRAM "\n"
                     "true");
    program_assert_status(&program, 0);
    report = read_report();
    assert_int_equal(json_array_size(json_object_get(report, "processes")), 3);
    assert_true(json_is_string(json_object_get(report, "missing")));
    check_process(report, 0, "0", 0);
    check_process(report, 1, "2", 3);
    check_process(report, 2, "10", 0);
    json_decref(report);
    expect("rmm-run: rmm_diag_progra, rank 0 (pid ");
    expect("rmm-run: rmm_diag_progra, rank 2 (pid ");
    expect("3 findings (modes usage,bounds: active; 11 launches)\n"
           "  out_of_bounds: memset_async writes 1001 bytes, 3 times\n");
    expect(".sh: 3 processes were diagnosed: 3 findings\n");
    assert_null(strstr(program.err, "nothing was diagnosed"));
}

CASE(ends_as_the_worst_of_them)
{
    run("--fail-on-finding", PROGRAM "\n" PROGRAM " overrun\n" PROGRAM "\ntrue");
    program_assert_status(&program, 86);
    run("--fail-on-finding", PROGRAM "\n" PROGRAM "\ntrue");
    program_assert_status(&program, 0);
    run("--fail-on-leak", PROGRAM "\ntrue");
    program_assert_status(&program, 86);
    run("--fail-on-finding", "exit 3");
    program_assert_status(&program, 125);
    run("--fail-on-finding", PROGRAM "\nexit 3");
    program_assert_status(&program, 3);
}

CASE(tells_of_a_process_that_was_killed_and_of_one_of_a_process)
{
    run("", PROGRAM " overrun kill\nsh -c 'sh -c \"" PROGRAM "; true\"; true'\ntrue");
    program_assert_status(&program, 0);
    expect(": 2 processes were diagnosed: 3 findings\n");
}

/* It has not ended, so this is not all. */
CASE(tells_of_a_process_that_outlives_the_program)
{
    json_t *report;
    const json_t *process;
    pid_t pid;

    run_reported(
        "--summary", "mkfifo $0.fifo\nexec 3<>$0.fifo\nrm $0.fifo\n" PROGRAM
                     " steps <&3 >$0.out &\necho launch >&3\n"
                     "while ! grep -q ok $0.out; do sleep 0.01; done\nrm $0.out");
    program_assert_status(&program, 0);
    report = read_report();
    process = json_array_get(json_object_get(report, "processes"), 0);
    assert_non_null(process);
    assert_true(json_is_false(json_object_get(process, "ended")));
    pid = (pid_t)number_in(process, "pid");
    json_decref(report);
    expect(", still running): ");
    assert_int_equal(kill(pid, SIGKILL), 0);
}

CASE(tells_only_of_those_that_are_named)
{
    run("--only sh*", PROGRAM " overrun\ntrue");
    program_assert_status(&program, 0);
    expect("the program left no segment");
    run("--only rmm_*", PROGRAM " overrun\ntrue");
    program_assert_status(&program, 0);
    expect(": 1 process was diagnosed: 3 findings\n");
}

/* Not of another rmm-run's, in the same directory at the same time. */
CASE(leaves_the_processes_of_another_run_to_it)
{
    char script[512];

    snprintf(
        script, sizeof(script),
        "%s --summary -- sh -c '%s overrun; true' 2>/dev/null\n%s\ntrue", RUN, PROGRAM,
        PROGRAM);
    run("", script);
    program_assert_status(&program, 0);
    expect(": 1 process was diagnosed: 0 findings\n");
}

/* More at a time than there are descriptors at first. */
CASE(tells_of_hundreds_of_short_ones)
{
    run("", "ulimit -S -n 64\ni=0\n"
            "while [ $i -lt 150 ]; do " PROGRAM "; i=$((i + 1)); done");
    program_assert_status(&program, 0);
    expect(": 150 processes were diagnosed: 0 findings\n");
}
