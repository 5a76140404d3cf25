/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The names in the directories of segments, and which of them still wait to be met.
 * Anybody may write to a directory, so the work that a name causes is done in steps, and
 * a caller stops when its time is over:
 *
 *   NEW      a notice or a listing named it; whose file it is, is not known yet
 *   QUEUED   in the queue of the file's owner; the queues take turns, one name each
 *   WAITING  the segment is being made: looked at again after 1 ms, 2 ms, ... 512 ms
 *   TAKEN    a member, or its totals are in the devices already
 *   REFUSED  counted and logged. Of these only the newest REFUSED_MAX are remembered
 *
 * So an owner with 100,000 names delays other owners' names by one step for each of
 * theirs, and no name costs a second step before it changes. Names are charged to the file's
 * owner, from QUEUED on; one that is over the budget is forgotten until the next listing.
 *
 * inotify names what changed. A whole directory is listed at the start, when notices
 * were lost, without inotify, and every 10 s for names that were over an owner's budget;
 * a listing is done in steps too.
 *
 * Threads: model lock held alone.
 */
#ifndef RMM_FUSEFS_SCAN_H
#define RMM_FUSEFS_SCAN_H

#include <sys/queue.h>

#include "model/model.h"
#include "segments/dirs.h"

#define SCAN_WAIT_LEVELS 10u     /* 1 ms << level */
#define SCAN_REFUSED_MAX 4096u   /* remembered */
#define SCAN_ARRIVALS_MAX 16384u /* NEW ones of a directory; then it is listed again */

typedef TAILQ_HEAD(entry_list, entry) entry_list_t;

typedef struct scan_owner {
    TAILQ_ENTRY(scan_owner) link;
    uid_t uid;
    entry_list_t names; /* never empty */
} scan_owner_t;

typedef struct scan {
    model_t *model;
    dirs_t *dirs;
    long only_uid; /* the user whose segments are shown; -1: every user's */
    entry_list_t arrivals;
    TAILQ_HEAD(, scan_owner) owners; /* with names in a queue; the first is next */
    entry_list_t waiting[SCAN_WAIT_LEVELS]; /* each in the order of retry_ns */
    entry_list_t refused;
    uint32_t refused_count;
} scan_t;

/* model and dirs are borrowed. dirs_take_news() gives it new names. */
void scan_init(scan_t *scan, model_t *model, dirs_t *dirs, long only_uid);
/* Forget all names, before the budget that they are charged to ends. */
void scan_fini(scan_t *scan);

/* One step. False: there is nothing to do now. */
bool scan_step(scan_t *scan);

/* Meet a name's segment again, as if it were new. */
void scan_again(scan_t *scan, entry_t *entry);

/* List every directory again. */
void scan_list_again(scan_t *scan);

/* Forget those of model->totalled whose files are gone from all directories. */
void scan_forget_gone(model_t *model, const dirs_t *dirs);

#endif /* RMM_FUSEFS_SCAN_H */
