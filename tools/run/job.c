/* SPDX-License-Identifier: Apache-2.0 */
/* The processes of a run; see job.h. */
#include "run/job.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "segment/list.h"
#include "segment/runtime_dir.h"
#include "segment/segment_holder.h"
#include "segment/segment_side.h"

#define DESCRIPTORS_KEPT 64u /* for all but side files */

/* --- names that were looked at ---------------------------------------------------------- */

static int by_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static bool is_seen(const run_job_t *job, const char *name)
{
    return job->seen_sorted > 0 &&
           bsearch(&name, job->seen, job->seen_sorted, sizeof(job->seen[0]), by_name) !=
               NULL;
}

/* Without memory it is looked at again. */
static void note_seen(run_job_t *job, const char *name)
{
    char *copy = strdup(name);
    char **room = rmm__list_make_room(
        job->seen, job->seen_count, &job->seen_capacity, sizeof(job->seen[0]));
    job->seen = room != NULL ? room : job->seen;
    if (copy == NULL || room == NULL) {
        free(copy);
        return;
    }
    job->seen[job->seen_count++] = copy;
}

static void sort_seen(run_job_t *job)
{
    if (job->seen_sorted < job->seen_count) {
        qsort(job->seen, job->seen_count, sizeof(job->seen[0]), by_name);
        job->seen_sorted = job->seen_count;
    }
}

/* --- looking ---------------------------------------------------------------------------- */

/* As many as the system allows: the program, which has been started, keeps its limit. */
static void raise_descriptors(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) {
        limit.rlim_cur = limit.rlim_max;
        (void)setrlimit(RLIMIT_NOFILE, &limit);
    }
}

static bool has_room(const run_job_t *job, int fd)
{
    struct rlimit limit;
    bool is_limited = getrlimit(RLIMIT_NOFILE, &limit) == 0;
    return job->count < RUN_JOB_PROCESSES_MAX &&
           (!is_limited || (rlim_t)fd + DESCRIPTORS_KEPT < limit.rlim_cur);
}

/* False: no room. */
static bool add(run_job_t *job, const char *name, const rmm_diag_file_t *diag)
{
    run_process_t *room = rmm__list_make_room(
        job->processes, job->count, &job->capacity, sizeof(job->processes[0]));
    rmm_segment_t segment;
    char reason[RMM_SEGMENT_REASON_BYTES];
    job->processes = room != NULL ? room : job->processes;
    if (room == NULL ||
        rmm__segment_open(&segment, job->dirfd, name, reason) != RMM_SEGMENT_GOOD) {
        return false;
    }
    run_process_t *process = &job->processes[job->count];
    *process = (run_process_t){.diag = *diag, .pid = (pid_t)segment.header.pid};
    (void)snprintf(process->segment, sizeof(process->segment), "%s", name);
    process->made_ns = segment.header.start_time_ns;
    (void)snprintf(
        process->command, sizeof(process->command), "%.*s",
        (int)sizeof(process->command) - 1, segment.header.comm);
    rmm__segment_close(&segment);
    job->count++;
    return true;
}

/* A side file that is being made is looked at again. */
static void look_at(run_job_t *job, const char *name)
{
    rmm_diag_file_t diag;
    int error = rmm__diag_open(&diag, job->dirfd, name, geteuid());
    if (error == -EAGAIN) {
        return;
    }
    note_seen(job, name);
    if (error != 0) {
        job->left_out += error == -EMFILE || error == -ENFILE;
        return;
    }
    bool is_ours = strcmp(diag.header.run, job->name) == 0;
    if (!is_ours || !has_room(job, diag.fd) || !add(job, name, &diag)) {
        job->left_out += is_ours;
        rmm__diag_close(&diag);
    }
}

/* "<segment>.diag"; false: another name. */
static bool names_side_file(const char *name, char segment[RMM_SEGMENT_NAME_BYTES])
{
    static const char suffix[] = "." RMM_DIAG_SUFFIX;
    size_t length = strlen(name), end = strlen(suffix);
    if (length <= end || length - end >= RMM_SEGMENT_NAME_BYTES ||
        strcmp(name + length - end, suffix) != 0) {
        return false;
    }
    memcpy(segment, name, length - end);
    segment[length - end] = '\0';
    return rmm__segment_name_parse(segment, NULL);
}

void run_job_look(run_job_t *job)
{
    char segment[RMM_SEGMENT_NAME_BYTES];
    struct dirent *entry;
    int fd = job->dirfd >= 0
                 ? openat(job->dirfd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)
                 : -1;
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    raise_descriptors();
    if (dir == NULL) {
        rmm__file_close(&fd);
        return;
    }
    while ((entry = readdir(dir)) != NULL) {
        if (names_side_file(entry->d_name, segment) && !is_seen(job, segment)) {
            look_at(job, segment);
        }
    }
    (void)closedir(dir);
    sort_seen(job);
}

/* --- the whole -------------------------------------------------------------------------- */

bool run_job_open(run_job_t *job, uint64_t now_ns)
{
    char path[RMM_RUNTIME_DIR_BYTES], reason[RMM_RUNTIME_DIR_BYTES + 128];
    *job = (run_job_t){.dirfd = -1};
    (void)snprintf(job->name, sizeof(job->name), "%d.%" PRIu64, (int)getpid(), now_ns);
    if (rmm__runtime_dir(path, reason, sizeof(reason))) {
        job->dirfd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    }
    return setenv(RUN_JOB_VARIABLE, job->name, 1) == 0;
}

static int by_rank(const void *left, const void *right)
{
    const run_process_t *a = left, *b = right;
    long first = strtol(a->diag.header.rank, NULL, 10);
    long second = strtol(b->diag.header.rank, NULL, 10);
    if (first != second) {
        return first < second ? -1 : 1;
    }
    return a->made_ns < b->made_ns ? -1 : a->made_ns > b->made_ns;
}

void run_job_settle(run_job_t *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        job->processes[i].is_live = rmm__file_is_held(job->processes[i].diag.fd);
    }
    if (job->count > 0) {
        qsort(job->processes, job->count, sizeof(job->processes[0]), by_rank);
    }
}

bool run_process_read(const run_process_t *process, rmm_diag_file_t *file_out)
{
    return rmm__diag_attach(file_out, process->diag.fd) == 0;
}

void run_job_close(run_job_t *job)
{
    for (uint32_t i = 0; i < job->count; i++) {
        rmm__diag_close(&job->processes[i].diag);
    }
    for (uint32_t i = 0; i < job->seen_count; i++) {
        free(job->seen[i]);
    }
    free(job->processes);
    free(job->seen);
    rmm__file_close(&job->dirfd);
}
