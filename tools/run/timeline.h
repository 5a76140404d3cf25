/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The timeline of a program that has ended, from the ring of events that it left.
 */
#ifndef RMM_TOOLS_RUN_TIMELINE_H
#define RMM_TOOLS_RUN_TIMELINE_H

#include <stdbool.h>
#include <sys/types.h>

#include "diag/timeline_format.h"
#include "run/left.h"
#include "timeline/history.h"

#define RUN_TIMELINE_EVENTS 262144u /* unless another number is requested */
#define RUN_TIMELINE_EVENTS_LEAST 16u

/* history is initialised, and finished here. False: one line why in `why`. */
bool run_timeline_read(
    history_t *history, const char *program, pid_t pid, const run_left_t *left,
    char why[160]);

/* The ring takes much of the runtime directory, and nobody else reads it. */
void run_timeline_remove(const run_left_t *left);

#endif /* RMM_TOOLS_RUN_TIMELINE_H */
