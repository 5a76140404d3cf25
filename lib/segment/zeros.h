/* SPDX-License-Identifier: Apache-2.0 */
/* Pages that hold zeros need no memory in a file: they can be holes. */
#ifndef RMM_SEGMENT_ZEROS_H
#define RMM_SEGMENT_ZEROS_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

/* Whether these bytes, at least one, are all zero. */
static inline bool rmm__is_zero(const void *bytes, size_t count)
{
    const char *first = bytes;

    return first[0] == 0 && memcmp(first, first + 1, count - 1) == 0;
}

#endif /* RMM_SEGMENT_ZEROS_H */
