/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `metrics`, `rmm.prom` and `metrics.om`: the node's figures for Prometheus, in its text format
 * and in that of OpenMetrics 1.0. The samples are the same; the lines before them differ.
 *
 * What is unknown has no sample, and neither has a process that has exited: its series end.
 * Labels are spelt as DCGM spells them (gpu, UUID), so that a query can join both.
 *
 * A text has TEXT_NODE_BYTES_MAX bytes. If there is more to show, each user has a share of
 * them (shares.h). Whole levels are left out, resources first, and rmm_over_budget says how many:
 * so no family is shown of one process and not of another.
 *
 * A text above STORED_BYTES is not stored: it may have 24 MiB, and the page faults for so much
 * memory took longer than the rows. When the file is opened the length of each section is computed,
 * and a read makes the rows that it asks for, from the snapshot, which the text holds.
 *
 * Cost: labels are printed once a level and copied into each of its rows. The length of a row is
 * some 5 ns, the row itself 30 ns. A read at another position than where the last one ended
 * computes the lengths of at most one section again.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "render_metrics.h"

#define RATIO_BYTES 5u /* "0.123" */
#define STORED_BYTES ((size_t)64 << 10)

/* --- rows ----------------------------------------------------------------------------- */

/* FIGURE_UNKNOWN: there is no row. */
static uint64_t
value_of(const metrics_t *metrics, const section_t *section, const level_t *level)
{
    switch (section->kind) {
    case SECTION_STAT:
        return shown_value(level->figures, &shown_stats[section->index]);
    case SECTION_FRAGMENTATION:
        return figures_fragmentation(level->figures);
    case SECTION_EXTRA:
        return extra_value_of(
            &metrics->held->extra_stats, level->extra, section->index);
    }
    return FIGURE_UNKNOWN;
}

static uint32_t value_bytes(section_kind_t kind, uint64_t value)
{
    return kind == SECTION_FRAGMENTATION ? RATIO_BYTES : metrics_digits(value);
}

static void write_value(section_kind_t kind, uint64_t value, uint32_t bytes, char *to)
{
    for (uint32_t i = bytes; i > 0; i--) {
        if (kind == SECTION_FRAGMENTATION && i == 2) {
            to[--i] = '.';
        }
        to[i - 1] = (char)('0' + value % 10);
        value /= 10;
    }
}

static size_t row_bytes(
    const metrics_t *metrics, const section_t *section, const level_t *level,
    size_t name_length)
{
    uint64_t value = value_of(metrics, section, level);
    if (value == FIGURE_UNKNOWN) {
        return 0;
    }
    return name_length + level->labels_length + value_bytes(section->kind, value) + 1;
}

/* --- sections ------------------------------------------------------------------------- */

typedef struct name {
    char bytes[METRIC_NAME_BYTES * 2];
    size_t length;
} name_t;

/* Without prefix and suffix. */
static const char *stem_of(const metrics_t *metrics, const section_t *section)
{
    switch (section->kind) {
    case SECTION_STAT:
        return metrics->names[section->index];
    case SECTION_EXTRA:
        return metrics->held->extra_stats.items[section->index].metric;
    case SECTION_FRAGMENTATION:
        break;
    }
    return "fragmentation_ratio";
}

static uint16_t kind_of(const metrics_t *metrics, const section_t *section)
{
    switch (section->kind) {
    case SECTION_STAT:
        return shown_stats[section->index].kind;
    case SECTION_EXTRA:
        return metrics->held->extra_stats.items[section->index].kind;
    case SECTION_FRAGMENTATION:
        break;
    }
    return RMM_KIND_GAUGE;
}

static name_t name_of(const metrics_t *metrics, const section_t *section)
{
    name_t name;
    int length = snprintf(
        name.bytes, sizeof(name.bytes), "%s%s%s",
        metrics->families[section->family].prefix, stem_of(metrics, section),
        metrics_suffix(kind_of(metrics, section)));
    name.length = (size_t)length;
    return name;
}

