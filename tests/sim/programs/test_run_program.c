/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmm-run: what it sets, what it refuses, and that it leaves the program's end alone.
 */
#include "harness/program.h"

#include <fcntl.h>
#include <sys/stat.h>

static char place[64];
static char library[128];
static program_t program;

static void run(const char *arguments)
{
    char command[2048];
    snprintf(command, sizeof command, RUN " %s", arguments);
    program_run(&program, command);
}

static void assert_refused(const char *arguments, int status, const char *line)
{
    char expected[1024];
    run(arguments);
    program_assert_status(&program, status);
    snprintf(expected, sizeof expected, "rmm-run: %s\n", line);
    assert_string_equal(program.err, expected);
    assert_string_equal(program.out, "");
}

static void write_text(const char *name, const char *text, mode_t mode)
{
    char path[256];
    snprintf(path, sizeof path, "%s/%s", place, name);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
    close(fd);
}

/* A line of env's output. */
static bool was_set(const char *line)
{
    char wanted[512];
    char text[PROGRAM_OUTPUT_MAX + 1];
    snprintf(wanted, sizeof wanted, "\n%s\n", line);
    snprintf(text, sizeof text, "\n%s", program.out);
    return strstr(text, wanted) != NULL;
}

TEST_CASE(sets_the_library_and_what_to_find)
{
    char line[256];
    run("--no-summary --diag usage -- /usr/bin/env");
    program_assert_status(&program, 0);
    assert_string_equal(program.err, "");
    snprintf(line, sizeof line, "CUDA_INJECTION64_PATH=%s", library);
    assert_true(was_set(line));
    assert_true(was_set("RMM_DIAG=usage"));
}

TEST_CASE(sets_the_quarantine_and_refuses_an_invalid_size)
{
    run("--quarantine 64MiB -- /usr/bin/env");
    program_assert_status(&program, 0);
    assert_true(was_set("RMM_DIAG_QUARANTINE=64MiB"));
    run("-- /usr/bin/env");
    assert_null(strstr(program.out, "RMM_DIAG_QUARANTINE"));
    assert_refused(
        "--quarantine much -- /usr/bin/env", 2,
        "--quarantine: \"much\" is not a number of bytes such as 64MiB");
}

TEST_CASE(sets_a_timeline_only_where_one_is_drawn)
{
    run("-- /usr/bin/env");
    assert_null(strstr(program.out, "RMM_TIMELINE="));
    setenv("RMM_TIMELINE", "99", 1);
    run("-- /usr/bin/env");
    unsetenv("RMM_TIMELINE");
    assert_true(was_set("RMM_TIMELINE=99"));
}

TEST_CASE(refuses_more_or_fewer_events_than_a_timeline_can_have)
{
    run("--timeline-events 16 -- /bin/true");
    program_assert_status(&program, 0);
    run("--timeline-events 4194304 -- /bin/true");
    program_assert_status(&program, 0);
    assert_refused(
        "--timeline-events 15 -- /bin/true", 2,
        "--timeline-events: \"15\" is not a number of events from 16 to 4194304");
    assert_refused(
        "--timeline-events 4194305 -- /bin/true", 2,
        "--timeline-events: \"4194305\" is not a number of events from 16 to 4194304");
}

/* No two of the files that it reads or writes. */
TEST_CASE(refuses_one_file_for_two_purposes)
{
    static const char *const options[] = {"--suppressions", "--report",   "--junit",
                                          "--sarif",        "--timeline", "--trace"};
    char arguments[512];
    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        for (size_t j = 0; j < i; j++) {
            snprintf(
                arguments, sizeof arguments,
                "--summary %s %s/one %s %s/one -- /bin/true", options[i], place,
                options[j], place);
            assert_refused(
                arguments, 2,
                "--report, --junit, --sarif, --timeline, --trace and --suppressions "
                "must name different files");
        }
    }
}

/* Then the library that was built beside it, if it was. */
TEST_CASE(an_empty_variable_names_no_library)
{
    setenv("RMM_INJECT_LIBRARY", "", 1);
    run("/usr/bin/env");
    setenv("RMM_INJECT_LIBRARY", library, 1);
    program_assert_status(&program, INJECT_IS_BUILT ? 0 : 125);
    assert_non_null(strstr(
        INJECT_IS_BUILT ? program.out : program.err,
        INJECT_IS_BUILT ? "/librmm-inject.so\n" : "librmm-inject.so"));
}

