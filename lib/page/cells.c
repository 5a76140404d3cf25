/* SPDX-License-Identifier: Apache-2.0 */
/* Puts cells; see cells.h. */
#include "page/cells.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define BAR_WIDTH 1000u
#define HISTORY_HEIGHT 100.0

uint64_t page_subtract(uint64_t a, uint64_t b)
{
    if (a == RMM_PAGE_UNKNOWN || b == RMM_PAGE_UNKNOWN) {
        return RMM_PAGE_UNKNOWN;
    }
    return a > b ? a - b : 0;
}

uint64_t page_add(uint64_t a, uint64_t b)
{
    if (a == RMM_PAGE_UNKNOWN || b == RMM_PAGE_UNKNOWN) {
        return RMM_PAGE_UNKNOWN;
    }
    return a < RMM_PAGE_UNKNOWN - 1 - b ? a + b : RMM_PAGE_UNKNOWN - 1;
}

/* --- figures ------------------------------------------------------------------------------ */

void page_size_text(uint64_t bytes, char text[PAGE_SIZE_BYTES])
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double)bytes;
    unsigned unit = 0;
    if (bytes == RMM_PAGE_UNKNOWN) {
        (void)snprintf(text, PAGE_SIZE_BYTES, "-");
        return;
    }
    while (value >= 1023.95 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024;
        unit++;
    }
    (void)snprintf(
        text, PAGE_SIZE_BYTES, "%.*f %s", unit == 0 ? 0 : 1, value, units[unit]);
}

void page_span_text(uint32_t seconds, char text[PAGE_SIZE_BYTES])
{
    static const struct {
        uint32_t seconds;
        const char *name;
    } units[] = {{86400, "day"}, {3600, "hour"}, {60, "minute"}, {0, "second"}};
    uint32_t unit = 0;
    while (seconds < units[unit].seconds) {
        unit++;
    }
    uint32_t length = units[unit].seconds > 0 ? units[unit].seconds : 1;
    uint32_t count = (seconds + length / 2) / length;
    if (count == 1) {
        (void)snprintf(text, PAGE_SIZE_BYTES, "%s", units[unit].name);
    } else {
        (void)snprintf(text, PAGE_SIZE_BYTES, "%u %ss", count, units[unit].name);
    }
}

void page_put_size(rmm_sink_t *sink, const char *tag, uint64_t bytes)
{
    char text[PAGE_SIZE_BYTES];
    page_size_text(bytes, text);
    if (bytes < 1024 || bytes == RMM_PAGE_UNKNOWN) {
        rmm__sink_printf(sink, "<%s>%s</%s>", tag, text, tag);
    } else {
        rmm__sink_printf(
            sink, "<%s title=\"%" PRIu64 " bytes\">%s</%s>", tag, bytes, text, tag);
    }
}

void page_put_count(rmm_sink_t *sink, const char *tag, uint64_t count)
{
    if (count == RMM_PAGE_UNKNOWN) {
        rmm__sink_printf(sink, "<%s>-</%s>", tag, tag);
    } else {
        rmm__sink_printf(sink, "<%s>%" PRIu64 "</%s>", tag, count, tag);
    }
}

/* Long texts are cut by the width of their column, so the whole is the title. */
void page_put_text(rmm_sink_t *sink, const char *tag, const char *text)
{
    rmm__sink_printf(sink, "<%s class=\"t\"", tag);
    if (text[0] != '\0' && strnlen(text, 10) == 10) {
        rmm__sink_puts(sink, " title=\"");
        rmm__sink_foreign(sink, text);
        rmm__sink_puts(sink, "\"");
    }
    rmm__sink_puts(sink, ">");
    rmm__sink_foreign(sink, text[0] != '\0' ? text : "-");
    rmm__sink_printf(sink, "</%s>", tag);
}

/* --- bars --------------------------------------------------------------------------------- */

static uint32_t width_of(uint64_t bytes, uint64_t whole)
{
    double share =
        whole != 0 && bytes != RMM_PAGE_UNKNOWN ? (double)bytes / (double)whole : 0.0;
    return (uint32_t)((share < 1.0 ? share : 1.0) * BAR_WIDTH + 0.5);
}

static const char *part_text(const char *name)
{
    static const char *const texts[][2] = {
        {"used", "in use"},
        {"inside", "free inside pools"},
        {"others", "other programs"},
        {"lost", "padding"},
        {"largest inside", "largest free piece"}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (strcmp(texts[i][0], name) == 0) {
            return texts[i][1];
        }
    }
    return name;
}

