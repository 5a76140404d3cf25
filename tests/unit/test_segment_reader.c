/* SPDX-License-Identifier: Apache-2.0 */
/* What the reader accepts, refuses and reads, on segments made by hand. */
#include "harness/harness.h"

#include "unit/segment_sample.h"

#include <stdio.h>

static rmm_segment_layout_t sample;
static rmm_segment_t segment = {.fd = -1};
static rmm_record_t record;

static rmm_segment_verdict_t attach_to(const void *bytes, size_t size, char *reason)
{
    int fd = sample_file(bytes, size);
    rmm_segment_verdict_t verdict;

    rmm__segment_close(&segment);
    verdict = rmm__segment_attach(&segment, fd, reason);

    if (verdict != RMM_SEGMENT_GOOD) {
        assert_true(strlen(reason) > 0);
        rmm__segment_close(&segment);
    }
    return verdict;
}

/* The sample as it stands now, which must be good. */
static void attach_sample(void)
{
    char reason[RMM_SEGMENT_REASON_BYTES];

    if (attach_to(&sample, sizeof(sample), reason) != RMM_SEGMENT_GOOD) {
        fail_msg("refused: %s", reason);
    }
}

static int make_sample(void **state)
{
    sample_make(&sample);
    return 0;
}

static int close_segment(void **state)
{
    rmm__segment_close(&segment);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, make_sample, close_segment)

/* --- what is refused ---------------------------------------------------------------- */

/* What breaks the sample, and a part of what the reader says of it. */
#define BREAKS(BREAK)                                                                  \
    BREAK(magic, header->magic = 1, "magic")                                           \
    BREAK(no_magic, header->magic = 0, "being made")                                   \
    BREAK(not_ready, atomic_init(&header->ready, 0), "being made")                     \
    BREAK(major, header->version_major++, "format is 2.0")                             \
    BREAK(header_short, header->header_bytes = 440, "header")                          \
    BREAK(header_long, header->header_bytes = UINT32_MAX, "header")                    \
    BREAK(longer_than_file, header->segment_bytes += 1, "header")                      \
    BREAK(segment_short, header->segment_bytes = 447, "header")                        \
    BREAK(locations_inside_header, header->locations_offset = 440, "locations: ")      \
    BREAK(locations_outside, header->locations_count = 2000, "locations: ")            \
    BREAK(locations_overflow, header->locations_count = UINT32_MAX;                    \
          header->locations_stride = 1024, "locations: ")                              \
    BREAK(locations_8_behind, header->locations_count = 1;                             \
          header->locations_offset =                                                   \
              (uint32_t)(header->segment_bytes - header->locations_stride + 8),        \
          "locations: ")                                                               \
    BREAK(                                                                             \
        locations_offset_high, header->locations_offset = UINT32_MAX - 7,              \
        "locations: ")                                                                 \
    BREAK(locations_odd_offset, header->locations_offset += 4, "locations: ")          \
    BREAK(locations_narrow, header->locations_stride = 184, "locations: 184 is")       \
    BREAK(locations_wide, header->locations_stride = 1032, "locations: 1032 is")       \
    BREAK(locations_odd_stride, header->locations_stride = 388, ": 388 is")            \
    BREAK(locations_no_stride, header->locations_stride = 0, ": 0 is")                 \
    BREAK(slots_narrow, header->slots_stride = 120, "slots: 120 is")                   \
    BREAK(slots_outside, header->slots_count = 2000, "slots: ")                        \
    BREAK(log_narrow, header->log_stride = 24, "log: 24 is")                           \
    BREAK(log_outside, header->log_count = 1000, "log: ")                              \
    BREAK(                                                                             \
        log_without_head, header->log_offset = header->header_bytes,                   \
        "no room for its head")                                                        \
    BREAK(stripes_odd_stride, header->stripes_stride = 60, "60 bytes, 16 of them")     \
    BREAK(stripes_no_stride, header->stripes_stride = 0, "0 bytes, 16 of them")        \
    BREAK(stripes_many, header->stripes_count = 65, "64 bytes, 65 of them")            \
    BREAK(stripes_8_more, header->stripes_count = 1;                                   \
          header->stripes_stride = RMM_SEGMENT_STRIPES_BYTES + 8,                      \
          "4104 bytes, 1 of them")                                                     \
    BREAK(stripes_overflow, header->stripes_count = 0x80000000u;                       \
          header->stripes_stride = 0x80000000u, "stripes")                             \
    BREAK(stripes_outside, header->slot_stripes_offset += 64 * 16 * 256, "stripes: ")  \
    BREAK(stripes_inside_header, header->location_stripes_offset = 504, "stripes: ")   \
    BREAK(stripes_of_none, header->stripes_count = 0, "in a stripe")                   \
    BREAK(                                                                             \
        stripe_word_outside, schema[RMM_LOCATION_STAT_total_bytes].stripe_plus = 64,   \
        "at offsets 64 and 65535")                                                     \
    BREAK(                                                                             \
        stripe_word_odd, schema[RMM_LOCATION_STAT_padding_bytes].stripe_minus = 4,     \
        "at offsets 24 and 4 is not in a stripe")                                      \
    BREAK(schema_narrow, header->schema_stride = 48, "schema: 48 is")                  \
    BREAK(schema_outside, header->schema_count = UINT32_MAX, "schema: ")               \
    BREAK(stat_unnamed, schema[3].name[0] = '\0', "name")                              \
    BREAK(stat_endless, memset(schema[3].name, 'a', 40), "name")                       \
    BREAK(stat_slash, strcpy(schema[3].name, "../passwd"), "name")                     \
    BREAK(stat_capital, strcpy(schema[3].name, "Bytes"), "name")                       \
    BREAK(stat_digit, strcpy(schema[3].name, "1st"), "name")                           \
    BREAK(                                                                             \
        stat_twice, strcpy(schema[3].name, "current_bytes"),                           \
        "current_bytes is there twice")                                                \
    BREAK(                                                                             \
        stat_outside, schema[3].offset = sizeof(rmm_segment_location_t),               \
        "at offset 384 is not in a record of 384")                                     \
    BREAK(stat_far_outside, schema[3].offset = UINT32_MAX - 7, "of 384")               \
    BREAK(stat_odd_offset, schema[3].offset = 196, "at offset 196")

