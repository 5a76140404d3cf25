/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where the diagnosis library is. Looked for, first found wins:
 *   $RMM_INJECT_LIBRARY, which must then be a shared library;
 *   the library folder of the installation that the program lies in;
 *   the build folder that the program lies in.
 * Relative to the program, so that an installation can be moved.
 */
#ifndef RMM_TOOLS_RUN_INJECT_PATH_H
#define RMM_TOOLS_RUN_INJECT_PATH_H

#include <limits.h>
#include <stdbool.h>

#define INJECT_MESSAGE_MAX (PATH_MAX + 256)

/* Writes an absolute path; false: one line in message. */
bool inject_path_find(char path[PATH_MAX], char message[INJECT_MESSAGE_MAX]);

#endif /* RMM_TOOLS_RUN_INJECT_PATH_H */
