/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order of streams; see clocks.h.
 *
 * Invariant: a stream's clock changes only after its own time has advanced, under the engine's
 * lock. So a stream that knows the present time of another knows all that the other knows, and
 * taking over its clock can be left out.
 *
 * Cost: an operation is a search of the streams' keys, and two comparisons where nothing is to
 * be taken over; on the legacy default stream one comparison for each stream.
 */
#include "diag/clocks.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/hash.h"
#include "diag/stream_key.h"

#define KEY_SHARED 2u /* no stream's; stream_key.h */

static void
take_over(const rmm_clocks_t *clocks, rmm_clock_t *to, const rmm_clock_t *from)
{
    for (uint32_t i = 0; i < clocks->count; i++) {
        to->at[i] = from->at[i] > to->at[i] ? from->at[i] : to->at[i];
    }
    if (from->at[RMM_CLOCKS_SHARED] > to->at[RMM_CLOCKS_SHARED]) {
        to->at[RMM_CLOCKS_SHARED] = from->at[RMM_CLOCKS_SHARED];
    }
    to->is_unsure |= from->is_unsure;
}

/* --- places of streams ------------------------------------------------------------------ */

/* RMM_CLOCKS_STREAMS: none. */
static uint32_t find_place(rmm_clocks_t *clocks, uint64_t key)
{
    if (clocks->keys[clocks->last] == key) {
        return clocks->last;
    }
    for (uint32_t i = 0; i < clocks->count; i++) {
        if (clocks->keys[i] == key) {
            clocks->last = i;
            return i;
        }
    }
    return RMM_CLOCKS_STREAMS;
}

/* A place that was never used, else that of the stream that ended first. */
static uint32_t vacant_place(const rmm_clocks_t *clocks)
{
    uint32_t place = RMM_CLOCKS_SHARED;

    if (clocks->count < RMM_CLOCKS_SHARED) {
        return clocks->count;
    }
    for (uint32_t i = 0; i < clocks->count; i++) {
        uint64_t ended = clocks->streams[i].ended;

        if (ended != 0 &&
            (place == RMM_CLOCKS_SHARED || ended < clocks->streams[place].ended)) {
            place = i;
        }
    }
    return place;
}

/* For when a clock knows the times of unsure streams and is not unsure itself: they get new times,
 * because who knows the present one would not take over that a stream is unsure. */
static void renew_unsure(rmm_clocks_t *clocks)
{
    for (uint32_t i = 0; i < RMM_CLOCKS_STREAMS; i++) {
        rmm_clock_t *clock = &clocks->streams[i].clock;

        clock->at[i] += clock->is_unsure ? 1 : 0;
    }
}

static void see_device(rmm_clocks_t *clocks, int32_t device)
{
    if (clocks->device < 0) {
        clocks->device = device;
    } else if (device >= 0 && device != clocks->device) {
        clocks->has_devices = true;
    }
}

/* A stream begins at a place, maybe that of one before it, of which it knows the times only. What
 * the default stream waits for it waits for as well. */
static void
begin_at(rmm_clocks_t *clocks, uint32_t place, bool is_blocking, int32_t device)
{
    rmm_clock_stream_t *entry = &clocks->streams[place];

    see_device(clocks, device);
    if (entry->clock.is_unsure) {
        clocks->was_unsure = true;
        renew_unsure(clocks);
    }
    if (clocks->host.at[place] != entry->clock.at[place] &&
        (device < 0 || entry->device != device)) { /* what was there may not be over */
        device = RMM_CLOCKS_DEVICE_SEVERAL;
    }
    entry->device = device;
    entry->ended = 0;
    entry->capture = 0;
    entry->is_blocking = is_blocking;
    entry->clock.is_unsure =
        is_blocking && clocks->streams[RMM_CLOCKS_LEGACY].clock.is_unsure;
}

static void end_at(rmm_clocks_t *clocks, uint32_t place)
{
    clocks->streams[place].ended = ++clocks->ends;
    if (clocks->streams[place].is_blocking) { /* its work goes on */
        take_over(clocks, &clocks->ended, &clocks->streams[place].clock);
        clocks->has_ended = true;
    }
}

