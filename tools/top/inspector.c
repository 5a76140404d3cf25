/* SPDX-License-Identifier: Apache-2.0 */
/* Reads what is beside a segment; see inspector.h. */
#include "top/inspector.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/clock.h"
#include "diag/diag_names.h"
#include "diag/diag_reader.h"
#include "segment/clean_text.h"
#include "top/blocks.h"

#define LEVEL_WARNING 3u

void inspector_init(inspector_t *inspector)
{
    memset(inspector, 0, sizeof(*inspector));
}

static void withdraw(inspector_t *inspector, bool is_withdrawn)
{
    if (inspector->is_asked) {
        (void)rmm__control_end_report(&inspector->control, is_withdrawn);
        inspector->is_asked = false;
    }
}

static void look_away(inspector_t *inspector)
{
    withdraw(inspector, true);
    if (inspector->has_control) {
        rmm__control_close(&inspector->control);
    }
    free(inspector->detail.blocks);
    inspector_init(inspector);
}

void inspector_fini(inspector_t *inspector)
{
    look_away(inspector);
}

/* The new last line; the oldest goes where there is no room. */
static detail_line_t *push_line(detail_line_t *lines, uint32_t *count, uint32_t room)
{
    if (*count == room) {
        memmove(&lines[0], &lines[1], (room - 1) * sizeof(lines[0]));
        (*count)--;
    }
    return &lines[(*count)++];
}

/* --- log ---------------------------------------------------------------------------------- */

static void take_message(const rmm_log_message_t *message, void *arg)
{
    detail_t *detail = arg;
    detail_line_t *line = push_line(detail->log, &detail->log_count, DETAIL_LOG_LINES);
    time_t seconds = (time_t)(message->time_ns / 1000000000u);
    struct tm local = {0};
    char when[16] = "", text[DETAIL_LINE_BYTES];
    if (localtime_r(&seconds, &local) != NULL) {
        (void)strftime(when, sizeof(when), "%H:%M:%S", &local);
    }
    (void)snprintf(
        text, sizeof(text), "%s %-5s %.200s", when,
        rmm__segment_log_level_name(message->level), message->text);
    rmm__text_copy(line->text, sizeof(line->text), text);
    line->is_warning = message->level >= LEVEL_WARNING;
}

static void read_log(inspector_t *inspector, const open_segment_t *one)
{
    if (rmm__segment_has_log(&one->segment)) {
        (void)rmm__segment_read_log(
            &one->segment, &inspector->log_cursor, false, take_message,
            &inspector->detail);
    }
}

/* --- findings ----------------------------------------------------------------------------- */

static bool take_finding(const rmm_diag_finding_info_t *finding, void *arg)
{
    detail_t *detail = arg;
    detail_line_t *line =
        push_line(detail->findings, &detail->finding_count, DETAIL_FINDINGS);
    char text[DETAIL_LINE_BYTES];
    (void)snprintf(
        text, sizeof(text), "%s %s by %.60s, block 0x%llx of %llu bytes, %llu times",
        rmm__diag_finding_name(finding->kind), rmm__diag_access_name(finding->access),
        finding->function[0] != '\0' ? finding->function : "-",
        (unsigned long long)finding->block_address,
        (unsigned long long)finding->block_bytes, (unsigned long long)finding->count);
    rmm__text_copy(line->text, sizeof(line->text), text);
    line->is_warning = true;
    return true;
}

static void read_findings(inspector_t *inspector, const open_segment_t *one, int dirfd)
{
    detail_t *detail = &inspector->detail;
    rmm_diag_file_t file;
    detail->finding_count = 0;
    detail->is_diagnosed =
        rmm__diag_open(&file, dirfd, one->segment.name, one->segment.uid) == 0;
    if (!detail->is_diagnosed) {
        return;
    }
    if (!rmm__diag_read_findings_total(&file, &detail->findings_total)) {
        detail->findings_total = 0;
    }
    (void)rmm__diag_each_finding(&file, take_finding, detail);
    rmm__diag_close(&file);
}

/* --- blocks ------------------------------------------------------------------------------- */

static void read_blocks(inspector_t *inspector, const open_segment_t *one, int dirfd)
{
    detail_t *detail = &inspector->detail;
    rmm_blocks_file_t file;
    free(detail->blocks);
    detail->blocks = NULL;
    detail->block_count = 0;
    if (rmm__block_report_open(&file, dirfd, one->segment.name, one->segment.uid) !=
        0) {
        return;
    }
    detail->blocks = blocks_read(&file, detail->resource_id, &detail->block_count);
    uint64_t now_ns = clock_ns(), taken_ns = file.header.taken_ns;
    detail->blocks_age_ns = now_ns > taken_ns ? now_ns - taken_ns : 0;
    rmm__block_report_close(&file);
}

/* The last request has had an interval; the next one begins. */
static void ask_for_blocks(inspector_t *inspector, const open_segment_t *one, int dirfd)
{
    uint32_t seen;
    if (!inspector->has_control) {
        inspector->has_control =
            rmm__control_open(&inspector->control, dirfd, &one->segment) == 0;
    }
    if (inspector->has_control) {
        bool is_obeyed = inspector->is_asked &&
                         rmm__segment_report_seen(&one->segment, &seen) &&
                         seen == inspector->number;
        withdraw(inspector, !is_obeyed);
        inspector->is_asked =
            rmm__control_begin_report(
                &inspector->control, RMM_BLOCKS_ROWS_MAX, &inspector->number) == 0;
    }
}

/* --- limits ------------------------------------------------------------------------------- */

static void read_limits(inspector_t *inspector, const look_t *look)
{
    detail_t *detail = &inspector->detail;
    detail->has_limits = inspector->has_control && look->resource_id != 0;
    if (detail->has_limits) {
        detail->limit_bytes =
            rmm__control_slot_limit(&inspector->control, look->slot, look->resource_id);
        detail->program_limit_bytes =
            rmm__control_location_limit(&inspector->control, look->location);
    }
}

/* --- a look ------------------------------------------------------------------------------- */

void inspector_look(
    inspector_t *inspector, const segments_t *segments, const look_t *look)
{
    detail_t *detail = &inspector->detail;
    const open_segment_t *one =
        look->id != 0 ? segments_find(segments, look->id) : NULL;
    if (one == NULL || look->id != detail->id) {
        look_away(inspector);
    }
    if (one == NULL) {
        return;
    }
    detail->id = look->id;
    detail->resource_id = look->resource_id;
    detail->is_hidden = !blocks_are_shown_of(one);
    int dirfd = detail->is_hidden ? -1 : segments_open_dir(segments, one);
    if (dirfd >= 0) {
        read_log(inspector, one);
        read_findings(inspector, one, dirfd);
        read_blocks(inspector, one, dirfd);
        ask_for_blocks(inspector, one, dirfd);
        read_limits(inspector, look);
        close(dirfd);
    }
}
