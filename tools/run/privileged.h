/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Programs that get other rights than their caller: set-user-ID, set-group-ID, capabilities of the
 * file. They take no library from their caller's environment, so they cannot be diagnosed.
 */
#ifndef RMM_TOOLS_RUN_PRIVILEGED_H
#define RMM_TOOLS_RUN_PRIVILEGED_H

#include <stdbool.h>

/* The file that execvp() takes for this name. False also if there is none. */
bool run_is_privileged(const char *program);

#endif /* RMM_TOOLS_RUN_PRIVILEGED_H */
