/* SPDX-License-Identifier: Apache-2.0 */
/* What was found in the processes of a run; see tell.h. One report is in memory at a time. */
#include "run/tell.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include "common/foreign_text.h"
#include "run/quick.h"
#include "run/report.h"

/* Occurrences that are errors only if the program later does something else as well. */
static uint64_t hints(const run_report_t *report)
{
    uint64_t count = 0;
    for (uint32_t i = 0; i < report->finding_count; i++) {
        bool is_hint = report->findings[i].confidence == RMM_DIAG_HINT;
        count += is_hint ? report->findings[i].count : 0;
    }
    return count;
}

static void count(const run_report_t *report, run_told_t *told)
{
    if (run_report_has_looked(report)) {
        told->processes++;
        told->findings += report->findings_total - hints(report);
        told->leaks += report->usage.leaked_count;
    } else if (told->why[0] == '\0') {
        (void)snprintf(
            told->why, sizeof(told->why), "%s",
            report->missing[0] != '\0' ? report->missing : report->source);
    }
}

/* Of many processes only those are shown in full that have findings. */
static bool
print_one(const run_tell_t *tell, const run_report_t *report, uint32_t other_count)
{
    bool is_launcher = report->pid == tell->pid && report->missing[0] != '\0';
    if (other_count > 0 && is_launcher) {
        return true;
    }
    if (tell->is_brief) {
        return run_quick_print(report, other_count == 0, stderr);
    }
    if (other_count == 0 || report->findings_total > 0) {
        return run_report_print(report, stderr);
    }
    return run_report_print_title(report, stderr);
}

static void tell_one(
    const run_tell_t *tell, run_report_t *report, uint32_t other_count,
    run_told_t *told)
{
    run_suppressions_apply(tell->suppressions, report);
    count(report, told);
    if (tell->summary && !print_one(tell, report, other_count)) {
        told->has_summary = false; /* stderr cannot say so: the status does */
    }
    run_files_add(tell->files, report);
    run_report_free(report);
}

/* --- the processes that the program started ------------------------------------------------ */

static bool is_told_of(const run_tell_t *tell, const run_process_t *process)
{
    return process->pid != tell->pid &&
           (tell->only == NULL || fnmatch(tell->only, process->command, 0) == 0);
}

static uint32_t count_others(const run_tell_t *tell)
{
    uint32_t others = 0;
    for (uint32_t i = 0; i < tell->job->count; i++) {
        others += is_told_of(tell, &tell->job->processes[i]);
    }
    return others;
}

/* False: no memory. */
static bool tell_other(
    const run_tell_t *tell, const run_process_t *process, uint32_t other_count,
    run_told_t *told)
{
    run_left_t left = {.dirfd = -1, .diag.fd = -1};
    run_report_t report;
    if (!run_process_read(process, &left.diag)) {
        (void)snprintf(
            left.missing, sizeof(left.missing),
            "its side file cannot be read any more");
    }
    if (!run_report_read(&report, process->command, process->pid, &left)) {
        return false;
    }
    report.is_live = process->is_live;
    tell_one(tell, &report, other_count, told);
    return true;
}

static bool tell_others(const run_tell_t *tell, uint32_t other_count, run_told_t *told)
{
    bool good = true;
    for (uint32_t i = 0; good && i < tell->job->count; i++) {
        const run_process_t *process = &tell->job->processes[i];
        good =
            !is_told_of(tell, process) || tell_other(tell, process, other_count, told);
    }
    return good;
}

/* --- the whole ------------------------------------------------------------------------------ */

static void print_sum(const run_tell_t *tell, const run_told_t *told)
{
    (void)fputs("rmm-run: ", stderr);
    foreign_text_print(tell->program, stderr);
    (void)fprintf(
        stderr, ": %" PRIu32 " %s: %" PRIu64 " %s", told->processes,
        told->processes == 1 ? "process was diagnosed" : "processes were diagnosed",
        told->findings, told->findings == 1 ? "finding" : "findings");
    if (tell->is_brief) {
        (void)fprintf(
            stderr, ", %" PRIu64 " %s", told->leaks,
            told->leaks == 1 ? "leak" : "leaks");
    }
    (void)fputc('\n', stderr);
    if (tell->job->left_out > 0) {
        (void)fprintf(
            stderr, "  not shown: %" PRIu32 " further processes: no descriptors left\n",
            tell->job->left_out);
    }
}

bool run_tell(const run_tell_t *tell, run_told_t *told)
{
    uint32_t other_count = count_others(tell);
    run_report_t report;
    *told = (run_told_t){.has_summary = true};
    if (!run_report_read(&report, tell->program, tell->pid, tell->left)) {
        return false;
    }
    tell_one(tell, &report, other_count, told);
    bool good = tell_others(tell, other_count, told);
    if (good && tell->summary && other_count > 0) {
        print_sum(tell, told);
    }
    return good;
}
