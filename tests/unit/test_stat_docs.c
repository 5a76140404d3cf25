/* SPDX-License-Identifier: Apache-2.0 */
/*
 * docs/statistics.md against stat_fields.h: names, kinds, units and texts, in order. Where a row
 * is missing or wrong the test says what to write there.
 */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "harness/document.h"
#include "segment/segment_reader.h"

/* The document's words for what the list says. */
#define KIND_GAUGE "gauge"
#define KIND_COUNTER "counter"
#define KIND_MARK "mark"
#define UNIT_BYTES "bytes"
#define UNIT_COUNT "count"
#define X(field, kind, unit, help)                                                     \
    "| `" #field "` | " KIND_##kind " | " UNIT_##unit " | " help " |\n",

static const char *const common_rows[] = {RMM_COMMON_STATS(X) NULL};
static const char *const location_rows[] = {RMM_LOCATION_ONLY_STATS(X) NULL};
static const char *const slot_rows[] = {RMM_SLOT_FREE_STATS(X) RMM_SLOT_ONLY_STATS(X)
                                            NULL};
#undef X

/* Moves behind the head of the table below the heading. */
static void find_table(FILE *document, const char *heading)
{
    char line[LINE_BYTES] = "";

    find_heading(document, heading);
    while (strcmp(line, "|---|---|---|---|\n") != 0) {
        assert_non_null(fgets(line, sizeof(line), document));
    }
}

/* The heading, then its table's head, then exactly these rows. */
static void assert_section(const char *heading, const char *const rows[])
{
    FILE *document = open_document("statistics.md");
    const char *before = "|---|---|---|---|\n";
    char line[LINE_BYTES] = "";

    find_table(document, heading);
    for (; *rows != NULL; before = *rows++) {
        if (fgets(line, sizeof(line), document) == NULL || strcmp(line, *rows) != 0) {
            fail_msg(
                "docs/statistics.md, \"%s\": write below the row\n%sthe row\n%s"
                "Now there is\n%s",
                heading, before, *rows,
                strcmp(line, "\n") != 0 ? line : "the end of the table");
        }
    }
    if (fgets(line, sizeof(line), document) != NULL && strcmp(line, "\n") != 0) {
        fail_msg(
            "docs/statistics.md, \"%s\": no statistic of the list is\n%s", heading,
            line);
    }
    fclose(document);
}

TEST_CASE(the_document_repeats_the_list)
{
    assert_section("## At a location and at a resource", common_rows);
    assert_section("## At a location only", location_rows);
    assert_section("## At a resource only", slot_rows);
}

static void assert_name_ends_in_its_unit(const rmm_stat_desc_t *stat)
{
    const char *tail = strrchr(stat->name, '_');

    assert_non_null(tail);
    assert_string_equal(tail, stat->unit == RMM_UNIT_BYTES ? "_bytes" : "_count");
    assert_true(strlen(stat->name) < 40);
}

TEST_CASE(names_end_in_their_unit)
{
    for (int i = 0; i < RMM_LOCATION_STAT_COUNT; i++) {
        assert_name_ends_in_its_unit(&rmm__location_stats[i]);
    }
    for (int i = 0; i < RMM_SLOT_STAT_COUNT; i++) {
        assert_name_ends_in_its_unit(&rmm__slot_stats[i]);
    }
}
