/* SPDX-License-Identifier: Apache-2.0 */
/* Filters and sorts; see rows.h. */
#include "top/rows.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- filter ------------------------------------------------------------------------------- */

static bool matches(const row_t *row, const char *filter)
{
    const node_process_t *process = row->process;
    char pid[16], label[CGROUP_LABEL_BYTES];
    cgroup_label(&process->group, label);
    snprintf(pid, sizeof(pid), "%d", (int)process->pid);
    return filter[0] == '\0' || strcasestr(process->comm, filter) != NULL ||
           strcasestr(process->command, filter) != NULL ||
           strcasestr(process->user, filter) != NULL ||
           strcasestr(label, filter) != NULL || strcasestr(row->site, filter) != NULL ||
           strcasestr(row->device->name, filter) != NULL || strcmp(pid, filter) == 0;
}

/* --- order -------------------------------------------------------------------------------- */

/* The larger first, what is not known last. */
static int larger(uint64_t a, uint64_t b)
{
    a = a == FIGURE_UNKNOWN ? 0 : a + 1;
    b = b == FIGURE_UNKNOWN ? 0 : b + 1;
    return (a < b) - (a > b);
}

static int by_rate(const row_t *a, const row_t *b)
{
    double rate_a = a->has_rate ? a->rate : -1.0, rate_b = b->has_rate ? b->rate : -1.0;
    return (rate_a < rate_b) - (rate_a > rate_b);
}

static int by_column(const row_t *a, const row_t *b)
{
    switch (a->sort) {
    case UI_SORT_CURRENT:
        return larger(a->use->figures.current_bytes, b->use->figures.current_bytes);
    case UI_SORT_RESERVED:
        return larger(a->use->figures.reserved_bytes, b->use->figures.reserved_bytes);
    case UI_SORT_PEAK:
        return larger(a->use->figures.peak_bytes, b->use->figures.peak_bytes);
    case UI_SORT_RATE:
        return by_rate(a, b);
    case UI_SORT_PID:
        return (a->process->pid > b->process->pid) -
               (a->process->pid < b->process->pid);
    case UI_SORT_USER:
        return strcmp(a->process->user, b->process->user);
    case UI_SORT_COMMAND:
        return strcmp(a->process->comm, b->process->comm);
    case UI_SORT_NODE:
        return (a->process->site > b->process->site) -
               (a->process->site < b->process->site);
    case UI_SORT_COUNT:
        break;
    }
    return 0;
}

/* Rows that are equal stay where they are: by node, then by program, then by device. */
static int compare(const void *left, const void *right)
{
    const row_t *a = left, *b = right;
    int order = by_column(a, b);
    if (order == 0) {
        order = (a->process->site > b->process->site) -
                (a->process->site < b->process->site);
    }
    if (order == 0) {
        order = (a->process->id > b->process->id) - (a->process->id < b->process->id);
    }
    return order != 0 ? order : (a->device > b->device) - (a->device < b->device);
}

/* --- rows --------------------------------------------------------------------------------- */

static void find_selected(const ui_t *ui, rows_t *rows)
{
    rows->selected = 0;
    for (uint32_t i = 0; i < rows->count; i++) {
        if (rows->rows[i].process->id == ui->selected_id &&
            rows->rows[i].use->device == ui->selected_device) {
            rows->selected = i;
        }
    }
}

bool rows_make(
    const node_t *node, const history_t *history, const ui_t *ui, rows_t *out)
{
    row_t *rows = calloc(node->use_count + 1, sizeof(*rows));
    if (rows == NULL) {
        return false;
    }
    *out = (rows_t){.rows = rows};
    for (uint32_t i = 0; i < node->use_count; i++) {
        const node_use_t *use = &node->uses[i];
        row_t row = {
            .use = use,
            .process = &node->processes[use->process],
            .device = &node->devices[use->device],
            .site = "",
            .sort = ui->sort};
        if (node->site_count > 0) {
            row.site = node->sites[row.process->site].name;
        }
        if (matches(&row, ui->filter)) {
            row.has_rate =
                history_rate(history, row.process->id, use->device, &row.rate);
            rows[out->count++] = row;
        }
    }
    qsort(rows, out->count, sizeof(*rows), compare);
    find_selected(ui, out);
    return true;
}
