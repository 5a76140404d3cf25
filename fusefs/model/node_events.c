/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of events; see node_events.h. How many events a ring ever had is counted on when it
 * becomes another user's, so that a reader's position in it stays right.
 */
#include "model/node_events.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"

#define WANTED_NS 2000000000ull

typedef struct ring {
    uid_t uid;
    bool is_used, is_shared;
    uint64_t written, first; /* events ever; the first one of this user */
    uint64_t newest_ns;      /* CLOCK_MONOTONIC */
    uint64_t allowance, allowance_ns, over;
    node_event_t *items; /* EVENTS_OF_USER */
} ring_t;

struct node_events {
    pthread_mutex_t lock;
    uid_t own_uid;
    uint64_t last_number;
    _Atomic(uint64_t) wanted_ns; /* CLOCK_MONOTONIC */
    ring_t rings[EVENTS_RINGS];  /* the first is the daemon's user's, the last shared */
};

static uint64_t oldest_of(const ring_t *ring)
{
    uint64_t kept = ring->written > EVENTS_OF_USER ? ring->written - EVENTS_OF_USER : 0;
    return kept > ring->first ? kept : ring->first;
}

/* False: no memory. */
static bool take_ring(ring_t *ring, uid_t uid, uint64_t now)
{
    if (ring->items == NULL) {
        ring->items = malloc(EVENTS_OF_USER * sizeof(ring->items[0]));
    }
    if (ring->items == NULL) {
        return false;
    }
    ring->uid = uid;
    ring->is_used = true;
    ring->first = ring->written;
    ring->newest_ns = now;
    ring->allowance = EVENTS_OF_USER;
    ring->allowance_ns = now;
    ring->over = 0;
    return true;
}

node_events_t *node_events_open(uid_t own_uid)
{
    node_events_t *events = calloc(1, sizeof(*events));
    if (events != NULL) {
        pthread_mutex_init(&events->lock, NULL);
        events->own_uid = own_uid;
        ring_t *shared = &events->rings[EVENTS_RINGS - 1];
        shared->is_shared = true;
        uint64_t now = rmm__clock_ns(CLOCK_MONOTONIC);
        if (!take_ring(&events->rings[0], own_uid, now) ||
            !take_ring(shared, EVENT_NO_UID, now)) {
            node_events_close(events);
            return NULL;
        }
    }
    return events;
}

void node_events_close(node_events_t *events)
{
    if (events != NULL) {
        for (uint32_t i = 0; i < EVENTS_RINGS; i++) {
            free(events->rings[i].items);
        }
        pthread_mutex_destroy(&events->lock);
        free(events);
    }
}

void node_event_init(
    node_event_t *event, event_type_t type, uid_t uid, pid_t pid, const char *process)
{
    *event = (node_event_t){
        .type = (uint8_t)type,
        .uid = uid,
        .pid = pid,
        .device = EVENT_NO_DEVICE,
        .bytes = EVENT_NO_FIGURE,
        .count = EVENT_NO_FIGURE};
    (void)snprintf(event->process, sizeof(event->process), "%s", process);
}

/* --- adding --------------------------------------------------------------------------- */

static ring_t *ring_of(node_events_t *events, uid_t uid, uint64_t now)
{
    ring_t *shared = &events->rings[EVENTS_RINGS - 1], *spare = NULL;
    if (uid == EVENT_NO_UID) {
        return &events->rings[0];
    }
    for (ring_t *ring = events->rings; ring < shared; ring++) {
        if (ring->is_used && ring->uid == uid) {
            return ring;
        }
        bool is_free = !ring->is_used || (ring != events->rings &&
                                          now - ring->newest_ns > EVENTS_IDLE_NS);
        spare = spare == NULL && is_free ? ring : spare;
    }
    return spare != NULL && take_ring(spare, uid, now) ? spare : shared;
}

static void append(node_events_t *events, ring_t *ring, const node_event_t *event)
{
    node_event_t *to = &ring->items[ring->written++ % EVENTS_OF_USER];
    *to = *event;
    to->number = ++events->last_number;
    to->time_ns = rmm__clock_ns(CLOCK_REALTIME);
    ring->newest_ns = rmm__clock_ns(CLOCK_MONOTONIC);
}

static void refill(ring_t *ring, uint64_t now)
{
    uint64_t back = (now - ring->allowance_ns) / EVENTS_NS_EACH;
    uint64_t room = EVENTS_OF_USER - ring->allowance;
    ring->allowance += back < room ? back : room;
    ring->allowance_ns = back < room ? ring->allowance_ns + back * EVENTS_NS_EACH : now;
}

static void tell_over(node_events_t *events, ring_t *ring, uint64_t now)
{
    if (ring->over == 0) {
        return;
    }
    refill(ring, now);
    if (ring->allowance >= EVENTS_RESUME) {
        const node_event_t over = {
            .type = EVENT_OVER_BUDGET,
            .uid = ring->uid,
            .count = ring->over,
            .bytes = EVENT_NO_FIGURE,
            .device = EVENT_NO_DEVICE};
        ring->over = 0;
        ring->allowance--;
        append(events, ring, &over);
    }
}

