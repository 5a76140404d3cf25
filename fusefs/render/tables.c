/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which programs hold the memory of the node: `processes`, `users` and `cgroups`. A row has the
 * sums over all GPUs, and host memory for itself; the largest comes first. Live processes only.
 *
 * A figure that is unknown of one process is left out of the sums over several.
 */
#include <stdlib.h>
#include <string.h>

#include "render/parts.h"
#include "render/printers.h"

/* A process, or several: what they hold together. */
typedef struct row {
    const snapshot_process_t *process; /* the first one */
    uint32_t process_count;
    uint64_t current_bytes, reserved_bytes, host_bytes, oom_count;
    const cgroup_t *group;
} row_t;

typedef struct table {
    const snapshot_t *snapshot;
    row_t *rows;
    uint32_t count;
} table_t;

typedef int (*compare_fn)(const void *left, const void *right);

/* --- rows ----------------------------------------------------------------------------- */

static void add_location(
    const snapshot_t *snapshot, const snapshot_location_t *location, row_t *row)
{
    const figures_t *figures = &location->figures;
    row->oom_count = figure_add_known(row->oom_count, figures->oom_count);
    if (snapshot->devices[location->device].device == DEVICE_HOST) {
        row->host_bytes = figure_add_known(row->host_bytes, figures->current_bytes);
        return;
    }
    row->current_bytes = figure_add_known(row->current_bytes, figures->current_bytes);
    row->reserved_bytes =
        figure_add_known(row->reserved_bytes, figures->reserved_bytes);
}

/* All is "" if it is unknown. */
static const cgroup_t *group_of(const snapshot_process_t *process)
{
    static const cgroup_t unknown;
    return process->placement != NULL ? &process->placement->group : &unknown;
}

static void make_rows(table_t *table)
{
    for (uint32_t i = 0; i < table->snapshot->process_count; i++) {
        const snapshot_process_t *process = &table->snapshot->processes[i];
        if (!process->is_live) {
            continue;
        }
        row_t *row = &table->rows[table->count++];
        *row =
            (row_t){.process = process, .process_count = 1, .group = group_of(process)};
        for (uint32_t j = 0; j < process->location_count; j++) {
            add_location(
                table->snapshot, &table->snapshot->locations[process->location + j],
                row);
        }
    }
}

static int compare_numbers(uint64_t left, uint64_t right)
{
    return left < right ? -1 : left > right;
}

static int by_user(const void *left, const void *right)
{
    const row_t *a = left, *b = right;
    return compare_numbers(a->process->uid, b->process->uid);
}

static int by_cgroup(const void *left, const void *right)
{
    const row_t *a = left, *b = right;
    return strcmp(a->group->path, b->group->path);
}

/* The largest first; of equal ones the oldest. */
static int by_bytes(const void *left, const void *right)
{
    const row_t *a = left, *b = right;
    int order = compare_numbers(b->current_bytes, a->current_bytes);
    order = order != 0 ? order : compare_numbers(b->host_bytes, a->host_bytes);
    return order != 0 ? order
                      : compare_numbers((uintptr_t)a->process, (uintptr_t)b->process);
}

/* Rows that compare equal become one. */
static void merge(table_t *table, compare_fn compare)
{
    uint32_t merged = 0;
    qsort(table->rows, table->count, sizeof(row_t), compare);
    for (uint32_t i = 0; i < table->count; i++) {
        const row_t *row = &table->rows[i];
        row_t *sum = merged > 0 ? &table->rows[merged - 1] : NULL;
        if (sum == NULL || compare(sum, row) != 0) {
            table->rows[merged++] = *row;
            continue;
        }
        sum->process_count++;
        sum->current_bytes = figure_add_known(sum->current_bytes, row->current_bytes);
        sum->reserved_bytes =
            figure_add_known(sum->reserved_bytes, row->reserved_bytes);
        sum->host_bytes = figure_add_known(sum->host_bytes, row->host_bytes);
        sum->oom_count = figure_add_known(sum->oom_count, row->oom_count);
    }
    table->count = merged;
}

