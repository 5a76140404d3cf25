/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of an allocation log in a program that is not written for it: how the program ends,
 * what becomes of its descriptors and its working directory, who rotates the file, and who reads
 * the pipe.
 */
#include "sim/adaptors/logging_harness.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>

#include <rmm/resource_spec.h>

#include "harness/in_child.h"

static uint64_t count_text(const char *path, const char *text)
{
    static char content[1 << 20];
    uint64_t count = 0;

    (void)read_file(path, content, sizeof(content));
    for (const char *at = content; (at = strstr(at, text)) != NULL; at++) {
        count++;
    }
    return count;
}

static uint64_t rows_of(const char *path)
{
    return count_text(path, ",100,0\n");
}

static void assert_log(const char *name, uint64_t rows)
{
    assert_int_equal(count_text(path_of(name), HEADER), 1);
    assert_int_equal(rows_of(path_of(name)), rows);
    assert_int_equal(count_text(path_of(name), "\n"), 1 + rows);
}

static void pair(rmm_resource_t *mr)
{
    give(mr, take(mr, 100, NULL), 100, NULL);
}

static uint64_t now_ms(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000 + (uint64_t)at.tv_nsec / 1000000;
}

/* --- ends ---------------------------------------------------------------------------- */

static rmm_resource_t *ending;
static void *block;

static void free_block(void)
{
    if (block != NULL) {
        rmm_resource_dealloc(ending, block, 100, 0, NULL);
        pair(ending);
    }
}

/* As the destructor of a static object, which was made before the log. */
__attribute__((destructor)) static void pair_at_the_end(void)
{
    if (block != NULL) {
        pair(ending);
    }
}

static void *end_by_itself(void *arg)
{
    pthread_join(*(pthread_t *)arg, NULL);
    return NULL; /* the last thread: exit(0) */
}

/* In a process of its own. Handlers of the program's surround the library's. */
static int run_ending(const char *how)
{
    static pthread_t first, last;

    atexit(free_block);
    at_quick_exit(free_block);
    ending = log_to(path_of(how));
    block = take(ending, 100, NULL);
    if (strcmp(how, "quick_exit") == 0) {
        quick_exit(0);
    } else if (strcmp(how, "pthread_exit") == 0) {
        first = pthread_self();
        pthread_create(&last, NULL, end_by_itself, &first);
        pthread_exit(NULL);
    }
    exit(0);
}

static int run(const char *mode)
{
    pid_t pid = fork_child();

    if (pid == 0) {
        alarm(100);
        execl("/proc/self/exe", "test_log_life", mode, folder, (char *)NULL);
        _exit(99);
    }
    return exit_status_of(pid);
}

TEST_CASE(rows_behind_the_exit_handler_are_written)
{
    assert_int_equal(run("exit"), 0);
    assert_log("exit", 2 + 2 + 2);
#ifndef __SANITIZE_THREAD__ /* it knows no end of the main thread */
    assert_int_equal(run("pthread_exit"), 0);
    assert_log("pthread_exit", 2 + 2 + 2);
#endif
}

TEST_CASE(quick_exit_writes_and_so_do_rows_behind_it)
{
    assert_int_equal(run("quick_exit"), 0);
    assert_log("quick_exit", 2 + 2); /* no destructors */
}

TEST_CASE(rows_older_than_the_interval_are_written)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    rmm_resource_t *mr;
    uint64_t began;

    options.path = path_of("interval");
    options.flush_interval_ms = 20;
    mr = make_logging(make_cuda(), &options);
    began = now_ms();
    pair(mr);
    while (now_ms() - began < 40) {
    }
    assert_true(rows_of(path_of("interval")) <= 2);
    pair(mr);
    assert_true(rows_of(path_of("interval")) >= 3); /* with the row that was late */
    end_adaptor(mr);
    assert_log("interval", 4);
}

TEST_CASE(without_an_interval_rows_wait_for_the_buffer)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    rmm_resource_t *mr;

    options.path = path_of("forever");
    options.flush_interval_ms = RMM_LOGGING_NO_INTERVAL;
    mr = make_logging(make_cuda(), &options);
    pair(mr);
    usleep(30000);
    pair(mr);
    assert_int_equal(rows_of(path_of("forever")), 0);
    end_adaptor(mr);
    assert_log("forever", 4);
}

