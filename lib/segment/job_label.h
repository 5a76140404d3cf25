/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The label that a user gives to a job, in RMM_JOB: one word of letters, digits, dots, dashes and
 * underscores. Checked by the program, which publishes it, by the daemon, which trusts no
 * program, and where a limit is set for it.
 */
#ifndef RMM_SEGMENT_JOB_LABEL_H
#define RMM_SEGMENT_JOB_LABEL_H

#include <stdbool.h>
#include <string.h>

#define RMM_JOB_LABEL_BYTES 64 /* with NUL */

static inline bool rmm__job_label_is_valid(const char *label)
{
    size_t length = strlen(label);

    return length > 0 && length < RMM_JOB_LABEL_BYTES &&
           strspn(
               label, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
                      "0123456789._-") == length;
}

#endif /* RMM_SEGMENT_JOB_LABEL_H */
