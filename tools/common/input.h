/* SPDX-License-Identifier: Apache-2.0 */
/* Files that the tools read. */
#ifndef RMM_TOOLS_COMMON_INPUT_H
#define RMM_TOOLS_COMMON_INPUT_H

#include <stdio.h>

/* A descriptor for reading, which the caller closes; -1: errno says why. The path "-" names
 * standard input; a file of that name is "./-". */
int input_open(const char *path);

/* The same as a stream; NULL: errno says why. */
FILE *input_open_stream(const char *path);

#endif /* RMM_TOOLS_COMMON_INPUT_H */
