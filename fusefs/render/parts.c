/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and lines; see parts.h.
 */
#include "render/parts.h"

#include <inttypes.h>
#include <string.h>

/* --- numbers -------------------------------------------------------------------------- */

static void put_in_text(void *to, const char *bytes, size_t length)
{
    text_append(to, bytes, length);
}

rmm_sink_t render_sink(text_t *text)
{
    return (rmm_sink_t){.put = put_in_text, .to = text};
}

/* snprintf is most of what a value file costs: a quarter of it is enough. */
void render_number(text_t *text, uint64_t value)
{
    char digits[24];
    size_t at = sizeof(digits);
    if (value == FIGURE_UNKNOWN) {
        text_append(text, "-1", 2);
        return;
    }
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    text_append(text, digits + at, sizeof(digits) - at);
}

void render_value(text_t *text, uint64_t value)
{
    render_number(text, value);
    text_append(text, "\n", 1);
}

void render_column(text_t *text, uint64_t value)
{
    render_number(text, value);
    text_append(text, " ", 1);
}

void render_key(text_t *text, const char *key, uint64_t value)
{
    text_puts(text, key);
    text_append(text, " ", 1);
    render_value(text, value);
}

void render_string(text_t *text, const char *string)
{
    text_put_foreign(text, string[0] != '\0' ? string : "-1");
    text_append(text, "\n", 1);
}

void render_fragmentation(text_t *text, const figures_t *figures)
{
    uint64_t thousandths = figures_fragmentation(figures);
    if (thousandths == FIGURE_UNKNOWN) {
        text_puts(text, "-1\n");
    } else {
        text_printf(
            text, "%" PRIu64 ".%03" PRIu64 "\n", thousandths / 1000,
            thousandths % 1000);
    }
}

/* --- strings in quotes ------------------------------------------------------------------ */

void put_quoted(text_t *text, const char *string)
{
    char *begin = text_reserve(text, 2 * strlen(string) + 2); /* all of it escaped */
    char *to = begin;
    if (begin == NULL) {
        return;
    }
    *to++ = '"';
    for (; *string != '\0'; string++) {
        const char shown = text_shown(*string, '?');
        if (shown == '"' || shown == '\\') {
            *to++ = '\\';
        }
        *to++ = shown;
    }
    *to++ = '"';
    text->length += (size_t)(to - begin);
}

void put_text_key(text_t *text, const char *key, const char *value)
{
    text_printf(text, ", \"%s\": ", key);
    if (value[0] != '\0') {
        put_quoted(text, value);
    } else {
        text_puts(text, "null");
    }
}

void put_number_key(text_t *text, const char *key, bool is_known, uint64_t value)
{
    text_printf(text, ", \"%s\": ", key);
    if (is_known) {
        render_number(text, value);
    } else {
        text_puts(text, "null");
    }
}

bool is_shown_to(const hiding_t *hiding, uid_t owner, const text_t *text)
{
    return hiding_shows(hiding, owner, text->uid, text->is_member);
}
