/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `top`: the node at a glance, for `watch -n1 cat /rmm/top`. For people, not for programs: sizes
 * have units, columns a width, and only the TOP_ROWS largest holders are shown.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render/parts.h"
#include "render/printers.h"

#define TOP_ROWS 40u
#define SIZE_BYTES 16

typedef struct top_row {
    const snapshot_process_t *process;
    const snapshot_location_t *location;
} top_row_t;

/* "1023B", "1.5K", "79.6G"; "-" if it is unknown. */
static const char *size_text(uint64_t bytes, char text[SIZE_BYTES])
{
    static const char units[] = "BKMGTPE";
    double value = (double)bytes;
    int unit = 0;
    if (bytes == FIGURE_UNKNOWN) {
        return "-";
    }
    while (value >= 999.95 && units[unit + 1] != '\0') {
        value /= 1024;
        unit++;
    }
    (void)snprintf(
        text, SIZE_BYTES, unit == 0 ? "%.0f%c" : "%.1f%c", value, units[unit]);
    return text;
}

static void put_size(text_t *text, uint64_t bytes)
{
    char size[SIZE_BYTES];
    text_printf(text, " %9s", size_text(bytes, size));
}

static void put_percent(text_t *text, uint64_t thousandths)
{
    if (thousandths == FIGURE_UNKNOWN) {
        text_printf(text, " %6s", "-");
    } else {
        text_printf(text, " %6.1f", (double)thousandths / 10.0);
    }
}

static void put_device(text_t *text, const snapshot_device_t *device)
{
    const figures_t *figures = &device->figures;
    text_printf(text, "%-7s", device->name);
    put_size(
        text, device->capacity_bytes != 0 ? device->capacity_bytes : FIGURE_UNKNOWN);
    put_size(text, figures->current_bytes);
    put_size(text, figures->peak_bytes);
    put_size(text, figures->reserved_bytes);
    put_percent(text, figures_fragmentation(figures));
    if (device->device != DEVICE_HOST) {
        text_puts(text, "  ");
        text_put_foreign(text, device->model);
    }
    text_puts(text, "\n");
}

static int by_bytes(const void *left, const void *right)
{
    const top_row_t *a = left, *b = right;
    uint64_t of_a = a->location->figures.current_bytes,
             of_b = b->location->figures.current_bytes;
    if (of_a != of_b) {
        return of_a > of_b ? -1 : 1;
    }
    return a->location < b->location ? -1 : a->location > b->location;
}

static uint32_t find_rows(const snapshot_t *snapshot, top_row_t *rows)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < snapshot->process_count; i++) {
        const snapshot_process_t *process = &snapshot->processes[i];
        for (uint32_t j = 0; j < process->location_count && process->is_live; j++) {
            rows[count++] =
                (top_row_t){process, &snapshot->locations[process->location + j]};
        }
    }
    qsort(rows, count, sizeof(rows[0]), by_bytes);
    return count;
}

static void put_row(text_t *text, const snapshot_t *snapshot, const top_row_t *row)
{
    const figures_t *figures = &row->location->figures;
    char owner[CGROUP_LABEL_BYTES] = "";
    if (row->process->placement != NULL) {
        cgroup_label(&row->process->placement->group, owner);
    }
    text_printf(
        text, "%20s %10u %-7s", row->process->name, (unsigned)row->process->uid,
        snapshot->devices[row->location->device].name);
    put_size(text, figures->current_bytes);
    put_size(text, figures->peak_bytes);
    put_size(text, figures->reserved_bytes);
    put_percent(text, figures_fragmentation(figures));
    text_printf(text, "  %-22.22s  ", owner);
    text_put_foreign(text, row->process->comm);
    text_puts(text, "\n");
}

static void put_rows(text_t *text, const snapshot_t *snapshot, top_row_t *rows)
{
    uint32_t count = find_rows(snapshot, rows);
    text_printf(
        text, "\n%20s %10s %-7s %9s %9s %9s %6s  %-22s  %s\n", "PID", "UID", "GPU",
        "CURRENT", "PEAK", "RESERVED", "FRAG%", "OWNER", "COMMAND");
    for (uint32_t i = 0; i < count && i < TOP_ROWS; i++) {
        put_row(text, snapshot, &rows[i]);
    }
    if (count > TOP_ROWS) {
        text_printf(text, "%20s %u more\n", "...", count - TOP_ROWS);
    }
}

void print_top(const subject_t *subject, text_t *text)
{
    const snapshot_t *snapshot = subject->snapshot;
    size_t bytes = snapshot->location_count * sizeof(top_row_t);
    text_printf(
        text, "%-7s %9s %9s %9s %9s %6s  %s\n", "GPU", "MEMORY", "CURRENT", "PEAK",
        "RESERVED", "FRAG%", "NAME");
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        put_device(text, &snapshot->devices[i]);
    }
    if (bytes == 0 || !text_take_scratch(text, bytes)) {
        return;
    }
    top_row_t *rows = malloc(bytes);
    if (rows == NULL) {
        text->failed = TEXT_NO_MEMORY;
    } else {
        put_rows(text, snapshot, rows);
    }
    free(rows);
    text_give_scratch(text, bytes);
}
