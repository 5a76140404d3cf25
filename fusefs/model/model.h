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

#include "core/clock.h"
#include "diag/diag_reader.h"
#include "model/apportion.h"
#include "model/history.h"
#include "model/identity.h"
#include "model/jobs.h"
#include "model/limits.h"
#include "model/refusals.h"
#include "node/gpus.h"
#include "segment/segment_log.h"
#include "segment/segment_reader.h"
#include "segments/entries.h"
#include "support/budget.h"
#include "support/hiding.h"

#define DEVICE_HOST 0xffffu /* host memory, where a device index stands */
#define DEVICE_NONE 0xfffeu
#define NEWER_OF_LEVEL_MAX 32u
#define SLOT_HINTS 64u
#define WITHOUT_GPU_NOTED 16u

/* A statistic that this version does not know, by the name in the segment's schema. */
typedef struct newer {
    char name[40];
    uint16_t kind;
    uint64_t value;
} newer_t;

typedef struct newer_list {
    newer_t items[NEWER_OF_LEVEL_MAX];
    uint32_t count;
} newer_list_t;

typedef struct device {
    gpu_t gpu; /* the uuid and the name of host memory are "host" */
    uid_t uid; /* unless the driver lists it: whose program reported it first */

    /* High-water marks of the sum over processes; reset through gpuN/peak_bytes. */
    _Atomic(uint64_t) peak_bytes, peak_count, peak_upper_bytes;
    _Atomic(uint64_t) lifetime_peak_bytes; /* never reset */

    /* Of the sum over processes, and of what other programs hold of it. */
    history_t current_history, reserved_history, others_history;

    /* Counters of processes that are gone; only those of kind COUNTER are used. */
    uint64_t exited[RMM_LOCATION_STAT_COUNT];
    newer_list_t newer;
    uint64_t reported_peak_bytes; /* both of event_poll.h */
    uint32_t event_changes;
} device_t;

/* A directory that segments are in; dirs.h. Lives as long as a member refers to it. */
struct segment_dir;
struct dirs; /* all of them */

typedef enum member_state {
    MEMBER_LIVE,
    MEMBER_EXITED,
    MEMBER_UNREADABLE /* the reader refuses it, but a process holds it */
} member_state_t;

/* What event_poll.c looks at of a location, as marks_take() read it last. */
typedef struct location_counts {
    uint64_t oom, invalid_free, limit, peak_bytes, reserved_bytes;
} location_counts_t;

/* The counters of a location when event_poll.c last looked. */
typedef struct location_seen {
    uint64_t oom, invalid_free, limit;
    uint64_t peak_bytes; /* last reported */
    uint32_t changes;    /* how often the first three were others */
} location_seen_t;

/* How often a resource had refused memory when event_poll.c looked at it last. */
#define REMEMBERED_SLOTS 8u
typedef struct slot_refusals {
    uint32_t instance_id;
    uint64_t refused; /* 0: a free entry */
} slot_refusals_t;

/* A location of a segment, and the device that it is. */
typedef struct member_location {
    uint32_t location;
    uint32_t device; /* index, DEVICE_HOST, or DEVICE_NONE: not shown */
    claim_t claim;   /* here and below: of sharing_out.c */
    uint32_t asked;  /* the number of its request */
    struct member *member;
} member_location_t;

/* The shares that the program was given at locations that it has not used. */
typedef enum asks_first { ASKS_UNKNOWN, ASKS_FIRST, ASKS_NOT } asks_first_t;

/* Of sharing_out.c. */
typedef struct sharing {
    bool is_asked;    /* a member was touched */
    bool has_moved;   /* a process to other jobs */
    uint64_t changes; /* of the model, at the last run */
    uint64_t next_ns; /* CLOCK_MONOTONIC */
    uint32_t turn;
} sharing_t;

/* A report of its blocks that it was asked for: reports.h. */
typedef struct member_report {
    bool is_pending;
    uint32_t number;      /* of the request */
    int result;           /* of the last one: 0 or a negative errno */
    uint64_t deadline_ns; /* CLOCK_BOOTTIME, like the next one */
    uint64_t settled_ns;  /* when the last one was over; 0: there was none */
} member_report_t;