TEST_CASE(diagnoses_the_default_modes)
{
    setenv("RMM_DIAG", "something", 1);
    run("/usr/bin/env"); /* the -- may be left out */
    unsetenv("RMM_DIAG");
    program_assert_status(&program, 0);
    assert_true(was_set("RMM_DIAG=usage,bounds,driver"));
}

TEST_CASE(hands_arguments_on_as_they_are)
{
    run("-- /bin/echo --diag -- --help x");
    program_assert_status(&program, 0);
    assert_string_equal(program.out, "--diag -- --help x\n");
    run("/bin/echo --diag --help x"); /* the first word that is no option ends ours */
    program_assert_status(&program, 0);
    assert_string_equal(program.out, "--diag --help x\n");
}

TEST_CASE(ends_as_the_program_ends)
{
    write_text("three", "#!/bin/sh\nexit 3\n", 0755);
    write_text("killed", "#!/bin/sh\nkill -9 $$\n", 0755);
    char arguments[256];
    snprintf(arguments, sizeof arguments, "-- %s/three", place);
    run(arguments);
    program_assert_status(&program, 3);
    snprintf(arguments, sizeof arguments, "-- %s/killed", place);
    run(arguments);
    program_assert_status(&program, -SIGKILL);
}

TEST_CASE(prints_the_summary_unless_something_else_is_asked_for)
{
    static const char *const others[] = {
        "--no-summary", "--diag off", "--no-summary --report /dev/null"};
    char arguments[256];
    run("-- /bin/true");
    program_assert_status(&program, 0);
    assert_non_null(strstr(program.err, "rmm-run: /bin/true: nothing was diagnosed: "));
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        snprintf(arguments, sizeof arguments, "%s -- /bin/true", others[i]);
        run(arguments);
        program_assert_status(&program, 0);
        assert_string_equal(program.err, "");
    }
    assert_refused(
        "--summary --no-summary -- /bin/true", 2,
        "--summary and --no-summary exclude each other");
}

TEST_CASE(without_a_summary_it_becomes_the_program)
{
    char arguments[256], pid[32];
    write_text("pid", "#!/bin/sh\necho $$\n", 0755);
    snprintf(arguments, sizeof arguments, "--no-summary -- %s/pid", place);
    run(arguments);
    snprintf(pid, sizeof pid, "%d\n", (int)program.pid);
    assert_string_equal(program.out, pid);
}

TEST_CASE(reports_what_cannot_be_run_as_env_does)
{
    char arguments[256], line[256];
    assert_refused(
        "-- /proc/nowhere", 127, "cannot run /proc/nowhere: No such file or directory");
    assert_refused("-- ''", 127, "cannot run \"\": No such file or directory");
    write_text("plain", "no program\n", 0644);
    snprintf(arguments, sizeof arguments, "-- %s/plain", place);
    snprintf(line, sizeof line, "cannot run %s/plain: Permission denied", place);
    assert_refused(arguments, 126, line);
    snprintf(arguments, sizeof arguments, "-- %s/plain/below", place);
    snprintf(line, sizeof line, "cannot run %s/plain/below: Not a directory", place);
    assert_refused(arguments, 126, line);
}

TEST_CASE(refuses_what_it_does_not_know)
{
    assert_refused(
        "", 2, "no program given: rmm-run -- PROGRAM [ARGUMENT]...; see --help");
    assert_refused(
        "--diag usage,ordre -- /bin/true", 2,
        "--diag: \"usage,ordre\" is not a list of modes: there is no \"ordre\"; they "
        "are usage, bounds, order, driver, guards");
    assert_refused(
        "--diag '' -- /bin/true", 2,
        "--diag: \"\" is not a list of modes, such as usage,bounds");
    assert_refused(
        "--reports x -- /bin/true", 2, "unknown option --reports; see --help");
}

TEST_CASE(its_help_names_every_mode)
{
    static const char *const modes[] = {"usage",  "bounds", "order",
                                        "guards", "driver", "off"};
    char word[32];
    run("--help");
    program_assert_status(&program, 0);
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++) {
        snprintf(word, sizeof word, " %s", modes[i]);
        if (strstr(program.out, word) == NULL) {
            fail_msg("--help does not name the mode %s:\n%s", modes[i], program.out);
        }
    }
}