/* No call says that a thread's default stream ends: it does with the thread. */
static void end_streams_of_threads(rmm_clocks_t *clocks)
{
    int before = errno;

    for (uint32_t i = 0; i < clocks->count; i++) {
        const rmm_clock_stream_t *entry = &clocks->streams[i];

        if (entry->thread != 0 && entry->ended == 0 &&
            syscall(SYS_tgkill, getpid(), entry->thread, 0) != 0 && errno == ESRCH) {
            end_at(clocks, i);
        }
    }
    errno = before;
}

static uint32_t take_place(
    rmm_clocks_t *clocks, uint64_t key, rmm_stream_t stream, bool is_blocking,
    int32_t device)
{
    bool is_of_thread = rmm_stream_is_per_thread_default(stream);
    uint32_t place = vacant_place(clocks);
    rmm_clock_stream_t *entry = NULL;

    if (place == RMM_CLOCKS_SHARED) {
        end_streams_of_threads(clocks);
        place = vacant_place(clocks);
    }
    if (place == RMM_CLOCKS_SHARED) {
        clocks->is_shared = true;
        return place;
    }
    entry = &clocks->streams[place];
    if (place == clocks->count) {
        clocks->count++;
    }
    clocks->keys[place] = key;
    clocks->last = place;
    entry->stream_id = is_of_thread ? UINT64_MAX : (uint64_t)(uintptr_t)stream;
    entry->thread = is_of_thread ? (int32_t)syscall(SYS_gettid) : 0;
    begin_at(
        clocks, place, is_blocking, is_of_thread ? RMM_CLOCKS_DEVICE_SEVERAL : device);
    return place;
}

uint32_t rmm__clocks_stream(rmm_clocks_t *clocks, rmm_stream_t stream)
{
    uint64_t key = rmm__stream_key(stream);
    uint32_t place = find_place(clocks, key);

    if (place != RMM_CLOCKS_STREAMS) {
        clocks->streams[place].ended = 0; /* its end has failed */
        return place;
    }
    /* it may be one of those that found no place before */
    return clocks->is_shared
               ? RMM_CLOCKS_SHARED
               : take_place(clocks, key, stream, true, RMM_CLOCKS_DEVICE_UNKNOWN);
}

void rmm__clocks_stream_begins(
    rmm_clocks_t *clocks, rmm_stream_t stream, bool is_blocking, int32_t device)
{
    uint64_t key = rmm__stream_key(stream);
    uint32_t place = find_place(clocks, key);

    if (place == RMM_CLOCKS_STREAMS) {
        (void)take_place(clocks, key, stream, is_blocking, device);
        return;
    }
    begin_at(clocks, place, is_blocking, device);
    clocks->streams[place].stream_id = (uint64_t)(uintptr_t)stream;
}

void rmm__clocks_stream_seen(
    rmm_clocks_t *clocks, rmm_stream_t stream, bool is_blocking, uint64_t id)
{
    uint64_t key = rmm__stream_key(stream);
    uint32_t place = find_place(clocks, key);

    if (place == RMM_CLOCKS_STREAMS) {
        if (clocks->is_shared) {
            return; /* as in rmm__clocks_stream() */
        }
        place = take_place(clocks, key, stream, is_blocking, RMM_CLOCKS_DEVICE_UNKNOWN);
    }
    if (place != RMM_CLOCKS_LEGACY && place != RMM_CLOCKS_SHARED) {
        clocks->streams[place].is_blocking = is_blocking;
        clocks->streams[place].stream_id =
            id != UINT64_MAX ? id : clocks->streams[place].stream_id;
    }
}

void rmm__clocks_runs_on(rmm_clocks_t *clocks, uint32_t place, int32_t device)
{
    rmm_clock_stream_t *entry = &clocks->streams[place];

    see_device(clocks, device);
    if (device >= 0 && entry->device >= 0 && entry->device != device) {
        entry->device = RMM_CLOCKS_DEVICE_SEVERAL; /* another stream has its handle */
    }
}

