/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docs/segment-format.md against segment_format.h: every row of every table, in order,
 * and no byte of a record that no row describes.
 */
#include "harness/harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/document.h"
#include "segment/segment_blocks.h"
#include "segment/segment_events.h"
#include "segment/segment_leaks.h"
#include "segment/segment_reader.h"

#define ROWS_MAX 64
typedef struct row {
    const char *field;
    size_t offset, bytes;
} row_t;

#define ROW(record, field)                                                             \
    {                                                                                  \
#field, offsetof(record, field), sizeof(((record *)NULL)->field)               \
    }

static const row_t file_rows[] = {
    ROW(rmm_segment_layout_t, header),
    ROW(rmm_segment_layout_t, schema),
    ROW(rmm_segment_layout_t, locations),
    ROW(rmm_segment_layout_t, slots),
    ROW(rmm_segment_layout_t, log),
    ROW(rmm_segment_layout_t, log_records),
    ROW(rmm_segment_layout_t, location_stripes),
    ROW(rmm_segment_layout_t, slot_stripes),
    ROW(rmm_segment_layout_t, refusals),
    ROW(rmm_segment_layout_t, refusal_records),
};

static const row_t header_rows[] = {
    ROW(rmm_segment_header_t, magic),
    ROW(rmm_segment_header_t, version_major),
    ROW(rmm_segment_header_t, version_minor),
    ROW(rmm_segment_header_t, header_bytes),
    ROW(rmm_segment_header_t, segment_bytes),
    ROW(rmm_segment_header_t, start_time_ticks),
    ROW(rmm_segment_header_t, start_time_ns),
    ROW(rmm_segment_header_t, pid),
    ROW(rmm_segment_header_t, uid),
    ROW(rmm_segment_header_t, library_version),
    ROW(rmm_segment_header_t, ready),
    ROW(rmm_segment_header_t, schema_offset),
    ROW(rmm_segment_header_t, schema_stride),
    ROW(rmm_segment_header_t, schema_count),
    ROW(rmm_segment_header_t, locations_offset),
    ROW(rmm_segment_header_t, locations_stride),
    ROW(rmm_segment_header_t, locations_count),
    ROW(rmm_segment_header_t, slots_offset),
    ROW(rmm_segment_header_t, slots_stride),
    ROW(rmm_segment_header_t, slots_count),
    ROW(rmm_segment_header_t, slots_high),
    ROW(rmm_segment_header_t, driver),
    ROW(rmm_segment_header_t, comm),
    ROW(rmm_segment_header_t, cmdline),
    ROW(rmm_segment_header_t, job),
    ROW(rmm_segment_header_t, log_offset),
    ROW(rmm_segment_header_t, log_stride),
    ROW(rmm_segment_header_t, log_count),
    ROW(rmm_segment_header_t, stripes_stride),
    ROW(rmm_segment_header_t, stripes_count),
    ROW(rmm_segment_header_t, location_stripes_offset),
    ROW(rmm_segment_header_t, slot_stripes_offset),
    ROW(rmm_segment_header_t, locations_opened),
    ROW(rmm_segment_header_t, trim_seen),
    ROW(rmm_segment_header_t, report_seen),
    ROW(rmm_segment_header_t, refusals_offset),
    ROW(rmm_segment_header_t, refusals_stride),
    ROW(rmm_segment_header_t, refusals_count),
    ROW(rmm_segment_header_t, job_offset),
    ROW(rmm_segment_header_t, reserved1),
};

static const row_t schema_rows[] = {
    ROW(rmm_segment_schema_t, name),        ROW(rmm_segment_schema_t, scope),
    ROW(rmm_segment_schema_t, kind),        ROW(rmm_segment_schema_t, unit),
    ROW(rmm_segment_schema_t, reserved0),   ROW(rmm_segment_schema_t, offset),
    ROW(rmm_segment_schema_t, stripe_plus), ROW(rmm_segment_schema_t, stripe_minus),
};

