/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Texts of other programs in files whose format allows no invalid UTF-8 and no control characters
 * (XML 1.0, JSON): '?' stands for each byte that is neither. Line breaks and tabs stay.
 */
#ifndef RMM_TOOLS_RUN_TEXT_H
#define RMM_TOOLS_RUN_TEXT_H

#include <stddef.h>

/* Bytes of the character that the text begins with; 0: none that may be in such a file. */
size_t run_text_character(const char *text);

/* In place. */
void run_text_clean(char *text);

#endif /* RMM_TOOLS_RUN_TEXT_H */
