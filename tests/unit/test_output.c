/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Output without harm to the program: no signal, no wait, no write into a file of somebody else's,
 * and no row for a file that was renamed.
 */
#include "harness/harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

#include "core/output.h"
#include "harness/in_child.h"

#define LINE "a line of sixteen\n"
#define LINE_BYTES (sizeof(LINE) - 1)

static char folder[128];

static const char *path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static int make_folder(void **state)
{
    const char *parent = getenv("TMPDIR");

    alarm(100); /* a hang ends the test */
    snprintf(
        folder, sizeof(folder), "%.64s/rmm-output.XXXXXX",
        parent != NULL ? parent : "/tmp");
    return mkdtemp(folder) != NULL ? 0 : 1;
}

static int remove_folder(void **state)
{
    DIR *opened = opendir(folder);

    for (struct dirent *entry = readdir(opened); entry != NULL;
         entry = readdir(opened)) {
        (void)unlinkat(dirfd(opened), entry->d_name, 0);
    }
    closedir(opened);
    return rmdir(folder);
}

static uint64_t now_ms(void)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    return (uint64_t)at.tv_sec * 1000 + (uint64_t)at.tv_nsec / 1000000;
}

static const char *text_of(const char *path)
{
    static char text[4096];
    FILE *file = fopen(path, "re");
    size_t length;

    assert_non_null(file);
    length = fread(text, 1, sizeof(text) - 1, file);
    text[length] = '\0';
    fclose(file);
    return text;
}

static size_t write_line(rmm_output_t *output)
{
    bool is_fresh;

    return rmm__output_renew(output, &is_fresh) == 0
               ? rmm__output_write(output, LINE, LINE_BYTES)
               : 0;
}

static void open_output(rmm_output_t *output, const char *name)
{
    assert_int_equal(rmm__output_open(output, path_of(name)), 0);
}

/* --- signals and limits --------------------------------------------------------------- */

static int limit_and_write(void)
{
    const struct rlimit limit = {100, 100};
    rmm_output_t output;
    char lines[200 * LINE_BYTES];
    sigset_t pending;

    for (size_t i = 0; i < sizeof(lines); i += LINE_BYTES) {
        memcpy(lines + i, LINE, LINE_BYTES);
    }
    open_output(&output, "limited");
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_int_equal(rmm__output_write(&output, lines, sizeof(lines)), 5 * LINE_BYTES);
    assert_int_equal(errno, EFBIG);
    assert_int_equal(rmm__output_write(&output, lines, sizeof(lines)), 0);
    sigpending(&pending);
    assert_false(sigismember(&pending, SIGXFSZ));
    rmm__output_close(&output);
    return 0;
}

TEST_CASE(a_file_at_its_limit_gets_whole_lines_and_the_program_no_signal)
{
    assert_int_equal(in_child(limit_and_write), 0);
    assert_int_equal(strlen(text_of(path_of("limited"))), 5 * LINE_BYTES);
}

TEST_CASE(a_signal_that_was_pending_stays)
{
    sigset_t ours, before, pending;
    int ends[2];

    sigemptyset(&ours);
    sigaddset(&ours, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &ours, &before);
    pthread_kill(pthread_self(), SIGPIPE);
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    close(ends[0]);
    assert_int_equal(rmm__output_put(ends[1], LINE, LINE_BYTES, NULL), 0);
    assert_int_equal(errno, EPIPE);
    sigpending(&pending);
    assert_true(sigismember(&pending, SIGPIPE));
    assert_int_equal(sigtimedwait(&ours, NULL, &(struct timespec){0}), SIGPIPE);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    close(ends[1]);
}

TEST_CASE(a_full_disk_is_an_error)
{
    rmm_output_t output;

    assert_int_equal(rmm__output_open(&output, "/dev/full"), 0);
    assert_int_equal(rmm__output_write(&output, LINE, LINE_BYTES), 0);
    assert_int_equal(errno, ENOSPC);
    rmm__output_close(&output);
}

static void on_alarm(int signal)
{
}

TEST_CASE(a_handler_that_interrupts_costs_no_line)
{
    const struct itimerval often = {{0, 100}, {0, 100}}, never = {{0, 0}, {0, 0}};
    const struct sigaction caught = {.sa_handler = on_alarm}; /* no SA_RESTART */
    rmm_output_t output;

    sigaction(SIGVTALRM, &caught, NULL);
    setitimer(ITIMER_VIRTUAL, &often, NULL);
    open_output(&output, "interrupted");
    for (int i = 0; i < 20000; i++) {
        if (write_line(&output) != LINE_BYTES) {
            setitimer(ITIMER_VIRTUAL, &never, NULL);
            fail_msg("line %d: %s", i, strerror(errno));
        }
    }
    setitimer(ITIMER_VIRTUAL, &never, NULL);
    rmm__output_close(&output);
}

/* --- readers ------------------------------------------------------------------------- */

