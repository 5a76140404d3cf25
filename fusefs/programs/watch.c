/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refreshing the model; see watch.h.
 */
#include "programs/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "model/gpus.h"
#include "model/journal.h"
#include "model/marks.h"
#include "model/node_events.h"
#include "model/state.h"
#include "model/sums.h"
#include "programs/event_poll.h"
#include "programs/holders.h"
#include "programs/members.h"
#include "programs/pods.h"
#include "programs/refused.h"
#include "programs/refused_blocks.h"
#include "programs/scan.h"
#include "programs/sharing_out.h"
#include "programs/snapshots.h"
#include "programs/sweeps.h"
#include "segments/dirs.h"
#include "segments/exits.h"
#include "support/daemon_log.h"

#define MS 1000000ull
#define FRESH_NS (1 * MS)
#define SURVEY_EVERY_NS                                                                \
    (1000 * MS) /* a file system mounted over a directory is no news */
#define SWEEP_EVERY_NS (10000 * MS)
#define COLLECT_EVERY_NS (10 * MS) /* marks and messages, however much happens */
#define COLLECT_SHARE 200u         /* of the CPU time of one, until the next one */
#define COLLECT_LATEST_NS (2000 * MS)
#define PLACE_EVERY_NS (200 * MS) /* control groups of some programs */
#define SAVE_EVERY_NS (50 * MS)
#define LOOK_NS (300000ull) /* of CPU time that a look spends on what changed */
#define LOOK_STEPS 16u      /* more on a slow machine, up to so many */
#define LOOK_MOST_NS (1 * MS)
#define LOOK_STEPS_LEAST 4u  /* in any case: a new program with its side files */
#define START_NS (5000 * MS) /* that the start does */
#define LATER_NS 5000000l    /* until what waits for the list of locks is met again */

struct watch {
    model_t model;
    dirs_t dirs;
    scan_t scan;
    snapshots_t snapshots;
    sweeps_t sweeps;                /* background thread only */
    _Atomic(uint64_t) refreshed_ns; /* CLOCK_MONOTONIC */
    atomic_bool has_without_gpu;    /* see members.h */
    atomic_bool has_rest;           /* the last refresh ran out of time */
    atomic_bool has_asking;         /* the last refresh left programs that wait */
    bool has_unseen;     /* background thread only: event_poll_look() has more to do */
    uint64_t save_ns;    /* when next; model lock held alone */
    uint64_t history_ns; /* likewise */
    /* Likewise; background thread only. */
    uint64_t survey_ns, sweep_ns, collect_ns, place_ns;
};

static long only_uid(const watch_t *watch)
{
    return watch->dirs.all_users ? -1 : (long)watch->dirs.uid;
}

static void meet_again(void *arg, entry_t *entry)
{
    scan_again(arg, entry);
}

/* Model lock held alone. */
static void take_news(watch_t *watch)
{
    dirs_t *dirs = &watch->dirs;
    dirs_take_news(dirs);
    if (dirs->stale) {
        dirs_survey(dirs);
    }
    if (watch->model.exits != NULL) {
        members_take_exits(&watch->model, meet_again, &watch->scan);
    }
}

/* To meet what a user left dead or torn may take a hundred times as long as other steps. */
static bool goes_on(uint32_t steps, uint64_t spent_ns)
{
    return spent_ns < LOOK_NS || steps < LOOK_STEPS_LEAST ||
           (steps < LOOK_STEPS && spent_ns < LOOK_MOST_NS);
}

/* Model lock held alone. It ends in time, whatever there is to do. */
static void refresh(watch_t *watch)
{
    uint64_t begin = rmm__clock_ns(CLOCK_THREAD_CPUTIME_ID), now = begin;
    bool has_more = true;
    take_news(watch);
    for (uint32_t i = 0; has_more && goes_on(i, now - begin); i++) {
        has_more = scan_step(&watch->scan);
        now = rmm__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    }
    members_check_some(&watch->model);
    refused_take(&watch->model);
    sharing_out(&watch->model, false);
    atomic_store_explicit(&watch->has_rest, has_more, memory_order_relaxed);
    atomic_store_explicit(
        &watch->has_asking, sharing_out_is_due(&watch->model), memory_order_relaxed);
    atomic_store_explicit(
        &watch->has_without_gpu, members_note_without_gpu(&watch->model),
        memory_order_relaxed);
    atomic_store_explicit(
        &watch->refreshed_ns, rmm__clock_ns(CLOCK_MONOTONIC), memory_order_relaxed);
}