/* What a pointer on the bar is told. */
static void put_bar_title(
    rmm_sink_t *sink, const page_part_t *parts, uint32_t count, uint64_t whole)
{
    char text[PAGE_SIZE_BYTES];
    rmm__sink_puts(sink, "<title>");
    for (uint32_t i = 0; i < count; i++) {
        page_size_text(parts[i].bytes, text);
        rmm__sink_printf(sink, "%s %s, ", part_text(parts[i].name), text);
    }
    page_size_text(whole, text);
    rmm__sink_printf(sink, "of %s</title>", text);
}

void page_put_bar(
    rmm_sink_t *sink, const char *tag, const page_part_t *parts, uint32_t count,
    uint64_t whole)
{
    uint32_t x = 0;
    if (whole == 0 || whole == RMM_PAGE_UNKNOWN) {
        rmm__sink_printf(sink, "<%s class=\"wide\"></%s>", tag, tag);
        return;
    }
    rmm__sink_printf(
        sink,
        "<%s class=\"wide\"><svg class=\"bar\" viewBox=\"0 0 %u 1\" "
        "preserveAspectRatio=\"none\">",
        tag, BAR_WIDTH);
    put_bar_title(sink, parts, count, whole);
    for (uint32_t i = 0; i < count && x < BAR_WIDTH; i++) {
        uint32_t width = width_of(parts[i].bytes, whole);
        width = width < BAR_WIDTH - x ? width : BAR_WIDTH - x;
        if (width > 0) {
            rmm__sink_printf(
                sink, "<rect class=\"%s\" x=\"%u\" width=\"%u\" height=\"1\"/>",
                parts[i].name, x, width);
        }
        x += width;
    }
    rmm__sink_printf(sink, "</svg></%s>", tag);
}

/* --- histories ---------------------------------------------------------------------------- */

/* Of the areas up to `series` at a sample; less than 0: it was not sampled. */
static double
height_at(const rmm_page_history_t *history, uint32_t series, uint32_t sample)
{
    double sum = 0;
    for (uint32_t i = 0; i <= series; i++) {
        double value = history->series[i].samples[sample];
        if (i == 0 && value < 0) {
            return -1;
        }
        sum += value > 0 ? value : 0;
    }
    return sum;
}

static double highest_of(const rmm_page_history_t *history)
{
    double highest = 0;
    for (uint32_t i = 0; i < history->count; i++) {
        double value = height_at(history, history->series_count - 1, i);
        highest = value > highest ? value : highest;
    }
    return highest;
}

/* The y of a sample, from the top; -1: it is missing. */
static int y_of(double height, double whole)
{
    double share = height / whole;
    return height < 0 ? -1
                      : (int)((1 - (share < 1 ? share : 1)) * HISTORY_HEIGHT + 0.5);
}

/* Ends the step that is drawn, and begins the next, at x. */
static void put_step(rmm_sink_t *sink, uint32_t x, int before, int y)
{
    if (before >= 0) {
        rmm__sink_printf(sink, "H%u", x);
    } else {
        rmm__sink_printf(sink, "M%u 100", x);
    }
    rmm__sink_printf(sink, "V%d", y >= 0 ? y : (int)HISTORY_HEIGHT);
}

/* Steps, down to the ground wherever a sample is missing. */
static void put_area(
    rmm_sink_t *sink, const rmm_page_history_t *history, uint32_t series, double whole)
{
    uint32_t left = history->room - history->count;
    int before = -1;
    rmm__sink_printf(sink, "<path class=\"%s\" d=\"", history->series[series].name);
    for (uint32_t i = 0; i < history->count; i++) {
        int y = y_of(height_at(history, series, i), whole);
        if (y != before) {
            put_step(sink, left + i, before, y);
        }
        before = y;
    }
    if (before >= 0) {
        put_step(sink, history->room, before, -1);
    }
    rmm__sink_puts(sink, "\"/>");
}

void page_put_history(
    rmm_sink_t *sink, const char *tag, const rmm_page_history_t *history,
    uint64_t whole)
{
    double highest = history != NULL && history->count > 0 ? highest_of(history) : 0;
    char text[PAGE_SIZE_BYTES], span[PAGE_SIZE_BYTES];
    if (history == NULL || history->count == 0) {
        rmm__sink_printf(sink, "<%s class=\"past\"></%s>", tag, tag);
        return;
    }
    page_size_text((uint64_t)highest, text);
    page_span_text(
        (uint32_t)((uint64_t)history->count * history->step_ms / 1000), span);
    rmm__sink_printf(
        sink,
        "<%s class=\"past\"><svg class=\"line\" viewBox=\"0 0 %u 100\" "
        "preserveAspectRatio=\"none\"><title>last %s, at most %s</title>",
        tag, history->room, span, text);
    double top = whole != 0 && whole != RMM_PAGE_UNKNOWN ? (double)whole : highest;
    for (uint32_t i = history->series_count; i > 0 && top > 0; i--) {
        put_area(sink, history, i - 1, top);
    }
    rmm__sink_printf(sink, "</svg></%s>", tag);
}
