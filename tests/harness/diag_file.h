/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The side file of a process that is done with it (or stands still), read whole.
 */
#ifndef RMM_TESTS_HARNESS_DIAG_FILE_H
#define RMM_TESTS_HARNESS_DIAG_FILE_H

#include <dirent.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "diag/diag_format.h"

typedef struct diag_file {
    rmm_diag_header_t
        *header; /* the whole file behind it; freed by diag_file_close() */
    const rmm_diag_kernel_t *kernels;
    const rmm_diag_row_t *rows;
    const rmm_diag_finding_t *findings;
    const rmm_diag_function_t *functions;
} diag_file_t;

/* The path of the only "*.diag" in a directory; false: there is none, or more. */
static inline bool diag_file_find(const char *directory, char path[512])
{
    DIR *entries = opendir(directory);
    struct dirent *entry = NULL;
    int count = 0;

    while (entries != NULL && (entry = readdir(entries)) != NULL) {
        const char *dot = strrchr(entry->d_name, '.');

        if (dot != NULL && strcmp(dot, "." RMM_DIAG_SUFFIX) == 0) {
            snprintf(path, 512, "%s/%s", directory, entry->d_name);
            count++;
        }
    }
    if (entries != NULL) {
        closedir(entries);
    }
    return count == 1;
}

static inline bool diag_file_read(diag_file_t *file, const char *path)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    bool good = false;

    *file = (diag_file_t){NULL};
    if (fd < 0) {
        return false;
    }
    if (fstat(fd, &st) == 0 && (size_t)st.st_size >= sizeof(rmm_diag_header_t)) {
        file->header = malloc((size_t)st.st_size);
        good = file->header != NULL &&
               pread(fd, file->header, (size_t)st.st_size, 0) == st.st_size;
    }
    close(fd);
    if (good) {
        file->kernels = (void *)((char *)file->header + file->header->kernels.offset);
        file->rows = (void *)((char *)file->header + file->header->rows.offset);
        file->findings = (void *)((char *)file->header + file->header->findings.offset);
        file->functions =
            (void *)((char *)file->header + file->header->functions.offset);
    }
    return good && file->header->magic == RMM_DIAG_MAGIC && file->header->ready == 1 &&
           file->header->file_bytes == (uint64_t)st.st_size;
}

static inline void diag_file_close(diag_file_t *file)
{
    free(file->header);
    file->header = NULL;
}

/* The live row of the block at this address, or NULL. */
static inline const rmm_diag_row_t *
diag_file_row(const diag_file_t *file, uint64_t address)
{
    for (uint32_t i = 0; i < file->header->rows.used; i++) {
        if (file->rows[i].live && file->rows[i].address == address) {
            return &file->rows[i];
        }
    }
    return NULL;
}

static inline uint32_t diag_file_live(const diag_file_t *file)
{
    uint32_t live = 0;

    for (uint32_t i = 0; i < file->header->rows.used; i++) {
        live += file->rows[i].live;
    }
    return live;
}

/* The name of a kernel or function. */
static inline const char *diag_file_user(const diag_file_t *file, uint32_t user)
{
    uint32_t function = user & ~RMM_DIAG_FUNCTION;

    if (user < file->header->kernels.used) {
        return file->kernels[user].name;
    }
    return (user & RMM_DIAG_FUNCTION) != 0 && function < file->header->functions.used
               ? file->functions[function].name
               : "none";
}

#endif /* RMM_TESTS_HARNESS_DIAG_FILE_H */
