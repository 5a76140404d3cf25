/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the runtime directory that this process maps: made under a temporary name,
 * locked, without space; published by giving it its name. Pages of it are backed by the file
 * system one by one, before anybody writes there. See shared_file.c.
 */
#ifndef RMM_PUBLISH_SHARED_FILE_H
#define RMM_PUBLISH_SHARED_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "segment/temporary_file.h"

/*
 * The memory of a file. What is not backed yet is private memory: writing there harms no
 * process and reaches no reader.
 */
typedef struct rmm_shared_pages {
    char *
        memory; /* what the process uses: zeroed; what is backed is not inherited by fork */
    char *file; /* all of the file, to take pages from; not inherited by fork */
    size_t bytes;
    bool all_have_space; /* taken at the start */
} rmm_shared_pages_t;

typedef struct rmm_shared_file {
    int dirfd; /* borrowed */
    int fd;
    rmm_shared_pages_t pages;
    char temporary[RMM_TEMPORARY_NAME_BYTES];
} rmm_shared_file_t;

/*
 * Returns 0, or a negative errno with *step_out a phrase that says what failed; then
 * nothing is left behind.
 */
int rmm__shared_file_create(
    rmm_shared_file_t *file, int dirfd, size_t bytes, const char **step_out);

/*
 * Take space for the pages that hold these bytes and let `memory` show the file there. Once
 * is enough; again, or by two threads at once, does no harm. Returns 0 or a negative errno,
 * -ENOSPC where the file system is full: then these pages stay as they were, or are backed
 * in part. Any thread, no lock.
 */
int rmm__shared_pages_back(
    const rmm_shared_pages_t *pages, size_t offset, size_t bytes);

/* Give it its name. The mapping, and with it the lock, stays for the process's life. */
int rmm__shared_file_publish(rmm_shared_file_t *file, const char *name);

/* Undo create, before it was published. */
void rmm__shared_file_discard(rmm_shared_file_t *file);

#endif /* RMM_PUBLISH_SHARED_FILE_H */
