/* SPDX-License-Identifier: Apache-2.0 */
/*
 * strtoull() accepts a sign, leading space and an octal zero, and needs a terminated
 * string: a column of a log has no terminator, and "-1" must not become the largest number.
 */
#include "core/numbers.h"

#include <stdbool.h>
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

rmm_number_result_t
rmm__number_parse_bytes(const char *text, size_t length, uint64_t *out)
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
    rmm_number_result_t result = rmm__number_parse_digits(text, length, 10, &value);
    if (result == RMM_NUMBER_OK && value > UINT64_MAX >> shift) {
        return RMM_NUMBER_TOO_LARGE;
    }
    if (result == RMM_NUMBER_OK) {
        *out = value << shift;
    }
    return result;
}
