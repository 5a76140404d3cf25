/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Allocation logs with several writers lose no row: devices, processes, forked children and
 * runs one after the other that write to one file. And what a file's name may tell.
 */
#include "sim/adaptors/logging_harness.h"

#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <sys/stat.h>

#include <rmm/host_resource.h>

#include "harness/in_child.h"

enum { WRITERS = 4, WRITER_PAIRS = 3000 }; /* more than buffers hold */

/* Lines of a file, all of which are the header or end as the row of a block of 100 bytes. An
 * empty one does not count: see begin_locked() in log_file.c. */
static uint64_t count_lines(const char *path, uint64_t *headers)
{
    FILE *file = fopen(path, "re");
    char line[256];
    uint64_t lines = 0;

    assert_non_null(file);
    *headers = 0;
    while (fgets(line, sizeof(line), file) != NULL) {
        if (strcmp(line, "\n") == 0) {
            continue;
        }
        if (strcmp(line, HEADER "\n") == 0) {
            ++*headers;
        } else if (strstr(line, ",100,0\n") == NULL) {
            fail_msg("torn: %s", line);
        }
        lines++;
    }
    fclose(file);
    return lines;
}

static void assert_lines(const char *path, uint64_t expected)
{
    uint64_t headers;

    assert_int_equal(count_lines(path, &headers), expected);
    assert_int_equal(headers, 1);
}

static void log_pairs(rmm_resource_t *mr, int pairs)
{
    for (int i = 0; i < pairs; i++) {
        give(mr, take(mr, 100, NULL), 100, NULL);
    }
}

TEST_CASE(devices_append_to_one_file)
{
    rmm_resource_t *made[WRITERS];

    setenv("RMM_LOG_FILE", path_of("shared.csv"), 1);
    for (int i = 0; i < WRITERS; i++) { /* two of each device */
        rmm_resource_t *cuda;

        assert_ok(rmm_device_set(i % 2));
        cuda = make_cuda();
        assert_ok(rmm_logging_adaptor_create(cuda, NULL, &made[i]));
        rmm_resource_release(cuda);
        log_pairs(made[i], WRITER_PAIRS);
    }
    unsetenv("RMM_LOG_FILE");
    for (int i = 0; i < WRITERS; i++) {
        assert_ok(rmm_device_set(i % 2));
        log_pairs(made[i], WRITER_PAIRS);
        rmm_resource_release(made[i]);
    }
    assert_ok(rmm_device_set(0));
    assert_lines(path_of("shared.csv"), 1 + 2 * WRITERS * 2 * WRITER_PAIRS);
}

