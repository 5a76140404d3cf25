/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `index.html`: the node as a page for a browser (lib/page/node_page.h). Blocks of a pool are shown
 * to those who may read its `map`, and as the program reported them last: the page asks no program
 * for a report.
 */
#include "render/page.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "page/order.h"
#include "render/blocks.h"
#include "render/parts.h"

_Static_assert(RMM_PAGE_UNKNOWN == FIGURE_UNKNOWN, "figures pass as they are");

/* --- devices -------------------------------------------------------------------------- */

static uint64_t subtract(uint64_t a, uint64_t b)
{
    if (a == FIGURE_UNKNOWN || b == FIGURE_UNKNOWN) {
        return FIGURE_UNKNOWN;
    }
    return a > b ? a - b : 0;
}

static uint64_t known(uint64_t figure)
{
    return figure != 0 ? figure : FIGURE_UNKNOWN;
}

const char *page_user(const drawing_t *drawing, uid_t uid, char number[PAGE_USER_BYTES])
{
    const char *user = user_names_find(&drawing->users, uid);
    (void)snprintf(number, PAGE_USER_BYTES, "uid %u", (unsigned)uid);
    return user != NULL ? user : number;
}

void past_add(past_t *past, const char *name, const history_t *history)
{
    uint32_t series = past->shown.series_count++;
    past->shown.room = HISTORY_SAMPLES;
    past->shown.count = history_copy(history, past->samples[series]);
    past->shown.series[series].name = name;
    past->shown.series[series].samples = past->samples[series];
}

/* What is free inside pools: what is held, less what is in use. */
static void subtract_series(past_t *past, uint32_t from, uint32_t what)
{
    for (uint32_t i = 0; i < past->shown.count; i++) {
        past->samples[from][i] -= past->samples[what][i];
    }
}

static void read_past(drawing_t *drawing, uint32_t device, past_t *past)
{
    *past = (past_t){.shown.step_ms = drawing->model->history_step_ms};
    pthread_rwlock_rdlock(&drawing->model->lock);
    const device_t *of = model_device_const(drawing->model, device);
    if (of != NULL) {
        past_add(past, "used", &of->current_history);
        past_add(past, "inside", &of->reserved_history);
        past_add(past, "others", &of->others_history);
        subtract_series(past, 1, 0);
    }
    pthread_rwlock_unlock(&drawing->model->lock);
}

/* Others hold the memory that the driver said is used, less what the programs have taken. */
static void put_device(drawing_t *drawing, const snapshot_device_t *device)
{
    const figures_t *figures = &device->figures;
    uint64_t capacity = known(device->capacity_bytes);
    uint64_t of_driver = known(figures->device_free_bytes);
    uint64_t of_ours = subtract(capacity, figures->reserved_bytes);
    uint64_t others = subtract(subtract(capacity, of_driver), figures->reserved_bytes);
    past_t past;
    read_past(drawing, device->device, &past);
    const rmm_page_device_t shown = {
        .name = device->name,
        .model = device->model,
        .current_bytes = figures->current_bytes,
        .reserved_bytes = figures->reserved_bytes,
        .cached_bytes = figures->cached_bytes,
        .others_bytes = others,
        .free_bytes = others != FIGURE_UNKNOWN ? subtract(of_ours, others) : of_ours,
        .capacity_bytes = capacity,
        .history = &past.shown};
    rmm__page_device(&drawing->page, &shown);
}

/* --- programs ------------------------------------------------------------------------- */

static rmm_page_figures_t figures_shown(const figures_t *figures)
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

static void put_resource(drawing_t *drawing, const snapshot_resource_t *resource)
{
    const rmm_page_resource_t shown = {
        .name = resource->name,
        .type = resource->type,
        .device = drawing->snapshot->devices[resource->device].name,
        .upstream_id = resource->upstream_id,
        .figures = figures_shown(&resource->figures),
        .free_bytes = resource->figures.free_bytes,
        .largest_free_bytes = resource->figures.largest_free_bytes};
    rmm__page_resource(&drawing->page, &shown);
}

