/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect of writing to a file. Each write is one command. It either takes effect
 * completely, or fails with an errno and changes nothing.
 *
 *   peak_bytes   anything: this level's mark becomes the current value. gpuN and host:
 *                the daemon's mark, and a request to every live process there; below
 *                proc/<pid>: a request in its control page, obeyed at its next allocation
 *   log_level    of the daemon: debug info warn error off; of a process: trace debug
 *                info warn error critical off, a request in its control page
 *   trace/enable 1 or 0, also a request in the control page
 *
 * Threads: the caller holds the model lock alone.
 */
#ifndef RMM_FUSEFS_CONTROL_H
#define RMM_FUSEFS_CONTROL_H

#include <stddef.h>

#include "tree.h"

/*
 * 0, or a negative errno: -ENOENT gone, -EACCES not writable for uid, -EINVAL not a
 * command, -ESRCH the process has exited, -EOPNOTSUPP it cannot be told.
 */
int control_write(
    model_t *model, node_t node, uid_t uid, const char *bytes, size_t length);

#endif /* RMM_FUSEFS_CONTROL_H */
