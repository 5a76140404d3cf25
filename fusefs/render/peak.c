/* SPDX-License-Identifier: Apache-2.0 */
/*
 * diag/peak: the blocks that were live at the peak of each location, by resource, first
 * user and the stack of the allocation. A line after the rows of a location has the sum and the
 * time of the peak.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "diag/peak_reader.h"
#include "diag/resource_reader.h"
#include "render/parts.h"
#include "render/printers.h"

/* Per mille, for a column with one decimal. No group has more than the whole. */
static uint64_t share_of(uint64_t bytes, uint64_t whole)
{
    if (bytes >= whole) {
        return whole > 0 ? 1000 : 0;
    }
    return (uint64_t)((double)bytes * 1000.0 / (double)whole + 0.5);
}

static bool put_group(frames_t *frames, const rmm_diag_group_t *group, uint64_t whole)
{
    text_t *text = frames->text;
    rmm_diag_resource_name_t resource;
    uint64_t share = share_of(group->bytes, whole);
    text_begin_row(text);
    text_printf(
        text,
        "%" PRId32 "\t%" PRIu64 "\t%" PRIu64 "\t%" PRIu64 ".%" PRIu64 "\t%" PRIu32 "\t",
        group->device, group->bytes, group->count, share / 10, share % 10,
        group->resource_id);
    render_block_user(frames->file, group->first_user, text);
    text_puts(text, "\t");
    render_site(frames, group->site);
    rmm__diag_read_resource(frames->file, group->resource_id, &resource);
    render_block_resource(&resource, text);
    return text_end_row(text);
}

static void render_peak(
    frames_t *frames, const rmm_diag_groups_t *groups,
    const rmm_diag_composition_t *composition)
{
    text_t *text = frames->text;
    const rmm_diag_peak_info_t *peak = &composition->peak;
    uint64_t now_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    bool fits = true;
    uint32_t i = 0;
    for (; i < groups->count && fits; i++) {
        fits = put_group(frames, &groups->entries[i], peak->bytes);
    }
    text_leave_out(text, groups->count - i);
    text_end_rows(text);
    text_printf(
        text,
        "# device %" PRId32 ": %" PRIu64 " bytes in %" PRIu64 " blocks, %" PRIu64
        " ns ago; %" PRIu64 " bytes not attributed\n",
        peak->device, peak->bytes, peak->count,
        now_ns > peak->when_ns ? now_ns - peak->when_ns : 0,
        composition->missing_bytes);
}

static void put_peaks(const rmm_diag_file_t *file, text_t *text)
{
    rmm_diag_groups_t *groups = rmm__diag_groups_create();
    rmm_diag_composition_t composition;
    frames_t frames = {.file = file, .text = text};
    if (groups == NULL) {
        text_puts(text, "# rmmfs ran out of memory while it made this table\n");
        return;
    }
    for (uint32_t i = 0; i < rmm__diag_peak_count(file); i++) {
        if (rmm__diag_read_composition(file, i, groups, &composition)) {
            render_peak(&frames, groups, &composition);
        } else {
            text_puts(text, "# incomplete: a peak kept rising during the read\n");
        }
    }
    render_frame_files(&frames);
    free(groups);
}

void print_peak(const subject_t *subject, text_t *text)
{
    text_puts(
        text, "#device\tbytes\tcount\tshare\tresource\tfirst_use\tstack\t"
              "resource_type\tresource_name\n");
    if (subject->has_diag) {
        put_peaks(&subject->diag, text);
    }
}
