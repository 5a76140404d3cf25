/* SPDX-License-Identifier: Apache-2.0 */
/* Puts HTML; see node_page.h. Colours are those of map_svg.c. */
#include "page/node_page.h"

#include <inttypes.h>
#include <stdio.h>

#define BAR_WIDTH 1000u
/* A square of the colour of a part. */
#define KEY(number) "<span class=\"k" #number "\">&#9632;</span> "

static const char head[] =
    "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
    "<meta http-equiv=\"Content-Security-Policy\" "
    "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
    "<meta name=\"viewport\" content=\"width=device-width\">\n";

static const char style[] =
    "<style>\n"
    "body { font: 14px/1.4 sans-serif; margin: 1.5em; max-width: 90em; }\n"
    "h1 { font-size: 1.4em; } h2 { font-size: 1.1em; margin: 1.5em 0 .4em; }\n"
    "table { border-collapse: collapse; margin: .4em 0; }\n"
    "th, td { padding: .15em .7em; text-align: right; white-space: nowrap; }\n"
    "th { border-bottom: 1px solid #888; font-weight: 600; }\n"
    ".t { text-align: left; } td.wide { width: 24em; }\n"
    "svg.bar { display: block; width: 24em; height: 1em; background: #eee; }\n"
    ".used, .k1 { fill: #d1495b; color: #d1495b; }\n"
    ".cached, .k2 { fill: #edae49; color: #edae49; }\n"
    ".others, .k3 { fill: #8d6cab; color: #8d6cab; }\n"
    ".padding, .k4 { fill: #444; color: #444; }\n"
    ".largest, .k5 { fill: #5a9e52; color: #5a9e52; }\n"
    ".free, .k6 { fill: #a9d3a3; color: #a9d3a3; }\n"
    "details { margin: .3em 0; } details > * { margin-left: 1.2em; }\n"
    "summary { cursor: pointer; margin-left: 0; }\n"
    "figure { margin: .6em 1.2em; overflow-x: auto; } .warn { color: #a33; }\n"
    "</style>\n";

/* --- figures ------------------------------------------------------------------------------ */

/* In units of 1024; the exact number is the cell's title. */
static void put_bytes(rmm_sink_t *sink, uint64_t bytes)
{
    static const char units[] = "BKMGTPE";
    double value = (double)bytes;
    int unit = 0;
    if (bytes == RMM_PAGE_UNKNOWN) {
        rmm__sink_puts(sink, "<td>-</td>");
        return;
    }
    while (value >= 1023.95 && units[unit + 1] != '\0') {
        value /= 1024;
        unit++;
    }
    rmm__sink_printf(
        sink, "<td title=\"%" PRIu64 "\">%.*f%c</td>", bytes, unit == 0 ? 0 : 1, value,
        units[unit]);
}

static void put_count(rmm_sink_t *sink, uint64_t count)
{
    if (count == RMM_PAGE_UNKNOWN) {
        rmm__sink_puts(sink, "<td>-</td>");
    } else {
        rmm__sink_printf(sink, "<td>%" PRIu64 "</td>", count);
    }
}

static void put_text(rmm_sink_t *sink, const char *text)
{
    rmm__sink_puts(sink, "<td class=\"t\">");
    rmm__sink_foreign(sink, text[0] != '\0' ? text : "-");
    rmm__sink_puts(sink, "</td>");
}

static void put_figures(rmm_sink_t *sink, const rmm_page_figures_t *figures)
{
    put_bytes(sink, figures->current_bytes);
    put_bytes(sink, figures->reserved_bytes);
    put_bytes(sink, figures->peak_bytes);
    put_count(sink, figures->current_count);
    put_count(sink, figures->oom_count);
}

/* --- bars --------------------------------------------------------------------------------- */

typedef struct part {
    const char *name; /* its class */
    uint64_t bytes;
} part_t;

static uint32_t width_of(uint64_t bytes, uint64_t whole)
{
    double share =
        whole != 0 && bytes != RMM_PAGE_UNKNOWN ? (double)bytes / (double)whole : 0.0;
    return (uint32_t)((share < 1.0 ? share : 1.0) * BAR_WIDTH + 0.5);
}