TEST_CASE(refuses_to_push_out_another_tool)
{
    setenv("CUDA_INJECTION64_PATH", "/proc/nowhere/libinject.so", 1);
    assert_refused(
        "-- /bin/true", 125,
        "CUDA_INJECTION64_PATH is already set, to /proc/nowhere/libinject.so: one tool "
        "at "
        "a time can be injected; unset it first");
    setenv("CUDA_INJECTION64_PATH", library, 1); /* itself, nested */
    run("-- /bin/true");
    program_assert_status(&program, 0);
    unsetenv("CUDA_INJECTION64_PATH");
}

TEST_CASE(says_when_the_named_library_is_not_there)
{
    setenv("RMM_INJECT_LIBRARY", "/proc/nowhere.so", 1);
    assert_refused(
        "-- /bin/true", 125,
        "RMM_INJECT_LIBRARY names /proc/nowhere.so: No such file or directory; name "
        "librmm-inject.so, or unset it");
    setenv("RMM_INJECT_LIBRARY", place, 1);
    run("-- /bin/true");
    program_assert_status(&program, 125);
    setenv("RMM_INJECT_LIBRARY", library, 1);
}

TEST_CASE(refuses_a_named_file_that_is_not_a_library)
{
    char path[256], line[512];
    snprintf(path, sizeof path, "%s/notes.txt", place);
    snprintf(
        line, sizeof line,
        "RMM_INJECT_LIBRARY names %s: not a shared library; name librmm-inject.so, or "
        "unset it",
        path);
    setenv("RMM_INJECT_LIBRARY", path, 1);
    write_text("notes.txt", "no library\n", 0644);
    assert_refused("-- /bin/true", 125, line);
    write_text("notes.txt", "", 0644);
    assert_refused("-- /bin/true", 125, line);
    setenv("RMM_INJECT_LIBRARY", library, 1);
}

static void copy_program(const char *to)
{
    static char data[1 << 24];
    FILE *file = fopen(RUN, "rb");
    assert_non_null(file);
    size_t bytes = fread(data, 1, sizeof data, file);
    fclose(file);
    assert_true(bytes < sizeof data);
    file = fopen(to, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(data, 1, bytes, file), bytes);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(chmod(to, 0755), 0);
}

static void make_folders(const char *path)
{
    char command[528];
    snprintf(command, sizeof command, "/bin/mkdir -p %s", path);
    program_run(&program, command);
    program_assert_status(&program, 0);
}

TEST_CASE(finds_the_library_of_its_installation)
{
    char path[512], command[600];
    snprintf(path, sizeof path, "%s/tree/bin", place);
    make_folders(path);
    snprintf(path, sizeof path, "%s/tree/bin/" LIBDIR, place);
    make_folders(path);
    snprintf(path, sizeof path, "%s/tree/bin/rmm-run", place);
    copy_program(path);

    unsetenv("RMM_INJECT_LIBRARY");
    snprintf(command, sizeof command, "%s/tree/bin/rmm-run -- /usr/bin/env", place);
    program_run(&program, command);
    program_assert_status(&program, 125);
    assert_non_null(strstr(program.err, "cannot find librmm-inject.so in "));
    assert_non_null(strstr(program.err, "RMM_INJECT_LIBRARY"));

    write_text("tree/bin/" LIBDIR "/librmm-inject.so", "here", 0644);
    program_run(&program, command);
    setenv("RMM_INJECT_LIBRARY", library, 1);
    program_assert_status(&program, 0);
    assert_non_null(strstr(program.out, "/librmm-inject.so\n"));
    assert_null(strstr(program.out, "/../")); /* resolved */
}

static int make_place(void **state)
{
    strcpy(place, "/tmp/rmm-test.XXXXXX");
    assert_non_null(mkdtemp(place));
    unsetenv("CUDA_INJECTION64_PATH");
    snprintf(library, sizeof library, "%s/library.so", place);
    write_text("library.so", "\177ELF: as much as is looked at", 0644);
    setenv("RMM_INJECT_LIBRARY", library, 1);
    return 0;
}

static int leave_place(void **state)
{
    char command[128];
    snprintf(command, sizeof command, "/bin/rm -r %s", place);
    program_run(&program, command);
    return program.status;
}

int main(void)
{
    return harness_run_cases(make_place, leave_place);
}