/* The findings of a diagnosis that found.c has reported. */
#define FOUND_CLASSES 16u
typedef struct member_found {
    rmm_diag_file_t file;
    bool is_open;
    uint64_t next_try_ns, retry_ns;
    uint64_t total,
        counts[FOUND_CLASSES]; /* reported so far; [0]: classes unknown here */
} member_found_t;

typedef struct member {
    uint64_t serial; /* never given again */
    /* First what each look at all members needs: other programs have the caches meanwhile. */
    member_state_t state;
    bool has_new_counts; /* since event_poll.c looked */
    bool is_log_over;    /* of the journal: read after its program's end */
    uint32_t location_count;
    struct process *process;
    rmm_ring_cursor_t log_cursor; /* of the journal, under its lock */
    uint64_t refusals_until_ns;   /* it is to be looked at; 0: it is not */
    member_location_t locations[RMM_SEGMENT_LOCATIONS];
    rmm_segment_t segment;
    rmm_control_t control;
    bool has_control;
    bool is_charged;         /* to its user's budget of segments */
    bool is_settled;         /* made small: what was requested is done in the segment */
    gid_t gid;               /* of the file */
    struct segment_dir *dir; /* counted; NULL in tests */
    struct entry *entry;     /* its name in dir; NULL: the name is gone */
    int pidfd;               /* of exits.h; -1: not watched */
    location_seen_t seen[RMM_SEGMENT_LOCATIONS];     /* of each of its locations */
    location_counts_t counts[RMM_SEGMENT_LOCATIONS]; /* likewise */
    uint32_t locations_opened; /* when they were looked at: segment_format.h */
    uint64_t exited_ns;        /* CLOCK_BOOTTIME */
    member_report_t report;
    bool may_ask, is_share_new; /* both of sharing_out.c, like the next one */
    asks_first_t asks_first;
    rmm_ring_cursor_t refusal_cursor; /* of refused.c, like refusals_until_ns */
    _Atomic(uint64_t) events_lost;    /* to readers of events_pipe */
    _Atomic(bool) is_implausible;     /* figures of it cannot be true: figures.h */
    _Atomic(bool) has_odd_stats;      /* statistics that are not shown: newer_stats.h */
    _Atomic(uint16_t)
        slot_hints[SLOT_HINTS]; /* where an instance id was seen: slots.c */
    slot_refusals_t refusals[REMEMBERED_SLOTS];
    bool knows_no_refusals; /* those before the first look are not in refusals */
    member_found_t found;
} member_t;

typedef struct process {
    uint64_t serial; /* never given again */
    pid_t pid;       /* 0: unknown */
    char name[32];   /* of its directory: "<pid>" or "seg-<id>" */
    uid_t uid;
    gid_t gid;
    member_t **members;
    uint32_t member_count, member_capacity;
    placement_t *placement;      /* NULL: unknown */
    job_t *jobs[JOB_KIND_COUNT]; /* while it is live; NULL: in none of that kind */
} process_t;

/* A segment that has ended and whose totals the devices have: they are never added again, although
 * its file is still there. The state file calls it "folded". */
typedef struct totalled {
    char name[RMM_SEGMENT_NAME_BYTES];
    uid_t uid;          /* of the file: anybody may give another's name to a file */
    char process[32];   /* its directory's name: the same after a restart */
    uint64_t exited_ns; /* CLOCK_BOOTTIME */
} totalled_t;

