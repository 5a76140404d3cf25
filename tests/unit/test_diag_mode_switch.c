/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Modes that are switched while events come: blocks are followed in each of them, what is not
 * looked for leaves no trace, and the header says what is in force.
 */
#include "harness/harness.h"

#include <pthread.h>
#include <stdlib.h>

#include "unit/diag_fixture.h"

#define BASE 0x7f4000000000ull
#define BYTES 1000u

static uint32_t told, can_have;

static uint32_t source(uint32_t modes)
{
    told = modes;
    return modes & can_have;
}

/* With a block that was there before anything is switched on. */
static diag_fixture_t open_with(uint32_t modes)
{
    diag_fixture_t diag = {.header = calloc(1, rmm__diag_file_bytes(16, 4))};
    rmm_diag_engine_desc_t desc = {
        .memory = diag.header,
        .row_count = 16,
        .kernel_count = 4,
        .modes = modes,
        .source = source};
    rmm_diag_block_v1_t block = {.address = BASE, .bytes = BYTES};

    diag.engine = rmm__diag_engine_create(&desc);
    assert_non_null(diag.engine);
    told = 99;
    can_have = UINT32_MAX;
    rmm__diag_engine_publish(diag.engine, "active");
    rmm__diag_engine_on_alloc(diag.engine, &block);
    return diag;
}

static void give(diag_fixture_t *diag, uint32_t kind, uint64_t bytes, bool before)
{
    const uint64_t word = BASE;
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = kind,
        .name = "call",
        .function = "call",
        .words = &word,
        .word_count = 1,
        .bytes = bytes,
        .before = before};

    rmm__diag_engine_on_event(diag->engine, &event);
}

static void launch(diag_fixture_t *diag)
{
    give(diag, RMM_DIAG_LAUNCH, 0, false);
}

static void overrun(diag_fixture_t *diag)
{
    give(diag, RMM_DIAG_SET, BYTES + 1, true);
}

static void write_wanted(diag_fixture_t *diag, uint32_t modes)
{
    atomic_store(&diag->header->modes_wanted, modes | RMM_DIAG_MODES_SET);
}

static bool is_applied(const diag_fixture_t *diag)
{
    return diag->header->modes_applied == diag->header->modes_wanted;
}

TEST_CASE(off_follows_blocks_and_nothing_else)
{
    diag_fixture_t diag = open_with(0);

    assert_true(is_applied(&diag));
    assert_string_equal(diag.header->mode, "off");
    launch(&diag);
    overrun(&diag);
    assert_int_equal(diag.header->launches, 0);
    assert_int_equal(diag.header->findings_total, 0);
    assert_int_equal(diag.header->rows.used, 1);
    assert_true(rmm__diag_engine_check(diag.engine));
    diag_close(&diag);
}

TEST_CASE(the_next_event_applies_the_modes_requested_in_the_file)
{
    diag_fixture_t diag = open_with(0);

    write_wanted(&diag, RMM_DIAG_MODE_BOUNDS);
    assert_false(is_applied(&diag));
    overrun(&diag);
    assert_int_equal(diag.header->findings_total, 1);
    launch(&diag);
    assert_int_equal(diag.header->launches, 0);
    assert_true(is_applied(&diag));
    assert_int_equal(diag.header->modes_on, RMM_DIAG_MODE_BOUNDS);
    assert_int_equal(told, RMM_DIAG_MODE_BOUNDS);

    write_wanted(&diag, RMM_DIAG_MODE_USAGE);
    launch(&diag);
    overrun(&diag);
    assert_int_equal(diag.header->launches, 1);
    assert_int_equal(diag.header->findings_total, 1);

    rmm__diag_engine_set_modes(diag.engine, 0);
    assert_true(is_applied(&diag));
    launch(&diag);
    assert_int_equal(diag.header->launches, 1);
    assert_int_equal(told, 0);
    diag_close(&diag);
}

TEST_CASE(a_block_applies_it_as_well)
{
    diag_fixture_t diag = open_with(RMM_DIAG_MODE_USAGE);
    rmm_diag_block_v1_t block = {.address = BASE, .bytes = BYTES};

    write_wanted(&diag, 0);
    rmm__diag_engine_on_free(diag.engine, &block);
    assert_true(is_applied(&diag));
    write_wanted(&diag, RMM_DIAG_MODE_BOUNDS);
    rmm__diag_engine_on_alloc(diag.engine, &block);
    assert_true(is_applied(&diag));
    assert_int_equal(told, RMM_DIAG_MODE_BOUNDS);
    diag_close(&diag);
}

TEST_CASE(reports_modes_that_the_source_refuses)
{
    diag_fixture_t diag = open_with(RMM_DIAG_MODE_BOUNDS);

    can_have = RMM_DIAG_MODE_BOUNDS;
    write_wanted(&diag, RMM_DIAG_MODE_BOUNDS | RMM_DIAG_MODE_USAGE);
    launch(&diag);
    assert_true(is_applied(&diag));
    assert_int_equal(diag.header->modes_on, RMM_DIAG_MODE_BOUNDS);
    launch(&diag);
    assert_int_equal(diag.header->launches, 0);
    diag_close(&diag);
}

/* Whatever is scribbled there: modes that do not exist are not had. */
TEST_CASE(unknown_modes_switch_nothing_on)
{
    diag_fixture_t diag = open_with(0);

    atomic_store(&diag.header->modes_wanted, ~(uint32_t)RMM_DIAG_MODE_USAGE);
    launch(&diag);
    assert_int_equal(told & ~rmm__diag_modes_all(), 0);
    assert_int_equal(diag.header->launches, 0);
    diag_close(&diag);
}

/* What was done meanwhile is not known: it would be taken for unordered. */
TEST_CASE(order_is_switched_off_and_not_on_again)
{
    diag_fixture_t diag = open_with(RMM_DIAG_MODE_ORDER);

    rmm__diag_engine_set_modes(diag.engine, RMM_DIAG_MODE_ORDER | RMM_DIAG_MODE_BOUNDS);
    assert_int_equal(diag.header->modes_on, RMM_DIAG_MODE_ORDER | RMM_DIAG_MODE_BOUNDS);
    rmm__diag_engine_set_modes(diag.engine, RMM_DIAG_MODE_BOUNDS);
    rmm__diag_engine_set_modes(diag.engine, RMM_DIAG_MODE_ORDER | RMM_DIAG_MODE_BOUNDS);
    assert_true(is_applied(&diag));
    assert_int_equal(diag.header->modes_on, RMM_DIAG_MODE_BOUNDS);
    diag_close(&diag);
}

static void *scribble(void *argument)
{
    diag_fixture_t *diag = argument;

    for (uint32_t i = 0; i < 20000; i++) {
        write_wanted(diag, i % 4);
    }
    return NULL;
}

static void *use(void *argument)
{
    for (uint32_t i = 0; i < 20000; i++) {
        launch(argument);
        overrun(argument);
    }
    return NULL;
}

TEST_CASE(threads_see_one_of_the_modes_that_were_wanted)
{
    diag_fixture_t diag = open_with(0);
    pthread_t threads[3];

    assert_int_equal(pthread_create(&threads[0], NULL, scribble, &diag), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, use, &diag), 0);
    assert_int_equal(pthread_create(&threads[2], NULL, use, &diag), 0);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    }
    launch(&diag);
    assert_true(is_applied(&diag));
    assert_int_equal(diag.header->modes_on, 19999 % 4);
    assert_true(rmm__diag_engine_check(diag.engine));
    diag_close(&diag);
}
