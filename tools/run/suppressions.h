/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Suppressions of known findings, from a file like those of the sanitizers. A line is
 *   CLASS:GLOB
 * the class of a finding, or *, and a pattern (fnmatch(3)) for the call or kernel that it names,
 * for a function on its stack, or for the path or the name of a file on it. C++ names match both
 * demangled and mangled. Lines that begin with # and empty lines are ignored. The first line that
 * matches a finding takes all of its occurrences.
 */
#ifndef RMM_TOOLS_RUN_SUPPRESSIONS_H
#define RMM_TOOLS_RUN_SUPPRESSIONS_H

#include "run/report.h"

#define RUN_SUPPRESSION_MESSAGE 512u
#define RUN_SUPPRESSION_LEAKED UINT32_MAX /* instead of the kind of a finding */

typedef struct run_suppression {
    uint32_t line;
    char *text;          /* the line */
    uint32_t kind;       /* rmm_diag_finding_kind_t; 0: every one; or of leaks */
    const char *glob;    /* in text */
    char *demangled;     /* the glob, if it is a mangled name; or NULL */
    uint64_t suppressed; /* occurrences */
} run_suppression_t;

typedef struct run_suppressions {
    const char *path; /* borrowed */
    run_suppression_t *items;
    uint32_t count;
    uint64_t suppressed; /* occurrences, over all lines */
} run_suppressions_t;

/* 0, or the exit status for a file that cannot be read or has a bad line, described in `message`;
 * then there is nothing to free. path NULL: no suppressions. */
int run_suppressions_read(
    run_suppressions_t *suppressions, const char *path,
    char message[RUN_SUPPRESSION_MESSAGE]);
void run_suppressions_free(run_suppressions_t *suppressions);

/* Takes out of the report what is suppressed. */
void run_suppressions_apply(run_suppressions_t *suppressions, run_report_t *report);

/* Print how many findings each line suppressed, and which lines matched nothing. */
void run_suppressions_print(const run_suppressions_t *suppressions);

#endif /* RMM_TOOLS_RUN_SUPPRESSIONS_H */
