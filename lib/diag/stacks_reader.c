/* SPDX-License-Identifier: Apache-2.0 */
/* Reader of stacks and modules; see stacks_reader.h. */
#include "diag/stacks_reader.h"

#include <string.h>

#include "segment/clean_text.h"

static void take_lines(const rmm_diag_stack_t *stack, rmm_diag_stack_info_t *out)
{
    uint32_t count = atomic_load_explicit(&stack->line_count, memory_order_relaxed);
    out->line_count = count < RMM_DIAG_STACK_LINES ? count : RMM_DIAG_STACK_LINES;
    for (uint32_t i = 0; i < out->line_count; i++) {
        out->lines[i] = atomic_load_explicit(&stack->lines[i], memory_order_relaxed);
    }
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
    take_lines(stack, out);
    return false;
}

static bool read_entry(
    const rmm_diag_file_t *file, const rmm_diag_section_t *section, uint32_t index,
    rmm_diag_stack_info_t *out)
{
    rmm_side_table_t one = rmm__diag_table(section, sizeof(rmm_diag_stack_t));
    out->frame_count = 0;
    out->line_count = 0;
    if (index >= one.count) {
        return false;
    }
    one.offset += index * one.stride;
    one.count = 1;
    (void)rmm__side_rows_each(file->fd, &one, take_stack, out);
    return out->frame_count > 0;
}

bool rmm__diag_read_stack(
    const rmm_diag_file_t *file, uint32_t finding, rmm_diag_stack_info_t *out)
{
    return read_entry(file, &file->header.stacks, finding, out);
}

bool rmm__diag_read_origin(
    const rmm_diag_file_t *file, uint32_t finding, rmm_diag_stack_info_t *out)
{
    return read_entry(file, &file->header.origins, finding, out);
}

bool rmm__diag_read_free(
    const rmm_diag_file_t *file, uint32_t finding, rmm_diag_stack_info_t *out)
{
    return read_entry(file, &file->header.frees, finding, out);
}

bool rmm__diag_read_site(
    const rmm_diag_file_t *file, uint32_t site, rmm_diag_stack_info_t *out)
{
    /* site 0 is an index beyond any table */
    return read_entry(file, &file->header.sites, site - 1, out);
}

bool rmm__diag_read_module(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_module_info_t *out)
{
    const rmm_diag_section_t *modules = &file->header.modules;
    rmm_diag_module_t module;
    if (index >= rmm__diag_used(modules) ||
        !rmm__read_at(
            file->fd, &module, sizeof(module),
            modules->offset + (uint64_t)modules->stride * index)) {
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

bool rmm__diag_read_line(
    const rmm_diag_file_t *file, uint32_t index, rmm_diag_line_t *out)
{
    const rmm_diag_section_t *lines = &file->header.lines;
    if (index >= rmm__diag_used(lines) ||
        !rmm__read_at(
            file->fd, out, sizeof(*out),
            lines->offset + (uint64_t)lines->stride * index)) {
        return false;
    }
    rmm__text_clean(out->file, sizeof(out->file));
    rmm__text_clean(out->function, sizeof(out->function));
    return true;
}
