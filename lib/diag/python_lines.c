/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A hash table with open addressing; see python_lines.h. Nothing leaves it. Two threads that add
 * the same line at a time may both take an entry for it; only one of the two gets a number.
 */
#include "diag/python_lines.h"

#include <stdatomic.h>
#include <string.h>

#include "core/hash.h"

#define SLOTS (2 * RMM_DIAG_LINES_COUNT)

static rmm_diag_line_t lines[RMM_DIAG_LINES_COUNT]; /* number 1 is the first */
static _Atomic(uint32_t) slots[SLOTS];              /* numbers, by hash; 0: free */
static _Atomic(uint32_t) taken; /* entries, those in vain included */

static uint32_t hash_of(const rmm_diag_line_t *line)
{
    uint64_t hash = rmm__hash_text(RMM_HASH_BEGIN ^ line->number, line->file);

    return (uint32_t)(rmm__hash(rmm__hash_text(hash, line->function)) >> 40);
}

/* 0: there is no room. */
static uint32_t make_entry(const rmm_diag_line_t *line)
{
    uint32_t at = atomic_load_explicit(&taken, memory_order_relaxed);

    do {
        if (at == RMM_DIAG_LINES_COUNT) {
            return 0;
        }
    } while (!atomic_compare_exchange_weak_explicit(
        &taken, &at, at + 1, memory_order_relaxed, memory_order_relaxed));
    lines[at] = *line;
    return at + 1;
}

uint32_t rmm__python_line_put(const rmm_diag_line_t *line)
{
    uint32_t at = hash_of(line) % SLOTS, own = 0;

    for (;;) {
        /* acquire: the line is written; pairs with the release below */
        uint32_t number = atomic_load_explicit(&slots[at], memory_order_acquire);

        if (number == 0) {
            own = own == 0 ? make_entry(line) : own;
            if (own == 0 || atomic_compare_exchange_strong_explicit(
                                &slots[at], &number, own, memory_order_release,
                                memory_order_acquire)) {
                return own;
            }
        }
        if (memcmp(&lines[number - 1], line, sizeof(*line)) == 0) {
            return number;
        }
        at = (at + 1) % SLOTS;
    }
}

const rmm_diag_line_t *rmm__python_line_get(uint32_t number)
{
    return number == 0 || number > RMM_DIAG_LINES_COUNT ? NULL : &lines[number - 1];
}
