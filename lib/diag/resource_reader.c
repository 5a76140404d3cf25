/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of the names of resources; see resource_reader.h. */
#include "diag/resource_reader.h"

#include <string.h>

#include "segment/clean_text.h"

void rmm__diag_read_resource(
    const rmm_diag_file_t *file, uint32_t id, rmm_diag_resource_name_t *out)
{
    const rmm_diag_section_t *table = &file->header.resources;
    rmm_diag_resource_t entry;

    *out = (rmm_diag_resource_name_t){.type = ""};
    if (table->count == 0 || id == 0 ||
        !rmm__read_at(
            file->fd, &entry, sizeof(entry),
            table->offset + (uint64_t)table->stride * (id % table->count)) ||
        atomic_load_explicit(&entry.id, memory_order_relaxed) != id) {
        return;
    }
    memcpy(out->type, entry.type, sizeof(out->type));
    memcpy(out->name, entry.name, sizeof(out->name));
    rmm__text_clean(out->type, sizeof(out->type));
    rmm__text_clean(out->name, sizeof(out->name));
}
