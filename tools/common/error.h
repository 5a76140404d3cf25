/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Error messages of a program: one line on stderr that begins with its name.
 */
#ifndef RMM_TOOLS_COMMON_ERROR_H
#define RMM_TOOLS_COMMON_ERROR_H

/* Exit status of a program used in a way that it does not offer. */
#define TOOL_EXIT_USAGE 2

/* The name that lines begin with; each program defines it. */
extern const char *const tool_name;

/* Print "<tool_name>: <text>\n"; in the text line breaks become spaces, and '?' stands for each
 * other control character and what is no UTF-8. */
void tool_error(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* An argument as such a line names it: quotes stand for an empty one. */
static inline const char *tool_shown(const char *argument)
{
    return argument[0] != '\0' ? argument : "\"\"";
}

#endif /* RMM_TOOLS_COMMON_ERROR_H */
