/* SPDX-License-Identifier: Apache-2.0 */
/* Texts for strict formats; see text.h. */
#include "run/text.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes that a first byte announces; 0: none begins so. */
static size_t length_of(unsigned char first)
{
    if (first < 0x80) {
        return 1;
    }
    if (first >= 0xc2 && first < 0xe0) {
        return 2;
    }
    if (first >= 0xe0 && first < 0xf0) {
        return 3;
    }
    return first >= 0xf0 && first < 0xf5 ? 4 : 0;
}

/* The characters of XML 1.0: JSON has more, but they are of no use to a reader. */
static bool is_allowed(uint32_t code)
{
    return code == '\t' || code == '\n' || code == '\r' ||
           (code >= 0x20 && code != 0x7f && code < 0xd800) ||
           (code >= 0xe000 && code != 0xfffe && code != 0xffff && code < 0x110000);
}

size_t run_text_character(const char *text)
{
    static const unsigned char masks[] = {0, 0x7f, 0x1f, 0x0f, 0x07};
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t length = length_of((unsigned char)text[0]);
    uint32_t code = (unsigned char)text[0] & masks[length];
    for (size_t i = 1; i < length; i++) {
        unsigned char byte = (unsigned char)text[i];
        if ((byte & 0xc0) != 0x80) { /* also the end of the text */
            return 0;
        }
        code = code << 6 | (byte & 0x3fu);
    }
    return length > 0 && code >= least[length] && is_allowed(code) ? length : 0;
}

void run_text_clean(char *text)
{
    while (*text != '\0') {
        size_t length = run_text_character(text);
        if (length == 0) {
            *text = '?';
            length = 1;
        }
        text += length;
    }
}