static const row_t stripe_rows[] = {
    ROW(rmm_segment_stripe_t, total_bytes),
    ROW(rmm_segment_stripe_t, total_count),
    ROW(rmm_segment_stripe_t, freed_count),
    ROW(rmm_segment_stripe_t, padding_added),
    ROW(rmm_segment_stripe_t, padding_removed),
    ROW(rmm_segment_stripe_t, current_bytes),
    ROW(rmm_segment_stripe_t, reserved),
};

static const row_t location_rows[] = {
    ROW(rmm_segment_location_t, used),
    ROW(rmm_segment_location_t, reserved0),
    ROW(rmm_segment_location_t, peak_reset_seen),
    ROW(rmm_segment_location_t, node_peak_reset_seen),
    ROW(rmm_segment_location_t, capacity_bytes),
    ROW(rmm_segment_location_t, device_free_bytes),
    ROW(rmm_segment_location_t, uuid),
    ROW(rmm_segment_location_t, pci_bus_id),
    ROW(rmm_segment_location_t, name),
    ROW(rmm_segment_location_t, promised_bytes),
    ROW(rmm_segment_location_t, wanted_bytes),
    ROW(rmm_segment_location_t, wanted_number),
    ROW(rmm_segment_location_t, reserved1),
    ROW(rmm_segment_location_t, figures),
};

static const row_t slot_rows[] = {
    ROW(rmm_segment_slot_t, generation),  ROW(rmm_segment_slot_t, live),
    ROW(rmm_segment_slot_t, sequence),    ROW(rmm_segment_slot_t, peak_reset_seen),
    ROW(rmm_segment_slot_t, instance_id), ROW(rmm_segment_slot_t, upstream_id),
    ROW(rmm_segment_slot_t, location),    ROW(rmm_segment_slot_t, flags),
    ROW(rmm_segment_slot_t, created_ns),  ROW(rmm_segment_slot_t, type),
    ROW(rmm_segment_slot_t, name),        ROW(rmm_segment_slot_t, figures),
};

static const row_t log_rows[] = {
    ROW(rmm_segment_log_t, next),     ROW(rmm_segment_log_t, lost),
    ROW(rmm_segment_log_t, level),    ROW(rmm_segment_log_t, floor),
    ROW(rmm_segment_log_t, reserved),
};

static const row_t log_record_rows[] = {
    ROW(rmm_segment_log_record_t, commit), ROW(rmm_segment_log_record_t, time_ns),
    ROW(rmm_segment_log_record_t, thread), ROW(rmm_segment_log_record_t, level),
    ROW(rmm_segment_log_record_t, length), ROW(rmm_segment_log_record_t, text),
};

static const row_t refusals_rows[] = {
    ROW(rmm_segment_refusals_t, next),
    ROW(rmm_segment_refusals_t, reserved),
};

static const row_t refusal_rows[] = {
    ROW(rmm_segment_refusal_t, commit),
    ROW(rmm_segment_refusal_t, time_ns),
    ROW(rmm_segment_refusal_t, bytes),
    ROW(rmm_segment_refusal_t, device_free_bytes),
    ROW(rmm_segment_refusal_t, current_bytes),
    ROW(rmm_segment_refusal_t, reserved_bytes),
    ROW(rmm_segment_refusal_t, location),
    ROW(rmm_segment_refusal_t, instance_id),
    ROW(rmm_segment_refusal_t, type),
    ROW(rmm_segment_refusal_t, name),
    ROW(rmm_segment_refusal_t, limit_bytes),
    ROW(rmm_segment_refusal_t, limit_of),
    ROW(rmm_segment_refusal_t, reserved0),
    ROW(rmm_segment_refusal_t, reserved),
};

static const row_t events_rows[] = {
    ROW(rmm_events_header_t, magic),          ROW(rmm_events_header_t, version_major),
    ROW(rmm_events_header_t, version_minor),  ROW(rmm_events_header_t, header_bytes),
    ROW(rmm_events_header_t, file_bytes),     ROW(rmm_events_header_t, records_offset),
    ROW(rmm_events_header_t, records_stride), ROW(rmm_events_header_t, records_count),
    ROW(rmm_events_header_t, ready),          ROW(rmm_events_header_t, reserved0),
    ROW(rmm_events_header_t, next),           ROW(rmm_events_header_t, lost),
    ROW(rmm_events_header_t, reserved1),
};

