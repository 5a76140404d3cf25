/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts programs; see order.h. */
#include "page/order.h"

#include <stdlib.h>

#include "page/node_page.h"

/* Programs that hold the same stay in the order of the list. */
static int larger_first(const void *left, const void *right)
{
    const rmm_page_order_t *a = left, *b = right;
    uint64_t of_a = a->bytes == RMM_PAGE_UNKNOWN ? 0 : a->bytes + 1;
    uint64_t of_b = b->bytes == RMM_PAGE_UNKNOWN ? 0 : b->bytes + 1;
    if (of_a != of_b) {
        return of_a > of_b ? -1 : 1;
    }
    return (a->index > b->index) - (a->index < b->index);
}

void rmm__page_sort(rmm_page_order_t *order, uint32_t count)
{
    if (count > 1) {
        qsort(order, count, sizeof(order[0]), larger_first);
    }
}
