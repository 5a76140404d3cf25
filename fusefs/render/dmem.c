/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `dmem`: the limits that the kernel's controller of that name sets on the memory of GPUs, for the
 * control groups of the programs and those above them (core/dmem.h). Read from the kernel with each
 * open, so that nothing is kept. A group with neither limit nor protection has no row.
 *
 * The groups of the programs are sorted as in a walk through the tree: what is in or below a group
 * follows in one piece.
 */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/dmem.h"
#include "render/parts.h"
#include "render/printers.h"

typedef struct groups {
    char **paths; /* of each process */
    uint32_t count;
} groups_t;

/* --- the groups ----------------------------------------------------------------------- */

/* NULL: the process is gone or in no group; or there is no memory, which the text records. */
static char *group_of(pid_t pid, text_t *text)
{
    char name[32], groups[PATH_MAX], path[PATH_MAX];
    FILE *file;
    size_t bytes;
    char *copy = NULL;

    (void)snprintf(name, sizeof(name), "/proc/%ld/cgroup", (long)pid);
    file = fopen(name, "re");
    bytes = file != NULL ? fread(groups, 1, sizeof(groups) - 1, file) : 0;
    if (file != NULL) {
        (void)fclose(file);
    }
    groups[bytes] = '\0';
    if (rmm__dmem_group(groups, path)) {
        copy = strdup(path);
        text->failed = copy == NULL ? TEXT_NO_MEMORY : text->failed;
    }
    return copy;
}

static void find_groups(const snapshot_t *snapshot, groups_t *groups, text_t *text)
{
    for (uint32_t i = 0; i < snapshot->process_count; i++) {
        char *path = snapshot->processes[i].is_live
                         ? group_of(snapshot->processes[i].pid, text)
                         : NULL;
        if (path != NULL) {
            groups->paths[groups->count++] = path;
        }
    }
}

/* '/' comes before all others. */
static int by_place(const void *left, const void *right)
{
    const char *a = *(const char *const *)left, *b = *(const char *const *)right;
    while (*a == *b && *a != '\0') {
        a++;
        b++;
    }
    int first = *a == '/' ? 1 : (unsigned char)*a + (*a != '\0');
    int second = *b == '/' ? 1 : (unsigned char)*b + (*b != '\0');
    return first - second;
}

/* --- rows ----------------------------------------------------------------------------- */

/* Whether the first `length` bytes of a path, a group, hold or contain another path's group. */
static bool contains(const char *group, size_t length, const char *path)
{
    return strncmp(group, path, length) == 0 &&
           (length == 1 || path[length] == '\0' || path[length] == '/');
}

static void put_group(
    const snapshot_t *snapshot, const char *path, uint32_t processes, text_t *text)
{
    rmm_dmem_t dmem;
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        const snapshot_device_t *device = &snapshot->devices[i];
        if (rmm__dmem_read(path, device->pci_bus_id, &dmem)) {
            text_printf(text, "%s ", device->name);
            render_column(text, dmem.current_bytes);
            render_column(text, dmem.low_bytes);
            render_column(text, dmem.max_bytes); /* unlimited is -1, as unknown is */
            render_column(text, processes);
            render_string(text, path);
        }
    }
}

/* The groups that the i-th process is in and the one before is not, from the outermost on. */
static void put_groups_of(
    const snapshot_t *snapshot, const groups_t *groups, uint32_t i, text_t *text)
{
    const char *path = groups->paths[i];
    char group[PATH_MAX];
    for (size_t length = 1;; length++) {
        bool ends = length == 1 || path[length] == '/' || path[length] == '\0';
        if (ends && (i == 0 || !contains(path, length, groups->paths[i - 1]))) {
            uint32_t end = i;
            while (end < groups->count && contains(path, length, groups->paths[end])) {
                end++;
            }
            memcpy(group, path, length);
            group[length] = '\0';
            put_group(snapshot, group, end - i, text);
        }
        if (path[length] == '\0' || path[1] == '\0') {
            break;
        }
    }
}

static void put_rows(const snapshot_t *snapshot, const groups_t *groups, text_t *text)
{
    for (uint32_t i = 0; i < groups->count; i++) {
        text_begin_row(text);
        put_groups_of(snapshot, groups, i, text);
        if (!text_end_row(text)) {
            text_leave_out(text, groups->count - i - 1);
            break;
        }
    }
    text_end_rows(text);
}

void print_dmem(const subject_t *subject, text_t *text)
{
    const snapshot_t *snapshot = subject->snapshot;
    const size_t bytes = snapshot->process_count * (sizeof(char *) + PATH_MAX / 16);
    groups_t groups = {0};
    text_puts(text, "#gpu current_bytes low_bytes max_bytes processes cgroup\n");
    if (bytes == 0 || !text_take_scratch(text, bytes)) {
        return;
    }
    groups.paths = calloc(snapshot->process_count, sizeof(char *));
    if (groups.paths == NULL) {
        text->failed = TEXT_NO_MEMORY;
    } else {
        find_groups(snapshot, &groups, text);
        qsort(groups.paths, groups.count, sizeof(char *), by_place);
        put_rows(snapshot, &groups, text);
    }
    for (uint32_t i = 0; i < groups.count; i++) {
        free(groups.paths[i]);
    }
    free(groups.paths);
    text_give_scratch(text, bytes);
}
