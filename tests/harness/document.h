/* SPDX-License-Identifier: Apache-2.0 */
/* Documents of the sources that a test compares with the code. */
#ifndef RMM_TESTS_HARNESS_DOCUMENT_H
#define RMM_TESTS_HARNESS_DOCUMENT_H

#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LINE_BYTES 512

/* A file of docs/, found through RMM_SOURCE_DIR. */
static inline FILE *open_document(const char *name)
{
    const char *root = getenv("RMM_SOURCE_DIR");
    char path[512];
    FILE *document;

    if (root == NULL) {
        fail_msg("RMM_SOURCE_DIR is not set: run this through ctest");
    }
    snprintf(path, sizeof(path), "%s/docs/%s", root, name);
    document = fopen(path, "re");
    if (document == NULL) {
        fail_msg("cannot open %s", path);
    }
    return document;
}

/* Moves behind the heading; fails if the document does not have it. */
static inline void find_heading(FILE *document, const char *heading)
{
    char line[LINE_BYTES];

    rewind(document);
    while (fgets(line, sizeof(line), document) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, heading) == 0) {
            return;
        }
    }
    fail_msg("no heading \"%s\"", heading);
}

#endif /* RMM_TESTS_HARNESS_DOCUMENT_H */
