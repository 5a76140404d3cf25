/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Findings and leaks as the messages of reports that other programs show: plain lines, without the
 * name of the class and without indentation.
 */
#ifndef RMM_TOOLS_RUN_MESSAGES_H
#define RMM_TOOLS_RUN_MESSAGES_H

#include "run/report.h"

/* NULL: no memory. The caller frees it. */
char *run_message_of_finding(const rmm_diag_finding_info_t *finding);
/* Of a verdict `leaked`; the same. */
char *run_message_of_leak(const run_verdict_t *verdict);

#endif /* RMM_TOOLS_RUN_MESSAGES_H */
