/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of guards against a model: random blocks, launches, writes and frees on streams whose
 * work runs late, and in any order between streams. The model keeps each guard that there ever was
 * with what became of it, and decides of each check what it must find. Numbers of checks and guards
 * wrap on the way.
 */
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "diag/guards.h"
#include "harness/random.h"

enum { BLOCKS = 40, SLOTS = 2 * BLOCKS, ROOM = 640, STREAMS = 3, QUEUE = 4096 };
enum { STEPS = 40000, ROUNDS = 3, DEVICE = 2, NO_GUARD = -1 };

/* A guard that a block had or has. */
typedef struct model_guard {
    rmm_guard_t guard;
    bool is_filled;
    bool is_over; /* closed or reported: nothing is found any more */
} model_guard_t;

typedef enum outcome { PENDING, WHOLE, BROKEN, DONE } outcome_t;

typedef struct model_check {
    uint32_t call, user, count;
    rmm_stream_t stream;
    int guards[RMM_GUARDS_AT_ONCE];
    uint64_t about[RMM_GUARDS_AT_ONCE]; /* address of the block */
    bool had_graphs[RMM_GUARDS_AT_ONCE];
    outcome_t outcomes[RMM_GUARDS_AT_ONCE];
    uint64_t found[RMM_GUARDS_AT_ONCE];
} model_check_t;

typedef struct work {
    rmm_guard_job_t job;
    int filled;    /* the guard of a fill, */
    int64_t check; /* or the number of the check */
} work_t;

typedef struct model_block {
    rmm_diag_block_v1_t block;
    bool is_live;
    int guard; /* NO_GUARD: none */
    rmm_stream_t used_on;
    uint64_t graphs; /* at its last check */
} model_block_t;

static rmm_guards_t table;
static unsigned char memory[BLOCKS * ROOM], shadow[BLOCKS * ROOM];
static model_guard_t *guards;
static int guard_count, owner[SLOTS]; /* of each slot: its last guard */
static uint32_t free_slots[SLOTS], first_free, free_count;
static uint32_t last_number;
static model_block_t blocks[BLOCKS];
static model_check_t checks[2 * RMM_GUARD_CHECKS]; /* by their number, counted from 0 */
static int64_t oldest, next;
static work_t *queues[STREAMS];
static uint32_t queued[STREAMS], ran[STREAMS];
static uint64_t random_state, graphs_launched, found_count, full_count, wide_count;

/* --- the GPU ---------------------------------------------------------------------------- */

static rmm_stream_t stream_of(uint32_t number)
{
    return (rmm_stream_t)(uintptr_t)(0x100 + number);
}

static uint32_t number_of(rmm_stream_t stream)
{
    return (uint32_t)((uintptr_t)stream - 0x100);
}

static unsigned char *shadow_of(uint64_t address)
{
    return shadow + (address - (uint64_t)(uintptr_t)memory);
}

static uint32_t first_bad(const rmm_guard_t *guard)
{
    uint32_t i = 0;

    while (i < guard->bytes && shadow_of(guard->address)[i] == RMM_GUARD_PATTERN) {
        i++;
    }
    return i;
}

static void expect_fill(int of)
{
    model_guard_t *guard = &guards[of];

    if (!guard->is_over) {
        memset(shadow_of(guard->guard.address), RMM_GUARD_PATTERN, guard->guard.bytes);
        guard->is_filled = true;
    }
}

static void expect_results(model_check_t *check, bool closes)
{
    for (uint32_t i = 0; i < check->count; i++) {
        model_guard_t *guard = &guards[check->guards[i]];
        uint32_t bad = first_bad(&guard->guard);

        check->outcomes[i] = WHOLE;
        if (guard->is_filled && !guard->is_over && bad < guard->guard.bytes) {
            check->outcomes[i] = BROKEN;
            check->found[i] = guard->guard.address + bad;
            guard->is_over = true;
        }
        guard->is_over = guard->is_over || closes;
    }
}

static void run_one(uint32_t stream)
{
    const work_t *work = &queues[stream][ran[stream] % QUEUE];

    if (ran[stream] == queued[stream]) {
        return;
    }
    ran[stream]++;
    rmm__guards_run(&work->job);
    if (work->job.action == RMM_GUARD_FILL) {
        expect_fill(work->filled);
    } else {
        expect_results(
            &checks[work->check % (2 * RMM_GUARD_CHECKS)],
            work->job.action == RMM_GUARD_CLOSE);
    }
}