/* --- columns -------------------------------------------------------------------------- */

static void put_word(text_t *text, const char *word)
{
    text_put_foreign(text, word[0] != '\0' ? word : "-1");
    text_append(text, " ", 1);
}

static void put_sums(text_t *text, const row_t *row)
{
    render_column(text, row->current_bytes);
    render_column(text, row->reserved_bytes);
    render_column(text, row->host_bytes);
    render_column(text, row->oom_count);
}

/* "0,3"; "-" if it uses none. */
static void put_gpus(text_t *text, const snapshot_t *snapshot, const row_t *row)
{
    const char *separator = "";
    for (uint32_t i = 0; i < row->process->location_count; i++) {
        const snapshot_location_t *location =
            &snapshot->locations[row->process->location + i];
        if (snapshot->devices[location->device].device != DEVICE_HOST) {
            text_puts(text, separator);
            render_number(text, location->device);
            separator = ",";
        }
    }
    text_puts(text, separator[0] != '\0' ? " " : "- ");
}

static void put_process(text_t *text, const table_t *table, const row_t *row)
{
    put_word(text, row->process->name);
    render_column(text, row->process->uid);
    put_gpus(text, table->snapshot, row);
    put_sums(text, row);
    put_word(text, row->group->container);
    put_word(text, row->group->path);
    render_string(text, row->process->comm);
}

static void put_user(text_t *text, const table_t *table, const row_t *row)
{
    (void)table;
    render_column(text, row->process->uid);
    put_sums(text, row);
    render_value(text, row->process_count);
}

static void put_cgroup(text_t *text, const table_t *table, const row_t *row)
{
    (void)table;
    put_sums(text, row);
    render_column(text, row->process_count);
    put_word(text, row->group->container);
    render_string(text, row->group->path);
}

/* --- tables --------------------------------------------------------------------------- */

typedef struct kind {
    const char *header;
    compare_fn together; /* NULL: each process is a row */
    void (*put)(text_t *text, const table_t *table, const row_t *row);
} kind_t;

static void put_rows(text_t *text, const table_t *table, const kind_t *kind)
{
    for (uint32_t i = 0; i < table->count; i++) {
        text_begin_row(text);
        kind->put(text, table, &table->rows[i]);
        if (!text_end_row(text)) {
            text_leave_out(text, table->count - i - 1);
            break;
        }
    }
    text_end_rows(text);
}

static void print_table(const snapshot_t *snapshot, const kind_t *kind, text_t *text)
{
    size_t bytes = snapshot->process_count * sizeof(row_t);
    table_t table = {.snapshot = snapshot};
    text_puts(text, kind->header);
    if (bytes == 0 || !text_take_scratch(text, bytes)) {
        return;
    }
    table.rows = malloc(bytes);
    if (table.rows == NULL) {
        text->failed = TEXT_NO_MEMORY;
    } else {
        make_rows(&table);
        if (kind->together != NULL) {
            merge(&table, kind->together);
        }
        qsort(table.rows, table.count, sizeof(row_t), by_bytes);
        put_rows(text, &table, kind);
    }
    free(table.rows);
    text_give_scratch(text, bytes);
}

void print_processes(const subject_t *subject, text_t *text)
{
    static const kind_t kind = {
        "#pid uid gpus current_bytes reserved_bytes host_bytes oom_count container "
        "cgroup comm\n",
        NULL, put_process};
    print_table(subject->snapshot, &kind, text);
}

void print_users(const subject_t *subject, text_t *text)
{
    static const kind_t kind = {
        "#uid current_bytes reserved_bytes host_bytes oom_count processes\n", by_user,
        put_user};
    print_table(subject->snapshot, &kind, text);
}

void print_cgroups(const subject_t *subject, text_t *text)
{
    static const kind_t kind = {
        "#current_bytes reserved_bytes host_bytes oom_count processes container "
        "cgroup\n",
        by_cgroup, put_cgroup};
    print_table(subject->snapshot, &kind, text);
}