static const row_t event_rows[] = {
    ROW(rmm_events_record_t, commit),      ROW(rmm_events_record_t, time_ns),
    ROW(rmm_events_record_t, pointer),     ROW(rmm_events_record_t, bytes),
    ROW(rmm_events_record_t, stream),      ROW(rmm_events_record_t, thread),
    ROW(rmm_events_record_t, action),      ROW(rmm_events_record_t, device),
    ROW(rmm_events_record_t, resource_id), ROW(rmm_events_record_t, reserved),
};

static const row_t control_rows[] = {
    ROW(rmm_control_page_t, magic),
    ROW(rmm_control_page_t, version_major),
    ROW(rmm_control_page_t, version_minor),
    ROW(rmm_control_page_t, locations_offset),
    ROW(rmm_control_page_t, locations_stride),
    ROW(rmm_control_page_t, locations_count),
    ROW(rmm_control_page_t, slots_offset),
    ROW(rmm_control_page_t, slots_stride),
    ROW(rmm_control_page_t, slots_count),
    ROW(rmm_control_page_t, log_level),
    ROW(rmm_control_page_t, trace_enable),
    ROW(rmm_control_page_t, wanted),
    ROW(rmm_control_page_t, trim_number),
    ROW(rmm_control_page_t, trim_of),
    ROW(rmm_control_page_t, trim_keep_bytes),
    ROW(rmm_control_page_t, report_number),
    ROW(rmm_control_page_t, report_rows),
    ROW(rmm_control_page_t, request_count),
    ROW(rmm_control_page_t, shares_offset),
    ROW(rmm_control_page_t, shares_stride),
    ROW(rmm_control_page_t, shares_count),
    ROW(rmm_control_page_t, reserved1),
    ROW(rmm_control_page_t, locations),
    ROW(rmm_control_page_t, slots),
    ROW(rmm_control_page_t, shares),
};

static const row_t control_share_rows[] = {
    ROW(rmm_control_share_t, share_bytes), ROW(rmm_control_share_t, limit_bytes),
    ROW(rmm_control_share_t, answered),    ROW(rmm_control_share_t, reserved0),
    ROW(rmm_control_share_t, group),
};

static const row_t control_location_rows[] = {
    ROW(rmm_control_location_t, peak_reset),
    ROW(rmm_control_location_t, node_peak_reset),
    ROW(rmm_control_location_t, limit_bytes),
};

static const row_t control_slot_rows[] = {
    ROW(rmm_control_slot_t, peak_reset),
    ROW(rmm_control_slot_t, limit_of),
    ROW(rmm_control_slot_t, limit_bytes),
};

static const row_t leaks_rows[] = {
    ROW(rmm_leaks_header_t, magic),          ROW(rmm_leaks_header_t, version_major),
    ROW(rmm_leaks_header_t, version_minor),  ROW(rmm_leaks_header_t, header_bytes),
    ROW(rmm_leaks_header_t, file_bytes),     ROW(rmm_leaks_header_t, rows_offset),
    ROW(rmm_leaks_header_t, rows_stride),    ROW(rmm_leaks_header_t, rows_count),
    ROW(rmm_leaks_header_t, ready),          ROW(rmm_leaks_header_t, rows_used),
    ROW(rmm_leaks_header_t, reserved0),      ROW(rmm_leaks_header_t, unlisted),
    ROW(rmm_leaks_header_t, modules_offset), ROW(rmm_leaks_header_t, modules_stride),
    ROW(rmm_leaks_header_t, modules_count),  ROW(rmm_leaks_header_t, modules_used),
    ROW(rmm_leaks_header_t, reserved1),
};

static const row_t leaks_module_rows[] = {
    ROW(rmm_leaks_module_t, begin),
    ROW(rmm_leaks_module_t, end),
    ROW(rmm_leaks_module_t, base),
    ROW(rmm_leaks_module_t, path),
};

