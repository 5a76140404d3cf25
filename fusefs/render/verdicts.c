/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag/verdicts: blocks that wasted memory, by verdict, location, resource, first user, size and
 * the stack of the allocation; the most bytes x time first.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "diag/diag_names.h"
#include "diag/resource_reader.h"
#include "diag/verdict_reader.h"
#include "render/parts.h"
#include "render/printers.h"

static bool put_group(frames_t *frames, const rmm_diag_group_t *group)
{
    const rmm_diag_file_t *file = frames->file;
    text_t *text = frames->text;
    rmm_diag_resource_name_t resource;
    text_begin_row(text);
    text_printf(
        text,
        "%s\t%s\t%" PRId32 "\t%" PRIu32 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64
        "\t%" PRIu64 "\t",
        rmm__diag_verdict_name(group->verdict),
        rmm__diag_confidence(file, group->verdict), group->device, group->resource_id,
        group->count, group->bytes, group->largest, group->byte_ms);
    render_block_user(file, group->first_user, text);
    text_puts(text, "\t");
    render_site(frames, group->site);
    rmm__diag_read_resource(frames->file, group->resource_id, &resource);
    render_block_resource(&resource, text);
    return text_end_row(text);
}

static void put_verdicts(const subject_t *subject, text_t *text)
{
    const rmm_diag_file_t *file = &subject->diag;
    uint64_t end_ns = rmm__clock_ns(CLOCK_MONOTONIC) - subject->ended_ns_ago;
    rmm_diag_groups_t *groups = rmm__diag_groups_create();
    frames_t frames = {.file = file, .text = text};
    bool fits = true;
    uint32_t i = 0;
    if (groups == NULL) {
        text_puts(text, "# rmmfs ran out of memory while it made this table\n");
        return;
    }
    rmm__diag_read_verdicts(file, end_ns, subject->has_ended, groups);
    for (; i < groups->count && fits; i++) {
        fits = put_group(&frames, &groups->entries[i]);
    }
    text_leave_out(text, groups->count - i);
    text_end_rows(text);
    if (groups->rest_count > 0) {
        text_printf(
            text, "# %" PRIu64 " verdicts on blocks of further kinds\n",
            groups->rest_count);
    }
    render_frame_files(&frames);
    free(groups);
}

void print_verdicts(const subject_t *subject, text_t *text)
{
    text_puts(
        text, "#verdict\tconfidence\tdevice\tresource\tcount\tbytes\tlargest\t"
              "byte_ms\tfirst_use\tstack\tresource_type\tresource_name\n");
    if (subject->has_diag) {
        put_verdicts(subject, text);
    }
}
