/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The latest events of the node, for readers of /rmm/events_pipe: one ring for each
 * user. A user's events displace none of another user, and a reader that is too slow loses the
 * oldest events of the users whose rings ran over. Users beyond EVENTS_RINGS share the last ring.
 *
 * A user's programs may add EVENTS_OF_USER events at once, then one in EVENTS_NS_EACH; one event
 * says how many more there were. Root and the daemon's user are not limited.
 *
 * Events have numbers in the order in which they were noted; a reader gets them in that order.
 *
 * Threads: any. A leaf lock.
 */
#ifndef RMM_FUSEFS_NODE_EVENTS_H
#define RMM_FUSEFS_NODE_EVENTS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "support/hiding.h"

#define EVENTS_RINGS 64u
#define EVENTS_OF_USER 256u
#define EVENTS_NS_EACH 50000000u
#define EVENTS_RESUME 20u /* that a user may add before the rest is reported */
#define EVENTS_IDLE_NS                                                                 \
    600000000000ull /* a ring without events for so long may be another user's */

#define EVENT_NO_UID ((uid_t)-1) /* about no user: all users see it */
#define EVENT_NO_FIGURE UINT64_MAX
#define EVENT_NO_DEVICE UINT32_MAX

#define EVENT_TYPE_MAP(X)                                                              \
    X(START, "start")                                                                  \
    X(EXIT, "exit")                                                                    \
    X(OOM, "oom")                                                                      \
    X(LIMIT, "limit")                                                                  \
    X(INVALID_FREE, "invalid_free")                                                    \
    X(PEAK, "peak")                                                                    \
    X(FINDING, "finding")                                                              \
    X(ERROR, "error")                                                                  \
    X(UNREADABLE, "unreadable")                                                        \
    X(OVER_BUDGET, "over_budget")                                                      \
    X(LOST, "lost")

typedef enum event_type {
#define X(id, name) EVENT_##id,
    EVENT_TYPE_MAP(X)
#undef X
        EVENT_TYPE_COUNT
} event_type_t;

typedef struct node_event {
    uint64_t number, time_ns; /* CLOCK_REALTIME; both given when it is noted */
    uint64_t bytes, count;    /* EVENT_NO_FIGURE */
    uid_t uid;
    pid_t pid;       /* 0: unknown */
    uint32_t device; /* EVENT_NO_DEVICE */
    uint8_t type;
    bool is_private; /* for its user, root and the daemon's user alone */
    char process[32], resource[64];
    char text[128]; /* comm, a message, a reason: as the program wrote it */
} node_event_t;

typedef struct node_events node_events_t;

/* Where a reader is in each ring. */
typedef struct events_cursor {
    uint64_t next[EVENTS_RINGS];
} events_cursor_t;

typedef struct events_reader {
    const hiding_t *hiding;
    uid_t uid;
    bool is_member;
} events_reader_t;

/* NULL: no memory; every function takes it, and then there are no events. */
node_events_t *node_events_open(uid_t own_uid);
void node_events_close(node_events_t *events);

/* An event about a process, without a device, bytes or count. */
void node_event_init(
    node_event_t *event, event_type_t type, uid_t uid, pid_t pid, const char *process);

void node_events_note(node_events_t *events, const node_event_t *event);

/* Tell of users who were over their budget, and now have some again. */
void node_events_tick(node_events_t *events);

/* At the oldest event of each ring. */
void node_events_begin(node_events_t *events, events_cursor_t *cursor);

/* False ends the walk; the event was taken. */
typedef bool (*event_fn)(const node_event_t *event, void *arg);

/* The events from the cursor on that this reader may see; the first may be one of type LOST. */
void node_events_each(
    node_events_t *events, events_cursor_t *cursor, const events_reader_t *reader,
    event_fn visit, void *arg);

/* A reader waits for events, or did so a moment ago. */
void node_events_want(node_events_t *events);
bool node_events_are_wanted(node_events_t *events);

#endif /* RMM_FUSEFS_NODE_EVENTS_H */
