/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Order of streams of several devices: a wait for one device says nothing of the work of another,
 * and one whose device, or whose streams' device, is not known counts as one for all.
 */
#include "harness/harness.h"

#include "unit/order_fixture.h"

#define CASE(name) TEST_CASE_WITH(name, open_order, close_order)

enum { LEGACY, A, B, C, D, EVENT = 0x7000, UNKNOWN = -1 };

/* A stream that does not wait for the legacy default stream; its calls tell this device. */
static void make_on(uint32_t number, int32_t device)
{
    devices[number] = device;
    make(number, true);
}

/* A and B run on device 1, C and D on device 0. */
static void make_streams(void)
{
    make_on(A, 1);
    make_on(B, 1);
    make_on(C, 0);
    make_on(D, 0);
}

/* Block 0 is used on `user` and freed on `owner` after a wait for the device. */
static bool is_bad_after(int32_t device, uint32_t owner, uint32_t user)
{
    allocate(0, owner);
    tell(RMM_DIAG_EVENT_RECORD, owner, EVENT);
    tell(RMM_DIAG_EVENT_WAIT, user, EVENT);
    assert_false(is_bad_use(0, user, &kernel));
    synchronize(device);
    return is_bad_free(0, owner);
}

CASE(a_wait_for_one_device_is_none_for_another)
{
    make_streams();
    assert_true(is_bad_after(0, A, B));
    assert_false(is_bad_after(1, A, B));
    assert_true(is_bad_after(1, C, D));
    assert_false(is_bad_after(0, C, D));
    assert_false(is_bad_after(UNKNOWN, A, B));
    assert_false(is_bad_after(UNKNOWN, C, D));
}

CASE(a_wait_for_a_device_is_one_for_what_its_streams_waited_for)
{
    make_streams();
    allocate(0, A);
    tell(RMM_DIAG_EVENT_RECORD, A, EVENT);
    tell(RMM_DIAG_EVENT_WAIT, C, EVENT);
    allocate(1, A);
    synchronize(0);
    assert_false(is_bad_use(0, B, &kernel));
    assert_true(is_bad_use(1, B, &kernel));
}

CASE(the_default_streams_belong_to_every_device)
{
    make_streams();
    assert_false(is_bad_after(0, A, LEGACY));
    assert_false(is_bad_after(1, C, LEGACY));
}

CASE(a_stream_of_an_unknown_device_belongs_to_every_device)
{
    make_streams();
    make_on(B, UNKNOWN);
    assert_false(is_bad_after(0, A, B));
    assert_false(is_bad_after(1, A, B));
}

/* Its creation did not tell it, or was not seen. The current device may be another one. */
CASE(work_does_not_tell_the_device_of_a_stream)
{
    make_on(A, 0);
    make_on(B, UNKNOWN);
    make_on(C, 1);
    devices[B] = 1; /* that is current */
    assert_false(is_bad_after(0, A, B));
    assert_true(is_bad_after(0, A, C));
    allocate(0, A);
    synchronize(0);
    assert_false(is_bad_use(0, B, &fill));
    synchronize(0);
    assert_false(is_bad_free(0, A));
}

/* Its handle is that of an earlier one, whose end was not seen. */
CASE(a_stream_of_two_devices_belongs_to_both)
{
    make_streams();
    devices[B] = 0;
    assert_false(is_bad_after(0, A, B));
    assert_false(is_bad_after(1, A, B));
}

CASE(a_handle_that_moves_to_another_device_keeps_what_is_not_over)
{
    make_streams();
    allocate(0, A);
    tell(RMM_DIAG_EVENT_RECORD, A, EVENT);
    tell(RMM_DIAG_EVENT_WAIT, B, EVENT);
    assert_false(is_bad_use(0, B, &kernel));
    tell(RMM_DIAG_STREAM_DESTROY, B, 0);
    make_on(B, 0);
    synchronize(1); /* where the earlier stream ran */
    assert_false(is_bad_free(0, A));
}

CASE(a_handle_that_moves_once_all_is_over_belongs_to_its_device)
{
    make_streams();
    assert_false(is_bad_after(1, A, B));
    tell(RMM_DIAG_STREAM_DESTROY, B, 0);
    make_on(B, 0);
    assert_true(is_bad_after(1, A, B));
    assert_false(is_bad_after(0, A, B));
}

/* --- streams that wait for what is not known ------------------------------------------------- */

CASE(an_unsure_stream_is_so_until_its_device_is_waited_for)
{
    make_streams();
    tell(RMM_DIAG_STREAM_UNSURE, B, 0);
    synchronize(0);
    synchronize(UNKNOWN); /* it may be a wait for device 0 only */
    allocate(1, A);
    assert_false(is_bad_use(1, B, &kernel));
    synchronize(1);
    allocate(2, A);
    assert_true(is_bad_use(2, B, &kernel));
}

/* It may have waited for work of the other device. */
CASE(a_device_with_an_unsure_stream_stands_for_all)
{
    make_streams();
    allocate(0, A);
    tell(RMM_DIAG_STREAM_UNSURE, C, 0);
    synchronize(0);
    assert_false(is_bad_use(0, B, &kernel));
    allocate(0, A);
    synchronize(0); /* the next wait is for nothing unknown */
    assert_true(is_bad_use(0, B, &kernel));
}

CASE(so_it_does_once_such_a_stream_has_ended)
{
    make_streams();
    tell(RMM_DIAG_STREAM_UNSURE, C, 0);
    tell(RMM_DIAG_STREAM_DESTROY, C, 0);
    make_on(C, 1); /* another one with its handle */
    allocate(0, A);
    synchronize(0);
    assert_false(is_bad_use(0, B, &kernel));
}
