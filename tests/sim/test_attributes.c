/* SPDX-License-Identifier: Apache-2.0 */
/* Resources on a device that lacks what they need (RMM_SIM_ATTRIBUTES). */
#include "sim/pool_harness.h"

static void managed_memory_is_refused_where_there_is_none(void **state)
{
    rmm_resource_t *managed = NULL;

    (void)state;
    assert_int_equal(rmm_managed_resource_create(&managed), RMM_ERR_UNSUPPORTED);
    assert_non_null(strstr(rmm_last_error_message(), "no managed memory"));
    assert_null(managed);
}

static void the_call_itself_fails_there(void **state)
{
    void *ptr = NULL;

    (void)state;
    assert_int_equal(sim_driver()->managed_alloc(&ptr, 100), RMM_DRIVER_NOT_SUPPORTED);
    assert_null(ptr);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(managed_memory_is_refused_where_there_is_none),
        cmocka_unit_test(the_call_itself_fails_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
