/* SPDX-License-Identifier: Apache-2.0 */
/* The head and the end of the page, its devices, jobs and refusals; see node_page.h. */
#include "page/node_page.h"

#include <inttypes.h>
#include <stdio.h>

#include "page/cells.h"
#include "page/page_files.h"

/* --- head --------------------------------------------------------------------------------- */

#define KEY(class, text)                                                               \
    "<li><svg viewBox=\"0 0 12 12\"><rect class=\"" class "\" width=\"12\" "           \
                                                          "height=\"12\"/></svg>" text \
                                                          "</li>"

static const char legend[] = "<ul id=\"legend\">" KEY("used", "in use")
    KEY("inside", "free inside pools") KEY("kept", "free for one stream")
        KEY("graph", "in graphs") KEY("lost", "padding") KEY("others", "other programs")
            KEY("free", "free on the device") "</ul>\n";

/* Without the script these would do nothing, so it shows them. */
static const char controls[] =
    "<form id=\"controls\" hidden><span id=\"stale\" hidden></span>"
    "<input id=\"filter\" type=\"search\" placeholder=\"filter programs and jobs\" "
    "aria-label=\"filter programs and jobs\">"
    "<label>refresh <select id=\"seconds\"><option value=\"2\">2 s</option>"
    "<option value=\"10\" selected>10 s</option><option value=\"60\">1 min</option>"
    "<option value=\"0\">off</option></select></label></form>\n";

static void put_head(rmm_page_t *page, const char *title)
{
    rmm_sink_t *sink = page->sink;
    rmm__sink_puts(
        sink, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
              "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src "
              "'none'; base-uri 'none'; form-action 'none'; style-src '");
    rmm__sink_puts(sink, rmm__page_css_hash);
    if (page->is_live) {
        rmm__sink_puts(sink, "'; connect-src 'self'; script-src '");
        rmm__sink_puts(sink, rmm__page_js_hash);
    }
    rmm__sink_puts(
        sink,
        "'\">\n<meta name=\"viewport\" content=\"width=device-width, "
        "initial-scale=1\">\n"
        "<meta name=\"color-scheme\" content=\"light dark\">\n<title>GPU memory of ");
    rmm__sink_foreign(sink, title);
    rmm__sink_puts(sink, "</title>\n<style>");
    rmm__sink_puts(sink, (const char *)rmm__page_css);
    rmm__sink_puts(sink, "</style>\n</head>\n");
}

void rmm__page_begin(
    rmm_page_t *page, rmm_sink_t *sink, const char *title, time_t now, bool is_live)
{
    char time[32] = "";
    struct tm parts;
    *page = (rmm_page_t){.sink = sink, .is_live = is_live};
    if (gmtime_r(&now, &parts) != NULL) {
        (void)strftime(time, sizeof(time), "%Y-%m-%d %H:%M:%S UTC", &parts);
    }
    put_head(page, title);
    rmm__sink_puts(sink, "<body>\n<header>\n<h1>GPU memory of ");
    rmm__sink_foreign(sink, title);
    rmm__sink_printf(sink, "</h1>\n<time id=\"time\">%s</time>\n", time);
    rmm__sink_puts(sink, is_live ? controls : "");
    rmm__sink_puts(sink, "<svg id=\"patterns\">");
    rmm__map_put_pattern(sink);
    rmm__sink_puts(sink, "</svg>\n");
    rmm__sink_puts(sink, legend);
    rmm__sink_puts(sink, "</header>\n<main>\n");
}

void rmm__page_remark(rmm_page_t *page, uint64_t count, const char *what)
{
    if (count > 0) {
        rmm__sink_printf(
            page->sink, "<p class=\"warn\">%" PRIu64 " %s</p>\n", count, what);
    }
}

static void put_counted(rmm_sink_t *sink, uint64_t count, const char *what)
{
    rmm__sink_printf(
        sink, "<b>%" PRIu64 "</b> %s%s", count, what, count == 1 ? "" : "s");
}

