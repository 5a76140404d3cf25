/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The ring has the blocks that were freed, and what was called; the other side file has the
 * blocks that were not freed, and the names. Nothing in either is trusted: what names no entry has
 * no name, and times before the ring's oldest event are cut.
 */
#include "run/timeline.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "diag/resource_reader.h"
#include "diag/timeline_reader.h"
#include "run/names.h"
#include "run/resource_text.h"

/* A number that the program uses, and where in the history it is. */
typedef struct known_ids {
    uint64_t ids[HISTORY_STREAMS_MAX];
    bool are_handles[HISTORY_STREAMS_MAX];
    uint32_t count;
} known_ids_t;

typedef struct reading {
    history_t *history;
    const rmm_diag_file_t *diag;
    uint32_t kernel_count;
    bool no_memory;
    bool is_cut;       /* older events are lost */
    uint64_t since_ns; /* of the oldest event, if it is cut */
    bool has_last;
    rmm_timeline_event_t last; /* of the blocks */
    known_ids_t streams, resources;
} reading_t;

/* --- names ---------------------------------------------------------------------------- */

/* As people write it. */
static bool add_name(history_t *history, const char *name)
{
    char *demangled = run_demangle(name);
    bool good = history_add_text(&history->names, demangled != NULL ? demangled : name);
    free(demangled);
    return good;
}

/* Kernels first, functions behind them: a user's index follows from its number. */
static bool add_names(reading_t *reading)
{
    char name[RMM_DIAG_NAME_BYTES];
    uint32_t i = 0;
    bool good = true;
    for (; good && rmm__diag_read_user(reading->diag, i, name); i++) {
        good = add_name(reading->history, name);
    }
    reading->kernel_count = i;
    for (i = 0; good && rmm__diag_read_user(reading->diag, RMM_DIAG_FUNCTION | i, name);
         i++) {
        good = history_add_text(&reading->history->names, name);
    }
    return good;
}

static uint32_t name_of(const reading_t *reading, uint32_t user)
{
    if (user == RMM_DIAG_NO_USER) {
        return HISTORY_NONE;
    }
    if ((user & RMM_DIAG_FUNCTION) == 0) {
        return user < reading->kernel_count ? user : HISTORY_NONE;
    }
    return reading->kernel_count + (user & ~RMM_DIAG_FUNCTION);
}

/* Its index; a new one is the next. The last one stands for all that are too many. */
static uint32_t index_of(known_ids_t *known, uint64_t id, bool is_handle, bool *is_new)
{
    uint32_t i = 0;
    while (i < known->count &&
           (known->ids[i] != id || known->are_handles[i] != is_handle)) {
        i++;
    }
    *is_new = i == known->count && i < HISTORY_STREAMS_MAX;
    if (*is_new) {
        known->ids[i] = id;
        known->are_handles[i] = is_handle;
        known->count++;
    }
    return i < HISTORY_STREAMS_MAX ? i : HISTORY_STREAMS_MAX - 1;
}

static uint32_t stream_of(reading_t *reading, uint64_t id, bool is_handle)
{
    char text[64];
    bool is_new;
    uint32_t index = index_of(&reading->streams, id, is_handle, &is_new);
    if (!is_new) {
        return index;
    }
    if (index == HISTORY_STREAMS_MAX - 1) {
        snprintf(text, sizeof(text), "further streams");
    } else if (is_handle) {
        snprintf(text, sizeof(text), "stream at 0x%" PRIx64, id);
    } else if (id == UINT64_MAX) {
        snprintf(text, sizeof(text), "unknown stream");
    } else {
        snprintf(
            text, sizeof(text), id == 0 ? "default stream" : "stream %" PRIu64, id);
    }
    reading->no_memory |= !history_add_text(&reading->history->streams, text);
    return index;
}

static uint32_t resource_of(reading_t *reading, uint32_t id)
{
    char text[RUN_RESOURCE_BYTES] = "further resources";
    bool is_new;
    uint32_t index = index_of(&reading->resources, id, false, &is_new);
    if (is_new) {
        if (index < HISTORY_STREAMS_MAX - 1) {
            rmm_diag_resource_name_t resource;
            rmm__diag_read_resource(reading->diag, id, &resource);
            run_resource_text(id, &resource, text);
        }
        reading->no_memory |= !history_add_text(&reading->history->resources, text);
    }
    return index;
}

/* --- events --------------------------------------------------------------------------- */

static uint64_t cut(const reading_t *reading, uint64_t when_ns)
{
    return when_ns > reading->since_ns ? when_ns : reading->since_ns;
}

static bool add_block(reading_t *reading, const rmm_timeline_event_t *event)
{
    history_block_t block = {
        .address = event->address,
        .bytes = event->bytes,
        .begin_ns = cut(reading, event->begin_ns),
        .end_ns = event->end_ns,
        .first_user = name_of(reading, event->first_user),
        .last_user = name_of(reading, event->last_user),
        .resource = resource_of(reading, event->resource_id),
        .stream = stream_of(reading, event->stream_id, false),
        .device = event->device};
    if (block.end_ns < block.begin_ns) {
        return true; /* not written by this library */
    }
    return history_add_block(reading->history, &block);
}

