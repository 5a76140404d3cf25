/* SPDX-License-Identifier: Apache-2.0 */
/* The terminal's properties from the environment, and whether ncurses supports it. */
#ifndef RMM_TOP_TERMINAL_H
#define RMM_TOP_TERMINAL_H

#include <langinfo.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* After setlocale(). */
static inline bool terminal_is_utf8(void)
{
    return strcmp(nl_langinfo(CODESET), "UTF-8") == 0;
}

/* https://no-color.org: set to anything but "". */
static inline bool terminal_wants_color(void)
{
    const char *no_color = getenv("NO_COLOR");
    return no_color == NULL || no_color[0] == '\0';
}

/* Whether there is a description of $TERM, of something that moves a cursor. Asked before
 * newterm(), which leaks where it fails. */
bool terminal_is_known(void);

#endif /* RMM_TOP_TERMINAL_H */
