/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strtoull() accepts a sign, leading space and an octal zero, and needs a terminated
 * string: a log's columns are none, and "-1" must not become the largest number.
 */
#include "common/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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

static number_result_t
parse_digits(const char *text, size_t length, unsigned base, uint64_t *out)
{
    uint64_t value = 0;
    bool overflow = false;
    if (length == 0) {
        return NUMBER_MALFORMED;
    }
    for (size_t i = 0; i < length; i++) {
        unsigned digit = digit_value(text[i]);
        if (digit >= base) {
            return NUMBER_MALFORMED;
        }
        overflow = overflow || value > (UINT64_MAX - digit) / base;
        value = value * base + digit;
    }
    if (overflow) {
        return NUMBER_TOO_LARGE;
    }
    *out = value;
    return NUMBER_OK;
}

number_result_t number_parse_decimal(const char *text, size_t length, uint64_t *out)
{
    return parse_digits(text, length, 10, out);
}

number_result_t number_parse(const char *text, size_t length, uint64_t *out)
{
    if (length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        return parse_digits(text + 2, length - 2, 16, out);
    }
    return parse_digits(text, length, 10, out);
}

number_result_t number_parse_bytes(const char *text, size_t length, uint64_t *out)
{
    static const struct {
        const char *suffix;
        unsigned shift;
    } units[] = {{"KiB", 10}, {"MiB", 20}, {"GiB", 30}, {"TiB", 40}};
    unsigned shift = 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++) {
        if (length > 3 && memcmp(text + length - 3, units[i].suffix, 3) == 0) {
            shift = units[i].shift;
            length -= 3;
        }
    }
    uint64_t value;
    number_result_t result = parse_digits(text, length, 10, &value);
    if (result == NUMBER_OK && value > UINT64_MAX >> shift) {
        return NUMBER_TOO_LARGE;
    }
    if (result == NUMBER_OK) {
        *out = value << shift;
    }
    return result;
}

bool number_parse_fraction(const char *text, double *out)
{
    if (text[strspn(text, "0123456789.")] != '\0' ||
        strpbrk(text, "0123456789") == NULL) {
        return false;
    }
    char *end;
    double value = strtod(text, &end);
    if (*end != '\0' || !isfinite(value)) {
        return false;
    }
    *out = value;
    return true;
}