rmm_clocks_t *rmm__clocks_create(void)
{
    rmm_clocks_t *clocks = calloc(1, sizeof(*clocks));

    if (clocks != NULL) {
        clocks->keys[RMM_CLOCKS_LEGACY] = RMM_STREAM_KEY_LEGACY;
        clocks->keys[RMM_CLOCKS_SHARED] = KEY_SHARED;
        clocks->streams[RMM_CLOCKS_LEGACY].is_blocking = true;
        clocks->streams[RMM_CLOCKS_SHARED].is_blocking = true;
        clocks->streams[RMM_CLOCKS_SHARED].stream_id = UINT64_MAX;
        clocks->device = RMM_CLOCKS_DEVICE_UNKNOWN;
        clocks->streams[RMM_CLOCKS_LEGACY].device = RMM_CLOCKS_DEVICE_SEVERAL;
        clocks->streams[RMM_CLOCKS_SHARED].device = RMM_CLOCKS_DEVICE_SEVERAL;
        clocks->count = 1;
    }
    return clocks;
}

/* --- clocks ------------------------------------------------------------------------------ */

/* `to` knows what the stream at `place` knows now. */
static void take_over_stream(rmm_clocks_t *clocks, rmm_clock_t *to, uint32_t place)
{
    const rmm_clock_t *from = &clocks->streams[place].clock;

    if (to->at[place] < from->at[place]) {
        take_over(clocks, to, from);
    }
}

/* The legacy default stream waits for all blocking streams, and they for it. */
static void follow_default(rmm_clocks_t *clocks, uint32_t place)
{
    rmm_clock_t *clock = &clocks->streams[place].clock;

    if (place != RMM_CLOCKS_LEGACY) {
        take_over_stream(clocks, clock, RMM_CLOCKS_LEGACY);
        return;
    }
    for (uint32_t i = RMM_CLOCKS_LEGACY + 1; i < clocks->count; i++) {
        if (clocks->streams[i].is_blocking) {
            take_over_stream(clocks, clock, i);
        }
    }
    take_over_stream(clocks, clock, RMM_CLOCKS_SHARED);
    if (clocks->has_ended) {
        take_over(clocks, clock, &clocks->ended);
        clocks->ended = (rmm_clock_t){.is_unsure = false};
        clocks->has_ended = false;
    }
}

uint64_t rmm__clocks_advance(rmm_clocks_t *clocks, uint32_t place)
{
    rmm_clock_stream_t *stream = &clocks->streams[place];
    uint64_t now = ++stream->clock.at[place];

    if (stream->host_version != clocks->host_version) {
        stream->host_version = clocks->host_version;
        take_over(clocks, &stream->clock, &clocks->host);
    }
    if (stream->is_blocking) {
        follow_default(clocks, place);
    }
    return now;
}

static void make_unsure(rmm_clocks_t *clocks, uint32_t place)
{
    (void)rmm__clocks_advance(clocks, place);
    clocks->streams[place].clock.is_unsure = true;
}

bool rmm__clocks_may_capture(const rmm_clocks_t *clocks, uint32_t place)
{
    return clocks->streams[place].capture != 0 ||
           (clocks->has_unseen_capture &&
            (place == RMM_CLOCKS_SHARED || clocks->streams[place].clock.is_unsure));
}

void rmm__clocks_unsure(rmm_clocks_t *clocks, uint32_t place)
{
    clocks->is_lost = clocks->is_lost || rmm__clocks_may_capture(clocks, place);
    make_unsure(clocks, place);
}

void rmm__clocks_stream_ends(rmm_clocks_t *clocks, rmm_stream_t stream)
{
    uint32_t place = find_place(clocks, rmm__stream_key(stream));

    if (place == RMM_CLOCKS_STREAMS || place == RMM_CLOCKS_LEGACY) {
        return;
    }
    end_at(clocks, place);
}

/* --- the host waits ---------------------------------------------------------------------- */

/* All that was begun has run, as far as the host can know. */
static void host_knows_all(rmm_clocks_t *clocks)
{
    for (uint32_t i = 0; i < RMM_CLOCKS_STREAMS; i++) {
        clocks->host.at[i] = clocks->streams[i].clock.at[i];
    }
    renew_unsure(clocks);
    clocks->host_version++;
}

