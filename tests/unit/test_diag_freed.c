/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Blocks that were freed: the table, against a list of bytes; and what the engine finds with it.
 */
#include "harness/harness.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "diag/findings.h"
#include "diag/freed.h"
#include "harness/random.h"
#include "unit/diag_fixture.h"

#define BASE 0x7f4000000000ull
#define STREAM_A ((rmm_stream_t)0x1000)
#define STREAM_B ((rmm_stream_t)0x2000)

/* --- the table ----------------------------------------------------------------------------- */

static void add(rmm_freed_t *freed, uint64_t start, uint64_t bytes)
{
    const rmm_freed_block_t block = {.block = diag_block(start, bytes)};

    rmm__freed_add(freed, &block);
    assert_true(rmm__freed_check(freed));
}

TEST_CASE(knows_what_is_left_of_a_block_when_parts_are_taken)
{
    rmm_freed_t freed;

    assert_true(rmm__freed_init(&freed, 8));
    assert_null(rmm__freed_find(&freed, BASE));
    add(&freed, BASE, 4096);
    rmm__freed_take(&freed, BASE + 1024, BASE + 2048);
    assert_true(rmm__freed_check(&freed));
    assert_int_equal(rmm__freed_find(&freed, BASE)->block.bytes, 4096);
    assert_int_equal(rmm__freed_find(&freed, BASE + 1023)->block.address, BASE);
    assert_null(rmm__freed_find(&freed, BASE + 1024));
    assert_null(rmm__freed_find(&freed, BASE + 2047));
    assert_int_equal(rmm__freed_find(&freed, BASE + 4095)->block.address, BASE);
    assert_null(rmm__freed_find(&freed, BASE + 4096));
    rmm__freed_take(&freed, 0, UINT64_MAX);
    assert_int_equal(freed.pieces.count, 0);
    assert_true(rmm__freed_check(&freed));
    rmm__freed_fini(&freed);
}

TEST_CASE(forgets_the_block_freed_longest_ago_and_counts_it)
{
    enum { ROOM = 16 };
    rmm_freed_t freed;

    assert_true(rmm__freed_init(&freed, ROOM));
    for (uint64_t i = 0; i < ROOM + 5; i++) {
        add(&freed, BASE + i * 512, 256);
    }
    assert_int_equal(freed.dropped, 5);
    assert_null(rmm__freed_find(&freed, BASE + 4 * 512));
    assert_non_null(rmm__freed_find(&freed, BASE + 5 * 512));
    /* a hole in a full table: one of two rests finds room */
    rmm__freed_take(&freed, BASE + 8 * 512 + 100, BASE + 8 * 512 + 101);
    assert_int_equal(freed.dropped, 6);
    assert_non_null(rmm__freed_find(&freed, BASE + 8 * 512));
    assert_true(rmm__freed_check(&freed));
    rmm__freed_fini(&freed);
}

TEST_CASE(what_is_left_of_a_block_is_as_old_as_the_block)
{
    rmm_freed_t freed;

    assert_true(rmm__freed_init(&freed, 3));
    add(&freed, BASE, 256);
    add(&freed, BASE + 512, 256);
    rmm__freed_take(&freed, BASE + 128, BASE + 256);
    add(&freed, BASE + 1024, 256);
    add(&freed, BASE + 1536, 256); /* one too many */
    assert_null(rmm__freed_find(&freed, BASE));
    assert_non_null(rmm__freed_find(&freed, BASE + 512));
    rmm__freed_fini(&freed);
}

TEST_CASE(a_hundred_thousand_frees_take_no_more_room)
{
    rmm_freed_t freed;

    assert_true(rmm__freed_init(&freed, RMM_FREED_COUNT));
    for (uint64_t i = 0; i < 100000; i++) {
        const rmm_freed_block_t block = {.block = diag_block(BASE + i * 512, 256)};

        rmm__freed_add(&freed, &block);
    }
    assert_int_equal(freed.pieces.count, RMM_FREED_COUNT);
    assert_int_equal(freed.dropped, 100000 - RMM_FREED_COUNT);
    assert_true(rmm__freed_check(&freed));
    rmm__freed_fini(&freed);
}

enum { SPACE = 2048, STEPS = 20000 };

