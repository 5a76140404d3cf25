/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Cleans text of unknown origin. Pure; runs over each byte once. Nearly all names are
 * ASCII, which never reaches the UTF-8 decoder.
 */
#include "segment/clean_text.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static bool is_printable_ascii(unsigned char byte)
{
    return byte >= 0x20 && byte < 0x7f;
}

/* Bytes of the character that `lead` begins; 0: it can begin none. */
static size_t utf8_length(unsigned char lead)
{
    if (lead >= 0xc2 && lead <= 0xdf) {
        return 2;
    }
    if (lead >= 0xe0 && lead <= 0xef) {
        return 3;
    }
    if (lead >= 0xf0 && lead <= 0xf4) {
        return 4;
    }
    return 0;
}

/* Refuses overlong forms, surrogates, what is beyond Unicode, and C1 controls. */
static bool code_is_allowed(uint32_t code, size_t length)
{
    static const uint32_t least[5] = {0, 0, 0xa0, 0x800, 0x10000};

    return code >= least[length] && code <= 0x10ffff &&
           !(code >= 0xd800 && code <= 0xdfff);
}

/* Length of the well-formed character of several bytes at text; 0: none. */
static size_t utf8_character(const unsigned char *text, size_t bytes)
{
    size_t length = utf8_length(text[0]);
    uint32_t code;

    if (length == 0 || length > bytes) {
        return 0;
    }
    code = text[0] & (0x7fu >> length);
    for (size_t i = 1; i < length; i++) {
        if ((text[i] & 0xc0) != 0x80) {
            return 0;
        }
        code = code << 6 | (text[i] & 0x3f);
    }
    return code_is_allowed(code, length) ? length : 0;
}

/* Where to end text[0..end), so that no character is cut in the middle. */
static size_t whole_characters(const char *text, size_t end)
{
    size_t start = end;

    while (start > 0 && end - start < 3 &&
           ((unsigned char)text[start - 1] & 0xc0) == 0x80) {
        start--;
    }
    if (start > 0 && utf8_length((unsigned char)text[start - 1]) > end - start + 1) {
        return start - 1;
    }
    return end;
}

void rmm__text_clean(char *text, size_t bytes)
{
    unsigned char *at = (unsigned char *)text;
    size_t end = strnlen(text, bytes);

    if (end == bytes) {
        end = whole_characters(text, bytes - 1);
        text[end] = '\0';
    }
    for (size_t i = 0; i < end;) {
        size_t length = is_printable_ascii(at[i]) ? 1 : utf8_character(at + i, end - i);

        if (length == 0) {
            at[i] = '?';
            length = 1;
        }
        i += length;
    }
}

void rmm__text_copy(char *target, size_t bytes, const char *source)
{
    size_t length = source == NULL ? 0 : strnlen(source, bytes);

    memset(target, 0, bytes);
    if (length > 0) {
        memcpy(target, source, length);
    }
    rmm__text_clean(target, bytes);
}
