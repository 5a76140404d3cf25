/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For tests of whole programs: run one, keep what it printed and how it ended. The
 * environment is the test's; a program that does not end is killed by the test's own
 * alarm through PR_SET_PDEATHSIG.
 */
#ifndef RMM_TESTS_HARNESS_PROGRAM_H
#define RMM_TESTS_HARNESS_PROGRAM_H

#include "harness/harness.h"

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM_OUTPUT_MAX 65536
#define PROGRAM_WORDS_MAX 16

typedef struct program {
    pid_t pid;
    FILE *out_file, *err_file; /* temporary, without a name */
    char out[PROGRAM_OUTPUT_MAX];
    char err[PROGRAM_OUTPUT_MAX];
    int status; /* exit status, or -signal */
} program_t;

/* Splits words at spaces; the word '' is the empty argument. */
static inline void program_split(char *line, char **argv)
{
    size_t count = 0;
    for (char *word = strtok(line, " "); word != NULL; word = strtok(NULL, " ")) {
        assert_true(count < PROGRAM_WORDS_MAX);
        argv[count++] = strcmp(word, "''") == 0 ? word + 2 : word;
    }
    argv[count] = NULL;
}

/* Start a command line (split at spaces). */
static inline void program_start(program_t *program, const char *command)
{
    char line[4096];
    char *argv[PROGRAM_WORDS_MAX + 1];

    program->out_file = tmpfile();
    program->err_file = tmpfile();
    assert_non_null(program->out_file);
    assert_non_null(program->err_file);
    assert_true((size_t)snprintf(line, sizeof line, "%s", command) < sizeof line);
    program_split(line, argv);
    fflush(NULL);
    program->pid = fork();
    assert_true(program->pid >= 0);
    if (program->pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        dup2(fileno(program->out_file), STDOUT_FILENO);
        dup2(fileno(program->err_file), STDERR_FILENO);
        execv(argv[0], argv);
        _exit(99);
    }
}

static inline void program_read(FILE *file, char text[PROGRAM_OUTPUT_MAX])
{
    ssize_t length = pread(fileno(file), text, PROGRAM_OUTPUT_MAX - 1, 0);
    assert_true(length >= 0);
    text[length] = '\0';
}

/* What was printed on stdout so far. */
static inline const char *program_out_so_far(program_t *program)
{
    program_read(program->out_file, program->out);
    return program->out;
}

/* Wait for its end; fills out, err and status. */
static inline void program_finish(program_t *program)
{
    int status = 0;
    while (waitpid(program->pid, &status, 0) < 0) {
        assert_int_equal(errno, EINTR);
    }
    program_read(program->out_file, program->out);
    program_read(program->err_file, program->err);
    fclose(program->out_file);
    fclose(program->err_file);
    program->status = WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static inline void program_run(program_t *program, const char *command)
{
    program_start(program, command);
    program_finish(program);
}

/* The status, with everything that it printed if it is another one. */
static inline void program_assert_status(const program_t *program, int expected)
{
    if (program->status != expected) {
        fail_msg(
            "ended with %d, expected %d\nstdout: %s\nstderr: %s", program->status,
            expected, program->out, program->err);
    }
}

#endif /* RMM_TESTS_HARNESS_PROGRAM_H */