static bool is_due(uint64_t *when_ns, uint64_t every_ns, uint64_t now)
{
    if (now < *when_ns) {
        return false;
    }
    *when_ns = now + every_ns;
    return true;
}

/* Model lock held alone, by the background thread. state_settle() is to follow. The first of many
 * changes is saved at once. A daemon that is killed before it saved an exit finds the segment
 * again. */
static void want_save_when_due(watch_t *watch)
{
    model_t *model = &watch->model;
    if (model->is_unsaved &&
        (model->is_urgent ||
         is_due(&watch->save_ns, SAVE_EVERY_NS, rmm__clock_ns(CLOCK_MONOTONIC)))) {
        model->is_unsaved = model->is_urgent = false;
        state_want(model);
    }
}

/* The same after a reader's look, for which the file is written only if nothing else has what
 * the look found. */
static void want_save_when_urgent(watch_t *watch)
{
    if (watch->model.is_urgent) {
        want_save_when_due(watch);
    }
}

static bool have_news(const watch_t *watch)
{
    return watch->model.exits != NULL ? exits_have_news(watch->model.exits)
                                      : dirs_have_news(&watch->dirs);
}

/* Without a lock: every look calls it. */
static bool is_fresh(const watch_t *watch)
{
    uint64_t then = atomic_load_explicit(&watch->refreshed_ns, memory_order_relaxed);
    if (rmm__clock_ns(CLOCK_MONOTONIC) - then >= FRESH_NS) {
        return false;
    }
    return atomic_load_explicit(&watch->has_rest, memory_order_relaxed) ||
           !have_news(watch);
}

/* With the model's lock, shared. A program that has just begun does not tell when it opens its
 * first GPU. */
static bool shows_without_gpu(const watch_t *watch)
{
    return atomic_load_explicit(&watch->has_rest, memory_order_relaxed) ||
           !atomic_load_explicit(&watch->has_without_gpu, memory_order_relaxed) ||
           !members_without_gpu_opened_one(&watch->model);
}

/* --- opening -------------------------------------------------------------------------- */

static void meet_all(watch_t *watch, uint64_t until_ns)
{
    do {
        refresh(watch);
    } while (atomic_load_explicit(&watch->has_rest, memory_order_relaxed) &&
             rmm__clock_ns(CLOCK_MONOTONIC) < until_ns);
}

static void meet_what_is_there(watch_t *watch)
{
    const struct timespec wait = {.tv_nsec = LATER_NS};
    uint64_t until_ns = rmm__clock_ns(CLOCK_MONOTONIC) + START_NS;
    watch->model.counts_ended = state_load(watch->model.state, &watch->model);
    meet_all(watch, until_ns);
    if (watch->model.holders != NULL && holders_read(watch->model.holders)) {
        (void)nanosleep(&wait, NULL);
        meet_all(watch, until_ns);
    }
    watch->model.counts_ended = true;
    scan_forget_gone(&watch->model, &watch->dirs);
    state_save(&watch->model);
}

static uint32_t descriptor_limit(void)
{
    struct rlimit limit;
    return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < UINT32_MAX
               ? (uint32_t)limit.rlim_cur
               : UINT32_MAX;
}

watch_t *watch_open(const watch_config_t *config, char *reason, size_t reason_bytes)
{
    watch_t *watch = calloc(1, sizeof(*watch));
    if (watch == NULL) {
        (void)snprintf(reason, reason_bytes, "out of memory");
        return NULL;
    }
    if (!dirs_open(&watch->dirs, config->use_inotify, reason, reason_bytes)) {
        free(watch);
        return NULL;
    }
    model_init(&watch->model);
    watch->model.dirs = &watch->dirs;
    watch->model.descriptor_limit = descriptor_limit();
    memory_find_own_group(&watch->model.budget.memory);
    watch->model.hiding = config->hiding;
    watch->model.history_step_ms =
        (config->history_seconds != 0 ? config->history_seconds : HISTORY_SECONDS) *
        1000u / HISTORY_SAMPLES;
    watch->model.hiding.own_uid = watch->model.uid;
    snapshots_init(&watch->snapshots);
    scan_init(&watch->scan, &watch->model, &watch->dirs, only_uid(watch));
    gpus_scan_driver(&watch->model, config->driver_root);
    watch->model.state = state_open(watch->dirs.own_path, watch->dirs.only_one);
    watch->model.journal = journal_open(watch->model.uid, &watch->model.budget);
    watch->model.exits = exits_open(watch->dirs.inotify_fd);
    watch->model.holders = holders_open(HOLDERS_PATH);
    watch->model.sums = sums_open();
    meet_what_is_there(watch);
    watch->model.events = node_events_open(watch->model.uid);
    event_poll_begin(&watch->model);
    watch->survey_ns = rmm__clock_ns(CLOCK_MONOTONIC) + SURVEY_EVERY_NS;
    watch->sweep_ns = rmm__clock_ns(CLOCK_MONOTONIC) + SWEEP_EVERY_NS;
    return watch;
}

