/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Work on guards, and what ends a guard in the midst of it: the host that drops the block, or a
 * close on another stream. The bytes of the guard are in a page that may not be touched: the first
 * access of the work stops in a handler, which does what is to come between and gives the page.
 */
#include "harness/harness.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "diag/diag_format.h"
#include "diag/guards.h"
#include "unit/diag_fixture.h"

enum { PAGE_BYTES = 4096, BYTES = 16, ROOM = 64 };

typedef void (*between_fn)(void);

static rmm_guards_t table;
static rmm_diag_block_v1_t block;
static rmm_guard_job_t filling, checking, closing;
static unsigned char *page;
static between_fn between;
static const rmm_stack_raw_t no_stack = {.count = 0};

static void give_page(int number)
{
    between_fn now = between;

    if (now == NULL) {
        abort(); /* another access than the one that is waited for */
    }
    between = NULL;
    if (mprotect(page, PAGE_BYTES, PROT_READ | PROT_WRITE) != 0) {
        abort();
    }
    now();
}

/* The first access to the guard stops, and this comes first. */
static void run_with(const rmm_guard_job_t *job, between_fn what)
{
    struct sigaction action = {.sa_handler = give_page}, before;

    between = what;
    assert_int_equal(sigaction(SIGSEGV, &action, &before), 0);
    assert_int_equal(mprotect(page, PAGE_BYTES, PROT_NONE), 0);
    rmm__guards_run(job);
    assert_int_equal(sigaction(SIGSEGV, &before, NULL), 0);
    assert_null(between); /* it was run */
}

static void begin_check(rmm_guard_job_t *job)
{
    assert_true(rmm__guards_begin(&table, RMM_DIAG_LAUNCH, 0, NULL));
    rmm__guards_add(&table, 0, &block, 0);
    assert_true(rmm__guards_end(&table, &no_stack, job));
}

static void open_block(void)
{
    memset(page, 0, PAGE_BYTES);
    assert_true(rmm__guards_init(&table, 1));
    block = (rmm_diag_block_v1_t){
        .address = (uint64_t)(uintptr_t)page,
        .bytes = BYTES,
        .flags = RMM_DIAG_BLOCK_IN_STREAM_ORDER,
        .end = (uint64_t)(uintptr_t)page + ROOM};
    assert_true(rmm__guards_open(&table, 0, &block, &no_stack, &filling));
    begin_check(&checking);
}

/* The next owner of the memory writes; then a check comes late. */
static void expect_nothing_found(void)
{
    rmm_guard_broken_t broken;

    page[BYTES] = 1;
    rmm__guards_run(&checking);
    assert_false(rmm__guards_take(&table, &broken));
    rmm__guards_fini(&table);
}

static void drop(void)
{
    rmm__guards_drop(&table, 0);
}

static void close_elsewhere(void)
{
    rmm__guards_run(&closing);
}

static void prepare_close(void)
{
    assert_true(rmm__guards_close(&table, 0, &block, &block, &no_stack, &closing));
}

TEST_CASE(a_guard_dropped_while_it_is_filled_stays_closed)
{
    open_block();
    run_with(&filling, drop);
    expect_nothing_found();
}

TEST_CASE(a_guard_closed_on_another_stream_while_it_is_filled_stays_closed)
{
    open_block();
    prepare_close();
    run_with(&filling, close_elsewhere);
    expect_nothing_found();
}

TEST_CASE(a_guard_closed_before_its_fill_is_not_filled)
{
    open_block();
    prepare_close();
    rmm__guards_run(&closing);
    rmm__guards_run(&filling);
    assert_int_equal(page[BYTES], 0); /* the next owner's */
    expect_nothing_found();
}

TEST_CASE(a_guard_dropped_while_it_is_read_is_not_broken)
{
    open_block();
    rmm__guards_run(&filling);
    page[BYTES + 5] = 1;
    run_with(&checking, drop);
    expect_nothing_found();
}

TEST_CASE(a_guard_closed_on_another_stream_while_it_is_read_is_not_broken)
{
    rmm_guard_broken_t broken;

    open_block();
    rmm__guards_run(&filling);
    page[BYTES + 5] = 1;
    prepare_close();
    run_with(&checking, close_elsewhere);
    /* the close saw it, and the check that was read in the midst of it did not again */
    assert_true(rmm__guards_take(&table, &broken));
    assert_int_equal(broken.check->call, 0);
    assert_false(rmm__guards_take(&table, &broken));
    expect_nothing_found();
}

static rmm_guard_job_t filling_next, checking_next;

/* Two slots for one block: two more blocks, and the slot is the new one's. */
static void pass_the_slot_on(void)
{
    rmm__guards_drop(&table, 0);
    for (int i = 0; i < 2; i++) {
        if (i > 0) {
            rmm__guards_drop(&table, 0);
        }
        if (!rmm__guards_open(&table, 0, &block, &no_stack, &filling_next)) {
            abort();
        }
    }
}

/* The guard that has the slot now is filled, and a write that breaks it is found. */
static void fill_and_break_the_next(rmm_guard_broken_t *broken_out)
{
    rmm__guards_run(&filling_next);
    page[BYTES + 5] = 1;
    begin_check(&checking_next);
    rmm__guards_run(&checking_next);
    assert_true(rmm__guards_take(&table, broken_out));
}

