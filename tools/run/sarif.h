/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run as a log in SARIF 2.1.0, which forges show beside the source: a result for each finding and
 * for each group of leaks, from all processes of the run. Equal ones of several processes (ranks)
 * are one result, whose occurrenceCount is the sum.
 *
 * GitHub refuses a whole file if one result has no file and line, and shows only files of the
 * repository. So each result has a location: the innermost line of a source below the working
 * directory, of Python if there is one; else the innermost line; else line 1 of the program's file.
 * Fingerprints have the class, the call and the functions on the stack, but no lines and no
 * addresses: they stay the same in another run and after changes elsewhere.
 */
#ifndef RMM_TOOLS_RUN_SARIF_H
#define RMM_TOOLS_RUN_SARIF_H

#include "run/about.h"
#include "run/report.h"
#include "run/rules.h"

#define RUN_SARIF_RESULTS_MAX 5000u /* GitHub shows as many */

typedef struct run_sarif {
    const run_about_t *about; /* borrowed */
    run_rule_t rules[RUN_RULES_MAX];
    uint32_t rule_count;
    json_t *results;
    json_t *positions;     /* of results, by fingerprint and lines */
    json_t *notifications; /* what was not looked at, or has no place */
    uint64_t left_out;     /* results */
    char folder[4096];     /* the working directory; empty: not known */
} run_sarif_t;

/* False: no memory; so below. run_sarif_free() it in any case. */
bool run_sarif_begin(run_sarif_t *sarif, const run_about_t *about);
bool run_sarif_add(run_sarif_t *sarif, const run_report_t *report);
/* Also false: it cannot be written, and errno says why. */
bool run_sarif_end(run_sarif_t *sarif, const run_end_t *end, FILE *out);
void run_sarif_free(run_sarif_t *sarif);

#endif /* RMM_TOOLS_RUN_SARIF_H */
