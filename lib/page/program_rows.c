/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The programs of the page; see node_page.h. A program is one row of figures; a click on it shows
 * its devices, its resources and the blocks of its pools.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "page/cells.h"

void rmm__page_begin_programs(rmm_page_t *page)
{
    rmm__sink_puts(
        page->sink,
        "<h2>Programs</h2>\n<div id=\"programs\" class=\"rows programs\">\n"
        "<div class=\"row head\"><span></span><span class=\"t\">PID</span>"
        "<span class=\"t\">Program</span><span class=\"t\">User</span>"
        "<span class=\"t\">Job, container</span><span class=\"t\">GPU</span>"
        "<span>Held</span><span>In use</span><span>Free inside</span><span>Peak</span>"
        "<span class=\"t\">Share of its GPUs</span></div>\n");
}

/* --- the row ------------------------------------------------------------------------------ */

static void add_figures(rmm_page_figures_t *sum, const rmm_page_figures_t *part)
{
    sum->current_bytes = page_add(sum->current_bytes, part->current_bytes);
    sum->reserved_bytes = page_add(sum->reserved_bytes, part->reserved_bytes);
    sum->cached_bytes = page_add(sum->cached_bytes, part->cached_bytes);
    sum->padding_bytes = page_add(sum->padding_bytes, part->padding_bytes);
    sum->peak_bytes = page_add(sum->peak_bytes, part->peak_bytes);
    sum->current_count = page_add(sum->current_count, part->current_count);
    sum->oom_count = page_add(sum->oom_count, part->oom_count);
}

/* "gpu0", "gpu0,3", "4 GPUs" */
static void add_name(rmm_page_program_t *program, const char *device)
{
    size_t length = strlen(program->devices);
    bool is_number = length > 0 && strncmp(device, "gpu", 3) == 0;
    if (program->device_count > 3) {
        (void)snprintf(
            program->devices, sizeof(program->devices), "%u GPUs",
            program->device_count);
    } else {
        (void)snprintf(
            program->devices + length, sizeof(program->devices) - length, "%s%.10s",
            length > 0 ? "," : "", is_number ? device + 3 : device);
    }
}

void rmm__page_program_add(
    rmm_page_program_t *program, const char *device, const rmm_page_figures_t *figures,
    uint64_t capacity_bytes)
{
    bool is_host = strcmp(device, "host") == 0;
    bool replaces = program->device_count == 0; /* what is there is of host memory */
    if (is_host && program->device_count > 0) {
        return;
    }
    if (replaces) {
        program->figures = *figures;
        program->capacity_bytes = capacity_bytes;
        program->devices[0] = '\0';
    } else {
        add_figures(&program->figures, figures);
        program->capacity_bytes = page_add(program->capacity_bytes, capacity_bytes);
    }
    program->device_count += is_host ? 0 : 1;
    add_name(program, device);
}

static void put_row(rmm_sink_t *sink, const rmm_page_program_t *program)
{
    const rmm_page_figures_t *figures = &program->figures;
    uint64_t pools = page_subtract(figures->reserved_bytes, figures->current_bytes);
    const page_part_t parts[] = {
        {"used", figures->current_bytes},
        {"inside", figures->cached_bytes},
        {"lost", page_subtract(pools, figures->cached_bytes)}};
    rmm__sink_puts(sink, "<summary class=\"row\"><i></i>");
    page_put_text(sink, "b", program->pid);
    rmm__sink_puts(sink, "<span class=\"t\" title=\"");
    rmm__sink_foreign(sink, program->command);
    rmm__sink_puts(sink, "\">");
    rmm__sink_foreign(sink, program->command);
    if (program->state[0] != '\0') {
        rmm__sink_puts(sink, " <em>(");
        rmm__sink_foreign(sink, program->state);
        rmm__sink_puts(sink, ")</em>");
    }
    if (figures->oom_count != RMM_PAGE_UNKNOWN && figures->oom_count > 0) {
        rmm__sink_printf(
            sink, " <em class=\"warn\">%" PRIu64 " refused</em>", figures->oom_count);
    }
    rmm__sink_puts(sink, "</span>");
    page_put_text(sink, "span", program->user);
    page_put_text(sink, "span", program->owner);
    page_put_text(sink, "span", program->devices);
    page_put_size(sink, "span", figures->reserved_bytes);
    page_put_size(sink, "span", figures->current_bytes);
    page_put_size(sink, "span", figures->cached_bytes);
    page_put_size(sink, "span", figures->peak_bytes);
    page_put_bar(sink, "span", parts, 3, program->capacity_bytes);
    rmm__sink_puts(sink, "</summary>\n");
}

