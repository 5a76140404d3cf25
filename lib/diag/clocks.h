/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which work of the GPU is ordered before which: a vector clock for each stream, for each
 * event and for the host. Fed with records, waits and synchronisations.
 *
 * The time of a stream is the number of its operations. A clock says up to which time of each
 * stream everything is known to have run before. All work begins with what the host knows: it
 * was queued after the host had waited for that.
 *
 * Where something is not known, more is taken as ordered than may be, never less:
 *  - one clock stands for all threads of the host, because the engine does not see how threads
 *    hand work to each other. (A clock for each thread would find more errors and need every
 *    lock, queue and join of the program.)
 *  - the legacy default streams of all devices are one stream, and so are those of a thread.
 *  - a wait for a device is also one for these, and for streams whose device is not known. A
 *    stream's creation reports it. An entry that is reused for a stream of another device
 *    belongs to all devices, unless the host has waited for the earlier stream.
 *  - a wait for a device with an unsure stream is one for all devices. So are all such waits once
 *    the entry of an unsure stream was reused.
 *  - a stream of which the driver does not say otherwise waits for the legacy default stream.
 *  - streams for which no entry is left share one, and count as ordered against each other.
 *  - an entry is reused together with the clock of the stream that had it before. If all are taken
 *    when a stream is created, those of the default streams of ended threads become free.
 *  - the legacy default stream also waits for what a blocking stream had begun before it ended.
 *  - a stream that waits for an unknown event, or for unreported work, is unsure: nothing is
 *    known to be unordered before its work. So is what waits for such a stream. When the
 *    host waits for such a stream, the stream's earlier work is ordered and it is no longer unsure;
 *    the streams of the shared entry stay unsure, as other unsure streams do. A wait for a device
 *    does that for the streams that are known to run there, or for all if no other device is used.
 *  - an event that was dropped because the table was full is unknown. A stream that joins a
 *    capture by it is unsure, because the call reports that it was captured.
 *  - the shared entry is in no capture: whether one of its streams captures, and which, is not
 *    known. It is unsure instead, and so is what waits for it, until the host waits for the device
 *    and no capture is under way (a cudaFree waits for the device amid captures, too). In a program
 *    that uses several devices it stays unsure.
 *
 * Not locked: the engine's lock protects it. Bounded: about 1.1 MB, all taken at the start.
 */
#ifndef RMM_DIAG_CLOCKS_H
#define RMM_DIAG_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include <rmm/stream.h>

enum {
    RMM_CLOCKS_STREAMS = 64,
    RMM_CLOCKS_LEGACY = 0, /* the place of the legacy default stream */
    RMM_CLOCKS_SHARED = RMM_CLOCKS_STREAMS - 1, /* of streams that find none */
    RMM_CLOCKS_EVENT_SETS = 512,
    RMM_CLOCKS_EVENT_WAYS = 4,
    /* instead of a device's number */
    RMM_CLOCKS_DEVICE_UNKNOWN = -1,
    RMM_CLOCKS_DEVICE_SEVERAL = -2
};

typedef struct rmm_clock {
    uint64_t at[RMM_CLOCKS_STREAMS]; /* the time of each stream's place */
    bool is_unsure;
} rmm_clock_t;

typedef struct rmm_clock_stream {
    rmm_clock_t clock;
    uint64_t stream_id;    /* as cudaStreamGetId where that is known, else the handle */
    uint64_t host_version; /* of the host's clock when it was taken over */
    uint64_t ended;        /* the number of the end, 0: the stream lives */
    int32_t thread;        /* gettid() of its thread, if per-thread; else 0 */
    int32_t device;        /* that it and those that had its place run on */
    uint64_t capture;      /* that it belongs to; 0: none */
    bool is_blocking;      /* it and the legacy default stream wait for each other */
} rmm_clock_stream_t;

typedef struct rmm_clock_event {
    uint64_t handle;  /* 0: free */
    uint64_t used;    /* the number of its last use */
    uint64_t capture; /* that it was recorded in; 0: not in one */
    rmm_clock_t clock;
} rmm_clock_event_t;