static void run_all(void)
{
    for (uint32_t stream = 0; stream < STREAMS; stream++) {
        while (ran[stream] != queued[stream]) {
            run_one(stream);
        }
    }
}

/* False: the GPU refuses it. */
static bool
queue(const rmm_guard_job_t *job, rmm_stream_t on, int filled, int64_t check)
{
    uint32_t stream = number_of(on);

    if (draw(&random_state, 12) == 0) {
        return false;
    }
    rmm__guards_queued(&table, job->tag);
    if (queued[stream] - ran[stream] == QUEUE) {
        run_one(stream);
    }
    queues[stream][queued[stream]++ % QUEUE] = (work_t){*job, filled, check};
    return true;
}

/* --- slots and blocks ------------------------------------------------------------------- */

static void end_guard(model_block_t *block, bool is_closed)
{
    model_guard_t *guard = &guards[block->guard];

    guard->is_over = guard->is_over || is_closed;
    free_slots[(first_free + free_count++) % SLOTS] = guard->guard.slot;
    block->guard = NO_GUARD;
}

static rmm_stack_raw_t stack_number(uint64_t number)
{
    rmm_stack_raw_t stack = {.count = 1};

    stack.frames[0] = (void *)(uintptr_t)number;
    return stack;
}

static void
expect_guard(model_block_t *block, uint32_t index, const rmm_guard_job_t *job)
{
    const rmm_guard_t *guard = &job->guards[0];
    uint64_t begin = block->block.address + block->block.bytes;
    uint32_t slot = free_slots[first_free];

    last_number = last_number + 1 == 0 ? 1 : last_number + 1;
    assert_int_equal(job->action, RMM_GUARD_FILL);
    assert_int_equal(job->count, 1);
    assert_int_equal(guard->address, begin);
    assert_int_equal(guard->bytes, block->block.end - begin);
    assert_int_equal(guard->slot, slot);
    assert_int_equal(guard->number, last_number);
    assert_true(rmm__guards_has(&table, index));
    first_free = (first_free + 1) % SLOTS;
    free_count--;
    if (owner[slot] != NO_GUARD) {
        guards[owner[slot]].is_over = true;
    }
    owner[slot] = block->guard = guard_count;
    guards[guard_count++] = (model_guard_t){.guard = *guard};
}

static void drop_block(uint32_t index)
{
    rmm__guards_drop(&table, index);
    if (blocks[index].guard != NO_GUARD) {
        end_guard(&blocks[index], true);
    }
}

static void open_block(uint32_t index)
{
    static const uint32_t rooms[] = {0, 1, 8, 200, RMM_GUARD_BYTES};
    model_block_t *block = &blocks[index];
    uint64_t address = (uint64_t)(uintptr_t)(memory + (size_t)index * ROOM);
    uint64_t bytes = 1 + draw(&random_state, 300);
    rmm_stream_t stream = stream_of((uint32_t)draw(&random_state, STREAMS));
    const rmm_stack_raw_t stack = stack_number((uint64_t)guard_count + 1);
    bool has_end = draw(&random_state, 8) != 0;
    uint32_t room = rooms[draw(&random_state, 5)];
    rmm_guard_job_t job;
    bool is_open;

    *block = (model_block_t){
        .is_live = true,
        .guard = NO_GUARD,
        .used_on = stream,
        .graphs = graphs_launched,
        .block = {
            .address = address,
            .bytes = bytes,
            .stream = stream,
            .device = draw(&random_state, 16) == 0 ? -1 : DEVICE,
            .flags = draw(&random_state, 3) != 0 ? RMM_DIAG_BLOCK_IN_STREAM_ORDER : 0,
            .end = has_end ? address + bytes + room : 0}};
    is_open = rmm__guards_open(&table, index, &block->block, &stack, &job);
    assert_int_equal(is_open, has_end && room != 0 && block->block.device == DEVICE);
    assert_int_equal(rmm__guards_has(&table, index), is_open);
    if (is_open) {
        expect_guard(block, index, &job);
        if (!queue(&job, stream, block->guard, -1)) {
            drop_block(index);
        }
    }
}

/* --- checks ----------------------------------------------------------------------------- */

static model_check_t *begin_check(uint32_t call, rmm_stream_t stream)
{
    model_check_t *check = &checks[next % (2 * RMM_GUARD_CHECKS)];
    bool is_full = next - oldest == RMM_GUARD_CHECKS;

    assert_int_equal(rmm__guards_begin(&table, call, (uint32_t)next, stream), !is_full);
    *check = (model_check_t){.call = call, .user = (uint32_t)next, .stream = stream};
    full_count += is_full;
    return is_full ? NULL : check;
}