static void put_map(
    drawing_t *drawing, const rmm_blocks_file_t *file,
    const snapshot_resource_t *resource)
{
    rmm_blocks_resource_t reported;
    block_rows_t rows;
    if (!rmm__block_report_find(file, resource->instance_id, &reported) ||
        reported.row_count == 0 ||
        !block_rows_read(file, &reported, &rows, drawing->text)) {
        return;
    }
    uint64_t now_ns = rmm__clock_ns(CLOCK_MONOTONIC);
    const rmm_map_t map = {rows.rows, rows.count, RMM_PAGE_MAP_LINES};
    rmm__page_map(
        &drawing->page, resource->name, &map,
        now_ns > rows.taken_ns ? now_ns - rows.taken_ns : 0);
    block_rows_free(&rows, drawing->text);
}

/* The model's lock is taken for each: others get it between two pages. */
static bool open_report(model_t *model, uint32_t member_serial, rmm_blocks_file_t *file)
{
    pthread_rwlock_rdlock(&model->lock);
    const member_t *member = model_member(model, member_serial);
    bool is_open = member != NULL && block_report_open(member, file);
    pthread_rwlock_unlock(&model->lock);
    return is_open;
}

/* A process may have several segments, each with a report; the resources of one are together. */
static void put_maps(drawing_t *drawing, const snapshot_process_t *process)
{
    rmm_blocks_file_t file;
    uint32_t opened = 0;
    bool is_open = false;
    for (uint32_t i = 0; i < process->resource_count; i++) {
        const snapshot_resource_t *resource =
            &drawing->snapshot->resources[process->resource + i];
        if (resource->member_serial != opened) {
            if (is_open) {
                rmm__block_report_close(&file);
            }
            opened = resource->member_serial;
            is_open = open_report(drawing->model, opened, &file);
        }
        if (is_open) {
            put_map(drawing, &file, resource);
        }
    }
    if (is_open) {
        rmm__block_report_close(&file);
    }
}

/* As tree_may_read() has it for `map`. */
static bool may_see_blocks(const drawing_t *drawing, const snapshot_process_t *process)
{
    return process->is_live &&
           (drawing->text->uid == 0 || drawing->text->uid == process->uid);
}

static void put_parts(drawing_t *drawing, const snapshot_process_t *process)
{
    const snapshot_t *snapshot = drawing->snapshot;
    for (uint32_t i = 0; i < process->location_count; i++) {
        const snapshot_location_t *location =
            &snapshot->locations[process->location + i];
        const rmm_page_figures_t figures = figures_shown(&location->figures);
        rmm__page_use(
            &drawing->page, snapshot->devices[location->device].name, &figures);
    }
    rmm__page_begin_resources(&drawing->page);
    for (uint32_t i = 0; i < process->resource_count; i++) {
        put_resource(drawing, &snapshot->resources[process->resource + i]);
    }
    rmm__page_end_resources(&drawing->page);
    if (may_see_blocks(drawing, process)) {
        put_maps(drawing, process);
    }
}

static void add_uses(
    const drawing_t *drawing, const snapshot_process_t *process,
    rmm_page_program_t *shown)
{
    const snapshot_t *snapshot = drawing->snapshot;
    for (uint32_t i = 0; i < process->location_count; i++) {
        const snapshot_location_t *location =
            &snapshot->locations[process->location + i];
        const snapshot_device_t *device = &snapshot->devices[location->device];
        const rmm_page_figures_t figures = figures_shown(&location->figures);
        rmm__page_program_add(
            shown, device->name, &figures, known(device->capacity_bytes));
    }
}

static void put_process(drawing_t *drawing, const snapshot_process_t *process)
{
    char number[PAGE_USER_BYTES], owner[CGROUP_LABEL_BYTES] = "";
    if (process->placement != NULL) {
        cgroup_label(&process->placement->group, owner);
    }
    rmm_page_program_t shown = {
        .pid = process->name,
        .user = page_user(drawing, process->uid, number),
        .command = process->comm,
        .state = process->is_live && process->is_readable ? "" : process->state,
        .owner = owner};
    add_uses(drawing, process, &shown);
    if (rmm__page_begin_program(&drawing->page, &shown)) {
        put_parts(drawing, process);
        rmm__page_end_program(&drawing->page);
    }
}

static uint64_t bytes_of(const snapshot_t *snapshot, const snapshot_process_t *process)
{
    uint64_t sum = process->is_live ? 0 : FIGURE_UNKNOWN; /* what ended comes last */
    for (uint32_t i = 0; i < process->location_count && process->is_live; i++) {
        sum = figure_add_known(
            sum, snapshot->locations[process->location + i].figures.current_bytes);
    }
    return sum;
}

