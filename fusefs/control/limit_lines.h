/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Lines that set limits of groups: what is written to `limits`, and to limit_bytes of a device.
 *
 *   KIND NAME DEVICE BYTES   user 1001 gpu0 8GiB; slurm_job 7 all 20GiB; label train gpu1 none
 *   gpu DEVICE BYTES         of all programs together
 *
 * KIND is a kind of jobs (jobs.h). NAME of a user is his number, or his name in /etc/passwd. DEVICE
 * is gpuN, host, or all: each GPU by itself. BYTES with a unit; none removes the limit.
 *
 * A line that is refused is explained in the daemon's log, and to its user by an event.
 *
 * Threads: the model's lock is held alone.
 */
#ifndef RMM_FUSEFS_LIMIT_LINES_H
#define RMM_FUSEFS_LIMIT_LINES_H

#include <stddef.h>

#include "control/control.h"

/* 0, or a negative errno: -EINVAL no such line, -EPERM not for this user, or those of
 * limits_set(). After a 0 programs have their shares. */
int limit_line_write(const command_t *command);

/* UINT64_MAX: none. */
int limit_device_write(const command_t *command, uint64_t limit_bytes);
uint64_t limit_of_device(const model_t *model, uint32_t device);

#endif /* RMM_FUSEFS_LIMIT_LINES_H */