bool watch_start(watch_t *watch)
{
    return watch->model.holders == NULL || holders_start(watch->model.holders);
}

void watch_close(watch_t *watch)
{
    state_save(&watch->model);
    state_close(watch->model.state);
    sharing_out_mark(&watch->model, false);
    journal_close(watch->model.journal);
    snapshots_fini(&watch->snapshots);
    sweeps_fini(&watch->sweeps);
    scan_fini(&watch->scan);
    model_fini(&watch->model);
    node_events_close(watch->model.events);
    dirs_close(&watch->dirs);
    exits_close(watch->model.exits);
    holders_close(watch->model.holders);
    sums_close(watch->model.sums);
    free(watch);
}

/* --- looking -------------------------------------------------------------------------- */

/* has_begun: what was fresh is not, as a program has begun. */
static void make_fresh(watch_t *watch, bool has_begun)
{
    pthread_rwlock_wrlock(&watch->model.lock);
    if (has_begun || !is_fresh(watch)) {
        refresh(watch);
        want_save_when_urgent(watch);
    }
    pthread_rwlock_unlock(&watch->model.lock);
    state_settle(&watch->model);
}

void watch_settle(watch_t *watch)
{
    if (!is_fresh(watch)) {
        make_fresh(watch, false);
    }
    (void)refused_blocks_take(&watch->model);
}

const model_t *watch_begin(watch_t *watch)
{
    if (!is_fresh(watch)) {
        make_fresh(watch, false);
    }
    pthread_rwlock_rdlock(&watch->model.lock);
    if (!shows_without_gpu(watch)) {
        pthread_rwlock_unlock(&watch->model.lock);
        make_fresh(watch, true);
        pthread_rwlock_rdlock(&watch->model.lock);
    }
    return &watch->model;
}

model_t *watch_begin_change(watch_t *watch)
{
    pthread_rwlock_wrlock(&watch->model.lock);
    refresh(watch);
    watch->model.changes++;
    return &watch->model;
}

void watch_end(watch_t *watch)
{
    pthread_rwlock_unlock(&watch->model.lock);
    state_settle(&watch->model);
    (void)refused_blocks_take(&watch->model); /* of what this look found */
}

void watch_pause(watch_t *watch)
{
    pthread_rwlock_unlock(&watch->model.lock);
    pthread_rwlock_rdlock(&watch->model.lock);
}

model_t *watch_model(watch_t *watch)
{
    return &watch->model;
}

struct snapshots *watch_snapshots(watch_t *watch)
{
    return &watch->snapshots;
}

/* --- time ----------------------------------------------------------------------------- */

/* In pieces, between which readers get in. */
static void expire(model_t *model)
{
    bool has_more = true;
    while (has_more) {
        pthread_rwlock_wrlock(&model->lock);
        has_more = members_expire(model);
        jobs_expire(model);
        pthread_rwlock_unlock(&model->lock);
    }
}

/* Marks and messages of all programs. What a piece wants written is written between the pieces. */
static void collect(model_t *model)
{
    pthread_rwlock_rdlock(&model->lock);
    marks_take(model);
    pthread_rwlock_unlock(&model->lock);
    state_settle(model);
    if (model->journal != NULL) {
        pthread_rwlock_rdlock(&model->lock);
        journal_collect(model->journal, model);
        pthread_rwlock_unlock(&model->lock);
    }
    expire(model);
}

static void place(model_t *model)
{
    pthread_rwlock_wrlock(&model->lock);
    jobs_place_some(model);
    pthread_rwlock_unlock(&model->lock);
    pods_name(model);
}

