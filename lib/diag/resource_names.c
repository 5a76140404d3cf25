/* SPDX-License-Identifier: Apache-2.0 */
/* Names of resources; see resource_names.h. */
#include "diag/resource_names.h"

#include <string.h>

/* Cut to fit; the entry is zero. */
static void copy(char *to, size_t room, const char *from)
{
    size_t length = from != NULL ? strnlen(from, room - 1) : 0;

    if (length > 0) {
        memcpy(to, from, length);
    }
}

void rmm__resource_names_add(
    rmm_diag_resource_t *entries, const rmm_diag_block_v1_t *block)
{
    rmm_diag_resource_t *entry =
        &entries[block->resource_id % RMM_DIAG_RESOURCES_COUNT];

    if (atomic_load_explicit(&entry->id, memory_order_relaxed) != 0 ||
        block->resource_type == NULL) {
        return;
    }
    copy(entry->type, sizeof(entry->type), block->resource_type);
    copy(entry->name, sizeof(entry->name), block->resource_name);
    /* release: the names are written; pairs with resource_reader.c */
    atomic_store_explicit(&entry->id, block->resource_id, memory_order_release);
}