/* The guard of a block, as an error on another one. */
static void
add_guard(model_check_t *check, uint32_t index, uint32_t about, int32_t device)
{
    model_block_t *block = &blocks[index];
    bool is_new = block->guard != NO_GUARD && device == DEVICE &&
                  check->count < RMM_GUARDS_AT_ONCE;

    rmm__guards_add(&table, index, &blocks[about].block, device);
    for (uint32_t i = 0; i < check->count; i++) {
        is_new = is_new && check->guards[i] != block->guard;
    }
    if (is_new) {
        check->guards[check->count] = block->guard;
        check->about[check->count] = blocks[about].block.address;
        check->had_graphs[check->count++] = block->graphs != graphs_launched;
        block->graphs = graphs_launched;
    }
}

static void cancel_check(model_check_t *check, const rmm_guard_job_t *job)
{
    rmm__guards_cancel(&table, job->tag);
    for (uint32_t i = 0; i < check->count; i++) {
        check->outcomes[i] = DONE;
    }
}

static void launch(void)
{
    rmm_stream_t stream = stream_of((uint32_t)draw(&random_state, STREAMS));
    const rmm_stack_raw_t stack = stack_number((uint64_t)next);
    model_check_t *check = begin_check(RMM_DIAG_LAUNCH, stream);
    uint64_t uses = draw(&random_state, draw(&random_state, 8) == 0 ? 3 * BLOCKS : 4);
    rmm_guard_job_t job;

    for (uint64_t i = 0; check != NULL && i < uses; i++) {
        uint32_t index = (uint32_t)draw(&random_state, BLOCKS);

        if (blocks[index].is_live) {
            add_guard(
                check, index, (index + 1) % BLOCKS,
                DEVICE - (draw(&random_state, 16) == 0));
            rmm__guards_use(&table, index, stream);
            blocks[index].used_on = stream;
        }
    }
    if (check == NULL) {
        return;
    }
    assert_int_equal(rmm__guards_end(&table, &stack, &job), check->count > 0);
    if (check->count > 0) {
        assert_int_equal(job.count, check->count);
        assert_true(job.tag > 1);
        wide_count += check->count == RMM_GUARDS_AT_ONCE;
        next++;
        if (!queue(&job, stream, NO_GUARD, next - 1)) {
            cancel_check(check, &job);
        }
    }
}

static void free_in_order(uint32_t index, rmm_diag_block_v1_t *freed)
{
    const rmm_stack_raw_t stack = stack_number((uint64_t)next);
    model_block_t *block = &blocks[index];
    bool is_full = next - oldest == RMM_GUARD_CHECKS;
    model_check_t *check = &checks[next % (2 * RMM_GUARD_CHECKS)];
    int guard = block->guard;
    rmm_guard_job_t job;

    assert_int_equal(
        rmm__guards_close(&table, index, freed, &block->block, &stack, &job), !is_full);
    if (is_full) {
        end_guard(block, true);
        return;
    }
    assert_int_equal(job.action, RMM_GUARD_CLOSE);
    *check =
        (model_check_t){.user = RMM_DIAG_NO_USER, .stream = freed->stream, .count = 1};
    check->guards[0] = guard;
    check->about[0] = block->block.address;
    check->had_graphs[0] = block->graphs != graphs_launched;
    next++;
    end_guard(block, false);
    if (!queue(&job, freed->stream, NO_GUARD, next - 1)) {
        rmm__guards_shut(&table, &job);
        check->outcomes[0] = DONE;
        guards[guard].is_over = true;
    }
}

static bool waits_at_free(uint32_t index)
{
    return (blocks[index].block.flags & RMM_DIAG_BLOCK_IN_STREAM_ORDER) == 0;
}

