/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of the names of resources; see resource_reader.h. */
#include "diag/resource_reader.h"

#include <string.h>

#include "segment/text.h"

rmm_side_table_t rmm_diag_resources_of(const rmm_diag_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->resources_offset,
        .stride = header->resources_stride,
        .count = header->resources_count,
        .least_stride = sizeof(rmm_diag_resource_t)};
}

void rmm_diag_read_resource(
    const rmm_diag_file_t *file, uint32_t id, rmm_diag_resource_name_t *out)
{
    const rmm_side_table_t table = rmm_diag_resources_of(&file->header);
    rmm_diag_resource_t entry;

    *out = (rmm_diag_resource_name_t){.type = ""};
    if (table.count == 0 || id == 0 ||
        !rmm__read_at(
            file->fd, &entry, sizeof(entry),
            table.offset + (uint64_t)table.stride * (id % table.count)) ||
        atomic_load_explicit(&entry.id, memory_order_relaxed) != id) {
        return;
    }
    memcpy(out->type, entry.type, sizeof(out->type));
    memcpy(out->name, entry.name, sizeof(out->name));
    rmm__text_clean(out->type, sizeof(out->type));
    rmm__text_clean(out->name, sizeof(out->name));
}
