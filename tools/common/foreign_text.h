/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of files and programs in what is printed for people: a terminal obeys the control
 * characters that such a name may contain, so '?' stands for each of them.
 */
#ifndef RMM_TOOLS_COMMON_FOREIGN_TEXT_H
#define RMM_TOOLS_COMMON_FOREIGN_TEXT_H

#include <stdio.h>

/* Cut to PATH_MAX. */
void foreign_text_print(const char *text, FILE *out);

#endif /* RMM_TOOLS_COMMON_FOREIGN_TEXT_H */
