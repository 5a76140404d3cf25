/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Users and jobs on `index.html`: kind by kind, of each the largest live ones and those that ended
 * last. Steps are left out, and containers of a pod: the job and the pod stand for them.
 */
#include <stdlib.h>

#include "render/page.h"
#include "render/parts.h"

static int compare(uint64_t left, uint64_t right)
{
    return (left > right) - (left < right);
}

static int by_kind_and_rank(const void *left, const void *right)
{
    const snapshot_job_t *a = *(const snapshot_job_t *const *)left;
    const snapshot_job_t *b = *(const snapshot_job_t *const *)right;
    bool is_a_live = a->ended_ns_ago == FIGURE_UNKNOWN;
    bool is_b_live = b->ended_ns_ago == FIGURE_UNKNOWN;
    if (a->kind != b->kind) {
        return compare(a->kind, b->kind);
    }
    if (is_a_live != is_b_live) {
        return is_a_live ? -1 : 1;
    }
    int order = is_a_live ? compare(b->current_bytes, a->current_bytes)
                          : compare(a->ended_ns_ago, b->ended_ns_ago);
    return order != 0 ? order : compare(a->serial, b->serial);
}

/* Of a pod that is shown. */
static bool is_in_pod(const snapshot_t *snapshot, const snapshot_job_t *container)
{
    for (uint32_t i = 0; i < snapshot->process_count; i++) {
        const snapshot_process_t *process = &snapshot->processes[i];
        if (process->jobs[JOB_CONTAINER] == container->serial) {
            return process->jobs[JOB_POD] != 0;
        }
    }
    return false;
}

static uint32_t choose(const snapshot_t *snapshot, const snapshot_job_t **rows)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->job_count; i++) {
        const snapshot_job_t *job = &snapshot->jobs[i];
        if (job->kind != JOB_SLURM_STEP &&
            !(job->kind == JOB_CONTAINER && is_in_pod(snapshot, job))) {
            rows[count++] = job;
        }
    }
    return count;
}

static void read_past(drawing_t *drawing, uint64_t serial, past_t *past)
{
    *past = (past_t){.shown.step_ms = drawing->model->history_step_ms};
    pthread_rwlock_rdlock(&drawing->model->lock);
    const job_t *job = jobs_find(&drawing->model->jobs, serial);
    if (job != NULL) {
        past_add(past, "used", &job->history);
    }
    pthread_rwlock_unlock(&drawing->model->lock);
}

static void put_job(drawing_t *drawing, const snapshot_job_t *job)
{
    char number[PAGE_USER_BYTES];
    const char *user = page_user(drawing, job->uid, number);
    bool has_ended = job->ended_ns_ago != FIGURE_UNKNOWN;
    const char *name = job->kind == JOB_USER ? user
                       : job->pod[0] != '\0' ? job->pod
                                             : job->name;
    past_t past;
    read_past(drawing, job->serial, &past);
    const rmm_page_job_t shown = {
        .kind = job_kind_name(job->kind),
        .name = name,
        .user = user,
        .current_bytes = job->current_bytes,
        .reserved_bytes = job->reserved_bytes,
        .peak_bytes = job->peak_bytes,
        .capacity_bytes = drawing->gpu_bytes,
        .oom_count = job->oom_count,
        .programs = job->processes,
        .ended_seconds_ago =
            has_ended ? job->ended_ns_ago / 1000000000u : RMM_PAGE_UNKNOWN,
        .history = &past.shown};
    rmm__page_job(&drawing->page, &shown);
}

static void
put_rows(drawing_t *drawing, const snapshot_job_t *const *rows, uint32_t count)
{
    uint32_t of_kind = 0, left_out = 0;
    rmm__page_begin_jobs(&drawing->page);
    for (uint32_t i = 0; i < count; i++) {
        of_kind = i > 0 && rows[i]->kind == rows[i - 1]->kind ? of_kind + 1 : 0;
        if (of_kind < PAGE_JOBS_OF_KIND) {
            put_job(drawing, rows[i]);
        } else {
            left_out++;
        }
    }
    rmm__page_end_jobs(&drawing->page);
    rmm__page_remark(
        &drawing->page, left_out, "more users and jobs are in the file jobs");
}

void page_put_jobs(drawing_t *drawing)
{
    const snapshot_t *snapshot = drawing->snapshot;
    size_t bytes = snapshot->job_count * sizeof(snapshot_job_t *);
    if (bytes == 0 || !text_take_scratch(drawing->text, bytes)) {
        return;
    }
    const snapshot_job_t **rows = malloc(bytes);
    if (rows == NULL) {
        drawing->text->failed = TEXT_NO_MEMORY;
    } else {
        uint32_t count = choose(snapshot, rows);
        qsort(rows, count, sizeof(rows[0]), by_kind_and_rank);
        put_rows(drawing, rows, count);
    }
    free(rows);
    text_give_scratch(drawing->text, bytes);
}
