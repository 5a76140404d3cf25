/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of stacks and modules; see stacks_reader.h. */
#include "diag/stacks_reader.h"

#include <string.h>

#include "segment/text.h"

rmm_side_table_t rmm_diag_stacks_of(const rmm_diag_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->stacks_offset,
        .stride = header->stacks_stride,
        .count = header->stacks_count,
        .least_stride = sizeof(rmm_diag_stack_t)};
}

rmm_side_table_t rmm_diag_origins_of(const rmm_diag_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->origins_offset,
        .stride = header->origins_stride,
        .count = header->origins_count,
        .least_stride = sizeof(rmm_diag_stack_t)};
}

rmm_side_table_t rmm_diag_frees_of(const rmm_diag_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->frees_offset,
        .stride = header->frees_stride,
        .count = header->frees_count,
        .least_stride = sizeof(rmm_diag_stack_t)};
}

rmm_side_table_t rmm_diag_sites_of(const rmm_diag_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->sites_offset,
        .stride = header->sites_stride,
        .count = header->sites_count,
        .least_stride = sizeof(rmm_diag_stack_t)};
}

rmm_side_table_t rmm_diag_modules_of(const rmm_diag_header_t *header)
{
    return (rmm_side_table_t){
        .offset = header->modules_offset,
        .stride = header->modules_stride,
        .count = header->modules_count,
        .least_stride = sizeof(rmm_diag_module_t)};
}

static bool take_stack(const void *bytes, uint32_t index, void *arg)
{
    const rmm_diag_stack_t *stack = bytes;
    rmm_diag_stack_info_t *out = arg;
    uint32_t count = atomic_load_explicit(&stack->frame_count, memory_order_relaxed);
    (void)index;
    out->frame_count = count < RMM_DIAG_FRAMES_COUNT ? count : RMM_DIAG_FRAMES_COUNT;
    for (uint32_t i = 0; i < out->frame_count; i++) {
        out->offsets[i] =
            atomic_load_explicit(&stack->offsets[i], memory_order_relaxed);
        out->modules[i] =
            atomic_load_explicit(&stack->modules[i], memory_order_relaxed);
    }
    return false;
}

static bool read_entry(
    const rmm_diag_file_t *file, rmm_side_table_t one, uint32_t index,
    rmm_diag_stack_info_t *out)
{
    out->frame_count = 0;
    if (index >= one.count) {
        return false;
    }
    one.offset += index * one.stride;
    one.count = 1;
    (void)rmm_side_rows_each(file->fd, &one, take_stack, out);
    return out->frame_count > 0;
}

bool rmm_diag_read_stack(
    const rmm_diag_file_t *file, uint32_t finding, rmm_diag_stack_info_t *out)
{
    return read_entry(file, rmm_diag_stacks_of(&file->header), finding, out);
}

bool rmm_diag_read_origin(
    const rmm_diag_file_t *file, uint32_t finding, rmm_diag_stack_info_t *out)
{
    return read_entry(file, rmm_diag_origins_of(&file->header), finding, out);
}

bool rmm_diag_read_free(
    const rmm_diag_file_t *file, uint32_t finding, rmm_diag_stack_info_t *out)
{
    return read_entry(file, rmm_diag_frees_of(&file->header), finding, out);
}

bool rmm_diag_read_site(
    const rmm_diag_file_t *file, uint32_t site, rmm_diag_stack_info_t *out)
{
    /* site 0 is an index beyond any table */
    return read_entry(file, rmm_diag_sites_of(&file->header), site - 1, out);
}

bool rmm_diag_read_module(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_module_info_t *out)
{
    const rmm_side_table_t table = rmm_diag_modules_of(&file->header);
    uint32_t used =
        atomic_load_explicit(&file->header.modules_used, memory_order_relaxed);
    rmm_diag_module_t module;
    if (index >= used || index >= table.count ||
        !rmm__read_at(
            file->fd, &module, sizeof(module),
            table.offset + (uint64_t)table.stride * index)) {
        return false;
    }
    memcpy(out->path, module.path, sizeof(out->path));
    rmm__text_clean(out->path, sizeof(out->path));
    memcpy(out->build_id, module.build_id, sizeof(out->build_id));
    out->build_id_bytes = module.build_id_bytes < sizeof(out->build_id)
                              ? module.build_id_bytes
                              : sizeof(out->build_id);
    return true;
}