TEST_CASE(a_spec_says_when_rows_are_written)
{
    rmm_resource_t *mr;

    setenv("RMM_LOG_FILE", path_of("spec"), 1);
    assert_ok(rmm_resource_create_from_spec("logging:auto_flush+pool", &mr));
    pair(mr);
    assert_log("spec", 2);
    end_adaptor(mr);
    assert_ok(rmm_resource_create_from_spec("logging:0ms+pool", &mr));
    pair(mr);
    assert_log("spec", 4);
    end_adaptor(mr);
    assert_ok(rmm_resource_create_from_spec("logging:20ms+pool", &mr));
    pair(mr);
    usleep(25000);
    pair(mr);
    assert_true(rows_of(path_of("spec")) >= 7);
    end_adaptor(mr);
    assert_log("spec", 8);
    unsetenv("RMM_LOG_FILE");
}

/* --- rotation ------------------------------------------------------------------------ */

static rmm_resource_t *log_at_once(const char *name)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;

    options.path = path_of(name);
    options.auto_flush = true;
    return make_logging(make_cuda(), &options);
}

static void rename_log(const char *from, const char *to)
{
    char old[128];

    snprintf(old, sizeof(old), "%s", path_of(from));
    assert_int_equal(rename(old, path_of(to)), 0);
}

TEST_CASE(a_renamed_log_goes_on_in_a_new_file)
{
    rmm_resource_t *mr = log_at_once("rotated");
    rmm_resource_t *other = log_at_once("rotated");

    pair(mr);
    pair(other);
    rename_log("rotated", "rotated.1");
    pair(mr);
    pair(other);
    assert_log("rotated.1", 4);
    assert_log("rotated", 4);
    rename_log("rotated", "rotated.2");
    close(open(path_of("rotated"), O_CREAT | O_WRONLY | O_CLOEXEC, 0640)); /* create */
    pair(mr);
    pair(other);
    assert_log("rotated.2", 4);
    assert_log("rotated", 4);
    assert_int_equal(unlink(path_of("rotated")), 0);
    pair(mr);
    end_adaptor(mr);
    end_adaptor(other);
    assert_log("rotated", 2);
}

TEST_CASE(a_truncated_log_gets_its_header_again)
{
    rmm_resource_t *mr = log_at_once("truncated");

    pair(mr);
    assert_int_equal(truncate(path_of("truncated"), 0), 0); /* copytruncate */
    pair(mr);
    end_adaptor(mr);
    assert_log("truncated", 2);
}

TEST_CASE(a_new_file_that_is_no_log_gets_no_row)
{
    rmm_resource_t *mr = log_at_once("taken");
    char text[256];
    int fd;

    pair(mr);
    assert_int_equal(unlink(path_of("taken")), 0);
    fd = open(path_of("taken"), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(write(fd, "a letter\n", 9), 9);
    close(fd);
    pair(mr);
    assert_int_equal(rmm_logging_flush(mr), RMM_ERR_IO);
    read_file(path_of("taken"), text, sizeof(text));
    assert_string_equal(text, "a letter\n");
    assert_int_equal(unlink(path_of("taken")), 0);
    pair(mr);
    assert_log("taken", 2); /* again */
    end_adaptor(mr);
}

/* --- where it is ---------------------------------------------------------------------- */

static int run_elsewhere(void)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;
    char inside[256];
    rmm_resource_t *mr;

    snprintf(inside, sizeof(inside), "%s/100%% %%d %%p", folder);
    if (mkdir(inside, 0700) != 0 || chdir(inside) != 0) {
        return 1;
    }
    options.path = "dev%d.csv";
    mr = make_logging(make_cuda(), &options);
    pair(mr);
    if (strcmp(rmm_logging_path(mr), "dev0.csv") != 0 || chdir("/") != 0) {
        return 2;
    }
    assert_int_equal(rmm_logging_flush(mr), RMM_OK);
    snprintf(inside, sizeof(inside), "%s/100%% %%d %%p/dev0.csv", folder);
    if (unlink(inside) != 0) {
        return 3;
    }
    pair(mr);
    assert_int_equal(rmm_logging_flush(mr), RMM_OK);
    if (rows_of(inside) != 2 || access("/dev0.csv", F_OK) == 0) {
        return 4;
    }
    end_adaptor(mr);
    unlink(inside);
    *strrchr(inside, '/') = '\0';
    return rmdir(inside) != 0;
}

TEST_CASE(a_name_begins_where_the_program_was_and_only_it_has_placeholders)
{
    assert_int_equal(run("elsewhere"), 0);
}

