/* SPDX-License-Identifier: Apache-2.0 */
/* Names of jobs; see job.h. */
#include "model/job.h"

#include <stdio.h>

const char *job_kind_name(job_kind_t kind)
{
    static const char *const names[JOB_KIND_COUNT] = {
        [JOB_USER] = "user",
        [JOB_SLURM_JOB] = "slurm_job",
        [JOB_SLURM_STEP] = "slurm_step",
        [JOB_POD] = "pod",
        [JOB_CONTAINER] = "container",
        [JOB_UNIT] = "unit",
        [JOB_LABEL] = "label",
    };
    return names[kind];
}

bool job_name(
    const cgroup_t *group, uid_t uid, job_kind_t kind, char name[JOB_NAME_BYTES])
{
    const char *of_group = kind == JOB_SLURM_JOB   ? group->job
                           : kind == JOB_POD       ? group->pod
                           : kind == JOB_CONTAINER ? group->container
                           : kind == JOB_UNIT      ? group->unit
                           : kind == JOB_LABEL     ? group->label
                                                   : "";
    if (kind == JOB_USER) {
        (void)snprintf(name, JOB_NAME_BYTES, "%u", (unsigned)uid);
        return true;
    }
    if (kind == JOB_SLURM_STEP && group->step[0] != '\0') {
        (void)snprintf(name, JOB_NAME_BYTES, "%s.%s", group->job, group->step);
        return true;
    }
    (void)snprintf(name, JOB_NAME_BYTES, "%s", of_group);
    return name[0] != '\0';
}
