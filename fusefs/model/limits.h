/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The limits of groups that are in force: of a user, of a job (jobs.h), of a whole GPU. Each is for
 * one device, or for each GPU by itself. programs/sharing_out.h makes programs obey them.
 *
 * Who may what: root and the daemon's user may set all. Another user may set those of himself and
 * of his own jobs. What root has set only root changes. A limit of a job that root sets is for the
 * jobs of that name of every user, each by itself: names of jobs are claims (jobs.h).
 *
 * A limit stays until it is removed, also over a restart of the daemon (state.h). That of a job
 * that had programs goes LIMITS_JOB_ENDED_NS after the last one has ended, like the job's row.
 *
 * Bounds: LIMITS_OF_USER that one user set, LIMITS_MAX in all.
 *
 * Threads: the model's lock is held, alone by what changes the list.
 */
#ifndef RMM_FUSEFS_LIMITS_H
#define RMM_FUSEFS_LIMITS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/job.h"

#define LIMITS_OF_USER 64u
#define LIMITS_MAX 1024u
#define LIMITS_JOB_ENDED_NS JOBS_ENDED_SHOWN_NS
#define LIMIT_EACH_GPU 0xfffdu /* in place of a device */
#define LIMIT_HOST 0xffffu     /* DEVICE_HOST of model.h */
#define LIMIT_OF_DEVICE                                                                \
    JOB_KIND_COUNT /* in place of a job_kind_t: of all programs there */
#define LIMIT_ANY_USER ((uid_t)-1)
#define LIMIT_GROUP_BYTES (JOB_NAME_BYTES + 32)

typedef struct limit {
    uint32_t kind;             /* job_kind_t, or LIMIT_OF_DEVICE */
    char name[JOB_NAME_BYTES]; /* of the job; a user's is his uid */
    uid_t uid;                 /* of the job, or LIMIT_ANY_USER */
    uint32_t device;           /* index, DEVICE_HOST, or LIMIT_EACH_GPU */
    uint64_t limit_bytes;
    uid_t set_by;
    bool had_programs;
    uint64_t
        ended_ns; /* CLOCK_BOOTTIME: since when it has none; 0: it has, or never had */
} limit_t;

typedef struct limits {
    limit_t *items;
    uint32_t count, capacity;
    bool is_due;     /* the programs are to be told */
    bool is_started; /* there were limits, perhaps of an earlier daemon */
} limits_t;

void limits_fini(limits_t *limits);

/* The words for a kind, and back; false: none of that name. */
const char *limit_kind_name(uint32_t kind);
bool limit_kind_parse(const char *word, uint32_t *kind_out);

/* Is this job (NULL: all programs) one that the limit is for? */
bool limit_is_of(const limit_t *limit, const job_t *job);
bool limit_is_on(const limit_t *limit, uint32_t device);

/* "user 1001", "gpu gpu0" */
void limit_print_group(const limit_t *limit, char group[LIMIT_GROUP_BYTES]);

/* The limit of that group on that device as it was set; NULL: none. */
const limit_t *limits_find(const limits_t *limits, const limit_t *like);

/*
 * Set, or remove if limit_bytes is UINT64_MAX. `limit` has kind, name, uid, device, limit_bytes
 * and set_by. 0, or a negative errno: -EPERM root has set it, -EDQUOT the user has too many,
 * -ENOMEM.
 */
int limits_set(limits_t *limits, const limit_t *limit);
/* The same as it was saved. */
bool limits_restore(limits_t *limits, const limit_t *limit);

/* Those of jobs that are gone. now_ns: CLOCK_BOOTTIME. True: some were removed. */
bool limits_expire(limits_t *limits, const jobs_t *jobs, uint64_t now_ns);

#endif /* RMM_FUSEFS_LIMITS_H */
