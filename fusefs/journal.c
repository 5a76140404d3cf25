/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node's log; see journal.h.
 */
#include "journal.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "log.h"
#include "log_line.h"

/* What one user sees. */
typedef struct view {
    struct view *next;
    uid_t uid;
    bool all;
    text_t current, previous;
    uint64_t changed_ns, previous_changed_ns;
} view_t;

/* A message on its way, with its process: sorted by time before it is written. */
typedef struct arrival {
    rmm_log_message_t message;
    const process_t *process;
} arrival_t;

struct journal {
    pthread_mutex_t lock;
    view_t *views; /* the one of all first */
    uint32_t generation;
    arrival_t *arrivals; /* of one collection; its memory is kept */
    size_t count, capacity;
    const process_t *process; /* whose ring is being read */
};

static view_t *make_view(uid_t uid, bool all)
{
    view_t *view = calloc(1, sizeof(*view));
    if (view != NULL) {
        view->uid = uid;
        view->all = all;
        text_init(&view->current);
        text_init(&view->previous);
    }
    return view;
}

journal_t *journal_open(uid_t uid)
{
    journal_t *journal = calloc(1, sizeof(*journal));
    if (journal == NULL) {
        return NULL;
    }
    journal->views = make_view(uid, true);
    if (journal->views == NULL) {
        free(journal);
        return NULL;
    }
    pthread_mutex_init(&journal->lock, NULL);
    journal->generation = 1;
    return journal;
}

void journal_close(journal_t *journal)
{
    if (journal == NULL) {
        return;
    }
    while (journal->views != NULL) {
        view_t *view = journal->views;
        journal->views = view->next;
        text_fini(&view->current);
        text_fini(&view->previous);
        free(view);
    }
    free(journal->arrivals);
    pthread_mutex_destroy(&journal->lock);
    free(journal);
}

/* --- collecting ----------------------------------------------------------------------- */

static void note_arrival(const rmm_log_message_t *message, void *arg)
{
    journal_t *journal = arg;
    if (journal->count == journal->capacity) {
        size_t capacity = journal->capacity == 0 ? 32 : journal->capacity * 2;
        arrival_t *grown = realloc(journal->arrivals, capacity * sizeof(*grown));
        if (grown == NULL) {
            return; /* its line is lost; so is little else of this daemon */
        }
        journal->arrivals = grown;
        journal->capacity = capacity;
    }
    journal->arrivals[journal->count].message = *message;
    journal->arrivals[journal->count].process = journal->process;
    journal->count++;
}

static int compare_times(const void *left, const void *right)
{
    const arrival_t *a = left, *b = right;
    if (a->message.time_ns != b->message.time_ns) {
        return a->message.time_ns < b->message.time_ns ? -1 : 1;
    }
    return a->message.number < b->message.number   ? -1
           : a->message.number > b->message.number ? 1
                                                   : 0;
}

static bool sees(const view_t *view, const process_t *process)
{
    return view->all || view->uid == process->uid;
}

/* A user's first message makes his view. */
static void ensure_view(journal_t *journal, uid_t uid)
{
    view_t **link = &journal->views;
    if (uid == 0 || uid == journal->views->uid) {
        return;
    }
    for (; *link != NULL; link = &(*link)->next) {
        if (!(*link)->all && (*link)->uid == uid) {
            return;
        }
    }
    *link = make_view(uid, false);
}

static void write_arrival(journal_t *journal, const arrival_t *arrival)
{
    ensure_view(journal, arrival->process->uid);
    for (view_t *view = journal->views; view != NULL; view = view->next) {
        if (sees(view, arrival->process)) {
            log_line_append(&view->current, arrival->process->name, &arrival->message);
            view->changed_ns = clock_read_ns(CLOCK_REALTIME);
        }
    }
}

static void write_lost(journal_t *journal, const process_t *process, uint64_t count)
{
    for (view_t *view = journal->views; view != NULL; view = view->next) {
        if (sees(view, process)) {
            log_line_append_lost(&view->current, process->name, count);
        }
    }
}

