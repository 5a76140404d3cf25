/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file that is there with all of its text, or not at all: written under another name in the same
 * folder, and renamed when it is whole. What is no plain file, such as /dev/stdout, is written
 * to directly.
 */
#ifndef RMM_TOOLS_COMMON_OUTPUT_H
#define RMM_TOOLS_COMMON_OUTPUT_H

#include <limits.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct output {
    FILE *file;               /* NULL: not open */
    char path[PATH_MAX];      /* of the whole file */
    char temporary[PATH_MAX]; /* empty: there is none */
} output_t;

/* False: errno says why, and there is nothing to close. */
bool output_open(output_t *output, const char *path);

/* Make it the file. False: errno says why; nothing is left behind. */
bool output_commit(output_t *output);

/* Leave nothing behind; nothing happens if it is not open. */
void output_discard(output_t *output);

#endif /* RMM_TOOLS_COMMON_OUTPUT_H */
