/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sharing out limits. The last case is a model test: random programs that grow, free, start and
 * end, while the daemon shares out and limits change. Each step of a program may happen inside any
 * call that the daemon makes, as it would on another processor.
 */
#include "harness/harness.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "harness/random.h"
#include "model/apportion.h"

#define PROGRAMS 12u
#define QUOTAS 4u
#define ROUNDS 4000u

/* What a thread of a program does next. */
typedef enum step { STEP_IDLE, STEP_PROMISED, STEP_ALLOWED, STEP_COUNTED } step_t;

typedef struct program {
    bool lives;
    uint64_t share; /* in its control page */
    uint64_t held, promised, growing;
    step_t step;
    claim_t claim;
    uint64_t wanted;
    bool asks;
} program_t;

typedef struct world {
    uint64_t random;
    program_t programs[PROGRAMS];
    bool is_in[PROGRAMS][QUOTAS];
    uint64_t limits[QUOTAS];
    uint64_t allowed[QUOTAS]; /* the limit, or what was used when it was lowered */
    quota_t quotas[QUOTAS];
    claimant_t claimants[PROGRAMS];
    bool moves; /* programs go on meanwhile */
} world_t;

static uint64_t used_in(const world_t *world, uint32_t quota)
{
    uint64_t used = 0;
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        const program_t *program = &world->programs[i];
        if (program->lives && world->is_in[i][quota]) {
            used += program->held;
        }
    }
    return used;
}

static void check(const world_t *world)
{
    for (uint32_t quota = 0; quota < QUOTAS; quota++) {
        assert_true(used_in(world, quota) <= world->allowed[quota]);
    }
}

static uint64_t below(world_t *world, uint64_t end)
{
    return end == 0 ? 0 : draw(&world->random, end);
}

/* --- programs ------------------------------------------------------------------------- */

static void begin_growth(world_t *world, program_t *program)
{
    program->growing = 1 + below(world, 60);
    program->promised += program->growing;
    program->step = STEP_PROMISED;
}

/* As limits.c: promise, read the share, take, count, take the promise back. */
static void step(world_t *world, program_t *program)
{
    switch (program->step) {
    case STEP_IDLE:
        if (below(world, 4) == 0) {
            program->held -= below(world, program->held + 1);
        } else {
            begin_growth(world, program);
        }
        break;
    case STEP_PROMISED:
        if (program->held + program->promised <= program->share) {
            program->step = STEP_ALLOWED;
        } else {
            program->promised -= program->growing;
            program->wanted = program->growing;
            program->asks = true;
            program->step = STEP_IDLE;
        }
        break;
    case STEP_ALLOWED:
        program->held += program->growing;
        program->step = STEP_COUNTED;
        break;
    case STEP_COUNTED:
        program->promised -= program->growing;
        program->step = STEP_IDLE;
        break;
    }
    check(world);
}

static void others_go_on(world_t *world)
{
    for (uint64_t steps = world->moves ? below(world, 6) : 0; steps > 0; steps--) {
        program_t *program = &world->programs[below(world, PROGRAMS)];
        if (program->lives) {
            step(world, program);
        }
    }
}

static uint64_t read_use(const claimant_t *claimant, void *arg)
{
    const program_t *program = claimant->subject;
    others_go_on(arg);
    uint64_t promised = program->promised;
    others_go_on(arg);
    return promised + program->held;
}

static void set_share(const claimant_t *claimant, const quota_t *least, void *arg)
{
    program_t *program = claimant->subject;
    (void)least;
    others_go_on(arg);
    program->share = claimant->claim->share_bytes;
    others_go_on(arg);
}

/* --- the daemon ----------------------------------------------------------------------- */

static void run(world_t *world)
{
    apportion_t sums = {
        .quotas = world->quotas,
        .quota_count = QUOTAS,
        .claimants = world->claimants,
        .read = read_use,
        .set = set_share,
        .arg = world};
    for (uint32_t i = 0; i < QUOTAS; i++) {
        world->quotas[i] = (quota_t){.limit_bytes = world->limits[i]};
    }
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        program_t *program = &world->programs[i];
        claimant_t *claimant = &world->claimants[sums.claimant_count];
        if (!program->lives) {
            continue;
        }
        *claimant = (claimant_t){
            .claim = &program->claim,
            .subject = program,
            .takes_shares = true,
            .asks = program->asks,
            .wanted_bytes = program->wanted};
        program->asks = false;
        for (uint16_t quota = 0; quota < QUOTAS; quota++) {
            if (world->is_in[i][quota]) {
                claimant->quotas[claimant->quota_count++] = quota;
            }
        }
        sums.claimant_count++;
    }
    apportion_run(&sums);
    for (uint32_t i = 0; i < QUOTAS; i++) {
        uint64_t used = used_in(world, i);
        for (uint32_t k = 0; k < PROGRAMS; k++) {
            const program_t *program = &world->programs[k];
            bool counts = program->lives && world->is_in[k][i];
            used += counts && program->step == STEP_ALLOWED ? program->growing : 0;
        }
        world->allowed[i] = used > world->limits[i] ? used : world->limits[i];
    }
}

/* A world of one quota with so many programs, all in it. */
static world_t *begin_world(uint32_t programs, uint64_t limit)
{
    world_t *world = calloc(1, sizeof(*world));
    assert_non_null(world);
    for (uint32_t i = 0; i < QUOTAS; i++) {
        world->limits[i] = world->allowed[i] = i == 0 ? limit : UINT64_MAX / 2;
    }
    for (uint32_t i = 0; i < programs; i++) {
        world->programs[i].lives = true;
        world->is_in[i][0] = true;
    }
    return world;
}

static void ask(program_t *program, uint64_t bytes)
{
    program->asks = true;
    program->wanted = bytes;
}

