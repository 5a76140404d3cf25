/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where no segment can be made: one warning that says what to do, accounting that works all
 * the same, nothing left behind, and never a failed allocation.
 */
#include "sim/publish/publish_case.h"

#include "harness/limit_requests.h"
#include "harness/tmpfs.h"

#include <rmm/cuda_resource.h>
#include <rmm/pool_resource.h>
#include <sys/resource.h>

#include "core/host_memory.h"
#include "segment/segment_blocks_reader.h"

/* Accounting that works as if they were published. */
static void count_in_private(child_t *self, void *argument)
{
    rmm_stats_t stats = RMM_STATS_INIT;
    rmm_accounting_t accounting;
    void *side = NULL;

    for (int i = 0; i < 3; i++) { /* one warning at most */
        CHECK(open_accounting(&accounting, "private", 1) == RMM_OK);
        CHECK(!accounting.slot_is_private);
        count_alloc(&accounting, 300);
        count_alloc(&accounting, 200);
        count_free(&accounting, 300);
        rmm__accounting_stats(&accounting, &stats);
        CHECK(stats.current_bytes == 200 && stats.peak_bytes == 500);
        CHECK(stats.current_count == 1 && stats.peak_count == 2);
        rmm__accounting_close(&accounting);
    }
    CHECK(rmm__locations[0].peak_bytes == 900); /* 400 were never freed */
    CHECK(rmm__publish_side_file("diag", 65536, &side) == RMM_OK);
    memset(side, 1, 65536);
}

static void assert_warned_once(const char *part, const char *other_part)
{
    const char *first = strstr(logged(), "[warn]");

    if (first == NULL || strstr(first, part) == NULL ||
        strstr(first, other_part) == NULL || strstr(first + 1, "[warn]") != NULL) {
        fail_msg("log: \"%s\"", logged());
    }
}

CASE(switched_off_it_keeps_accounts_and_says_nothing)
{
    setenv("RMM_PUBLISH", "0", 1);
    child_run(count_in_private, NULL);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, NULL), 0);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_TEMPORARY, NULL), 0);
    assert_string_equal(logged(), "");
}

CASE(an_odd_request_is_one_warning_and_publishes)
{
    setenv("RMM_PUBLISH", "banana", 1);
    child_run(count_in_private, NULL);
    unsetenv("RMM_PUBLISH");
    assert_warned_once("RMM_PUBLISH is 'banana'", "set it to 0");
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, NULL), 1);
}

CASE(a_runtime_directory_that_is_a_file_is_one_warning)
{
    setenv("RMM_RUNTIME_DIR", "/dev/null", 1);
    child_run(count_in_private, NULL);
    assert_warned_once(
        "/dev/null is not a directory; correct this", "or set RMM_PUBLISH to 0");
}

static void publish_on_a_small_tmpfs(child_t *self, void *argument)
{
    const char *path = getenv("RMM_RUNTIME_DIR");

    mount_tmpfs(path, 0, argument);
    count_in_private(self, NULL);
    CHECK(entries_in(path) == 0);
}

CASE(on_a_full_disk_nothing_fails_and_nothing_is_left)
{
    const char *path;

    tmpfs_or_skip();
    path = use_small_dir(&runtime);
    child_run(publish_on_a_small_tmpfs, (char[]){"size=16k"});
    assert_warned_once(path, "No space left on device");
    assert_non_null(strstr(logged(), "RMM_RUNTIME_DIR"));
    assert_int_equal(unlink(log_path), 0);
    child_run(publish_on_a_small_tmpfs, (char[]){"nr_inodes=2"}); /* room for control */
    assert_warned_once(path, "No space left on device");
    assert_int_equal(unlink(log_path), 0);
    child_run(publish_on_a_small_tmpfs, (char[]){"nr_inodes=1"});
    assert_warned_once(path, "No space left on device");
}

/* Fills the file system but for the part that programs need to start. */
static void fill_to_a_quarter(const char *path)
{
    struct statvfs status;
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);

    CHECK(fd >= 0 && fstatvfs(fd, &status) == 0);
    CHECK(
        posix_fallocate(
            fd, 0,
            (off_t)((status.f_bavail - status.f_blocks / 4) * status.f_frsize)) == 0);
    close(fd);
}

static void report_on_a_small_tmpfs(child_t *self, void *argument)
{
    rmm_resource_t *cuda, *pool;
    void *block;
    int files;

    mount_tmpfs(argument, 0, "size=2m");
    CHECK(chdir(argument) == 0);
    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK(rmm_pool_resource_create(cuda, NULL, &pool) == RMM_OK);
    for (int i = 0; i < 2; i++) { /* without room, and with it */
        if (i == 0) {
            fill_to_a_quarter("filler");
        } else {
            CHECK(unlink("filler") == 0);
        }
        files = entries_in(".");
        ask_report(RMM_BLOCKS_ROWS_MAX);
        CHECK(rmm_resource_alloc(pool, 1000, 0, NULL, &block) == RMM_OK);
        rmm_resource_dealloc(pool, block, 1000, 0, NULL);
        CHECK(report_is_done());
        CHECK(entries_in(".") == files + i);
    }
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
}

