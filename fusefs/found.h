/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out which errors the diagnosis of a program has found since the last look: an event for
 * each class of which there are more (node_events.h).
 *
 * The side file (diag/diag_format.h) is opened once and kept open: a look reads one word of it, and
 * more only when that rose. A process without one is asked for it again after 0.1 s, then after
 * twice as long each time, up to 4 s, and when it ends.
 *
 * The program may write anything into the file: what cannot be true is no event, FOUND_ENTRIES of
 * its entries are read, and FOUND_READ files in a piece of a look. At most an eighth of the
 * daemon's descriptors are kept for such files: beyond that there are no events. Findings of which
 * no entry tells are of the class "unknown".
 *
 * Threads: the model lock held alone.
 */
#ifndef RMM_FUSEFS_FOUND_H
#define RMM_FUSEFS_FOUND_H

#include "model.h"

#define FOUND_ENTRIES 256u
#define FOUND_READ 8u

/* Opens the side file of a member's diagnosis, to be read. False: it has none, or none that is
 * good. rmm_diag_close() it. */
bool member_open_diag(const member_t *member, rmm_diag_file_t *file);

/* The first FOUND_ENTRIES findings of an open file. */
void found_each(const rmm_diag_file_t *file, rmm_diag_finding_fn visit, void *arg);

/* What it has found so far is no event. */
void found_pass_over(model_t *model, member_t *member);

/* At most this many files are read until the next call. */
void found_begin_piece(model_t *model);
void found_look(model_t *model, member_t *member);
/* The last look, at what has ended. */
void found_look_last(model_t *model, member_t *member);

#endif /* RMM_FUSEFS_FOUND_H */
