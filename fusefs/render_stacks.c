/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/<pid>/diag/stacks: the call stacks of `findings`, a row for each finding,
 * by its id; frames as FILE+OFFSET, which addr2line takes, innermost first; then where those files
 * are. All of it is in the side file, so a process that has ended shows the same.
 */
#include <inttypes.h>

#include "diag/stacks_reader.h"
#include "found.h"
#include "render_parts.h"

#define MODULES_MAX 1024u /* of which a file may tell */

typedef struct stacks {
    const rmm_diag_file_t *file;
    text_t *text;
    bool shown[MODULES_MAX]; /* by a frame */
} stacks_t;

static void put_frame(stacks_t *stacks, uint32_t index, uint64_t offset)
{
    rmm_diag_module_info_t module;
    if (index >= MODULES_MAX || !rmm_diag_read_module(stacks->file, index, &module)) {
        text_printf(stacks->text, "0x%" PRIx64, offset);
        return;
    }
    stacks->shown[index] = true;
    render_module_name(module.path, stacks->text);
    text_printf(stacks->text, "+0x%" PRIx64, offset);
}

static void put_frames(stacks_t *stacks, const rmm_diag_stack_info_t *stack)
{
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        text_puts(stacks->text, i > 0 ? ";" : "");
        put_frame(stacks, stack->modules[i], stack->offsets[i]);
    }
}

typedef bool (*read_fn)(
    const rmm_diag_file_t *file, uint32_t finding, rmm_diag_stack_info_t *out);

/* Those of the block that are known: of findings by guards and of freed blocks. */
static void put_of_block(stacks_t *stacks, uint32_t finding)
{
    static const read_fn reads[] = {rmm_diag_read_origin, rmm_diag_read_free};
    rmm_diag_stack_info_t stack;
    for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
        if (reads[i](stacks->file, finding, &stack)) {
            text_puts(stacks->text, "\t");
            put_frames(stacks, &stack);
        }
    }
}

static bool put_stack(const rmm_diag_finding_info_t *finding, void *arg)
{
    stacks_t *stacks = arg;
    rmm_diag_stack_info_t stack;
    if (!rmm_diag_read_stack(stacks->file, finding->index, &stack)) {
        return true;
    }
    text_begin_row(stacks->text);
    text_printf(stacks->text, "%" PRIu32 "\t", finding->index);
    put_frames(stacks, &stack);
    put_of_block(stacks, finding->index);
    text_puts(stacks->text, "\n");
    return text_end_row(stacks->text);
}

static void put_module(const stacks_t *stacks, uint32_t index)
{
    rmm_diag_module_info_t module;
    if (!stacks->shown[index] || !rmm_diag_read_module(stacks->file, index, &module)) {
        return;
    }
    text_begin_row(stacks->text);
    text_puts(stacks->text, "# file\t");
    render_module_name(module.path, stacks->text);
    text_puts(stacks->text, "\t");
    text_put_foreign(stacks->text, module.path);
    text_puts(stacks->text, "\t");
    for (uint32_t i = 0; i < module.build_id_bytes; i++) {
        text_printf(stacks->text, "%02x", module.build_id[i]);
    }
    text_puts(stacks->text, module.build_id_bytes > 0 ? "\n" : "-\n");
    (void)text_end_row(stacks->text);
}

void render_stacks(const render_rest_t *rest, text_t *text)
{
    const rmm_diag_file_t *file = &rest->diag;
    stacks_t stacks = {.file = file, .text = text};
    found_each(file, put_stack, &stacks);
    for (uint32_t i = 0; i < MODULES_MAX; i++) {
        put_module(&stacks, i);
    }
    text_end_rows(text);
}
