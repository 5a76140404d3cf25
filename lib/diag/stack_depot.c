/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with open addressing; see stack_depot.h. Nothing leaves it. */
#include "diag/stack_depot.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash.h"

#define SLOTS (2 * RMM_STACK_DEPOT_COUNT)

bool rmm__stack_depot_init(rmm_stack_depot_t *depot)
{
    static _Atomic(uint64_t) serials;

    *depot = (rmm_stack_depot_t){
        .serial = atomic_fetch_add_explicit(&serials, 1, memory_order_relaxed) + 1,
        .stacks = calloc(RMM_STACK_DEPOT_COUNT, sizeof(*depot->stacks)),
        .slots = calloc(SLOTS, sizeof(*depot->slots))};
    if (depot->stacks == NULL || depot->slots == NULL) {
        rmm__stack_depot_fini(depot);
        return false;
    }
    return true;
}

void rmm__stack_depot_fini(rmm_stack_depot_t *depot)
{
    free(depot->stacks);
    free(depot->slots);
    *depot = (rmm_stack_depot_t){.count = 0};
}

static uint32_t hash_of(const rmm_stack_raw_t *stack)
{
    uint64_t hash = stack->count;

    for (uint32_t i = 0; i < stack->count; i++) {
        hash = rmm__hash(hash ^ (uintptr_t)stack->frames[i]);
    }
    for (uint32_t i = 0; i < stack->line_count; i++) {
        hash = rmm__hash(hash ^ (hash >> 32) ^ stack->lines[i]);
    }
    return (uint32_t)(hash >> 40);
}

static bool is_same(const rmm_stack_raw_t *a, const rmm_stack_raw_t *b)
{
    return a->count == b->count && a->line_count == b->line_count &&
           memcmp(a->frames, b->frames, a->count * sizeof(a->frames[0])) == 0 &&
           memcmp(a->lines, b->lines, a->line_count * sizeof(a->lines[0])) == 0;
}

/* 0: there is no room. */
static uint32_t find_or_add(rmm_stack_depot_t *depot, const rmm_stack_raw_t *stack)
{
    uint32_t at = hash_of(stack) % SLOTS;

    while (depot->slots[at] != 0) {
        if (is_same(&depot->stacks[depot->slots[at] - 1], stack)) {
            return depot->slots[at];
        }
        at = (at + 1) % SLOTS;
    }
    if (depot->count == RMM_STACK_DEPOT_COUNT) {
        return 0;
    }
    depot->stacks[depot->count++] = *stack;
    depot->slots[at] = depot->count;
    return depot->count;
}

uint32_t rmm__stack_depot_put(rmm_stack_depot_t *depot, rmm_stack_raw_t *stack)
{
    if (stack->count == 0) {
        return 0;
    }
    if (stack->number == 0 || stack->depot != depot->serial) {
        stack->number = find_or_add(depot, stack);
        stack->depot = depot->serial;
    }
    return stack->number;
}

bool rmm__stack_depot_get(
    const rmm_stack_depot_t *depot, uint32_t number, rmm_stack_raw_t *out)
{
    if (number == 0 || number > depot->count) {
        return false;
    }
    *out = depot->stacks[number - 1];
    return true;
}