TEST_CASE(a_fifo_that_nobody_reads_is_opened_by_a_later_write)
{
    rmm_output_t output;
    char read_text[64] = "";
    int reader;

    assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
    assert_int_equal(rmm__output_open(&output, path_of("fifo")), ENXIO);
    assert_int_equal(write_line(&output), 0);
    reader = open(path_of("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(write_line(&output), LINE_BYTES);
    assert_int_equal(read(reader, read_text, sizeof(read_text) - 1), LINE_BYTES);
    assert_string_equal(read_text, LINE);
    close(reader);
    assert_int_equal(write_line(&output), 0);
    assert_int_equal(errno, EPIPE);
    reader = open(path_of("fifo"), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_int_equal(write_line(&output), LINE_BYTES); /* the next reader */
    close(reader);
    rmm__output_close(&output);
}

/* Writes until it is not read any more; all that is written is whole lines. */
static void fill(int fd, atomic_bool *stalled)
{
    size_t written = 0;

    for (int i = 0; i < 1000000; i++) {
        size_t done = rmm__output_put(fd, LINE, LINE_BYTES, stalled);

        written += done;
        if (done != LINE_BYTES) {
            assert_int_equal(errno, EAGAIN);
            assert_int_equal(written % LINE_BYTES, 0);
            return;
        }
    }
    fail();
}

/* After the first wait there is none until the reader has read. */
static void assert_stops_nobody(int writer, int reader)
{
    atomic_bool stalled = false;
    char page[4096];
    uint64_t began;

    fill(writer, &stalled);
    began = now_ms();
    for (int i = 0; i < 1000; i++) { /* 100 s, if each waited */
        assert_int_equal(rmm__output_put(writer, LINE, LINE_BYTES, &stalled), 0);
    }
    assert_true(now_ms() - began < 50 * RMM_OUTPUT_PATIENCE_MS);
    while (recv(reader, page, sizeof(page), MSG_DONTWAIT) > 0 ||
           (errno == ENOTSOCK && read(reader, page, sizeof(page)) > 0)) {
    }
    assert_int_equal(rmm__output_put(writer, LINE, LINE_BYTES, &stalled), LINE_BYTES);
    assert_false(stalled);
}

TEST_CASE(a_pipe_whose_reader_stops_is_not_waited_for_and_stays_as_it_was)
{
    int ends[2];

    assert_int_equal(
        pipe2(ends, O_CLOEXEC), 0); /* it blocks, as the program's own do */
    fcntl(ends[0], F_SETFL, O_NONBLOCK);
    assert_stops_nobody(ends[1], ends[0]);
    assert_int_equal(fcntl(ends[1], F_GETFL) & O_NONBLOCK, 0);
    close(ends[0]);
    close(ends[1]);
}

TEST_CASE(a_socket_whose_reader_stops_is_not_waited_for)
{
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    assert_stops_nobody(ends[1], ends[0]);
    close(ends[0]);
    assert_int_equal(rmm__output_put(ends[1], LINE, LINE_BYTES, NULL), 0);
    assert_int_equal(errno, EPIPE);
    close(ends[1]);
}

/* A terminal has room for a part of a line, whose rest must not be waited for. */
static void assert_is_not_waited_for(int terminal, size_t length)
{
    atomic_bool stalled = false;
    char line[4096];
    size_t done;

    memset(line, 'a', length - 1);
    line[length - 1] = '\n';
    do {
        done = rmm__output_put(terminal, line, length, &stalled);
    } while (done == length);
    assert_int_equal(errno, EAGAIN);
    assert_true(atomic_load(&stalled));
}

TEST_CASE(a_terminal_that_is_stopped_is_not_waited_for)
{
    static const size_t lengths[] = {1, 2, 7, LINE_BYTES, 64, 300, 4096};

    for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        int master = posix_openpt(O_RDWR | O_NOCTTY | O_NONBLOCK | O_CLOEXEC);
        int terminal;

        assert_true(master >= 0);
        assert_int_equal(grantpt(master), 0);
        assert_int_equal(unlockpt(master), 0);
        terminal = open(ptsname(master), O_WRONLY | O_NOCTTY | O_CLOEXEC);
        assert_true(terminal >= 0);
        assert_is_not_waited_for(terminal, lengths[i]);
        assert_int_equal(fcntl(terminal, F_GETFL) & O_NONBLOCK, 0);
        close(terminal);
        close(master);
    }
}

/* --- whose file it is ----------------------------------------------------------------- */

/* What a program does that becomes a daemon. */
static int close_all(void)
{
    rmm_output_t output;
    int other, kept;

    open_output(&output, "kept");
    assert_int_equal(write_line(&output), LINE_BYTES);
    kept = output.fd;
    for (int fd = 3; fd < 100; fd++) {
        close(fd);
    }
    other = open(path_of("other"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    assert_int_equal(dup2(other, kept), kept); /* the very number */
    assert_int_equal(write_line(&output), LINE_BYTES);
    assert_int_equal(write_line(&output), LINE_BYTES);
    assert_int_equal(text_of(path_of("other"))[0], '\0');
    assert_string_equal(text_of(path_of("kept")), LINE LINE LINE);
    rmm__output_close(&output);
    assert_true(fcntl(kept, F_GETFD) >= 0); /* it is the program's */
    return 0;
}

TEST_CASE(never_writes_to_a_descriptor_that_the_program_has_taken)
{
    assert_int_equal(in_child(close_all), 0);
}

TEST_CASE(a_file_that_is_renamed_or_removed_is_not_written_to)
{
    char old[256];
    rmm_output_t output;

    open_output(&output, "now");
    snprintf(old, sizeof(old), "%s", path_of("now.1"));
    assert_int_equal(write_line(&output), LINE_BYTES);
    assert_int_equal(rename(path_of("now"), old), 0);
    assert_int_equal(write_line(&output), LINE_BYTES);
    assert_int_equal(write_line(&output), LINE_BYTES);
    assert_string_equal(text_of(old), LINE);
    assert_string_equal(text_of(path_of("now")), LINE LINE);
    assert_int_equal(unlink(path_of("now")), 0);
    assert_int_equal(write_line(&output), LINE_BYTES);
    assert_string_equal(text_of(path_of("now")), LINE);
    assert_int_equal(truncate(path_of("now"), 0), 0);
    assert_int_equal(write_line(&output), LINE_BYTES);
    assert_string_equal(text_of(path_of("now")), LINE);
    rmm__output_close(&output);
}

static int walk_away(void)
{
    rmm_output_t output;

    assert_int_equal(chdir(folder), 0);
    assert_int_equal(rmm__output_open(&output, "50%p %d"), 0);
    assert_int_equal(chdir("/"), 0);
    assert_int_equal(unlink(path_of("50%p %d")), 0);
    assert_int_equal(write_line(&output), LINE_BYTES);
    assert_string_equal(text_of(path_of("50%p %d")), LINE);
    assert_int_not_equal(access("/50%p %d", F_OK), 0);
    rmm__output_close(&output);
    return 0;
}

TEST_CASE(a_relative_name_stays_where_it_was)
{
    assert_int_equal(in_child(walk_away), 0);
}

static int lose_the_folder(void)
{
    char deep[256];
    rmm_output_t output;

    snprintf(deep, sizeof(deep), "%s", path_of("deep"));
    assert_int_equal(mkdir(deep, 0700), 0);
    assert_int_equal(chdir(deep), 0);
    assert_int_equal(rmm__output_open(&output, "log"), 0);
    assert_int_equal(unlink("log"), 0);
    assert_int_equal(rmdir(deep), 0);
    assert_int_equal(write_line(&output), 0);
    assert_int_equal(mkdir(deep, 0700), 0);
    assert_int_equal(write_line(&output), LINE_BYTES);
    rmm__output_close(&output);
    assert_int_equal(unlink(path_of("deep/log")), 0);
    assert_int_equal(rmdir(deep), 0);
    return 0;
}

TEST_CASE(a_folder_that_was_removed_is_an_error_while_it_is_away)
{
    assert_int_equal(in_child(lose_the_folder), 0);
}

/* Components of one path that is too long for one call. */
static int go_deep(void)
{
    char name[201];
    rmm_output_t output;
    int depth = 0;

    memset(name, 'd', 200);
    name[200] = '\0';
    assert_int_equal(chdir(folder), 0);
    for (; depth < 25; depth++) {
        assert_int_equal(mkdir(name, 0700), 0);
        assert_int_equal(chdir(name), 0);
    }
    assert_int_equal(rmm__output_open(&output, "log"), 0);
    assert_int_equal(write_line(&output), LINE_BYTES);
    rmm__output_close(&output);
    assert_string_equal(text_of("log"), LINE);
    assert_int_equal(unlink("log"), 0);
    for (; depth > 0; depth--) {
        assert_int_equal(chdir(".."), 0);
        assert_int_equal(rmdir(name), 0);
    }
    return 0;
}

TEST_CASE(a_folder_with_a_path_beyond_path_max_can_have_it)
{
    assert_int_equal(in_child(go_deep), 0);
}

/* --- cancellation --------------------------------------------------------------------- */

static size_t write_alone(void)
{
    rmm_output_t output;
    size_t written = 0;
    bool is_fresh;

    if (rmm__output_open(&output, path_of("cancelled")) == 0 &&
        rmm__output_renew(&output, &is_fresh) == 0) {
        written = rmm__output_write(&output, LINE, LINE_BYTES);
    }
    rmm__output_close(&output);
    return written;
}

static void *write_while_cancelled(void *arg)
{
    pthread_cancel(pthread_self());
    *(size_t *)arg = write_alone();
    pthread_testcancel();
    return arg;
}

TEST_CASE(is_no_cancellation_point)
{
    pthread_t thread;
    size_t written = 0;
    void *result;

    assert_int_equal(pthread_create(&thread, NULL, write_while_cancelled, &written), 0);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(written, LINE_BYTES);
}

int main(int argc, char **argv)
{
    return harness_run_cases(make_folder, remove_folder);
}
