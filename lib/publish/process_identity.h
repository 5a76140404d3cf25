/* SPDX-License-Identifier: Apache-2.0 */
/* The identity of this process, for the head of its segment. */
#ifndef RMM_PUBLISH_PROCESS_IDENTITY_H
#define RMM_PUBLISH_PROCESS_IDENTITY_H

#include "segment/segment_format.h"

/* Fills pid, uid, start times, comm and cmdline. What /proc does not tell stays 0 or "". */
void rmm__process_identity(rmm_segment_header_t *header);

#endif /* RMM_PUBLISH_PROCESS_IDENTITY_H */
