/* SPDX-License-Identifier: Apache-2.0 */
/* Frees that a resource refuses: what each is called, and what is known of its block. */
#include "harness/harness.h"

#include <string.h>

#include "diag/stream_names.h"
#include "unit/diag_fixture.h"

#define BASE 0x7f4000000000ull
#define RECENT 1024 /* the last frees that are remembered */

static diag_fixture_t diag;

static int set_up(void **state)
{
    diag = diag_open(64, 16, NULL);
    return 0;
}

static int tear_down(void **state)
{
    diag_close(&diag);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, set_up, tear_down)

static void refuse(uint64_t address, uint64_t bytes)
{
    rmm_diag_block_v1_t block = diag_block(address, bytes);

    block.stream_id = 9;
    rmm__diag_engine_on_refused(diag.engine, &block);
}

/* The finding: of a free of `bytes` at `address`, and a block that began at `block`. */
static void assert_finding(
    uint32_t kind, uint64_t address, uint64_t bytes, uint64_t block,
    uint64_t block_bytes)
{
    const rmm_diag_finding_t *finding = &diag.findings[0];

    assert_int_equal(diag.header->findings.used, 1);
    assert_int_equal(finding->kind, kind);
    assert_int_equal(finding->access, RMM_DIAG_FREES);
    assert_int_equal(finding->count, 1);
    assert_int_equal(finding->address, address);
    assert_int_equal(finding->bytes, bytes);
    assert_int_equal(finding->block_address, block);
    assert_int_equal(finding->block_bytes, block_bytes);
    assert_int_equal(finding->stream_id, 9);
    assert_int_equal(
        finding->other_stream_id, kind == RMM_DIAG_DOUBLE_FREE ? 7 : UINT64_MAX);
    assert_int_equal(finding->resource_id, 3);
    assert_int_equal(finding->user, RMM_DIAG_NO_USER);
    assert_int_equal(finding->other_user, RMM_DIAG_NO_USER);
}

CASE(memory_that_was_no_block)
{
    diag_alloc(&diag, BASE, 256);
    refuse(BASE + 4096, 100);
    assert_finding(RMM_DIAG_INVALID_FREE, BASE + 4096, 100, BASE + 4096, 0);
}

CASE(an_address_amid_a_block)
{
    diag_alloc(&diag, BASE, 256);
    refuse(BASE + 16, 100);
    assert_finding(RMM_DIAG_INVALID_FREE, BASE + 16, 100, BASE, 256);
}

CASE(a_live_block_of_another_size)
{
    diag_alloc(&diag, BASE, 256);
    refuse(BASE, 255);
    assert_finding(RMM_DIAG_WRONG_SIZE_FREE, BASE, 255, BASE, 256);
}

CASE(a_live_block_of_the_same_size)
{
    diag_alloc(&diag, BASE, 256);
    refuse(BASE, 256);
    assert_finding(RMM_DIAG_INVALID_FREE, BASE, 256, BASE, 256);
}

CASE(a_block_that_was_freed_is_the_last_one_there)
{
    for (uint64_t bytes = 256; bytes <= 1024; bytes *= 2) {
        diag_alloc(&diag, BASE, bytes);
        diag_free(&diag, BASE, bytes);
    }
    refuse(BASE, 256);
    assert_finding(RMM_DIAG_DOUBLE_FREE, BASE, 256, BASE, 1024);
}

CASE(the_last_frees_are_remembered)
{
    for (uint64_t i = 0; i < RECENT; i++) {
        diag_alloc(&diag, BASE + i * 512, 256);
        diag_free(&diag, BASE + i * 512, 256);
    }
    refuse(BASE, 256);
    assert_finding(RMM_DIAG_DOUBLE_FREE, BASE, 256, BASE, 256);
}

static void free_through_another(uint64_t address)
{
    rmm_diag_block_v1_t block = diag_block(address, 256);

    block.resource_id = 4;
    rmm__diag_engine_on_free(diag.engine, &block);
}

