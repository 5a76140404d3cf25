/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Opening what a program keeps beside its segment: "<segment>.<suffix>". Part of the
 * readers, which trust no file that is not the program's own.
 */
#ifndef RMM_SEGMENT_SIDE_H
#define RMM_SEGMENT_SIDE_H

#include <sys/types.h>

/*
 * A descriptor to read it with, or a negative errno: -ENOENT it was never made, -EPROTO
 * it is not `owner`'s or has another name besides, -ENAMETOOLONG. Never waits for a FIFO.
 */
int rmm_side_file_open(int dirfd, const char *segment, const char *suffix, uid_t owner);

#endif /* RMM_SEGMENT_SIDE_H */