static bool ends_in_bytes(const char *name)
{
    size_t length = strlen(name);
    return length > 6 && strcmp(name + length - 6, "_bytes") == 0;
}

static void describe(
    const metrics_t *metrics, const section_t *section, head_t *head, char help[96])
{
    switch (section->kind) {
    case SECTION_STAT:
        head->unit = shown_stats[section->index].unit == RMM_UNIT_BYTES ? "bytes" : "";
        head->help = shown_stats[section->index].help;
        break;
    case SECTION_FRAGMENTATION:
        head->unit = "ratio";
        head->help = "1 - largest free / free bytes of pools, 0 if none is free";
        break;
    case SECTION_EXTRA: /* of which the schema in the segments tells name and kind */
        (void)snprintf(
            help, 96, "Statistic %s of programs newer than rmmfs",
            metrics->held->extra_stats.items[section->index].name);
        head->unit = ends_in_bytes(head->name) ? "bytes" : "";
        head->help = help;
        break;
    }
}

/* To metrics->text. */
static void put_section_head(const metrics_t *metrics, const section_t *section)
{
    const family_t *family = &metrics->families[section->family];
    char help[96], what[64];
    (void)snprintf(what, sizeof(what), ", %s", family->what);
    head_t head = {
        .prefix = family->prefix,
        .name = stem_of(metrics, section),
        .type = kind_of(metrics, section) == RMM_KIND_COUNTER ? "counter" : "gauge",
        .what = what};
    describe(metrics, section, &head, help);
    metrics_put_head(metrics, &head);
}

/* Its length is computed as its rows are made. */
static void
add_section(metrics_t *metrics, section_kind_t kind, uint32_t family, uint32_t index)
{
    section_t *section = &metrics->sections[metrics->section_count++];
    *section = (section_t){.kind = kind, .family = family, .index = index};
    const level_t *levels = &metrics->levels[metrics->families[family].first];
    const name_t name = name_of(metrics, section);
    text_t head;
    text_init(&head);
    metrics->text = &head;
    put_section_head(metrics, section);
    section->head_bytes = head.length;
    section->bytes = head.length;
    for (uint32_t i = 0; i < metrics->families[family].count; i++) {
        section->bytes += row_bytes(metrics, section, &levels[i], name.length);
    }
    if (head.failed != TEXT_GOOD) {
        metrics->labels.failed = head.failed;
    }
    metrics->section_bytes += section->bytes;
    text_fini(&head);
}

static void add_sections(metrics_t *metrics)
{
    for (uint32_t i = 0; i < shown_stat_count; i++) {
        for (uint32_t j = 0; j < FAMILY_COUNT; j++) {
            if (tree_dir_has(metrics->families[j].dir, shown_stats[i].file)) {
                add_section(metrics, SECTION_STAT, j, i);
            }
        }
    }
    for (uint32_t j = 0; j < FAMILY_COUNT; j++) {
        add_section(metrics, SECTION_FRAGMENTATION, j, 0);
    }
    for (uint32_t i = 0; i < metrics->held->extra_stats.count; i++) {
        if (metrics->held->extra_stats.items[i].of_resources) {
            add_section(metrics, SECTION_EXTRA, FAMILY_RESOURCE, i);
        } else {
            add_section(metrics, SECTION_EXTRA, FAMILY_DEVICE, i);
            add_section(metrics, SECTION_EXTRA, FAMILY_PROCESS, i);
        }
    }
}

/* --- pieces --------------------------------------------------------------------------- */

static void put_row(
    const metrics_t *metrics, const section_t *section, const level_t *level,
    const name_t *name)
{
    uint64_t value = value_of(metrics, section, level);
    if (value == FIGURE_UNKNOWN) {
        return;
    }
    uint32_t digits = value_bytes(section->kind, value);
    size_t before = name->length + level->labels_length;
    char *to = text_reserve(metrics->text, before + digits + 1);
    if (to == NULL) {
        return;
    }
    memcpy(to, name->bytes, name->length);
    memcpy(
        to + name->length, metrics->labels.data + level->labels, level->labels_length);
    write_value(section->kind, value, digits, to + before);
    to[before + digits] = '\n';
    metrics->text->length += before + digits + 1;
}

