/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps up with the names in a directory of segments: each is looked at once, and again
 * if another file took its name. Threads: model lock held alone.
 */
#ifndef RMM_FUSEFS_SCAN_H
#define RMM_FUSEFS_SCAN_H

#include "dirs.h"
#include "model.h"

/* only_uid: whose segments are ours, -1 for all. */
void scan_dir(model_t *model, segment_dir_t *dir, long only_uid);

/* Forget folded segments whose files are gone from all directories. */
void scan_forget_gone(model_t *model, const dirs_t *dirs);

#endif /* RMM_FUSEFS_SCAN_H */
