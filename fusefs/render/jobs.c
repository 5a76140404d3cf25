/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `jobs`: what users, Slurm jobs and steps, pods, containers and units hold, and have held. A row
 * for each that has processes, the largest first, then those that have ended, the last first.
 */
#include <stdlib.h>

#include "render/parts.h"
#include "render/printers.h"

static int compare_numbers(uint64_t left, uint64_t right)
{
    return left < right ? -1 : left > right;
}

/* Live ones are larger than what ended any time ago. */
static int by_rank(const void *left, const void *right)
{
    const snapshot_job_t *a = *(const snapshot_job_t *const *)left;
    const snapshot_job_t *b = *(const snapshot_job_t *const *)right;
    bool are_live =
        a->ended_ns_ago == FIGURE_UNKNOWN && a->ended_ns_ago == b->ended_ns_ago;
    int order = a->ended_ns_ago == b->ended_ns_ago  ? 0
                : a->ended_ns_ago == FIGURE_UNKNOWN ? -1
                : b->ended_ns_ago == FIGURE_UNKNOWN
                    ? 1
                    : compare_numbers(a->ended_ns_ago, b->ended_ns_ago);
    order = order == 0 && are_live ? compare_numbers(b->current_bytes, a->current_bytes)
                                   : order;
    return order != 0 ? order : compare_numbers(a->serial, b->serial);
}

static void put_job(text_t *text, const snapshot_job_t *job)
{
    bool is_live = job->ended_ns_ago == FIGURE_UNKNOWN;
    text_printf(text, "%s ", job_kind_name(job->kind));
    text_put_foreign(text, job->name);
    text_printf(text, " %u %s ", (unsigned)job->uid, is_live ? "live" : "ended");
    render_column(text, job->current_bytes);
    render_column(text, job->reserved_bytes);
    render_column(text, job->host_bytes);
    render_column(text, job->peak_bytes);
    render_column(text, job->host_peak_bytes);
    render_column(text, job->oom_count);
    render_column(text, job->processes);
    render_column(text, is_live ? FIGURE_UNKNOWN : job->ended_ns_ago / 1000000000u);
    render_string(text, job->pod);
}

static void put_rows(text_t *text, const snapshot_job_t *const *rows, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        text_begin_row(text);
        put_job(text, rows[i]);
        if (!text_end_row(text)) {
            text_leave_out(text, count - i - 1);
            break;
        }
    }
    text_end_rows(text);
}

void print_jobs(const subject_t *subject, text_t *text)
{
    const snapshot_t *snapshot = subject->snapshot;
    size_t bytes = snapshot->job_count * sizeof(snapshot_job_t *);
    text_puts(
        text, "#kind name uid state current_bytes reserved_bytes host_bytes peak_bytes "
              "host_peak_bytes oom_count processes ended_seconds pod\n");
    if (bytes == 0 || !text_take_scratch(text, bytes)) {
        return;
    }
    const snapshot_job_t **rows = malloc(bytes);
    if (rows == NULL) {
        text->failed = TEXT_NO_MEMORY;
    } else {
        for (uint32_t i = 0; i < snapshot->job_count; i++) {
            rows[i] = &snapshot->jobs[i];
        }
        qsort(rows, snapshot->job_count, sizeof(rows[0]), by_rank);
        put_rows(text, rows, snapshot->job_count);
    }
    free(rows);
    text_give_scratch(text, bytes);
}
