/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and sizes as people write them. Strict: no sign, no blank, nothing after them. The
 * library and the tools each compile this file, so that both read the same texts.
 */
#ifndef RMM_CORE_NUMBERS_H
#define RMM_CORE_NUMBERS_H

#include <stddef.h>
#include <stdint.h>

typedef enum rmm_number_result {
    RMM_NUMBER_OK,
    RMM_NUMBER_MALFORMED,
    RMM_NUMBER_TOO_LARGE /* does not fit in 64 bits */
} rmm_number_result_t;

/* The output is written on RMM_NUMBER_OK only. */

/* Digits of a base of up to 16. */
rmm_number_result_t
rmm__number_parse_digits(const char *text, size_t length, unsigned base, uint64_t *out);

/* Decimal digits. */
rmm_number_result_t rmm__number_parse(const char *text, size_t length, uint64_t *out);

/* Decimal digits and optionally KiB, MiB, GiB, TiB (powers of 1024), kB, MB, GB, TB (powers of
 * 1000) or B, in any case; with a unit also a fraction, "1.5GiB". A bare K or G is refused: to some
 * it is 1000, to others 1024. */
rmm_number_result_t
rmm__number_parse_bytes(const char *text, size_t length, uint64_t *out);

#endif /* RMM_CORE_NUMBERS_H */
