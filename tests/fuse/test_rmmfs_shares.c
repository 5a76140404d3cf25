/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Dividing a limit among users.
 */
#include "harness/harness.h"

#include "support/shares.h"

TEST_CASE(a_small_request_is_granted_whole_when_there_is_too_little)
{
    shares_t shares = {.count = 0};
    shares_want(&shares, 1, 10);
    shares_want(&shares, 2, 1000);
    shares_want(&shares, 3, 500);
    shares_allot(&shares, 300);
    assert_true(shares_take(&shares, 1, 10));
    assert_true(shares_take(&shares, 2, 145));
    assert_true(shares_take(&shares, 3, 145));
    assert_false(shares_take(&shares, 2, 1));
    assert_int_equal(shares_refused(&shares), 1);
}

TEST_CASE(all_get_what_they_want_if_there_is_enough)
{
    shares_t shares = {.count = 0};
    shares_want(&shares, 1, UINT32_MAX);
    shares_want(&shares, 2, 7);
    shares_want(&shares, 1, 1);
    shares_allot(&shares, (uint64_t)UINT32_MAX + 8);
    assert_true(shares_take(&shares, 1, (uint64_t)UINT32_MAX + 1));
    assert_true(shares_take(&shares, 2, 7));
    assert_false(shares_take(&shares, 3, 1)); /* wanted nothing */
    shares_refuse(&shares, 3, 4);
    assert_int_equal(shares_refused(&shares), 5);
}

TEST_CASE(further_users_have_the_last_share_together)
{
    shares_t shares = {.count = 0};
    for (uid_t uid = 0; uid < SHARES_USERS_MAX + 10; uid++) {
        shares_want(&shares, uid, 10);
    }
    assert_int_equal(shares.count, SHARES_USERS_MAX);
    shares_allot(&shares, (uint64_t)SHARES_USERS_MAX * 10);
    assert_true(shares_take(&shares, 0, 10));
    assert_true(shares_take(&shares, SHARES_USERS_MAX + 3, 10));
    assert_false(shares_take(&shares, SHARES_USERS_MAX + 4, 10));
}

/* Down to less than one for each. */
TEST_CASE(a_small_total_is_divided_as_well)
{
    shares_t shares = {.count = 0};
    for (uid_t uid = 1; uid <= 3; uid++) {
        shares_want(&shares, uid, 10);
    }
    shares_allot(&shares, 5);
    for (uid_t uid = 1; uid <= 3; uid++) {
        assert_true(shares_take(&shares, uid, 1));
        assert_false(shares_take(&shares, uid, 1));
    }
}
