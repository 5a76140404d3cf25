/* SPDX-License-Identifier: Apache-2.0 */
/* The list of refused allocations; see refusals.h. */
#include "model/refusals.h"

#include <stdlib.h>
#include <string.h>

void refusals_init(refusals_t *refusals)
{
    pthread_mutex_init(&refusals->blocks_lock, NULL);
}

static void drop_blocks(refusal_t *refusal)
{
    refusal_blocks_t *blocks = refusal->blocks;
    refusal->blocks = NULL;
    if (blocks != NULL && --blocks->references == 0) {
        free(blocks);
    }
}

void refusals_fini(refusals_t *refusals)
{
    for (uint32_t i = 0; i < refusals->count; i++) {
        drop_blocks(refusals->items[i]);
        free(refusals->items[i]);
    }
    refusals->count = 0;
    pthread_mutex_destroy(&refusals->blocks_lock);
}

static uint32_t count_of(const refusals_t *list, uid_t uid)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        count += list->items[i]->uid == uid;
    }
    return count;
}

/* The oldest of the user who will have most: that one leaves, and its memory is used again. */
static refusal_t *take_out_oldest(refusals_t *list, uid_t adding)
{
    uint32_t at = 0, most = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        uid_t uid = list->items[i]->uid;
        uint32_t count = count_of(list, uid) + (uid == adding);
        if (count > most) {
            most = count;
            at = i;
        }
    }
    refusal_t *oldest = list->items[at];
    drop_blocks(oldest);
    memmove(
        &list->items[at], &list->items[at + 1],
        (--list->count - at) * sizeof(list->items[0]));
    return oldest;
}

void refusals_add(refusals_t *refusals, const refusal_t *refusal)
{
    refusal_t *copy = refusals->count == REFUSALS_MAX
                          ? take_out_oldest(refusals, refusal->uid)
                          : malloc(sizeof(*copy));
    if (copy == NULL) {
        refusals->lost++;
        return;
    }
    *copy = *refusal;
    copy->serial = ++refusals->last_serial;
    refusals->items[refusals->count++] = copy;
    if (copy->wants_blocks) {
        atomic_store_explicit(&refusals->wants_blocks, true, memory_order_relaxed);
    }
}
