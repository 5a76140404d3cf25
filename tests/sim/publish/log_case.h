/* SPDX-License-Identifier: Apache-2.0 */
/* The parts that the tests of the debug log share. */
#ifndef RMM_TESTS_SIM_PUBLISH_LOG_CASE_H
#define RMM_TESTS_SIM_PUBLISH_LOG_CASE_H

#include "harness/runtime.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "log/log.h"

static runtime_t *runtime;

static inline void log_one_of_each(void)
{
    rmm__log_trace("a trace");
    rmm__log_debug("a debug message");
    rmm__log_info("an info");
    rmm__log_warn("a warning");
    rmm__log_error("an error");
    RMM_LOG_AT(RMM_LEVEL_CRITICAL, "a critical one");
}

/* A path in the test's folder. */
static inline const char *path_of(const char *name)
{
    static char path[256];

    snprintf(path, sizeof(path), "%s/%s", runtime->path, name);
    return path;
}

static inline const char *content_of(const char *path)
{
    static char text[65536];
    FILE *file = fopen(path, "re");
    size_t length;

    CHECK(file != NULL);
    length = fread(text, 1, sizeof(text) - 1, file);
    text[length] = '\0';
    fclose(file);
    return text;
}

static inline size_t lines_of(const char *path)
{
    size_t lines = 0;

    for (const char *at = content_of(path); *at != '\0'; at++) {
        lines += *at == '\n';
    }
    return lines;
}

/* From now on stderr is this file. */
static inline const char *divert_stderr(void)
{
    static char path[256];
    int fd = open(path_of("stderr"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

    CHECK(fd >= 0 && dup2(fd, STDERR_FILENO) == STDERR_FILENO);
    snprintf(path, sizeof(path), "%s", path_of("stderr"));
    return path;
}

/* The environment chooses nothing, unless a case sets it. */
static inline int log_setup(void **state)
{
    unsetenv("RMM_LOG_LEVEL");
    unsetenv("RMM_DEBUG_LOG_FILE");
    runtime_setup(state);
    runtime = *state;
    return 0;
}

#endif /* RMM_TESTS_SIM_PUBLISH_LOG_CASE_H */