/* It counted as freed for a moment. */
CASE(a_block_that_another_resource_refuses_is_live_again)
{
    for (uint64_t i = 0; i < 8; i++) {
        diag_alloc(&diag, BASE + i * 512, 256);
    }
    for (uint64_t i = 0; i < 8; i++) {
        free_through_another(BASE + i * 512);
        assert_null(diag_row(&diag, BASE + i * 512));
    }
    for (uint64_t i = 0; i < 8; i++) {
        refuse(BASE + i * 512, 256);
        assert_non_null(diag_row(&diag, BASE + i * 512));
        assert_int_equal(diag_row(&diag, BASE + i * 512)->bytes, 256);
        assert_int_equal(diag_row(&diag, BASE + i * 512)->resource_id, 3);
    }
    assert_int_equal(diag.findings[0].kind, RMM_DIAG_INVALID_FREE);
    assert_int_equal(diag.findings[0].block_bytes, 256);
    diag_free(&diag, BASE, 256);
    refuse(BASE, 256); /* once only */
    assert_null(diag_row(&diag, BASE));
}

CASE(without_the_mode_the_block_is_live_again_and_nothing_is_found)
{
    diag_close(&diag);
    diag = diag_open_modes(64, 16, NULL, RMM_DIAG_MODE_USAGE);
    diag_alloc(&diag, BASE, 256);
    free_through_another(BASE);
    refuse(BASE, 256);
    assert_non_null(diag_row(&diag, BASE));
    assert_int_equal(diag.header->findings.used, 0);
}

/* --- names of streams and resources ----------------------------------------------------- */

TEST_CASE(a_stream_has_its_id_where_that_is_known)
{
    static rmm_stream_names_t names;
    rmm_stream_t one = (rmm_stream_t)0x1000, other = (rmm_stream_t)0x2000;

    assert_int_equal(rmm__stream_names_find(&names, one), 0x1000); /* its handle */
    rmm__stream_names_put(&names, one, 41);
    rmm__stream_names_put(&names, other, 0);
    assert_int_equal(rmm__stream_names_find(&names, one), 41);
    assert_int_equal(rmm__stream_names_find(&names, other), 0);
    rmm__stream_names_put(&names, one, UINT64_MAX); /* destroyed */
    assert_int_equal(rmm__stream_names_find(&names, one), 0x1000);
    assert_int_equal(rmm__stream_names_find(&names, other), 0);
    rmm__stream_names_put(&names, NULL, 5);
    assert_int_equal(rmm__stream_names_find(&names, NULL), 0);
    assert_int_equal(rmm__stream_names_find(&names, RMM_STREAM_PER_THREAD), UINT64_MAX);
}

static const rmm_diag_resource_t *named(uint32_t id)
{
    const rmm_diag_resource_t *entries =
        (void *)((char *)diag.header + diag.header->resources.offset);

    return &entries[id % diag.header->resources.count];
}

static void alloc_of(uint32_t id, const char *type, const char *name)
{
    rmm_diag_block_v1_t block = diag_block(BASE, 256);

    block.resource_id = id;
    block.resource_type = type;
    block.resource_name = name;
    rmm__diag_engine_on_alloc(diag.engine, &block);
    rmm__diag_engine_on_free(diag.engine, &block);
}

CASE(the_first_resource_keeps_the_entry_of_its_id)
{
    char long_name[200];

    memset(long_name, 'n', sizeof(long_name));
    long_name[sizeof(long_name) - 1] = '\0';
    alloc_of(5, NULL, "unknown type");
    assert_int_equal(named(5)->id, 0);
    alloc_of(5, "pool", long_name);
    alloc_of(5 + diag.header->resources.count, "arena", "later");
    alloc_of(6, "binning", NULL);
    assert_int_equal(named(5)->id, 5);
    assert_string_equal(named(5)->type, "pool");
    assert_int_equal(strlen(named(5)->name), sizeof(named(5)->name) - 1);
    assert_string_equal(named(6)->type, "binning");
    assert_string_equal(named(6)->name, "");
}
