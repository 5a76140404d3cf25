/* SPDX-License-Identifier: Apache-2.0 */
/* The hash functions of all tables, but for that of the pools' blocks (pool/blocks_impl.h). */
#ifndef RMM_CORE_HASH_H
#define RMM_CORE_HASH_H

#include <stdint.h>

/* Fibonacci hashing (Knuth, The Art of Computer Programming, vol. 3, 6.4), 2^64 / phi: the higher a
 * bit of the result, the more bits of the key it depends on. Bits that are 0 in all keys, as of
 * addresses, are better shifted out where few bits are taken. */
static inline uint64_t rmm__hash(uint64_t key)
{
    return key * UINT64_C(0x9e3779b97f4a7c15);
}

/* FNV-1a of a string, from any beginning (Fowler, Noll, Vo: isthe.com/chongo/tech/comp/fnv). */
#define RMM_HASH_BEGIN UINT64_C(0xcbf29ce484222325)

static inline uint64_t rmm__hash_text(uint64_t hash, const char *text)
{
    for (; *text != '\0'; text++) {
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    }
    return hash;
}

#endif /* RMM_CORE_HASH_H */