typedef struct model {
    pthread_rwlock_t lock;
    device_t gpus[GPUS_MAX];
    uint32_t gpu_count;
    device_t host;
    process_t **processes;
    uint32_t process_count, process_capacity;
    member_t **members; /* of all processes, in the order of their serials */
    uint32_t member_count, member_capacity;
    uint32_t next_checked; /* index of the member that was checked last */
    uint64_t without_gpu[WITHOUT_GPU_NOTED]; /* serials; members_note_without_gpu() */
    uint32_t without_gpu_count;
    uint64_t without_gpu_at; /* `changes` when they were noted */
    uint64_t changes; /* rises when a segment or a location comes or goes, and with each
                         command */
    bool counts_ended; /* what ended unseen adds to the totals: not at a first start */
    bool is_unsaved;   /* something is to be written to the state file */
    bool is_urgent;    /* it is to be written at once */
    uint64_t last_serial;
    totalled_t *totalled;
    uint32_t totalled_count, totalled_capacity;
    jobs_t jobs;
    limits_t limits;
    sharing_t sharing;
    refusals_t refusals;
    identities_t ended; /* in the devices' totals: not to be counted again */
    uint32_t *vanished; /* serials of processes whose directories the kernel may know */
    uint32_t vanished_count, vanished_capacity;
    const char *driver_root;    /* gpus.h; NULL: no list of the driver */
    struct state *state;        /* where marks are kept; NULL: nowhere (tests) */
    struct journal *journal;    /* NULL: none (tests) */
    struct exits *exits;        /* NULL: none (tests, old kernels) */
    struct holders *holders;    /* NULL: none (tests) */
    struct sums *sums;          /* NULL: none (tests) */
    struct node_events *events; /* NULL: none (tests) */
    uint64_t
        looked_at_serial; /* both of event_poll.c: the last member of a look under way */
    uint64_t looked_ns;   /* CLOCK_MONOTONIC: the last look */
    uint32_t names_left;  /* of resources that it may look for */
    uint64_t event_changes; /* rises with each of a device */
    uint32_t found_open;    /* both of found.c: side files that are kept open */
    uint32_t found_left;    /* that may be read in this piece of a look */
    budget_t budget;        /* has a lock of its own */
    hiding_t hiding;
    uint32_t history_step_ms;
    uid_t uid;
    gid_t gid;
    uint64_t started_ns;      /* CLOCK_BOOTTIME */
    uint64_t started_real_ns; /* CLOCK_REALTIME */
    uint64_t segments_rejected;
    const struct dirs *dirs;   /* borrowed; NULL: none. dirs.h */
    uint32_t descriptor_limit; /* RLIMIT_NOFILE */
    /* Both of shortage.c: segments that are not shown, by what is short, and what the log has
     * told. */
    uint32_t unshown[SHORTAGE_COUNT];
    bool has_logged_short[SHORTAGE_COUNT];
    _Atomic(uint64_t) reads_total;
} model_t;

void model_init(model_t *model);
void model_fini(model_t *model);

/* Nanoseconds since boot: goes on over a restart of the daemon. */
uint64_t model_clock_ns(void);

/* A device by index or DEVICE_HOST; NULL if there is none. */
device_t *model_device(model_t *model, uint32_t index);
const device_t *model_device_const(const model_t *model, uint32_t index);

/* NULL: none of that name; none whose serial ends in these bits, which two never have at
 * once. */
process_t *model_process(const model_t *model, uint32_t serial);
process_t *model_process_named(const model_t *model, const char *name);
member_t *model_member(const model_t *model, uint32_t serial);

/* Segments that are live and readable. */
uint32_t model_live_count(const model_t *model);

/*
 * Take `member` (malloc'ed; owned by the model from here) into the process `name`, made
 * if missing. False: no memory, the member is untouched.
 */
bool model_add_member(model_t *model, member_t *member, const char *name, pid_t pid);

/* Close the side file that found.c keeps of it. */
void model_close_found(model_t *model, member_t *member);

/* Close and free one that is in no process. */
void model_free_member(model_t *model, member_t *member);

/* The same of one that is in the model; its process leaves with its last member. */
void model_remove_member(model_t *model, member_t *member);

/* NULL: its totals are not in the devices. */
totalled_t *model_totalled(model_t *model, const char *segment_name, uid_t uid);
/* False: no memory. */
bool model_add_totalled(model_t *model, const totalled_t *totalled);
void model_forget_totalled(model_t *model, totalled_t *totalled);

/* "live", "exited" or "unreadable". */
const char *process_state(const process_t *process);
bool process_is_live(const process_t *process);

/* The segment that has comm, cmdline and start time; NULL: none is readable. */
const member_t *process_readable_member(const process_t *process);

/* True if figures of this member count in its process's own gauges. */
bool member_counts(const member_t *member);

/* Its location on that device; false: none. */
bool member_location_on(
    const member_t *member, uint32_t device, uint32_t *location_out);

/* The device that a location of it is; DEVICE_NONE: it is not shown, or not known yet. */
uint32_t member_device_of(const member_t *member, uint32_t location);

#endif /* RMM_FUSEFS_MODEL_H */
