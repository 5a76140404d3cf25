/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/<pid>/diag/stacks: the call stacks of `findings`, a row for each finding, by its id. Lines
 * of Python as FILE:LINE(FUNCTION), then frames as FILE+OFFSET, which addr2line takes, innermost
 * first; then where those files are. All of it is in the side file, so a process that has ended
 * shows the same.
 */
#include <inttypes.h>
#include <string.h>

#include "programs/found.h"
#include "render/parts.h"
#include "render/printers.h"

/* --- frames, also for diag/peak and diag/verdicts ------------------------------------- */

static void put_frame(frames_t *frames, uint32_t index, uint64_t offset)
{
    rmm_diag_module_info_t module;
    if (index >= FRAMES_FILES_MAX ||
        !rmm__diag_read_module(frames->file, index, &module)) {
        text_printf(frames->text, "0x%" PRIx64, offset);
        return;
    }
    frames->shown[index] = true;
    render_module_name(module.path, frames->text);
    text_printf(frames->text, "+0x%" PRIx64, offset);
}

/* ';' stands between frames. */
static void put_part(char *name, text_t *text)
{
    for (char *at = strchr(name, ';'); at != NULL; at = strchr(at, ';')) {
        *at = '?';
    }
    text_put_foreign(text, name);
}

static void put_lines(frames_t *frames, const rmm_diag_stack_info_t *stack)
{
    rmm_diag_line_t line;
    for (uint32_t i = 0; i < stack->line_count; i++) {
        if (rmm__diag_read_line(frames->file, stack->lines[i], &line)) {
            put_part(line.file, frames->text);
            text_printf(frames->text, ":%" PRIu32 "(", line.number);
            put_part(line.function, frames->text);
            text_puts(frames->text, ");");
        }
    }
}

static void put_frames(frames_t *frames, const rmm_diag_stack_info_t *stack)
{
    put_lines(frames, stack);
    for (uint32_t i = 0; i < stack->frame_count; i++) {
        text_puts(frames->text, i > 0 ? ";" : "");
        put_frame(frames, stack->modules[i], stack->offsets[i]);
    }
}

void render_site(frames_t *frames, uint32_t site)
{
    rmm_diag_stack_info_t stack;
    if (rmm__diag_read_site(frames->file, site, &stack)) {
        put_frames(frames, &stack);
    } else {
        text_puts(frames->text, "-");
    }
}

static void put_file(const frames_t *frames, uint32_t index)
{
    rmm_diag_module_info_t module;
    if (!frames->shown[index] || !rmm__diag_read_module(frames->file, index, &module)) {
        return;
    }
    text_begin_row(frames->text);
    text_puts(frames->text, "# file\t");
    render_module_name(module.path, frames->text);
    text_puts(frames->text, "\t");
    text_put_foreign(frames->text, module.path);
    text_puts(frames->text, "\t");
    for (uint32_t i = 0; i < module.build_id_bytes; i++) {
        text_printf(frames->text, "%02x", module.build_id[i]);
    }
    text_puts(frames->text, module.build_id_bytes > 0 ? "\n" : "-\n");
    (void)text_end_row(frames->text);
}

void render_frame_files(const frames_t *frames)
{
    for (uint32_t i = 0; i < FRAMES_FILES_MAX; i++) {
        put_file(frames, i);
    }
    text_end_rows(frames->text);
}

/* --- diag/stacks ---------------------------------------------------------------------- */

typedef bool (*read_fn)(
    const rmm_diag_file_t *file, uint32_t finding, rmm_diag_stack_info_t *out);

/* Those of the block that are known: of findings by guards and of freed blocks. */
static void put_of_block(frames_t *frames, uint32_t finding)
{
    static const read_fn reads[] = {rmm__diag_read_origin, rmm__diag_read_free};
    rmm_diag_stack_info_t stack;
    for (size_t i = 0; i < sizeof(reads) / sizeof(reads[0]); i++) {
        if (reads[i](frames->file, finding, &stack)) {
            text_puts(frames->text, "\t");
            put_frames(frames, &stack);
        }
    }
}

static bool put_stack(const rmm_diag_finding_info_t *finding, void *arg)
{
    frames_t *frames = arg;
    rmm_diag_stack_info_t stack;
    if (!rmm__diag_read_stack(frames->file, finding->index, &stack)) {
        return true;
    }
    text_begin_row(frames->text);
    text_printf(frames->text, "%" PRIu32 "\t", finding->index);
    put_frames(frames, &stack);
    put_of_block(frames, finding->index);
    text_puts(frames->text, "\n");
    return text_end_row(frames->text);
}

void print_stacks(const subject_t *subject, text_t *text)
{
    const rmm_diag_file_t *file = &subject->diag;
    frames_t frames = {.file = file, .text = text};
    text_puts(text, "#id\tstack\n");
    if (subject->has_diag) {
        found_each(file, put_stack, &frames);
        render_frame_files(&frames);
    }
}