/* Becomes a daemon: closes all descriptors, and opens its own. */
static int run_daemon(void)
{
    rmm_resource_t *mr = log_at_once("daemon");

    pair(mr);
    for (int fd = 0; fd < 200; fd++) {
        close(fd);
    }
    for (int fd = 0; fd < 200; fd++) {
        if (open(path_of("other"), O_WRONLY | O_CREAT | O_APPEND, 0600) != fd) {
            return 1;
        }
    }
    pair(mr);
    rmm_resource_release(mr);
    for (int fd = 0; fd < 200; fd++) {
        if (fcntl(fd, F_GETFD) < 0) { /* closed, though it is the program's */
            return 2;
        }
    }
    return 0;
}

TEST_CASE(a_daemon_keeps_its_log_and_its_files)
{
    struct stat other;

    assert_int_equal(run("daemon"), 0);
    assert_int_equal(stat(path_of("other"), &other), 0);
    assert_int_equal(other.st_size, 0);
    assert_log("daemon", 4);
}

/* --- what fails ------------------------------------------------------------------------ */

static int run_limited(void)
{
    const struct rlimit limit = {4000, RLIM_INFINITY},
                        none = {RLIM_INFINITY, RLIM_INFINITY};
    rmm_resource_t *mr = log_to(path_of("limited"));
    uint64_t rows;

    setrlimit(RLIMIT_FSIZE, &limit);
    for (int i = 0; i < 100; i++) {
        pair(mr);
    }
    if (rmm_logging_flush(mr) != RMM_ERR_IO) {
        return 1;
    }
    rows = rows_of(path_of("limited"));
    setrlimit(RLIMIT_FSIZE, &none);
    pair(mr); /* there is room again */
    (void)rmm_logging_flush(mr);
    end_adaptor(mr);
    return rows < 50 || rows_of(path_of("limited")) != rows + 2;
}

TEST_CASE(a_limit_cuts_no_row_and_costs_none_when_it_has_gone)
{
    assert_int_equal(run("limited"), 0);
}

TEST_CASE(a_pipe_without_a_reader_is_waited_for_by_nobody)
{
    char text[4096];
    rmm_resource_t *mr;
    int reader;

    assert_int_equal(mkfifo(path_of("later"), 0600), 0);
    mr = log_at_once("later");
    pair(mr);
    assert_int_equal(rmm_logging_flush(mr), RMM_ERR_IO);
    reader = open(path_of("later"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    pair(mr);
    memset(text, 0, sizeof(text));
    assert_true(read(reader, text, sizeof(text) - 1) > 0);
    assert_int_equal(strncmp(text, HEADER "\n", strlen(HEADER) + 1), 0);
    assert_non_null(strstr(text, ",free,"));
    close(reader);
    end_adaptor(mr);
}

/* A mebibyte is in the pipe at most, and every row is there or counted. */
TEST_CASE(a_reader_that_stops_costs_rows_and_no_time)
{
    enum { PAIRS = 50000 };
    static char page[1 << 16];
    uint64_t began = now_ms(), rows = 0, lost = 0;
    rmm_resource_t *mr;
    ssize_t got;
    int reader;

    assert_int_equal(mkfifo(path_of("stopped"), 0600), 0);
    reader = open(path_of("stopped"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    mr = log_to(path_of("stopped"));
    for (int i = 0; i < PAIRS; i++) {
        pair(mr);
    }
    assert_int_equal(rmm_logging_flush(mr), RMM_ERR_IO);
    assert_int_equal(
        sscanf(strstr(rmm_last_error_message(), ": "), ": %" SCNu64, &lost), 1);
    assert_true(now_ms() - began < 20000);
    while ((got = read(reader, page, sizeof(page))) > 0) {
        for (ssize_t i = 0; i < got; i++) {
            rows += page[i] == '\n';
        }
    }
    assert_int_equal(rows - 1 + lost, 2 * PAIRS);
    close(reader);
    end_adaptor(mr);
}

int main(int argc, char **argv)
{
    if (argc == 3 && argv[2][0] == '/') {
        snprintf(folder, sizeof(folder), "%s", argv[2]);
        return strcmp(argv[1], "elsewhere") == 0 ? run_elsewhere()
               : strcmp(argv[1], "daemon") == 0  ? run_daemon()
               : strcmp(argv[1], "limited") == 0 ? run_limited()
                                                 : run_ending(argv[1]);
    }
    alarm(300); /* a hang ends the test */
    return harness_run_cases(make_folder, remove_folder);
}
