/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Verdicts on blocks, from the engine to a reader: what deserves one, and what nearly does.
 */
#include "harness/harness.h"

#include <string.h>

#include "diag/diag_names.h"
#include "diag/verdict_reader.h"
#include "diag/verdict_rules.h"
#include "unit/diag_groups.h"

#define BASE 0x7f4000000000ull
#define OTHER (BASE + 0x100000) /* a block that other launches use */
#define SECOND 1000000000ull
#define NOW 1 /* as far as live blocks are concerned: no time has passed */

/* Stacks are taken in mode bounds; a compiler makes several calls of one line. */
static diag_fixture_t open_without_stacks(void)
{
    return diag_open_modes(16, 16, NULL, RMM_DIAG_MODE_USAGE);
}

static void look(const diag_fixture_t *diag, uint64_t now_ns, bool has_ended)
{
    rmm_diag_file_t file = file_now(diag);

    rmm__diag_read_verdicts(&file, now_ns, has_ended, groups);
    rmm__diag_close(&file);
}

/* NULL: there is none of this kind. */
static const rmm_diag_group_t *verdict_of(rmm_diag_verdict_t verdict)
{
    for (uint32_t i = 0; i < groups->count; i++) {
        if (groups->entries[i].verdict == (uint32_t)verdict) {
            return &groups->entries[i];
        }
    }
    return NULL;
}

static void others(diag_fixture_t *diag, int launches)
{
    for (int i = 0; i < launches; i++) {
        diag_launch(diag, "other", OTHER);
    }
}

static void fill_block(diag_fixture_t *diag)
{
    const uint64_t word = BASE;
    const rmm_diag_event_v1_t fill = {
        .struct_size = sizeof(fill),
        .kind = RMM_DIAG_SET,
        .name = "fill",
        .words = &word,
        .word_count = 1,
        .bytes = 1};

    rmm__diag_engine_on_event(diag->engine, &fill);
}

/* A block of 1000 bytes: launches of others before its first use, between, and before its free. */
static void live(diag_fixture_t *diag, int before, int between, int after)
{
    diag_alloc(diag, BASE, 1000);
    others(diag, before);
    fill_block(diag);
    others(diag, between);
    diag_launch(diag, "user", BASE);
    others(diag, after);
    diag_free(diag, BASE, 1000);
}

GROUPS_CASE(a_block_freed_unused_was_never_used)
{
    diag_fixture_t diag = open_without_stacks();
    const rmm_diag_group_t *group = NULL;

    for (int i = 0; i < 3; i++) {
        diag_alloc(&diag, BASE, 600 + 200 * (uint64_t)i);
        diag_free(&diag, BASE, 600 + 200 * (uint64_t)i);
    }
    look(&diag, NOW, false);
    assert_int_equal(groups->count, 1); /* 600, 800 and 1000: one size class */
    group = verdict_of(RMM_DIAG_NEVER_USED);
    assert_non_null(group);
    assert_int_equal(group->count, 3);
    assert_int_equal(group->bytes, 2400);
    assert_int_equal(group->largest, 1000);
    assert_int_equal(group->resource_id, 3);
    assert_int_equal(group->first_user, RMM_DIAG_NO_USER);
    diag_close(&diag);
}

GROUPS_CASE(three_launches_before_and_behind_its_uses_are_early_and_late)
{
    static const struct {
        int before, between, after;
        bool is_early, is_late;
    } cases[] = {{0, 0, 0, false, false}, {2, 0, 2, false, false},
                 {3, 0, 2, true, false},  {2, 0, 3, false, true},
                 {9, 9, 9, true, true},   {0, 9, 0, false, false}};

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        diag_fixture_t diag = diag_open(16, 16, NULL);
        const rmm_diag_group_t *early = NULL, *late = NULL;

        live(&diag, cases[i].before, cases[i].between, cases[i].after);
        look(&diag, NOW, false);
        early = verdict_of(RMM_DIAG_ALLOCATED_EARLY);
        late = verdict_of(RMM_DIAG_FREED_LATE);
        assert_int_equal(early != NULL, cases[i].is_early);
        assert_int_equal(late != NULL, cases[i].is_late);
        assert_int_equal(groups->count, cases[i].is_early + cases[i].is_late);
        if (late != NULL) {
            assert_string_equal(diag_user_name(&diag, late->first_user), "fill");
        }
        diag_close(&diag);
    }
}

