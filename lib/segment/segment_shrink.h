/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the segment of a process that ended small; see segment_shrink.c. */
#ifndef RMM_SEGMENT_SEGMENT_SHRINK_H
#define RMM_SEGMENT_SEGMENT_SHRINK_H

#include <stdbool.h>
#include <sys/stat.h>

/* Is the segment marked as that of a process that ended? Its owner may not write it then. */
static inline bool rmm__segment_is_marked(const struct stat *status)
{
    return (status->st_mode & S_IWUSR) == 0;
}

/*
 * Replace the segment `name` by one that holds what readers still show, marked as ended, and
 * remove its control page. The caller knows that its process has ended, or is that process
 * on its way out. Returns 0, also for one that is marked already, or a negative errno,
 * -EPROTO if it is inconsistent: then it is unchanged.
 */
int rmm__segment_shrink(int dirfd, const char *name);

#endif /* RMM_SEGMENT_SEGMENT_SHRINK_H */