#define BREAK_FUNCTION(name, statement, reason)                                        \
    static void break_##name(                                                          \
        rmm_segment_header_t *header, rmm_segment_schema_t *schema)                    \
    {                                                                                  \
        statement;                                                                     \
    }
BREAKS(BREAK_FUNCTION)

#define BREAK_ROW(name, statement, reason) {#name, break_##name, reason},
static const struct {
    const char *what;
    void (*break_it)(rmm_segment_header_t *header, rmm_segment_schema_t *schema);
    const char *reason;
} broken[] = {BREAKS(BREAK_ROW)};

TEST_CASE(refuses_what_does_not_hold_together)
{
    char reason[RMM_SEGMENT_REASON_BYTES];

    for (size_t i = 0; i < sizeof(broken) / sizeof(broken[0]); i++) {
        bool unfinished = strcmp(broken[i].reason, "being made") == 0;

        sample_make(&sample);
        broken[i].break_it(&sample.header, sample.schema);
        if (attach_to(&sample, sizeof(sample), reason) !=
                (unfinished ? RMM_SEGMENT_NOT_READY : RMM_SEGMENT_REFUSED) ||
            strstr(reason, broken[i].reason) == NULL) {
            fail_msg("%s: \"%s\"", broken[i].what, reason);
        }
    }
}

CASE(refuses_every_truncation)
{
    char reason[RMM_SEGMENT_REASON_BYTES];

    for (size_t size = 0; size < sizeof(sample); size += size < 5000 ? 1 : 997) {
        assert_int_equal(attach_to(&sample, size, reason), RMM_SEGMENT_REFUSED);
    }
}

