/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the side file of a process that ended small. */
#ifndef RMM_SEGMENT_SIDE_THIN_H
#define RMM_SEGMENT_SIDE_THIN_H

#include <stdbool.h>
#include <sys/stat.h>

/* A side file that is worth it: large, and not thinned yet. */
bool rmm__side_is_thick(const struct stat *status);

/*
 * Give back the pages of this side file that hold zeros only, and give it mode 0400: what a reader
 * reads is the same. The caller knows that no process holds it. Returns 0 or a negative errno.
 */
int rmm__side_thin(int fd);

#endif /* RMM_SEGMENT_SIDE_THIN_H */