GROUPS_CASE(live_blocks_are_judged_by_launches_and_time)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);
    uint64_t used_ns = 0;

    diag_alloc(&diag, BASE, 1000);
    diag_alloc(&diag, BASE + 4096, 5000);
    others(&diag, 2);
    diag_launch(&diag, "user", BASE);
    used_ns = diag_row(&diag, BASE)->last_use_ns;
    look(&diag, used_ns + 60 * SECOND, false);
    assert_int_equal(groups->count, 1); /* 3 launches since the second was allocated */
    assert_int_equal(verdict_of(RMM_DIAG_NEVER_USED)->bytes, 5000);
    others(&diag, 2);
    look(&diag, used_ns + 60 * SECOND, false);
    assert_null(
        verdict_of(RMM_DIAG_IDLE)); /* the program does nothing: not its fault */
    others(&diag, 1);
    look(&diag, used_ns + 10 * SECOND - 1, false);
    assert_null(verdict_of(RMM_DIAG_IDLE));
    look(&diag, used_ns + 10 * SECOND, false);
    assert_int_equal(verdict_of(RMM_DIAG_IDLE)->byte_ms, 1000 * 10000);
    assert_null(verdict_of(RMM_DIAG_LEAKED));
    look(&diag, used_ns + SECOND, true);
    assert_null(verdict_of(RMM_DIAG_IDLE));
    assert_int_equal(verdict_of(RMM_DIAG_LEAKED)->bytes, 5000); /* the worst first */
    assert_int_equal(groups->count, 3);
    diag_close(&diag);
}

GROUPS_CASE(host_memory_gets_no_verdict_but_leaked)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);
    rmm_diag_block_v1_t block = diag_block(BASE, 1000);

    block.device = -1;
    rmm__diag_engine_on_alloc(diag.engine, &block);
    rmm__diag_engine_on_free(diag.engine, &block);
    rmm__diag_engine_on_alloc(diag.engine, &block);
    others(&diag, 9);
    look(&diag, UINT64_MAX, false);
    assert_int_equal(groups->count, 0);
    look(&diag, UINT64_MAX, true);
    assert_int_equal(groups->count, 1);
    assert_non_null(verdict_of(RMM_DIAG_LEAKED));
    diag_close(&diag);
}

/* A resource that hands out parts of a block uses it, and no event tells of that. */
GROUPS_CASE(a_block_that_is_handed_out_in_parts_has_no_verdict)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    diag_alloc(&diag, BASE, 4096);
    diag_alloc(&diag, BASE, 1024);
    diag_launch(&diag, "user", BASE);
    diag_free(&diag, BASE, 1024);
    diag_free(&diag, BASE, 4096);
    look(&diag, UINT64_MAX, true);
    assert_int_equal(groups->count, 0);
    diag_close(&diag);
}

GROUPS_CASE(without_usage_only_leaks_are_judged)
{
    diag_fixture_t diag = diag_open_modes(16, 16, NULL, RMM_DIAG_MODE_BOUNDS);

    diag_alloc(&diag, BASE, 1000);
    diag_free(&diag, BASE, 1000);
    diag_alloc(&diag, BASE, 1000);
    look(&diag, UINT64_MAX, true);
    assert_int_equal(groups->count, 1);
    assert_int_equal(verdict_of(RMM_DIAG_LEAKED)->bytes, 1000);
    diag_close(&diag);
}

/* A resource that ends frees what the program has not. */
GROUPS_CASE(what_ends_with_its_resource_is_leaked)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);
    rmm_diag_block_v1_t block = diag_block(BASE, 1000);

    rmm__diag_engine_on_alloc(diag.engine, &block);
    diag_launch(&diag, "user", BASE);
    diag_alloc(&diag, BASE + 4096, 500);
    block.flags = RMM_DIAG_BLOCK_LEFT;
    rmm__diag_engine_on_free(diag.engine, &block);
    look(&diag, UINT64_MAX, false);
    assert_int_equal(groups->count, 1);
    assert_int_equal(verdict_of(RMM_DIAG_LEAKED)->bytes, 1000);
    assert_int_equal(diag.header->left_count, 1);
    assert_int_equal(diag.header->left_bytes, 1000);
    look(&diag, UINT64_MAX, true); /* and with it what the process did not free */
    assert_int_equal(verdict_of(RMM_DIAG_LEAKED)->count, 1);
    diag_close(&diag);
}

/* The mode can be switched while the program runs. */
GROUPS_CASE(a_block_with_uses_that_were_not_seen_has_no_verdict)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    diag_alloc(&diag, BASE, 1000);
    diag_alloc(&diag, BASE + 4096, 1000);
    rmm__diag_engine_set_modes(diag.engine, RMM_DIAG_MODE_BOUNDS);
    diag_launch(&diag, "unseen", BASE);
    diag_free(&diag, BASE + 4096, 1000);
    look(&diag, UINT64_MAX, true);
    assert_int_equal(groups->count, 1);
    assert_int_equal(verdict_of(RMM_DIAG_LEAKED)->bytes, 1000);
    rmm__diag_engine_set_modes(diag.engine, RMM_DIAG_MODE_USAGE);
    diag_free(&diag, BASE, 1000);
    diag_alloc(&diag, BASE, 500);
    diag_free(&diag, BASE, 500);
    look(&diag, UINT64_MAX, true);
    assert_int_equal(groups->count, 1);
    assert_int_equal(verdict_of(RMM_DIAG_NEVER_USED)->bytes, 500);
    diag_close(&diag);
}