TEST_CASE(agrees_with_a_list_of_bytes)
{
    static uint32_t owner[SPACE]; /* the free that the byte is of; 0: none */
    const char *seed = getenv("RMM_TEST_SEED");
    uint64_t random = seed != NULL ? strtoull(seed, NULL, 0) : 20261123u;
    rmm_freed_t freed;

    print_message("RMM_TEST_SEED=%llu\n", (unsigned long long)random);
    assert_true(rmm__freed_init(&freed, SPACE));
    for (uint32_t step = 1; step <= STEPS; step++) {
        uint64_t start = draw(&random, SPACE - 100);
        uint64_t bytes = 1 + draw(&random, 100), at = draw(&random, SPACE);
        const rmm_freed_block_t block = {
            .block = diag_block(BASE + start, bytes), .freed = step};
        const rmm_freed_block_t *found = NULL;
        bool is_free = draw(&random, 2) == 0;

        if (is_free) {
            rmm__freed_add(&freed, &block);
        } else {
            rmm__freed_take(&freed, BASE + start, BASE + start + bytes);
        }
        for (uint64_t i = start; i < start + bytes; i++) {
            owner[i] = is_free ? step : 0;
        }
        found = rmm__freed_find(&freed, BASE + at);
        assert_int_equal(found != NULL ? found->freed : 0, owner[at]);
        assert_true(step % 64 != 0 || rmm__freed_check(&freed));
    }
    assert_int_equal(freed.dropped, 0);
    rmm__freed_fini(&freed);
}

/* --- the engine ---------------------------------------------------------------------------- */

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

#define WITH_ENGINE(test) TEST_CASE_WITH(test, set_up, tear_down)

static rmm_diag_block_v1_t kept(uint64_t address, uint64_t bytes, uint32_t flags)
{
    rmm_diag_block_v1_t block = diag_block(address, bytes);

    block.stream = STREAM_A;
    block.flags = RMM_DIAG_BLOCK_KEPT | flags;
    return block;
}

static void take(uint64_t address, uint64_t bytes)
{
    rmm_diag_block_v1_t block = kept(address, bytes, 0);

    rmm__diag_engine_on_alloc(diag.engine, &block);
}

static void drop(uint64_t address, uint64_t bytes, uint32_t flags)
{
    rmm_diag_block_v1_t block = kept(address, bytes, flags);

    rmm__diag_engine_on_free(diag.engine, &block);
}

static void take_and_drop(uint64_t address, uint64_t bytes)
{
    take(address, bytes);
    drop(address, bytes, 0);
}

static void fill(uint64_t to, uint64_t bytes)
{
    const rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = RMM_DIAG_SET,
        .stream = STREAM_B,
        .name = "call",
        .words = &to,
        .word_count = 1,
        .bytes = bytes,
        .before = 1};

    rmm__diag_engine_on_event(diag.engine, &event);
}

static uint64_t total(void)
{
    return diag.header->findings_total;
}

WITH_ENGINE(finds_a_fill_of_a_freed_block_and_is_certain)
{
    const rmm_diag_finding_t *finding = &diag.findings[0];

    take_and_drop(BASE, 1000);
    fill(BASE + 100, 50);
    assert_int_equal(total(), 1);
    assert_int_equal(finding->kind, RMM_DIAG_USE_AFTER_FREE);
    assert_int_equal(finding->call, RMM_DIAG_SET);
    assert_int_equal(finding->access, RMM_DIAG_WRITES);
    assert_int_equal(finding->confidence, RMM_DIAG_CERTAIN);
    assert_int_equal(finding->block_address, BASE);
    assert_int_equal(finding->block_bytes, 1000);
    assert_int_equal(finding->address, BASE + 100);
    assert_int_equal(finding->bytes, 50);
    assert_int_equal(finding->other_stream_id, 7);
    assert_int_equal(finding->stream_id, (uintptr_t)STREAM_B);
    assert_string_equal((const char *)(uintptr_t)finding->function, "call");
    fill(BASE, 0); /* nothing */
    fill(BASE + 1000, 8);
    assert_int_equal(total(), 1);
}

