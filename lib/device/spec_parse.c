/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The syntax of spec.h, and nothing else:
 *
 *   spec = part *("+" part) *("/" part)
 *   part = name *2(":" size) *(":" option), in any order
 *   name = a letter, then letters, digits and "_"; "-" is the same as "_"
 *   size = a number of bytes (core/numbers.h), or digits and % or ms
 *   option = a word of RMM_SPEC_OPTION_MAP; or "numa=" and digits
 *
 * No blanks, no signs, no fractions: what is nearly right is refused rather than guessed.
 */
#include "device/spec.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "core/numbers.h"

static const char *const letters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
static const char *const name_characters =
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-";

const char *
rmm__spec_show(const char *text, size_t length, char shown[RMM_SPEC_SHOWN_BYTES])
{
    size_t end = length < RMM_SPEC_SHOWN_BYTES ? length : RMM_SPEC_SHOWN_BYTES - 1;

    for (size_t i = 0; i < end; i++) {
        bool is_control = (unsigned char)text[i] < ' ' || text[i] == 0x7f;

        shown[i] = is_control ? '?' : text[i];
    }
    shown[end] = '\0';
    return shown;
}

/* The bit of an option's word; 0: it is none. */
static uint32_t option_of(const char *text, size_t length)
{
    static const struct {
        const char *word;
        uint32_t bit;
    } options[] = {
#define X(word, ours, bit) {#word, ours},
        RMM_SPEC_OPTION_MAP(X)
#undef X
    };

    for (size_t i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        if (strlen(options[i].word) == length &&
            memcmp(text, options[i].word, length) == 0) {
            return options[i].bit;
        }
    }
    return 0;
}

#define NODE "numa="

/* False: it is no node's number, or a second node. */
static bool parse_node(const char *text, size_t length, rmm_spec_part_t *part)
{
    const size_t word = sizeof(NODE) - 1;
    uint64_t node;

    if (length <= word || memcmp(text, NODE, word) != 0 ||
        rmm__number_parse(text + word, length - word, &node) != RMM_NUMBER_OK ||
        node > INT_MAX || (part->node != 0 && part->node != node + 1)) {
        return false;
    }
    part->options |= RMM_SPEC_NUMA;
    part->node = (uint32_t)node + 1;
    return true;
}

static bool parse_option(const char *text, size_t length, rmm_spec_part_t *part)
{
    uint32_t option = option_of(text, length);

    part->options |= option;
    return option != 0 || parse_node(text, length, part);
}

static bool parse_percent(const char *text, size_t length, uint64_t *out)
{
    return rmm__number_parse(text, length, out) == RMM_NUMBER_OK && *out >= 1 &&
           *out <= 100;
}

static bool parse_ms(const char *text, size_t length, uint64_t *out)
{
    return length > 2 && memcmp(text + length - 2, "ms", 2) == 0 &&
           rmm__number_parse(text, length - 2, out) == RMM_NUMBER_OK &&
           *out < UINT32_MAX;
}

static bool
parse_size(const char *text, size_t length, rmm_spec_size_t *size, char *reason)
{
    char shown[RMM_SPEC_SHOWN_BYTES];
    bool is_percent = length > 0 && text[length - 1] == '%';

    size->is_ms = parse_ms(text, length, &size->value);
    if (size->is_ms) {
        return true;
    }
    if (is_percent
            ? parse_percent(text, length - 1, &size->value)
            : rmm__number_parse_bytes(text, length, &size->value) == RMM_NUMBER_OK) {
        size->is_percent = is_percent;
        return true;
    }
    snprintf(
        reason, RMM_SPEC_REASON_BYTES,
        "'%s' is not a size (bytes, or with KiB, MiB, GiB, TiB or kB, MB, GB, TB, or "
        "1%% to 100%%)",
        rmm__spec_show(text, length, shown));
    return false;
}

static bool
parse_name(const char *text, size_t length, rmm_spec_part_t *part, char *reason)
{
    char shown[RMM_SPEC_SHOWN_BYTES];
    size_t good = strspn(text, name_characters);

    if (length == 0) {
        snprintf(reason, RMM_SPEC_REASON_BYTES, "a name is missing");
        return false;
    }
    if (good < length || strchr(letters, text[0]) == NULL ||
        length >= sizeof part->name) {
        snprintf(
            reason, RMM_SPEC_REASON_BYTES, "'%s' is not the name of a resource",
            rmm__spec_show(text, length, shown));
        return false;
    }
    for (size_t i = 0; i < length; i++) {
        part->name[i] = text[i] == '-' ? '_' : text[i];
    }
    part->name[length] = '\0';
    return true;
}

/* From text to the next "+" or "/", or the end. */
static bool
parse_part(const char *text, size_t length, rmm_spec_part_t *part, char *reason)
{
    const char *end = text + length;
    size_t word = strcspn(text, ":+/");

    memset(part, 0, sizeof(*part));
    if (!parse_name(text, word, part, reason)) {
        return false;
    }
    for (text += word; text < end; text += word) {
        text++; /* the colon */
        word = strcspn(text, ":+/");
        if (parse_option(text, word, part)) {
            continue;
        }
        if (part->size_count == RMM_SPEC_SIZES) {
            snprintf(
                reason, RMM_SPEC_REASON_BYTES, "'%s' has more than %d sizes",
                part->name, RMM_SPEC_SIZES);
            return false;
        }
        if (!parse_size(text, word, &part->sizes[part->size_count++], reason)) {
            return false;
        }
    }
    return true;
}

bool rmm__spec_parse(
    const char *text, rmm_spec_t *out, char reason[RMM_SPEC_REASON_BYTES])
{
    char before = '+';
    size_t length;

    memset(out, 0, sizeof(*out));
    do {
        length = strcspn(text, "+/");
        if (out->count == RMM_SPEC_PARTS) {
            snprintf(
                reason, RMM_SPEC_REASON_BYTES, "it has more than %d parts",
                RMM_SPEC_PARTS);
            return false;
        }
        if (!parse_part(text, length, &out->parts[out->count], reason)) {
            return false;
        }
        out->parts[out->count++].is_alternate = before == '/';
        text += length;
        before = *text++;
    } while (before != '\0');
    return true;
}
