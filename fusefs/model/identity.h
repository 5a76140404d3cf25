/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of a segment, independent of its file name, so that each segment counts once.
 * Users may rename, link and copy their files, before and after the end of the process, and no
 * sum may grow because of that.
 *
 * The owner of the file and the creation data in the header (pid, start time of the process,
 * nanosecond) identify a segment. They stay the same when an ended segment is shrunk. For a live
 * segment the member has them; for ended segments the daemon keeps the last
 * IDENTITY_OF_USER_MAX identities of each user, also across a restart.
 *
 * This is no defence against a user who forges segments: such a user could run programs as
 * well, and the totals can be reset (control.h).
 *
 * Threads: model lock held alone.
 */
#ifndef RMM_FUSEFS_IDENTITY_H
#define RMM_FUSEFS_IDENTITY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "segment/segment_reader.h"

#define IDENTITY_OF_USER_MAX 64u
#define IDENTITY_MAX 1024u

struct member;
struct model;

typedef struct identity {
    uid_t uid;
    uint32_t pid;
    uint64_t start_time_ticks, made_ns;
} identity_t;

/* The identities of segments that ended, the oldest first. */
typedef struct identities {
    identity_t items[IDENTITY_MAX];
    uint32_t count;
} identities_t;

/* The member of this file, or of one with the same identity; NULL: none. */
struct member *identity_member(const struct model *model, const rmm_segment_t *segment);

/*
 * True, with one line for the log, if the segment is counted already under another name.
 * The caller has looked for its name, and for its member, which is passed here.
 */
bool identity_is_counted(
    const struct model *model, const rmm_segment_t *segment,
    const struct member *member, char reason[RMM_SEGMENT_REASON_BYTES]);

/* It has ended, and its totals are counted. */
void identity_note_ended(identities_t *identities, const rmm_segment_t *segment);

/* For the state file: "<uid> <pid> <ticks> <ns>". False: it is no such line. */
bool identity_parse(const char *fields, identity_t *identity_out);
void identity_add(identities_t *identities, const identity_t *identity);

#endif /* RMM_FUSEFS_IDENTITY_H */
