/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The files that a run is reported in, each in the format of its option: JSON (--report, also as a
 * folder of files), JUnit's XML (--junit) and SARIF (--sarif). They are opened before the program
 * runs, so that it does not run in vain, get one process after the other, and are there as a whole
 * or not at all.
 */
#ifndef RMM_TOOLS_RUN_FILES_H
#define RMM_TOOLS_RUN_FILES_H

#include "common/output.h"
#include "run/about.h"
#include "run/folder.h"
#include "run/junit.h"
#include "run/report.h"
#include "run/sarif.h"

typedef enum run_format { RUN_JSON, RUN_JUNIT, RUN_SARIF, RUN_FORMATS } run_format_t;

typedef struct run_files {
    const char *paths[RUN_FORMATS]; /* NULL: not wanted; borrowed */
    output_t outputs[RUN_FORMATS];  /* not open where not wanted */
    int errors[RUN_FORMATS];        /* why something could not be added; 0: all was */
    run_folder_t folder; /* of JSON, in place of the file; not open where not wanted */
    json_t *whole, *others; /* of the file: the program, and what it started */
    FILE *xml; /* of JUnit, in memory: an early write that fails has no errno later */
    char *xml_text;
    size_t xml_bytes;
    run_junit_t junit;
    run_sarif_t sarif;
    const run_about_t *about; /* borrowed */
} run_files_t;

/* False: one of them cannot be written, as an error message says; none is open. */
bool run_files_open(run_files_t *files, const char *const paths[RUN_FORMATS]);

/* After the program's end; `about` is borrowed. Failures to add stay noted. The program comes
 * first. */
void run_files_begin(run_files_t *files, const run_about_t *about);
void run_files_add(run_files_t *files, const run_report_t *report);

/* Write all of them. False: an error message names each that cannot be written. */
bool run_files_end(run_files_t *files, const run_end_t *end);

/* Leave nothing behind; nothing happens to what was written. */
void run_files_discard(run_files_t *files);

#endif /* RMM_TOOLS_RUN_FILES_H */