/* Parts side by side; they may be more than the whole, and are cut. */
static void
put_bar(rmm_sink_t *sink, const part_t *parts, uint32_t count, uint64_t whole)
{
    uint32_t x = 0;
    rmm__sink_printf(
        sink,
        "<td class=\"wide\"><svg class=\"bar\" viewBox=\"0 0 %u 10\" "
        "preserveAspectRatio=\"none\">",
        BAR_WIDTH);
    for (uint32_t i = 0; i < count && x < BAR_WIDTH; i++) {
        uint32_t width = width_of(parts[i].bytes, whole);
        width = width < BAR_WIDTH - x ? width : BAR_WIDTH - x;
        if (width > 0) {
            rmm__sink_printf(
                sink,
                "<rect class=\"%s\" x=\"%u\" width=\"%u\" height=\"10\">"
                "<title>%s: %" PRIu64 " bytes</title></rect>",
                parts[i].name, x, width, parts[i].name, parts[i].bytes);
        }
        x += width;
    }
    rmm__sink_puts(sink, "</svg></td>");
}

static uint64_t subtract(uint64_t a, uint64_t b)
{
    if (a == RMM_PAGE_UNKNOWN || b == RMM_PAGE_UNKNOWN) {
        return RMM_PAGE_UNKNOWN;
    }
    return a > b ? a - b : 0;
}

/* --- head --------------------------------------------------------------------------------- */

void rmm__page_begin(rmm_page_t *page, rmm_sink_t *sink, const char *title, time_t now)
{
    char time[32] = "";
    struct tm parts;
    *page = (rmm_page_t){.sink = sink};
    if (gmtime_r(&now, &parts) != NULL) {
        (void)strftime(time, sizeof(time), "%Y-%m-%d %H:%M:%S UTC", &parts);
    }
    rmm__sink_puts(sink, head);
    rmm__sink_puts(sink, "<title>GPU memory of ");
    rmm__sink_foreign(sink, title);
    rmm__sink_puts(sink, "</title>\n");
    rmm__sink_puts(sink, style);
    rmm__sink_puts(sink, "</head>\n<body>\n<h1>GPU memory of ");
    rmm__sink_foreign(sink, title);
    rmm__sink_printf(sink, "</h1>\n<p>%s</p>\n", time);
}

void rmm__page_remark(rmm_page_t *page, uint64_t count, const char *what)
{
    if (count > 0) {
        rmm__sink_printf(
            page->sink, "<p class=\"warn\">%" PRIu64 " %s</p>\n", count, what);
    }
}

/* --- devices ------------------------------------------------------------------------------ */

void rmm__page_begin_devices(rmm_page_t *page)
{
    rmm__sink_puts(
        page->sink,
        "<h2>Devices</h2>\n<table id=\"devices\">\n<tr><th class=\"t\">Device</th>"
        "<th>Used</th><th>Cached</th><th>Others</th><th>Free</th><th>Total</th>"
        "<th class=\"t\">" KEY(1) "used " KEY(2) "cached " KEY(
            3) "others</th><th class=\"t\">Model</th></tr>\n");
}

void rmm__page_device(rmm_page_t *page, const rmm_page_device_t *device)
{
    rmm_sink_t *sink = page->sink;
    const part_t parts[] = {
        {"used", device->current_bytes},
        {"cached", subtract(device->reserved_bytes, device->current_bytes)},
        {"others", device->others_bytes}};
    rmm__sink_puts(sink, "<tr>");
    put_text(sink, device->name);
    put_bytes(sink, device->current_bytes);
    put_bytes(sink, device->cached_bytes);
    put_bytes(sink, device->others_bytes);
    put_bytes(sink, device->free_bytes);
    put_bytes(sink, device->capacity_bytes);
    if (device->capacity_bytes != RMM_PAGE_UNKNOWN) {
        put_bar(sink, parts, 3, device->capacity_bytes);
    } else {
        put_text(sink, "");
    }
    put_text(sink, device->model);
    rmm__sink_puts(sink, "</tr>\n");
}

void rmm__page_begin_programs(rmm_page_t *page)
{
    rmm__sink_puts(page->sink, "</table>\n<h2>Programs</h2>\n");
}

/* --- programs ----------------------------------------------------------------------------- */

