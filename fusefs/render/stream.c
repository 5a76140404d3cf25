/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that are read like a pipe; see stream.h. Two kinds of source: the node's journal,
 * by generation and offset; and the rings of one process, of messages or of allocation
 * events, by a cursor for each segment.
 */
#include "render/stream.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "model/journal.h"
#include "model/node_events.h"
#include "render/findings_pipe.h"
#include "render/parts.h"
#include "segment/segment_events.h"
#include "segments/dirs.h"
#include "support/log_line.h"

#define FETCH_BYTES ((size_t)64 << 10)

typedef struct member_cursor {
    uint64_t serial;
    rmm_ring_cursor_t ring;
    rmm_events_t events;
    bool has_events;
    bool came_late; /* the ring was there before: what it had lost is none of ours */
} member_cursor_t;

struct stream {
    pthread_mutex_t lock;
    node_t node;
    uint64_t process; /* its serial in full; 0: of the node */
    uid_t uid;        /* of the user who opened it */
    budget_t *budget; /* that its rings are charged to; NULL: none */
    text_t fetched;
    size_t taken; /* bytes of it */

    uint32_t generation; /* of the journal; 0: at its beginning */
    uint64_t offset;

    member_cursor_t *cursors; /* of the process's segments */
    size_t cursor_count;

    bool has_header; /* of the events' CSV */
    rmm_event_clock_t clock;

    events_cursor_t *events; /* of the node; else NULL */

    findings_pipe_t *findings; /* of a process's diagnosis; else NULL */
};

stream_t *stream_open(node_t node, uint64_t process, uid_t uid, budget_t *budget)
{
    stream_t *stream = calloc(1, sizeof(*stream));
    if (stream != NULL) {
        pthread_mutex_init(&stream->lock, NULL);
        stream->node = node;
        stream->process = process;
        text_init(&stream->fetched);
        stream->uid = uid;
        stream->budget = budget;
        text_charge(&stream->fetched, budget, uid);
    }
    return stream;
}

/* See charge_ring(). */
static void give_ring(stream_t *stream)
{
    if (stream->budget != NULL) {
        budget_give(stream->budget, stream->uid, BUDGET_HANDLES, 1);
    }
}

bool stream_begin(stream_t *stream, bool is_member, const model_t *model)
{
    if (stream->node.file == FILE_findings_pipe) {
        stream->findings = findings_pipe_open();
        return stream->findings != NULL;
    }
    if (stream->node.file != FILE_node_events_pipe) {
        return true;
    }
    stream->fetched.is_member = is_member;
    stream->events = calloc(1, sizeof(*stream->events));
    if (stream->events != NULL) {
        node_events_begin(model->events, stream->events);
        node_events_want(model->events);
    }
    return stream->events != NULL;
}

void stream_close(stream_t *stream)
{
    pthread_mutex_destroy(&stream->lock);
    text_fini(&stream->fetched);
    for (size_t i = 0; i < stream->cursor_count; i++) {
        if (stream->cursors[i].has_events) {
            rmm__events_close(&stream->cursors[i].events);
            give_ring(stream);
        }
    }
    if (stream->findings != NULL) {
        bool is_open = stream->findings->is_open;
        findings_pipe_close(stream->findings);
        if (is_open) {
            give_ring(stream);
        }
    }
    free(stream->cursors);
    free(stream->events);
    free(stream);
}

/* --- the node's log ------------------------------------------------------------------- */

/* Where a reader goes on when the generation that he read is full or gone. */
static void next_generation(stream_t *stream, journal_t *journal)
{
    bool has_previous;
    uint32_t newest = journal_generation(journal, stream->node.serial, &has_previous);
    if (stream->generation == 0) {
        stream->generation = has_previous ? newest - 1 : newest;
    } else if (
        stream->generation < newest &&
        stream->offset >=
            journal_extent(journal, stream->generation, stream->node.serial).bytes) {
        if (stream->generation + 1 < newest) {
            text_puts(&stream->fetched, "# lost messages: this reader was too slow\n");
            stream->generation = newest - 2;
        }
        stream->generation++;
        stream->offset = 0;
    }
}

