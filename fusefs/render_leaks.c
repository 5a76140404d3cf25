/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/<pid>/leaks, from the side files that tracking adaptors keep: a row for each block,
 * oldest first, frames as FILE+OFFSET, which addr2line takes; then where those files are.
 * All of it is in the side file, so a process that has ended shows the same.
 *
 * Columns are separated by tabs and frames by semicolons: names of files have spaces. The
 * side file is opened for each look: it appears with the first tracking adaptor, and a
 * look at it is rare.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dirs.h"
#include "render_parts.h"
#include "segment/segment_leaks_reader.h"

typedef struct module {
    rmm_leaks_module_t told;
    bool shown; /* by a frame */
} module_t;

/* What one side file tells, read whole before it is printed. */
typedef struct list {
    rmm_leak_info_t *leaks;
    size_t leak_count, leak_capacity;
    module_t *modules;
    size_t module_count, module_capacity;
    bool failed; /* no memory */
} list_t;

/* --- reading ------------------------------------------------------------------------- */

/* Room for one more item of `bytes`; the array as it is now, or NULL without memory. */
static void *make_room(void *items, size_t count, size_t *capacity, size_t bytes)
{
    if (count < *capacity) {
        return items;
    }
    size_t larger = *capacity != 0 ? 2 * *capacity : 64;
    void *resized = realloc(items, larger * bytes);
    if (resized != NULL) {
        *capacity = larger;
    }
    return resized;
}

static bool take_leak(const rmm_leak_info_t *leak, void *arg)
{
    list_t *list = arg;
    rmm_leak_info_t *leaks =
        make_room(list->leaks, list->leak_count, &list->leak_capacity, sizeof(*leaks));
    if (leaks == NULL) {
        list->failed = true;
        return false;
    }
    list->leaks = leaks;
    leaks[list->leak_count++] = *leak;
    return true;
}

/* What was at these addresses before is there no more. */
static void drop_overlapped(list_t *list, const rmm_leaks_module_t *by)
{
    size_t kept = 0;
    for (size_t i = 0; i < list->module_count; i++) {
        const module_t *module = &list->modules[i];
        if (module->told.end <= by->begin || by->end <= module->told.begin) {
            list->modules[kept++] = *module;
        }
    }
    list->module_count = kept;
}

static bool take_module(const rmm_leaks_module_t *told, void *arg)
{
    list_t *list = arg;
    drop_overlapped(list, told);
    module_t *modules = make_room(
        list->modules, list->module_count, &list->module_capacity, sizeof(*modules));
    if (modules == NULL) {
        list->failed = true;
        return false;
    }
    list->modules = modules;
    modules[list->module_count++] = (module_t){*told, false};
    return true;
}

static int by_place(const void *left, const void *right)
{
    const module_t *a = left;
    const module_t *b = right;
    return (a->told.begin > b->told.begin) - (a->told.begin < b->told.begin);
}

static int by_age(const void *left, const void *right)
{
    const rmm_leak_info_t *a = left;
    const rmm_leak_info_t *b = right;
    if (a->allocated_ns != b->allocated_ns) {
        return a->allocated_ns < b->allocated_ns ? -1 : 1;
    }
    return (a->address > b->address) - (a->address < b->address);
}

/* --- printing ------------------------------------------------------------------------ */

/* The one around the call before this return address; NULL: none. */
static module_t *find_module(const list_t *list, uint64_t frame)
{
    size_t low = 0, high = list->module_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (frame > list->modules[middle].told.end) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < list->module_count && frame > list->modules[low].told.begin
               ? &list->modules[low]
               : NULL;
}

/* Without its folder; what would end a frame is replaced. */
static void put_name(text_t *text, const rmm_leaks_module_t *module)
{
    const char *slash = strrchr(module->path, '/');
    char name[RMM_LEAKS_PATH_BYTES];
    (void)snprintf(name, sizeof(name), "%s", slash != NULL ? slash + 1 : module->path);
    for (char *at = strchr(name, ';'); at != NULL; at = strchr(at, ';')) {
        *at = '?';
    }
    text_put_foreign(text, name);
}

static void put_stack(const list_t *list, const rmm_leak_info_t *leak, text_t *text)
{
    for (uint32_t i = 0; i < leak->frame_count; i++) {
        module_t *module = find_module(list, leak->frames[i]);
        text_puts(text, i > 0 ? ";" : "");
        if (module == NULL) {
            text_printf(text, "0x%" PRIx64, leak->frames[i]);
            continue;
        }
        module->shown = true;
        put_name(text, &module->told);
        text_printf(text, "+0x%" PRIx64, leak->frames[i] - module->told.base);
    }
    text_puts(text, leak->frame_count > 0 ? "\n" : "-\n");
}

static void put_leaks(const list_t *list, text_t *text)
{
    uint64_t now_ns = clock_read_ns(CLOCK_MONOTONIC);
    for (size_t i = 0; i < list->leak_count; i++) {
        const rmm_leak_info_t *leak = &list->leaks[i];
        text_printf(
            text,
            "0x%" PRIx64 "\t%" PRIu64 "\t0x%" PRIx64 "\t%" PRIu32 "\t%" PRId32
            "\t%" PRIu64 "\t%" PRIu32 "\t",
            leak->address, leak->bytes, leak->stream, leak->resource_id, leak->device,
            now_ns > leak->allocated_ns ? now_ns - leak->allocated_ns : 0,
            leak->thread);
        put_stack(list, leak, text);
    }
}

static void put_modules(const list_t *list, text_t *text)
{
    for (size_t i = 0; i < list->module_count; i++) {
        if (list->modules[i].shown) {
            text_puts(text, "# file\t");
            put_name(text, &list->modules[i].told);
            text_puts(text, "\t");
            text_put_foreign(text, list->modules[i].told.path);
            text_puts(text, "\n");
        }
    }
}

static void read_list(const rmm_leaks_file_t *file, list_t *list, uint32_t *moving_out)
{
    *moving_out = rmm_leaks_each(file, take_leak, list);
    rmm_leaks_each_module(file, take_module, list);
    if (list->leak_count > 0) {
        qsort(list->leaks, list->leak_count, sizeof(list->leaks[0]), by_age);
    }
    if (list->module_count > 0) {
        qsort(list->modules, list->module_count, sizeof(list->modules[0]), by_place);
    }
}

static void put_file(const rmm_leaks_file_t *file, text_t *text)
{
    list_t list = {0};
    uint32_t moving;
    uint64_t unlisted =
        atomic_load_explicit(&file->header.unlisted, memory_order_relaxed);
    read_list(file, &list, &moving);
    put_leaks(&list, text);
    put_modules(&list, text);
    if (moving > 0) {
        text_printf(text, "# %u more were being changed\n", moving);
    }
    if (unlisted > 0) {
        text_printf(text, "# %" PRIu64 " more have no room here\n", unlisted);
    }
    text->failed |= list.failed;
    free(list.leaks);
    free(list.modules);
}

void render_leaks(const process_t *process, text_t *text)
{
    text_puts(text, "# addr\tsize\tstream\tresource\tdevice\tage_ns\tthread\tstack\n");
    for (uint32_t i = 0; i < process->member_count; i++) {
        const member_t *member = process->members[i];
        rmm_leaks_file_t file;
        if (member_counts(member) && member->dir != NULL &&
            rmm_leaks_open(
                &file, member->dir->fd, member->segment.name, member->segment.uid) ==
                0) {
            put_file(&file, text);
            rmm_leaks_close(&file);
        }
    }
}
