/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rmmfs --ping and --check: does the daemon answer, and why is a program not in the tree?
 *
 * Both only look, start no daemon and change nothing. What another process may make hang, a tree
 * or a file system of a user, is not touched but by ask.h.
 */
#ifndef RMM_FUSEFS_CHECK_H
#define RMM_FUSEFS_CHECK_H

#include "daemon/options.h"

/* EXIT_SUCCESS: the daemon on the mount point answers; else a line on stderr says what is wrong. */
int check_ping(const options_t *options);

/* Prints a line for each fact. EXIT_SUCCESS: all are as they should be. */
int check_run(const options_t *options);

#endif /* RMM_FUSEFS_CHECK_H */