static void
host_takes_over(rmm_clocks_t *clocks, const rmm_clock_t *clock, bool is_unsure)
{
    if (is_unsure) {
        host_knows_all(clocks);
        return;
    }
    take_over(clocks, &clocks->host, clock);
    clocks->host_version++;
}

void rmm__clocks_sync_stream(rmm_clocks_t *clocks, uint32_t place)
{
    rmm_clock_t *clock = &clocks->streams[place].clock;
    bool was_unsure;

    (void)rmm__clocks_advance(clocks, place);
    was_unsure = clock->is_unsure;
    if (place != RMM_CLOCKS_SHARED) { /* others there may be unsure still */
        clock->is_unsure = false;
    }
    host_takes_over(clocks, clock, was_unsure);
}

static bool is_any_under_way(const rmm_clocks_t *clocks)
{
    uint32_t i = 0;

    while (i < RMM_CLOCKS_STREAMS && clocks->streams[i].capture == 0) {
        i++;
    }
    return i < RMM_CLOCKS_STREAMS || clocks->unseen_captures != 0;
}

static bool may_run_on(const rmm_clocks_t *clocks, uint32_t place, int32_t device)
{
    int32_t known = clocks->streams[place].device;

    return device < 0 || known < 0 || known == device;
}

/* True: the host waited for an unsure stream, and so maybe for anything. The stream is unsure no
 * longer, if the host has certainly waited for it and it does not capture. */
static bool end_unsure(rmm_clocks_t *clocks, int32_t device)
{
    bool was_unsure = clocks->was_unsure || clocks->has_unseen_capture;

    for (uint32_t i = 0; i < RMM_CLOCKS_STREAMS; i++) {
        rmm_clock_stream_t *stream = &clocks->streams[i];

        was_unsure |= stream->clock.is_unsure && may_run_on(clocks, i, device);
        if (!clocks->has_unseen_capture &&
            (!clocks->has_devices || (device >= 0 && stream->device == device))) {
            stream->clock.is_unsure = false;
        }
    }
    return was_unsure;
}

static void host_knows_device(rmm_clocks_t *clocks, int32_t device)
{
    for (uint32_t i = 0; i < RMM_CLOCKS_STREAMS; i++) {
        if (may_run_on(clocks, i, device)) {
            take_over_stream(clocks, &clocks->host, i);
        }
    }
    clocks->host_version++;
}

void rmm__clocks_sync_device(rmm_clocks_t *clocks, int32_t device)
{
    see_device(clocks, device);
    clocks->has_unseen_capture &= is_any_under_way(clocks);
    if (end_unsure(clocks, device) || device < 0 || !clocks->has_devices) {
        host_knows_all(clocks);
    } else {
        host_knows_device(clocks, device);
    }
    if (!clocks->has_devices) {
        clocks->ended = (rmm_clock_t){.is_unsure = false}; /* the host knows it all */
        clocks->has_ended = false;
    }
}

/* --- events ------------------------------------------------------------------------------ */

static rmm_clock_event_t *set_of(rmm_clocks_t *clocks, uint64_t handle)
{
    return clocks->events[(rmm__hash(handle >> 4) >> 32) % RMM_CLOCKS_EVENT_SETS];
}

/* NULL: it was not recorded, or others have taken its place. */
static rmm_clock_event_t *find_event(rmm_clocks_t *clocks, uint64_t handle)
{
    rmm_clock_event_t *set = set_of(clocks, handle);

    for (int i = 0; i < RMM_CLOCKS_EVENT_WAYS && handle != 0; i++) {
        if (set[i].handle == handle) {
            set[i].used = ++clocks->uses;
            return &set[i];
        }
    }
    return NULL;
}

