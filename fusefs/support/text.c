/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Growing text; see text.h. Memory doubles, so n appends cost n in total.
 */
#include "support/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void text_init(text_t *text)
{
    memset(text, 0, offsetof(text_t, small));
    text->data = text->small;
    text->capacity = sizeof(text->small);
    text->limit = TEXT_BYTES_MAX;
}

/* --- memory --------------------------------------------------------------------------- */

bool text_take_scratch(text_t *text, size_t bytes)
{
    if (text->budget == NULL || bytes == 0) {
        return true;
    }
    if (!budget_take(text->budget, text->uid, BUDGET_TEXT_BYTES, bytes)) {
        text->failed = TEXT_OVER_BUDGET;
        return false;
    }
    if (!memory_take(&text->budget->memory, bytes)) {
        text_give_scratch(text, bytes);
        text->failed = TEXT_NO_MEMORY;
        return false;
    }
    return true;
}

void text_give_scratch(text_t *text, size_t bytes)
{
    if (text->budget != NULL && bytes != 0) {
        budget_give(text->budget, text->uid, BUDGET_TEXT_BYTES, bytes);
    }
}

void text_move(text_t *to, text_t *from)
{
    text_fini(to);
    *to = *from;
    if (from->data == from->small) {
        to->data = to->small;
    }
    text_init(from);
}

void text_charge(text_t *text, budget_t *budget, uid_t uid)
{
    text->budget = budget;
    text->uid = uid;
}

void text_fini(text_t *text)
{
    if (text->data != text->small) {
        free(text->data);
        text_give_scratch(text, text->charged);
    }
    text_init(text);
}

int text_error(const text_t *text)
{
    switch (text->failed) {
    case TEXT_NO_MEMORY:
        return -ENOMEM;
    case TEXT_TOO_LONG:
        return -EFBIG;
    case TEXT_OVER_BUDGET:
        return -EDQUOT;
    case TEXT_GOOD:
        break;
    }
    return 0;
}

void text_clear(text_t *text)
{
    text->length = 0;
    text->failed = TEXT_GOOD;
    text->row = 0;
    text->rows_left_out = 0;
}

/* False and failed: there is none. */
static bool set_capacity(text_t *text, size_t capacity)
{
    bool was_small = text->data == text->small;
    size_t more = capacity > text->charged ? capacity - text->charged : 0;
    if (!text_take_scratch(text, more)) {
        return false;
    }
    char *data = realloc(was_small ? NULL : text->data, capacity);
    if (data == NULL) {
        text_give_scratch(text, more);
        text->failed = TEXT_NO_MEMORY;
        return false;
    }
    if (was_small) {
        memcpy(data, text->small, text->length);
    }
    text_give_scratch(text, capacity < text->charged ? text->charged - capacity : 0);
    text->data = data;
    text->capacity = text->charged = capacity;
    return true;
}

/* Room for `more` bytes beyond length; false and failed if there is none. */
static bool make_room(text_t *text, size_t more)
{
    size_t most = text->limit + TEXT_ROW_BYTES_MAX;
    if (text->failed != TEXT_GOOD) {
        return false;
    }
    if (more > most || text->length > most - more) {
        text->failed = TEXT_TOO_LONG;
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
    return set_capacity(text, capacity < most ? capacity : most);
}

void text_trim(text_t *text)
{
    if (text->data == text->small) {
        return;
    }
    if (text->length > sizeof(text->small)) {
        (void)set_capacity(text, text->length); /* shrinks */
        return;
    }
    memcpy(text->small, text->data, text->length);
    free(text->data);
    text_give_scratch(text, text->charged);
    text->charged = 0;
    text->data = text->small;
    text->capacity = sizeof(text->small);
}

/* --- rows ----------------------------------------------------------------------------- */

void text_begin_row(text_t *text)
{
    text->row = text->length;
}

bool text_end_row(text_t *text)
{
    bool too_long = text->failed == TEXT_TOO_LONG || text->length > text->limit;
    if (too_long) {
        text->length = text->row;
        text->failed = TEXT_GOOD;
        text->rows_left_out++;
    }
    return !too_long && text->failed == TEXT_GOOD;
}

void text_leave_out(text_t *text, uint64_t rows)
{
    text->rows_left_out += rows;
}

void text_end_rows(text_t *text)
{
    if (text->rows_left_out > 0) {
        text_printf(
            text, "# %" PRIu64 " more rows are not shown: over budget\n",
            text->rows_left_out);
        text->rows_left_out = 0;
    }
}

/* --- content -------------------------------------------------------------------------- */

char *text_reserve(text_t *text, size_t bytes)
{
    return make_room(text, bytes) ? text->data + text->length : NULL;
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
        text->failed = TEXT_NO_MEMORY;
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
    size_t length = strlen(string);
    char *to = text_reserve(text, length);
    if (to == NULL) {
        return;
    }
    for (size_t i = 0; i < length; i++) {
        to[i] = text_shown(string[i], '?');
    }
    text->length += length;
}