static uint32_t row_count(const metrics_t *metrics, const section_t *section)
{
    return 1 + metrics->families[section->family].count;
}

static void begin_next(const metrics_t *metrics, cursor_t *cursor)
{
    cursor->begins += metrics->sections[cursor->section].bytes;
    cursor->at = cursor->begins;
    cursor->row = 0;
    cursor->section++;
}

/* Put rows of one section from the cursor on until the text has `enough` bytes. The cursor is
 * where the last of them begins, or the next section. */
static void put_rows(metrics_t *metrics, size_t enough)
{
    cursor_t *cursor = &metrics->cursor;
    const section_t *section = &metrics->sections[cursor->section];
    const level_t *levels = &metrics->levels[metrics->families[section->family].first];
    const name_t name = name_of(metrics, section);
    text_t *text = metrics->text;
    uint32_t rows = row_count(metrics, section);
    for (;;) {
        size_t before = text->length;
        if (cursor->row == 0) {
            put_section_head(metrics, section);
        } else {
            put_row(metrics, section, &levels[cursor->row - 1], &name);
        }
        if (text->length >= enough || text->failed != TEXT_GOOD) {
            return;
        }
        cursor->at += text->length - before;
        if (++cursor->row == rows) {
            begin_next(metrics, cursor);
            return;
        }
    }
}

static cursor_t first_row(const metrics_t *metrics)
{
    const uint64_t begins = metrics->before.length;
    return (cursor_t){.begins = begins, .at = begins};
}

/* To the row that contains position `at` of the text. */
static void seek(metrics_t *metrics, uint64_t at)
{
    cursor_t *cursor = &metrics->cursor;
    if (at < cursor->at) {
        *cursor = first_row(metrics);
    }
    while (cursor->section < metrics->section_count &&
           at >= cursor->begins + metrics->sections[cursor->section].bytes) {
        begin_next(metrics, cursor);
    }
    if (cursor->section == metrics->section_count) {
        return;
    }
    const section_t *section = &metrics->sections[cursor->section];
    const level_t *levels = &metrics->levels[metrics->families[section->family].first];
    const size_t name_length = name_of(metrics, section).length;
    for (;;) {
        size_t bytes =
            cursor->row == 0
                ? section->head_bytes
                : row_bytes(metrics, section, &levels[cursor->row - 1], name_length);
        if (at < cursor->at + bytes) {
            return;
        }
        cursor->at += bytes;
        cursor->row++;
    }
}

/* The part of `from` from position `at` on, at most `bytes`. */
static void put_part(const text_t *from, size_t at, size_t bytes, text_t *text)
{
    size_t left = from->length - at;
    text_append(text, from->data + at, left < bytes ? left : bytes);
}

static size_t
put_piece(text_source_t *source, size_t offset, size_t bytes, text_t *text)
{
    metrics_t *metrics = (metrics_t *)source;
    const size_t first = metrics->before.length;
    const size_t last = first + metrics->section_bytes;
    size_t begins = offset;
    metrics->text = text;
    (void)text_reserve(text, bytes + TEXT_ROW_BYTES_MAX);
    if (offset < first) {
        put_part(&metrics->before, offset, bytes, text);
    }
    if (offset < last && offset + bytes > first) {
        seek(metrics, offset > first ? offset : first);
        begins = offset > first ? metrics->cursor.at : offset;
        while (text->failed == TEXT_GOOD && begins + text->length < offset + bytes &&
               metrics->cursor.section < metrics->section_count) {
            put_rows(metrics, offset + bytes - begins);
        }
    }
    if (text->failed == TEXT_GOOD && begins + text->length < offset + bytes) {
        size_t at = begins + text->length;
        put_part(&metrics->after, at - last, offset + bytes - at, text);
    }
    return begins;
}

