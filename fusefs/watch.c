/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Refreshing the model; see watch.h.
 */
#include "watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dirs.h"
#include "gpus.h"
#include "journal.h"
#include "log.h"
#include "marks.h"
#include "members.h"
#include "scan.h"
#include "state.h"

#define MS 1000000ull
#define FRESH_NS (1 * MS)
#define SURVEY_EVERY_NS                                                                \
    (1000 * MS) /* a file system mounted over a directory is no news */
#define SWEEP_EVERY_NS (10000 * MS)

struct watch {
    model_t model;
    dirs_t dirs;
    _Atomic(uint64_t) refreshed_ns; /* CLOCK_MONOTONIC */
    atomic_bool has_beginners;      /* see members.h */
    uint64_t survey_ns, sweep_ns;   /* when next; background thread only */
};

static long only_uid(const watch_t *watch)
{
    return watch->dirs.all_users ? -1 : (long)watch->dirs.uid;
}

/* Model lock held alone. */
static void look_around(watch_t *watch)
{
    dirs_t *dirs = &watch->dirs;
    dirs_take_news(dirs);
    if (dirs->stale) {
        dirs_survey(dirs);
    }
    if (dirs->home_moved) {
        dirs->home_moved = false;
        state_move(watch->model.state, dirs->home_fd);
        state_save(&watch->model);
    }
    for (size_t i = 0; i < dirs->count; i++) {
        if (dirs->list[i]->changed && !dirs->list[i]->gone) {
            scan_dir(&watch->model, dirs->list[i], only_uid(watch));
        }
    }
}

/* Model lock held alone. */
static void refresh(watch_t *watch)
{
    look_around(watch);
    if (members_refresh(&watch->model)) {
        state_save(&watch->model);
    }
    atomic_store_explicit(
        &watch->has_beginners, members_have_beginners(&watch->model),
        memory_order_relaxed);
    atomic_store_explicit(
        &watch->refreshed_ns, clock_read_ns(CLOCK_MONOTONIC), memory_order_relaxed);
}

/* Without a lock: this is asked at every look. */
static bool is_fresh(const watch_t *watch)
{
    uint64_t then = atomic_load_explicit(&watch->refreshed_ns, memory_order_relaxed);
    return clock_read_ns(CLOCK_MONOTONIC) - then < FRESH_NS &&
           !atomic_load_explicit(&watch->has_beginners, memory_order_relaxed) &&
           !dirs_have_news(&watch->dirs);
}

static void sweep(watch_t *watch)
{
    for (size_t i = 0; i < watch->dirs.count; i++) {
        if (!watch->dirs.list[i]->gone) {
            (void)rmm__runtime_dir_sweep(watch->dirs.list[i]->fd, only_uid(watch));
        }
    }
}

/* --- opening -------------------------------------------------------------------------- */

static void meet_what_is_there(watch_t *watch)
{
    bool known = state_load(watch->model.state, &watch->model);
    look_around(watch);
    if (!known) {
        members_disown_dead(&watch->model); /* totals are those since the start */
    }
    refresh(watch);
    scan_forget_gone(&watch->model, &watch->dirs);
    state_save(&watch->model);
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
    gpus_scan_driver(&watch->model, config->driver_root);
    watch->model.state = state_open(watch->dirs.home_fd, watch->dirs.home);
    watch->model.journal = journal_open(watch->model.uid);
    meet_what_is_there(watch);
    watch->survey_ns = clock_read_ns(CLOCK_MONOTONIC) + SURVEY_EVERY_NS;
    watch->sweep_ns = clock_read_ns(CLOCK_MONOTONIC) + SWEEP_EVERY_NS;
    return watch;
}

void watch_close(watch_t *watch)
{
    state_save(&watch->model);
    state_close(watch->model.state);
    journal_close(watch->model.journal);
    model_fini(&watch->model);
    dirs_close(&watch->dirs);
    free(watch);
}

/* --- looking -------------------------------------------------------------------------- */

const model_t *watch_begin(watch_t *watch)
{
    if (!is_fresh(watch)) {
        pthread_rwlock_wrlock(&watch->model.lock);
        if (!is_fresh(watch)) {
            refresh(watch);
        }
        pthread_rwlock_unlock(&watch->model.lock);
    }
    pthread_rwlock_rdlock(&watch->model.lock);
    return &watch->model;
}

model_t *watch_begin_change(watch_t *watch)
{
    pthread_rwlock_wrlock(&watch->model.lock);
    refresh(watch);
    return &watch->model;
}

void watch_end(watch_t *watch)
{
    pthread_rwlock_unlock(&watch->model.lock);
}

model_t *watch_model(watch_t *watch)
{
    return &watch->model;
}

/* --- time ----------------------------------------------------------------------------- */

static bool is_due(uint64_t *when_ns, uint64_t every_ns, uint64_t now)
{
    if (now < *when_ns) {
        return false;
    }
    *when_ns = now + every_ns;
    return true;
}

/* Model lock held alone. */
static void tick_locked(watch_t *watch, uint64_t now)
{
    bool survey = is_due(&watch->survey_ns, SURVEY_EVERY_NS, now);
    watch->dirs.stale = watch->dirs.stale || survey;
    refresh(watch);
    marks_take(&watch->model);
    if (watch->model.journal != NULL) {
        journal_collect(watch->model.journal, &watch->model);
    }
    members_expire(&watch->model);
    if (is_due(&watch->sweep_ns, SWEEP_EVERY_NS, now)) {
        sweep(watch);
        refresh(watch);
        scan_forget_gone(&watch->model, &watch->dirs);
    }
}

void watch_tick(watch_t *watch, watch_vanished_fn vanished, void *arg)
{
    model_t *model = &watch->model;
    pthread_rwlock_wrlock(&model->lock);
    tick_locked(watch, clock_read_ns(CLOCK_MONOTONIC));
    vanished_t *names = model->vanished;
    uint32_t count = model->vanished_count;
    model->vanished = NULL;
    model->vanished_count = 0;
    model->vanished_capacity = 0;
    pthread_rwlock_unlock(&model->lock);
    for (uint32_t i = 0; i < count; i++) {
        vanished(names[i].name, arg);
    }
    free(names);
}

int watch_news_fd(const watch_t *watch)
{
    return watch->dirs.inotify_fd;
}