static const row_t leak_rows[] = {
    ROW(rmm_leaks_row_t, sequence),     ROW(rmm_leaks_row_t, resource_id),
    ROW(rmm_leaks_row_t, address),      ROW(rmm_leaks_row_t, bytes),
    ROW(rmm_leaks_row_t, allocated_ns), ROW(rmm_leaks_row_t, stream),
    ROW(rmm_leaks_row_t, thread),       ROW(rmm_leaks_row_t, device),
    ROW(rmm_leaks_row_t, frame_count),  ROW(rmm_leaks_row_t, reserved0),
    ROW(rmm_leaks_row_t, frames),       ROW(rmm_leaks_row_t, reserved1),
};

static const row_t blocks_rows[] = {
    ROW(rmm_blocks_header_t, magic),
    ROW(rmm_blocks_header_t, version_major),
    ROW(rmm_blocks_header_t, version_minor),
    ROW(rmm_blocks_header_t, header_bytes),
    ROW(rmm_blocks_header_t, file_bytes),
    ROW(rmm_blocks_header_t, taken_ns),
    ROW(rmm_blocks_header_t, number),
    ROW(rmm_blocks_header_t, ready),
    ROW(rmm_blocks_header_t, resources_offset),
    ROW(rmm_blocks_header_t, resources_stride),
    ROW(rmm_blocks_header_t, resources_count),
    ROW(rmm_blocks_header_t, rows_offset),
    ROW(rmm_blocks_header_t, rows_stride),
    ROW(rmm_blocks_header_t, rows_count),
    ROW(rmm_blocks_header_t, reserved0),
};

static const row_t blocks_resource_rows[] = {
    ROW(rmm_blocks_resource_t, resource_id),
    ROW(rmm_blocks_resource_t, reserved0),
    ROW(rmm_blocks_resource_t, first_row),
    ROW(rmm_blocks_resource_t, row_count),
    ROW(rmm_blocks_resource_t, left_out_count),
    ROW(rmm_blocks_resource_t, left_out_bytes),
    ROW(rmm_blocks_resource_t, moving_bytes),
    ROW(rmm_blocks_resource_t, reserved1),
};

static const row_t block_rows[] = {
    ROW(rmm_blocks_row_t, address), ROW(rmm_blocks_row_t, bytes),
    ROW(rmm_blocks_row_t, stream),  ROW(rmm_blocks_row_t, padding),
    ROW(rmm_blocks_row_t, state),
};

typedef struct table {
    const char *heading;
    const row_t *rows;
    size_t count, bytes; /* of the record */
} table_t;

#define TABLE(heading, rows, record)                                                   \
    {                                                                                  \
        heading, rows, sizeof(rows) / sizeof((rows)[0]), sizeof(record)                \
    }

static const table_t tables[] = {
    TABLE("## File", file_rows, rmm_segment_layout_t),
    TABLE("## Header", header_rows, rmm_segment_header_t),
    TABLE("## Schema", schema_rows, rmm_segment_schema_t),
    TABLE("## Location", location_rows, rmm_segment_location_t),
    TABLE("## Slot", slot_rows, rmm_segment_slot_t),
    TABLE("## Stripe", stripe_rows, rmm_segment_stripe_t),
    TABLE("## Log", log_rows, rmm_segment_log_t),
    TABLE("## Log record", log_record_rows, rmm_segment_log_record_t),
    TABLE("## Refusals", refusals_rows, rmm_segment_refusals_t),
    TABLE("## Refusal record", refusal_rows, rmm_segment_refusal_t),
    TABLE("## Events file", events_rows, rmm_events_header_t),
    TABLE("## Event", event_rows, rmm_events_record_t),
    TABLE("## Control page", control_rows, rmm_control_page_t),
    TABLE("## Control of a location", control_location_rows, rmm_control_location_t),
    TABLE("## Control of a slot", control_slot_rows, rmm_control_slot_t),
    TABLE("## Share of a location", control_share_rows, rmm_control_share_t),
    TABLE("## Leaks", leaks_rows, rmm_leaks_header_t),
    TABLE("## A module", leaks_module_rows, rmm_leaks_module_t),
    TABLE("## A leak", leak_rows, rmm_leaks_row_t),
    TABLE("## Blocks", blocks_rows, rmm_blocks_header_t),
    TABLE("## Blocks of a resource", blocks_resource_rows, rmm_blocks_resource_t),
    TABLE("## A block", block_rows, rmm_blocks_row_t),
};

