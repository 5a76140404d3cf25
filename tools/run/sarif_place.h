/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Places in SARIF: files as URIs, which are relative where the file is below the working directory
 * and name that as their base, and stacks.
 */
#ifndef RMM_TOOLS_RUN_SARIF_PLACE_H
#define RMM_TOOLS_RUN_SARIF_PLACE_H

#include <stdio.h>

#include "run/stacks.h"

#define RUN_SARIF_BASE "%SRCROOT%"

/* Percent-encoded, for a path or a name within a URI. NULL: no memory; the caller frees it. */
char *run_sarif_encode(const char *path);

/* A string of a text that may be anything (run/text.h). NULL: no memory. */
json_t *run_sarif_text(const char *text);

/* An artifactLocation. `folder`: the working directory. NULL: no memory; so below. */
json_t *run_sarif_artifact(const char *path, const char *folder);

/* A location: that of the stack's frame that a reader looks for first, or of the program. */
json_t *
run_sarif_location(const run_stack_t *stack, const char *program, const char *folder);

/* A stack with a message, without the libraries that made the call for the program. */
json_t *
run_sarif_stack(const run_stack_t *stack, const char *message, const char *folder);

#endif /* RMM_TOOLS_RUN_SARIF_PLACE_H */
