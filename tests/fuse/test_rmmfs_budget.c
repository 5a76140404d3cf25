/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What users may use of the daemon: limits hold, what is given back can be taken again, and
 * however many users there are the table stays right.
 */
#include "harness/harness.h"

#include "support/budget.h"

#define OWN 500u
#define A 1000u
#define B 1001u

static budget_t budget;

static int set_up(void **state)
{
    budget_init(&budget, OWN);
    return 0;
}

static int tear_down(void **state)
{
    budget_fini(&budget);
    return 0;
}

#define TEST(name) TEST_CASE_WITH(name, set_up, tear_down)

static budget_user_t user_of(uid_t uid)
{
    budget_user_t user;
    uint32_t position = 0;
    while (budget_user_at(&budget, position, &user) && user.uid != uid) {
        position++;
    }
    assert_int_equal(user.uid, uid);
    return user;
}

TEST(a_user_takes_up_to_the_limit)
{
    uint64_t limit = budget_limit(&budget, A, BUDGET_TEXT_BYTES);
    assert_true(budget_take(&budget, A, BUDGET_TEXT_BYTES, limit - 1));
    assert_false(budget_take(&budget, A, BUDGET_TEXT_BYTES, 2));
    assert_false(budget_take(&budget, A, BUDGET_TEXT_BYTES, UINT64_MAX));
    assert_true(budget_take(&budget, A, BUDGET_TEXT_BYTES, 1));
    assert_false(budget_take(&budget, A, BUDGET_TEXT_BYTES, 1));
    assert_true(budget_take(&budget, A, BUDGET_HANDLES, 1));
    assert_true(budget_take(&budget, B, BUDGET_TEXT_BYTES, limit));
    assert_int_equal(user_of(A).used[BUDGET_TEXT_BYTES], limit);
    assert_int_equal(user_of(A).refused[BUDGET_TEXT_BYTES], 3);
    assert_int_equal(user_of(A).refused[BUDGET_HANDLES], 0);
    budget_give(&budget, A, BUDGET_TEXT_BYTES, 10);
    assert_true(budget_take(&budget, A, BUDGET_TEXT_BYTES, 10));
    assert_false(budget_take(&budget, A, BUDGET_TEXT_BYTES, 1));
}

TEST(giving_back_more_than_is_used_gives_back_what_is_used)
{
    assert_true(budget_take(&budget, A, BUDGET_HANDLES, 3));
    assert_true(budget_take(&budget, B, BUDGET_HANDLES, 5));
    budget_give(&budget, A, BUDGET_HANDLES, UINT64_MAX);
    assert_int_equal(user_of(A).used[BUDGET_HANDLES], 0);
    assert_int_equal(user_of(B).used[BUDGET_HANDLES], 5);
    assert_int_equal(budget.used_together[BUDGET_HANDLES], 5);
}

TEST(root_and_the_daemons_user_have_more_and_are_always_have_room)
{
    uint64_t limit = budget_limit(&budget, A, BUDGET_TEXT_BYTES);
    uint64_t larger = budget_limit(&budget, 0, BUDGET_TEXT_BYTES);
    assert_true(larger > limit);
    assert_int_equal(budget_limit(&budget, OWN, BUDGET_TEXT_BYTES), larger);
    uid_t uid = A;
    while (budget_take(&budget, uid, BUDGET_TEXT_BYTES, limit)) {
        uid++;
        assert_true(uid < A + 1000);
    }
    assert_true(uid > A + 1); /* together more than one user alone */
    assert_int_equal(user_of(uid).refused[BUDGET_TEXT_BYTES], 1);
    assert_true(budget_take(&budget, 0, BUDGET_TEXT_BYTES, larger));
    assert_false(budget_take(&budget, 0, BUDGET_TEXT_BYTES, 1));
    assert_true(budget_take(&budget, OWN, BUDGET_TEXT_BYTES, larger));
}

TEST(further_users_share_an_entry_and_give_back_to_it)
{
    uid_t uid = A;
    while (budget.count < BUDGET_USERS_MAX) {
        assert_true(budget_take(&budget, uid++, BUDGET_HANDLES, 1));
    }
    assert_true(budget_take(&budget, uid, BUDGET_HANDLES, 2));
    assert_true(budget_take(&budget, uid + 1, BUDGET_HANDLES, 3));
    assert_int_equal(user_of(BUDGET_OTHERS).used[BUDGET_HANDLES], 5);
    /* An entry that is free now is not for one that is counted among the others. */
    budget_give(&budget, A, BUDGET_HANDLES, 1);
    assert_true(budget_take(&budget, uid, BUDGET_HANDLES, 1));
    assert_int_equal(user_of(BUDGET_OTHERS).used[BUDGET_HANDLES], 6);
    budget_give(&budget, uid, BUDGET_HANDLES, 3);
    budget_give(&budget, uid + 1, BUDGET_HANDLES, 3);
    assert_int_equal(user_of(BUDGET_OTHERS).used[BUDGET_HANDLES], 0);
    assert_true(budget_take(&budget, uid, BUDGET_HANDLES, 4));
    assert_int_equal(user_of(uid).used[BUDGET_HANDLES], 4);
}

TEST(idle_users_are_evicted_those_with_refusals_last)
{
    uid_t uid = A;
    assert_false(budget_take(&budget, A, BUDGET_HANDLES, UINT64_MAX));
    for (uint32_t i = 0; i < 2 * BUDGET_USERS_MAX; i++) {
        assert_true(budget_take(&budget, ++uid, BUDGET_HANDLES, 1));
        budget_give(&budget, uid, BUDGET_HANDLES, 1);
    }
    /* B came and went; A, with a refusal, is evicted last. */
    assert_int_equal(user_of(A).refused[BUDGET_HANDLES], 1);
    assert_int_equal(user_of(0).uid, 0);
    assert_int_equal(user_of(OWN).uid, OWN);
    for (uint32_t i = 0; i < BUDGET_USERS_MAX; i++) {
        assert_true(budget_take(&budget, ++uid, BUDGET_HANDLES, 1));
    }
    assert_int_equal(user_of(BUDGET_OTHERS).refused[BUDGET_HANDLES], 1);
}

TEST(refusals_saturate)
{
    assert_true(budget_take(&budget, A, BUDGET_HANDLES, 1));
    for (uint32_t i = 0; i < budget.count; i++) {
        budget.users[i].refused[BUDGET_HANDLES] = UINT64_MAX;
    }
    assert_false(budget_take(&budget, A, BUDGET_HANDLES, UINT64_MAX));
    assert_true(user_of(A).refused[BUDGET_HANDLES] == UINT64_MAX);
}

TEST(root_takes_nothing_of_what_the_others_have_together)
{
    assert_true(budget_take(&budget, A, BUDGET_GPUS, 5));
    assert_true(budget_take(&budget, 0, BUDGET_GPUS, 3));
    assert_int_equal(budget.used_together[BUDGET_GPUS], 5);
    budget_give(&budget, 0, BUDGET_GPUS, 3);
    assert_int_equal(budget.used_together[BUDGET_GPUS], 5);
    assert_int_equal(budget_limit(&budget, A, BUDGET_SEGMENTS), 1024);
    assert_int_equal(budget_limit(&budget, 0, BUDGET_SEGMENTS), 4096);
    assert_int_equal(budget_limit_together(BUDGET_SEGMENTS), 4096);
}