/* The section's rows "| offset | bytes | type | `field` | ..."; returns how many. */
static size_t read_rows(
    FILE *document, const char *heading, row_t rows[ROWS_MAX], char names[ROWS_MAX][64])
{
    char line[LINE_BYTES];
    size_t count = 0;

    find_heading(document, heading);
    while (count < ROWS_MAX && fgets(line, sizeof(line), document) != NULL &&
           strncmp(line, "## ", 3) != 0) {
        row_t *row = &rows[count];

        if (sscanf(
                line, "| %zu | %zu |%*[^|]| `%63[a-z0-9_]` |", &row->offset,
                &row->bytes, names[count]) == 3) {
            row->field = names[count++];
        }
    }
    return count;
}

TEST_CASE(the_document_describes_every_byte)
{
    FILE *document = open_document("segment-format.md");
    static char names[ROWS_MAX][64];
    static row_t rows[ROWS_MAX];

    for (size_t t = 0; t < sizeof(tables) / sizeof(tables[0]); t++) {
        size_t end = 0;

        assert_int_equal(
            read_rows(document, tables[t].heading, rows, names), tables[t].count);
        for (size_t i = 0; i < tables[t].count; i++) {
            const row_t *row = &tables[t].rows[i];

            assert_string_equal(rows[i].field, row->field);
            if (rows[i].offset != row->offset || rows[i].bytes != row->bytes) {
                fail_msg(
                    "%s: %s is at %zu with %zu bytes", tables[t].heading, row->field,
                    row->offset, row->bytes);
            }
            assert_int_equal(row->offset, end); /* no hole before it */
            end = row->offset + row->bytes;
        }
        assert_int_equal(end, tables[t].bytes);
    }
    fclose(document);
}

typedef struct constant {
    const char *name;
    uint64_t value;
} constant_t;

#define CONSTANT(name)                                                                 \
    {                                                                                  \
#name, name                                                                    \
    }

static const constant_t constants[] = {
    CONSTANT(RMM_SEGMENT_MAGIC),
    CONSTANT(RMM_CONTROL_MAGIC),
    CONSTANT(RMM_LEAKS_MAGIC),
    CONSTANT(RMM_SEGMENT_MAJOR),
    CONSTANT(RMM_SEGMENT_MINOR),
    CONSTANT(RMM_SEGMENT_LOCATIONS),
    CONSTANT(RMM_SEGMENT_HOST_LOCATION),
    CONSTANT(RMM_SEGMENT_SLOTS),
    CONSTANT(RMM_SEGMENT_STRIPES),
    CONSTANT(RMM_SEGMENT_MAX_BYTES),
    CONSTANT(RMM_SEGMENT_RECORD_BYTES),
    CONSTANT(RMM_SEGMENT_STRIPES_BYTES),
    CONSTANT(RMM_SCHEMA_MAX),
    CONSTANT(RMM_LOG_RECORDS),
    CONSTANT(RMM_LOG_TEXT_BYTES),
    CONSTANT(RMM_REFUSAL_RECORDS),
};

TEST_CASE(the_document_has_the_constants)
{
    const size_t count = sizeof(constants) / sizeof(constants[0]);
    FILE *document = open_document("segment-format.md");
    char line[LINE_BYTES], name[64], value[64];
    size_t found = 0;

    find_heading(document, "## Constants");
    while (fgets(line, sizeof(line), document) != NULL &&
           strncmp(line, "## ", 3) != 0) {
        if (sscanf(line, "| `%63[A-Z_]` | %63s |", name, value) == 2) {
            assert_true(found < count);
            assert_string_equal(name, constants[found].name);
            assert_int_equal(strtoull(value, NULL, 0), constants[found].value);
            found++;
        }
    }
    assert_int_equal(found, count);
    fclose(document);
}

TEST_CASE(the_magic_numbers_spell_the_documented_letters)
{
    const uint64_t segment = RMM_SEGMENT_MAGIC, control = RMM_CONTROL_MAGIC;

    assert_memory_equal(&segment, "RMMCSEG1", 8);
    assert_memory_equal(&control, "RMMCCTL1", 8);
}