bool rmm__page_begin_program(rmm_page_t *page, const rmm_page_program_t *program)
{
    rmm_sink_t *sink = page->sink;
    if (sink->bytes >= RMM_PAGE_BYTES_MAX) {
        page->left_out++;
        return false;
    }
    rmm__sink_printf(
        sink, "<details%s>\n<summary><b>",
        page->programs < RMM_PAGE_OPEN_PROGRAMS ? " open" : "");
    page->programs++;
    rmm__sink_foreign(sink, program->pid);
    rmm__sink_puts(sink, "</b> ");
    rmm__sink_foreign(sink, program->user);
    if (program->owner[0] != '\0') {
        rmm__sink_puts(sink, " [");
        rmm__sink_foreign(sink, program->owner);
        rmm__sink_puts(sink, "]");
    }
    rmm__sink_puts(sink, " ");
    rmm__sink_foreign(sink, program->command);
    if (program->state[0] != '\0') {
        rmm__sink_puts(sink, " (");
        rmm__sink_foreign(sink, program->state);
        rmm__sink_puts(sink, ")");
    }
    rmm__sink_puts(
        sink, "</summary>\n<table>\n<tr><th class=\"t\">Device</th><th>Current</th>"
              "<th>Reserved</th><th>Peak</th><th>Live</th><th>Refused</th></tr>\n");
    return true;
}

void rmm__page_use(
    rmm_page_t *page, const char *device, const rmm_page_figures_t *figures)
{
    rmm__sink_puts(page->sink, "<tr>");
    put_text(page->sink, device);
    put_figures(page->sink, figures);
    rmm__sink_puts(page->sink, "</tr>\n");
}

void rmm__page_begin_resources(rmm_page_t *page)
{
    rmm__sink_puts(
        page->sink,
        "</table>\n<table>\n<tr><th class=\"t\">Resource</th><th class=\"t\">Type</th>"
        "<th class=\"t\">Device</th><th>Upstream</th><th>Current</th><th>Reserved</th>"
        "<th>Peak</th><th>Live</th><th>Refused</th><th>Largest free</th>"
        "<th class=\"t\">" KEY(1) "used " KEY(4) "lost " KEY(5) "largest free " KEY(
            6) "other free</th></tr>\n");
}

/* Shows the largest free block and the other free memory: together a pool at a glance. */
static void put_pool(rmm_sink_t *sink, const rmm_page_resource_t *resource)
{
    const rmm_page_figures_t *figures = &resource->figures;
    uint64_t free_bytes = resource->free_bytes;
    const part_t parts[] = {
        {"used", figures->current_bytes},
        {"padding", figures->padding_bytes},
        {"largest", resource->largest_free_bytes},
        {"free", subtract(free_bytes, resource->largest_free_bytes)}};
    if (figures->reserved_bytes == RMM_PAGE_UNKNOWN || figures->reserved_bytes == 0 ||
        free_bytes == RMM_PAGE_UNKNOWN || free_bytes == 0) {
        put_text(sink, "");
    } else {
        put_bar(sink, parts, 4, figures->reserved_bytes);
    }
}

void rmm__page_resource(rmm_page_t *page, const rmm_page_resource_t *resource)
{
    rmm_sink_t *sink = page->sink;
    rmm__sink_puts(sink, "<tr>");
    put_text(sink, resource->name);
    put_text(sink, resource->type);
    put_text(sink, resource->device);
    put_count(
        sink, resource->upstream_id != 0 ? resource->upstream_id : RMM_PAGE_UNKNOWN);
    put_figures(sink, &resource->figures);
    put_bytes(sink, resource->largest_free_bytes);
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
    rmm__sink_puts(sink, "<figure class=\"map\"><figcaption>Blocks of ");
    rmm__sink_foreign(sink, resource);
    rmm__sink_printf(sink, ", %.1f s ago</figcaption>\n", (double)age_ns / 1e9);
    rmm__map_svg_begin(sink, map);
    rmm__map_svg_end(sink);
    rmm__sink_puts(sink, "</figure>\n");
}

void rmm__page_end_program(rmm_page_t *page)
{
    rmm__sink_puts(page->sink, "</details>\n");
}

void rmm__page_end(rmm_page_t *page)
{
    if (page->programs == 0) {
        rmm__sink_puts(page->sink, "<p>No program uses the library now.</p>\n");
    }
    rmm__page_remark(page, page->left_out, "more programs are not on this page");
    rmm__page_remark(page, page->maps_left_out, "more maps are not on this page");
    rmm__sink_puts(page->sink, "</body>\n</html>\n");
}
