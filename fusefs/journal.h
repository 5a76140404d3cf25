/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The debug logs of all processes as one text that only grows: /rmm/log. The rings in
 * the segments are small, so the daemon reads them five times a second, and at each
 * access to the log, and keeps their messages here.
 *
 * Each user sees the lines of the user's own processes; root and the daemon's user see
 * all lines. So there is one text for each user and one of all lines.
 *
 * When a text is full, a new generation begins for all texts: `log` is then a new file
 * (its inode contains the generation), and the previous one is `log.1`. So `tail -F`
 * follows, and a byte that a reader may have seen never moves.
 *
 * Threads: any. `lock` protects the texts; the caller holds the model lock, shared is
 * enough, and takes it before.
 */
#ifndef RMM_FUSEFS_JOURNAL_H
#define RMM_FUSEFS_JOURNAL_H

#include <stdint.h>
#include <sys/types.h>

#include "model.h"
#include "text.h"

#define JOURNAL_BYTES ((size_t)1 << 20) /* of a text, then a new generation */

typedef struct journal journal_t;

/* NULL: no memory. `uid`: sees everything, as root does. */
journal_t *journal_open(uid_t uid);
void journal_close(journal_t *journal);

/* Take in what was logged since the last time. */
void journal_collect(journal_t *journal, const model_t *model);

/* The current one; from 1. */
uint32_t journal_generation(journal_t *journal);

/* What `uid` may read of a generation: nothing if it is no more. When it last grew stays
 * the same meanwhile: tail -F looks for another file only while nothing changes. */
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