typedef struct rmm_clocks {
    uint64_t
        keys[RMM_CLOCKS_STREAMS]; /* which stream has the place; 0: none has had it */
    rmm_clock_stream_t streams[RMM_CLOCKS_STREAMS];
    rmm_clock_t host;
    uint64_t host_version;
    rmm_clock_t
        ended; /* of blocking streams that ended; the legacy default stream takes it over */
    bool has_ended;   /* it has not yet */
    uint32_t count;   /* places from here on were never used, the shared one apart */
    uint32_t last;    /* where the last search ended */
    int32_t device;   /* the first that was seen */
    bool has_devices; /* others were, too */
    bool is_shared;   /* a stream found no place */
    bool was_unsure;  /* a stream was, and another one has its place */
    bool has_unseen_capture;  /* a stream captured, and its place did not say so */
    uint32_t unseen_captures; /* of these, begun at the shared place and not ended */
    bool is_lost; /* the order is not known any more: every stream is unsure */
    uint64_t ends, uses, captures;
    rmm_clock_event_t events[RMM_CLOCKS_EVENT_SETS][RMM_CLOCKS_EVENT_WAYS];
} rmm_clocks_t;

/* NULL: no host memory. free() ends it. */
rmm_clocks_t *rmm__clocks_create(void);

/* The place of a stream, as the calling thread names it. */
uint32_t rmm__clocks_stream(rmm_clocks_t *clocks, rmm_stream_t stream);

/* After a stream was made, and before one is destroyed: handles are used again. */
void rmm__clocks_stream_begins(
    rmm_clocks_t *clocks, rmm_stream_t stream, bool is_blocking, int32_t device);
void rmm__clocks_stream_ends(rmm_clocks_t *clocks, rmm_stream_t stream);
/* The driver describes an existing stream. id UINT64_MAX: not known. */
void rmm__clocks_stream_seen(
    rmm_clocks_t *clocks, rmm_stream_t stream, bool is_blocking, uint64_t id);

/* A kernel was launched there while this device was current; device: its number, or less than 0.
 * That does not show the stream's device: CUDA launches a CUkernel in the context of its stream. */
void rmm__clocks_runs_on(rmm_clocks_t *clocks, uint32_t place, int32_t device);

/* The time of the stream's next operation, which follows all that it has to follow. */
uint64_t rmm__clocks_advance(rmm_clocks_t *clocks, uint32_t place);

/* It will wait for something that cannot be seen; if it captures, each launch of the graph will. */
void rmm__clocks_unsure(rmm_clocks_t *clocks, uint32_t place);

/* On a stream that captures: what it is given does not run. */
bool rmm__clocks_captures(const rmm_clocks_t *clocks, uint32_t place);
/* Or may capture: nothing is known of it. */
bool rmm__clocks_may_capture(const rmm_clocks_t *clocks, uint32_t place);
void rmm__clocks_capture_begins(rmm_clocks_t *clocks, uint32_t place);
void rmm__clocks_capture_ends(rmm_clocks_t *clocks, uint32_t place);

/* captured: the call was recorded into a graph, even if no begin was reported. */
void rmm__clocks_record(
    rmm_clocks_t *clocks, uint32_t place, uint64_t event, bool captured);
void rmm__clocks_wait(
    rmm_clocks_t *clocks, uint32_t place, uint64_t event, bool captured);
void rmm__clocks_event_ends(rmm_clocks_t *clocks, uint64_t event);

/* The host has waited for a stream, an event, or a device; less than 0: all of them. */
void rmm__clocks_sync_stream(rmm_clocks_t *clocks, uint32_t place);
void rmm__clocks_sync_event(rmm_clocks_t *clocks, uint64_t event);
void rmm__clocks_sync_device(rmm_clocks_t *clocks, int32_t device);

/* Nothing is known to be unordered before the work of this stream. */
static inline bool rmm__clocks_is_unsure(const rmm_clocks_t *clocks, uint32_t place)
{
    return clocks->is_lost || clocks->streams[place].clock.is_unsure;
}

/* Is the work of the stream `of` at this time ordered before the work of `place` now? */
static inline bool rmm__clocks_knows(
    const rmm_clocks_t *clocks, uint32_t place, uint32_t of, uint64_t time)
{
    return clocks->streams[place].clock.at[of] >= time;
}

#endif /* RMM_DIAG_CLOCKS_H */
