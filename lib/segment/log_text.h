/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The beginning of a line of a debug log, in the library's log and in the daemon's: the time,
 * or in the journal of systemd, which keeps the time itself, the priority.
 */
#ifndef RMM_SEGMENT_LOG_TEXT_H
#define RMM_SEGMENT_LOG_TEXT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define RMM_LOG_TIME_BYTES 80 /* enough for any struct tm */

/* ISO 8601 with the zone's offset: "2026-11-22T13:02:59.000123+01:00". `local` is the local
 * time of time_ns, which is since 1970. */
void rmm__log_time(
    char text[RMM_LOG_TIME_BYTES], uint64_t time_ns, const struct tm *local);

/* The open file that the journal reads; all zero: none. */
typedef struct rmm_journal {
    uint64_t device, inode;
} rmm_journal_t;

/* Reads $JOURNAL_STREAM (systemd.exec(5)); NULL or another text than DEVICE:INODE: none. */
rmm_journal_t rmm__journal_parse(const char *journal_stream);
/* Is this that file? A descriptor may be directed elsewhere while the variable stays. */
bool rmm__journal_reads(const rmm_journal_t *journal, int fd);

#endif /* RMM_SEGMENT_LOG_TEXT_H */