CASE(refuses_a_file_larger_than_any_segment)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    int fd = sample_file(&sample, sizeof(sample));

    assert_int_equal(ftruncate(fd, RMM_SEGMENT_MAX_BYTES + 1), 0);
    assert_int_equal(rmm__segment_attach(&segment, fd, reason), RMM_SEGMENT_REFUSED);
    assert_non_null(strstr(reason, "more than a segment may have"));
    assert_int_equal(ftruncate(fd, RMM_SEGMENT_MAX_BYTES), 0);
    assert_int_equal(rmm__segment_attach(&segment, fd, reason), RMM_SEGMENT_GOOD);
}

/* --- what is read ------------------------------------------------------------------- */

CASE(reads_every_figure_where_it_is)
{
    uint64_t value;

    attach_sample();
    assert_int_equal(rmm__segment_location_count(&segment), 33);
    assert_int_equal(rmm__segment_slot_count(&segment), 3);

    assert_true(rmm__segment_read_location(&segment, 32, &record));
    for (uint32_t i = 0; i < RMM_LOCATION_STAT_COUNT; i++) {
        assert_true(rmm__segment_location_stat(
            &segment, &record, (rmm_location_stat_t)i, &value));
        assert_int_equal(value, 32000 + rmm__location_stats[i].offset);
        assert_int_equal(rmm__record_schema_value(&record, &segment.schema[i]), value);
    }
    assert_true(rmm__segment_read_slot(&segment, 2, &record, NULL));
    for (uint32_t i = 0; i < RMM_SLOT_STAT_COUNT; i++) {
        assert_true(
            rmm__segment_slot_stat(&segment, &record, (rmm_slot_stat_t)i, &value));
        assert_int_equal(value, 2000 + rmm__slot_stats[i].offset);
    }
    assert_false(rmm__segment_read_location(&segment, 1, &record));
    assert_false(rmm__segment_read_location(&segment, UINT32_MAX, &record));
    assert_false(rmm__segment_read_slot(&segment, 1, &record, NULL));
    assert_false(rmm__segment_read_slot(&segment, 256, &record, NULL));
}

CASE(strings_come_out_terminated_and_printable)
{
    memset(sample.header.comm, 'c', sizeof(sample.header.comm));
    memset(sample.header.driver, '\t', sizeof(sample.header.driver));
    memset(sample.header.cmdline, 0x7f, sizeof(sample.header.cmdline));
    memset(sample.locations[0].name, '\n', sizeof(sample.locations[0].name));
    memset(sample.slots[0].type, 0xff, sizeof(sample.slots[0].type));
    strcpy(
        sample.slots[0].name, "gr\xc3\xbc\xc3\x9f"
                              "e\x1b[2J");
    attach_sample();
    assert_int_equal(strlen(segment.header.comm), 31);
    assert_int_equal(
        strspn(segment.header.driver, "?"), sizeof(segment.header.driver) - 1);
    assert_int_equal(
        strspn(segment.header.cmdline, "?"), sizeof(segment.header.cmdline) - 1);
    assert_true(rmm__segment_read_location(&segment, 0, &record));
    assert_int_equal(strlen(rmm__record_location(&record)->name), 63);
    assert_int_equal(strspn(rmm__record_location(&record)->name, "?"), 63);
    assert_true(rmm__segment_read_slot(&segment, 0, &record, NULL));
    assert_int_equal(strspn(rmm__record_slot(&record)->type, "?"), 23);
    assert_string_equal(
        rmm__record_slot(&record)->name, "gr\xc3\xbc\xc3\x9f"
                                         "e?[2J");
}

CASE(a_writer_killed_in_the_middle_is_torn_not_endless)
{
    bool torn = false;

    atomic_init(&sample.slots[0].sequence, 7);
    atomic_init(&sample.slots[2].generation, 3);
    attach_sample();
    assert_true(rmm__segment_read_slot(&segment, 0, &record, &torn));
    assert_true(torn);
    assert_string_equal(rmm__record_slot(&record)->name, "a pool");
    assert_false(rmm__segment_read_slot(&segment, 2, &record, &torn));
    assert_true(rmm__segment_read_slot_identity(&segment, 0, &record));
    assert_false(rmm__segment_read_slot_identity(&segment, 2, &record));
}

