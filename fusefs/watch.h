/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Keeps the model current: adds and removes segments, updates marks, sweeps the
 * segments of dead processes.
 *
 * Freshness. Figures are read when a file is opened; this module keeps the list of
 * processes. Every access to the model goes through watch_begin(). It refreshes the
 * model if a directory has changed, if a program has just started and uses no GPU yet,
 * or if the last refresh is older than a millisecond. So a new program and its first
 * GPU are visible at once; an exit, or a further GPU of a program, within a
 * millisecond. Without readers the background thread calls watch_tick(): when a
 * directory changes, and every 200 ms.
 *
 * Cost: one system call for each access. A refresh without changes costs two more for
 * each live segment (its lock, its table of locations).
 */
#ifndef RMM_FUSEFS_WATCH_H
#define RMM_FUSEFS_WATCH_H

#include <stdbool.h>
#include <stddef.h>

#include "model.h"

typedef struct watch watch_t;

typedef struct watch_config {
    bool use_inotify;
    const char *driver_root; /* GPUS_DRIVER_ROOT, but for tests */
} watch_config_t;

/* Finds the directories, loads the state, meets what is there. NULL with a reason. */
watch_t *watch_open(const watch_config_t *config, char *reason, size_t reason_bytes);
void watch_close(watch_t *watch);

/* A look at the model, fresh and unchanging until the end of the look. */
const model_t *watch_begin(watch_t *watch);
/* The same, to change something. */
model_t *watch_begin_change(watch_t *watch);
void watch_end(watch_t *watch);

/* The model itself, for what needs no lock: the counter of reads. */
model_t *watch_model(watch_t *watch);

/* Told of a directory under /rmm/proc that the kernel may still know. */
typedef void (*watch_vanished_fn)(const char *name, void *arg);

/* What time brings. vanished is called without any lock held. */
void watch_tick(watch_t *watch, watch_vanished_fn vanished, void *arg);

/* To poll for news of directories; -1: there is none, tick by time alone. */
int watch_news_fd(const watch_t *watch);

#endif /* RMM_FUSEFS_WATCH_H */
