/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of files that change hands, without a mount: what the daemon knows of them.
 */
#include "harness/runtime.h"

#include <sys/file.h>

#include "model/model.h"
#include "programs/holders.h"
#include "programs/members.h"
#include "programs/scan.h"
#include "segments/dirs.h"
#include "support/daemon_log.h"
#include "unit/segment_sample.h"

#define NAME "0.00000000000000aa"

typedef struct daemon {
    runtime_t runtime;
    model_t model;
    dirs_t dirs;
    scan_t scan;
} daemon_t;

static daemon_t *start(void)
{
    char reason[256];
    daemon_t *daemon = calloc(1, sizeof(*daemon));
    assert_non_null(daemon);
    log_level_set(LOG_LEVEL_OFF);
    runtime_open(&daemon->runtime);
    assert_true(dirs_open(&daemon->dirs, true, reason, sizeof(reason)));
    model_init(&daemon->model);
    daemon->model.descriptor_limit = 1024;
    daemon->model.holders = holders_open(HOLDERS_PATH);
    assert_true(holders_start(daemon->model.holders));
    scan_init(&daemon->scan, &daemon->model, &daemon->dirs, -1);
    dirs_survey(&daemon->dirs);
    return daemon;
}

static void stop(daemon_t *daemon)
{
    holders_close(daemon->model.holders);
    scan_fini(&daemon->scan);
    model_fini(&daemon->model);
    dirs_close(&daemon->dirs);
    runtime_close(&daemon->runtime);
    free(daemon);
}

/* Until so many members are known: a look at /proc/locks may have to wait, at most 10 s. */
static void look_for(daemon_t *daemon, uint32_t members)
{
    const struct timespec pause = {.tv_nsec = 1000000};
    dirs_take_news(&daemon->dirs);
    for (int i = 0; i < 10000; i++) {
        while (scan_step(&daemon->scan)) {
        }
        if (daemon->model.member_count == members) {
            return;
        }
        (void)nanosleep(&pause, NULL);
    }
    fail_msg("%u members, not %u", daemon->model.member_count, members);
}

/* A file with these bytes whose lock this process holds, until it is closed. */
static int hold_file(daemon_t *daemon, const char *name, const void *bytes, size_t size)
{
    int flags = O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC;
    int fd = openat(daemon->runtime.fd, name, flags, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, bytes, size), (ssize_t)size);
    assert_int_equal(flock(fd, LOCK_EX), 0);
    return fd;
}

/* A program's file is replaced by one that the reader refuses and that is held, too, and that
 * one is removed. Each member's end must find the name gone. */
static void a_name_that_passes_to_a_refused_file_is_forgotten_by_both(void **unused)
{
    (void)unused;
    static rmm_segment_layout_t layout;
    daemon_t *daemon = start();
    sample_make(&layout);
    int good = hold_file(daemon, NAME, &layout, sizeof(layout));
    look_for(daemon, 1);
    const member_t *first = daemon->model.members[0];
    assert_non_null(first->entry);

    layout.header.magic++;
    int bad = hold_file(daemon, "new", &layout, sizeof(layout));
    assert_int_equal(renameat(daemon->runtime.fd, "new", daemon->runtime.fd, NAME), 0);
    look_for(daemon, 2);
    const member_t *second = daemon->model.members[1];
    assert_int_equal(second->state, MEMBER_UNREADABLE);
    assert_ptr_equal(second->entry->member, second);
    assert_null(first->entry);

    assert_int_equal(unlinkat(daemon->runtime.fd, NAME, 0), 0);
    look_for(daemon, 2);
    assert_null(second->entry);
    close(good);
    close(bad);
    stop(daemon);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_name_that_passes_to_a_refused_file_is_forgotten_by_both),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
