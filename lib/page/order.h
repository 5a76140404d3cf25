/* SPDX-License-Identifier: Apache-2.0 */
/* The order in which a page shows programs: those that hold the most memory come first, so that
 * the page has them if it cannot show all. */
#ifndef RMM_PAGE_ORDER_H
#define RMM_PAGE_ORDER_H

#include <stdint.h>

typedef struct rmm_page_order {
    uint32_t index; /* of a program, in the owner's list */
    uint64_t bytes; /* that it holds; RMM_PAGE_UNKNOWN comes last */
} rmm_page_order_t;

void rmm__page_sort(rmm_page_order_t *order, uint32_t count);

#endif /* RMM_PAGE_ORDER_H */
