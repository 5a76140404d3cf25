/* SPDX-License-Identifier: Apache-2.0 */
/* Parses names of files in the runtime directory. Pure. */
#include "segment/segment_name.h"

#include <stdint.h>
#include <string.h>

#define HEX_DIGITS 16

/* Decimal without leading zeros, as printed; 0 bytes: no uid. */
static size_t parse_uid(const char *text, uid_t *uid)
{
    uint64_t value = 0;
    size_t digits = 0;

    while (text[digits] >= '0' && text[digits] <= '9' && digits < 11) {
        value = value * 10 + (uint64_t)(text[digits] - '0');
        digits++;
    }
    if ((digits > 1 && text[0] == '0') || value >= UINT32_MAX) {
        return 0; /* (uid_t)-1 is nobody's */
    }
    *uid = (uid_t)value;
    return digits;
}

/* Length of "<uid>.<16 hex digits>" at the start of text; 0: it is not there. */
static size_t parse_stem(const char *text, uid_t *uid)
{
    size_t digits = parse_uid(text, uid);

    if (digits == 0 || text[digits] != '.') {
        return 0;
    }
    text += digits + 1;
    return strspn(text, "0123456789abcdef") == HEX_DIGITS ? digits + 1 + HEX_DIGITS : 0;
}

static int is_suffix(const char *text)
{
    size_t length = strspn(text, "abcdefghijklmnopqrstuvwxyz0123456789_");

    return length > 0 && length < RMM_SUFFIX_BYTES && text[length] == '\0';
}

rmm_file_name_t rmm__file_name_parse(const char *name)
{
    rmm_file_name_t parsed = {.kind = RMM_FILE_OTHER};
    size_t hidden = name[0] == '.';
    size_t stem_bytes = parse_stem(name + hidden, &parsed.uid);
    const char *rest = name + hidden + stem_bytes;

    if (stem_bytes == 0) {
        return parsed;
    }
    parsed.stem_bytes = stem_bytes;
    if (hidden) {
        parsed.kind = strcmp(rest, ".tmp") == 0 ? RMM_FILE_TEMPORARY : RMM_FILE_OTHER;
    } else if (rest[0] == '\0') {
        parsed.kind = RMM_FILE_SEGMENT;
    } else if (rest[0] == '.' && is_suffix(rest + 1)) {
        parsed.kind = RMM_FILE_SIDE;
    }
    return parsed;
}