/* Where it is kept from now on: a free place, else that of the one used longest ago. */
static rmm_clock_event_t *keep_event(rmm_clocks_t *clocks, uint64_t handle)
{
    rmm_clock_event_t *set = set_of(clocks, handle);
    rmm_clock_event_t *event = find_event(clocks, handle);

    for (int i = 0; i < RMM_CLOCKS_EVENT_WAYS && event == NULL; i++) {
        event = set[i].handle == 0 ? &set[i] : NULL;
    }
    if (event == NULL) {
        event = &set[0];
        for (int i = 1; i < RMM_CLOCKS_EVENT_WAYS; i++) {
            event = set[i].used < event->used ? &set[i] : event;
        }
    }
    event->handle = handle;
    event->used = ++clocks->uses;
    return event;
}

void rmm__clocks_event_ends(rmm_clocks_t *clocks, uint64_t handle)
{
    rmm_clock_event_t *event = find_event(clocks, handle);

    if (event != NULL) {
        event->handle = 0;
        event->used = 0;
    }
}

void rmm__clocks_record(
    rmm_clocks_t *clocks, uint32_t place, uint64_t handle, bool captured)
{
    rmm_clock_stream_t *stream = &clocks->streams[place];
    rmm_clock_event_t *event = keep_event(clocks, handle);

    event->capture = stream->capture;
    if (captured || stream->capture != 0) {
        event->clock.is_unsure = true;
        return;
    }
    (void)rmm__clocks_advance(clocks, place);
    event->clock = stream->clock;
}

/* Some stream is in it. */
static bool is_under_way(const rmm_clocks_t *clocks, uint64_t capture)
{
    for (uint32_t i = 0; i < RMM_CLOCKS_STREAMS; i++) {
        if (clocks->streams[i].capture == capture) {
            return true;
        }
    }
    return false;
}

/* The stream captures, and its place does not say so. */
static void capture_unseen(rmm_clocks_t *clocks, uint32_t place)
{
    clocks->has_unseen_capture = true;
    make_unsure(clocks, place);
}

static void join_capture(rmm_clocks_t *clocks, uint32_t place, uint64_t capture)
{
    if (place == RMM_CLOCKS_SHARED) {
        capture_unseen(clocks, place);
    } else {
        clocks->streams[place].capture = capture;
    }
}

void rmm__clocks_wait(
    rmm_clocks_t *clocks, uint32_t place, uint64_t handle, bool captured)
{
    rmm_clock_stream_t *stream = &clocks->streams[place];
    const rmm_clock_event_t *event = find_event(clocks, handle);

    if (stream->capture == 0 && event != NULL && event->capture != 0 &&
        is_under_way(clocks, event->capture)) {
        join_capture(clocks, place, event->capture);
    } else if (captured && stream->capture == 0) {
        capture_unseen(clocks, place);
    }
    if (captured || stream->capture != 0) {
        return;
    }
    (void)rmm__clocks_advance(clocks, place);
    if (event != NULL) {
        take_over(clocks, &stream->clock, &event->clock);
    } else {
        stream->clock.is_unsure = true;
    }
}

void rmm__clocks_sync_event(rmm_clocks_t *clocks, uint64_t handle)
{
    const rmm_clock_event_t *event = find_event(clocks, handle);

    if (event != NULL) {
        host_takes_over(clocks, &event->clock, event->clock.is_unsure);
    } else {
        host_knows_all(clocks);
    }
}

/* --- captures ---------------------------------------------------------------------------- */

bool rmm__clocks_captures(const rmm_clocks_t *clocks, uint32_t place)
{
    return clocks->streams[place].capture != 0;
}

void rmm__clocks_capture_begins(rmm_clocks_t *clocks, uint32_t place)
{
    clocks->unseen_captures += place == RMM_CLOCKS_SHARED ? 1 : 0;
    join_capture(clocks, place, ++clocks->captures);
}

void rmm__clocks_capture_ends(rmm_clocks_t *clocks, uint32_t place)
{
    uint64_t capture = clocks->streams[place].capture;

    if (place == RMM_CLOCKS_SHARED && clocks->unseen_captures != 0) {
        clocks->unseen_captures--;
    }
    for (uint32_t i = 0; i < RMM_CLOCKS_STREAMS && capture != 0; i++) {
        if (clocks->streams[i].capture == capture) {
            clocks->streams[i].capture = 0;
        }
    }
}