WITH_ENGINE(finds_a_launch_that_is_given_a_freed_block_and_says_likely)
{
    const rmm_diag_finding_t *finding = &diag.findings[0];

    take(BASE + 8192, 100);
    take_and_drop(BASE, 1000);
    diag_launch(&diag, "good", BASE + 8192, 0, 1, BASE + 1000);
    assert_int_equal(total(), 0);
    diag_launch(&diag, "late", BASE + 8192, BASE + 8, BASE + 16); /* once */
    assert_int_equal(total(), 1);
    assert_int_equal(finding->kind, RMM_DIAG_USE_AFTER_FREE);
    assert_int_equal(finding->call, RMM_DIAG_LAUNCH);
    assert_int_equal(finding->confidence, RMM_DIAG_LIKELY);
    assert_int_equal(finding->address, BASE + 8);
    assert_string_equal(diag.kernels[finding->user].name, "late");
    diag_launch(&diag, "late", BASE);
    assert_int_equal(diag.header->findings.used, 1);
    assert_int_equal(finding->count, 2);
}

WITH_ENGINE(the_stacks_of_allocation_and_free_are_with_the_finding)
{
    const rmm_diag_stack_t *origins =
        (void *)((char *)diag.header + diag.header->origins.offset);
    const rmm_diag_stack_t *frees =
        (void *)((char *)diag.header + diag.header->frees.offset);

    take_and_drop(BASE, 1000);
    fill(BASE, 1);
    assert_true(origins[0].frame_count > 0);
    assert_true(frees[0].frame_count > 0);
}

/* --- blocks that went back to the driver ---------------------------------------------- */

static void reopen_with(rmm_driver_memory_t driver_memory)
{
    diag_close(&diag);
    diag = diag_open_described((rmm_diag_engine_desc_t){
        .row_count = 64,
        .kernel_count = 16,
        .modes = RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_BOUNDS,
        .driver_memory = driver_memory});
}

static void return_block(uint64_t address, uint64_t bytes, int32_t device)
{
    rmm_diag_block_v1_t block = diag_block(address, bytes);

    block.device = device;
    block.flags = RMM_DIAG_BLOCK_RETURNED;
    rmm__diag_engine_on_alloc(diag.engine, &block);
    rmm__diag_engine_on_free(diag.engine, &block);
}

WITH_ENGINE(what_went_back_is_unknown_where_the_driver_is_not_followed)
{
    return_block(BASE, 1000, 0);
    fill(BASE, 8);
    diag_launch(&diag, "late", BASE);
    assert_int_equal(total(), 0);
}

WITH_ENGINE(what_went_back_is_likely_to_be_nobodys)
{
    reopen_with(RMM_DRIVER_MEMORY_SEEN);
    return_block(BASE, 1000, 0);
    fill(BASE + 1000, 8);
    assert_int_equal(total(), 0);
    fill(BASE + 8, 8);
    assert_int_equal(total(), 1);
    assert_int_equal(diag.findings[0].kind, RMM_DIAG_USE_AFTER_FREE);
    assert_int_equal(diag.findings[0].confidence, RMM_DIAG_LIKELY);
    diag_launch(&diag, "late", BASE + 999);
    assert_int_equal(total(), 2);
}

WITH_ENGINE(what_the_driver_hands_out_again_is_not_freed)
{
    reopen_with(RMM_DRIVER_MEMORY_SEEN);
    return_block(BASE, 1000, 0);
    rmm__diag_engine_on_gone(diag.engine, BASE, 500);
    fill(BASE, 8);
    assert_int_equal(total(), 0);
    fill(BASE + 500, 8);
    assert_int_equal(total(), 1);
}

WITH_ENGINE(unreported_addresses_drop_only_returned_blocks)
{
    reopen_with(RMM_DRIVER_MEMORY_SEEN);
    take_and_drop(BASE + 65536, 1000);
    return_block(BASE, 1000, 0);
    return_block(BASE + 4096, 1000, 0);
    rmm__diag_engine_driver_unseen(diag.engine, false);
    fill(BASE, 8);
    fill(BASE + 4096, 8);
    assert_int_equal(total(), 0);
    fill(BASE + 65536, 8);
    assert_int_equal(total(), 1);
    return_block(BASE, 1000, 0);
    fill(BASE, 8);
    assert_int_equal(total(), 2);
    rmm__diag_engine_driver_unseen(diag.engine, true);
    return_block(BASE, 1000, 0);
    fill(BASE, 8);
    assert_int_equal(total(), 2);
}

