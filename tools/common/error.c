/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One error is one line, written with one call, so that lines of several processes do
 * not mix. Longer texts are cut. Arguments and names of files are in it: a control
 * character of theirs must not reach the terminal.
 */
#include "common/error.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "segment/clean_text.h"

void tool_error(const char *format, ...)
{
    char text[2048];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);

    for (char *c = strpbrk(text, "\r\n"); c != NULL; c = strpbrk(c, "\r\n")) {
        *c = ' ';
    }
    rmm__text_clean(text, sizeof text);
    fprintf(stderr, "%s: %s\n", tool_name, text);
}
