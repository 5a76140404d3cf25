/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The JSON report of a job as a folder: a file for each process that was diagnosed, named by its
 * rank or its pid and its command, and summary.json, which lists all of them. Files of an earlier
 * run stay, unless they have the same name.
 *
 * The files are written into a hidden folder beside them, one process at a time, and moved when all
 * are whole: a disk that is full leaves what was there before. summary.json comes last. Only a
 * rmm-run that is killed after the program's end may leave the hidden folder.
 */
#ifndef RMM_TOOLS_RUN_FOLDER_H
#define RMM_TOOLS_RUN_FOLDER_H

#include <limits.h>

#include "common/output.h"
#include "run/about.h"
#include "run/report.h"

#define RUN_FOLDER_SUMMARY "summary.json"

typedef struct run_folder {
    char path[PATH_MAX];   /* ends with '/'; empty: not open */
    char hidden[PATH_MAX]; /* the same; empty: not made yet */
    bool is_made;          /* the folder itself, by this run */
    output_t summary;
    json_t *processes;                                 /* of the summary */
    json_t *names;                                     /* of the files: a set */
    uint64_t diagnosed, findings, leaks, leaked_bytes; /* sums */
} run_folder_t;

/* Whether a path is that of a folder: it is one, or ends with '/'. */
bool run_folder_is_meant(const char *path);

/* Makes it if need be, in a folder that there is. False: errno says why; so below. Until
 * run_folder_discard() nothing is visible in it. */
bool run_folder_open(run_folder_t *folder, const char *path);
bool run_folder_add(run_folder_t *folder, const run_report_t *report);
bool run_folder_end(
    run_folder_t *folder, const run_about_t *about, const run_end_t *end);

/* Leaves what run_folder_end() has made, and nothing else. */
void run_folder_discard(run_folder_t *folder);

#endif /* RMM_TOOLS_RUN_FOLDER_H */
