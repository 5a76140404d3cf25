/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Collects the data that the text of a file is made of; see subject.h.
 */
#include "render/subject.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "model/marks.h"
#include "programs/found.h"
#include "segments/dirs.h"

/* --- side files ----------------------------------------------------------------------- */

/* A report that another daemon asked for may take its place just now: once more. */
bool block_report_open(const member_t *member, rmm_blocks_file_t *file)
{
    const rmm_segment_t *segment = &member->segment;
    int error = -ENOENT;
    for (int i = 0; i < 2 && member->dir != NULL && error != 0; i++) {
        error =
            rmm__block_report_open(file, member->dir->fd, segment->name, segment->uid);
    }
    return error == 0;
}

static void open_leaks(subject_t *subject)
{
    const process_t *process = subject->process;
    for (uint32_t i = 0; i < process->member_count; i++) {
        const member_t *member = process->members[i];
        rmm_leaks_file_t *file = &subject->leaks[subject->leaks_count];
        if (subject->leaks_count < SUBJECT_FILES_MAX && member_counts(member) &&
            member->dir != NULL &&
            rmm__leaks_open(
                file, member->dir->fd, member->segment.name, member->segment.uid) ==
                0) {
            subject->leaks_count++;
        }
    }
}

/* A process has one diagnosis library. */
static void open_diag(subject_t *subject)
{
    const process_t *process = subject->process;
    for (uint32_t i = 0; i < process->member_count && !subject->has_diag; i++) {
        const member_t *member = process->members[i];
        subject->has_diag =
            member_counts(member) && member_open_diag(member, &subject->diag);
        if (subject->has_diag && member->exited_ns != 0) {
            uint64_t now_ns = rmm__clock_ns(CLOCK_BOOTTIME);
            subject->has_ended = true;
            subject->ended_ns_ago =
                now_ns > member->exited_ns ? now_ns - member->exited_ns : 0;
        }
    }
}

static bool note_place(const slot_view_t *view, void *arg)
{
    subject_t *subject = arg;
    const rmm_segment_slot_t *slot = rmm__record_slot(&view->record);
    if (subject->places_count == SUBJECT_PLACES_MAX) {
        return false;
    }
    subject->places[subject->places_count++] = (resource_place_t){
        slot->instance_id, slot->upstream_id,
        slot->location == RMM_SEGMENT_HOST_LOCATION ? -1 : (int32_t)slot->location};
    return true;
}

static int by_id(const void *left, const void *right)
{
    const resource_place_t *a = left, *b = right;
    return (a->resource_id > b->resource_id) - (a->resource_id < b->resource_id);
}

static void open_reports(subject_t *subject)
{
    const process_t *process = subject->process;
    for (uint32_t i = 0; i < process->member_count; i++) {
        member_t *member = process->members[i];
        if (subject->blocks_count < SUBJECT_FILES_MAX && member->state == MEMBER_LIVE &&
            block_report_open(member, &subject->blocks[subject->blocks_count])) {
            subject->blocks_count++;
            slots_each(member, note_place, subject);
        }
    }
    qsort(subject->places, subject->places_count, sizeof(subject->places[0]), by_id);
}

void subject_close(subject_t *subject)
{
    for (uint32_t i = 0; i < subject->leaks_count; i++) {
        rmm__leaks_close(&subject->leaks[i]);
    }
    for (uint32_t i = 0; i < subject->blocks_count; i++) {
        rmm__block_report_close(&subject->blocks[i]);
    }
    if (subject->has_diag) {
        rmm__diag_close(&subject->diag);
    }
}

/* --- what the files are of ------------------------------------------------------------ */

static int find_device(subject_t *subject)
{
    subject->device = model_device_const(subject->model, subject->node.id);
    return subject->device != NULL ? 0 : -ENOENT;
}

static int find_process(subject_t *subject)
{
    const process_t *process = model_process(subject->model, subject->node.serial);
    subject->process = process;
    subject->readable = process != NULL ? process_readable_member(process) : NULL;
    return process != NULL ? 0 : -ENOENT;
}

static int find_program(subject_t *subject)
{
    return find_process(subject) == 0 && subject->readable != NULL ? 0 : -ENOENT;
}

static int find_resource(subject_t *subject)
{
    member_t *member = model_member(subject->model, subject->node.serial);
    if (member == NULL || !slots_find_low(member, subject->node.id, &subject->slot)) {
        return -ENOENT;
    }
    subject->process = member->process;
    subject->resource_id = rmm__record_slot(&subject->slot.record)->instance_id;
    return 0;
}

static int find_figures(subject_t *subject, unsigned want)
{
    const uint32_t device = subject->node.id;
    int error = -ENOENT;
    if (subject->node.dir == DIR_DEVICE && (error = find_device(subject)) == 0) {
        marks_show_device(subject->model, device, want, &subject->figures);
    } else if (
        subject->node.dir == DIR_RESOURCE && (error = find_resource(subject)) == 0) {
        figures_of_resource(&subject->slot, want, &subject->figures);
    } else if (
        subject->node.dir == DIR_PROCESS_DEVICE &&
        (error = find_process(subject)) == 0 &&
        !figures_of_process(subject->process, device, want, &subject->figures)) {
        error = -ENOENT;
    }
    return error;
}

static int find_blocks(subject_t *subject)
{
    int error = find_resource(subject);
    if (error != 0) {
        return error;
    }
    const member_t *member = subject->slot.member;
    if (block_report_open(member, &subject->blocks[0])) {
        subject->blocks_count = 1;
        return 0;
    }
    if (member->state != MEMBER_LIVE) {
        return -ENOENT; /* it ended, and its report with it */
    }
    /* 0: it has none although it obeyed; its log says why */
    return member->report.result != 0 ? member->report.result : -EIO;
}

static int find_side_files(subject_t *subject, collect_t what)
{
    int error = what == COLLECT_DIAG ? find_process(subject) : find_program(subject);
    if (error != 0) {
        return error;
    }
    if (what != COLLECT_DIAG) {
        open_leaks(subject);
    }
    if (what != COLLECT_LEAKS) {
        open_diag(subject);
    }
    if (what == COLLECT_ALLOCATIONS) {
        open_reports(subject);
    }
    return 0;
}

/* --- all ------------------------------------------------------------------------------ */

bool collect_reads_model(collect_t what)
{
    return what < COLLECT_LEAKS;
}

int subject_collect(model_t *model, node_t node, collect_t what, subject_t *subject)
{
    memset(subject, 0, offsetof(subject_t, leaks));
    subject->model = model;
    subject->node = node;
    switch (what) {
    case COLLECT_MODEL:
    case COLLECT_NODE:
        return 0;
    case COLLECT_DEVICE:
        return find_device(subject);
    case COLLECT_PROCESS:
        return find_process(subject);
    case COLLECT_PROGRAM:
        return find_program(subject);
    case COLLECT_RESOURCE:
        return find_resource(subject);
    case COLLECT_FIGURES:
        return find_figures(subject, 0);
    case COLLECT_MARKS:
        return find_figures(subject, FIGURES_MARKS);
    case COLLECT_FREE:
        return find_figures(subject, FIGURES_FREE);
    case COLLECT_ALL_FIGURES:
        return find_figures(subject, FIGURES_ALL);
    case COLLECT_LEAKS:
    case COLLECT_DIAG:
    case COLLECT_ALLOCATIONS:
        return find_side_files(subject, what);
    case COLLECT_BLOCKS:
        return find_blocks(subject);
    case COLLECT_NOTHING:
        break;
    }
    return -ENOENT;
}
