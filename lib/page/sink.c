/* SPDX-License-Identifier: Apache-2.0 */
/* Writes texts to the destination of a page; see sink.h. */
#include "page/sink.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void put(rmm_sink_t *sink, const char *bytes, size_t length)
{
    sink->put(sink->to, bytes, length);
    sink->bytes += length;
}

void rmm__sink_puts(rmm_sink_t *sink, const char *text)
{
    put(sink, text, strlen(text));
}

void rmm__sink_printf(rmm_sink_t *sink, const char *format, ...)
{
    char text[RMM_SINK_PRINT_MAX + 1];
    va_list arguments;
    int length;
    va_start(arguments, format);
    length = vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    if (length > 0) {
        put(sink, text,
            length < RMM_SINK_PRINT_MAX ? (size_t)length : RMM_SINK_PRINT_MAX);
    }
}

/* NULL: stands for itself. */
static const char *entity_of(char byte)
{
    switch (byte) {
    case '&':
        return "&amp;";
    case '<':
        return "&lt;";
    case '>':
        return "&gt;";
    case '"':
        return "&quot;";
    case '\'':
        return "&#39;";
    default:
        return byte >= ' ' && byte < 0x7f ? NULL : "?";
    }
}

void rmm__sink_foreign(rmm_sink_t *sink, const char *text)
{
    while (*text != '\0') {
        size_t plain = 0;
        while (text[plain] != '\0' && entity_of(text[plain]) == NULL) {
            plain++;
        }
        if (plain > 0) {
            put(sink, text, plain);
            text += plain;
        } else {
            rmm__sink_puts(sink, entity_of(*text++));
        }
    }
}
