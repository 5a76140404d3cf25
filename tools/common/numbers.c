/* SPDX-License-Identifier: Apache-2.0 */
#include "common/numbers.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

rmm_number_result_t number_parse_address(const char *text, size_t length, uint64_t *out)
{
    if (length > 2 && text[0] == '0' && (text[1] == 'x' || text[1] == 'X')) {
        return rmm__number_parse_digits(text + 2, length - 2, 16, out);
    }
    return rmm__number_parse(text, length, out);
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
