/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tests of allocation logs share: logging adaptors, and the files that they write in
 * a folder of the test's own.
 */
#ifndef RMM_TESTS_SIM_LOGGING_HARNESS_H
#define RMM_TESTS_SIM_LOGGING_HARNESS_H

#include "sim/adaptors/adaptor_harness.h"

#include <dirent.h>
#include <stdio.h>
#include <unistd.h>

#include <rmm/logging_adaptor.h>

#define HEADER "Thread,Time,Action,Pointer,Size,Stream"

static char folder[64];

static inline const char *path_of(const char *name)
{
    static char path[128];

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    return path;
}

static inline rmm_resource_t *
make_logging(rmm_resource_t *upstream, const rmm_logging_options_t *options)
{
    rmm_resource_t *mr;

    assert_ok(rmm_logging_adaptor_create(upstream, options, &mr));
    rmm_resource_release(upstream);
    return mr;
}

static inline rmm_resource_t *log_to(const char *path)
{
    rmm_logging_options_t options = RMM_LOGGING_OPTIONS_INIT;

    options.path = path;
    return make_logging(make_cuda(), &options);
}

static inline size_t read_file(const char *path, char *text, size_t bytes)
{
    FILE *file = fopen(path, "re");
    size_t length;

    assert_non_null(file);
    length = fread(text, 1, bytes - 1, file);
    text[length] = '\0';
    fclose(file);
    return length;
}

static inline int make_folder(void **state)
{
    const char *parent = getenv("TMPDIR");

    (void)state;
    unsetenv("RMM_LOG_FILE");
    snprintf(
        folder, sizeof(folder), "%.32s/rmm-log.XXXXXX",
        parent != NULL ? parent : "/tmp");
    return mkdtemp(folder) != NULL ? 0 : 1;
}

/* With the files in it. */
static inline int remove_folder(void **state)
{
    DIR *opened = opendir(folder);

    (void)state;
    assert_non_null(opened);
    for (struct dirent *entry = readdir(opened); entry != NULL;
         entry = readdir(opened)) {
        (void)unlinkat(dirfd(opened), entry->d_name, 0);
    }
    closedir(opened);
    return rmdir(folder);
}

#endif /* RMM_TESTS_SIM_LOGGING_HARNESS_H */
