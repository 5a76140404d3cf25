/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc/<pid>/allocations: the live blocks of a process, joined by address from three sources:
 * the report of its pools (reports.h), the list of its tracking adaptors, and the blocks that a
 * diagnosis library follows. What none of them knows is -1.
 *
 * A block that backs another pool is a chunk, not an allocation of the program.
 */
#include "render/blocks.h"

#include <inttypes.h>
#include <stdlib.h>

#define STACKED_MOST 16     /* resources, one on another, and chunks at one address */
#define NO_DEVICE INT32_MIN /* unknown: -1 is the host */

/* A block as one source knows it. */
typedef struct allocation {
    uint64_t address, bytes;
    uint64_t stream;       /* FIGURE_UNKNOWN: not known */
    uint64_t allocated_ns; /* 0: unknown */
    uint64_t uses;
    uint32_t resource_id, first_user, last_user;
    int32_t device;
    uint8_t source;  /* of one address the first tells most */
    bool has_handle; /* stream is a handle, not an id */
} allocation_t;

enum { FROM_LEAKS, FROM_DIAG, FROM_CHUNK, FROM_BLOCKS };

typedef struct list {
    allocation_t *items;
    size_t count, capacity;
} list_t;

static void add(list_t *list, allocation_t item)
{
    if (list->count < list->capacity) {
        list->items[list->count++] = item;
    }
}

/* --- sources -------------------------------------------------------------------------- */

static const allocation_t unknown = {
    .stream = FIGURE_UNKNOWN,
    .uses = FIGURE_UNKNOWN,
    .first_user = RMM_DIAG_NO_USER,
    .last_user = RMM_DIAG_NO_USER,
    .device = NO_DEVICE};

static bool add_leak(const rmm_leak_info_t *leak, void *arg)
{
    allocation_t item = unknown;
    item.source = FROM_LEAKS;
    item.address = leak->address;
    item.bytes = leak->bytes;
    item.stream = leak->stream;
    item.has_handle = true;
    item.allocated_ns = leak->allocated_ns;
    item.resource_id = leak->resource_id;
    item.device = leak->device;
    add(arg, item);
    return true;
}

static bool add_seen(const rmm_diag_row_info_t *row, void *arg)
{
    allocation_t item = unknown;
    item.source = FROM_DIAG;
    item.address = row->address;
    item.bytes = row->bytes;
    item.stream = row->stream_id;
    item.allocated_ns = row->allocated_ns;
    item.resource_id = row->resource_id;
    item.device = row->device;
    item.uses = row->launches + row->copies + row->fills + row->prefetches;
    item.first_user = row->first_user;
    item.last_user = row->last_user;
    add(arg, item);
    return true;
}

static int by_id(const void *left, const void *right)
{
    const resource_place_t *a = left, *b = right;
    return (a->resource_id > b->resource_id) - (a->resource_id < b->resource_id);
}

/* NULL: nothing is known of it. */
static const resource_place_t *
find_place(const subject_t *subject, uint32_t resource_id)
{
    const resource_place_t wanted = {.resource_id = resource_id};
    return subject->places_count == 0
               ? NULL
               : bsearch(
                     &wanted, subject->places, subject->places_count, sizeof(wanted),
                     by_id);
}

static void add_block(
    const rmm_blocks_row_t *row, uint32_t resource_id, int32_t device, list_t *list)
{
    allocation_t item = unknown;
    item.source = row->state == RMM_BLOCK_CHUNK ? FROM_CHUNK : FROM_BLOCKS;
    item.address = row->address;
    item.bytes = row->bytes - row->padding;
    item.resource_id = resource_id;
    item.device = device;
    if (row->state == RMM_BLOCK_CHUNK || row->state == RMM_BLOCK_USED) {
        add(list, item);
    }
}

static void add_report(
    const subject_t *subject, const rmm_blocks_file_t *file, list_t *list, text_t *text)
{
    uint32_t rows_left = file->header.rows_count; /* they may claim the same rows */
    rmm_blocks_resource_t resource;
    for (uint32_t i = 0; i < file->header.resources_count; i++) {
        block_rows_t rows;
        if (!rmm__block_report_resource_at(file, i, &resource) ||
            resource.row_count > rows_left ||
            !block_rows_read(file, &resource, &rows, text)) {
            continue;
        }
        rows_left -= resource.row_count;
        const resource_place_t *place = find_place(subject, resource.resource_id);
        int32_t device = place != NULL ? place->device : NO_DEVICE;
        for (uint32_t j = 0; j < rows.count; j++) {
            add_block(&rows.rows[j], resource.resource_id, device, list);
        }
        block_rows_free(&rows, text);
    }
}

/* --- joining -------------------------------------------------------------------------- */

static int by_address(const void *left, const void *right)
{
    const allocation_t *a = left, *b = right;
    if (a->address != b->address) {
        return a->address < b->address ? -1 : 1;
    }
    if (a->source != b->source) {
        return a->source - b->source;
    }
    return (a->resource_id > b->resource_id) - (a->resource_id < b->resource_id);
}

static void join(allocation_t *one, const allocation_t *other)
{
    if (other->source == FROM_DIAG) {
        one->stream = other->stream;
        one->has_handle = false;
        one->uses = other->uses;
        one->first_user = other->first_user;
        one->last_user = other->last_user;
    }
    if (one->device == NO_DEVICE) {
        one->device = other->device;
    }
}

/* Whether memory of `lower` came to `upper`, through adaptors or not. */
static bool stands_on(const subject_t *subject, uint32_t upper, uint32_t lower)
{
    for (int i = 0; i < STACKED_MOST && upper != 0; i++) {
        const resource_place_t *place = find_place(subject, upper);
        upper = place != NULL ? place->upstream_id : 0;
        if (upper == lower && lower != 0) {
            return true;
        }
    }
    return false;
}

