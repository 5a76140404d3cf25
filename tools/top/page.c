/* SPDX-License-Identifier: Apache-2.0 */
/* Puts a snapshot on a page; see page.h. */
#include "top/page.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/clock.h"
#include "page/node_page.h"
#include "page/order.h"
#include "top/blocks.h"

_Static_assert(RMM_PAGE_UNKNOWN == FIGURE_UNKNOWN, "figures pass as they are");

/* A program's uses and resources are together in their lists, in the order of the programs. */
typedef struct span {
    uint32_t use, use_count, resource, resource_count;
} span_t;

typedef struct writing {
    const sampler_t *sampler;
    const node_t *node;
    span_t *spans;           /* of each program */
    rmm_page_order_t *order; /* of the programs */
    rmm_page_t page;
} writing_t;

/* --- order -------------------------------------------------------------------------------- */

static void fill_spans(writing_t *writing)
{
    const node_t *node = writing->node;
    for (uint32_t i = node->use_count; i-- > 0;) {
        span_t *span = &writing->spans[node->uses[i].process];
        span->use = i;
        span->use_count++;
    }
    for (uint32_t i = node->resource_count; i-- > 0;) {
        span_t *span = &writing->spans[node->resources[i].process];
        span->resource = i;
        span->resource_count++;
    }
}

static uint64_t bytes_of(const writing_t *writing, uint32_t process)
{
    const span_t *span = &writing->spans[process];
    uint64_t sum = FIGURE_UNKNOWN;
    for (uint32_t i = 0; i < span->use_count; i++) {
        const node_use_t *use = &writing->node->uses[span->use + i];
        sum = figure_add_known(sum, use->figures.current_bytes);
    }
    return sum;
}

static void finish(writing_t *writing)
{
    free(writing->spans);
    free(writing->order);
}

/* False: no memory. */
static bool begin(writing_t *writing, const sampler_t *sampler, const node_t *node)
{
    uint32_t count = node->process_count;
    *writing = (writing_t){.sampler = sampler, .node = node};
    writing->spans = calloc(count + 1, sizeof(writing->spans[0]));
    writing->order = calloc(count + 1, sizeof(writing->order[0]));
    if (writing->spans == NULL || writing->order == NULL) {
        finish(writing);
        return false;
    }
    fill_spans(writing);
    for (uint32_t i = 0; i < count; i++) {
        writing->order[i] = (rmm_page_order_t){i, bytes_of(writing, i)};
    }
    rmm__page_sort(writing->order, count);
    return true;
}

/* --- devices ------------------------------------------------------------------------------ */

static void put_device(writing_t *writing, const node_device_t *device)
{
    const figures_t *figures = &device->figures;
    const rmm_page_device_t shown = {
        .name = device->name,
        .model = device->model,
        .current_bytes = figures->current_bytes,
        .reserved_bytes = figures->reserved_bytes,
        .cached_bytes = figures->cached_bytes,
        .others_bytes = node_others_bytes(device),
        .free_bytes = node_free_bytes(device),
        .capacity_bytes = device->capacity_bytes};
    rmm__page_device(&writing->page, &shown);
}

static void put_devices(writing_t *writing)
{
    const node_t *node = writing->node;
    rmm__page_begin_devices(&writing->page, 0);
    for (uint32_t i = 1; i <= node->device_count; i++) { /* host memory comes last */
        put_device(writing, &node->devices[i < node->device_count ? i : NODE_HOST]);
    }
    rmm__page_end_devices(&writing->page);
}

/* --- programs ----------------------------------------------------------------------------- */

static rmm_page_figures_t figures_of(const figures_t *figures)
{
    return (rmm_page_figures_t){
        .current_bytes = figures->current_bytes,
        .reserved_bytes = figures->reserved_bytes,
        .cached_bytes = figures->cached_bytes,
        .padding_bytes = figures->padding_bytes,
        .peak_bytes = figures->peak_bytes,
        .current_count = figures->current_count,
        .oom_count = figures->oom_count};
}

#define RESOURCE_NAME_BYTES 80
static void
name_resource(const node_resource_t *resource, char name[RESOURCE_NAME_BYTES])
{
    snprintf(name, RESOURCE_NAME_BYTES, "%u.%s", resource->instance_id, resource->name);
}

static void put_resource(writing_t *writing, const node_resource_t *resource)
{
    char name[RESOURCE_NAME_BYTES];
    name_resource(resource, name);
    const rmm_page_resource_t shown = {
        .name = name,
        .type = resource->type,
        .device = writing->node->devices[resource->device].name,
        .upstream_id = resource->upstream_id,
        .figures = figures_of(&resource->figures),
        .free_bytes = resource->figures.free_bytes,
        .largest_free_bytes = resource->figures.largest_free_bytes};
    rmm__page_resource(&writing->page, &shown);
}

