/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints the result of --advise: the candidates' figures and the advice, as a table or as one JSON
 * object.
 */
#ifndef RMM_TOOLS_REPLAY_ADVICE_REPORT_H
#define RMM_TOOLS_REPLAY_ADVICE_REPORT_H

#include <stdio.h>

#include "replay/advice.h"
#include "replay/plan.h"

typedef struct advice_report {
    const char *log;
    const plan_t *plan;
    const advice_candidate_t *candidates;
    size_t count;
    const advice_t *advice;
} advice_report_t;

void advice_print_table(const advice_report_t *report, FILE *out);

/* False: no host memory, or it cannot be written. */
bool advice_print_json(const advice_report_t *report, FILE *out);

#endif /* RMM_TOOLS_REPLAY_ADVICE_REPORT_H */
