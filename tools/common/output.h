/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is there with all of its text, or not at all: written without a name in the same
 * folder, and named when it is whole; so nothing is left of it where the process is killed. File
 * systems without O_TMPFILE (NFS) have it under another name meanwhile. What is no plain file, such
 * as /dev/stdout, is written to directly.
 */
#ifndef RMM_TOOLS_COMMON_OUTPUT_H
#define RMM_TOOLS_COMMON_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct output {
    FILE *file;               /* NULL: not open */
    char path[PATH_MAX];      /* of the whole file */
    char temporary[PATH_MAX]; /* its name until it is whole; empty: there is none */
    bool is_unnamed;          /* it does not have that name yet */
} output_t;

/* Whether both names lead to one plain file, or would: writing one would lose what the other has.
 * Either may be NULL. */
bool output_is_same(const char *path, const char *other_path);

/* False: errno says why, and there is nothing to close. */
bool output_open(output_t *output, const char *path);

/* Make it the file. False: errno says why; nothing is left behind. */
bool output_commit(output_t *output);

/* Leave nothing behind; nothing happens if it is not open. */
void output_discard(output_t *output);

#endif /* RMM_TOOLS_COMMON_OUTPUT_H */