CASE(a_report_leaves_room_for_programs_that_start)
{
    tmpfs_or_skip();
    child_run(report_on_a_small_tmpfs, (void *)(uintptr_t)use_small_dir(&runtime));
    assert_warned_once(
        "will not show this program's blocks", "No space left on device");
}

static void publish_on_a_read_only_mount(child_t *self, void *argument)
{
    mount_tmpfs(getenv("RMM_RUNTIME_DIR"), MS_RDONLY, "size=64k");
    count_in_private(self, argument);
}

CASE(an_unwritable_runtime_directory_is_one_warning)
{
    const char *path;

    tmpfs_or_skip();
    path = use_small_dir(&runtime);
    child_run(publish_on_a_read_only_mount, NULL);
    assert_warned_once("not writable: Read-only file system", path);
}

/* The kernel ends a program that makes a larger file. */
static void allow_small_files(rlim_t bytes)
{
    const struct rlimit limit = {bytes, RLIM_INFINITY};

    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
}

static void publish_with_small_files(child_t *self, void *argument)
{
    allow_small_files(2048); /* room for the warning */
    count_in_private(self, argument);
}

CASE(a_limit_on_the_size_of_files_is_one_warning)
{
    child_run(publish_with_small_files, NULL);
    assert_warned_once("File too large", "RMM_RUNTIME_DIR");
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, NULL), 0);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_TEMPORARY, NULL), 0);
}

static void publish_and_exit_without_files(child_t *self, void *argument)
{
    rmm_accounting_t accounting;

    CHECK(open_accounting(&accounting, "published", 1) == RMM_OK);
    allow_small_files(0);
    exit(0); /* the harness would skip the exit handlers */
}

CASE(a_limit_that_comes_later_does_not_end_the_program)
{
    child_run(publish_and_exit_without_files, NULL);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, NULL), 1);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_TEMPORARY, NULL), 0);
}

/* --- every request that can fail, fails once ---------------------------------------- */

/* Ends with 2 if the plan was not reached. */
static void publish_under_a_fault(child_t *self, void *argument)
{
    rmm_accounting_t accounting;
    rmm_status_t status;
    void *side = NULL;

    rmm__publish_open("sim");
    rmm__host_memory_fail((uint64_t)(uintptr_t)argument);
    /* counted from here: the first request of publish_under_a_fault itself */
    status = open_accounting(&accounting, "fault", 1);
    CHECK(status == RMM_OK);
    count_alloc(&accounting, 100);
    status = rmm__publish_side_file("diag", 4096, &side);
    CHECK(status == RMM_OK || status == RMM_ERR_IO);
    if (status == RMM_OK) {
        memset(side, 1, 4096);
    }
    _exit(rmm__host_memory_fail_struck() ? 0 : 2);
}

static void open_under_a_fault(child_t *self, void *argument)
{
    rmm_accounting_t accounting;

    rmm__host_memory_fail((uint64_t)(uintptr_t)argument);
    CHECK(open_accounting(&accounting, "fault", 1) == RMM_OK);
    count_alloc(&accounting, 100);
    CHECK(rmm__locations[0].current_bytes == 100);
    _exit(rmm__host_memory_fail_struck() ? 0 : 2);
}

/* Runs body for the first, second, ... request until none is left to fail. Afterwards
 * there are whole segments only: `segments_left` of them, at most. */
static void sweep_faults(child_fn body, int least_faults)
{
    int nth = 0, status = 0;

    while (status == 0) {
        child_t child;

        nth++;
        child_start(&child, body, (void *)(uintptr_t)nth);
        status = child_wait(&child);
        assert_int_equal(runtime_count(&runtime, RMM_FILE_TEMPORARY, NULL), 0);
        assert_true(
            runtime_count(&runtime, RMM_FILE_SIDE, NULL) >=
            runtime_count(&runtime, RMM_FILE_SEGMENT, NULL));
        if (runtime_count(&runtime, RMM_FILE_SEGMENT, NULL) == 0) {
            assert_int_equal(runtime_count(&runtime, RMM_FILE_SIDE, NULL), 0);
        }
        runtime_empty(&runtime);
    }
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 2);
    assert_true(nth > least_faults);
}

CASE(any_failure_while_publishing_leaves_accounting_that_works)
{
    sweep_faults(
        open_under_a_fault, 18); /* open, map, name two files; space of pages */
}

CASE(any_failure_of_a_side_file_is_one_status)
{
    sweep_faults(publish_under_a_fault, 4);
}
