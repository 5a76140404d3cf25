/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of what a program left; see report.h. */
#include "run/report.h"

#include <stdlib.h>
#include <string.h>

static bool take_finding(const rmm_diag_finding_info_t *finding, void *arg)
{
    run_report_t *report = arg;
    report->findings[report->finding_count++] = *finding;
    return report->finding_count < RUN_FINDINGS_MAX;
}

/* False: no memory. */
static bool read_named(run_report_t *report, const rmm_diag_file_t *file)
{
    bool good = true;
    run_symbols_t *symbols = run_symbols_open();
    for (uint32_t i = 0; good && i < report->finding_count; i++) {
        good = run_stacks_read(
            &report->stacks[i], file, report->findings[i].index, symbols);
    }
    good = good && run_usage_read(&report->usage, file, symbols);
    run_symbols_close(symbols);
    return good;
}

/* False: no memory. */
static bool read_file(run_report_t *report, const rmm_diag_file_t *file)
{
    const rmm_diag_header_t *header = &file->header;
    memcpy(report->modes, file->modes, sizeof(report->modes));
    memcpy(report->source, header->source, sizeof(report->source));
    memcpy(report->rank, header->rank, sizeof(report->rank));
    report->launches = atomic_load_explicit(&header->launches, memory_order_relaxed);
    report->findings_total =
        atomic_load_explicit(&header->findings_total, memory_order_relaxed);
    report->findings_dropped =
        atomic_load_explicit(&header->findings_dropped, memory_order_relaxed);
    report->unseen = run_unseen_read(file);
    report->python = run_python_state(file);
    report->unreadable = rmm__diag_each_finding(file, take_finding, report);
    return read_named(report, file);
}

void run_report_free(run_report_t *report)
{
    run_usage_free(&report->usage);
    for (uint32_t i = 0; i < report->finding_count; i++) {
        run_stacks_free(&report->stacks[i]);
    }
    free(report->stacks);
    free(report->findings);
    report->stacks = NULL;
    report->findings = NULL;
}

bool run_report_read(
    run_report_t *report, const char *program, pid_t pid, const run_left_t *left)
{
    *report = (run_report_t){.pid = pid, .program = program};
    report->findings = calloc(RUN_FINDINGS_MAX, sizeof(report->findings[0]));
    report->stacks = calloc(RUN_FINDINGS_MAX, sizeof(report->stacks[0]));
    if (report->findings == NULL || report->stacks == NULL) {
        run_report_free(report);
        return false;
    }
    memcpy(report->missing, left->missing, sizeof(report->missing));
    if (left->diag.fd >= 0 && !read_file(report, &left->diag)) {
        snprintf(report->missing, sizeof(report->missing), "no memory for the report");
    }
    return true;
}

bool run_report_has_looked(const run_report_t *report)
{
    return report->missing[0] == '\0' && strcmp(report->source, "active") == 0;
}
