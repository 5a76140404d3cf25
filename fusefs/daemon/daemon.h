/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon as a process: mount, leave the terminal, serve, unmount.
 */
#ifndef RMM_FUSEFS_DAEMON_H
#define RMM_FUSEFS_DAEMON_H

#include "daemon/options.h"

/*
 * Returns the exit status. Without -f the process that returns from here (or exits) with
 * 0 does so when the files are there; every failure before that is one line on stderr and
 * leaves nothing mounted.
 */
int daemon_run(const options_t *options);

#endif /* RMM_FUSEFS_DAEMON_H */
