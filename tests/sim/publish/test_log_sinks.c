/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug log neither ends, stops nor slows the program, whatever its file is or becomes, and
 * says what it dropped. core/output.h; tests/unit/test_output.c has the parts.
 */
#include "sim/publish/log_case.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <rmm/log.h>

#define MANY 2000

static void log_many(void)
{
    for (int i = 0; i < MANY; i++) {
        rmm__log_error("message %d", i);
    }
}

/* What the ring of this process has, the sink need not have. The child ends by itself. */
static void grows_to_its_limit(child_t *self, void *argument)
{
    const struct rlimit limit = {4096, RLIM_INFINITY};
    const struct rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
    const char *path;
    char log[256];

    snprintf(log, sizeof(log), "%s", path_of("limited"));
    setenv("RMM_DEBUG_LOG_FILE", log, 1);
    path = divert_stderr();
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    log_many();
    CHECK(
        strstr(content_of(path), "limited cannot be written: File too large") != NULL);
    CHECK(lines_of(path) == 1); /* said once */
    CHECK(content_of(log)[strlen(content_of(log)) - 1] == '\n');
    if (setrlimit(RLIMIT_FSIZE, &none) == 0) { /* it can grow again */
        size_t before = lines_of(log);

        rmm__log_error("the last");
        CHECK(lines_of(log) == before + 2);
        CHECK(strstr(content_of(log), "messages before this were dropped\n") != NULL);
    }
}

TEST_CASE(a_limit_of_file_sizes_costs_messages_only)
{
    child_run(grows_to_its_limit, NULL);
}

static void loses_its_reader(child_t *self, void *argument)
{
    const char *path = divert_stderr();
    sigset_t pending;
    char fifo[256];
    int reader;

    snprintf(fifo, sizeof(fifo), "%s", path_of("fifo"));
    CHECK(mkfifo(fifo, 0600) == 0);
    reader = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    setenv("RMM_DEBUG_LOG_FILE", fifo, 1);
    rmm__log_error("read");
    close(reader);
    log_many();
    CHECK(sigpending(&pending) == 0 && !sigismember(&pending, SIGPIPE));
    CHECK(lines_of(path) == 1);
    CHECK(strstr(content_of(path), "fifo cannot be written: Broken pipe") != NULL);
}

TEST_CASE(a_pipe_whose_reader_ends_costs_messages_only)
{
    child_run(loses_its_reader, NULL);
}

static void has_no_reader(child_t *self, void *argument)
{
    const char *path = divert_stderr();

    CHECK(mkfifo(path_of("unread"), 0600) == 0);
    setenv("RMM_DEBUG_LOG_FILE", path_of("unread"), 1);
    rmm__log_error("to stderr");
    CHECK(strstr(content_of(path), "unread cannot be opened") != NULL);
    CHECK(strstr(content_of(path), "to stderr\n") != NULL);
    CHECK(rmm_log_to_file(path_of("unread")) == RMM_ERR_IO);
}

TEST_CASE(a_pipe_that_nobody_reads_is_not_waited_for)
{
    child_run(has_no_reader, NULL);
}

/* Nobody reads what stderr is, as of a program that a stopped shell has started. */
static void fills_stderr(child_t *self, void *argument)
{
    char page[65536];
    int ends[2];
    ssize_t got;

    CHECK(pipe2(ends, O_CLOEXEC) == 0 && dup2(ends[1], STDERR_FILENO) == STDERR_FILENO);
    log_many();
    CHECK((fcntl(STDERR_FILENO, F_GETFL) & O_NONBLOCK) == 0); /* it is the program's */
    CHECK(read(ends[0], page, sizeof(page)) > 0);
    rmm__log_error("the last");
    got = read(ends[0], page, sizeof(page) - 1);
    CHECK(got > 0);
    page[got] = '\0';
    CHECK(strstr(page, "messages before this were dropped\n") != NULL);
    CHECK(strstr(page, "the last\n") != NULL);
}

TEST_CASE(a_stderr_that_nobody_reads_is_not_waited_for)
{
    child_run(fills_stderr, NULL);
}

static void has_no_stderr(child_t *self, void *argument)
{
    close(STDERR_FILENO);
    log_many();
    CHECK(rmm_log_to_file("/dev/full") == RMM_OK);
    log_many();
}

TEST_CASE(no_stderr_and_a_full_disk_cost_messages_only)
{
    child_run(has_no_stderr, NULL);
}

