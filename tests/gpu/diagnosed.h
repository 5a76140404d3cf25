/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the programs share that run under rmm-run on a real GPU and read their own side file:
 * one line "PASS what" or "FAIL what: why" for each check, a private runtime directory.
 */
#ifndef RMM_TESTS_GPU_DIAGNOSED_H
#define RMM_TESTS_GPU_DIAGNOSED_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "harness/diag_file.h"

#define EXIT_SKIP 77

static char directory[] = "/tmp/rmm-diagnosed.XXXXXX";
static int failures;

__attribute__((format(printf, 3, 4))) static void
check(bool good, const char *what, const char *format, ...)
{
    va_list arguments;

    printf(good ? "PASS %s\n" : "FAIL %s: ", what);
    if (!good) {
        va_start(arguments, format);
        vprintf(format, arguments);
        va_end(arguments);
        putchar('\n');
        failures++;
    }
}

static void remove_directory(void)
{
    DIR *entries = opendir(directory);
    struct dirent *entry = NULL;

    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        (void)unlinkat(dirfd(entries), entry->d_name, 0);
    }
    if (entries != NULL) {
        closedir(entries);
    }
    (void)rmdir(directory);
}

__attribute__((noreturn)) static void diagnosed_leave(int status)
{
    remove_directory();
    exit(status);
}

__attribute__((noreturn)) static void give_up(const char *what)
{
    printf("FAIL %s\n", what);
    diagnosed_leave(EXIT_FAILURE);
}

static void read_file(diag_file_t *file)
{
    char path[512];

    if (!diag_file_find(directory, path) || !diag_file_read(file, path)) {
        give_up("the side file is there: no readable *.diag; run under rmm-run");
    }
}

static inline uint64_t findings_total(void)
{
    diag_file_t file;
    uint64_t total = 0;

    read_file(&file);
    total = file.header->findings_total;
    diag_file_close(&file);
    return total;
}

/* Exit 1 outside of rmm-run, 77 where there is no GPU. */
static void diagnosed_begin(const char *program, int gpus)
{
    if (getenv("CUDA_INJECTION64_PATH") == NULL) {
        fprintf(stderr, "%s: run it under rmm-run: rmm-run -- %s\n", program, program);
        exit(EXIT_FAILURE);
    }
    if (mkdtemp(directory) == NULL || setenv("RMM_RUNTIME_DIR", directory, 1) != 0) {
        perror(program);
        exit(EXIT_FAILURE);
    }
    if (gpus == 0) {
        puts("SKIP no GPU here");
        diagnosed_leave(EXIT_SKIP);
    }
}

static int diagnosed_end(void)
{
    remove_directory();
    printf("%s: %d failed\n", failures == 0 ? "PASS" : "FAIL", failures);
    return failures == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}

#endif /* RMM_TESTS_GPU_DIAGNOSED_H */
