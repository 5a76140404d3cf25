/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program that was refused memory held itself: the largest groups of its live blocks on that
 * device, by the stack of their allocation, and the kernel that used them first. They are known of
 * programs with a diagnosis (rmm-run) or a tracking adaptor, whose side files list each block. The
 * program does nothing for it at a refusal, and the files stay when it is killed.
 *
 * The daemon reads them when it has found the refusal, so blocks that the program frees in the
 * milliseconds until then are missing.
 *
 * Bounds: a side file has some ten thousand blocks at most; REFUSED_BLOCKS_GROUPS groups are told
 * apart. Refusals of one program within REFUSED_SCENE_NS share one reading. Readings take a
 * REFUSED_BLOCKS_SHARE-th of a core, beyond REFUSED_BLOCKS_CREDIT_NS: later ones wait.
 *
 * Threads: any, without the model's lock.
 */
#ifndef RMM_FUSEFS_REFUSED_BLOCKS_H
#define RMM_FUSEFS_REFUSED_BLOCKS_H

#include "model/model.h"

#define REFUSED_BLOCKS_GROUPS 1024u
#define REFUSED_BLOCKS_SHARE 10u
#define REFUSED_BLOCKS_CREDIT_NS 20000000u

/* Add them to refusals that were found since. True: some wait for a later call. */
bool refused_blocks_take(model_t *model);

#endif /* RMM_FUSEFS_REFUSED_BLOCKS_H */