static bool add_call(reading_t *reading, const rmm_timeline_event_t *event)
{
    const history_call_t call = {
        .when_ns = cut(reading, event->begin_ns),
        .bytes = event->kind == RMM_TIMELINE_LAUNCH ? 0 : event->bytes,
        .name = name_of(reading, event->first_user),
        .stream = stream_of(
            reading, event->stream_id,
            (event->flags & RMM_TIMELINE_STREAM_IS_HANDLE) != 0)};
    return history_add_call(reading->history, &call);
}

static bool take_event(const rmm_timeline_event_t *event, void *arg)
{
    reading_t *reading = arg;
    if (reading->is_cut && reading->since_ns == 0) {
        reading->since_ns = event->end_ns;
    }
    if (event->kind == RMM_TIMELINE_BLOCK) {
        reading->last = *event;
        reading->has_last = true;
        reading->no_memory |= !add_block(reading, event);
    } else if (
        event->kind >= RMM_TIMELINE_LAUNCH && event->kind <= RMM_TIMELINE_GRAPH) {
        reading->no_memory |= !add_call(reading, event);
    }
    return !reading->no_memory;
}

/* A program that was killed amid a free may have left its block in both files. */
static bool take_row(const rmm_diag_row_info_t *row, void *arg)
{
    reading_t *reading = arg;
    if (reading->has_last && reading->last.address == row->address &&
        reading->last.begin_ns == row->allocated_ns) {
        return true;
    }
    const rmm_timeline_event_t event = {
        .begin_ns = row->allocated_ns,
        .end_ns = HISTORY_LIVE,
        .address = row->address,
        .bytes = row->bytes,
        .stream_id = row->stream_id,
        .resource_id = row->resource_id,
        .device = row->device,
        .first_user = row->first_user,
        .last_user = row->last_user};
    reading->no_memory |= !add_block(reading, &event);
    return !reading->no_memory;
}

/* Write a note about what the picture lacks. */
static void write_note(history_t *history, const rmm_diag_file_t *diag, uint64_t lost)
{
    const rmm_diag_header_t *header = &diag->header;
    uint64_t dropped =
        atomic_load_explicit(&header->blocks_dropped, memory_order_relaxed);
    uint64_t graphs =
        atomic_load_explicit(&header->graph_launches, memory_order_relaxed);
    size_t length = 0;
    if (lost > 0) {
        length += (size_t)snprintf(
            history->note, sizeof(history->note),
            "begins late: the first %" PRIu64 " events were replaced by newer ones. ",
            lost);
    }
    if (dropped > 0) {
        length += (size_t)snprintf(
            history->note + length, sizeof(history->note) - length,
            "%" PRIu64 " blocks are not shown: too many were live at a time. ",
            dropped);
    }
    if (graphs > 0) {
        (void)snprintf(
            history->note + length, sizeof(history->note) - length,
            "What the kernels of %" PRIu64 " graph launches used is not known. ",
            graphs);
    }
}

static bool
read_events(reading_t *reading, const rmm_timeline_file_t *file, char why[160])
{
    reading->is_cut = rmm__timeline_lost(file) > 0;
    reading->no_memory = !add_names(reading);
    if (!reading->no_memory && !rmm__timeline_each(file, take_event, reading)) {
        snprintf(why, 160, "the events cannot be read");
        return false;
    }
    if (!reading->no_memory) {
        (void)rmm__diag_each_row(reading->diag, take_row, reading);
    }
    if (reading->no_memory || !history_finish(reading->history)) {
        snprintf(why, 160, "no memory for the timeline");
        return false;
    }
    write_note(reading->history, reading->diag, rmm__timeline_lost(file));
    return true;
}

bool run_timeline_read(
    history_t *history, const char *program, pid_t pid, const run_left_t *left,
    char why[160])
{
    reading_t reading = {.history = history, .diag = &left->diag};
    rmm_timeline_file_t file;
    snprintf(
        history->title, sizeof(history->title), "%.400s (pid %d)", program, (int)pid);
    history->pid = (uint64_t)pid;
    if (left->missing[0] != '\0') {
        snprintf(why, 160, "%s", left->missing);
        return false;
    }
    if (strcmp(left->diag.header.source, "active") != 0) {
        snprintf(why, 160, "the diagnosis is %s", left->diag.header.source);
        return false;
    }
    if (rmm__timeline_open(&file, left->dirfd, left->segment, geteuid()) != 0) {
        snprintf(why, 160, "there was no room for its events");
        return false;
    }
    bool is_empty =
        rmm__timeline_kept(&file) == 0 && rmm__diag_row_count(&left->diag) == 0;
    if (is_empty) {
        snprintf(why, 160, "the program allocated no block");
    }
    bool good = !is_empty && read_events(&reading, &file, why);
    rmm__timeline_close(&file);
    return good;
}

void run_timeline_remove(const run_left_t *left)
{
    char name[RMM_SEGMENT_NAME_BYTES + sizeof("." RMM_TIMELINE_SUFFIX)];
    if (left->dirfd >= 0 && left->segment[0] != '\0') {
        snprintf(name, sizeof(name), "%s." RMM_TIMELINE_SUFFIX, left->segment);
        (void)unlinkat(left->dirfd, name, 0);
    }
}
