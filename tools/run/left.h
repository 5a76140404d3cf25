/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where a program that has ended left its files: the name of its segment, beside which the
 * diagnosis writes.
 */
#ifndef RMM_TOOLS_RUN_LEFT_H
#define RMM_TOOLS_RUN_LEFT_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "diag/diag_reader.h"
#include "segment/segment_reader.h"

typedef struct run_left {
    int dirfd;                            /* of the runtime directory; -1: none */
    char segment[RMM_SEGMENT_NAME_BYTES]; /* empty: the program left none */
    rmm_diag_file_t diag;                 /* its side file; fd -1: none */
    char missing[160];                    /* why there is none; empty: there is */
} run_left_t;

/* since_ns: CLOCK_REALTIME before the program was started; an older process may have had its
 * pid. run_left_close() it in any case. */
void run_left_open(run_left_t *left, pid_t pid, uint64_t since_ns);
void run_left_close(run_left_t *left);

#endif /* RMM_TOOLS_RUN_LEFT_H */
