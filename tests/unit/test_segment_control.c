/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The control page of a process, as the daemon writes it: what is refused, where its records are,
 * and what the process is told to look for.
 */
#include "harness/runtime.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "segment/segment_growth.h"
#include "segment/segment_reader.h"
#include "unit/segment_sample.h"

static runtime_t runtime;
static char name[RMM_SEGMENT_NAME_BYTES]; /* of this user's segment */

static int set_up(void **state)
{
    runtime_open(&runtime);
    snprintf(name, sizeof(name), "%u.0123456789abcdef", (unsigned)geteuid());
    return 0;
}

static int tear_down(void **state)
{
    runtime_close(&runtime);
    return 0;
}

#define CASE(test) TEST_CASE_WITH(test, set_up, tear_down)

static rmm_control_page_t page;

static void make_page(void)
{
    sample_control(&page);
}

static int try_control(size_t size)
{
    rmm_segment_t segment = {.uid = geteuid()};
    char control_name[RMM_SEGMENT_NAME_BYTES + 8];
    rmm_control_t control;
    int error;

    snprintf(segment.name, sizeof(segment.name), "%s", name);
    snprintf(control_name, sizeof(control_name), "%s.control", name);
    close(runtime_put_file(&runtime, control_name, &page, size));
    error = rmm__control_open(&control, runtime.fd, &segment);
    if (error == 0) {
        rmm__control_close(&control);
    }
    assert_int_equal(control.fd, -1);
    assert_int_equal(unlinkat(runtime.fd, control_name, 0), 0);
    return error;
}

CASE(a_control_page_is_checked_like_a_segment)
{
    rmm_segment_t segment = {.uid = geteuid()};
    rmm_control_t control;

    snprintf(segment.name, sizeof(segment.name), "%s", name);
    assert_int_equal(rmm__control_open(&control, runtime.fd, &segment), -ENOENT);
    make_page();
    assert_int_equal(try_control(sizeof(page)), 0);
    assert_int_equal(try_control(sizeof(page) - 8), -EPROTO);
    assert_int_equal(try_control(10), -EPROTO);
    page.magic++;
    assert_int_equal(try_control(sizeof(page)), -EPROTO);
    make_page();
    page.version_major++;
    assert_int_equal(try_control(sizeof(page)), -EPROTO);
    make_page();
    page.slots_count = UINT32_MAX;
    assert_int_equal(try_control(sizeof(page)), -EPROTO);
    make_page();
    page.locations_stride = 8;
    assert_int_equal(try_control(sizeof(page)), -EPROTO);
    make_page();
    page.shares_stride = 88;
    assert_int_equal(try_control(sizeof(page)), -EPROTO);
    make_page();
    page.shares_offset = 8;
    assert_int_equal(try_control(sizeof(page)), -EPROTO);
    make_page();
    page.locations_offset = 0; /* a request would overwrite the magic */
    assert_int_equal(try_control(sizeof(page)), -EPROTO);
}

CASE(requests_are_numbers_that_rise)
{
    int fd = -1;
    rmm_control_t control;
    rmm_control_location_t location;
    rmm_control_slot_t slot;

    make_page();
    page.slots[7].peak_reset = UINT32_MAX;
    page.locations[3].limit_bytes = 99;
    fd = runtime_put_file(&runtime, "page", &page, sizeof(page));
    assert_int_equal(rmm__control_attach(&control, fd, geteuid() + 1), -EPERM);
    assert_int_equal(rmm__control_attach(&control, fd, geteuid()), 0);
    assert_int_equal(rmm__control_reset_location_peak(&control, 3), 0);
    assert_int_equal(rmm__control_reset_location_peak(&control, 3), 0);
    assert_int_equal(rmm__control_reset_node_peak(&control, 3), 0);
    assert_int_equal(rmm__control_reset_slot_peak(&control, 7), 0);
    assert_int_equal(rmm__control_read_location(&control, 3, &location), 0);
    assert_int_equal(location.peak_reset, 2);
    assert_int_equal(location.node_peak_reset, 1);
    assert_int_equal(location.limit_bytes, 99);
    assert_int_equal(rmm__control_read_slot(&control, 7, &slot), 0);
    assert_int_equal(slot.peak_reset, 0); /* wraps; only "differs" counts */
    assert_int_equal(rmm__control_read_location(&control, 2, &location), 0);
    assert_int_equal(location.peak_reset, 0);

    assert_int_equal(rmm__control_reset_location_peak(&control, 33), -EINVAL);
    assert_int_equal(rmm__control_reset_node_peak(&control, UINT32_MAX), -EINVAL);
    assert_int_equal(rmm__control_reset_slot_peak(&control, 256), -EINVAL);
    assert_int_equal(rmm__control_read_location(&control, 33, &location), -EINVAL);
    assert_int_equal(rmm__control_read_slot(&control, 256, &slot), -EINVAL);
    rmm__control_close(&control);
}