static void put_map(
    writing_t *writing, const rmm_blocks_file_t *file, const node_resource_t *resource)
{
    char name[RESOURCE_NAME_BYTES];
    uint64_t now_ns = clock_ns(), taken_ns = file->header.taken_ns;
    rmm_map_t map = {.lines_max = RMM_PAGE_MAP_LINES};
    rmm_blocks_row_t *rows = blocks_read(file, resource->instance_id, &map.count);
    if (rows == NULL) {
        return;
    }
    map.rows = rows;
    name_resource(resource, name);
    rmm__page_map(
        &writing->page, name, &map, now_ns > taken_ns ? now_ns - taken_ns : 0);
    free(rows);
}

/* The segment of a program of the snapshot: both are in one order until the next listing. */
static open_segment_t *segment_of(const writing_t *writing, uint32_t process)
{
    return writing->sampler->segments.list[process];
}

static void put_maps(writing_t *writing, uint32_t process)
{
    const span_t *span = &writing->spans[process];
    rmm_blocks_file_t file;
    if (writing->sampler == NULL ||
        !blocks_open(
            &writing->sampler->segments, segment_of(writing, process), &file)) {
        return;
    }
    for (uint32_t i = 0; i < span->resource_count; i++) {
        put_map(writing, &file, &writing->node->resources[span->resource + i]);
    }
    rmm__block_report_close(&file);
}

static void put_program(writing_t *writing, uint32_t index)
{
    const node_t *node = writing->node;
    const node_process_t *process = &node->processes[index];
    const span_t *span = &writing->spans[index];
    char pid[16] = "-", owner[CGROUP_LABEL_BYTES];
    cgroup_label(&process->group, owner);
    if (process->pid > 0) {
        snprintf(pid, sizeof(pid), "%d", (int)process->pid);
    }
    rmm_page_program_t shown = {
        .pid = pid,
        .user = process->user,
        .command = process->command[0] != '\0' ? process->command : process->comm,
        .state = "",
        .owner = owner};
    for (uint32_t i = 0; i < span->use_count; i++) {
        const node_use_t *use = &node->uses[span->use + i];
        const rmm_page_figures_t figures = figures_of(&use->figures);
        const node_device_t *device = &node->devices[use->device];
        rmm__page_program_add(&shown, device->name, &figures, device->capacity_bytes);
    }
    if (!rmm__page_begin_program(&writing->page, &shown)) {
        return;
    }
    for (uint32_t i = 0; i < span->use_count; i++) {
        const node_use_t *use = &node->uses[span->use + i];
        const rmm_page_figures_t figures = figures_of(&use->figures);
        rmm__page_use(&writing->page, node->devices[use->device].name, &figures);
    }
    rmm__page_begin_resources(&writing->page);
    for (uint32_t i = 0; i < span->resource_count; i++) {
        put_resource(writing, &node->resources[span->resource + i]);
    }
    rmm__page_end_resources(&writing->page);
    put_maps(writing, index);
    rmm__page_end_program(&writing->page);
}

/* --- the page ----------------------------------------------------------------------------- */

static void put_in_file(void *to, const char *bytes, size_t length)
{
    (void)fwrite(bytes, 1, length, to);
}

static void put_all(writing_t *writing, rmm_sink_t *sink, time_t now)
{
    const node_t *node = writing->node;
    rmm_page_t *page = &writing->page;
    char host[256] = "this machine";
    (void)gethostname(host, sizeof(host) - 1);
    rmm__page_begin(page, sink, host, now, false);
    rmm__page_remark(page, node->forbidden, "programs of other users cannot be read");
    rmm__page_remark(page, node->refused, "programs have implausible figures");
    rmm__page_remark(page, node->left_out, "programs are left out");
    put_devices(writing);
    rmm__page_begin_programs(page);
    for (uint32_t i = 0; i < node->process_count; i++) {
        put_program(writing, writing->order[i].index);
    }
    rmm__page_end_programs(page);
    rmm__page_end(page);
}

bool page_write(FILE *file, const sampler_t *sampler, const node_t *node, time_t now)
{
    writing_t writing;
    rmm_sink_t sink = {.put = put_in_file, .to = file};
    if (!begin(&writing, sampler, node)) {
        return false;
    }
    put_all(&writing, &sink, now);
    finish(&writing);
    return true;
}

void page_ask_for_blocks(const sampler_t *sampler, const node_t *node)
{
    open_segment_t *programs[BLOCKS_PROGRAMS_MAX];
    uint32_t count = 0;
    writing_t writing;
    if (!begin(&writing, sampler, node)) {
        return;
    }
    for (uint32_t i = 0; i < node->process_count && count < BLOCKS_PROGRAMS_MAX; i++) {
        programs[count++] = segment_of(&writing, writing.order[i].index);
    }
    blocks_ask(&sampler->segments, programs, count);
    finish(&writing);
}
