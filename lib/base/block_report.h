/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reports the blocks of the process's pools when an operator requests it through /rmm. A report
 * covers all resources, so that one allocation pays for it, however many files show it.
 *
 * Threads: any, without a lock. Takes each resource's lock once or twice, for the time of a
 * walk over its blocks. Calls no driver.
 */
#ifndef RMM_BASE_BLOCK_REPORT_H
#define RMM_BASE_BLOCK_REPORT_H

/* Obey a request that no thread has taken. */
void rmm__block_report_obey(void);

#endif /* RMM_BASE_BLOCK_REPORT_H */
