/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the two files of the tracking adaptor share: tracking_adaptor.c keeps the table,
 * tracking_report.c copies and prints it.
 */
#ifndef RMM_ADAPTORS_TRACKING_IMPL_H
#define RMM_ADAPTORS_TRACKING_IMPL_H

#include <rmm/tracking_adaptor.h>

#include "adaptors/adaptor.h"
#include "adaptors/call_stack.h"
#include "core/mutex.h"
#include "core/pointer_map.h"

typedef struct tracking {
    rmm_adaptor_t adaptor;    /* first member */
    uint32_t max_frames;      /* 0: no stacks */
    rmm_mutex_t lock;         /* protects the tally, the slot, and: */
    rmm_pointer_map_t blocks; /* owner: the rmm_call_stack_t, or NULL */
} tracking_t;

/* NULL if mr is not NULL and no tracking adaptor. */
tracking_t *rmm__tracking_from(rmm_resource_t *mr);

/* At the end: an error for each block that is still out. */
void rmm__tracking_report_leaks(tracking_t *self);

#endif /* RMM_ADAPTORS_TRACKING_IMPL_H */
