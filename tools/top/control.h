/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Asks a program to reset a peak, to keep a limit, or to trim, through its control page, as rmmfs
 * does: only its user and root may do that. Other users get an error, whatever the modes of its
 * files are.
 *
 * The program obeys at its next allocation. Only a trim is waited for, at most CONTROL_WAIT_NS;
 * then it is withdrawn. A trim that rmmfs requests at the same moment may be lost.
 */
#ifndef RMM_TOP_CONTROL_H
#define RMM_TOP_CONTROL_H

#include "node/node.h"
#include "node/segments.h"
#include "top/ui.h"

#define CONTROL_WAIT_NS 100000000u

/* Carry out a request. One line in message says what was done, or why not. */
void control_do(
    const segments_t *segments, const node_t *node, const ui_request_t *request,
    char message[UI_MESSAGE_BYTES]);

#endif /* RMM_TOP_CONTROL_H */
