/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmmfs.state beside the segments: the data that must survive the daemon. It contains
 * the devices with their marks, the totals of processes that have exited, and the names
 * of the segments in these totals, so that none is counted twice. The file is replaced
 * as a whole, so a daemon that is killed at any moment starts again with consistent
 * figures.
 *
 * Only one daemon writes a file. A second one in the same directory runs without it,
 * and logs that. In a directory of another user (/run/rmm for a user's daemon) the name
 * is rmmfs.<uid>.state.
 *
 * Text, one record on each line:
 *   rmmfs-state 1
 *   gpu <uuid> <pci_bus_id or -> <capacity_bytes> <name>
 *   mark <uuid or host> <statistic> <value>
 *   exited <uuid or host> <statistic> <value>
 *   folded <segment> <nanoseconds since boot> <directory under proc/>
 *   end
 */
#ifndef RMM_FUSEFS_STATE_H
#define RMM_FUSEFS_STATE_H

#include <stdbool.h>

#include "model.h"

typedef struct state state_t;

/* Take the directory's state file for this daemon; NULL with a logged reason if marks
 * cannot be kept there. dirfd is borrowed until state_close. */
state_t *state_open(int dirfd, const char *dir_path);
void state_close(state_t *state);

/* The directory was removed and made again. */
void state_move(state_t *state, int dirfd);

/* Fill the model; its GPUs from the driver are numbered already. False: there was none,
 * or it was damaged (logged, moved aside). */
bool state_load(state_t *state, model_t *model);

/* Write model->state, if it has one. Lock held, shared is enough. A failure is logged
 * once and again after a success. */
void state_save(model_t *model);

#endif /* RMM_FUSEFS_STATE_H */