/* --- cases ---------------------------------------------------------------------------- */

TEST_CASE(one_program_gets_all)
{
    world_t *world = begin_world(1, 1000);
    ask(&world->programs[0], 10);
    run(world);
    assert_int_equal(world->programs[0].share, 1000);
    free(world);
}

TEST_CASE(two_get_what_they_want_and_a_part_of_the_rest)
{
    world_t *world = begin_world(2, 1000);
    ask(&world->programs[0], 200);
    run(world);
    assert_int_equal(world->programs[0].share, 600);
    ask(&world->programs[1], 350);
    run(world);
    assert_int_equal(world->programs[1].share, 375);
    free(world);
}

TEST_CASE(what_one_does_not_use_goes_to_another)
{
    world_t *world = begin_world(2, 1000);
    ask(&world->programs[0], 900);
    run(world);
    world->programs[0].held = 100;
    ask(&world->programs[1], 900);
    run(world);
    assert_int_equal(world->programs[0].share, 100);
    assert_int_equal(world->programs[1].share, 900);
    ask(&world->programs[1], 901);
    run(world);
    assert_int_equal(world->programs[1].share, 900);
    free(world);
}

TEST_CASE(a_program_that_was_free_keeps_what_it_holds_and_gets_no_more)
{
    world_t *world = begin_world(1, 1000);
    program_t *program = &world->programs[0];
    program->claim = (claim_t){.share_bytes = APPORTION_NO_SHARE, .is_known = true};
    program->share = APPORTION_NO_SHARE;
    program->held = 1500;
    run(world);
    assert_int_equal(program->share, 1000); /* it frees 500 before it takes anything */
    ask(program, 1);
    run(world);
    assert_int_equal(program->share, 1000);
    program->held = 900;
    ask(program, 50);
    run(world);
    assert_int_equal(program->share, 1000);
    free(world);
}

TEST_CASE(without_a_limit_a_program_is_free_again)
{
    world_t *world = begin_world(1, 1000);
    run(world);
    assert_int_equal(world->programs[0].share, 0);
    world->is_in[0][0] = false;
    run(world);
    assert_true(world->programs[0].share == APPORTION_NO_SHARE);
    free(world);
}

TEST_CASE(an_old_program_counts_although_it_takes_no_share)
{
    program_t old = {.held = 700}, asking = {.asks = true};
    quota_t quota = {.limit_bytes = 1000};
    claimant_t claimants[] = {
        {.claim = &old.claim, .subject = &old, .quota_count = 1},
        {.claim = &asking.claim,
         .subject = &asking,
         .takes_shares = true,
         .asks = true,
         .wanted_bytes = 250,
         .quota_count = 1}};
    world_t *world = begin_world(0, 0);
    apportion_t sums = {
        .quotas = &quota,
        .quota_count = 1,
        .claimants = claimants,
        .claimant_count = 2,
        .read = read_use,
        .set = set_share,
        .arg = world};
    apportion_run(&sums);
    assert_int_equal(asking.share, 275); /* and a half of the 50 that are left */
    assert_int_equal(old.share, 0);
    free(world);
}

/* What a lie can do: no sum runs over, and the other quota has its room. */
TEST_CASE(a_program_that_lies_takes_only_its_own_quotas)
{
    world_t *world = begin_world(3, 1000);
    world->is_in[2][0] = false;
    world->is_in[2][1] = true;
    world->limits[1] = world->allowed[1] = 500;
    world->allowed[0] = UINT64_MAX;
    world->programs[0].held = UINT64_MAX / 2;
    world->programs[1].promised = UINT64_MAX / 2;
    run(world);
    ask(&world->programs[2], 100);
    run(world);
    assert_int_equal(world->programs[2].share, 500);
    free(world);
}

/* --- the model test ------------------------------------------------------------------- */

static void start(world_t *world, uint32_t number)
{
    world->programs[number] = (program_t){.lives = true}; /* its page says: ask first */
    for (uint32_t quota = 0; quota < QUOTAS; quota++) {
        world->is_in[number][quota] = below(world, 2) == 0;
    }
    world->is_in[number][0] = true; /* one of all */
}

static void change_something(world_t *world)
{
    uint32_t number = (uint32_t)below(world, PROGRAMS);
    uint32_t quota = (uint32_t)below(world, QUOTAS);
    switch (below(world, 8)) {
    case 0:
        world->programs[number].lives = false; /* killed, whatever it did */
        break;
    case 1:
        if (!world->programs[number].lives) {
            start(world, number);
        }
        break;
    case 2:
        world->limits[quota] = below(world, 1500);
        if (world->limits[quota] > world->allowed[quota]) {
            world->allowed[quota] = world->limits[quota];
        }
        break;
    default:
        break;
    }
}

static void live(uint64_t seed)
{
    world_t *world = begin_world(0, 1000);
    world->random = seed;
    world->moves = true;
    for (uint32_t i = 0; i < QUOTAS; i++) {
        world->limits[i] = world->allowed[i] = 100 + below(world, 1000);
    }
    for (uint32_t i = 0; i < PROGRAMS; i++) {
        start(world, i);
    }
    for (uint32_t round = 0; round < ROUNDS; round++) {
        others_go_on(world);
        change_something(world);
        run(world);
        check(world);
    }
    free(world);
}

TEST_CASE(random_programs_never_hold_more_than_a_limit)
{
    const char *wanted = getenv("RMM_TEST_SEED");
    uint64_t seed = wanted != NULL ? strtoull(wanted, NULL, 0) : 1;
    for (uint64_t i = 0; i < (wanted != NULL ? 1 : 20); i++) {
        print_message("RMM_TEST_SEED=%" PRIu64 "\n", seed + i);
        live(seed + i);
    }
}