static void free_block(uint32_t index)
{
    const rmm_stack_raw_t stack = stack_number(1);
    model_block_t *block = &blocks[index];
    rmm_diag_block_v1_t freed = block->block;
    bool is_sync = draw(&random_state, 4) == 0;
    rmm_guard_job_t job;

    freed.stream = stream_of((uint32_t)draw(&random_state, STREAMS));
    freed.flags |= is_sync ? RMM_DIAG_BLOCK_SYNC : 0;
    block->is_live = false;
    if (block->guard != NO_GUARD && !waits_at_free(index) && !is_sync) {
        free_in_order(index, &freed);
    } else {
        bool waits = waits_at_free(index) && !is_sync;

        assert_false(
            rmm__guards_close(&table, index, &freed, &block->block, &stack, &job));
        if (block->guard != NO_GUARD) {
            end_guard(block, !waits);
            if (waits) {
                run_all(); /* as the free of such memory does */
            }
        }
    }
    assert_false(rmm__guards_has(&table, index));
}

/* --- results ---------------------------------------------------------------------------- */

/* The next that must be found; the oldest checks end that have nothing left. */
static bool expect_found(model_check_t **check_out, uint32_t *at_out)
{
    for (int64_t number = oldest; number < next; number++) {
        model_check_t *check = &checks[number % (2 * RMM_GUARD_CHECKS)];
        bool is_pending = false;

        for (uint32_t i = 0; i < check->count; i++) {
            if (check->outcomes[i] == BROKEN) {
                *check_out = check;
                *at_out = i;
                check->outcomes[i] = DONE;
                return true;
            }
            is_pending = is_pending || check->outcomes[i] == PENDING;
        }
        oldest += number == oldest && !is_pending;
    }
    return false;
}

static bool take(void)
{
    rmm_guard_broken_t broken;
    model_check_t *check = NULL;
    uint32_t i = 0;
    bool is_found = expect_found(&check, &i);

    assert_int_equal(rmm__guards_take(&table, &broken), is_found);
    if (is_found) {
        assert_int_equal(broken.address, check->found[i]);
        assert_int_equal(broken.check->call, check->call);
        assert_int_equal(broken.check->user, check->user);
        assert_ptr_equal(broken.check->stream, check->stream);
        assert_int_equal(broken.suspect->block.address, check->about[i]);
        assert_int_equal(broken.suspect->had_graphs, check->had_graphs[i]);
        assert_int_equal(
            (uintptr_t)broken.suspect->stack.frames[0],
            (uintptr_t)check->guards[i] + 1);
        found_count++;
    }
    return is_found;
}

/* --- the test --------------------------------------------------------------------------- */

/* A kernel, or the next owner of the memory. */
static void write_bytes(void)
{
    for (int i = 0; i < 16; i++) {
        size_t at = draw(&random_state, sizeof(memory));

        memory[at] = shadow[at] = (unsigned char)draw(&random_state, 256);
    }
}

static void compare(void)
{
    assert_memory_equal(memory, shadow, sizeof(memory));
    assert_int_equal(table.free_count, free_count);
    assert_int_equal((uint32_t)(table.next - table.oldest), next - oldest);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        if (blocks[i].guard != NO_GUARD) {
            assert_true(rmm__guards_is_of(&table, i, blocks[i].used_on));
            assert_false(rmm__guards_is_of(&table, i, stream_of(STREAMS)));
        }
    }
}

/* `speed`: how much of the queued work runs meanwhile, of 8. */
static void step(uint64_t speed)
{
    uint32_t index = (uint32_t)draw(&random_state, BLOCKS);

    switch (draw(&random_state, 8)) {
    case 0:
    case 1:
        if (!blocks[index].is_live) {
            open_block(index);
        } else if (
            draw(&random_state, 2) == 0 &&
            (speed > 0 || !waits_at_free(index) || blocks[index].guard == NO_GUARD)) {
            free_block(index);
        }
        break;
    case 2:
        write_bytes();
        break;
    case 3:
        if (draw(&random_state, 16) == 0) {
            drop_block(index);
        }
        graphs_launched = table.graphs += draw(&random_state, 4) == 0;
        break;
    case 4:
        (void)take();
        break;
    default:
        launch();
        break;
    }
    for (uint64_t i = 0; i < 8 && draw(&random_state, 8) < speed; i++) {
        run_one((uint32_t)draw(&random_state, STREAMS));
    }
    compare();
}

static void set_up_model(uint32_t first_check, uint32_t first_number)
{
    assert_true(rmm__guards_init(&table, BLOCKS));
    table.oldest = table.next = first_check;
    table.last_number = last_number = first_number;
    oldest = next = 0;
    guard_count = 0;
    graphs_launched = 0;
    first_free = 0;
    free_count = SLOTS;
    memset(memory, 0, sizeof(memory));
    memset(shadow, 0, sizeof(shadow));
    for (uint32_t i = 0; i < SLOTS; i++) {
        free_slots[i] = i;
        owner[i] = NO_GUARD;
    }
    for (uint32_t i = 0; i < BLOCKS; i++) {
        blocks[i] = (model_block_t){.guard = NO_GUARD};
    }
    for (uint32_t i = 0; i < STREAMS; i++) {
        queued[i] = ran[i] = 0;
    }
}