/* The driver unmaps what it takes back, and the program maps something else there. */
WITH_ENGINE(what_the_host_can_read_is_not_freed)
{
    const size_t bytes = 4096;
    void *page =
        mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint64_t address = (uint64_t)(uintptr_t)page;

    assert_ptr_not_equal(page, MAP_FAILED);
    reopen_with(RMM_DRIVER_MEMORY_SEEN);
    return_block(address, bytes, 0);
    errno = EBUSY;
    fill(address + 1, 8);
    assert_int_equal(errno, EBUSY);
    diag_launch(&diag, "good", address + 8);
    assert_int_equal(total(), 0);
    return_block(address, bytes, 0);
    assert_int_equal(mprotect(page, bytes, PROT_NONE), 0);
    fill(address + bytes - 1, 1);
    assert_int_equal(total(), 1);
    assert_int_equal(mprotect(page, bytes, PROT_READ), 0);
    reopen_with(RMM_DRIVER_MEMORY_APART);
    return_block(address, bytes, -1);
    fill(address, 8);
    assert_int_equal(total(), 0);
    return_block(address, bytes, 0);
    fill(address, 8);
    assert_int_equal(total(), 1);
    assert_int_equal(munmap(page, bytes), 0);
}

/* The driver hands the same addresses out again, and not all calls that take them are seen. */
WITH_ENGINE(a_reset_gpu_has_no_blocks_and_no_freed_ones)
{
    rmm_diag_block_v1_t other = diag_block(BASE + 65536, 1000);

    other.device = 1;
    rmm__diag_engine_on_alloc(diag.engine, &other);
    take(BASE, 1000);
    take_and_drop(BASE + 8192, 1000);
    rmm__diag_engine_reset(diag.engine, 0);
    fill(BASE, 4096); /* a new block of a resource that is not followed */
    fill(BASE + 8192, 4096);
    diag_launch(&diag, "good", BASE + 8, BASE + 8192);
    assert_int_equal(total(), 0);
    assert_null(diag_row(&diag, BASE));
    assert_int_equal(diag.header->device_resets, 1);
    assert_int_equal(diag.header->blocks_reset, 1);
    drop(BASE, 1000, 0); /* the resource frees it later */
    take(BASE, 500);
    fill(BASE, 501);
    fill(BASE + 65536, 1001);
    assert_int_equal(total(), 2);
}

WITH_ENGINE(memory_that_a_block_takes_is_no_more_freed)
{
    take_and_drop(BASE, 4096);
    take(BASE, 1000);
    fill(BASE, 1000);
    diag_launch(&diag, "good", BASE, BASE + 999, BASE + 1000, BASE + 1023);
    assert_int_equal(total(), 0); /* the padding is the block's */
    diag_launch(&diag, "late", BASE + 2048);
    assert_int_equal(total(), 1);
}

WITH_ENGINE(the_end_of_a_live_block_may_be_given_to_a_kernel_and_not_filled)
{
    take(BASE, 1024);
    take_and_drop(BASE + 1024, 1024);
    diag_launch(&diag, "good", BASE, BASE + 1024);
    assert_int_equal(total(), 0);
    diag_launch(&diag, "late", BASE, BASE + 1025);
    assert_int_equal(total(), 1);
    fill(BASE + 1024, 1);
    assert_int_equal(total(), 2);
    fill(BASE + 1000, 100); /* begins in the live block: it leaves that one */
    assert_int_equal(total(), 3);
    assert_int_equal(diag.findings[2].kind, RMM_DIAG_OUT_OF_BOUNDS);
}

/* What cuDNN's structs have: an int, and padding with the upper half of an old pointer. */
WITH_ENGINE(a_small_number_behind_which_is_half_a_pointer_is_no_pointer)
{
    uint64_t window = BASE + (UINT64_C(1) << 32);

    take_and_drop(window - 4096, 32 << 20);
    diag_launch(&diag, "good", window, window + 3, window + 64, window + 802816);
    assert_int_equal(total(), 0);
    diag_launch(&diag, "late", window + 3, window - 1);
    assert_int_equal(total(), 1);
    diag_launch(&diag, "late too", window + (16 << 20));
    assert_int_equal(total(), 2);
    take_and_drop(window + (UINT64_C(1) << 32), 4096);
    diag_launch(&diag, "at its begin", window + (UINT64_C(1) << 32) + 8);
    assert_int_equal(total(), 3);
}

