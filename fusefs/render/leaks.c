/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/<pid>/leaks, from the side files that tracking adaptors keep: a row for each block,
 * oldest first, frames as FILE+OFFSET, which addr2line takes; then where those files are.
 * All of it is in the side file, so a process that has ended shows the same.
 *
 * Columns are separated by tabs and frames by semicolons: names of files have spaces. The
 * side file is opened for each look: it appears with the first tracking adaptor, and a
 * look at it is rare. It is opened with the model's lock held and read without it: anybody
 * can make one that is as long as the reader allows.
 */
#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "render/parts.h"
#include "render/printers.h"

typedef struct module {
    rmm_leaks_module_t info;
    bool shown; /* by a frame */
} module_t;

/* The contents of one side file, read whole before it is printed; bounded by the reader. */
typedef struct list {
    rmm_leak_info_t *leaks;
    module_t *modules;
    uint16_t *
        order; /* of the modules that are there now, by address, which do not overlap */
    uint32_t leak_count, module_count, order_count;
    size_t bytes; /* of all three arrays */
} list_t;

static_assert(RMM_LEAKS_MODULES_MAX <= UINT16_MAX, "list_t.order");

/* --- reading ------------------------------------------------------------------------- */

static bool take_leak(const rmm_leak_info_t *leak, void *arg)
{
    list_t *list = arg;
    list->leaks[list->leak_count++] = *leak;
    return true;
}

/* The first place in the order whose module ends behind `address`. */
static uint32_t find_place(const list_t *list, uint64_t address)
{
    uint32_t low = 0, high = list->order_count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (list->modules[list->order[middle]].info.end <= address) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low;
}

/* A module that was at these addresses before is there no more. */
static bool take_module(const rmm_leaks_module_t *info, void *arg)
{
    list_t *list = arg;
    uint32_t begin = find_place(list, info->begin), end = begin;
    while (end < list->order_count &&
           list->modules[list->order[end]].info.begin < info->end) {
        end++;
    }
    memmove(
        &list->order[begin + 1], &list->order[end],
        (list->order_count - end) * sizeof(list->order[0]));
    list->order_count = list->order_count - (end - begin) + 1;
    list->order[begin] = (uint16_t)list->module_count;
    list->modules[list->module_count++] = (module_t){*info, false};
    return true;
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
    uint32_t at = frame == 0 ? list->order_count : find_place(list, frame - 1);
    module_t *module = at < list->order_count ? &list->modules[list->order[at]] : NULL;
    return module != NULL && frame > module->info.begin ? module : NULL;
}

void render_module_name(const char *path, text_t *text)
{
    const char *slash = strrchr(path, '/');
    char name[RMM_LEAKS_PATH_BYTES];
    (void)snprintf(name, sizeof(name), "%s", slash != NULL ? slash + 1 : path);
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
        render_module_name(module->info.path, text);
        text_printf(text, "+0x%" PRIx64, leak->frames[i] - module->info.base);
    }
    text_puts(text, leak->frame_count > 0 ? "\n" : "-\n");
}

static void put_leak(const list_t *list, uint64_t now_ns, uint32_t at, text_t *text)
{
    const rmm_leak_info_t *leak = &list->leaks[at];
    text_printf(
        text,
        "0x%" PRIx64 "\t%" PRIu64 "\t0x%" PRIx64 "\t%" PRIu32 "\t%" PRId32 "\t%" PRIu64
        "\t%" PRIu32 "\t",
        leak->address, leak->bytes, leak->stream, leak->resource_id, leak->device,
        now_ns > leak->allocated_ns ? now_ns - leak->allocated_ns : 0, leak->thread);
    put_stack(list, leak, text);
}

static void put_leaks(const list_t *list, text_t *text)
{
    uint64_t now_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    uint32_t at = 0;
    bool fits = true;
    while (at < list->leak_count && fits) {
        text_begin_row(text);
        put_leak(list, now_ns, at++, text);
        fits = text_end_row(text);
    }
    text_leave_out(text, list->leak_count - at);
}

static void put_modules(const list_t *list, text_t *text)
{
    for (uint32_t i = 0; i < list->order_count; i++) {
        const module_t *module = &list->modules[list->order[i]];
        if (module->shown) {
            text_begin_row(text);
            text_puts(text, "# file\t");
            render_module_name(module->info.path, text);
            text_puts(text, "\t");
            text_put_foreign(text, module->info.path);
            text_puts(text, "\n");
            (void)text_end_row(text);
        }
    }
}

/* False: no memory, or none for this user; the text has failed. */
static bool make_list(const rmm_leaks_file_t *file, list_t *list, text_t *text)
{
    size_t leaks = rmm__leaks_row_count(file) * sizeof(list->leaks[0]);
    size_t modules = RMM_LEAKS_MODULES_MAX * sizeof(list->modules[0]);
    size_t order = RMM_LEAKS_MODULES_MAX * sizeof(list->order[0]);
    *list = (list_t){.bytes = leaks + modules + order};
    if (!text_take_scratch(text, list->bytes)) {
        return false;
    }
    char *memory = malloc(list->bytes);
    if (memory == NULL) {
        text_give_scratch(text, list->bytes);
        text->failed = TEXT_NO_MEMORY;
        return false;
    }
    list->leaks = (rmm_leak_info_t *)(void *)memory;
    list->modules = (module_t *)(void *)(memory + leaks);
    list->order = (uint16_t *)(void *)(memory + leaks + modules);
    return true;
}

static void put_file(const rmm_leaks_file_t *file, text_t *text)
{
    list_t list;
    uint64_t unlisted =
        atomic_load_explicit(&file->header.unlisted, memory_order_relaxed);
    if (!make_list(file, &list, text)) {
        return;
    }
    uint32_t moving = rmm__leaks_each(file, take_leak, &list);
    rmm__leaks_each_module(file, take_module, &list);
    qsort(list.leaks, list.leak_count, sizeof(list.leaks[0]), by_age);
    put_leaks(&list, text);
    put_modules(&list, text);
    text_leave_out(text, rmm__leaks_rows_unread(file));
    text_end_rows(text);
    if (moving > 0) {
        text_printf(text, "# %u more were being changed\n", moving);
    }
    if (unlisted > 0) {
        text_printf(text, "# %" PRIu64 " more have no room here\n", unlisted);
    }
    free(list.leaks);
    text_give_scratch(text, list.bytes);
}

void print_leaks(const subject_t *subject, text_t *text)
{
    text_puts(text, "#addr\tsize\tstream\tresource\tdevice\tage_ns\tthread\tstack\n");
    for (uint32_t i = 0; i < subject->leaks_count; i++) {
        put_file(&subject->leaks[i], text);
    }
}
