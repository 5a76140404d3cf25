/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Events and frees given to order.c, and the findings that it returns.
 *
 * Not locked: the engine's lock protects it.
 */
#ifndef RMM_DIAG_ORDER_FINDINGS_H
#define RMM_DIAG_ORDER_FINDINGS_H

#include "diag/findings.h"
#include "diag/order.h"
#include "diag/uses.h"

typedef struct rmm_order_findings {
    rmm_order_t order;
    const rmm_uses_t *uses; /* borrowed, as all that follows */
    rmm_findings_t *findings;
    rmm_diag_header_t *header; /* in the side file */
} rmm_order_findings_t;

/* user: who launches, copies or fills, as in the side file. */
void rmm__order_findings_event(
    rmm_order_findings_t *self, const rmm_diag_event_v1_t *event, uint32_t user);

/* The block at this index is about to be freed, and reported. */
void rmm__order_findings_free(
    rmm_order_findings_t *self, uint32_t index, const rmm_diag_block_v1_t *block);

#endif /* RMM_DIAG_ORDER_FINDINGS_H */
