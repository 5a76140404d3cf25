/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of the runtime directory that this process maps: made under a temporary name,
 * with all its space, locked; published by giving it its name. See shared_file.c.
 */
#ifndef RMM_PUBLISH_SHARED_FILE_H
#define RMM_PUBLISH_SHARED_FILE_H

#include <stddef.h>
#include <stdint.h>

#define RMM_TEMPORARY_NAME_BYTES 64

typedef struct rmm_shared_file {
    int dirfd; /* borrowed */
    int fd;
    void *memory; /* zeroed, shared, not inherited by fork */
    size_t bytes;
    char temporary[RMM_TEMPORARY_NAME_BYTES];
} rmm_shared_file_t;

/*
 * Returns 0, or a negative errno with *step_out a phrase that says what failed; then
 * nothing is left behind.
 */
int rmm__shared_file_create(
    rmm_shared_file_t *file, int dirfd, size_t bytes, const char **step_out);

/* Give it its name. The mapping, and with it the lock, stays for the process's life. */
int rmm__shared_file_publish(rmm_shared_file_t *file, const char *name);

/* Undo create, before it was published. */
void rmm__shared_file_discard(rmm_shared_file_t *file);

/* For names: not guessable, unless the kernel has no randomness yet. */
uint64_t rmm__random64(void);

#endif /* RMM_PUBLISH_SHARED_FILE_H */
