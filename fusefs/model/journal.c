/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The node's log; see journal.h.
 */
#include "model/journal.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "model/node_events.h"
#include "model/tree.h"
#include "support/daemon_log.h"
#include "support/log_line.h"

/* The log that one user sees, and how much that user may add to the log of all. */
typedef struct view {
    struct view *next;
    uid_t uid;
    bool all;
    text_t current, previous;
    uint32_t generation; /* of current */
    bool has_previous;
    uint64_t changed_ns, previous_changed_ns;
    uint64_t reserved; /* bytes of the user's budget */
    size_t arrived;    /* in this collection */
    /* For the log of all users: bytes that the user may add now, and since when they are so many;
     * messages that were too many. */
    uint64_t allowance, allowance_ns, over;
} view_t;

/* A message on its way, with its process: sorted by time before it is written. */
typedef struct arrival {
    rmm_log_message_t message;
    const process_t *process;
} arrival_t;

struct journal {
    pthread_mutex_t lock;
    view_t *views; /* the one of all first */
    budget_t *budget;
    uint64_t reserved;         /* of all views */
    uint32_t view_count;       /* but the one of all */
    uint32_t first_generation; /* of a new view: no earlier one of a user has it */
    arrival_t *arrivals;       /* of one collection; little memory of it is kept */
    size_t count, capacity;
    const process_t *process; /* whose ring is being read */
    view_t *reader;           /* the view of its user; NULL: none of its own */
    uint64_t refused;         /* of its messages */
    node_events_t *events;    /* of the model that is being collected; NULL: none */
    uint64_t events_since_ns; /* messages before this are none */
};

static view_t *make_view(uid_t uid, uint32_t generation)
{
    view_t *view = calloc(1, sizeof(*view));
    if (view != NULL) {
        view->uid = uid;
        view->generation = generation;
        view->allowance = JOURNAL_BURST_BYTES;
        view->allowance_ns = model_clock_ns();
        text_init(&view->current);
        text_init(&view->previous);
    }
    return view;
}

journal_t *journal_open(uid_t uid, budget_t *budget)
{
    journal_t *journal = calloc(1, sizeof(*journal));
    if (journal == NULL) {
        return NULL;
    }
    journal->views = make_view(uid, 1);
    if (journal->views == NULL) {
        free(journal);
        return NULL;
    }
    journal->views->all = true;
    journal->budget = budget;
    journal->first_generation = 1;
    pthread_mutex_init(&journal->lock, NULL);
    return journal;
}

static void free_view(journal_t *journal, view_t *view)
{
    if (view->reserved != 0) {
        budget_give(journal->budget, view->uid, BUDGET_LOG_BYTES, view->reserved);
        journal->reserved -= view->reserved;
    }
    text_fini(&view->current);
    text_fini(&view->previous);
    free(view);
}

void journal_close(journal_t *journal)
{
    if (journal == NULL) {
        return;
    }
    while (journal->views != NULL) {
        view_t *view = journal->views;
        journal->views = view->next;
        free_view(journal, view);
    }
    free(journal->arrivals);
    pthread_mutex_destroy(&journal->lock);
    free(journal);
}

/* --- a user's view -------------------------------------------------------------------- */

/* NULL: there is nothing of that user. */
static view_t *find_view(const journal_t *journal, uid_t uid)
{
    for (view_t *view = journal->views; view != NULL; view = view->next) {
        if (view->uid == uid || (view->all && uid == 0)) {
            return view;
        }
    }
    return NULL;
}

static uint32_t generation_after(uint32_t generation)
{
    return generation % TREE_ID_MAX + 1;
}

static void begin_generation(view_t *view)
{
    view->generation = generation_after(view->generation);
    text_move(&view->previous, &view->current);
    view->has_previous = true;
    view->previous_changed_ns = view->changed_ns;
    view->changed_ns = rmm__clock_ns(CLOCK_REALTIME);
}

/* The view that has been the same for longest gives way: its user's log begins anew. */
static bool drop_oldest(journal_t *journal, const view_t *keep)
{
    view_t **oldest = NULL;
    for (view_t **link = &journal->views->next; *link != NULL; link = &(*link)->next) {
        if (*link != keep && (*link)->arrived == 0 &&
            (oldest == NULL || (*link)->changed_ns < (*oldest)->changed_ns)) {
            oldest = link;
        }
    }
    if (oldest == NULL) {
        return false;
    }
    view_t *view = *oldest;
    *oldest = view->next;
    if (view->generation >= journal->first_generation) {
        journal->first_generation = generation_after(view->generation);
    }
    free_view(journal, view);
    journal->view_count--;
    return true;
}

/* A user's first message makes the view. NULL: no memory. */
static view_t *ensure_view(journal_t *journal, uid_t uid)
{
    view_t *view = find_view(journal, uid);
    if (view == NULL) {
        if (journal->view_count >= JOURNAL_USERS_MAX) {
            (void)drop_oldest(journal, NULL);
        }
        view = make_view(uid, journal->first_generation);
        if (view != NULL) {
            journal->view_count++;
            view->next = journal->views->next;
            journal->views->next = view;
        }
    }
    return view;
}

