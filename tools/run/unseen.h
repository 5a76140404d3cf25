/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what the diagnosis did not see, or had no room for: how much of a result without findings
 * is due to that. The names are those of diag/stat.
 */
#ifndef RMM_TOOLS_RUN_UNSEEN_H
#define RMM_TOOLS_RUN_UNSEEN_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/json.h"
#include "diag/diag_reader.h"

/* X(counter of the header, what is counted if it is 1, and if it is not; text behind that) */
#define RUN_UNSEEN_MAP(X)                                                              \
    X(blocks_dropped, "block was", "blocks were",                                      \
      "not followed: too many were live at a time")                                    \
    X(freed_dropped, "freed block was", "freed blocks were",                           \
      "forgotten: a later use is not found")                                           \
    X(launches_unnamed, "launch has", "launches have",                                 \
      "no name: the program has too many kernels")                                     \
    X(parameter_failures, "launch had", "launches had",                                \
      "parameters that could not be read")                                             \
    X(graphs_unseen, "launch of a graph had", "launches of graphs had",                \
      "nodes that are not known: capture them instead of adding or changing them")     \
    X(peaks_dropped, "allocation was", "allocations were",                             \
      "on a device whose peak is not kept")                                            \
    X(unjudged, "call or launch was", "calls and launches were",                       \
      "not, or not fully, judged by order")                                            \
    X(guards_missing, "block had", "blocks had", "no guard")                           \
    X(guards_unchecked, "launch or free came", "launches and frees came",              \
      "without a check of guards")

typedef struct run_unseen {
#define X(name, one, many, text) uint64_t name;
    RUN_UNSEEN_MAP(X)
#undef X
} run_unseen_t;

run_unseen_t run_unseen_read(const rmm_diag_file_t *file);
/* A line for each that is not 0. */
void run_unseen_print(const run_unseen_t *unseen, FILE *out);
/* NULL: no memory. */
json_t *run_unseen_json(const run_unseen_t *unseen);

#endif /* RMM_TOOLS_RUN_UNSEEN_H */