GROUPS_CASE(a_verdict_too_many_is_counted)
{
    enum { KINDS = 3000 };
    diag_fixture_t diag = open_without_stacks();
    rmm_diag_block_v1_t block = diag_block(BASE, 10);

    for (uint32_t i = 0; i < KINDS; i++) {
        block.resource_id = i;
        for (int repeat = 0; repeat < 2; repeat++) {
            rmm__diag_engine_on_alloc(diag.engine, &block);
            rmm__diag_engine_on_free(diag.engine, &block);
        }
    }
    look(&diag, NOW, false);
    assert_in_range(
        groups->count, diag.header->verdicts.count * 3 / 4,
        diag.header->verdicts.count);
    assert_int_equal(diag.header->verdicts_dropped, 2 * (KINDS - groups->count));
    for (uint32_t i = 0; i < groups->count; i++) {
        assert_int_equal(groups->entries[i].count, 2);
    }
    diag_close(&diag);
}

GROUPS_CASE(verdicts_on_freed_and_live_blocks_say_where_they_were_allocated)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);
    uint32_t freed_site = 0;

    diag_alloc(&diag, BASE, 1000);
    diag_free(&diag, BASE, 1000);
    diag_alloc(&diag, BASE, 1000); /* another line */
    look(&diag, UINT64_MAX, false);
    assert_int_equal(groups->count, 1); /* the live one is not judged yet */
    freed_site = groups->entries[0].site;
    assert_int_not_equal(freed_site, 0);
    look(&diag, UINT64_MAX, true);
    assert_int_equal(groups->count, 3); /* never used: two of two places; leaked: one */
    assert_int_equal(verdict_of(RMM_DIAG_LEAKED)->site, diag_row(&diag, BASE)->site);
    assert_int_not_equal(verdict_of(RMM_DIAG_LEAKED)->site, freed_site);
    diag_close(&diag);
}

GROUPS_CASE(a_verdict_without_room_for_its_site_is_kept)
{
    enum { KINDS = 20000 }; /* no entry is left */
    diag_fixture_t diag = open_without_stacks();
    rmm_diag_block_v1_t block = diag_block(BASE, 10);
    uint64_t dropped = 0, count = 0;

    for (uint32_t i = 0; i < KINDS; i++) {
        block.resource_id = i;
        rmm__diag_engine_on_alloc(diag.engine, &block);
        rmm__diag_engine_on_free(diag.engine, &block);
    }
    dropped = diag.header->verdicts_dropped;
    rmm__diag_engine_set_modes(diag.engine, RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_BOUNDS);
    block.resource_id = 0; /* which has an entry without a site */
    rmm__diag_engine_on_alloc(diag.engine, &block);
    assert_int_not_equal(diag_row(&diag, BASE)->site, 0);
    rmm__diag_engine_on_free(diag.engine, &block);
    assert_int_equal(diag.header->verdicts_dropped, dropped);
    look(&diag, NOW, false);
    for (uint32_t i = 0; i < groups->count; i++) {
        assert_int_equal(groups->entries[i].site, 0);
        count += groups->entries[i].resource_id == 0 ? groups->entries[i].count : 0;
    }
    assert_int_equal(count, 2);
    diag_close(&diag);
}

static const char *confidence(const diag_fixture_t *diag, rmm_diag_verdict_t verdict)
{
    rmm_diag_file_t file = file_now(diag);
    const char *text = rmm__diag_confidence(&file, verdict);

    rmm__diag_close(&file);
    return text;
}

GROUPS_CASE(uses_that_are_known_to_be_missing_make_a_verdict_a_hint)
{
    diag_fixture_t diag = diag_open(16, 16, NULL);

    assert_string_equal(confidence(&diag, RMM_DIAG_NEVER_USED), "likely");
    assert_string_equal(confidence(&diag, RMM_DIAG_LEAKED), "certain");
    diag_event(&diag, RMM_DIAG_GRAPH_LAUNCH, NULL, NULL, NULL, 0);
    assert_int_equal(diag.header->graph_launches, 1);
    assert_string_equal(confidence(&diag, RMM_DIAG_FREED_LATE), "hint");
    assert_string_equal(confidence(&diag, RMM_DIAG_LEAKED), "certain");
    diag_close(&diag);
    diag = diag_open(16, 16, NULL);
    rmm__diag_engine_parameters_unknown(diag.engine);
    assert_string_equal(confidence(&diag, RMM_DIAG_IDLE), "hint");
    diag_close(&diag);
}

TEST_CASE(sums_do_not_wrap)
{
    assert_int_equal(rmm__diag_byte_ms(1000, 2 * SECOND), 2000000);
    assert_int_equal(rmm__diag_byte_ms(UINT64_MAX, UINT64_MAX), UINT64_MAX);
    assert_int_equal(rmm__diag_byte_ms(0, UINT64_MAX), 0);
    assert_int_equal(rmm__diag_size_class(1), 1);
    assert_int_equal(rmm__diag_size_class(1023), 10);
    assert_int_equal(rmm__diag_size_class(1024), 11);
    assert_int_equal(rmm__diag_size_class(UINT64_MAX), 64);
    assert_string_equal(rmm__diag_verdict_name(0), "unknown");
    assert_string_equal(rmm__diag_verdict_name(UINT32_MAX), "unknown");
    assert_string_equal(rmm__diag_verdict_name(RMM_DIAG_IDLE), "idle");
}
