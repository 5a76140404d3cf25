/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Signals that rmm-run gets while the program runs, and those that a terminal sends to both.
 */
#include "harness/program.h"
#include "harness/runtime.h"

#include <pty.h>
#include <sys/resource.h>

static runtime_t runtime;
static program_t program;

static int set_up(void **state)
{
    runtime_open(&runtime);
    return 0;
}

static int tear_down(void **state)
{
    runtime_close(&runtime);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

static void wait_for_output(void)
{
    for (int i = 0; i < 1000 && program_out_so_far(&program)[0] == '\0'; i++) {
        usleep(10000);
    }
    assert_string_not_equal(program_out_so_far(&program), "");
}

CASE(passes_a_signal_on_and_ends_by_it)
{
    program_start(&program, RUN " --summary -- " SLEEPER);
    wait_for_output();
    assert_int_equal(kill(program.pid, SIGTERM), 0);
    program_finish(&program);
    program_assert_status(&program, -SIGTERM);
    assert_int_equal(kill((pid_t)atoi(program.out), 0), -1); /* it prints its pid */
}

CASE(passes_an_interrupt_on_that_it_alone_was_sent)
{
    const int numbers[] = {SIGINT, SIGQUIT};

    for (size_t i = 0; i < 2; i++) {
        program_start(&program, RUN " --summary -- " SLEEPER);
        wait_for_output();
        assert_int_equal(kill(program.pid, numbers[i]), 0);
        program_finish(&program);
        program_assert_status(&program, -numbers[i]);
    }
}

/* Reads until `text` was shown, or the end. */
static void read_until(int terminal, char shown[256], const char *text)
{
    size_t length = strlen(shown);
    ssize_t got = 1;

    while (got > 0 && length < 255 && strstr(shown, text) == NULL) {
        got = read(terminal, shown + length, 255 - length);
        length += got > 0 ? (size_t)got : 0;
        shown[length] = '\0';
    }
}

/* Prints where the first interrupt came from (SI_KERNEL is 128), and whether there was another. */
#define COUNTS_INTERRUPTS                                                              \
    "import signal\n"                                                                  \
    "signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])\n"                      \
    "print('ready', flush=True)\n"                                                     \
    "print('from', signal.sigwaitinfo([signal.SIGINT]).si_code, flush=True)\n"         \
    "print('another', signal.sigtimedwait([signal.SIGINT], 0.5), 'end')\n"

/* It sends them to both: the program has one, and not that of rmm-run in addition. rmm-run stands
 * still until the program took its own: two that wait at once would be one. */
CASE(leaves_the_terminals_signals_to_the_program)
{
    char shown[256] = "";
    int terminal = -1, status = -1;
    pid_t pid = forkpty(&terminal, NULL, NULL, NULL);

    if (pid == 0) {
        execl(
            RUN, RUN, "--summary", "--", "python3", "-c", COUNTS_INTERRUPTS,
            (char *)NULL);
        _exit(99);
    }
    assert_true(pid > 0);
    read_until(terminal, shown, "ready");
    assert_int_equal(kill(pid, SIGSTOP), 0);
    assert_int_equal(write(terminal, "\003", 1), 1);
    read_until(terminal, shown, "from 128");
    assert_int_equal(kill(pid, SIGCONT), 0);
    read_until(terminal, shown, "end");
    close(terminal);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_non_null(strstr(shown, "another None end"));
}

/* What a program prints that shows how it found SIGCHLD. */
/* env ignores the signal, as some shells and servers do: ignored here, it would take the status of
 * a program that ends at once. */
#define WITH_CHILDREN_IGNORED "/usr/bin/env --ignore-signal=CHLD "

static void read_ignored_signals(const char *command, char line[64])
{
    const char *found;

    program_run(&program, command);
    found = strstr(program.out, "SigIgn:");
    assert_non_null(found);
    snprintf(line, 64, "%.*s", (int)strcspn(found, "\n"), found);
}

CASE(the_program_ignores_the_signals_that_its_caller_ignores)
{
    char without[64], with[64];

    read_ignored_signals(WITH_CHILDREN_IGNORED "/bin/cat /proc/self/status", without);
    read_ignored_signals(
        WITH_CHILDREN_IGNORED RUN " --summary -- /bin/cat /proc/self/status", with);
    assert_string_equal(with, without);
}

CASE(keeps_the_status_where_ends_of_children_are_ignored)
{
    program_run(
        &program,
        WITH_CHILDREN_IGNORED RUN " --fail-on-finding -- " PROGRAM " overrun 3");
    program_assert_status(&program, 86);
}

/* Where a file is what gets a core: a pipe gets one whatever the limit is. */
static bool cores_are_files(void)
{
    FILE *file = fopen("/proc/sys/kernel/core_pattern", "r");
    int first = file != NULL ? fgetc(file) : '|';

    if (file != NULL) {
        (void)fclose(file);
    }
    return first != '|';
}

/* In a folder for the core of the program. */
CASE(leaves_no_core_of_its_own)
{
    struct rlimit most;
    int status = -1;
    pid_t pid = fork();

    if (pid == 0) {
        int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

        CHECK(getrlimit(RLIMIT_CORE, &most) == 0);
        most.rlim_cur = most.rlim_max;
        CHECK(setrlimit(RLIMIT_CORE, &most) == 0);
        CHECK(chdir(runtime.path) == 0);
        CHECK(dup2(null, STDERR_FILENO) >= 0);
        execl(RUN, RUN, "--summary", "--", "/bin/sh", "-c", "kill -QUIT $$", NULL);
        _exit(99);
    }
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGQUIT);
    assert_false(cores_are_files() && WCOREDUMP(status));
}
