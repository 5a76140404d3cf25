/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The writer's side of the ring of refused allocations in the segment. Read with
 * segment_refusals.h.
 */
#ifndef RMM_PUBLISH_REFUSAL_RING_H
#define RMM_PUBLISH_REFUSAL_RING_H

#include "publish/accounting.h"

/* The limit that refused it; .of 0: none did. */
typedef struct rmm_refused_by {
    uint32_t of; /* RMM_LIMIT_OF_* */
    uint64_t limit_bytes;
} rmm_refused_by_t;

/*
 * A user's allocation of so many bytes was refused. Any thread; no lock, no waiting. Notifies the
 * daemon by one system call, which is left out less than a millisecond after the last one: the
 * daemon looks again after that time.
 */
void rmm__refusal_put(
    const rmm_accounting_t *accounting, uint64_t bytes, const rmm_refused_by_t *by);

#endif /* RMM_PUBLISH_REFUSAL_RING_H */
