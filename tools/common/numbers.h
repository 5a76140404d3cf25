/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the tools read and the library does not: hexadecimal addresses and fractions. As
 * strict as core/numbers.h, where the other numbers are.
 */
#ifndef RMM_TOOLS_COMMON_NUMBERS_H
#define RMM_TOOLS_COMMON_NUMBERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/numbers.h"

/* Decimal digits, or 0x and hexadecimal digits. */
rmm_number_result_t
number_parse_address(const char *text, size_t length, uint64_t *out);

/* A decimal fraction such as 0.5 or 10; false for anything else, and for overflow. */
bool number_parse_fraction(const char *text, double *out);

#endif /* RMM_TOOLS_COMMON_NUMBERS_H */
