/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers that only the tools read: hexadecimal addresses and fractions. The functions are as
 * strict as core/numbers.h, which reads the other numbers.
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