CASE(an_identity_is_that_of_the_record_without_figures)
{
    static const unsigned char nothing[sizeof(rmm_record_t)];
    const size_t identity = offsetof(rmm_segment_slot_t, figures);
    rmm_record_t alone;

    strcpy(sample.slots[0].name, "e\x1b[2J");
    attach_sample();
    memset(&alone, 0xff, sizeof(alone));
    assert_true(rmm__segment_read_slot(&segment, 0, &record, NULL));
    assert_true(rmm__segment_read_slot_identity(&segment, 0, &alone));
    assert_memory_equal(alone.bytes, record.bytes, identity);
    assert_memory_equal(
        alone.bytes + identity, nothing, sizeof(alone.bytes) - identity);
    assert_false(rmm__segment_read_slot_identity(&segment, 1, &alone)); /* empty */
    assert_false(rmm__segment_read_slot_identity(&segment, 256, &alone));
    assert_int_equal(ftruncate(segment.fd, 1000), 0);
    assert_false(rmm__segment_read_slot_identity(&segment, 0, &alone));
}

CASE(a_file_cut_while_open_reads_as_nothing)
{
    attach_sample();
    assert_int_equal(ftruncate(segment.fd, 1000), 0);
    assert_false(rmm__segment_read_location(&segment, 0, &record));
    assert_false(rmm__segment_read_slot(&segment, 0, &record, NULL));
    assert_int_equal(ftruncate(segment.fd, 10), 0);
    assert_int_equal(rmm__segment_slot_count(&segment), 0);
}

/* A slot stands there, and belongs to the table no more. */
CASE(a_slot_behind_the_table_is_not_read)
{
    sample.header.slots_count = 2;
    attach_sample();
    assert_true(rmm__segment_read_slot(&segment, 0, &record, NULL));
    assert_false(rmm__segment_read_slot(&segment, 2, &record, NULL));
}

CASE(a_lie_about_used_slots_is_bounded)
{
    atomic_init(&sample.header.slots_high, UINT32_MAX);
    attach_sample();
    assert_int_equal(rmm__segment_slot_count(&segment), RMM_SEGMENT_SLOTS);
}

/* --- stripes ------------------------------------------------------------------------ */

static uint64_t location_stat(rmm_location_stat_t stat)
{
    uint64_t value;

    assert_true(rmm__segment_read_location(&segment, 0, &record));
    assert_true(rmm__segment_location_stat(&segment, &record, stat, &value));
    return value;
}

static uint64_t slot_stat(rmm_slot_stat_t stat)
{
    uint64_t value;

    assert_true(rmm__segment_read_slot(&segment, 2, &record, NULL));
    assert_true(rmm__segment_slot_stat(&segment, &record, stat, &value));
    return value;
}

CASE(a_figure_is_the_records_word_and_all_stripes)
{
    const size_t last = RMM_SEGMENT_STRIPES - 1;

    atomic_init(&sample.locations[0].total_bytes, 1000000);
    atomic_init(&sample.locations[0].padding_bytes, 50);
    atomic_init(&sample.location_stripes[0][0].total_bytes, 10);
    atomic_init(&sample.location_stripes[0][last].total_bytes, 7);
    atomic_init(&sample.location_stripes[1][0].total_bytes, 1 << 30); /* a neighbour */
    atomic_init(&sample.location_stripes[0][3].padding_added, 100);
    atomic_init(&sample.location_stripes[0][4].padding_removed, 149);
    atomic_init(&sample.slots[2].freed_count, 5);
    for (size_t i = 0; i <= last; i++) {
        atomic_init(&sample.slot_stripes[2][i].freed_count, 1);
        atomic_init(&sample.slot_stripes[1][i].freed_count, 100);
    }
    attach_sample();
    assert_int_equal(location_stat(RMM_LOCATION_STAT_total_bytes), 1000017);
    assert_int_equal(location_stat(RMM_LOCATION_STAT_padding_bytes), 1);
    assert_int_equal(slot_stat(RMM_SLOT_STAT_freed_count), 21);
    assert_int_equal(
        slot_stat(RMM_SLOT_STAT_oom_count),
        2000 + offsetof(rmm_segment_slot_t, oom_count));
}

