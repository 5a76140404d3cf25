/* SPDX-License-Identifier: Apache-2.0 */
/* A hash table with linear probing, never more than half full; see block_groups.h. */
#include "diag/block_groups.h"

#include <stdlib.h>
#include <string.h>

enum { SLOTS = 2 * RMM_DIAG_GROUPS_MAX };

rmm_diag_groups_t *rmm__diag_groups_create(void)
{
    return calloc(1, sizeof(rmm_diag_groups_t));
}

void rmm__diag_groups_clear(rmm_diag_groups_t *groups)
{
    memset(groups, 0, sizeof(*groups));
}

/* NULL: all that this one may have are taken. */
static rmm_diag_group_t *
find_group(rmm_diag_groups_t *groups, const rmm_diag_group_t *group)
{
    uint32_t at = rmm__diag_group_hash(group) % SLOTS;
    uint32_t most = group->site != 0 ? RMM_DIAG_GROUPS_WITH_SITE : RMM_DIAG_GROUPS_MAX;
    rmm_diag_group_t *entry = NULL;

    while (groups->slots[at] != 0) {
        entry = &groups->entries[groups->slots[at] - 1];
        if (rmm__diag_group_is_like(entry, group)) {
            return entry;
        }
        at = (at + 1) % SLOTS;
    }
    if (groups->count >= most) {
        return NULL;
    }
    entry = &groups->entries[groups->count++];
    *entry = *group;
    entry->bytes = 0;
    entry->count = 0;
    entry->largest = 0;
    entry->byte_ms = 0;
    groups->slots[at] = (uint16_t)groups->count;
    return entry;
}

void rmm__diag_groups_add(rmm_diag_groups_t *groups, const rmm_diag_group_t *group)
{
    rmm_diag_group_t *entry = find_group(groups, group);

    if (entry == NULL && group->site != 0) {
        rmm_diag_group_t without = *group;

        without.site = 0;
        entry = find_group(groups, &without);
    }
    if (entry == NULL) {
        groups->rest_bytes += group->bytes;
        groups->rest_count += group->count;
        return;
    }
    entry->bytes += group->bytes;
    entry->count += group->count;
    entry->byte_ms += group->byte_ms;
    if (group->largest > entry->largest) {
        entry->largest = group->largest;
    }
}

static int compare(uint64_t a, uint64_t b)
{
    return (a > b) - (a < b);
}

/* Groups with equal figures are ordered by their keys, so that the order is the same at each
 * report. */
static int worst_first(const void *left, const void *right)
{
    const rmm_diag_group_t *a = left, *b = right;
    const int orders[] = {
        compare(b->byte_ms, a->byte_ms),       compare(b->bytes, a->bytes),
        compare(a->verdict, b->verdict),       compare(a->resource_id, b->resource_id),
        compare(a->first_user, b->first_user), compare(a->site, b->site)};

    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++) {
        if (orders[i] != 0) {
            return orders[i];
        }
    }
    return 0;
}

void rmm__diag_groups_sort(rmm_diag_groups_t *groups)
{
    qsort(groups->entries, groups->count, sizeof(groups->entries[0]), worst_first);
}