void rmm__page_summary(rmm_page_t *page, const rmm_page_summary_t *summary)
{
    rmm_sink_t *sink = page->sink;
    char used[PAGE_SIZE_BYTES], held[PAGE_SIZE_BYTES], all[PAGE_SIZE_BYTES];
    page_size_text(summary->current_bytes, used);
    page_size_text(summary->reserved_bytes, held);
    page_size_text(summary->capacity_bytes, all);
    rmm__sink_puts(sink, "<p id=\"summary\">");
    put_counted(sink, summary->programs, "program");
    rmm__sink_puts(sink, " of ");
    put_counted(sink, summary->users, "user");
    rmm__sink_puts(sink, " on ");
    put_counted(sink, summary->gpus, "GPU");
    rmm__sink_printf(
        sink, ": <b>%s</b> in use, <b>%s</b> held, of <b>%s</b>", used, held, all);
    if (summary->refused > 0) {
        rmm__sink_puts(sink, "; <a href=\"#refusals\" class=\"warn\">");
        put_counted(sink, summary->refused, "refused allocation");
        rmm__sink_puts(sink, "</a>");
    }
    rmm__sink_puts(sink, "</p>\n");
}

/* --- devices ------------------------------------------------------------------------------ */

static void put_history_head(rmm_page_t *page)
{
    char span[PAGE_SIZE_BYTES];
    page_span_text(page->history_seconds, span);
    if (page->history_seconds != 0) {
        rmm__sink_printf(page->sink, "<th class=\"t past\">Last %s</th>", span);
    }
    rmm__sink_puts(page->sink, "</tr>\n");
}

/* Without histories the column is missing. */
static void
put_history(rmm_page_t *page, const rmm_page_history_t *history, uint64_t whole)
{
    if (page->history_seconds != 0) {
        page_put_history(page->sink, "td", history, whole);
    }
    rmm__sink_puts(page->sink, "</tr>\n");
}

void rmm__page_begin_devices(rmm_page_t *page, uint32_t history_seconds)
{
    page->history_seconds = history_seconds;
    rmm__sink_puts(
        page->sink,
        "<h2>Devices</h2>\n<table id=\"devices\" class=\"full\">\n<tr>"
        "<th class=\"t\">Device</th><th class=\"t model\">Model</th>"
        "<th class=\"t wide\">Memory</th><th>In use</th><th>Free inside</th>"
        "<th>Others</th><th>Free</th><th>Total</th>");
    put_history_head(page);
}

void rmm__page_device(rmm_page_t *page, const rmm_page_device_t *device)
{
    rmm_sink_t *sink = page->sink;
    uint64_t pools = page_subtract(device->reserved_bytes, device->current_bytes);
    const page_part_t parts[] = {
        {"used", device->current_bytes},
        {"inside", device->cached_bytes},
        {"lost", page_subtract(pools, device->cached_bytes)},
        {"others", device->others_bytes}};
    rmm__sink_puts(sink, "<tr>");
    page_put_text(sink, "td", device->name);
    rmm__sink_puts(sink, "<td class=\"t model\">");
    rmm__sink_foreign(sink, device->model[0] != '\0' ? device->model : "-");
    rmm__sink_puts(sink, "</td>");
    page_put_bar(sink, "td", parts, 4, device->capacity_bytes);
    page_put_size(sink, "td", device->current_bytes);
    page_put_size(sink, "td", device->cached_bytes);
    page_put_size(sink, "td", device->others_bytes);
    page_put_size(sink, "td", device->free_bytes);
    page_put_size(sink, "td", device->capacity_bytes);
    put_history(page, device->history, device->capacity_bytes);
}

void rmm__page_end_devices(rmm_page_t *page)
{
    rmm__sink_puts(page->sink, "</table>\n");
}

/* --- jobs --------------------------------------------------------------------------------- */

void rmm__page_begin_jobs(rmm_page_t *page)
{
    rmm__sink_puts(
        page->sink,
        "<h2>Users and jobs</h2>\n<table id=\"jobs\" class=\"full\">\n<tr>"
        "<th class=\"t\">Kind</th><th class=\"t name\">Name</th>"
        "<th class=\"t\">User</th><th>Programs</th><th>Held</th><th>In use</th>"
        "<th>Peak</th><th>Refused</th><th class=\"t wide\">Share of GPUs</th>");
    put_history_head(page);
}

