/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs: whatever has processes and is known by a name, so that memory can be charged to it. A
 * job is a Slurm job or step, a pod, a container, a unit of systemd or a user, as cgroup.h tells
 * of each process, or what has the label that its user gave it in RMM_JOB, as its segment tells. A
 * process is in several, at most one of each kind.
 *
 * A job has a user, because names of control groups are claims (cgroup.h): processes of two
 * users are never in one job, whatever name both give.
 *
 * Peaks are the highest of three values, like those of a device: the sum of current bytes at
 * each look (marks_take(), up to five times a second) and in each snapshot, and the mark of any one
 * process over its life. So they are exact for a job of one process on one device, else a lower
 * bound.
 *
 * A job whose last process has ended is kept for JOBS_ENDED_SHOWN_NS, but at most
 * JOBS_ENDED_OF_USER of a user: the oldest leaves first. Jobs do not outlive the daemon.
 *
 * Anybody can make any number of groups. A user has at most JOBS_OF_USER, all have JOBS_MAX:
 * a process that would need one more is in fewer jobs, which the log says once.
 *
 * Threads: the model's lock is held alone, but where it says shared.
 */
#ifndef RMM_FUSEFS_JOBS_H
#define RMM_FUSEFS_JOBS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "model/job.h"
#include "node/cgroup.h"
#include "node/figures.h"

#define JOBS_ENDED_OF_USER 256u
#define JOBS_OF_USER 1024u
#define JOBS_MAX 4096u

struct member;
struct model;
struct process;

/* The control groups of a process; it never changes, so snapshots share it. */
typedef struct placement {
    atomic_uint references;
    cgroup_t group;
} placement_t;

/* NULL is taken by both. */
placement_t *placement_retain(placement_t *placement);
void placement_release(placement_t *placement);

void jobs_fini(jobs_t *jobs);

/* A live process is put into the jobs of these groups, out of those of others; NULL: unknown, and
 * those of before stay. */
void jobs_put(struct model *model, struct process *process, const cgroup_t *group);
/* The same with the groups that it is in now. */
void jobs_place(struct model *model, struct process *process);
/* The same of some processes, at each call of the next ones. */
void jobs_place_some(struct model *model);
/* The process is not live any more; or it is and nothing changes. */
void jobs_leave_ended(struct model *model, struct process *process);
/* The last figures of a member that has ended, whose process is still in its jobs. */
void jobs_note_end(struct process *process, const figures_t *last, bool is_host);
/* Remove those that have ended long ago. */
void jobs_expire(struct model *model);

/* A look adds up what the processes hold on all devices. Shared lock, but one look at a time. */
void jobs_look_begin(struct model *model);
void jobs_look_add(const struct process *process, const figures_t *part, bool is_host);
void jobs_look_end(struct model *model);

/* NULL: there is none. Shared lock. */
const job_t *jobs_find(const jobs_t *jobs, uint64_t serial);

/* Raise the peaks to these sums, and return them. Shared lock. */
void jobs_raise(job_t *job, uint64_t *bytes, uint64_t *host_bytes);

#endif /* RMM_FUSEFS_JOBS_H */
