/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The rings of events: order, budgets of users, what readers lose, who sees what, and the lines
 * that are made of them.
 */
#include "model_fixture.h"

#include <string.h>

#include "model/node_events.h"
#include "render/parts.h"

#define OWN 0u
#define SEEN_MAX 20000u

static node_event_t seen[SEEN_MAX];
static uint32_t seen_count, seen_most;

static bool keep(const node_event_t *event, void *arg)
{
    (void)arg;
    assert_true(seen_count < SEEN_MAX);
    seen[seen_count++] = *event;
    return seen_count < seen_most;
}

static void
fetch(node_events_t *events, events_cursor_t *cursor, uid_t uid, hiding_level_t level)
{
    const hiding_t hiding = {.level = level, .own_uid = OWN};
    const events_reader_t reader = {&hiding, uid, false};
    seen_count = 0;
    seen_most = SEEN_MAX;
    node_events_each(events, cursor, &reader, keep, NULL);
}

static void note(node_events_t *events, uid_t uid, uint64_t bytes)
{
    const node_event_t event = {
        .type = EVENT_OOM, .uid = uid, .bytes = bytes, .device = EVENT_NO_DEVICE};
    node_events_note(events, &event);
}

TEST_CASE(a_flood_of_one_user_displaces_no_event_of_another)
{
    node_events_t *events = node_events_open(OWN);
    events_cursor_t cursor;
    node_events_begin(events, &cursor);
    note(events, 1002, 1);
    for (uint64_t i = 0; i < 100000; i++) {
        note(events, 1001, i);
    }
    note(events, 1002, 2);
    fetch(events, &cursor, 0, HIDING_OFF);
    assert_int_equal(seen[0].uid, 1002);
    assert_int_equal(seen[seen_count - 1].uid, 1002);
    assert_int_equal(seen[seen_count - 1].bytes, 2);
    /* A flood that takes seconds, under a sanitizer, is given some more; the rest is counted. */
    assert_in_range(seen_count, EVENTS_OF_USER + 2, 2 * EVENTS_OF_USER);
    for (uint32_t i = 1; i < seen_count; i++) {
        assert_true(seen[i].number > seen[i - 1].number);
    }
    node_events_close(events);
}

TEST_CASE(logs_once_how_many_were_over_the_budget)
{
    node_events_t *events = node_events_open(OWN);
    events_cursor_t cursor;
    uint64_t told = 0, over = 0;
    node_events_begin(events, &cursor);
    for (uint64_t i = 0; i < 1000; i++) {
        note(events, 1001, i);
    }
    while (over == 0) { /* a second, until the user has a budget again */
        node_events_tick(events);
        fetch(events, &cursor, 1001, HIDING_OFF);
        for (uint32_t i = 0; i < seen_count; i++) {
            over += seen[i].type == EVENT_OVER_BUDGET ? seen[i].count : 0;
            told += seen[i].type == EVENT_OOM;
            assert_int_not_equal(seen[i].type, EVENT_LOST);
        }
    }
    assert_int_equal(told + over, 1000);
    node_events_close(events);
}

TEST_CASE(a_slow_reader_gets_one_line_for_what_it_lost)
{
    node_events_t *events = node_events_open(OWN);
    events_cursor_t slow, late;
    node_events_begin(events, &slow);
    for (uint64_t i = 0; i < 1000; i++) {
        note(events, 0, i); /* root has no budget */
    }
    fetch(events, &slow, 0, HIDING_OFF);
    assert_int_equal(seen_count, EVENTS_OF_USER + 1);
    assert_int_equal(seen[0].type, EVENT_LOST);
    assert_int_equal(seen[0].count, 1000 - EVENTS_OF_USER);
    assert_int_equal(seen[1].bytes, 1000 - EVENTS_OF_USER);
    assert_int_equal(seen[EVENTS_OF_USER].bytes, 999);
    fetch(events, &slow, 0, HIDING_OFF);
    assert_int_equal(seen_count, 0);
    node_events_begin(events, &late); /* has lost nothing */
    fetch(events, &late, 0, HIDING_OFF);
    assert_int_equal(seen_count, EVENTS_OF_USER);
    assert_int_equal(seen[0].type, EVENT_OOM);
    node_events_close(events);
}

TEST_CASE(further_users_share_a_ring)
{
    node_events_t *events = node_events_open(OWN);
    events_cursor_t cursor;
    node_events_begin(events, &cursor);
    for (uid_t uid = 1; uid <= 2 * EVENTS_RINGS; uid++) {
        note(events, uid, uid);
    }
    fetch(events, &cursor, 0, HIDING_OFF);
    assert_int_equal(seen_count, 2 * EVENTS_RINGS);
    for (uid_t uid = 1; uid <= 2 * EVENTS_RINGS; uid++) {
        assert_int_equal(seen[uid - 1].uid, uid);
    }
    node_events_close(events);
}

TEST_CASE(shows_a_user_what_the_user_may_see)
{
    node_events_t *events = node_events_open(OWN);
    const node_event_t private = {.type = EVENT_ERROR, .uid = 1001, .is_private = true};
    events_cursor_t of_a, of_b, of_root, of_hidden;
    node_events_begin(events, &of_a);
    of_b = of_root = of_hidden = of_a;
    node_events_note(events, &private);
    note(events, 1001, 1);
    note(events, EVENT_NO_UID, 2);
    fetch(events, &of_a, 1001, HIDING_NOACCESS);
    assert_int_equal(seen_count, 3);
    fetch(events, &of_root, 0, HIDING_NOACCESS);
    assert_int_equal(seen_count, 3);
    fetch(events, &of_b, 1002, HIDING_OFF);
    assert_int_equal(seen_count, 2);
    fetch(events, &of_hidden, 1002, HIDING_NOACCESS);
    assert_int_equal(seen_count, 1);
    assert_int_equal(seen[0].uid, EVENT_NO_UID);
    node_events_close(events);
}

TEST_CASE(hides_what_was_lost_of_others)
{
    node_events_t *events = node_events_open(OWN);
    events_cursor_t cursor;
    node_events_begin(events, &cursor);
    for (uint64_t i = 0; i < 1000; i++) {
        note(events, 0, i);
    }
    fetch(events, &cursor, 1002, HIDING_INVISIBLE);
    assert_int_equal(seen_count, 0);
    node_events_close(events);
}

TEST_CASE(a_line_is_one_object_whatever_a_program_wrote)
{
    const node_event_t event = {
        .time_ns = UINT64_C(1700000000000000007),
        .type = EVENT_START,
        .uid = 1001,
        .pid = 42,
        .device = 1,
        .bytes = UINT64_C(18446744073709551614),
        .count = EVENT_NO_FIGURE,
        .process = "42",
        .text = "a\"b\\\n\x1b\xe2\x80\xae"
                "c"};
    text_t text;
    text_init(&text);
    render_node_event(&event, &text);
    text_append(&text, "", 1);
    assert_string_equal(
        text.data,
        "{\"time\": \"2023-11-14T22:13:20.000000007Z\", \"type\": \"start\", \"pid\": "
        "42, "
        "\"uid\": 1001, \"gpu\": \"gpu1\", \"resource\": null, \"bytes\": "
        "18446744073709551614, \"count\": null, \"process\": \"42\", \"text\": "
        "\"a\\\"b\\\\?????c\"}\n");
    text_fini(&text);
}
