/* SPDX-License-Identifier: Apache-2.0 */
/* Which programs are listed, and in which order: what the filter lets through, sorted. */
#ifndef RMM_TOP_ROWS_H
#define RMM_TOP_ROWS_H

#include "top/ui.h"

typedef struct row {
    const node_use_t *use;
    const node_process_t *process;
    const node_device_t *device;
    const char *site; /* "": there is only one node */
    bool has_rate;
    double rate; /* allocations each second */
    ui_sort_t sort;
} row_t;

typedef struct rows {
    row_t *rows;
    uint32_t count;
    uint32_t selected; /* index; 0 if what was selected is gone */
} rows_t;

/* False: no memory. free() rows. */
bool rows_make(
    const node_t *node, const history_t *history, const ui_t *ui, rows_t *out);

#endif /* RMM_TOP_ROWS_H */
