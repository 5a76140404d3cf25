/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Polls the findings of each diagnosed program and notes an event for each class that has new
 * ones (node_events.h).
 *
 * The side file (diag/diag_format.h) is opened once and stays open: a poll reads one word of it,
 * and more only if that word rose. If a process has no side file, the next attempts follow after
 * 0.1 s, then after twice as long each time, up to 4 s, and when the process ends.
 *
 * The program may write anything into the file: impossible values cause no event, FOUND_ENTRIES
 * of its entries are read, and FOUND_READ files in one step. At most an eighth of the
 * daemon's descriptors are used for such files: programs beyond that cause no events. Findings
 * without an entry have the class "unknown".
 *
 * Threads: the model lock held alone.
 */
#ifndef RMM_FUSEFS_FOUND_H
#define RMM_FUSEFS_FOUND_H

#include "model/model.h"

#define FOUND_ENTRIES 256u
#define FOUND_READ 8u

/* Opens the side file of a member's diagnosis, to be read. False: it has none, or none that is
 * good. rmm__diag_close() it. */
bool member_open_diag(const member_t *member, rmm_diag_file_t *file);

/* The first FOUND_ENTRIES findings of an open file. */
void found_each(const rmm_diag_file_t *file, rmm_diag_finding_fn visit, void *arg);

/* Make no event of what the diagnosis has found so far. */
void found_pass_over(model_t *model, member_t *member);

/* At most this many files are read until the next call. */
void found_begin_piece(model_t *model);
void found_look(model_t *model, member_t *member);
/* The last look, at what has ended. */
void found_look_last(model_t *model, member_t *member);

#endif /* RMM_FUSEFS_FOUND_H */
