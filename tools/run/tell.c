/* SPDX-License-Identifier: Apache-2.0 */
/* What was found in the processes of a run; see tell.h. One report is in memory at a time. */
#include "run/tell.h"

#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>

#include "common/foreign_text.h"
#include "common/json.h"
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

/* Otherwise "no findings" means nothing. */
static bool has_looked(const run_report_t *report)
{
    return report->missing[0] == '\0' && strcmp(report->source, "active") == 0;
}

static void count(const run_report_t *report, run_told_t *told)
{
    if (has_looked(report)) {
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
    if (other_count == 0 || report->findings_total > 0) {
        return run_report_print(report, stderr);
    }
    return is_launcher || run_report_print_title(report, stderr);
}

/* NULL where no JSON is wanted, or without memory, which `told` has. */
static json_t *tell_one(
    const run_tell_t *tell, run_report_t *report, uint32_t other_count,
    run_told_t *told)
{
    json_t *object = NULL;
    run_suppressions_apply(tell->suppressions, report);
    count(report, told);
    if (tell->summary && !print_one(tell, report, other_count)) {
        told->has_summary = false; /* stderr cannot say so: the status does */
    }
    if (tell->json != NULL) {
        object = run_report_json(report);
        told->has_json = told->has_json && object != NULL;
    }
    run_report_free(report);
    return object;
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
    json_t *others, run_told_t *told)
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
    json_t *object = tell_one(tell, &report, other_count, told);
    return object == NULL || json_array_append_new(others, object) == 0;
}

static bool tell_others(
    const run_tell_t *tell, uint32_t other_count, json_t *others, run_told_t *told)
{
    bool good = true;
    for (uint32_t i = 0; good && i < tell->job->count; i++) {
        const run_process_t *process = &tell->job->processes[i];
        good = !is_told_of(tell, process) ||
               tell_other(tell, process, other_count, others, told);
    }
    return good;
}

/* --- the whole ------------------------------------------------------------------------------ */

static void print_sum(const run_tell_t *tell, const run_told_t *told)
{
    (void)fputs("rmm-run: ", stderr);
    foreign_text_print(tell->program, stderr);
    (void)fprintf(
        stderr, ": %" PRIu32 " %s: %" PRIu64 " %s\n", told->processes,
        told->processes == 1 ? "process was diagnosed" : "processes were diagnosed",
        told->findings, told->findings == 1 ? "finding" : "findings");
    if (tell->job->left_out > 0) {
        (void)fprintf(
            stderr, "  not shown: %" PRIu32 " further processes: no descriptors left\n",
            tell->job->left_out);
    }
}

static bool write_json(json_t *whole, json_t *others, FILE *out)
{
    bool is_whole = whole != NULL && others != NULL &&
                    json_object_set(whole, "processes", others) == 0 &&
                    json_dumpf(whole, out, JSON_INDENT(2)) == 0;
    return is_whole && fputc('\n', out) != EOF && fflush(out) == 0 && ferror(out) == 0;
}

bool run_tell(const run_tell_t *tell, run_told_t *told)
{
    uint32_t other_count = count_others(tell);
    run_report_t report;
    *told = (run_told_t){.has_summary = true, .has_json = true};
    if (!run_report_read(&report, tell->program, tell->pid, tell->left)) {
        return false;
    }
    json_t *whole = tell_one(tell, &report, other_count, told);
    json_t *others = tell->json != NULL ? json_array() : NULL;
    bool good = tell_others(tell, other_count, others, told);
    if (good && tell->summary && other_count > 0) {
        print_sum(tell, told);
    }
    if (good && tell->json != NULL && !write_json(whole, others, tell->json)) {
        told->has_json = false;
    }
    json_decref(whole);
    json_decref(others);
    return good;
}
