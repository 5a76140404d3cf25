/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The summary of --quick: nothing but what makes the run fail, or is missing. A process without
 * that has one line, or none where it is one of several.
 */
#ifndef RMM_TOOLS_RUN_QUICK_H
#define RMM_TOOLS_RUN_QUICK_H

#include <stdbool.h>
#include <stdio.h>

#include "run/report.h"

/* The modes that --quick means: all that is cheap and has no finding on a correct program. */
#define RUN_QUICK_MODES "bounds"

/* False: it could not be written. */
bool run_quick_print(const run_report_t *report, bool is_only, FILE *out);

#endif /* RMM_TOOLS_RUN_QUICK_H */