static void collect_member(journal_t *journal, member_t *member)
{
    uint64_t lost = member->log_cursor.lost;
    bool ended = member->state == MEMBER_EXITED;
    if (member->state == MEMBER_UNREADABLE || !rmm_segment_has_log(&member->segment)) {
        return;
    }
    journal->process = member->process;
    (void)rmm_segment_read_log(
        &member->segment, &member->log_cursor, ended, note_arrival, journal);
    write_lost(journal, member->process, member->log_cursor.lost - lost);
}

static bool is_full(const journal_t *journal)
{
    for (const view_t *view = journal->views; view != NULL; view = view->next) {
        if (view->current.length >= JOURNAL_BYTES || view->current.failed) {
            return true;
        }
    }
    return false;
}

static void begin_generation(journal_t *journal)
{
    journal->generation++;
    for (view_t *view = journal->views; view != NULL; view = view->next) {
        text_fini(&view->previous);
        text_init(&view->previous);
        text_append(&view->previous, view->current.data, view->current.length);
        view->previous_changed_ns = view->changed_ns;
        text_fini(&view->current);
        text_init(&view->current);
        view->changed_ns = clock_read_ns(CLOCK_REALTIME);
    }
}

void journal_collect(journal_t *journal, const model_t *model)
{
    pthread_mutex_lock(&journal->lock);
    if (is_full(journal)) {
        begin_generation(journal);
    }
    journal->count = 0;
    for (uint32_t i = 0; i < model->process_count; i++) {
        for (uint32_t j = 0; j < model->processes[i]->member_count; j++) {
            collect_member(journal, model->processes[i]->members[j]);
        }
    }
    if (journal->count > 1) {
        qsort(
            journal->arrivals, journal->count, sizeof(journal->arrivals[0]),
            compare_times);
    }
    for (size_t i = 0; i < journal->count; i++) {
        write_arrival(journal, &journal->arrivals[i]);
    }
    pthread_mutex_unlock(&journal->lock);
}

/* --- reading -------------------------------------------------------------------------- */

/* NULL: there is nothing of his. */
static const view_t *find_view(const journal_t *journal, uid_t uid)
{
    for (const view_t *view = journal->views; view != NULL; view = view->next) {
        if (view->uid == uid || (view->all && uid == 0)) {
            return view;
        }
    }
    return NULL;
}

/* NULL: there is nothing of his. */
static const text_t *find_text(const journal_t *journal, uint32_t generation, uid_t uid)
{
    const view_t *view = find_view(journal, uid);
    if (view == NULL) {
        return NULL;
    }
    return generation == journal->generation       ? &view->current
           : generation + 1 == journal->generation ? &view->previous
                                                   : NULL;
}

uint32_t journal_generation(journal_t *journal)
{
    pthread_mutex_lock(&journal->lock);
    uint32_t generation = journal->generation;
    pthread_mutex_unlock(&journal->lock);
    return generation;
}

journal_extent_t journal_extent(journal_t *journal, uint32_t generation, uid_t uid)
{
    journal_extent_t extent = {0};
    pthread_mutex_lock(&journal->lock);
    const text_t *text = find_text(journal, generation, uid);
    if (text != NULL) {
        const view_t *view = find_view(journal, uid);
        extent.bytes = text->length;
        extent.changed_ns =
            text == &view->current ? view->changed_ns : view->previous_changed_ns;
    }
    pthread_mutex_unlock(&journal->lock);
    return extent;
}

void journal_read(
    journal_t *journal, uint32_t generation, uid_t uid, uint64_t offset, size_t size,
    text_t *text)
{
    pthread_mutex_lock(&journal->lock);
    const text_t *from = find_text(journal, generation, uid);
    if (from != NULL && offset < from->length) {
        size_t left = from->length - (size_t)offset;
        text_append(text, from->data + offset, left < size ? left : size);
    }
    pthread_mutex_unlock(&journal->lock);
}
