/* SPDX-License-Identifier: Apache-2.0 */
/* The lock that says that a file's process lives; see segment_holder.c. */
#ifndef RMM_SEGMENT_HOLDER_H
#define RMM_SEGMENT_HOLDER_H

#include <stdbool.h>

/* True while somebody holds the exclusive lock on the file behind fd. */
bool rmm__file_is_held(int fd);

#endif /* RMM_SEGMENT_HOLDER_H */
