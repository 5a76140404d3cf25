/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Everything that the tree counts, in one file: `metrics` in the text format of Prometheus, and
 * `json`. Both show one line, or key, for each statistic of stat_fields.h, at the levels that
 * have a file of its name.
 *
 * The levels are found by walking the tree, so they are those that a reader could list, in that
 * order: a process, its devices, the resources of each. Each is read once, so the figures of
 * one level agree as they do in its `stat`; those of two levels may be of two moments.
 *
 * Cost: as reading every `stat` once. Memory: a figures_t and the labels of each level.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "marks.h"
#include "render_parts.h"
#include "slots.h"

#define JSON_SCHEMA_VERSION "1"

typedef struct level {
    node_t node;
    const process_t *process; /* NULL: a device */
    char device[16];
    char resource[TREE_NAME_BYTES]; /* "": no resource */
    char type[24];
    figures_t figures;
} level_t;

typedef struct levels {
    model_t *model;
    level_t *items;
    size_t count, room;
    bool failed;              /* no memory for more */
    const process_t *process; /* that is being walked */
    char device[16];
} levels_t;

/* What is shown of a level. */
static const struct shown {
    uint8_t file;
    uint16_t kind;
    const char *name, *help;
    size_t offset; /* in figures_t */
} shown[] = {
#define X(field, kind, unit, help)                                                     \
    {FILE_##field, RMM_KIND_##kind, #field, help, offsetof(figures_t, field)},
    RMM_EACH_STAT(X)
#undef X
        {FILE_CURRENT_COUNT, RMM_KIND_GAUGE, "current_count", "Live allocations",
         offsetof(figures_t, current_count)},
    {FILE_CACHED_BYTES, RMM_KIND_GAUGE, "cached_bytes",
     "Bytes reserved, neither handed out nor lost to rounding",
     offsetof(figures_t, cached_bytes)},
    {FILE_PEAK_UPPER_BYTES, RMM_KIND_MARK, "peak_upper_bytes",
     "Upper bound of peak_bytes over several processes",
     offsetof(figures_t, peak_upper_bytes)},
};

enum { SHOWN_COUNT = sizeof(shown) / sizeof(shown[0]) };

static uint64_t shown_value(const level_t *level, const struct shown *stat)
{
    const char *figure = (const char *)&level->figures + stat->offset;
    return *(const uint64_t *)(const void *)figure;
}

/* --- the levels ----------------------------------------------------------------------- */

/* False: it has gone meanwhile. */
static bool read_level(model_t *model, level_t *level)
{
    slot_view_t view;
    member_t *member;
    switch (level->node.dir) {
    case DIR_DEVICE:
        marks_show_device(model, level->node.id, FIGURES_ALL, &level->figures);
        return true;
    case DIR_PROCESS_DEVICE:
        return figures_of_process(
            level->process, level->node.id, FIGURES_ALL, &level->figures);
    default:
        member = model_member(model, level->node.serial);
        if (member == NULL || !slots_find(member, level->node.id, &view)) {
            return false;
        }
        snprintf(
            level->type, sizeof(level->type), "%s",
            rmm_record_slot(&view.record)->type);
        figures_of_resource(&view, FIGURES_ALL, &level->figures);
        return true;
    }
}

static level_t *next_level(levels_t *levels)
{
    if (levels->count == levels->room) {
        size_t room = levels->room == 0 ? 64 : 2 * levels->room;
        level_t *items = realloc(levels->items, room * sizeof(*items));
        if (items == NULL) {
            levels->failed = true;
            return NULL;
        }
        levels->items = items;
        levels->room = room;
    }
    level_t *level = &levels->items[levels->count];
    memset(level, 0, sizeof(*level));
    return level;
}

/* False: it is not in the list, so nothing below it may be. */
static bool add_level(levels_t *levels, const char *name, node_t node)
{
    level_t *level = next_level(levels);
    if (level == NULL) {
        return false;
    }
    level->node = node;
    level->process = levels->process;
    if (node.dir != DIR_RESOURCE) {
        snprintf(levels->device, sizeof(levels->device), "%s", name);
    } else {
        snprintf(level->resource, sizeof(level->resource), "%s", name);
    }
    memcpy(level->device, levels->device, sizeof(level->device));
    if (!read_level(levels->model, level)) {
        return false;
    }
    levels->count++;
    return true;
}

/* One entry of a directory, and what is below it. */
static void walk(const char *name, node_t node, void *arg)
{
    levels_t *levels = arg;
    if (node.file != FILE_SELF) {
        return;
    }
    switch ((dir_kind_t)node.dir) {
    case DIR_DEVICE:
        levels->process = NULL;
        (void)add_level(levels, name, node);
        return;
    case DIR_PROCESS:
        levels->process = model_process(levels->model, node.serial);
        break;
    case DIR_PROCESS_DEVICE:
    case DIR_RESOURCE:
        if (!add_level(levels, name, node)) {
            return;
        }
        break;
    case DIR_PROCESSES:
    case DIR_RESOURCES:
        break;
    default:
        return;
    }
    (void)tree_list(levels->model, node, walk, levels);
}

/* False: no memory. The levels are to be freed in any case. */
static bool find_levels(model_t *model, levels_t *levels)
{
    *levels = (levels_t){.model = model};
    (void)tree_list(model, tree_root, walk, levels);
    return !levels->failed;
}

/* --- words ---------------------------------------------------------------------------- */

/* In quotes, as JSON and Prometheus both read it. */
static void put_quoted(text_t *text, const char *string)
{
    text_append(text, "\"", 1);
    for (; *string != '\0'; string++) {
        if (*string == '"' || *string == '\\') {
            text_append(text, "\\", 1);
        }
        text_append(text, (unsigned char)*string < 0x20 ? "?" : string, 1);
    }
    text_append(text, "\"", 1);
}

/* --- metrics -------------------------------------------------------------------------- */

static const struct family {
    dir_kind_t dir;
    const char *prefix, *what;
} families[] = {
    {DIR_DEVICE, "rmm_device_", "over all processes"},
    {DIR_PROCESS_DEVICE, "rmm_process_", "of a process on a device"},
    {DIR_RESOURCE, "rmm_resource_", "of a resource"},
};

static void
put_label(text_t *text, const char *separator, const char *key, const char *value)
{
    text_puts(text, separator);
    text_puts(text, key);
    text_append(text, "=", 1);
    put_quoted(text, value);
}

static void put_labels(text_t *text, const level_t *level)
{
    put_label(text, "{", "device", level->device);
    if (level->process != NULL) {
        put_label(text, ",", "pid", level->process->name);
    }
    if (level->resource[0] != '\0') {
        put_label(text, ",", "resource", level->resource);
        put_label(text, ",", "type", level->type);
    }
    text_puts(text, "} ");
}

/* Of an exited process nothing is shown: its series end. What is unknown has no sample. */
static bool
has_sample(const level_t *level, const struct family *family, const struct shown *stat)
{
    return level->node.dir == family->dir &&
           (level->process == NULL || process_is_live(level->process)) &&
           shown_value(level, stat) != FIGURE_UNKNOWN;
}

static void put_family(
    text_t *text, const levels_t *levels, const struct family *family,
    const struct shown *stat)
{
    text_printf(
        text, "# HELP %s%s %s, %s\n# TYPE %s%s %s\n", family->prefix, stat->name,
        stat->help, family->what, family->prefix, stat->name,
        stat->kind == RMM_KIND_COUNTER ? "counter" : "gauge");
    for (size_t i = 0; i < levels->count; i++) {
        const level_t *level = &levels->items[i];
        if (has_sample(level, family, stat)) {
            text_puts(text, family->prefix);
            text_puts(text, stat->name);
            put_labels(text, level);
            render_value(text, shown_value(level, stat));
        }
    }
}

/* A process that cannot be read is 0, and has no other series: old is never shown as 0. */
static void put_up(text_t *text, const model_t *model)
{
    text_puts(
        text, "# HELP rmm_process_up 1: its figures are read; 0: they cannot be read\n"
              "# TYPE rmm_process_up gauge\n");
    for (uint32_t i = 0; i < model->process_count; i++) {
        const process_t *process = model->processes[i];
        bool unreadable = process_speaker(process) == NULL;
        if (unreadable || process_is_live(process)) {
            put_label(text, "rmm_process_up{", "pid", process->name);
            text_puts(text, unreadable ? "} 0\n" : "} 1\n");
        }
    }
}

int render_metrics(model_t *model, text_t *text)
{
    levels_t levels;
    bool found = find_levels(model, &levels);
    for (size_t i = 0; found && i < SHOWN_COUNT; i++) {
        for (size_t j = 0; j < sizeof(families) / sizeof(families[0]); j++) {
            if (tree_dir_has(families[j].dir, shown[i].file)) {
                put_family(text, &levels, &families[j], &shown[i]);
            }
        }
    }
    put_up(text, model);
    free(levels.items);
    return found ? 0 : -ENOMEM;
}

/* --- json ----------------------------------------------------------------------------- */

static void put_member(text_t *text, const char *key, const char *value)
{
    text_puts(text, ", ");
    put_quoted(text, key);
    text_puts(text, ": ");
    put_quoted(text, value);
}

/* The members of an object, which is left open. */
static void put_level(text_t *text, const level_t *level)
{
    text_puts(text, "{\"device\": ");
    put_quoted(text, level->device);
    if (level->resource[0] != '\0') {
        put_member(text, "resource", level->resource);
        put_member(text, "type", level->type);
    }
    for (size_t i = 0; i < SHOWN_COUNT; i++) {
        if (!tree_dir_has((dir_kind_t)level->node.dir, shown[i].file)) {
            continue;
        }
        uint64_t value = shown_value(level, &shown[i]);
        text_printf(text, ", \"%s\": ", shown[i].name);
        if (value == FIGURE_UNKNOWN) {
            text_puts(text, "null");
        } else {
            render_number(text, value);
        }
    }
}

/* Ends the objects and lists that are open between a level and the one that follows. */
static void put_between(text_t *text, const level_t *level, const level_t *next)
{
    bool in_list = level->node.dir == DIR_RESOURCE;
    if (next != NULL && next->node.dir == DIR_RESOURCE) {
        text_puts(text, in_list ? "},\n" : ", \"resources\": [\n");
        return;
    }
    text_puts(text, in_list ? "}]}" : ", \"resources\": []}");
    if (next != NULL && next->process == level->process) {
        text_puts(text, ",\n");
    } else {
        text_puts(text, next != NULL ? "]},\n" : "]}");
    }
}

static void put_devices(text_t *text, const levels_t *levels)
{
    const char *separator = "";
    for (size_t i = 0; i < levels->count; i++) {
        if (levels->items[i].node.dir == DIR_DEVICE) {
            text_puts(text, separator);
            put_level(text, &levels->items[i]);
            text_append(text, "}", 1);
            separator = ",\n";
        }
    }
}

/* The next level of a process from `at` on; NULL: there is none. */
static const level_t *next_of_process(const levels_t *levels, size_t at)
{
    while (at < levels->count && levels->items[at].process == NULL) {
        at++;
    }
    return at < levels->count ? &levels->items[at] : NULL;
}

static void put_processes(text_t *text, const levels_t *levels)
{
    const process_t *process = NULL;
    const level_t *level = next_of_process(levels, 0);
    while (level != NULL) {
        const level_t *next =
            next_of_process(levels, (size_t)(level - levels->items) + 1);
        if (level->process != process) {
            process = level->process;
            text_puts(text, "{\"pid\": ");
            put_quoted(text, process->name);
            put_member(text, "state", process_state(process));
            text_puts(text, ", \"devices\": [\n");
        }
        put_level(text, level);
        put_between(text, level, next);
        level = next;
    }
}

int render_json(model_t *model, text_t *text)
{
    levels_t levels;
    bool found = find_levels(model, &levels);
    if (found) {
        text_puts(
            text, "{\"schema_version\": " JSON_SCHEMA_VERSION ", \"devices\": [\n");
        put_devices(text, &levels);
        text_puts(text, "],\n\"processes\": [\n");
        put_processes(text, &levels);
        text_puts(text, "]}\n");
    }
    free(levels.items);
    return found ? 0 : -ENOMEM;
}
