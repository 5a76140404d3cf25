/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/<pid>/leaks, from the side files that tracking adaptors keep. Frames are shown as
 * FILE+OFFSET, which addr2line takes, by what /proc/<pid>/maps says of the process; of one
 * that has ended, or is not ours to look at, as addresses.
 *
 * The side file is opened for each look: it appears with the first tracking adaptor, and
 * a look at it is rare.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "dirs.h"
#include "publish/segment_leaks_reader.h"
#include "render_parts.h"

/* --- what is mapped where ------------------------------------------------------------- */

typedef struct mapping {
    uint64_t begin, end;
    uint64_t base; /* of the file: where its first mapping begins */
    char name[64]; /* without its folder */
} mapping_t;

typedef struct maps {
    mapping_t *items; /* rising */
    size_t count, capacity;
} maps_t;

static bool maps_grow(maps_t *maps)
{
    size_t capacity = maps->capacity != 0 ? 2 * maps->capacity : 64;
    mapping_t *items = realloc(maps->items, capacity * sizeof(*items));
    if (items == NULL) {
        return false;
    }
    maps->items = items;
    maps->capacity = capacity;
    return true;
}

/* Several mappings of one file follow each other. */
static uint64_t base_of(const maps_t *maps, const mapping_t *mapping)
{
    const mapping_t *last = maps->count > 0 ? &maps->items[maps->count - 1] : NULL;
    return last != NULL && strcmp(last->name, mapping->name) == 0 ? last->base
                                                                  : mapping->begin;
}

/* One line; what is no file's is left out. */
static void maps_add(maps_t *maps, const char *line)
{
    mapping_t mapping;
    char path[512];
    if (sscanf(
            line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %511[^\n]", &mapping.begin,
            &mapping.end, path) != 3 ||
        path[0] != '/' || (maps->count == maps->capacity && !maps_grow(maps))) {
        return;
    }
    const char *slash = strrchr(path, '/');
    (void)snprintf(mapping.name, sizeof(mapping.name), "%.63s", slash + 1);
    mapping.base = base_of(maps, &mapping);
    maps->items[maps->count++] = mapping;
}

static void maps_read(maps_t *maps, pid_t pid)
{
    char path[32], line[1024];
    *maps = (maps_t){NULL, 0, 0};
    (void)snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
    FILE *file = pid > 0 ? fopen(path, "re") : NULL;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
        maps_add(maps, line);
    }
    if (file != NULL) {
        (void)fclose(file);
    }
}

static const mapping_t *maps_find(const maps_t *maps, uint64_t address)
{
    size_t low = 0, high = maps->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (address >= maps->items[middle].end) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return low < maps->count && address >= maps->items[low].begin ? &maps->items[low]
                                                                  : NULL;
}

/* --- the table ------------------------------------------------------------------------ */

typedef struct list {
    text_t *text;
    maps_t maps;
    uint64_t now_ns;
} list_t;

static void put_frame(const list_t *list, uint64_t frame)
{
    const mapping_t *mapping = maps_find(&list->maps, frame);
    if (mapping == NULL) {
        text_printf(list->text, "0x%" PRIx64, frame);
        return;
    }
    text_put_foreign(list->text, mapping->name);
    text_printf(list->text, "+0x%" PRIx64, frame - mapping->base);
}

static bool put_leak(const rmm_leak_info_t *leak, void *arg)
{
    const list_t *list = arg;
    uint64_t age_ns =
        list->now_ns > leak->allocated_ns ? list->now_ns - leak->allocated_ns : 0;
    text_printf(
        list->text, "0x%" PRIx64 " %" PRIu64 " %" PRIu32 " %" PRIu64 " ", leak->address,
        leak->bytes, leak->resource_id, age_ns);
    for (uint32_t i = 0; i < leak->frame_count; i++) {
        text_puts(list->text, i > 0 ? ";" : "");
        put_frame(list, leak->frames[i]);
    }
    text_puts(list->text, leak->frame_count > 0 ? "\n" : "-\n");
    return true;
}

static void put_file(const rmm_leaks_file_t *file, list_t *list)
{
    uint32_t moving = rmm_leaks_each(file, put_leak, list);
    uint64_t unlisted =
        atomic_load_explicit(&file->header.unlisted, memory_order_relaxed);
    if (moving > 0) {
        text_printf(list->text, "# %u more were being changed\n", moving);
    }
    if (unlisted > 0) {
        text_printf(list->text, "# %" PRIu64 " more have no room here\n", unlisted);
    }
}

void render_leaks(const process_t *process, text_t *text)
{
    struct timespec now;
    list_t list = {.text = text};
    text_puts(text, "# addr size resource age_ns stack\n");
    clock_gettime(CLOCK_MONOTONIC, &now);
    list.now_ns = (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
    maps_read(&list.maps, process_is_live(process) ? process->pid : 0);
    for (uint32_t i = 0; i < process->member_count; i++) {
        const member_t *member = process->members[i];
        rmm_leaks_file_t file;
        if (member_counts(member) && member->dir != NULL &&
            rmm_leaks_open(
                &file, member->dir->fd, member->segment.name, member->segment.uid) ==
                0) {
            put_file(&file, &list);
            rmm_leaks_close(&file);
        }
    }
    free(list.maps.items);
}
