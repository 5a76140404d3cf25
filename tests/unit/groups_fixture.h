/* SPDX-License-Identifier: Apache-2.0 */
/* An empty table of groups for each case, in `groups`. */
#ifndef RMM_TESTS_UNIT_GROUPS_FIXTURE_H
#define RMM_TESTS_UNIT_GROUPS_FIXTURE_H

#include <stdlib.h>

#include "diag/block_groups.h"

static rmm_diag_groups_t *groups;

static int make_groups(void **state)
{
    groups = rmm__diag_groups_create();
    return groups != NULL ? 0 : -1;
}

static int drop_groups(void **state)
{
    free(groups);
    return 0;
}

#endif /* RMM_TESTS_UNIT_GROUPS_FIXTURE_H */