CASE(requests_of_adjacent_slots_are_read_together)
{
    rmm_control_t control;
    rmm_control_slot_t several[4], one;

    make_page();
    for (uint32_t i = 0; i < RMM_SEGMENT_SLOTS; i++) {
        page.slots[i].peak_reset = i;
        page.slots[i].limit_bytes = 1000 + i;
    }
    assert_int_equal(
        rmm__control_attach(
            &control, runtime_put_file(&runtime, "page", &page, sizeof(page)),
            geteuid()),
        0);
    assert_int_equal(rmm__control_read_slots(&control, 5, 4, several), 0);
    for (uint32_t i = 0; i < 4; i++) {
        assert_int_equal(rmm__control_read_slot(&control, 5 + i, &one), 0);
        assert_memory_equal(&several[i], &one, sizeof(one));
        assert_int_equal(one.limit_bytes, 1005 + i);
    }
    assert_int_equal(rmm__control_read_slots(&control, 255, 1, several), 0);
    assert_int_equal(several[0].peak_reset, 255);
    assert_int_equal(rmm__control_read_slots(&control, 255, 2, several), -EINVAL);
    assert_int_equal(rmm__control_read_slots(&control, 256, 1, several), -EINVAL);
    assert_int_equal(
        rmm__control_read_slots(
            &control, 0, RMM_CONTROL_SLOTS_BYTES / sizeof(one) + 1, several),
        -EINVAL); /* more than it reads at once */
    rmm__control_close(&control);
}

/* A page whose records are larger and elsewhere, as a newer program may write it. */
enum { FEW = 5, MANY = 70, WIDE = 256, BEHIND = 1024 };

static rmm_control_t attach_wide(void)
{
    static unsigned char bytes[BEHIND + (FEW + MANY) * WIDE];
    rmm_control_page_t *head = (rmm_control_page_t *)bytes;
    rmm_control_t control;

    memset(bytes, 0xff, sizeof(bytes)); /* no limit */
    make_page();
    memcpy(bytes, &page, offsetof(rmm_control_page_t, locations));
    head->version_minor = RMM_SEGMENT_MINOR + 1;
    head->locations_offset = BEHIND + MANY * WIDE;
    head->locations_stride = WIDE;
    head->locations_count = FEW;
    head->slots_offset = BEHIND;
    head->slots_stride = WIDE;
    head->slots_count = MANY;
    head->shares_count = 0; /* as a program that takes none */
    assert_int_equal(
        rmm__control_attach(
            &control, runtime_put_file(&runtime, "wide", bytes, sizeof(bytes)),
            geteuid()),
        0);
    return control;
}

static uint64_t word_at(const rmm_control_t *control, size_t offset, size_t bytes)
{
    uint64_t word = 0;

    assert_int_equal(pread(control->fd, &word, bytes, (off_t)offset), bytes);
    return word;
}

#define PAGE_WORD(control, field)                                                      \
    word_at(                                                                           \
        (control), offsetof(rmm_control_page_t, field),                                \
        sizeof(((rmm_control_page_t *)0)->field))

CASE(the_records_of_a_page_are_where_it_says)
{
    rmm_control_t control = attach_wide();
    rmm_control_slot_t slots[3];

    for (uint32_t i = 0; i < MANY; i++) {
        assert_int_equal(rmm__control_limit_slot(&control, i, 40 + i, 1000 + i), 0);
        assert_int_equal(
            word_at(
                &control, BEHIND + i * WIDE + offsetof(rmm_control_slot_t, limit_bytes),
                8),
            1000 + i);
        assert_int_equal(rmm__control_slot_limit(&control, i, 40 + i), 1000 + i);
        assert_int_equal(
            rmm__control_slot_limit(&control, i, 41 + i), RMM_SEGMENT_NO_LIMIT);
        assert_int_equal(PAGE_WORD(&control, wanted), 1);
        assert_int_equal(
            rmm__control_limit_slot(&control, i, 40 + i, RMM_SEGMENT_NO_LIMIT), 0);
        assert_int_equal(PAGE_WORD(&control, wanted), 0);
    }
    for (uint32_t i = 0; i < FEW; i++) {
        assert_int_equal(rmm__control_limit_location(&control, i, 7 + i), 0);
        assert_int_equal(rmm__control_location_limit(&control, i), 7 + i);
        assert_int_equal(PAGE_WORD(&control, wanted), 1);
        assert_int_equal(
            rmm__control_limit_location(&control, i, RMM_SEGMENT_NO_LIMIT), 0);
        assert_int_equal(PAGE_WORD(&control, wanted), 0);
    }
    assert_int_equal(rmm__control_read_slots(&control, MANY - 3, 3, slots), 0);
    assert_int_equal(slots[2].limit_of, 40 + MANY - 1);
    assert_int_equal(rmm__control_read_slots(&control, MANY - 2, 3, slots), -EINVAL);
    assert_int_equal(rmm__control_limit_slot(&control, MANY, 1, 1), -EINVAL);
    assert_int_equal(rmm__control_limit_location(&control, FEW, 1), -EINVAL);
    assert_int_equal(rmm__control_location_limit(&control, FEW), RMM_SEGMENT_NO_LIMIT);
    rmm__control_close(&control);
}