/* Charge a step to the user's budget and the daemon's memory. False: one of them has no more. */
static bool take_step(journal_t *journal, uid_t uid)
{
    budget_t *budget = journal->budget;
    if (!budget_take(budget, uid, BUDGET_LOG_BYTES, JOURNAL_STEP_BYTES)) {
        return false;
    }
    if (!memory_take(&budget->memory, JOURNAL_STEP_BYTES)) {
        budget_give(budget, uid, BUDGET_LOG_BYTES, JOURNAL_STEP_BYTES);
        return false;
    }
    return true;
}

/* False: the user may not have more, or the daemon has no memory. Another's view gives way last,
 * when nothing else refuses. */
static bool reserve(journal_t *journal, view_t *view, size_t more)
{
    while (!view->all &&
           view->current.length + view->previous.length + more > view->reserved) {
        if (!take_step(journal, view->uid)) {
            return false;
        }
        if (journal->reserved + JOURNAL_STEP_BYTES > JOURNAL_USERS_BYTES &&
            !drop_oldest(journal, view)) {
            budget_give(
                journal->budget, view->uid, BUDGET_LOG_BYTES, JOURNAL_STEP_BYTES);
            return false;
        }
        view->reserved += JOURNAL_STEP_BYTES;
        journal->reserved += JOURNAL_STEP_BYTES;
    }
    return true;
}

static void write_line(journal_t *journal, view_t *view, const text_t *line)
{
    size_t most = view->all ? JOURNAL_BYTES : JOURNAL_USER_BYTES;
    if (view->current.length >= most || view->current.failed) {
        begin_generation(view);
    }
    if (reserve(journal, view, line->length)) {
        text_append(&view->current, line->data, line->length);
        view->changed_ns = rmm__clock_ns(CLOCK_REALTIME);
    }
}

/* --- what a user may add to the view of all ------------------------------------------- */

/* Once it is used up it begins again when a part has come back, not with every line. */
static bool may_add(view_t *user, size_t bytes)
{
    uint64_t now = model_clock_ns();
    uint64_t back = (now - user->allowance_ns) / JOURNAL_NS_PER_BYTE;
    uint64_t room = JOURNAL_BURST_BYTES - user->allowance;
    user->allowance += back < room ? back : room;
    user->allowance_ns = now;
    return user->allowance >= (user->over != 0 ? JOURNAL_RESUME_BYTES : bytes);
}

static void tell_over(journal_t *journal, view_t *user)
{
    text_t line;
    if (user->over == 0 || !may_add(user, 0)) {
        return;
    }
    text_init(&line);
    text_printf(
        &line, "# uid %u: %" PRIu64 " messages over budget\n", user->uid, user->over);
    user->over = 0;
    user->allowance -= line.length < user->allowance ? line.length : user->allowance;
    write_line(journal, journal->views, &line);
    text_fini(&line);
}

/* `user`: NULL if it is root or the daemon's user, who may add any number of lines. */
static void write_for_all(journal_t *journal, view_t *user, const text_t *line)
{
    if (user != NULL) {
        tell_over(journal, user);
        if (!may_add(user, line->length)) {
            user->over++;
            return;
        }
        user->allowance -=
            line->length < user->allowance ? line->length : user->allowance;
    }
    write_line(journal, journal->views, line);
}

/* In the user's own view, if it has one, and in that of all. */
static void write_both(journal_t *journal, uid_t uid, const text_t *line)
{
    view_t *view = ensure_view(journal, uid);
    if (view != NULL && !view->all) {
        write_line(journal, view, line);
    }
    if (view != NULL) {
        write_for_all(journal, view->all ? NULL : view, line);
    }
}

/* --- collecting ----------------------------------------------------------------------- */

static bool make_room(journal_t *journal)
{
    if (journal->count < journal->capacity) {
        return true;
    }
    size_t capacity = journal->capacity == 0 ? 32 : journal->capacity * 2;
    arrival_t *grown = capacity > JOURNAL_ARRIVALS_MAX
                           ? NULL
                           : realloc(journal->arrivals, capacity * sizeof(*grown));
    if (grown != NULL) {
        journal->arrivals = grown;
        journal->capacity = capacity;
    }
    return grown != NULL;
}

