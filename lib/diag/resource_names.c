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

static void allocated(void *state, rmm_diag_call_t *call)
{
    const rmm_diag_block_v1_t *block = call->block;
    rmm_diag_header_t *header = call->engine->header;
    rmm_diag_resource_t *entries =
        (void *)((unsigned char *)header + header->resources.offset);
    rmm_diag_resource_t *entry =
        &entries[block->resource_id % RMM_DIAG_RESOURCES_COUNT];

    (void)state;
    if (atomic_load_explicit(&entry->id, memory_order_relaxed) != 0 ||
        block->resource_type == NULL) {
        return;
    }
    copy(entry->type, sizeof(entry->type), block->resource_type);
    copy(entry->name, sizeof(entry->name), block->resource_name);
    /* release: the names are written; pairs with resource_reader.c */
    atomic_store_explicit(&entry->id, block->resource_id, memory_order_release);
}

const rmm_checker_t rmm__resource_names_checker = {.allocated = allocated};
