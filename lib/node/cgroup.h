/* SPDX-License-Identifier: Apache-2.0 */
/*
 * To whom a process belongs, as its control groups tell: a Slurm job and step, a pod, a
 * container, or a unit of systemd.
 *
 * On a system with several hierarchies (version 1, hybrid) the one that says most is chosen:
 * Slurm may place a job in those of memory or freezer only, and systemd's then names slurmd.
 *
 * Trust. Who may make groups below one of his own, in a container or as a user of systemd, may
 * name them like those of others. So a name means something only together with the user of the
 * process, which the kernel reports. Names are checked or escaped here: each is one printable
 * word.
 *
 * Pure except cgroup_of(), which reads /proc/<pid>/cgroup. Threads: any.
 */
#ifndef RMM_NODE_CGROUP_H
#define RMM_NODE_CGROUP_H

#include <stdbool.h>
#include <sys/types.h>

#define CGROUP_PATH_BYTES 512
#define CGROUP_NAME_BYTES 72 /* 64 digits, the longest name of an LXC container */
#define CGROUP_UNIT_BYTES 128

/* "": unknown, or none. */
typedef struct cgroup {
    char path[CGROUP_PATH_BYTES];
    char job[24], step[24];      /* Slurm's: "123"; "0", "batch", "extern" */
    char pod[CGROUP_NAME_BYTES]; /* the uid of Kubernetes, or podman's id */
    char container
        [CGROUP_NAME_BYTES];      /* 64 hex digits, or the name for LXC and nspawn */
    char unit[CGROUP_UNIT_BYTES]; /* the innermost, of what is in none of the above */
    char label
        [64]; /* RMM_JOB, which is not of a control group; the caller fills it in */
} cgroup_t;

/*
 * From the text of /proc/<pid>/cgroup. The path is that of the unified hierarchy, unless another
 * one says more. Characters that would split a column of a table are written as \ooo, like in
 * /proc/mounts; what is longer than the buffer is cut.
 */
void cgroup_parse(const char *text, cgroup_t *out);

/* In a few words, for a column: "slurm 123.0", "pod 4a163a05", "container 0123456789ab",
 * "ssh.service"; "": unknown. */
#define CGROUP_LABEL_BYTES 64
void cgroup_label(const cgroup_t *group, char label[CGROUP_LABEL_BYTES]);

/* False: it cannot be read, and all is unknown. */
bool cgroup_of(pid_t pid, cgroup_t *out);

#endif /* RMM_NODE_CGROUP_H */
