/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's side of the debug log's ring in the segment: what the log is attached to.
 * Read with segment_log.h.
 */
#ifndef RMM_PUBLISH_LOG_RING_H
#define RMM_PUBLISH_LOG_RING_H

#include "log/log.h"

/* Any thread, also in a forked child, where the segment is private memory. */
void rmm__log_ring_put(const rmm_log_record_t *message);

#endif /* RMM_PUBLISH_LOG_RING_H */