CASE(a_share_is_set_and_a_request_for_more_is_answered)
{
    const rmm_share_t share = {4096, 9000, "user 1001"};
    const rmm_share_t none = {RMM_SEGMENT_NO_LIMIT, RMM_SEGMENT_NO_LIMIT, ""};
    rmm_control_page_t now;
    rmm_control_t control;

    make_page();
    assert_int_equal(
        rmm__control_attach(
            &control, runtime_put_file(&runtime, "page", &page, sizeof(page)),
            geteuid()),
        0);
    assert_false(rmm__control_has_shares(&control));
    assert_int_equal(rmm__control_set_share(&control, 3, &share), 0);
    assert_int_equal(PAGE_WORD(&control, wanted), 0); /* it is told of all at once */
    assert_int_equal(rmm__control_shares_changed(&control), 0);
    assert_int_equal(PAGE_WORD(&control, wanted), 1);
    assert_true(rmm__control_has_shares(&control));
    assert_int_equal(PAGE_WORD(&control, request_count), 1);
    assert_int_equal(rmm__control_answer(&control, 3, 77), 0);
    assert_true(PAGE_WORD(&control, request_count) > 1);
    assert_int_equal(pread(control.fd, &now, sizeof(now), 0), sizeof(now));
    assert_int_equal(now.shares[3].share_bytes, 4096);
    assert_int_equal(now.shares[3].limit_bytes, 9000);
    assert_int_equal(now.shares[3].answered, 77);
    assert_string_equal(now.shares[3].group, "user 1001");
    assert_int_equal(rmm__control_share(&control, 3), 4096);
    assert_int_equal(rmm__control_share(&control, 4), RMM_SEGMENT_NO_LIMIT);
    assert_int_equal(rmm__control_location_limit(&control, 3), 0); /* its own */
    assert_int_equal(rmm__control_set_share(&control, 3, &none), 0);
    assert_int_equal(rmm__control_answer(&control, 3, 78), 0);
    assert_false(rmm__control_has_shares(&control));
    assert_int_equal(rmm__control_set_share(&control, 33, &share), -EINVAL);
    assert_int_equal(rmm__control_answer(&control, 33, 1), -EINVAL);
    assert_int_equal(rmm__control_share(&control, 33), RMM_SEGMENT_NO_LIMIT);
    rmm__control_close(&control);

    control = attach_wide();
    assert_false(rmm__control_takes_shares(&control, 0));
    assert_int_equal(rmm__control_set_share(&control, 0, &share), -EINVAL);
    rmm__control_close(&control);
}

CASE(trims_and_reports_are_wanted_until_they_end)
{
    rmm_control_t control = attach_wide();
    uint32_t number = 0;

    assert_int_equal(rmm__control_begin_trim(&control, 12, 4096, &number), 0);
    assert_int_equal(number, 1);
    assert_int_equal(PAGE_WORD(&control, trim_number), 1);
    assert_int_equal(PAGE_WORD(&control, trim_of), 12);
    assert_int_equal(PAGE_WORD(&control, trim_keep_bytes), 4096);
    assert_int_equal(PAGE_WORD(&control, wanted), 1);
    assert_int_equal(rmm__control_begin_report(&control, 99, &number), 0);
    assert_int_equal(number, 1);
    assert_int_equal(PAGE_WORD(&control, report_number), 1);
    assert_int_equal(PAGE_WORD(&control, report_rows), 99);
    assert_int_equal(rmm__control_end_trim(&control, false), 0);
    assert_int_equal(PAGE_WORD(&control, trim_keep_bytes), 4096);
    assert_int_equal(PAGE_WORD(&control, wanted), 1); /* the report */
    assert_int_equal(rmm__control_end_report(&control, false), 0);
    assert_int_equal(PAGE_WORD(&control, report_rows), 99);
    assert_int_equal(PAGE_WORD(&control, wanted), 0);
    assert_int_equal(rmm__control_begin_trim(&control, 13, 0, &number), 0);
    assert_int_equal(number, 2);
    assert_int_equal(rmm__control_end_trim(&control, true), 0);
    assert_int_equal(PAGE_WORD(&control, trim_keep_bytes), RMM_TRIM_WITHDRAWN);
    assert_int_equal(rmm__control_begin_report(&control, 1, &number), 0);
    assert_int_equal(rmm__control_end_report(&control, true), 0);
    assert_int_equal(PAGE_WORD(&control, report_rows), 0);
    assert_int_equal(PAGE_WORD(&control, wanted), 0);
    rmm__control_close(&control);
}