/* The time until the next look at all programs grows with what this one took: with very many
 * programs they take a COLLECT_SHARE-th of a core, or come every COLLECT_LATEST_NS. */
static void collect_when_due(watch_t *watch, uint64_t now)
{
    if (now < watch->collect_ns) {
        return;
    }
    uint64_t begin = rmm__clock_ns(CLOCK_THREAD_CPUTIME_ID);
    collect(&watch->model);
    uint64_t wait = COLLECT_SHARE * (rmm__clock_ns(CLOCK_THREAD_CPUTIME_ID) - begin);
    wait = wait > COLLECT_EVERY_NS ? wait : COLLECT_EVERY_NS;
    watch->collect_ns = now + (wait < COLLECT_LATEST_NS ? wait : COLLECT_LATEST_NS);
}

/* Model lock held alone. */
static void tick_locked(watch_t *watch, bool is_survey)
{
    watch->dirs.stale = watch->dirs.stale || is_survey;
    refresh(watch);
    want_save_when_due(watch);
}

static void begin_sweeps(watch_t *watch)
{
    pthread_rwlock_wrlock(&watch->model.lock);
    sweeps_begin(&watch->sweeps, &watch->dirs, only_uid(watch));
    scan_list_again(&watch->scan);
    scan_forget_gone(&watch->model, &watch->dirs);
    pthread_rwlock_unlock(&watch->model.lock);
}

/* Without the lock, and a part at a time: programs may have left any number of files. */
static void sweep(watch_t *watch, uint64_t now)
{
    if (is_due(&watch->sweep_ns, SWEEP_EVERY_NS, now)) {
        begin_sweeps(watch);
    }
    sweeps_step(&watch->sweeps);
}

/* In pieces, between which readers get in. */
static void look_for_events(model_t *model)
{
    bool has_more = true;
    for (uint32_t i = 0; i < EVENT_POLL_PIECES && has_more; i++) {
        pthread_rwlock_wrlock(&model->lock);
        has_more = event_poll_look(model);
        pthread_rwlock_unlock(&model->lock);
    }
}

/* Directories of segments come and go, and so do jobs. */
static void look_at_limits(model_t *model)
{
    pthread_rwlock_wrlock(&model->lock);
    if (model->limits.count > 0) {
        sharing_out_mark(model, true);
        model->is_unsaved =
            limits_expire(&model->limits, &model->jobs, model_clock_ns()) ||
            model->is_unsaved;
    }
    pthread_rwlock_unlock(&model->lock);
}

bool watch_tick(watch_t *watch, watch_vanished_fn vanished, void *arg)
{
    model_t *model = &watch->model;
    uint64_t now = rmm__clock_ns(CLOCK_MONOTONIC);
    bool is_survey = is_due(&watch->survey_ns, SURVEY_EVERY_NS, now);
    pthread_rwlock_wrlock(&model->lock);
    tick_locked(watch, is_survey);
    pthread_rwlock_unlock(&model->lock);
    state_settle(model);
    bool has_more = refused_blocks_take(model);
    if (is_survey) {
        state_keep(model);
        look_at_limits(model);
    }
    collect_when_due(watch, now);
    if (is_due(&watch->place_ns, PLACE_EVERY_NS, now)) {
        place(model);
    }
    pthread_rwlock_wrlock(&model->lock);
    if (is_due(&watch->history_ns, model->history_step_ms * MS, now)) {
        marks_step_histories(model);
    }
    uint32_t *serials = model->vanished;
    uint32_t count = model->vanished_count;
    model->vanished = NULL;
    model->vanished_count = 0;
    model->vanished_capacity = 0;
    pthread_rwlock_unlock(&model->lock);
    for (uint32_t i = 0; i < count; i++) {
        vanished(serials[i], arg);
    }
    free(serials);
    snapshots_expire(&watch->snapshots);
    look_for_events(model);
    sweep(watch, now);
    return has_more || atomic_load_explicit(&watch->has_rest, memory_order_relaxed) ||
           atomic_load_explicit(&watch->has_asking, memory_order_relaxed);
}

int watch_news_fd(const watch_t *watch)
{
    return watch->model.exits != NULL ? exits_fd(watch->model.exits)
                                      : watch->dirs.inotify_fd;
}