void rmm__page_job(rmm_page_t *page, const rmm_page_job_t *job)
{
    rmm_sink_t *sink = page->sink;
    bool has_ended = job->ended_seconds_ago != RMM_PAGE_UNKNOWN;
    const page_part_t parts[] = {
        {"used", job->current_bytes},
        {"inside", page_subtract(job->reserved_bytes, job->current_bytes)}};
    rmm__sink_puts(sink, has_ended ? "<tr class=\"ended\">" : "<tr>");
    page_put_text(sink, "td", job->kind);
    page_put_text(sink, "td", job->name);
    page_put_text(sink, "td", job->user);
    if (has_ended) {
        rmm__sink_printf(
            sink, "<td>ended %" PRIu64 " min</td>", job->ended_seconds_ago / 60);
    } else {
        page_put_count(sink, "td", job->programs);
    }
    page_put_size(sink, "td", job->reserved_bytes);
    page_put_size(sink, "td", job->current_bytes);
    page_put_size(sink, "td", job->peak_bytes);
    page_put_count(sink, "td", job->oom_count);
    page_put_bar(sink, "td", parts, 2, job->capacity_bytes);
    put_history(page, job->history, 0);
}

void rmm__page_end_jobs(rmm_page_t *page)
{
    rmm__sink_puts(page->sink, "</table>\n");
}

/* --- refusals ----------------------------------------------------------------------------- */

void rmm__page_begin_refusals(rmm_page_t *page)
{
    rmm__sink_puts(
        page->sink,
        "<h2 id=\"refusals\">Refused allocations</h2>\n<div class=\"rows refusals\">\n"
        "<div class=\"row head\"><span></span><span class=\"t\">Time, UTC</span>"
        "<span class=\"t\">PID</span><span class=\"t\">Program</span>"
        "<span class=\"t\">User</span><span class=\"t\">Job</span>"
        "<span class=\"t\">Device</span><span>Asked for</span><span>Was free</span>"
        "<span class=\"t\">Resource</span><span>It held</span><span>In use</span>"
        "</div>\n");
}

void rmm__page_begin_refusal(rmm_page_t *page, const rmm_page_refusal_t *refusal)
{
    rmm_sink_t *sink = page->sink;
    rmm__sink_puts(sink, "<details");
    if (page->is_live) {
        rmm__sink_printf(sink, " id=\"r%" PRIu64 "\"", refusal->number);
    }
    rmm__sink_puts(sink, "><summary class=\"row\"><i></i>");
    page_put_text(sink, "span", refusal->time);
    page_put_text(sink, "span", refusal->process);
    page_put_text(sink, "span", refusal->command);
    page_put_text(sink, "span", refusal->user);
    page_put_text(sink, "span", refusal->job);
    page_put_text(sink, "span", refusal->device);
    page_put_size(sink, "span", refusal->bytes);
    page_put_size(sink, "span", refusal->free_bytes);
    page_put_text(sink, "span", refusal->resource);
    page_put_size(sink, "span", refusal->reserved_bytes);
    page_put_size(sink, "span", refusal->current_bytes);
    rmm__sink_puts(
        sink, "</summary>\n<table><caption>Who held the device's memory then</caption>"
              "<tr><th class=\"t\">PID</th><th class=\"t\">Program</th>"
              "<th class=\"t\">User</th><th>Held</th><th>In use</th></tr>\n");
}

void rmm__page_holder(rmm_page_t *page, const rmm_page_holder_t *holder)
{
    rmm_sink_t *sink = page->sink;
    rmm__sink_puts(sink, "<tr>");
    page_put_text(sink, "td", holder->process);
    page_put_text(sink, "td", holder->command);
    page_put_text(sink, "td", holder->user);
    page_put_size(sink, "td", holder->held_bytes);
    page_put_size(sink, "td", holder->current_bytes);
    rmm__sink_puts(sink, "</tr>\n");
}

void rmm__page_end_refusal(rmm_page_t *page, uint32_t more, uint64_t more_bytes)
{
    if (more > 0) {
        rmm__sink_printf(
            page->sink, "<tr><td class=\"t\" colspan=\"3\">%u more programs</td>",
            more);
        page_put_size(page->sink, "td", more_bytes);
        rmm__sink_puts(page->sink, "<td>-</td></tr>\n");
    }
    rmm__sink_puts(page->sink, "</table></details>\n");
}

void rmm__page_end_refusals(rmm_page_t *page)
{
    rmm__sink_puts(page->sink, "</div>\n");
}

/* --- end ---------------------------------------------------------------------------------- */

void rmm__page_end(rmm_page_t *page)
{
    rmm__page_remark(page, page->maps_left_out, "more maps are not on this page");
    rmm__sink_puts(page->sink, "</main>\n");
    if (page->is_live) {
        rmm__sink_puts(page->sink, "<script>");
        rmm__sink_puts(page->sink, (const char *)rmm__page_js);
        rmm__sink_puts(page->sink, "</script>\n");
    }
    rmm__sink_puts(page->sink, "</body>\n</html>\n");
}
