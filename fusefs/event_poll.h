/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Finds out what happened on the node: notes events (node_events.h) about what comes and goes, and
 * about counters of processes that rose since the last look at them.
 *
 * A poll reads a few figures of every live location: every HAPPENED_WANTED_NS while a reader waits
 * for events, otherwise every HAPPENED_IDLE_NS, and once more when a process ends. So several
 * refused allocations between two polls are one event with a count. A peak that was reset in
 * between is missed, and so is a program that started and ended before the daemon saw its name in
 * the directory. A peak is reported when it is an eighth above the last reported one.
 *
 * Bounds: one step of a poll covers HAPPENED_LOCATIONS locations and takes less than a
 * millisecond. A tick of the daemon makes HAPPENED_PIECES steps, so that a user with very many
 * locations delays the events of others by some ticks.
 *
 * Threads: the model lock held alone, but for happened_changes(), for which shared is enough.
 */
#ifndef RMM_FUSEFS_HAPPENED_H
#define RMM_FUSEFS_HAPPENED_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"
#include "tree.h"

#define HAPPENED_WANTED_NS 100000000u
#define HAPPENED_IDLE_NS 1000000000u
#define HAPPENED_LOCATIONS 256u
#define HAPPENED_PIECES 8u

/* From here on; what the processes have counted so far is no event. */
void happened_begin(model_t *model);

/* A piece of a look. True: there is more to look at. */
bool happened_look(model_t *model);

/* A segment is live now, or has ended: its process has started or exited if it is the only one. */
void happened_start(model_t *model, const member_t *member);
void happened_exit(model_t *model, member_t *member);

/* The daemon refused a segment; name: of its process, or "". */
void happened_refusal(model_t *model, uid_t uid, const char *name, const char *reason);

/* Another number after any counter, or the list of processes, changed: readers wait for that. */
uint64_t happened_on_node(const model_t *model);

/* Another number after a counter of this file `events` changed. False: it is gone. */
bool happened_changes(const model_t *model, node_t node, uint32_t *changes_out);

#endif /* RMM_FUSEFS_HAPPENED_H */
