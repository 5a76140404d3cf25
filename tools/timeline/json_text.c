/* SPDX-License-Identifier: Apache-2.0 */
/* Printing of JSON; see json_text.h. */
#include "timeline/json_text.h"

#include <stdbool.h>

/* "</script>" and "<!--" would end or change a script of HTML, wherever they stand in it. */
static bool is_plain(char c)
{
    return (unsigned char)c >= ' ' && c != '"' && c != '\\' && c != '<' && c != '>' &&
           c != '&' && c != '\x7f';
}

void json_text_put(FILE *out, const char *text)
{
    fputc('"', out);
    while (*text != '\0') {
        size_t plain = 0;
        while (is_plain(text[plain])) { /* which the end is not */
            plain++;
        }
        (void)fwrite(text, 1, plain, out);
        text += plain;
        if (*text != '\0') {
            fprintf(out, "\\u%04x", (unsigned char)*text++);
        }
    }
    fputc('"', out);
}
