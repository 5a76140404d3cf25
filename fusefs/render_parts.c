/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Numbers and lines; see render_parts.h.
 */
#include "render_parts.h"

#include <inttypes.h>
#include <stddef.h>

/* --- numbers -------------------------------------------------------------------------- */

static void put_in_text(void *to, const char *bytes, size_t length)
{
    text_append(to, bytes, length);
}

rmm_sink_t render_sink(text_t *text)
{
    return (rmm_sink_t){.put = put_in_text, .to = text};
}

/* snprintf is most of what a value file costs: a quarter of it is enough. */
void render_number(text_t *text, uint64_t value)
{
    char digits[24];
    size_t at = sizeof(digits);
    if (value == FIGURE_UNKNOWN) {
        text_append(text, "-1", 2);
        return;
    }
    do {
        digits[--at] = (char)('0' + value % 10);
        value /= 10;
    } while (value != 0);
    text_append(text, digits + at, sizeof(digits) - at);
}

void render_value(text_t *text, uint64_t value)
{
    render_number(text, value);
    text_append(text, "\n", 1);
}

void render_limit(text_t *text, uint64_t limit_bytes)
{
    if (limit_bytes == RMM_SEGMENT_NO_LIMIT) {
        text_puts(text, "max\n");
    } else {
        render_value(text, limit_bytes);
    }
}

void render_column(text_t *text, uint64_t value)
{
    render_number(text, value);
    text_append(text, " ", 1);
}

void render_key(text_t *text, const char *key, uint64_t value)
{
    text_puts(text, key);
    text_append(text, " ", 1);
    render_value(text, value);
}

void render_string(text_t *text, const char *string)
{
    text_put_foreign(text, string[0] != '\0' ? string : "-1");
    text_append(text, "\n", 1);
}

static void append_fragmentation(text_t *text, const figures_t *figures)
{
    uint64_t thousandths = figures_fragmentation(figures);
    if (thousandths == FIGURE_UNKNOWN) {
        text_puts(text, "-1\n");
    } else {
        text_printf(
            text, "%" PRIu64 ".%03" PRIu64 "\n", thousandths / 1000,
            thousandths % 1000);
    }
}

/* --- value files ---------------------------------------------------------------------- */

typedef struct figure_file {
    bool is_figure;
    size_t offset; /* in figures_t */
    unsigned needs;
} figure_file_t;

#define NEEDS_GAUGE 0
#define NEEDS_COUNTER 0
#define NEEDS_MARK FIGURES_MARKS
#define FIGURE(field, needs)                                                           \
    {                                                                                  \
        true, offsetof(figures_t, field), needs                                        \
    }

static const figure_file_t figure_files[FILE_ID_COUNT] = {
#define X(field, kind, unit, help) [FILE_##field] = FIGURE(field, NEEDS_##kind),
    RMM_COMMON_STATS(X) RMM_LOCATION_ONLY_STATS(X) RMM_SLOT_ONLY_STATS(X)
#undef X
#define X(field, kind, unit, help) [FILE_##field] = FIGURE(field, FIGURES_FREE),
        RMM_SLOT_FREE_STATS(X)
#undef X
            [FILE_CURRENT_COUNT] = FIGURE(current_count, 0),
    [FILE_PEAK_UPPER_BYTES] = FIGURE(peak_upper_bytes, FIGURES_MARKS),
    [FILE_CACHED_BYTES] = FIGURE(cached_bytes, 0),
    [FILE_FRAGMENTATION] = {false, 0, FIGURES_FREE},
    [FILE_STAT] = {false, 0, FIGURES_ALL},
};

unsigned render_figure_needs(uint8_t file)
{
    return figure_files[file].needs;
}

bool render_figure(text_t *text, uint8_t file, const figures_t *figures)
{
    const char *figure = (const char *)figures + figure_files[file].offset;
    if (file == FILE_FRAGMENTATION) {
        append_fragmentation(text, figures);
        return true;
    }
    if (figure_files[file].is_figure) {
        render_value(text, *(const uint64_t *)(const void *)figure);
    }
    return figure_files[file].is_figure;
}

/* --- stat ----------------------------------------------------------------------------- */

/* Derived figures; those of the records come from the list of statistics itself. */
static void append_derived(text_t *text, const figures_t *figures)
{
    render_key(text, "current_count", figures->current_count);
    render_key(text, "cached_bytes", figures->cached_bytes);
    text_puts(text, "fragmentation ");
    append_fragmentation(text, figures);
}

static void append_extras(text_t *text, const extras_t *extras)
{
    for (uint32_t i = 0; i < extras->count; i++) {
        render_key(text, extras->items[i].name, extras->items[i].value);
    }
}

void render_location_stat(
    text_t *text, const figures_t *figures, const extras_t *extras)
{
#define X(field, kind, unit, help) render_key(text, #field, figures->field);
    RMM_LOCATION_STATS(X)
    RMM_SLOT_FREE_STATS(X)
#undef X
    append_derived(text, figures);
    append_extras(text, extras);
}

void render_slot_stat(text_t *text, const figures_t *figures, const extras_t *extras)
{
#define X(field, kind, unit, help) render_key(text, #field, figures->field);
    RMM_SLOT_STATS(X)
#undef X
    append_derived(text, figures);
    render_key(text, "torn", figures->torn ? 1 : 0);
    append_extras(text, extras);
}

void render_events(text_t *text, const figures_t *figures)
{
    render_key(text, "oom", figures->oom_count);
    render_key(text, "invalid_free", figures->invalid_free_count);
    render_key(text, "limit", figures->limit_count);
}
