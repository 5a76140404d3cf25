/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The daemon's view of the system: devices, processes, and the segments that they
 * publish. Plain data and the functions that keep it consistent. watch.c fills it;
 * tree.c and render.c show it.
 *
 *   model -> devices    GPUs by number (never renumbered, never removed) and host memory
 *         -> processes  one directory under /rmm/proc each
 *              -> members  its segments: one, or more if the library is loaded twice
 *
 * The model holds no figures: the daemon reads them from the segments when it shows
 * them. The only exceptions are figures that would be lost with a process: the devices'
 * marks and the totals of processes that have exited.
 *
 * Locking: `lock` protects everything. Marks are atomic, because a reader that holds
 * the lock shared may raise one.
 */
#ifndef RMM_FUSEFS_MODEL_H
#define RMM_FUSEFS_MODEL_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

#include "segment/segment_log.h"
#include "segment/segment_reader.h"

#define DEVICE_GPUS_MAX 128u /* a bound against a hostile program, not a request */
#define DEVICE_HOST 0xffffu  /* host memory, where a device index stands */
#define DEVICE_NONE 0xfffeu
#define DEVICE_EXTRAS_MAX 32u
#define MODEL_SERIAL_MAX 0x1fffffu /* 21 bits: a part of an inode number (tree.h) */
#define SLOT_HINTS 64u

/* A statistic that this version does not know, by the name in the segment's schema. */
typedef struct extra {
    char name[40];
    uint16_t kind;
    uint64_t value;
} extra_t;

typedef struct extras {
    extra_t items[DEVICE_EXTRAS_MAX];
    uint32_t count;
} extras_t;

typedef struct device {
    char uuid[48];       /* "" until told; "host" for host memory */
    char pci_bus_id[24]; /* lower case; "" if unknown */
    char name[64];
    uint64_t capacity_bytes; /* 0: unknown */

    /* High-water marks of the sum over processes; reset through gpuN/peak_bytes. */
    _Atomic(uint64_t) peak_bytes, peak_count, peak_upper_bytes;
    _Atomic(uint64_t) lifetime_peak_bytes; /* never reset */

    /* Counters of processes that are gone; only those of kind COUNTER are used. */
    uint64_t exited[RMM_LOCATION_STAT_COUNT];
    extras_t extras;
} device_t;

/* A directory that segments are in; dirs.h. Lives as long as a member refers to it. */
struct segment_dir;

typedef enum member_state {
    MEMBER_LIVE,
    MEMBER_EXITED,
    MEMBER_UNREADABLE /* the reader refuses it, but somebody holds it */
} member_state_t;

/* A location of a segment, and the device that it is. */
typedef struct member_place {
    uint32_t location;
    uint32_t device; /* index, DEVICE_HOST, or DEVICE_NONE: not shown */
} member_location_t;

typedef struct member {
    uint32_t serial;
    member_state_t state;
    rmm_segment_t segment;
    rmm_control_t control;
    bool has_control;
    bool is_settled;         /* made small: what was requested is done in the segment */
    gid_t gid;               /* of the file */
    struct segment_dir *dir; /* counted; NULL in tests */
    struct process *process;
    member_location_t locations[RMM_SEGMENT_LOCATIONS];
    uint32_t location_count;
    uint64_t exited_ns;            /* CLOCK_BOOTTIME */
    rmm_ring_cursor_t log_cursor;  /* of the journal, under its lock */
    _Atomic(uint64_t) events_lost; /* to readers of events_pipe */
    _Atomic(uint16_t)
        slot_hints[SLOT_HINTS]; /* where an instance id was seen: slots.c */
} member_t;

typedef struct process {
    uint32_t serial;
    pid_t pid;     /* 0: cannot be told */
    char name[32]; /* of its directory: "<pid>" or "seg-<id>" */
    uid_t uid;
    gid_t gid;
    member_t **members;
    uint32_t member_count, member_capacity;
} process_t;

/* A segment whose totals are in the devices already: never to be counted again. */
typedef struct folded {
    char name[RMM_SEGMENT_NAME_BYTES];
    char process[32];   /* its directory's name: the same after a restart */
    uint64_t exited_ns; /* CLOCK_BOOTTIME */
    bool present;       /* its file is still there */
} folded_t;

/* A directory under proc/ that the kernel should forget. */
typedef struct vanished {
    char name[32];
} vanished_t;

typedef struct model {
    pthread_rwlock_t lock;
    device_t gpus[DEVICE_GPUS_MAX];
    uint32_t gpu_count;
    device_t host;
    process_t **processes;
    uint32_t process_count, process_capacity;
    uint32_t member_count; /* readable and live: daemon/segments */
    uint32_t last_serial;
    folded_t *folded;
    uint32_t folded_count, folded_capacity;
    vanished_t *vanished;
    uint32_t vanished_count, vanished_capacity;
    struct state *state;     /* where marks are kept; NULL: nowhere (tests) */
    struct journal *journal; /* NULL: none (tests) */
    uid_t uid;
    gid_t gid;
    uint64_t started_ns;      /* CLOCK_BOOTTIME */
    uint64_t started_real_ns; /* CLOCK_REALTIME */
    uint64_t segments_rejected;
    _Atomic(uint64_t) reads_total;
} model_t;

void model_init(model_t *model);
void model_fini(model_t *model);

/* Nanoseconds since boot: goes on over a restart of the daemon. */
uint64_t model_clock_ns(void);
uint64_t clock_read_ns(clockid_t clock);

/* A device by index or DEVICE_HOST; NULL if there is none. */
device_t *model_device(model_t *model, uint32_t index);
const device_t *model_device_const(const model_t *model, uint32_t index);

/* NULL: none of that serial, name, pid. */
process_t *model_process(const model_t *model, uint32_t serial);
process_t *model_process_named(const model_t *model, const char *name);
member_t *model_member(const model_t *model, uint32_t serial);

/*
 * Take `member` (malloc'ed; owned by the model from here) into the process `name`, made
 * if missing. False: no memory, the member is untouched.
 */
bool model_add_member(model_t *model, member_t *member, const char *name, pid_t pid);

/* Close and free it; its process leaves with its last member. */
void model_remove_member(model_t *model, member_t *member);

/* NULL: not folded. */
folded_t *model_folded(model_t *model, const char *segment_name);
/* False: no memory. */
bool model_add_folded(
    model_t *model, const char *segment_name, const char *process, uint64_t exited_ns);
void model_forget_folded(model_t *model, folded_t *folded);

/* "live", "exited" or "unreadable". */
const char *process_state(const process_t *process);
bool process_is_live(const process_t *process);

/* The segment to ask for comm, cmdline and start time; NULL if none is readable. */
const member_t *process_speaker(const process_t *process);

/* True if figures of this member count in its process's own gauges. */
bool member_counts(const member_t *member);

/* Its place on that device; false: none. */
bool member_location_on(
    const member_t *member, uint32_t device, uint32_t *location_out);

#endif /* RMM_FUSEFS_MODEL_H */
