/* SPDX-License-Identifier: Apache-2.0 */
/* Asks for reports of blocks and reads them; see blocks.h. */
#include "top/blocks.h"

#include <stdlib.h>
#include <unistd.h>

#include "common/clock.h"

#define LOOK_NS 1000000u

typedef struct asked {
    const open_segment_t *one;
    rmm_control_t control;
    uint32_t number; /* of the request */
    bool is_answered;
} asked_t;

bool blocks_are_shown_of(const open_segment_t *one)
{
    return geteuid() == 0 || one->segment.uid == geteuid();
}

/* False: it takes no request. */
static bool ask(const segments_t *segments, const open_segment_t *one, asked_t *asked)
{
    int dirfd = segments_open_dir(segments, one);
    if (dirfd < 0) {
        return false;
    }
    *asked = (asked_t){.one = one};
    bool is_open = rmm__control_open(&asked->control, dirfd, &one->segment) == 0;
    close(dirfd);
    if (is_open && rmm__control_begin_report(
                       &asked->control, RMM_BLOCKS_ROWS_MAX, &asked->number) != 0) {
        rmm__control_close(&asked->control);
        is_open = false;
    }
    return is_open;
}

static bool have_answered(asked_t *asked, uint32_t count)
{
    bool all = true;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t seen;
        asked[i].is_answered =
            asked[i].is_answered || !rmm__segment_is_live(&asked[i].one->segment) ||
            (rmm__segment_report_seen(&asked[i].one->segment, &seen) &&
             seen == asked[i].number);
        all = all && asked[i].is_answered;
    }
    return all;
}

void blocks_ask(
    const segments_t *segments, open_segment_t *const *programs, uint32_t count)
{
    static const struct timespec pause = {.tv_nsec = LOOK_NS};
    asked_t asked[BLOCKS_PROGRAMS_MAX];
    uint32_t asked_count = 0;
    for (uint32_t i = 0; i < count && asked_count < BLOCKS_PROGRAMS_MAX; i++) {
        asked_count += blocks_are_shown_of(programs[i]) &&
                       ask(segments, programs[i], &asked[asked_count]);
    }
    uint64_t until_ns = clock_ns() + BLOCKS_WAIT_NS;
    while (!have_answered(asked, asked_count) && clock_ns() < until_ns) {
        (void)nanosleep(&pause, NULL);
    }
    for (uint32_t i = 0; i < asked_count; i++) {
        (void)rmm__control_end_report(&asked[i].control, !asked[i].is_answered);
        rmm__control_close(&asked[i].control);
    }
}

bool blocks_open(
    const segments_t *segments, const open_segment_t *one, rmm_blocks_file_t *file)
{
    int dirfd = blocks_are_shown_of(one) ? segments_open_dir(segments, one) : -1;
    if (dirfd < 0) {
        return false;
    }
    bool is_open =
        rmm__block_report_open(file, dirfd, one->segment.name, one->segment.uid) == 0;
    close(dirfd);
    return is_open;
}

rmm_blocks_row_t *
blocks_read(const rmm_blocks_file_t *file, uint32_t resource_id, uint32_t *count_out)
{
    rmm_blocks_resource_t resource;
    if (!rmm__block_report_find(file, resource_id, &resource) ||
        resource.row_count == 0) {
        return NULL;
    }
    rmm_blocks_row_t *rows = calloc(resource.row_count, sizeof(*rows));
    if (rows != NULL) {
        *count_out = rmm__block_report_read(file, &resource, rows);
        rmm__block_report_sort(rows, *count_out);
    }
    return rows;
}
