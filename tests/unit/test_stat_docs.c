/* SPDX-License-Identifier: Apache-2.0 */
/* docs/statistics.md against stat_fields.h: names, kinds, units and texts, in order. */
#include "harness/harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "segment/segment_reader.h"

#define LINE_BYTES 512
#define COMMON_STATS RMM_LOCATION_STAT_node_peak_bytes /* both lists begin with them */

static FILE *open_document(void)
{
    const char *root = getenv("RMM_SOURCE_DIR");
    char path[512];
    FILE *document;

    if (root == NULL) {
        fail_msg("RMM_SOURCE_DIR is not set: run this through ctest");
    }
    snprintf(path, sizeof(path), "%s/docs/statistics.md", root);
    document = fopen(path, "re");
    if (document == NULL) {
        fail_msg("cannot open %s", path);
    }
    return document;
}

static const char *kind_name(uint16_t kind)
{
    static const char *const names[] = {"", "gauge", "counter", "mark"};

    return names[kind];
}

static const char *unit_name(uint16_t unit)
{
    static const char *const names[] = {"", "bytes", "count"};

    return names[unit];
}

/* The next line of the document is this statistic's row. */
static void assert_row(FILE *document, const rmm_stat_desc_t *stat)
{
    char line[LINE_BYTES], expected[LINE_BYTES];

    assert_non_null(fgets(line, sizeof(line), document));
    snprintf(
        expected, sizeof(expected), "| `%s` | %s | %s | %s |\n", stat->name,
        kind_name(stat->kind), unit_name(stat->unit), stat->help);
    assert_string_equal(line, expected);
}

/* The heading, then its table's head, then exactly these rows. */
static void assert_section(
    const char *heading, const rmm_stat_desc_t *stats, uint32_t from, uint32_t to)
{
    FILE *document = open_document();
    char line[LINE_BYTES] = "";

    while (strcmp(line, heading) != 0) {
        if (fgets(line, sizeof(line), document) == NULL) {
            fail_msg("no heading \"%s\"", heading);
        }
        line[strcspn(line, "\n")] = '\0';
    }
    while (strcmp(line, "|---|---|---|---|\n") != 0) {
        assert_non_null(fgets(line, sizeof(line), document));
    }
    for (uint32_t i = from; i < to; i++) {
        assert_row(document, &stats[i]);
    }
    assert_non_null(fgets(line, sizeof(line), document));
    assert_string_equal(line, "\n");
    fclose(document);
}

static void the_document_repeats_the_list(void **state)
{
    (void)state;
    assert_section(
        "## At a location and at a resource", rmm__location_stats, 0, COMMON_STATS);
    assert_section(
        "## At a location only", rmm__location_stats, COMMON_STATS,
        RMM_LOCATION_STAT_COUNT);
    assert_section(
        "## At a resource only", rmm__slot_stats, COMMON_STATS, RMM_SLOT_STAT_COUNT);
}

static void places_and_slots_begin_alike(void **state)
{
    (void)state;
    for (int i = 0; i < COMMON_STATS; i++) {
        assert_string_equal(rmm__location_stats[i].name, rmm__slot_stats[i].name);
        assert_int_equal(rmm__location_stats[i].kind, rmm__slot_stats[i].kind);
        assert_int_equal(rmm__location_stats[i].unit, rmm__slot_stats[i].unit);
        assert_int_equal(
            rmm__location_stats[i].offset - rmm__location_stats[0].offset,
            rmm__slot_stats[i].offset - rmm__slot_stats[0].offset);
    }
}

static void names_end_in_their_unit(void **state)
{
    (void)state;
    for (int i = 0; i < RMM_SLOT_STAT_COUNT; i++) {
        const rmm_stat_desc_t *stat = &rmm__slot_stats[i];
        const char *tail = strrchr(stat->name, '_');

        assert_non_null(tail);
        assert_string_equal(tail, stat->unit == RMM_UNIT_BYTES ? "_bytes" : "_count");
        assert_true(strlen(stat->name) < 40);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_document_repeats_the_list),
        cmocka_unit_test(places_and_slots_begin_alike),
        cmocka_unit_test(names_end_in_their_unit),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
