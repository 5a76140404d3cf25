/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A run as a test report in the XML of JUnit, which CI servers show: a test suite for each process
 * and in it a test case for each class of finding that was looked for. A case fails where rmm-run
 * would end with 86; what does not count (hints, leaks without --fail-on-leak) is a skipped case.
 *
 * The elements are those that both schemas in use allow (Ant's, and the stricter one of Jenkins'
 * xUnit plugin): one failure a case, no attributes on the root, no output within a case. Names are
 * unique and the same in each run, because servers compare runs by them: no process ids.
 */
#ifndef RMM_TOOLS_RUN_JUNIT_H
#define RMM_TOOLS_RUN_JUNIT_H

#include "run/about.h"
#include "run/report.h"
#include "run/xml.h"

typedef struct run_junit {
    xml_t xml;
    const run_about_t *about; /* borrowed */
    json_t *labels;           /* of processes: how many have it */
    uint32_t suites;
    bool has_program; /* one of them is the program's own */
} run_junit_t;

/* False: no memory; so below. run_junit_free() it in any case. */
bool run_junit_begin(run_junit_t *junit, FILE *out, const run_about_t *about);
/* The program itself is left out if it was not diagnosed: launchers use no GPU. */
bool run_junit_add(run_junit_t *junit, const run_report_t *report);
/* Where nothing was diagnosed, a case says so, and is an error if rmm-run fails because of it. */
bool run_junit_end(run_junit_t *junit, const run_end_t *end);
void run_junit_free(run_junit_t *junit);

#endif /* RMM_TOOLS_RUN_JUNIT_H */