CASE(a_gauge_is_never_negative)
{
    atomic_init(&sample.slots[2].padding_bytes, 50);
    atomic_init(&sample.slot_stripes[2][3].padding_removed, 51);
    attach_sample();
    assert_int_equal(slot_stat(RMM_SLOT_STAT_padding_bytes), 0);

    atomic_init(&sample.slots[2].padding_bytes, (uint64_t)-50); /* freed in one way */
    atomic_init(&sample.slot_stripes[2][3].padding_removed, 0);
    atomic_init(&sample.slot_stripes[2][3].padding_added, 60); /* taken in the other */
    attach_sample();
    assert_int_equal(slot_stat(RMM_SLOT_STAT_padding_bytes), 10);
}

CASE(sums_of_a_file_that_lies_do_not_wrap)
{
    atomic_init(&sample.slots[2].total_bytes, 10);
    atomic_init(&sample.slot_stripes[2][0].total_bytes, UINT64_MAX);
    atomic_init(&sample.slot_stripes[2][1].total_bytes, UINT64_MAX - 5);
    atomic_init(&sample.slot_stripes[2][1].padding_removed, UINT64_MAX);
    attach_sample();
    assert_true(slot_stat(RMM_SLOT_STAT_total_bytes) == UINT64_MAX - 1);
    assert_true(slot_stat(RMM_SLOT_STAT_padding_bytes) <= INT64_MAX);
}

CASE(free_bytes_may_be_what_is_not_live)
{
    rmm_segment_slot_t *slot = &sample.slots[2];

    atomic_init(&slot->free_bytes, 10000);
    atomic_init(&slot->current_bytes, 1000);
    atomic_init(&slot->padding_bytes, 0);
    atomic_init(&sample.slot_stripes[2][5].padding_added, 30);
    atomic_init(&sample.slot_stripes[2][6].padding_removed, 10);
    attach_sample();
    assert_int_equal(slot_stat(RMM_SLOT_STAT_free_bytes), 10000);

    atomic_init(&slot->flags, RMM_SLOT_FREE_IS_REST);
    attach_sample();
    assert_int_equal(slot_stat(RMM_SLOT_STAT_free_bytes), 8980);
    assert_int_equal(slot_stat(RMM_SLOT_STAT_padding_bytes), 20);

    atomic_init(&slot->current_bytes, 10001);
    attach_sample();
    assert_int_equal(slot_stat(RMM_SLOT_STAT_free_bytes), 0);
}

/* --- other versions ----------------------------------------------------------------- */

CASE(an_older_segment_lacks_what_it_lacks)
{
    const uint32_t gone = RMM_LOCATION_STAT_node_peak_bytes;
    uint64_t value = 5;

    sample.schema[gone] = sample.schema[--sample.header.schema_count];
    attach_sample();
    assert_true(rmm__segment_read_location(&segment, 0, &record));
    assert_false(rmm__segment_location_stat(
        &segment, &record, RMM_LOCATION_STAT_node_peak_bytes, &value));
    assert_int_equal(value, 5);
}

/* Whatever the buffer held before. */
CASE(what_a_shorter_record_lacks_is_zero)
{
    attach_sample();
    memset(&record, 0xff, sizeof(record));
    assert_true(rmm__segment_read_location(&segment, 0, &record));
    for (size_t i = sizeof(rmm_segment_location_t); i < sizeof(record.bytes); i++) {
        assert_int_equal(record.bytes[i], 0);
    }
}

/* Wider locations, a new figure in the new part, a new kind of record, a longer schema
 * entry, unknown kinds. */