/* A program without standard error, whose first file gets its number. */
static void starts_without_stderr(child_t *self, void *argument)
{
    if (argument == NULL) {
        close(STDERR_FILENO);
        execl(
            "/proc/self/exe", "test_log_sinks", "--without-stderr", path_of("data"),
            (char *)NULL);
    }
    _exit(1);
}

static int run_without_stderr(const char *path)
{
    int data = open(path, O_WRONLY | O_CREAT, 0600);

    if (data != STDERR_FILENO) {
        return 2;
    }
    log_many();
    return lseek(data, 0, SEEK_END) != 0;
}

TEST_CASE(never_writes_to_a_file_that_has_the_number_of_stderr)
{
    child_t child;

    child_start(&child, starts_without_stderr, NULL);
    assert_int_equal(child_wait(&child), 0);
}

static void has_stderr_of_another_kind(child_t *self, void *argument)
{
    int data = open(path_of("cloexec"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CHECK(dup3(data, STDERR_FILENO, O_CLOEXEC) == STDERR_FILENO);
    log_many();
    CHECK(lseek(data, 0, SEEK_END) == 0);
}

TEST_CASE(what_is_closed_on_exec_is_no_stderr)
{
    child_run(has_stderr_of_another_kind, NULL);
}

/* As logrotate does by default, with `create`, and with `copytruncate`. */
static void is_rotated(child_t *self, void *argument)
{
    char log[256], old[256];

    snprintf(log, sizeof(log), "%s", path_of("log"));
    snprintf(old, sizeof(old), "%s", path_of("log.1"));
    setenv("RMM_DEBUG_LOG_FILE", log, 1);
    rmm__log_error("one");
    CHECK(rename(log, old) == 0);
    rmm__log_error("two");
    CHECK(lines_of(old) == 1 && lines_of(log) == 1);
    CHECK(rename(log, old) == 0);
    close(open(log, O_WRONLY | O_CREAT | O_CLOEXEC, 0640));
    rmm__log_error("three");
    CHECK(lines_of(log) == 1 && strstr(content_of(log), "three") != NULL);
    CHECK(truncate(log, 0) == 0);
    rmm__log_error("four");
    CHECK(lines_of(log) == 1 && strstr(content_of(log), "four") != NULL);
    CHECK(content_of(log)[0] == '['); /* no hole */
}

TEST_CASE(a_rotated_log_goes_on_in_the_new_file)
{
    child_run(is_rotated, NULL);
}

/* What a program does that becomes a daemon. */
static void loses_all_descriptors(child_t *self, void *argument)
{
    char log[256], other[256];

    snprintf(log, sizeof(log), "%s", path_of("daemon"));
    snprintf(other, sizeof(other), "%s", path_of("other"));
    CHECK(rmm_log_to_file(log) == RMM_OK);
    rmm__log_error("one");
    for (int fd = 3; fd < 200; fd++) {
        close(fd);
    }
    for (int fd = 3; fd < 200; fd++) { /* whichever it was */
        CHECK(open(other, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) == fd);
    }
    rmm__log_error("two");
    CHECK(lines_of(other) == 0);
    CHECK(lines_of(log) == 2);
}

TEST_CASE(never_writes_to_a_file_of_the_program)
{
    child_run(loses_all_descriptors, NULL);
}

static void on_message(rmm_log_level_t level, const char *message, void *arg)
{
    pthread_testcancel();
    ++*(int *)arg;
}

static void *log_while_cancelled(void *argument)
{
    pthread_cancel(pthread_self());
    log_one_of_each();
    (void)!rmm_log_to_file(path_of("log"));
    log_one_of_each();
    (void)!rmm_log_to_callback(on_message, argument);
    log_one_of_each();
    ++*(int *)argument;
    pthread_testcancel();
    return argument;
}

static void logs_while_cancelled(child_t *self, void *argument)
{
    pthread_t thread;
    void *result;
    int calls = 0;

    (void)divert_stderr();
    CHECK(pthread_create(&thread, NULL, log_while_cancelled, &calls) == 0);
    CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
    CHECK(calls == 4 + 1);
    rmm__log_error("another thread's");
    CHECK(calls == 4 + 2);
}

TEST_CASE(a_message_is_no_cancellation_point)
{
    child_run(logs_while_cancelled, NULL);
}

int main(int argc, char **argv)
{
    if (argc == 3 && strcmp(argv[1], "--without-stderr") == 0) {
        return run_without_stderr(argv[2]);
    }
    return harness_run_cases(log_setup, runtime_teardown);
}