/* The round's checks and guards begin `before` their numbers wrap. */
static void run_round(uint32_t before)
{
    set_up_model(0u - before, 0u - before);
    for (int i = 0; i < STEPS; i++) {
        step(i % 20000 < 10000 ? 6 : 0); /* for some time the GPU does nothing */
    }
    run_all();
    while (take()) {
    }
    compare();
    rmm__guards_fini(&table);
}

TEST_CASE(finds_what_a_model_finds)
{
    const char *text = getenv("RMM_TEST_SEED");

    random_state = text != NULL ? strtoull(text, NULL, 0) : 20261123u;
    print_message("RMM_TEST_SEED=%llu\n", (unsigned long long)random_state);
    for (uint32_t round = 0; round < ROUNDS; round++) {
        run_round((uint32_t)draw(&random_state, 2000));
    }
    print_message(
        "%llu found, %llu refused, %llu of 16 guards\n",
        (unsigned long long)found_count, (unsigned long long)full_count,
        (unsigned long long)wide_count);
    assert_true(found_count > 1000);
    assert_true(full_count > 1000);
    assert_true(wide_count > 100);
}

TEST_CASE(a_guard_ends_with_the_memory_that_is_the_blocks_alone)
{
    const rmm_stack_raw_t stack = {.count = 0};
    rmm_diag_block_v1_t block = {.address = 0x10000, .bytes = 100, .end = 0x20000};
    rmm_guard_job_t job;

    assert_true(rmm__guards_init(&table, 1));
    assert_true(rmm__guards_open(&table, 0, &block, &stack, &job));
    assert_int_equal(job.guards[0].address, 0x10000 + 100);
    assert_int_equal(job.guards[0].bytes, RMM_GUARD_BYTES_MAX);
    rmm__guards_drop(&table, 0);
    block.end = block.address + 99; /* it cannot be */
    assert_false(rmm__guards_open(&table, 0, &block, &stack, &job));
    rmm__guards_fini(&table);
}

/* By its close on the GPU, or by the host if that was not queued; a check comes late. */
static void expect_no_more_found(bool is_queued)
{
    static unsigned char bytes[32];
    const rmm_stack_raw_t stack = {.count = 0};
    rmm_diag_block_v1_t block = {
        .address = (uint64_t)(uintptr_t)bytes,
        .bytes = 16,
        .flags = RMM_DIAG_BLOCK_IN_STREAM_ORDER,
        .end = (uint64_t)(uintptr_t)bytes + 32};
    rmm_guard_job_t fill, check, last;
    rmm_guard_broken_t broken;

    assert_true(rmm__guards_init(&table, 1));
    assert_true(rmm__guards_open(&table, 0, &block, &stack, &fill));
    rmm__guards_run(&fill);
    assert_true(rmm__guards_begin(&table, RMM_DIAG_LAUNCH, 0, NULL));
    rmm__guards_add(&table, 0, &block, 0);
    assert_true(rmm__guards_end(&table, &stack, &check));
    assert_true(rmm__guards_close(&table, 0, &block, &block, &stack, &last));
    if (is_queued) {
        rmm__guards_run(&last);
    } else {
        rmm__guards_shut(&table, &last);
    }
    bytes[20] = 0; /* by the next owner */
    rmm__guards_run(&check);
    assert_false(rmm__guards_take(&table, &broken));
    rmm__guards_fini(&table);
}

TEST_CASE(a_closed_guard_is_found_no_more)
{
    expect_no_more_found(true);
    expect_no_more_found(false);
}

static int take_memory(void **state)
{
    guards = calloc(STEPS, sizeof(*guards));
    for (uint32_t i = 0; i < STREAMS; i++) {
        queues[i] = calloc(QUEUE, sizeof(*queues[i]));
        assert_non_null(queues[i]);
    }
    return guards != NULL ? 0 : -1;
}

static int give_memory(void **state)
{
    free(guards);
    for (uint32_t i = 0; i < STREAMS; i++) {
        free(queues[i]);
    }
    return 0;
}

int main(void)
{
    return harness_run_cases(take_memory, give_memory);
}