/* Up to the last newline that fits; all that fits if there is none. */
static size_t whole_lines(const char *bytes, size_t left, size_t size)
{
    if (left <= size) {
        return left;
    }
    const char *end = memrchr(bytes, '\n', size);
    return end != NULL ? (size_t)(end - bytes) + 1 : size;
}

static stream_state_t fetch_journal(stream_t *stream, const model_t *model)
{
    text_t *fetched = &stream->fetched;
    if (model->journal == NULL) {
        return STREAM_END;
    }
    next_generation(stream, model->journal);
    size_t before = fetched->length;
    journal_read(
        model->journal, stream->generation, stream->node.serial, stream->offset,
        FETCH_BYTES, fetched);
    size_t got = fetched->length - before;
    if (got == FETCH_BYTES) { /* the last line may go on */
        got = whole_lines(fetched->data + before, got + 1, got);
        fetched->length = before + got;
    }
    stream->offset += got;
    return fetched->length != 0 ? STREAM_DATA : STREAM_WAIT;
}

/* --- a process's log ------------------------------------------------------------------ */

/* NULL: no memory. */
static member_cursor_t *cursor_of(stream_t *stream, const member_t *member)
{
    for (size_t i = 0; i < stream->cursor_count; i++) {
        if (stream->cursors[i].serial == member->serial) {
            return &stream->cursors[i];
        }
    }
    member_cursor_t *grown = realloc(
        stream->cursors, (stream->cursor_count + 1) * sizeof(stream->cursors[0]));
    if (grown == NULL) {
        return NULL;
    }
    stream->cursors = grown;
    grown[stream->cursor_count] = (member_cursor_t){.serial = member->serial};
    return &grown[stream->cursor_count++];
}

static void append_message(const rmm_log_message_t *message, void *arg)
{
    log_line_append(arg, NULL, message);
}

static void fetch_messages(stream_t *stream, const member_t *member)
{
    member_cursor_t *cursor = cursor_of(stream, member);
    if (cursor == NULL || !rmm__segment_has_log(&member->segment)) {
        return;
    }
    uint64_t lost = cursor->ring.lost;
    (void)rmm__segment_read_log(
        &member->segment, &cursor->ring, member->state == MEMBER_EXITED, append_message,
        &stream->fetched);
    log_line_append_lost(
        &stream->fetched, member->process->name, cursor->ring.lost - lost);
}

/* --- a process's events --------------------------------------------------------------- */

static void append_event(const rmm_event_t *event, void *arg)
{
    stream_t *stream = arg;
    char row[RMM_EVENT_CSV_BYTES];
    text_append(&stream->fetched, row, rmm__event_csv(row, event, &stream->clock));
}

/* Each ring takes a descriptor of the daemon's, which counts as a handle of the reader. */
static bool charge_ring(stream_t *stream)
{
    bool is_charged = stream->budget == NULL ||
                      budget_take(stream->budget, stream->uid, BUDGET_HANDLES, 1);
    if (!is_charged) {
        stream->fetched.failed = TEXT_OVER_BUDGET;
    }
    return is_charged;
}

/* The ring is made when tracing is first switched on: until then, again. */
static bool
open_events(stream_t *stream, member_cursor_t *cursor, const member_t *member)
{
    if (!cursor->has_events && member->dir != NULL &&
        rmm__events_open(&cursor->events, member->dir->fd, &member->segment) == 0) {
        cursor->has_events = charge_ring(stream);
        if (!cursor->has_events) {
            rmm__events_close(&cursor->events);
        }
    }
    return cursor->has_events;
}

/* trace/lost counts lost events: all rows are events. */
static void fetch_events(stream_t *stream, member_t *member)
{
    member_cursor_t *cursor = cursor_of(stream, member);
    bool first = !stream->has_header;
    if (first) {
        stream->has_header = true;
        text_puts(&stream->fetched, RMM_EVENT_CSV_HEADER "\n");
    }
    if (cursor == NULL || !open_events(stream, cursor, member)) {
        return;
    }
    cursor->came_late = cursor->came_late || first;
    uint64_t lost = cursor->ring.lost;
    (void)rmm__events_read(
        &cursor->events, &cursor->ring, member->state == MEMBER_EXITED, append_event,
        stream);
    lost = cursor->came_late ? cursor->ring.lost : lost;
    cursor->came_late = false;
    atomic_fetch_add_explicit(
        &member->events_lost, cursor->ring.lost - lost, memory_order_relaxed);
}

