/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug logs of all processes as one text that only grows: /rmm/log. The rings in
 * the segments are small, so the daemon reads them up to five times a second, and at each
 * access to the log, and keeps their messages here.
 *
 * Each user sees the lines of the user's own processes; root and the daemon's user see
 * all lines. So there is one text for each user and one of all lines.
 *
 * When a text is full, a new generation of that user's log begins: `log` is then a new file
 * (its inode contains the generation), and the previous one is `log.1`. So `tail -F`
 * follows, and a byte that a reader may have seen never moves.
 *
 * A user who writes much displaces only that user's own lines: each user's text has its own
 * limit, and the rate at which a user adds to the text of all lines is bounded. A line there
 * counts the messages that exceeded it. All users' texts together are bounded, too (budget.h):
 * the text that has not changed for longest is dropped first.
 *
 * The rings of an ended program are read once more and then no longer: a user can leave hundreds
 * of dead segments, and all readers wait while they are read.
 *
 * Threads: any. `lock` protects the texts; the caller holds the model lock, shared is
 * enough, and takes it before.
 */
#ifndef RMM_FUSEFS_JOURNAL_H
#define RMM_FUSEFS_JOURNAL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/model.h"
#include "support/budget.h"
#include "support/text.h"

/* The length at which a text begins a new generation: the one with all lines, and a user's. */
#define JOURNAL_BYTES ((size_t)1 << 20)
#define JOURNAL_USER_BYTES ((size_t)240 << 10)
/* Users' texts are reserved in steps, and together have this much. */
#define JOURNAL_STEP_BYTES ((uint64_t)16 << 10)
#define JOURNAL_USERS_BYTES ((uint64_t)8 << 20)
#define JOURNAL_USERS_MAX 1024u

/* A user may add so many bytes to all lines at once. The allowance refills by 1 KiB a second; a
 * user who used it up may continue when JOURNAL_RESUME_BYTES are there. */
#define JOURNAL_BURST_BYTES ((uint64_t)256 << 10)
#define JOURNAL_RESUME_BYTES ((uint64_t)4 << 10)
#define JOURNAL_NS_PER_BYTE (1000000000u / 1024u)

/* Messages of one collection: of a ring (the library's has 128), of a user, of all. More are
 * lost. The memory of a few stays. */
#define JOURNAL_RING_MESSAGES 1024u
#define JOURNAL_USER_ARRIVALS 2048u
#define JOURNAL_ARRIVALS_MAX 32768u
#define JOURNAL_ARRIVALS_KEPT 1024u

typedef struct journal journal_t;

/* NULL: no memory. `uid`: sees everything, as root does. `budget`: borrowed until close. */
journal_t *journal_open(uid_t uid, budget_t *budget);
void journal_close(journal_t *journal);

/* Take in what was logged since the last time. */
void journal_collect(journal_t *journal, const model_t *model);

/* The current one of a user; from 1. The one before it may still be there. */
uint32_t journal_generation(journal_t *journal, uid_t uid, bool *has_previous_out);

/* The part of a generation that `uid` may read: nothing once the generation is gone. Until then
 * the time of its last growth stays: tail -F looks for another file only while nothing changes. */
typedef struct journal_extent {
    uint64_t bytes;
    uint64_t changed_ns; /* CLOCK_REALTIME; 0: never */
} journal_extent_t;

journal_extent_t journal_extent(journal_t *journal, uint32_t generation, uid_t uid);

/* Append up to `size` bytes from `offset` on to `text`. */
void journal_read(
    journal_t *journal, uint32_t generation, uid_t uid, uint64_t offset, size_t size,
    text_t *text);

#endif /* RMM_FUSEFS_JOURNAL_H */