/* The sources that know one address. */
typedef struct group {
    const allocation_t *items;
    size_t count;
    size_t chunks, chunk_count; /* the first of them; they stand together */
} group_t;

static group_t group_at(const list_t *list, size_t at)
{
    group_t group = {.items = &list->items[at]};
    while (at + group.count < list->count &&
           group.items[group.count].address == group.items[0].address) {
        group.chunks += group.items[group.count].source < FROM_CHUNK;
        group.chunk_count += group.items[group.count].source == FROM_CHUNK;
        group.count++;
    }
    return group;
}

static bool is_memory_of_a_pool(
    const subject_t *subject, const group_t *group, const allocation_t *block)
{
    for (size_t i = 0; i < group->chunk_count && i < STACKED_MOST; i++) {
        const allocation_t *chunk = &group->items[group->chunks + i];
        if (stands_on(subject, chunk->resource_id, block->resource_id)) {
            return true;
        }
    }
    return false;
}

/* The block at this address, with all that is known of it; false: there is none. */
static bool
join_group(const subject_t *subject, const group_t *group, allocation_t *out)
{
    bool found = false;
    for (size_t i = 0; i < group->count; i++) {
        const allocation_t *item = &group->items[i];
        if (item->source == FROM_CHUNK || (item->source == FROM_BLOCKS &&
                                           is_memory_of_a_pool(subject, group, item))) {
            continue;
        }
        if (found) {
            join(out, item);
        } else {
            *out = *item;
        }
        found = true;
    }
    return found;
}

/* --- printing ------------------------------------------------------------------------- */

static void put_stream(const allocation_t *item, text_t *text)
{
    text_puts(text, "\t");
    if (item->has_handle) {
        text_printf(text, "0x%" PRIx64, item->stream);
    } else {
        render_number(text, item->stream);
    }
}

static void put_allocation(
    const allocation_t *item, const rmm_diag_file_t *diag, uint64_t now_ns,
    text_t *text)
{
    text_printf(text, "0x%" PRIx64 "\t%" PRIu64, item->address, item->bytes);
    put_stream(item, text);
    text_printf(text, "\t%" PRIu32 "\t", item->resource_id);
    if (item->device == NO_DEVICE) {
        text_puts(text, "-1\t");
    } else {
        text_printf(text, "%" PRId32 "\t", item->device);
    }
    render_number(
        text, item->allocated_ns == 0       ? FIGURE_UNKNOWN
              : now_ns > item->allocated_ns ? now_ns - item->allocated_ns
                                            : 0);
    text_puts(text, "\t");
    render_block_user(diag, item->first_user, text);
    text_puts(text, "\t");
    render_block_user(diag, item->last_user, text);
    text_puts(text, "\t");
    render_value(text, item->uses);
}

static void put_list(const subject_t *subject, list_t *list, text_t *text)
{
    const rmm_diag_file_t *diag = subject->has_diag ? &subject->diag : NULL;
    uint64_t now_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    size_t at = 0;
    bool fits = true;
    if (list->count > 0) {
        qsort(list->items, list->count, sizeof(list->items[0]), by_address);
    }
    while (at < list->count && fits) {
        const group_t group = group_at(list, at);
        allocation_t item = {0};
        at += group.count;
        if (join_group(subject, &group, &item)) {
            text_begin_row(text);
            put_allocation(&item, diag, now_ns, text);
            fits = text_end_row(text);
        }
    }
    text_leave_out(text, list->count - at);
    text_end_rows(text);
}

/* --- all ------------------------------------------------------------------------------ */

static size_t count_rows(const subject_t *subject)
{
    size_t count = subject->has_diag ? rmm__diag_row_count(&subject->diag) : 0;
    for (uint32_t i = 0; i < subject->leaks_count; i++) {
        count += rmm__leaks_row_count(&subject->leaks[i]);
    }
    for (uint32_t i = 0; i < subject->blocks_count; i++) {
        count += subject->blocks[i].header.rows_count;
    }
    return count;
}

static void fill_list(const subject_t *subject, list_t *list, text_t *text)
{
    for (uint32_t i = 0; i < subject->leaks_count; i++) {
        (void)rmm__leaks_each(&subject->leaks[i], add_leak, list);
    }
    if (subject->has_diag) {
        (void)rmm__diag_each_row(&subject->diag, add_seen, list);
    }
    for (uint32_t i = 0; i < subject->blocks_count; i++) {
        add_report(subject, &subject->blocks[i], list, text);
    }
}

static void put_joined(const subject_t *subject, text_t *text)
{
    list_t list = {.capacity = count_rows(subject)};
    size_t bytes = list.capacity * sizeof(list.items[0]);
    if (bytes == 0 || !text_take_scratch(text, bytes)) {
        return;
    }
    list.items = malloc(bytes);
    if (list.items == NULL) {
        text->failed = TEXT_NO_MEMORY;
    } else {
        fill_list(subject, &list, text);
        put_list(subject, &list, text);
        free(list.items);
    }
    text_give_scratch(text, bytes);
}

void print_allocations(const subject_t *subject, text_t *text)
{
    text_puts(
        text, "#addr\tsize\tstream\tresource\tdevice\tage_ns\tfirst_use\tlast_use\t"
              "uses\n");
    if (subject->blocks_count == 0) {
        text_puts(
            text, "# no report of the pools: only blocks that adaptors or a diagnosis "
                  "list\n");
    } else {
        render_taken(subject->blocks[0].header.taken_ns, text);
    }
    put_joined(subject, text);
}