/* --- a process's findings ------------------------------------------------------------- */

/* A process has one diagnosis library, and so one file. */
static void fetch_findings(stream_t *stream, const member_t *member)
{
    findings_pipe_t *pipe = stream->findings;
    if (pipe == NULL) {
        return;
    }
    if (!pipe->is_open && charge_ring(stream) && !findings_pipe_attach(pipe, member)) {
        give_ring(stream);
    }
    if (!pipe->is_open || pipe->serial == member->serial) {
        findings_pipe_fetch(pipe, &stream->fetched);
    }
}

static void fetch_member(stream_t *stream, member_t *member)
{
    if (stream->node.file == FILE_findings_pipe) {
        fetch_findings(stream, member);
    } else if (stream->node.file == FILE_events_pipe) {
        fetch_events(stream, member);
    } else {
        fetch_messages(stream, member);
    }
}

static stream_state_t fetch_process(stream_t *stream, const model_t *model)
{
    const process_t *process = model_process(model, stream->node.serial);
    if (process == NULL || process->serial != stream->process) {
        return STREAM_END;
    }
    for (uint32_t i = 0; i < process->member_count; i++) {
        if (process->members[i]->state != MEMBER_UNREADABLE) {
            fetch_member(stream, process->members[i]);
        }
    }
    if (stream->fetched.length != 0) {
        return STREAM_DATA;
    }
    return process_is_live(process) ? STREAM_WAIT : STREAM_END;
}

/* --- the node's events ---------------------------------------------------------------- */

static bool append_node_event(const node_event_t *event, void *arg)
{
    text_t *text = arg;
    render_node_event(event, text);
    return text->length < FETCH_BYTES && text->failed == TEXT_GOOD;
}

static stream_state_t fetch_node_events(stream_t *stream, const model_t *model)
{
    const events_reader_t reader = {
        &model->hiding, stream->fetched.uid, stream->fetched.is_member};
    if (model->events == NULL || stream->events == NULL) {
        return STREAM_END;
    }
    node_events_want(model->events);
    node_events_each(
        model->events, stream->events, &reader, append_node_event, &stream->fetched);
    return stream->fetched.length != 0 ? STREAM_DATA : STREAM_WAIT;
}

static stream_state_t fetch_new(stream_t *stream, const model_t *model)
{
    if (stream->node.file == FILE_log_pipe) {
        return fetch_journal(stream, model);
    }
    return stream->node.file == FILE_node_events_pipe ? fetch_node_events(stream, model)
                                                      : fetch_process(stream, model);
}

bool stream_is_urgent(const stream_t *stream)
{
    return stream->node.file != FILE_node_events_pipe;
}

/* --- all ------------------------------------------------------------------------------ */

stream_state_t stream_fetch(stream_t *stream, const model_t *model)
{
    if (stream->node.file == FILE_log_pipe && model->journal != NULL) {
        journal_collect(model->journal, model);
    }
    return stream_fetch_collected(stream, model);
}

stream_state_t stream_fetch_collected(stream_t *stream, const model_t *model)
{
    stream_state_t state = STREAM_DATA;
    pthread_mutex_lock(&stream->lock);
    if (stream->taken == stream->fetched.length) {
        stream->taken = 0;
        text_clear(&stream->fetched);
        state = fetch_new(stream, model);
        state = stream->fetched.failed != TEXT_GOOD ? STREAM_DATA : state;
    }
    pthread_mutex_unlock(&stream->lock);
    return state;
}

void stream_take(stream_t *stream, size_t size, text_t *text)
{
    pthread_mutex_lock(&stream->lock);
    const char *bytes = stream->fetched.data + stream->taken;
    size_t length = whole_lines(bytes, stream->fetched.length - stream->taken, size);
    text_append(text, bytes, length);
    stream->taken += length;
    if (stream->fetched.failed != TEXT_GOOD) {
        text->failed = stream->fetched.failed;
        stream->taken = stream->fetched.length;
    }
    if (stream->taken == stream->fetched.length) { /* the next may be far away */
        stream->taken = 0;
        text_clear(&stream->fetched);
        text_trim(&stream->fetched);
    }
    pthread_mutex_unlock(&stream->lock);
}