CASE(a_newer_segment_shows_its_new_figures)
{
    enum { STRIDE = 640, SCHEMA_STRIDE = 64, SCHEMA_AT = 512, LOCATIONS_AT = 4096 };
    static unsigned char bytes[64 * 1024];
    rmm_segment_header_t *header = (rmm_segment_header_t *)(void *)bytes;
    rmm_segment_schema_t extra = {
        .scope = RMM_SCHEMA_LOCATION,
        .kind = 77,
        .unit = 88,
        .stripe_plus = RMM_STRIPE_NONE,
        .stripe_minus = RMM_STRIPE_NONE};
    rmm_segment_schema_t foreign = {.scope = 9, .offset = 1 << 30};
    rmm_segment_schema_t current = sample.schema[0];
    uint64_t value = 123456789;
    char reason[RMM_SEGMENT_REASON_BYTES];

    strcpy(extra.name, "energy_joules");
    strcpy(foreign.name, "of_a_ring");
    extra.offset = STRIDE - 8;
    memset(bytes, 0, sizeof(bytes));
    memcpy(bytes, &sample, sizeof(*header));
    header->version_minor = 9;
    header->header_bytes = SCHEMA_AT;
    header->segment_bytes = sizeof(bytes);
    header->schema_offset = SCHEMA_AT;
    header->schema_stride = SCHEMA_STRIDE;
    header->schema_count = 3;
    header->locations_offset = LOCATIONS_AT;
    header->locations_stride = STRIDE;
    header->locations_count = 40;
    header->slots_offset = LOCATIONS_AT + 40 * STRIDE;
    header->slots_count = 1;
    header->log_count = 0;
    header->stripes_count = 0;
    memcpy(bytes + SCHEMA_AT, &foreign, sizeof(foreign));
    current.stripe_plus = RMM_STRIPE_NONE;
    memcpy(bytes + SCHEMA_AT + SCHEMA_STRIDE, &current, sizeof(current));
    memcpy(bytes + SCHEMA_AT + 2 * SCHEMA_STRIDE, &extra, sizeof(extra));
    memcpy(bytes + LOCATIONS_AT + 39 * STRIDE, &sample.locations[32], 384);
    memcpy(bytes + LOCATIONS_AT + 40 * STRIDE - 8, &value, sizeof(value));

    if (attach_to(bytes, sizeof(bytes), reason) != RMM_SEGMENT_GOOD) {
        fail_msg("refused: %s", reason);
    }
    assert_int_equal(segment.header.schema_count, 2);
    assert_int_equal(rmm__segment_location_count(&segment), 40);
    assert_true(rmm__segment_read_location(&segment, 39, &record));
    assert_string_equal(segment.schema[1].name, "energy_joules");
    assert_int_equal(segment.schema[1].kind, RMM_KIND_GAUGE);
    assert_int_equal(segment.schema[1].unit, RMM_UNIT_COUNT);
    assert_int_equal(rmm__record_schema_value(&record, &segment.schema[1]), 123456789);
    assert_true(rmm__segment_location_stat(
        &segment, &record, RMM_LOCATION_STAT_current_bytes, &value));
    assert_int_equal(value, 32192);
    assert_false(rmm__segment_location_stat(
        &segment, &record, RMM_LOCATION_STAT_peak_bytes, &value));
}

CASE(more_statistics_than_it_can_keep_are_cut)
{
    for (uint32_t i = sample.header.schema_count; i < RMM_SCHEMA_MAX; i++) {
        snprintf(sample.schema[i].name, 40, "extra_%u", i);
        sample.schema[i].scope = RMM_SCHEMA_SLOT;
        sample.schema[i].kind = RMM_KIND_COUNTER;
        sample.schema[i].unit = RMM_UNIT_COUNT;
        sample.schema[i].offset = 128;
    }
    sample.header.schema_count =
        RMM_SCHEMA_MAX + 2; /* the last two are a location's bytes */
    attach_sample();
    assert_int_equal(segment.header.schema_count, RMM_SCHEMA_MAX);
}