WITH_ENGINE(the_end_of_a_live_block_does_not_hide_a_pointer_into_the_freed_one)
{
    take(BASE, 1024);
    take_and_drop(BASE + 1024, 1024);
    diag_launch(&diag, "late", BASE + 1024, BASE + 1032);
    assert_int_equal(total(), 1);
    diag_launch(&diag, "late twice", BASE + 1032, BASE + 1040);
    assert_int_equal(total(), 2);
}

WITH_ENGINE(memory_that_is_not_kept_or_is_a_graphs_is_not_remembered)
{
    diag_alloc(&diag, BASE, 100); /* no flag */
    diag_free(&diag, BASE, 100);
    take(BASE + 4096, 100);
    drop(BASE + 4096, 100, RMM_DIAG_BLOCK_CAPTURED);
    take_and_drop(BASE + 8192, 100);
    rmm__diag_engine_on_gone(diag.engine, BASE + 8000, 1000);
    diag_launch(&diag, "good", BASE, BASE + 4096, BASE + 8192);
    fill(BASE, 1);
    fill(BASE + 4096, 1);
    fill(BASE + 8192, 1);
    assert_int_equal(total(), 0);
}

WITH_ENGINE(a_free_that_the_library_refuses_frees_nothing)
{
    rmm_diag_block_v1_t other = kept(BASE, 100, 0);

    take(BASE, 100);
    other.bytes = 99;
    rmm__diag_engine_on_free(diag.engine, &other); /* another size */
    other.bytes = 100;
    other.resource_id = 4; /* another resource */
    rmm__diag_engine_on_free(diag.engine, &other);
    fill(BASE, 1);
    assert_int_equal(total(), 0);
}

WITH_ENGINE(a_block_that_finds_no_row_takes_its_memory_all_the_same)
{
    take_and_drop(BASE, 100);
    for (uint64_t i = 1; i <= 64; i++) {
        take(BASE + i * 4096, 100);
    }
    take(BASE, 100);
    assert_int_equal(diag.header->blocks_dropped, 1);
    fill(BASE, 100);
    assert_int_equal(total(), 0);
}

WITH_ENGINE(large_parameters_may_be_of_earlier_calls)
{
    const uint64_t words[] = {0, BASE, 0, BASE};
    rmm_diag_event_v1_t event = {
        .struct_size = sizeof(event),
        .kind = RMM_DIAG_LAUNCH,
        .function = "large",
        .name = "large",
        .words = words,
        .word_count = 4,
        .stale_words = 3};

    take_and_drop(BASE, 100);
    rmm__diag_engine_on_event(diag.engine, &event);
    event.stale_words = 5;
    rmm__diag_engine_on_event(diag.engine, &event);
    assert_int_equal(total(), 0);
    event.stale_words = 2;
    rmm__diag_engine_on_event(diag.engine, &event);
    assert_int_equal(total(), 1);
}

WITH_ENGINE(the_mode_decides_and_can_be_switched)
{
    rmm__diag_engine_set_modes(diag.engine, RMM_DIAG_MODE_USAGE);
    take_and_drop(BASE, 100); /* not remembered */
    take(BASE + 4096, 100);
    rmm__diag_engine_set_modes(diag.engine, RMM_DIAG_MODE_BOUNDS);
    drop(BASE + 4096, 100, 0);
    diag_launch(&diag, "late", BASE, BASE + 4096);
    assert_int_equal(total(), 1);
    assert_int_equal(diag.findings[0].block_address, BASE + 4096);
    assert_int_equal(diag.header->launches, 0); /* usage is off */
    rmm__diag_engine_set_modes(diag.engine, 0);
    diag_launch(&diag, "late", BASE + 4096);
    fill(BASE + 4096, 1);
    take(BASE + 4096, 100);
    rmm__diag_engine_set_modes(diag.engine, RMM_DIAG_MODE_BOUNDS);
    diag_launch(&diag, "good", BASE + 4096);
    assert_int_equal(total(), 1);
}
