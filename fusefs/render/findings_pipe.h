/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/<pid>/diag/findings_pipe: the rows of `findings`, each when its finding is new or has
 * occurred again since the reader last got it, with its current count. A slow reader
 * loses no finding: it gets the row with a larger count.
 *
 * The side file stays open while the reader has the pipe open. It is opened when it first
 * exists: diagnosis begins with a program's first block.
 *
 * Part of stream.c, whose lock protects it.
 */
#ifndef RMM_FUSEFS_FINDINGS_PIPE_H
#define RMM_FUSEFS_FINDINGS_PIPE_H

#include <stdbool.h>

#include "programs/found.h"
#include "support/text.h"

typedef struct findings_pipe {
    rmm_diag_file_t file;
    bool is_open, has_header;
    uint64_t serial;                /* of the segment */
    uint64_t total;                 /* findings at the last look */
    uint64_t counts[FOUND_ENTRIES]; /* reported so far */
} findings_pipe_t;

/* NULL: no memory. */
findings_pipe_t *findings_pipe_open(void);
void findings_pipe_close(findings_pipe_t *pipe);

/* True: it has a file from here on, and takes a descriptor. */
bool findings_pipe_attach(findings_pipe_t *pipe, const member_t *member);
/* Appends new findings. */
void findings_pipe_fetch(findings_pipe_t *pipe, text_t *text);

#endif /* RMM_FUSEFS_FINDINGS_PIPE_H */