/* --- all ------------------------------------------------------------------------------ */

static void free_metrics(text_source_t *source)
{
    metrics_t *metrics = (metrics_t *)source;
    text_fini(&metrics->before);
    text_fini(&metrics->after);
    text_give_scratch(&metrics->labels, metrics->scratch_bytes);
    text_fini(&metrics->labels);
    snapshot_release(metrics->held);
    free(metrics->levels);
    free(metrics);
}

static text_failure_t failure_of(const metrics_t *metrics)
{
    const text_t *parts[] = {&metrics->labels, &metrics->before, &metrics->after};
    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
        if (parts[i]->failed != TEXT_GOOD) {
            return parts[i]->failed;
        }
    }
    return TEXT_GOOD;
}

static void begin_text(text_t *part, const text_t *text)
{
    text_init(part);
    text_charge(part, text->budget, text->uid);
    part->is_member = text->is_member;
}

static void measure(metrics_t *metrics, budget_t *budget)
{
    for (uint32_t i = 0; i < shown_stat_count; i++) {
        metric_name(shown_stats[i].name, metrics->names[i]);
    }
    metrics_add_levels(metrics);
    metrics_share_bytes(metrics);
    metrics->text = &metrics->before;
    metrics_put_before(metrics);
    add_sections(metrics);
    metrics->text = &metrics->after;
    metrics_put_after(metrics, budget);
    metrics->snapshot = NULL; /* it may be a copy that ends with the open */
    metrics->cursor = first_row(metrics);
}

/* The snapshot is charged, too: the text keeps it. */
static bool charge(metrics_t *metrics, size_t levels)
{
    size_t held = snapshot_bytes(metrics->held);
    size_t own = sizeof(*metrics) + levels * sizeof(level_t);
    if (!text_take_held(&metrics->labels, held)) {
        return false;
    }
    metrics->scratch_bytes = held;
    if (!text_take_scratch(&metrics->labels, own)) {
        return false;
    }
    metrics->scratch_bytes += own;
    return true;
}

/* NULL: no memory. */
static metrics_t *make_metrics(const snapshot_t *snapshot, const text_t *text)
{
    metrics_t *metrics = calloc(1, sizeof(*metrics));
    if (metrics == NULL) {
        return NULL;
    }
    size_t levels = snapshot->device_count + (size_t)snapshot->location_count +
                    snapshot->resource_count;
    metrics->source = (text_source_t){put_piece, free_metrics};
    metrics->snapshot = snapshot;
    metrics->held = snapshot_retain(snapshot->whole);
    begin_text(&metrics->labels, text);
    begin_text(&metrics->before, text);
    begin_text(&metrics->after, text);
    if (charge(metrics, levels)) {
        metrics->levels = malloc(levels * sizeof(level_t));
        if (metrics->levels == NULL) {
            metrics->labels.failed = TEXT_NO_MEMORY;
        }
    }
    return metrics;
}

void render_metrics(
    const snapshot_t *snapshot, budget_t *budget, metrics_format_t format, text_t *text)
{
    metrics_t *metrics = make_metrics(snapshot, text);
    if (metrics == NULL) {
        text->failed = TEXT_NO_MEMORY;
        return;
    }
    metrics->format = format;
    if (metrics->levels != NULL) {
        measure(metrics, budget);
    }
    text->failed = failure_of(metrics);
    if (text->failed != TEXT_GOOD) {
        free_metrics(&metrics->source);
        return;
    }
    size_t bytes =
        metrics->before.length + metrics->section_bytes + metrics->after.length;
    if (bytes <= STORED_BYTES) { /* less than what it is made of */
        (void)put_piece(&metrics->source, 0, bytes, text);
        free_metrics(&metrics->source);
        return;
    }
    text_trim(&metrics->labels);
    text_trim(&metrics->before);
    text_trim(&metrics->after);
    text->source = &metrics->source;
    text->length = bytes;
}