bool rmm__page_begin_program(rmm_page_t *page, const rmm_page_program_t *program)
{
    rmm_sink_t *sink = page->sink;
    if (sink->bytes >= RMM_PAGE_BYTES_MAX) {
        page->left_out++;
        return false;
    }
    page->programs++;
    rmm__sink_puts(sink, "<details");
    if (page->is_live) {
        rmm__sink_puts(sink, " id=\"p");
        rmm__sink_foreign(sink, program->pid);
        rmm__sink_puts(sink, "\"");
    }
    rmm__sink_puts(sink, program->state[0] != '\0' ? " class=\"ended\">" : ">");
    put_row(sink, program);
    rmm__sink_puts(
        sink,
        "<div class=\"scroll\"><table>\n<tr><th class=\"t\">Device</th><th>In use</th>"
        "<th>Held</th><th>Peak</th><th>Blocks</th><th>Refused</th></tr>\n");
    return true;
}

/* --- what it opens to --------------------------------------------------------------------- */

static void put_figures(rmm_sink_t *sink, const rmm_page_figures_t *figures)
{
    page_put_size(sink, "td", figures->current_bytes);
    page_put_size(sink, "td", figures->reserved_bytes);
    page_put_size(sink, "td", figures->peak_bytes);
    page_put_count(sink, "td", figures->current_count);
    page_put_count(sink, "td", figures->oom_count);
}

void rmm__page_use(
    rmm_page_t *page, const char *device, const rmm_page_figures_t *figures)
{
    rmm__sink_puts(page->sink, "<tr>");
    page_put_text(page->sink, "td", device);
    put_figures(page->sink, figures);
    rmm__sink_puts(page->sink, "</tr>\n");
}

void rmm__page_begin_resources(rmm_page_t *page)
{
    rmm__sink_puts(
        page->sink,
        "</table>\n<table class=\"full\">\n<tr><th class=\"t\">Resource</th>"
        "<th class=\"t\">Type</th><th class=\"t\">Device</th><th>Upstream</th>"
        "<th>In use</th><th>Held</th><th>Peak</th><th>Blocks</th><th>Refused</th>"
        "<th>Largest free</th>"
        "<th class=\"t wide\">What it holds, the largest free piece first</th></tr>\n");
}

/* The largest free piece and the other free memory: together a pool at a glance. */
static void put_pool(rmm_sink_t *sink, const rmm_page_resource_t *resource)
{
    const rmm_page_figures_t *figures = &resource->figures;
    uint64_t free_bytes = resource->free_bytes;
    bool is_pool = free_bytes != RMM_PAGE_UNKNOWN && free_bytes != 0;
    const page_part_t parts[] = {
        {"used", figures->current_bytes},
        {"lost", figures->padding_bytes},
        {"largest inside", resource->largest_free_bytes},
        {"inside", page_subtract(free_bytes, resource->largest_free_bytes)}};
    page_put_bar(sink, "td", parts, 4, is_pool ? figures->reserved_bytes : 0);
}

void rmm__page_resource(rmm_page_t *page, const rmm_page_resource_t *resource)
{
    rmm_sink_t *sink = page->sink;
    rmm__sink_puts(sink, "<tr>");
    page_put_text(sink, "td", resource->name);
    page_put_text(sink, "td", resource->type);
    page_put_text(sink, "td", resource->device);
    page_put_count(
        sink, "td",
        resource->upstream_id != 0 ? resource->upstream_id : RMM_PAGE_UNKNOWN);
    put_figures(sink, &resource->figures);
    page_put_size(sink, "td", resource->largest_free_bytes);
    put_pool(sink, resource);
    rmm__sink_puts(sink, "</tr>\n");
}

void rmm__page_end_resources(rmm_page_t *page)
{
    rmm__sink_puts(page->sink, "</table>\n");
}

void rmm__page_map(
    rmm_page_t *page, const char *resource, const rmm_map_t *map, uint64_t age_ns)
{
    rmm_sink_t *sink = page->sink;
    if (sink->bytes >= RMM_PAGE_MAPS_BYTES_MAX) {
        page->maps_left_out++;
        return;
    }
    char line[PAGE_SIZE_BYTES];
    page_size_text(rmm__map_line_bytes(map), line);
    rmm__sink_puts(sink, "<figure><figcaption>Blocks of ");
    rmm__sink_foreign(sink, resource);
    rmm__sink_printf(
        sink, ", reported %.1f s ago; a line is %s</figcaption>\n",
        (double)age_ns / 1e9, line);
    rmm__map_html(sink, map);
    rmm__sink_puts(sink, "</figure>\n");
}

void rmm__page_end_program(rmm_page_t *page)
{
    rmm__sink_puts(page->sink, "</div></details>\n");
}

void rmm__page_end_programs(rmm_page_t *page)
{
    if (page->programs == 0) {
        rmm__sink_puts(page->sink, "<p>No program uses the library now.</p>\n");
    }
    rmm__sink_puts(page->sink, "</div>\n");
    rmm__page_remark(page, page->left_out, "more programs are not on this page");
}
