/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Switches the modes of a program's diagnosis through its side file (diag/diag_format.h): the
 * daemon writes one word there, which the program reads at each event and each block.
 *
 * The side file is untrusted. It affects only the program that wrote it: the daemon requests
 * modes, and shows those that the program reports to be in force.
 *
 * Threads: the caller holds the model lock alone.
 */
#ifndef RMM_FUSEFS_DIAG_MODE_H
#define RMM_FUSEFS_DIAG_MODE_H

#include <stdint.h>

#include "diag/modes.h"
#include "model/model.h"
#include "model/tree.h"

#define DIAG_MODE_WORD_BYTES RMM_DIAG_MODE_WORD_BYTES

/* 0, with the serial of the segment that got the request, or a negative errno: -ENOENT gone,
 * -ESRCH the process has exited, -EOPNOTSUPP it is not diagnosed, or is by a library that sees
 * nothing or is unknown. The log says which. */
int diag_mode_ask(model_t *model, node_t node, uint32_t modes, uint64_t *serial_out);

/* 0: the last request is in force; -EAGAIN: not yet; -EOPNOTSUPP: a mode is not available,
 * and the log says which. */
int diag_mode_answer(const member_t *member);

/* Log that a word is not a mode. */
void diag_mode_refused(
    const model_t *model, node_t node, uid_t uid,
    const char unknown[DIAG_MODE_WORD_BYTES]);

#endif /* RMM_FUSEFS_DIAG_MODE_H */