static void put_processes(drawing_t *drawing)
{
    rmm_page_order_t *order = drawing->order;
    const snapshot_t *snapshot = drawing->snapshot;
    for (uint32_t i = 0; i < snapshot->process_count; i++) {
        order[i] = (rmm_page_order_t){i, bytes_of(snapshot, &snapshot->processes[i])};
    }
    rmm__page_sort(order, snapshot->process_count);
    for (uint32_t i = 0; i < snapshot->process_count; i++) {
        put_process(drawing, &snapshot->processes[order[i].index]);
    }
}

/* --- the page ------------------------------------------------------------------------- */

/* Users of live processes, each once: the first of a user counts. */
static uint32_t user_count(const drawing_t *drawing)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < drawing->snapshot->job_count; i++) {
        const snapshot_job_t *job = &drawing->snapshot->jobs[i];
        count += job->kind == JOB_USER && job->ended_ns_ago == FIGURE_UNKNOWN;
    }
    return count;
}

static void put_summary(drawing_t *drawing, uint32_t refused)
{
    const snapshot_t *snapshot = drawing->snapshot;
    rmm_page_summary_t summary = {.users = user_count(drawing), .refused = refused};
    for (uint32_t i = 0; i < snapshot->process_count; i++) {
        summary.programs += snapshot->processes[i].is_live;
    }
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        const snapshot_device_t *device = &snapshot->devices[i];
        if (device->device == DEVICE_HOST) {
            continue;
        }
        summary.gpus++;
        summary.capacity_bytes =
            figure_add_known(summary.capacity_bytes, known(device->capacity_bytes));
        summary.current_bytes =
            figure_add_known(summary.current_bytes, device->figures.current_bytes);
        summary.reserved_bytes =
            figure_add_known(summary.reserved_bytes, device->figures.reserved_bytes);
    }
    drawing->gpu_bytes = summary.capacity_bytes;
    rmm__page_summary(&drawing->page, &summary);
}

/* A GPU is always shown, host memory if programs have some of it. */
static bool is_used(const snapshot_device_t *device)
{
    const figures_t *figures = &device->figures;
    return device->device != DEVICE_HOST || figures->current_bytes != 0 ||
           figures->reserved_bytes != 0;
}

static void put_all(drawing_t *drawing)
{
    const snapshot_t *snapshot = drawing->snapshot;
    rmm_sink_t sink = render_sink(drawing->text);
    char host[256] = "this machine";
    (void)gethostname(host, sizeof(host) - 1);
    rmm__page_begin(&drawing->page, &sink, host, time(NULL), true);
    put_summary(drawing, page_count_refusals(drawing));
    rmm__page_remark(
        &drawing->page,
        shares_refused(&snapshot->location_shares) +
            shares_refused(&snapshot->resource_shares),
        "levels are left out: over budget");
    rmm__page_begin_devices(
        &drawing->page, drawing->model->history_step_ms * HISTORY_SAMPLES / 1000);
    for (uint32_t i = 0; i < snapshot->device_count; i++) {
        if (is_used(&snapshot->devices[i])) {
            put_device(drawing, &snapshot->devices[i]);
        }
    }
    rmm__page_end_devices(&drawing->page);
    page_put_jobs(drawing);
    rmm__page_begin_programs(&drawing->page);
    put_processes(drawing);
    rmm__page_end_programs(&drawing->page);
    page_put_refusals(drawing);
    rmm__page_end(&drawing->page);
}

void print_index_html(const subject_t *subject, text_t *text)
{
    const snapshot_t *snapshot = subject->snapshot;
    drawing_t drawing = {.snapshot = snapshot, .model = subject->model, .text = text};
    size_t bytes = (snapshot->process_count + 1) * sizeof(rmm_page_order_t) +
                   user_names_bytes(snapshot);
    if (!text_take_scratch(text, bytes)) {
        return;
    }
    drawing.order = calloc(snapshot->process_count + 1, sizeof(drawing.order[0]));
    if (drawing.order == NULL || !user_names_read(&drawing.users, snapshot)) {
        text->failed = TEXT_NO_MEMORY;
    } else {
        put_all(&drawing);
    }
    user_names_free(&drawing.users);
    free(drawing.order);
    text_give_scratch(text, bytes);
}
