/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the model current: adds and removes segments, updates marks, sweeps the
 * segments of dead processes.
 *
 * Freshness. Figures are read when a file is opened; this module keeps the list of
 * processes. Every access to the model goes through watch_begin(). It brings the model up
 * to date if a directory has changed, if a process has ended, if a program has just started
 * and uses no GPU yet, or if that was last done more than a millisecond ago. So a new
 * program, its first GPU and its end are visible at once; the first GPU only if at most
 * MEMBERS_AT_ONCE programs that began later use none. Any other GPU of a program is visible
 * within some milliseconds while at most MEMBERS_AT_ONCE segments are there, else within
 * seconds.
 *
 * Bounds. Anybody may write to a directory, so a look spends at most LOOK_NS on what
 * changed and a step more, or LOOK_MOST_NS where steps take long, and the background thread
 * does the rest in pieces of the same size, between which readers get in. While there is a
 * rest, a look does not wait for it. No write to the state file is made under the lock, and
 * an access waits for one only if it found what nothing else has (state.h).
 *
 * Cost: one system call for each access, and one more for each of MEMBERS_AT_ONCE programs
 * that use no GPU yet, all under the shared lock. Two more for each of MEMBERS_AT_ONCE
 * segments (its lock, its table of locations) once a millisecond: 2 to 4 % of the time.
 */
#ifndef RMM_FUSEFS_WATCH_H
#define RMM_FUSEFS_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "model/model.h"

typedef struct watch watch_t;

typedef struct watch_config {
    bool use_inotify;
    const char *driver_root;  /* rmm__driver_gpus_root() */
    hiding_t hiding;          /* but for own_uid */
    uint32_t history_seconds; /* that the model's histories cover; 0: HISTORY_SECONDS */
} watch_config_t;

/* Finds the directories, loads the state, meets what is there. NULL with a reason. */
watch_t *watch_open(const watch_config_t *config, char *reason, size_t reason_bytes);
/* Its thread, which a fork would end. False: there is none. */
bool watch_start(watch_t *watch);
void watch_close(watch_t *watch);

/* A look at the model, fresh and unchanging until the end of the look. */
const model_t *watch_begin(watch_t *watch);
/* The same, to change something. */
model_t *watch_begin_change(watch_t *watch);
void watch_end(watch_t *watch);
/* Before a look at refusals: find all, and what their programs held (refused_blocks.h). */
void watch_settle(watch_t *watch);
/* In a long look: others may change the model here. It is not made fresh again. */
void watch_pause(watch_t *watch);

/* The model itself, to change what needs no lock but its own (the counter of reads, the budget
 * with its memory), or in a look the marks, which are atomic. */
model_t *watch_model(watch_t *watch);

struct snapshots *watch_snapshots(watch_t *watch);

/* Told of a process whose directory under /rmm/proc the kernel may still know. */
typedef void (*watch_vanished_fn)(uint32_t serial, void *arg);

/* Do what is due by now. Calls `vanished` without any lock held. Returns true if there is more to
 * do at once. */
bool watch_tick(watch_t *watch, watch_vanished_fn vanished, void *arg);

/* To poll for news of directories and processes; -1: there is none, tick by time alone. */
int watch_news_fd(const watch_t *watch);

#endif /* RMM_FUSEFS_WATCH_H */
