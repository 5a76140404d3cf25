/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strtoull() accepts a sign, leading space and an octal zero, and needs a terminated
 * string: a column of a log has no terminator, and "-1" must not become the largest number.
 */
#include "core/numbers.h"

#include <stdbool.h>
#include <string.h>
#include <strings.h>

/* A fraction times a TiB fits in 64 bits. */
#define FRACTION_DIGITS_MAX 6

/* The digit's value, or 255. */
static unsigned digit_value(char c)
{
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0');
    }
    if (c >= 'a' && c <= 'f') {
        return (unsigned)(c - 'a') + 10;
    }
    if (c >= 'A' && c <= 'F') {
        return (unsigned)(c - 'A') + 10;
    }
    return 255;
}

rmm_number_result_t
rmm__number_parse_digits(const char *text, size_t length, unsigned base, uint64_t *out)
{
    uint64_t value = 0;
    bool overflow = false;
    if (length == 0) {
        return RMM_NUMBER_MALFORMED;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned digit = digit_value(text[i]);
        if (digit >= base) {
            return RMM_NUMBER_MALFORMED;
        }
        overflow = overflow || value > (UINT64_MAX - digit) / base;
        value = value * base + digit;
    }
    if (overflow) {
        return RMM_NUMBER_TOO_LARGE;
    }
    *out = value;
    return RMM_NUMBER_OK;
}

rmm_number_result_t rmm__number_parse(const char *text, size_t length, uint64_t *out)
{
    return rmm__number_parse_digits(text, length, 10, out);
}

typedef struct unit {
    const char *suffix;
    uint64_t bytes;
} unit_t;

/* The unit at the end of the text, whose length becomes that of the number; NULL: there is none. */
static const unit_t *take_unit(const char *text, size_t *length)
{
    static const unit_t units[] = {
        {"KiB", UINT64_C(1) << 10},
        {"MiB", UINT64_C(1) << 20},
        {"GiB", UINT64_C(1) << 30},
        {"TiB", UINT64_C(1) << 40},
        {"kB", 1000},
        {"MB", 1000000},
        {"GB", 1000000000},
        {"TB", UINT64_C(1000000000000)},
        {"B", 1}};

    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        size_t suffix = strlen(units[i].suffix);

        if (*length > suffix &&
            strncasecmp(text + *length - suffix, units[i].suffix, suffix) == 0) {
            *length -= suffix;
            return &units[i];
        }
    }
    return NULL;
}

/* The bytes of a decimal fraction of a unit, rounded down: "5" of GiB is half of it. */
static rmm_number_result_t
parse_fraction(const char *digits, size_t length, const unit_t *unit, uint64_t *out)
{
    uint64_t fraction;
    uint64_t whole = 1;

    if (unit == NULL || length > FRACTION_DIGITS_MAX ||
        rmm__number_parse(digits, length, &fraction) != RMM_NUMBER_OK) {
        return RMM_NUMBER_MALFORMED;
    }
    for (size_t i = 0; i < length; i++) {
        whole *= 10;
    }
    *out = fraction * unit->bytes / whole;
    return RMM_NUMBER_OK;
}

rmm_number_result_t
rmm__number_parse_bytes(const char *text, size_t length, uint64_t *out)
{
    const unit_t *unit = take_unit(text, &length);
    const char *point = memchr(text, '.', length);
    size_t digits = point != NULL ? (size_t)(point - text) : length;
    uint64_t factor = unit != NULL ? unit->bytes : 1;
    uint64_t value, fraction = 0;
    rmm_number_result_t result = rmm__number_parse(text, digits, &value);

    if (result == RMM_NUMBER_OK && point != NULL) {
        result = parse_fraction(point + 1, length - digits - 1, unit, &fraction);
    }
    if (result == RMM_NUMBER_OK && value > (UINT64_MAX - fraction) / factor) {
        result = RMM_NUMBER_TOO_LARGE;
    }
    if (result == RMM_NUMBER_OK) {
        *out = value * factor + fraction;
    }
    return result;
}
