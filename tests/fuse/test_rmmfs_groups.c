/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Further groups of a process, from texts and of this process itself.
 */
#include "harness/harness.h"

#include <grp.h>
#include <sys/types.h>
#include <unistd.h>

#include "support/group_members.h"

TEST_CASE(reads_the_line_of_groups)
{
    static const char status[] =
        "Name:\tGroups:\t77\nGid:\t88\t88\t88\t88\nFDSize:\t64\n"
        "Groups:\t4 24 1500 4294967294 \nNStgid:\t99\n";
    assert_true(groups_parse(status, 4));
    assert_true(groups_parse(status, 24));
    assert_true(groups_parse(status, 1500));
    assert_true(groups_parse(status, 4294967294u));
    assert_false(groups_parse(status, 0));
    assert_false(groups_parse(status, 2));
    assert_false(groups_parse(status, 77));
    assert_false(groups_parse(status, 88));
    assert_false(groups_parse(status, 99));
    assert_false(groups_parse(status, 15));
}

TEST_CASE(believes_no_text_that_is_cut_or_odd)
{
    assert_false(groups_parse("", 0));
    assert_false(groups_parse("Groups:\t4\n", 4)); /* no name before it: no status */
    assert_false(groups_parse("Name:\tx\nGroups:\t15", 15)); /* may be 1500 */
    assert_false(groups_parse("Name:\tx\nGroups:", 0));
    assert_false(groups_parse("Name:\tx\nGroups:\t\n", 0));
    assert_false(groups_parse("Name:\tx\nGroups:\t4,24\n", 24));
    assert_false(groups_parse("Name:\tx\nGroups:\t18446744073709551620\n", 4));
}

TEST_CASE(finds_the_groups_of_this_process)
{
    gid_t groups[1024];
    int count = getgroups(1024, groups);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        assert_true(groups_have(getpid(), groups[i]));
    }
    assert_false(groups_have(getpid(), (gid_t)-2));
    assert_false(groups_have(0x7fffffff, 0)); /* no process's pid */
}
