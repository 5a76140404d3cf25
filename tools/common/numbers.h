/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers as people and logs write them. Strict: no sign, no space, nothing behind.
 */
#ifndef RMM_TOOLS_COMMON_NUMBERS_H
#define RMM_TOOLS_COMMON_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum number_result {
    NUMBER_OK,
    NUMBER_MALFORMED,
    NUMBER_TOO_LARGE /* does not fit in 64 bits */
} number_result_t;

/* Decimal digits. */
number_result_t number_parse_decimal(const char *text, size_t length, uint64_t *out);

/* Decimal digits, or 0x and hexadecimal digits. */
number_result_t number_parse(const char *text, size_t length, uint64_t *out);

/* Decimal digits and optionally KiB, MiB, GiB or TiB. */
number_result_t number_parse_bytes(const char *text, size_t length, uint64_t *out);

/* A decimal fraction such as 0.5 or 10; false for anything else, and for overflow. */
bool number_parse_fraction(const char *text, double *out);

#endif /* RMM_TOOLS_COMMON_NUMBERS_H */