/* As the request thread of a process waits, in a mapping of its own. */
static void *wait_for_a_request(void *arg)
{
    const rmm_control_page_t *mapped = arg;

    while (atomic_load(&mapped->request_count) == 0) {
        (void)syscall(SYS_futex, &mapped->request_count, FUTEX_WAIT, 0, NULL, NULL, 0);
    }
    return NULL;
}

CASE(a_request_wakes_the_process)
{
    rmm_control_t control = attach_wide();
    const size_t bytes = sizeof(rmm_control_page_t);
    void *mapped = mmap(NULL, bytes, PROT_READ, MAP_SHARED, control.fd, 0);
    pthread_t thread;
    uint32_t number;

    assert_ptr_not_equal(mapped, MAP_FAILED);
    assert_int_equal(pthread_create(&thread, NULL, wait_for_a_request, mapped), 0);
    assert_int_equal(rmm__control_begin_trim(&control, 12, 0, &number), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(PAGE_WORD(&control, request_count), 1);
    assert_int_equal(rmm__control_end_trim(&control, false), 0);
    assert_int_equal(PAGE_WORD(&control, request_count), 1); /* nothing to do */
    assert_int_equal(rmm__control_limit_location(&control, 0, 5), 0);
    assert_int_equal(PAGE_WORD(&control, request_count), 2);
    (void)munmap(mapped, bytes);
    assert_int_equal(ftruncate(control.fd, 0), 0); /* by a hostile process */
    assert_int_not_equal(rmm__control_begin_trim(&control, 12, 0, &number), 0);
    rmm__control_close(&control);
}

CASE(the_level_and_the_trace_of_a_page)
{
    rmm_control_t control = attach_wide();
    uint32_t level = 99;

    assert_false(rmm__control_log_level(&control, &level));
    assert_false(rmm__control_trace(&control));
    for (uint32_t i = 0; i <= RMM_CONTROL_LEVEL_MAX; i++) {
        assert_int_equal(rmm__control_set_log_level(&control, i), 0);
        assert_true(rmm__control_log_level(&control, &level));
        assert_int_equal(level, i);
    }
    assert_int_equal(
        rmm__control_set_log_level(&control, RMM_CONTROL_LEVEL_MAX + 1), -EINVAL);
    assert_int_equal(PAGE_WORD(&control, log_level), 1 + RMM_CONTROL_LEVEL_MAX);
    assert_int_equal(rmm__control_set_trace(&control, true), 0);
    assert_true(rmm__control_trace(&control));
    assert_int_equal(rmm__control_set_trace(&control, false), 0);
    assert_false(rmm__control_trace(&control));
    rmm__control_close(&control);
}

CASE(a_segment_says_what_its_process_has_done)
{
    rmm_segment_t segment = {.fd = runtime_put_file(&runtime, "segment", "", 1)};
    rmm_segment_header_t header = {.version_minor = RMM_SEGMENT_MINOR};
    uint32_t trim = 0, reported = 0;

    segment.header.version_minor = RMM_SEGMENT_MINOR;
    assert_false(rmm__segment_trim_seen(&segment, &trim)); /* it was cut */
    assert_false(rmm__segment_report_seen(&segment, &reported));
    atomic_init(&header.trim_seen, 31);
    atomic_init(&header.report_seen, 32);
    assert_int_equal(pwrite(segment.fd, &header, sizeof(header), 0), sizeof(header));
    assert_true(rmm__segment_trim_seen(&segment, &trim));
    assert_true(rmm__segment_report_seen(&segment, &reported));
    assert_int_equal(trim, 31);
    assert_int_equal(reported, 32);
    close(segment.fd);
}

/* A daemon that was killed may have left it set. */
CASE(what_nobody_waits_for_is_not_wanted)
{
    rmm_control_t control = attach_wide();
    const uint32_t wanted = 1;

    assert_int_equal(
        pwrite(
            control.fd, &wanted, sizeof(wanted), offsetof(rmm_control_page_t, wanted)),
        sizeof(wanted));
    rmm__control_forget(&control);
    assert_int_equal(PAGE_WORD(&control, wanted), 0);
    rmm__control_close(&control);
}
