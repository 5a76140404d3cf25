/* SPDX-License-Identifier: Apache-2.0 */
/* Standard output and error: no file takes the descriptor of one that is closed, and at the end of
 * what a program prints a full disk or a closed descriptor is found out. */
#ifndef RMM_TOOLS_COMMON_STANDARD_OUTPUT_H
#define RMM_TOOLS_COMMON_STANDARD_OUTPUT_H

#include <stdbool.h>

/* First in main(). Reads and writes of a closed one fail as before, and a program that the caller
 * executes has it closed. */
void standard_output_begin(void);

/* Whether standard output has all of the text; else one line on stderr says why not. is_whole:
 * false if there was no memory for all of the text. */
bool standard_output_end(bool is_whole);

#endif /* RMM_TOOLS_COMMON_STANDARD_OUTPUT_H */