TEST_CASE(a_pipe_that_nobody_reads_loses_rows_and_raises_no_signal)
{
    sigset_t pending;
    rmm_resource_t *mr;
    int reader;

    assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
    reader = open(path_of("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    mr = log_to(path_of("fifo"));
    close(reader);
    log_pairs(mr, 1);
    assert_int_equal(rmm_logging_flush(mr), RMM_ERR_IO);
    assert_int_equal(sigpending(&pending), 0);
    assert_false(sigismember(&pending, SIGPIPE));
    log_pairs(mr, 1);
    end_adaptor(mr);
}

/* In a process of its own. */
static int run_writer(void)
{
    rmm_resource_t *mr = log_to(path_of("processes.csv"));

    log_pairs(mr, WRITER_PAIRS);
    exit(0); /* with the adaptor */
}

static pid_t begin_writer(void)
{
    pid_t pid = fork();

    if (pid == 0) {
        execl("/proc/self/exe", "test_log_file", "--write", folder, (char *)NULL);
        _exit(99);
    }
    return pid;
}

TEST_CASE(processes_append_to_one_file)
{
    uint64_t rows = 0;

    fflush(NULL);
    for (int round = 0; round < 3; round++) { /* also to the file of older runs */
        pid_t writers[WRITERS];

        for (int i = 0; i < WRITERS; i++) {
            writers[i] = begin_writer();
        }
        for (int i = 0; i < WRITERS; i++) {
            assert_int_equal(exit_status_of(writers[i]), 0);
        }
        rows += (uint64_t)2 * WRITERS * WRITER_PAIRS;
        assert_lines(path_of("processes.csv"), 1 + rows);
    }
}

TEST_CASE(forked_children_append_to_one_file)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    rmm_resource_t *host, *mr;

    options.path = path_of("forked.csv");
    assert_ok(rmm_host_resource_create(&host));
    mr = make_logging(host, &options);
    log_pairs(mr, 5); /* they are gathered, and the parent's */
    fflush(NULL);
    for (int i = 0; i < WRITERS; i++) {
        pid_t pid = fork_child();

        if (pid == 0) {
            if (rmm_host_resource_create(&host) == RMM_OK) {
                mr = make_logging(host, &options);
                log_pairs(mr, 5);
            }
            exit(0);
        }
        assert_int_equal(exit_status_of(pid), 0);
    }
    rmm_resource_release(mr);
    assert_lines(path_of("forked.csv"), 1 + 2 * 5 * (WRITERS + 1));
}

TEST_CASE(the_name_may_tell_device_and_process)
{
    char expected[128];
    rmm_resource_t *mr;

    snprintf(expected, sizeof(expected), "%s/%d.dev1.100%%.csv", folder, getpid());
    assert_ok(rmm_device_set(1));
    mr = log_to(path_of("%p.dev%d.100%%.csv"));
    assert_ok(rmm_device_set(0));
    assert_string_equal(rmm_logging_path(mr), expected);
    log_pairs(mr, 1);
    rmm_resource_release(mr);
    assert_lines(expected, 3);
    assert_int_equal(unlink(expected), 0);
}

TEST_CASE(the_name_calls_host_memory_host)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    rmm_resource_t *host, *mr;

    options.path = path_of("%d.csv");
    assert_ok(rmm_host_resource_create(&host));
    mr = make_logging(host, &options);
    assert_string_equal(rmm_logging_path(mr), path_of("host.csv"));
    rmm_resource_release(mr);
    assert_int_equal(unlink(path_of("host.csv")), 0);
}

static void assert_name_is_refused(const char *name)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *mr = NULL;

    options.path = path_of(name);
    assert_int_equal(
        rmm_logging_adaptor_create(cuda, &options, &mr), RMM_ERR_INVALID_ARGUMENT);
    assert_null(mr);
    assert_non_null(strstr(rmm_last_error_message(), name));
    rmm_resource_release(cuda);
}

TEST_CASE(a_name_with_another_letter_is_refused)
{
    assert_name_is_refused("a.%P.csv");
    assert_name_is_refused("a.csv%");
}

static void write_text(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

TEST_CASE(a_line_that_a_killed_process_left_half_is_ended)
{
    char text[4096];
    rmm_resource_t *mr;

    write_text(path_of("half.csv"), HEADER "\n1,10:00:00.000000,all");
    mr = log_to(path_of("half.csv"));
    log_pairs(mr, 1);
    end_adaptor(mr);
    read_file(path_of("half.csv"), text, sizeof(text));
    assert_non_null(strstr(text, "\n1,10:00:00.000000,all\n"));
    assert_non_null(strstr(text, ",free,"));
}

TEST_CASE(a_file_that_is_not_a_log_stays_unchanged)
{
    static const char *const contents[] = {
        "a letter\n", HEADER, HEADER ",Device,DurationNs,Caller\n"};

    for (size_t i = 0; i < sizeof(contents) / sizeof(contents[0]); i++) {
        rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
        rmm_resource_t *cuda = make_cuda();
        rmm_resource_t *mr = NULL;
        char text[4096];

        write_text(path_of("letter"), contents[i]);
        options.path = path_of("letter");
        assert_int_equal(rmm_logging_adaptor_create(cuda, &options, &mr), RMM_ERR_IO);
        assert_null(mr);
        assert_non_null(strstr(rmm_last_error_message(), "first line"));
        read_file(path_of("letter"), text, sizeof(text));
        assert_string_equal(text, contents[i]);
        rmm_resource_release(cuda);
    }
}

int main(int argc, char **argv)
{
    if (argc == 3) {
        snprintf(folder, sizeof(folder), "%s", argv[2]);
        return run_writer();
    }
    return harness_run_cases(make_folder, remove_folder);
}