TEST_CASE(a_late_fill_neither_opens_nor_ends_the_guard_that_has_its_slot)
{
    rmm_guard_broken_t broken;

    open_block();
    run_with(&filling, pass_the_slot_on);
    assert_int_equal(filling_next.guards[0].slot, filling.guards[0].slot);
    page[BYTES + 5] = 1;
    begin_check(&checking_next);
    rmm__guards_run(&checking_next);
    assert_false(rmm__guards_take(&table, &broken)); /* not filled yet */
    fill_and_break_the_next(&broken);
    rmm__guards_fini(&table);
}

TEST_CASE(a_late_check_does_not_end_the_guard_that_has_its_slot)
{
    rmm_guard_broken_t broken;

    open_block();
    rmm__guards_run(&filling);
    page[BYTES + 5] = 1;
    run_with(&checking, pass_the_slot_on);
    assert_false(rmm__guards_take(&table, &broken));
    fill_and_break_the_next(&broken);
    rmm__guards_fini(&table);
}

/* Closed for good by the GPU: a close of the guard before it in the slot comes behind that. */
TEST_CASE(a_late_close_does_not_open_the_guard_that_has_its_slot)
{
    rmm_guard_job_t closing_first;

    open_block();
    rmm__guards_run(&filling);
    prepare_close();
    closing_first = closing;
    for (int i = 0; i < 2; i++) {
        assert_true(rmm__guards_open(&table, 0, &block, &no_stack, &filling));
        rmm__guards_run(&filling);
        begin_check(&checking);
        prepare_close();
        rmm__guards_run(&closing);
    }
    assert_int_equal(filling.guards[0].slot, closing_first.guards[0].slot);
    rmm__guards_run(&closing_first);
    expect_nothing_found();
}

static int take_page(void **state)
{
    page = mmap(
        NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    return page == MAP_FAILED ? -1 : 0;
}

static int give_page_back(void **state)
{
    return munmap(page, PAGE_BYTES);
}

/* --- between a launch and its check ------------------------------------------------------- */

enum { SHARE = 512, USED = 100 };

static diag_fixture_t diag;
static unsigned char memory[2 * SHARE];
static bool frees_the_first; /* once, before the next check is queued */

static rmm_diag_block_v1_t share(size_t number, uint32_t flags)
{
    rmm_diag_block_v1_t of =
        diag_block((uint64_t)(uintptr_t)&memory[number * SHARE], USED);

    of.end = of.address + SHARE;
    of.flags = flags;
    return of;
}

/* As a GPU that is never busy. */
static rmm_guard_answer_t run_at_once(
    int32_t device, rmm_stream_t stream, const rmm_guard_job_t *job, int *error_out)
{
    rmm_diag_block_v1_t first = share(0, RMM_DIAG_BLOCK_RETURNED);

    if (job->action == RMM_GUARD_CHECK && frees_the_first) {
        frees_the_first = false;
        rmm__diag_engine_on_free(diag.engine, &first);
        memset(memory, 0, SHARE);
    }
    rmm__guards_run(job);
    return RMM_GUARD_QUEUED;
}

static void
open_two(const rmm_diag_block_v1_t *first, const rmm_diag_block_v1_t *second)
{
    diag = diag_open_described((rmm_diag_engine_desc_t){
        .row_count = 8,
        .kernel_count = 8,
        .modes = RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_GUARDS,
        .queue = run_at_once});
    rmm__diag_engine_on_alloc(diag.engine, first);
    rmm__diag_engine_on_alloc(diag.engine, second);
    frees_the_first = true;
}

static void expect_findings(uint64_t count)
{
    rmm__diag_engine_settle(diag.engine);
    assert_int_equal(diag.header->findings_total, count);
}

/*
 * Another thread frees memory of the driver, and gets it again, while this one launches a kernel
 * that is given the block behind it, or the block itself, and does not use it.
 */
TEST_CASE(what_the_driver_has_back_is_not_checked)
{
    rmm_diag_block_v1_t first = share(0, RMM_DIAG_BLOCK_RETURNED);
    rmm_diag_block_v1_t second = share(1, RMM_DIAG_BLOCK_RETURNED);

    open_two(&first, &second);
    diag_launch(&diag, "correct", second.address);
    assert_false(frees_the_first);
    expect_findings(0);
    diag_close(&diag);
    open_two(&first, &second);
    diag_launch(&diag, "correct", first.address, second.address);
    assert_false(frees_the_first);
    expect_findings(0);
    memory[SHARE + USED] = 0;
    diag_launch(&diag, "faulty", second.address);
    expect_findings(1);
    diag_close(&diag);
}

/* --- the end of the process ---------------------------------------------------------- */

/* As a signal handler that ends the process, in the midst of a launch. */
static char *end_in_a_call(const char *name, char *to, size_t *bytes, int *status)
{
    rmm__diag_engine_settle(diag.engine);
    *status = -1;
    return NULL;
}

TEST_CASE(the_end_does_not_wait_for_the_call_that_it_interrupts)
{
    diag = diag_open_described((rmm_diag_engine_desc_t){
        .row_count = 8,
        .kernel_count = 8,
        .demangle = end_in_a_call,
        .modes = RMM_DIAG_MODE_USAGE | RMM_DIAG_MODE_GUARDS,
        .queue = run_at_once});
    diag_launch(&diag, "kernel", 0);
    assert_int_equal(diag.header->launches, 1);
    diag_close(&diag);
}

int main(void)
{
    return harness_run_cases(take_page, give_page_back);
}
