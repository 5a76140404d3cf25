/* SPDX-License-Identifier: Apache-2.0 */
/* FNV-1a of a string, from any beginning (Fowler, Noll, Vo: isthe.com/chongo/tech/comp/fnv). */
#ifndef RMM_FUSEFS_HASH_H
#define RMM_FUSEFS_HASH_H

#include <stdint.h>

#define HASH_BEGIN UINT64_C(0xcbf29ce484222325)

static inline uint64_t hash_string(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return hash;
}

#endif /* RMM_FUSEFS_HASH_H */
