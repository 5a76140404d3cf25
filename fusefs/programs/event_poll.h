/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out what happened on the node: notes events (node_events.h) about what comes and goes, and
 * about counters of processes that rose since the last look at them.
 *
 * A poll compares a few figures of every live location, as marks_take() has read them last: every
 * EVENT_POLL_WANTED_NS while a reader waits for events, otherwise every EVENT_POLL_IDLE_NS. It
 * reads those of one program when that was refused memory, or ends. So several refused allocations
 * between two polls are one event with a count. A peak that was reset
 * in between is missed, and so is a program that started and ended before the daemon saw its name
 * in the directory. A peak is reported when it is an eighth above the last reported one.
 *
 * Bounds: one step of a poll covers EVENT_POLL_LOCATIONS locations and takes less than a
 * millisecond. A tick of the daemon makes EVENT_POLL_PIECES steps, so that a user with very many
 * locations delays the events of others by some ticks.
 *
 * Threads: the model lock held alone, but for event_poll_changes(), for which shared is enough.
 */
#ifndef RMM_FUSEFS_EVENT_POLL_H
#define RMM_FUSEFS_EVENT_POLL_H

#include <stdbool.h>
#include <stdint.h>

#include "model/model.h"
#include "model/tree.h"

#define EVENT_POLL_WANTED_NS 100000000u
#define EVENT_POLL_IDLE_NS 1000000000u
#define EVENT_POLL_LOCATIONS 256u
#define EVENT_POLL_PIECES 8u

/* From here on; what the processes have counted so far is no event. */
void event_poll_begin(model_t *model);

/* A piece of a look. True: there is more to look at. */
bool event_poll_look(model_t *model);

/* Read what this one has counted, and note what rose. */
void event_poll_look_now(model_t *model, member_t *member);

/* A segment is live now, or has ended: its process has started or exited if it is the only one. */
void event_poll_start(model_t *model, const member_t *member);
void event_poll_exit(model_t *model, member_t *member);

/* The daemon refused a segment; name: of its process, or "". */
void event_poll_refusal(
    model_t *model, uid_t uid, const char *name, const char *reason);

/* Another number after any counter, or the list of processes, changed: readers wait for that. */
uint64_t event_poll_on_node(const model_t *model);

/* Another number after a counter of this file `events` changed. False: it is gone. */
bool event_poll_changes(const model_t *model, node_t node, uint32_t *changes_out);

#endif /* RMM_FUSEFS_EVENT_POLL_H */