static void note_arrival(const rmm_log_message_t *message, void *arg)
{
    journal_t *journal = arg;
    if (journal->reader == NULL) {
        journal->reader = ensure_view(journal, journal->process->uid);
    }
    view_t *reader = journal->reader;
    if (reader == NULL || reader->arrived >= JOURNAL_USER_ARRIVALS ||
        !make_room(journal)) {
        journal->refused++;
        return;
    }
    reader->arrived++;
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

/* Makes an event of a program's error message, visible to its user. */
static void note_error(journal_t *journal, const arrival_t *arrival)
{
    const process_t *process = arrival->process;
    node_event_t event = {
        .type = EVENT_ERROR,
        .is_private = true,
        .uid = process->uid,
        .pid = process->pid,
        .device = EVENT_NO_DEVICE,
        .bytes = EVENT_NO_FIGURE,
        .count = EVENT_NO_FIGURE};
    (void)snprintf(event.process, sizeof(event.process), "%s", process->name);
    (void)snprintf(event.text, sizeof(event.text), "%.127s", arrival->message.text);
    node_events_note(journal->events, &event);
}

static void write_arrival(journal_t *journal, const arrival_t *arrival)
{
    text_t line;
    if (arrival->message.level >= log_line_error_level() &&
        arrival->message.time_ns >= journal->events_since_ns) {
        note_error(journal, arrival);
    }
    text_init(&line);
    log_line_append(&line, arrival->process->name, &arrival->message);
    write_both(journal, arrival->process->uid, &line);
    text_fini(&line);
}

static void write_lost(journal_t *journal, const process_t *process, uint64_t count)
{
    text_t line;
    text_init(&line);
    log_line_append_lost(&line, process->name, count);
    if (line.length != 0) {
        write_both(journal, process->uid, &line);
    }
    text_fini(&line);
}

static void collect_member(journal_t *journal, member_t *member)
{
    uint64_t lost = member->log_cursor.lost;
    bool ended = member->state == MEMBER_EXITED;
    if (member->state == MEMBER_UNREADABLE || member->is_log_over ||
        !rmm__segment_has_log(&member->segment)) {
        return;
    }
    member->is_log_over = ended;
    if (member->segment.header.log_count > JOURNAL_RING_MESSAGES) {
        /* Not one of the library's. Reading it would delay all waiters. */
        write_lost(
            journal, member->process, lost == 0 ? member->segment.header.log_count : 0);
        member->log_cursor.lost = member->segment.header.log_count;
        return;
    }
    journal->process = member->process;
    journal->reader = NULL;
    journal->refused = 0;
    (void)rmm__segment_read_log(
        &member->segment, &member->log_cursor, ended, note_arrival, journal);
    write_lost(
        journal, member->process, member->log_cursor.lost - lost + journal->refused);
}

static void end_collection(journal_t *journal)
{
    for (view_t *view = journal->views; view != NULL; view = view->next) {
        view->arrived = 0;
        tell_over(journal, view);
    }
    journal->count = 0;
    if (journal->capacity > JOURNAL_ARRIVALS_KEPT) {
        free(journal->arrivals);
        journal->arrivals = NULL;
        journal->capacity = 0;
    }
}

/* The clock may have been set back since the daemon's start, as at a boot. By the old clock no
 * message would be an event for as long. */
static uint64_t start_by_todays_clock_ns(const model_t *model)
{
    return rmm__clock_ns(CLOCK_REALTIME) - (model_clock_ns() - model->started_ns);
}

void journal_collect(journal_t *journal, const model_t *model)
{
    pthread_mutex_lock(&journal->lock);
    journal->events = model->events;
    journal->events_since_ns = start_by_todays_clock_ns(model);
    for (uint32_t i = 0; i < model->member_count; i++) {
        collect_member(journal, model->members[i]);
    }
    if (journal->count > 1) {
        qsort(
            journal->arrivals, journal->count, sizeof(journal->arrivals[0]),
            compare_times);
    }
    for (size_t i = 0; i < journal->count; i++) {
        write_arrival(journal, &journal->arrivals[i]);
    }
    end_collection(journal);
    pthread_mutex_unlock(&journal->lock);
}

/* --- reading -------------------------------------------------------------------------- */

/* NULL: there is nothing of that user's. */
static const text_t *find_text(const view_t *view, uint32_t generation)
{
    if (view == NULL) {
        return NULL;
    }
    return generation == view->generation ? &view->current
           : generation_after(generation) == view->generation && view->has_previous
               ? &view->previous
               : NULL;
}

uint32_t journal_generation(journal_t *journal, uid_t uid, bool *has_previous_out)
{
    pthread_mutex_lock(&journal->lock);
    const view_t *view = find_view(journal, uid);
    uint32_t generation = view != NULL ? view->generation : journal->first_generation;
    *has_previous_out = view != NULL && view->has_previous;
    pthread_mutex_unlock(&journal->lock);
    return generation;
}

journal_extent_t journal_extent(journal_t *journal, uint32_t generation, uid_t uid)
{
    journal_extent_t extent = {0};
    pthread_mutex_lock(&journal->lock);
    const view_t *view = find_view(journal, uid);
    const text_t *text = find_text(view, generation);
    if (text != NULL) {
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
    const text_t *from = find_text(find_view(journal, uid), generation);
    if (from != NULL && offset < from->length) {
        size_t left = from->length - (size_t)offset;
        text_append(text, from->data + offset, left < size ? left : size);
    }
    pthread_mutex_unlock(&journal->lock);
}
