/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing text; see text.h. Memory doubles, so n appends cost n in total.
 */
#include "text.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_init(text_t *text)
{
    text->data = text->small;
    text->length = 0;
    text->capacity = sizeof(text->small);
    text->failed = false;
}

void text_fini(text_t *text)
{
    if (text->data != text->small) {
        free(text->data);
    }
    text_init(text);
}

void text_clear(text_t *text)
{
    text->length = 0;
    text->failed = false;
}

/* Room for `more` bytes beyond length; false and failed if there is none. */
static bool make_room(text_t *text, size_t more)
{
    if (text->failed || more > SIZE_MAX / 4) {
        text->failed = true;
        return false;
    }
    size_t need = text->length + more;
    if (need <= text->capacity) {
        return true;
    }
    size_t capacity = text->capacity;
    while (capacity < need) {
        capacity *= 2;
    }
    bool was_small = text->data == text->small;
    char *data = realloc(was_small ? NULL : text->data, capacity);
    if (data == NULL) {
        text->failed = true;
        return false;
    }
    if (was_small) {
        memcpy(data, text->small, text->length);
    }
    text->data = data;
    text->capacity = capacity;
    return true;
}

void text_append(text_t *text, const char *bytes, size_t length)
{
    if (make_room(text, length)) {
        memcpy(text->data + text->length, bytes, length);
        text->length += length;
    }
}

void text_puts(text_t *text, const char *string)
{
    text_append(text, string, strlen(string));
}

void text_printf(text_t *text, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    size_t room = text->capacity - text->length;
    int length = vsnprintf(text->data + text->length, room, format, args);
    va_end(args);
    if (length < 0) {
        text->failed = true;
        return;
    }
    if ((size_t)length >= room) { /* was cut: vsnprintf wants room for its NUL */
        if (!make_room(text, (size_t)length + 1)) {
            return;
        }
        va_start(args, format);
        (void)vsnprintf(text->data + text->length, (size_t)length + 1, format, args);
        va_end(args);
    }
    text->length += (size_t)length;
}

void text_put_foreign(text_t *text, const char *string)
{
    for (const char *c = string; *c != '\0'; c++) {
        unsigned char byte = (unsigned char)*c;
        char shown = (byte < 0x20 || byte == 0x7f) ? '?' : *c;
        text_append(text, &shown, 1);
    }
}
