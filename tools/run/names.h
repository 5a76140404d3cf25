/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of kernels, functions and resources as people write them. C++ names are demangled by
 * libstdc++, which is loaded if the machine has it, so that rmm-run needs it neither to be built
 * nor to run. Without it names are shown as they are.
 *
 * Threads: one at a time.
 */
#ifndef RMM_TOOLS_RUN_NAMES_H
#define RMM_TOOLS_RUN_NAMES_H

#include <stdbool.h>
#include <stdio.h>

#include <jansson.h>

#include "run/resource_text.h"

/* NULL: the name is no mangled one, or cannot be demangled here. The caller frees it. */
char *run_demangle(const char *name);

/* On one line of a report: demangled, and cut to a width that can be read. Empty: `unnamed`. */
void run_name_print(const char *name, const char *unnamed, FILE *out);

/* The whole name under `key`, and under `key`_mangled what it was where that is not the same.
 * False: no memory. */
bool run_name_put_json(json_t *object, const char *key, const char *name);

void run_resource_print(
    uint32_t id, const rmm_diag_resource_name_t *resource, FILE *out);

/* "resource", "resource_type" and "resource_name"; false: no memory. */
bool run_resource_put_json(
    json_t *object, uint32_t id, const rmm_diag_resource_name_t *resource);

#endif /* RMM_TOOLS_RUN_NAMES_H */
