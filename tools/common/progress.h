/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How far a program is, on stderr: on a terminal a bar that stays on one line and is gone at
 * the end; elsewhere a line for each group of trials, which suits a log.
 *
 * Printed between trials, so no clock runs meanwhile.
 */
#ifndef RMM_TOOLS_COMMON_PROGRESS_H
#define RMM_TOOLS_COMMON_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool shown; /* false: nothing is printed; all zero is that */
    bool is_terminal;
    uint64_t done, total;
} progress_t;

/* Begin to show the progress of `total` trials. */
void progress_begin(progress_t *progress, uint64_t total, bool quiet);
/* The name of what is measured from here on. */
void progress_group(const progress_t *progress, const char *group);
/* The next trial begins. */
void progress_step(progress_t *progress, const char *what, const char *resource);
void progress_end(const progress_t *progress);

#endif /* RMM_TOOLS_COMMON_PROGRESS_H */
