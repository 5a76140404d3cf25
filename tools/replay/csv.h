/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Writes the bytes that a resource has handed out and holds while a log is replayed, as CSV, for
 * pictures. At most CSV_ROWS_MAX rows and one: a row is of a stretch of operations
 * and has the largest figures of it, so that no peak is lost.
 *
 * Threads: call it from one at a time.
 */
#ifndef RMM_TOOLS_REPLAY_CSV_H
#define RMM_TOOLS_REPLAY_CSV_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "common/output.h"

#define CSV_ROWS_MAX 1000

typedef struct csv {
    output_t output;
    uint64_t operations;                 /* of the log */
    uint64_t stretch;                    /* of a row */
    uint64_t seen;                       /* operations so far */
    uint64_t live_bytes, reserved_bytes; /* the largest since the last row */
} csv_t;

/* The heading says what is replayed on what. False: errno says why. */
bool csv_open(csv_t *csv, const char *path, const char *heading, uint64_t operations);

/* After an operation of the log, which was recorded at `due_ns`. */
void csv_note(
    csv_t *csv, uint64_t due_ns, uint64_t live_bytes, uint64_t reserved_bytes);

/* The file is there then, if every operation was noted; after a run that failed, an earlier file
 * stays as it was. False: not all could be written; errno says why. */
bool csv_close(csv_t *csv);

#endif /* RMM_TOOLS_REPLAY_CSV_H */
