/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of what a program left; see report.h. */
#include "run/report.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "segment/runtime_dir.h"
#include "segment/segment_reader.h"

typedef struct wanted {
    pid_t pid;
    uint64_t since_ns;
} wanted_t;

/* The segment `name` is the program's. */
static bool is_wanted(int dirfd, const char *name, const wanted_t *wanted)
{
    rmm_segment_t segment;
    char reason[RMM_SEGMENT_REASON_BYTES];
    if (rmm_segment_open(&segment, dirfd, name, reason) != RMM_SEGMENT_GOOD) {
        return false;
    }
    bool is = segment.uid == geteuid() && segment.header.pid == (uint32_t)wanted->pid &&
              segment.header.start_time_ns >= wanted->since_ns;
    rmm_segment_close(&segment);
    return is;
}

typedef enum search { FOUND, NO_SEGMENT, NO_SIDE_FILE } search_t;

/* A process with two copies of the library has two segments, and one side file. */
static search_t find_file(DIR *dir, const wanted_t *wanted, rmm_diag_file_t *file)
{
    search_t result = NO_SEGMENT;
    struct dirent *entry;
    while (result != FOUND && (entry = readdir(dir)) != NULL) {
        if (rmm_segment_name_parse(entry->d_name, NULL) &&
            is_wanted(dirfd(dir), entry->d_name, wanted)) {
            result = rmm_diag_open(file, dirfd(dir), entry->d_name, geteuid()) == 0
                         ? FOUND
                         : NO_SIDE_FILE;
        }
    }
    return result;
}

static bool take_finding(const rmm_diag_finding_info_t *finding, void *arg)
{
    run_report_t *report = arg;
    report->findings[report->finding_count++] = *finding;
    return report->finding_count < RUN_FINDINGS_MAX;
}

/* False: no memory. */
static bool read_stacks(run_report_t *report, const rmm_diag_file_t *file)
{
    bool good = true;
    if (report->finding_count == 0) {
        return true;
    }
    run_symbols_t *symbols = run_symbols_open();
    for (uint32_t i = 0; good && i < report->finding_count; i++) {
        good = run_stack_read(
            &report->stacks[i], file, report->findings[i].index, symbols);
    }
    run_symbols_close(symbols);
    return good;
}

/* False: no memory. */
static bool read_file(run_report_t *report, const rmm_diag_file_t *file)
{
    const rmm_diag_header_t *header = &file->header;
    memcpy(report->modes, header->mode, sizeof(report->modes));
    memcpy(report->source, header->source, sizeof(report->source));
    report->launches = atomic_load_explicit(&header->launches, memory_order_relaxed);
    report->findings_total =
        atomic_load_explicit(&header->findings_total, memory_order_relaxed);
    report->findings_dropped =
        atomic_load_explicit(&header->findings_dropped, memory_order_relaxed);
    report->unreadable = rmm_diag_each_finding(file, take_finding, report);
    return read_stacks(report, file) && run_usage_read(&report->usage, file);
}

static const char *search(run_report_t *report, DIR *dir, const wanted_t *wanted)
{
    rmm_diag_file_t file;
    bool good;
    switch (find_file(dir, wanted, &file)) {
    case FOUND:
        good = read_file(report, &file);
        rmm_diag_close(&file);
        return good ? "" : "no memory for the report";
    case NO_SIDE_FILE:
        return "the diagnosis was not started, or had no room for its file";
    default:
        return "the program left no segment: it does not use librmm-c, or does not "
               "publish";
    }
}

void run_report_free(run_report_t *report)
{
    run_usage_free(&report->usage);
    for (uint32_t i = 0; i < report->finding_count; i++) {
        run_stack_free(&report->stacks[i]);
    }
    free(report->stacks);
    free(report->findings);
    report->stacks = NULL;
    report->findings = NULL;
}

bool run_report_read(
    run_report_t *report, const char *program, pid_t pid, uint64_t since_ns)
{
    const wanted_t wanted = {pid, since_ns};
    char path[RMM_RUNTIME_DIR_BYTES];
    *report = (run_report_t){.pid = pid, .program = program};
    report->findings = calloc(RUN_FINDINGS_MAX, sizeof(report->findings[0]));
    report->stacks = calloc(RUN_FINDINGS_MAX, sizeof(report->stacks[0]));
    if (report->findings == NULL || report->stacks == NULL) {
        run_report_free(report);
        return false;
    }
    if (!rmm__runtime_dir(path, report->missing, sizeof(report->missing))) {
        return true;
    }
    DIR *dir = opendir(path);
    if (dir == NULL) {
        snprintf(
            report->missing, sizeof(report->missing),
            "cannot read the runtime directory: %s", strerror(errno));
        return true;
    }
    snprintf(
        report->missing, sizeof(report->missing), "%s", search(report, dir, &wanted));
    (void)closedir(dir);
    return true;
}