void node_events_note(node_events_t *events, const node_event_t *event)
{
    if (events == NULL) {
        return;
    }
    pthread_mutex_lock(&events->lock);
    uint64_t now = rmm__clock_ns(CLOCK_MONOTONIC);
    ring_t *ring = ring_of(events, event->uid, now);
    bool is_limited = ring != events->rings && ring->uid != 0;
    if (is_limited) {
        refill(ring, now);
        tell_over(events, ring, now);
    }
    if (is_limited && (ring->allowance == 0 || ring->over != 0)) {
        ring->over++;
    } else {
        ring->allowance -= is_limited ? 1 : 0;
        append(events, ring, event);
    }
    pthread_mutex_unlock(&events->lock);
}

void node_events_tick(node_events_t *events)
{
    if (events == NULL) {
        return;
    }
    pthread_mutex_lock(&events->lock);
    uint64_t now = rmm__clock_ns(CLOCK_MONOTONIC);
    for (uint32_t i = 0; i < EVENTS_RINGS; i++) {
        tell_over(events, &events->rings[i], now);
    }
    pthread_mutex_unlock(&events->lock);
}

/* --- reading -------------------------------------------------------------------------- */

void node_events_begin(node_events_t *events, events_cursor_t *cursor)
{
    memset(cursor, 0, sizeof(*cursor));
    if (events == NULL) {
        return;
    }
    pthread_mutex_lock(&events->lock);
    for (uint32_t i = 0; i < EVENTS_RINGS; i++) {
        cursor->next[i] = oldest_of(&events->rings[i]);
    }
    pthread_mutex_unlock(&events->lock);
}

/* uid: of the event, or of the ring. */
static bool sees(const events_reader_t *reader, uid_t uid, bool is_private)
{
    bool is_own = reader->uid == uid || reader->uid == 0 ||
                  reader->uid == reader->hiding->own_uid;
    return is_own ||
           (!is_private &&
            (uid == EVENT_NO_UID ||
             hiding_shows(reader->hiding, uid, reader->uid, reader->is_member)));
}

/* How many the reader has lost since it read last. */
static uint64_t
skip_lost(node_events_t *events, events_cursor_t *cursor, const events_reader_t *reader)
{
    uint64_t lost = 0;
    for (uint32_t i = 0; i < EVENTS_RINGS; i++) {
        const ring_t *ring = &events->rings[i];
        uint64_t oldest = oldest_of(ring);
        if (cursor->next[i] < oldest) {
            bool is_seen =
                sees(reader, ring->is_shared ? ring->uid - 1 : ring->uid, false);
            lost += is_seen ? oldest - cursor->next[i] : 0;
            cursor->next[i] = oldest;
        }
    }
    return lost;
}

/* The next one in the order of numbers, also if this reader may not see it; NULL: none. */
static const node_event_t *take_next(node_events_t *events, events_cursor_t *cursor)
{
    const node_event_t *next = NULL;
    uint32_t from = 0;
    for (uint32_t i = 0; i < EVENTS_RINGS; i++) {
        const ring_t *ring = &events->rings[i];
        if (cursor->next[i] < ring->written) {
            const node_event_t *event = &ring->items[cursor->next[i] % EVENTS_OF_USER];
            if (next == NULL || event->number < next->number) {
                next = event;
                from = i;
            }
        }
    }
    cursor->next[from] += next != NULL ? 1 : 0;
    return next;
}

void node_events_each(
    node_events_t *events, events_cursor_t *cursor, const events_reader_t *reader,
    event_fn visit, void *arg)
{
    const node_event_t *event;
    bool goes_on = true;
    if (events == NULL) {
        return;
    }
    pthread_mutex_lock(&events->lock);
    uint64_t lost = skip_lost(events, cursor, reader);
    if (lost > 0) {
        const node_event_t loss = {
            .type = EVENT_LOST,
            .uid = EVENT_NO_UID,
            .time_ns = rmm__clock_ns(CLOCK_REALTIME),
            .count = lost,
            .bytes = EVENT_NO_FIGURE,
            .device = EVENT_NO_DEVICE};
        goes_on = visit(&loss, arg);
    }
    while (goes_on && (event = take_next(events, cursor)) != NULL) {
        goes_on = !sees(reader, event->uid, event->is_private) || visit(event, arg);
    }
    pthread_mutex_unlock(&events->lock);
}

/* --- interest ------------------------------------------------------------------------- */

void node_events_want(node_events_t *events)
{
    if (events != NULL) {
        atomic_store_explicit(
            &events->wanted_ns, rmm__clock_ns(CLOCK_MONOTONIC), memory_order_relaxed);
    }
}

bool node_events_are_wanted(node_events_t *events)
{
    uint64_t wanted_ns = atomic_load_explicit(&events->wanted_ns, memory_order_relaxed);
    return wanted_ns != 0 && rmm__clock_ns(CLOCK_MONOTONIC) - wanted_ns < WANTED_NS;
}
