/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The effect of writing to a file. Each write is one command. It either takes effect
 * completely, or fails with an errno and changes nothing.
 *
 *   peak_bytes   anything: this level's mark becomes the current value. gpuN and host:
 *                the daemon's mark, and a request to every live process there; below
 *                proc/<pid>: a request in its control page, obeyed at its next allocation
 *   total_bytes  reset: of gpuN and host, removes the part of ended processes from all
 *                totals and from lifetime_peak_bytes
 *   log_level    of the daemon: debug info warn error off; of a process: trace debug
 *                info warn error critical off, a request in its control page
 *   trace/enable 1 or 0, also a request in the control page
 *   limit_bytes  max, or bytes, KiB, MiB, GiB, TiB: also a request; it stays as long as the
 *                process, and the page shows it. Of gpuN and host: of all programs (limits.h)
 *   limits       a line: limit_lines.h
 *   diag/mode    modes joined by commas, or off: a request in the side file of the diagnosis that
 *                the write waits for
 *   trim         all, or bytes: a request that the write waits for (waiting_writes.h)
 *
 * Threads: the caller holds the model lock alone.
 */
#ifndef RMM_FUSEFS_CONTROL_H
#define RMM_FUSEFS_CONTROL_H

#include <stddef.h>

#include "control/waiting_writes.h"
#include "model/slots.h"
#include "model/tree.h"

typedef struct command {
    model_t *model;
    node_t node;
    uid_t uid;
    const char *bytes;
    size_t length;
    waiting_write_t
        *wait; /* of a file whose writes wait (tree_write_waits()); else NULL */
} command_t;

/*
 * 0, or a negative errno: -ENOENT gone, -EACCES not writable for uid, -EINVAL not a
 * command, -ESRCH the process has exited, -EOPNOTSUPP it cannot receive requests; those of
 * waiting_write_begin_trim() or diag_mode_ask(). After a 0, one with `wait` waits.
 */
int control_write(const command_t *command);

/* The limit as it is in the control pages; RMM_SEGMENT_NO_LIMIT: none. Of several segments of
 * one process the lowest: each obeys it by itself. */
uint64_t control_process_limit(const process_t *process, uint32_t device);
uint64_t control_resource_limit(const slot_view_t *view);

#endif /* RMM_FUSEFS_CONTROL_H */
