/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What publishing takes of a small /dev/shm: little, and only what is used; and a file system
 * that is full costs the process what is shown of it, never its life.
 */
#include "sim/publish/publish_case.h"

#include "harness/tmpfs.h"

#include <pthread.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

#include <rmm/cuda_resource.h>
#include <rmm/pool_resource.h>
#include <rmm/resource.h>

#include "log/log.h"
#include "publish/publisher.h"
#include "segment/runtime_dir.h"
#include "segment/segment_log.h"

#define ONE_POOL_BYTES 65536u

/* --- what is taken ------------------------------------------------------------------ */

static void use_one_pool(child_t *self, void *argument)
{
    rmm_resource_t *cuda = NULL, *pool = NULL;
    const rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    void *block = NULL;

    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK(rmm_pool_resource_create(cuda, &options, &pool) == RMM_OK);
    CHECK(rmm_resource_alloc(pool, 1000, 0, NULL, &block) == RMM_OK);
    child_pause(self, 'r');
}

static uint64_t bytes_of_files(void)
{
    DIR *directory = opendir(runtime.path);
    struct dirent *entry;
    struct stat status;
    uint64_t bytes = 0;

    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        if (rmm__file_name_parse(entry->d_name).kind != RMM_FILE_OTHER) {
            assert_int_equal(fstatat(runtime.fd, entry->d_name, &status, 0), 0);
            bytes += (uint64_t)status.st_blocks * 512;
        }
    }
    closedir(directory);
    return bytes;
}

CASE(a_program_with_one_pool_takes_64_kib_at_most)
{
    rmm_segment_t segment;
    child_t child;

    start_and_read(&child, use_one_pool, NULL, 'r', &segment);
    assert_location(&segment, current_bytes, 1000);
    assert_true(bytes_of_files() <= ONE_POOL_BYTES);
    end_and_close(&child, &segment);
}

/* --- what an ended one leaves -------------------------------------------------------- */

#define ENDED_BYTES 8192u

/* Uses a pool, logs, holds a block; then exits as programs do, with their handlers. */
static void use_a_pool_and_exit(child_t *self, void *argument)
{
    rmm_resource_t *cuda = NULL, *pool = NULL;
    const rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    void *block = NULL;

    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK(rmm_pool_resource_create(cuda, &options, &pool) == RMM_OK);
    CHECK(rmm_resource_alloc(pool, 1000, 0, NULL, &block) == RMM_OK);
    CHECK(rmm_resource_alloc(pool, 500, 0, NULL, &block) == RMM_OK);
    rmm_resource_dealloc(pool, block, 500, 0, NULL);
    rmm__log_warn("last words");
    if (argument != NULL) {
        raise(SIGKILL);
    }
    exit(0);
}

static void note_last_words(const rmm_log_message_t *message, void *arg)
{
    *(bool *)arg = *(bool *)arg || strcmp(message->text, "last words") == 0;
}

static void check_last_state(void)
{
    rmm_ring_cursor_t cursor = {0};
    rmm_segment_t segment;
    rmm_record_t record;
    bool said = false;

    runtime_segment(&runtime, &segment);
    assert_false(rmm__segment_is_live(&segment));
    assert_location(&segment, current_bytes, 1000);
    assert_location(&segment, total_bytes, 1500);
    assert_location(&segment, total_count, 2);
    assert_location(&segment, freed_count, 1);
    assert_location(&segment, peak_bytes, 1500);
    assert_int_equal(rmm__segment_slot_count(&segment), 2);
    assert_true(rmm__segment_read_slot(&segment, 1, &record, NULL));
    assert_string_equal(rmm__record_slot(&record)->type, "pool");
    assert_slot(&segment, 1, current_bytes, 1000);
    assert_slot(&segment, 1, peak_bytes, 1500);
    assert_int_equal(
        rmm__segment_read_log(&segment, &cursor, true, note_last_words, &said), 0);
    assert_true(said);
    rmm__segment_close(&segment);
}

CASE(an_ended_program_leaves_8_kib_with_all_that_was_shown)
{
    child_run(use_a_pool_and_exit, NULL);
    assert_true(bytes_of_files() <= ENDED_BYTES);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SIDE, NULL), 0);
    check_last_state();
}

CASE(a_killed_program_is_made_small_by_a_sweep)
{
    child_t child;

    child_start(&child, use_a_pool_and_exit, (char[]){""});
    assert_true(WIFSIGNALED(child_wait(&child)));
    assert_true(bytes_of_files() > ENDED_BYTES);
    check_last_state();
    assert_int_equal(rmm__runtime_dir_sweep_some(runtime.fd, (long)geteuid()), 0);
    assert_true(bytes_of_files() <= ENDED_BYTES);
    check_last_state();
}

#define SHORT_PROGRAMS 200
#define SHORT_IN_1_MIB 60 /* made small, no more than 128 of them fit */

static int segments_in(const char *path)
{
    runtime_t place;

    snprintf(place.path, sizeof(place.path), "%s", path);
    return runtime_count(&place, RMM_FILE_SEGMENT, NULL);
}

/* Each one is there while it runs, although all together would not fit. */
static void run_many_on_a_small_disk(child_t *self, void *argument)
{
    const char *path = getenv("RMM_RUNTIME_DIR");

    mount_tmpfs(path, 0, "size=1m");
    for (int i = 0; i < SHORT_PROGRAMS; i++) {
        int status;
        pid_t pid = fork();

        CHECK(pid >= 0);
        if (pid == 0) {
            rmm_accounting_t accounting;

            CHECK(open_accounting(&accounting, "short", 1) == RMM_OK);
            CHECK(rmm__publisher.state == RMM_PUBLISH_SHARED);
            if (argument != NULL && i % 2 == 0) {
                raise(SIGKILL);
            }
            exit(0);
        }
        CHECK(waitpid(pid, &status, 0) == pid);
        CHECK(status == 0 || (argument != NULL && WIFSIGNALED(status)));
    }
    CHECK(segments_in(path) >= SHORT_IN_1_MIB);
}

CASE(all_of_many_short_programs_are_published)
{
    tmpfs_or_skip();
    (void)use_small_dir(&runtime);
    child_run(run_many_on_a_small_disk, NULL);
    assert_string_equal(logged(), "");
    child_run(run_many_on_a_small_disk, (char[]){""});
    assert_string_equal(logged(), "");
}

/* --- a disk that fills up later ------------------------------------------------------- */

#define MANY_SLOTS 300u
#define MESSAGES 200u

static void use_all_locations(void)
{
    for (uint32_t i = 1; i < RMM_SEGMENT_LOCATIONS; i++) {
        rmm__location_open(
            i, &(rmm_location_identity_t){
                   .uuid = "SIM", .pci_bus_id = "", .name = "", .capacity_bytes = i});
        location_alloc(i, 100);
        CHECK(rmm__locations[i].current_bytes == 100);
        CHECK(rmm__locations[i].peak_bytes == 100);
    }
}

static void use_all_slots(void)
{
    static rmm_accounting_t accounting[MANY_SLOTS];
    rmm_stats_t stats = RMM_STATS_INIT;

    for (uint32_t i = 0; i < MANY_SLOTS; i++) {
        CHECK(open_accounting(&accounting[i], "one of many", i + 2) == RMM_OK);
        count_alloc(&accounting[i], i + 1);
    }
    for (uint32_t i = 0; i < MANY_SLOTS; i++) {
        rmm__accounting_stats(&accounting[i], &stats);
        CHECK(stats.current_bytes == i + 1 && stats.peak_bytes == i + 1);
        CHECK(stats.total_bytes == i + 1 && stats.current_count == 1);
    }
}

static void
count_side_file_warning(rmm_log_level_t level, const char *message, void *arg)
{
    if (level == RMM_LEVEL_WARN &&
        strstr(message, "/rmm will not show all of ") != NULL) {
        ++*(int *)arg;
    }
}

static void use_everything_on_a_full_disk(child_t *self, void *argument)
{
    const char *path = getenv("RMM_RUNTIME_DIR");
    int warnings = 0;
    rmm_accounting_t accounting;
    void *side = NULL, *log_arg;
    rmm_log_fn log;

    mount_tmpfs(path, 0, "size=256k");
    CHECK(open_accounting(&accounting, "first", 1) == RMM_OK);
    CHECK(used_bytes_of(path) <= ONE_POOL_BYTES);
    CHECK(entries_in(path) == 2);
    CHECK(
        rmm_log_exchange_callback(count_side_file_warning, &warnings, &log, &log_arg) ==
        RMM_OK);
    CHECK(rmm__publish_side_file("diag", 1 << 20, &side) == RMM_ERR_IO);
    CHECK(strstr(rmm_last_error_message(), "No space left") != NULL);
    CHECK(rmm__publish_side_file("diag", 1 << 19, &side) == RMM_ERR_IO);
    CHECK(warnings == 1); /* tried with less: told once */
    CHECK(rmm__publish_side_file("leaks", 1 << 19, &side) == RMM_ERR_IO);
    CHECK(warnings == 2);
    CHECK(rmm_log_to_callback(log, log_arg) == RMM_OK);
    CHECK(entries_in(path) == 2);
    CHECK(rmm__publish_side_file("diag", 4096, &side) == RMM_OK); /* less may fit */
    memset(side, 1, 4096);
    fill_disk(path);
    count_alloc(&accounting, 5);
    use_all_locations();
    use_all_slots();
    for (uint32_t i = 0; i < MESSAGES; i++) {
        rmm__log_warn("message %u", i);
    }
    CHECK(chdir(path) == 0); /* which only this process and its mount namespace see */
    child_pause(self, 'r');
}

static void note_message(const rmm_log_message_t *message, void *arg)
{
    ++*(uint64_t *)arg;
}

/* The segment's directory is where the child is. */
static int open_dir_of(const child_t *child)
{
    char path[64];
    int fd;

    snprintf(path, sizeof(path), "/proc/%d/cwd", (int)child->pid);
    fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    assert_true(fd >= 0);
    return fd;
}

/* What is shown is right, and what has no space is not shown. */
static void check_what_is_shown(const rmm_segment_t *segment)
{
    rmm_ring_cursor_t cursor = {0};
    uint64_t read = 0;
    uint32_t slots = rmm__segment_slot_count(segment), locations = 0;
    rmm_record_t record;

    assert_location(segment, current_bytes, 5 + MANY_SLOTS * (MANY_SLOTS + 1) / 2);
    assert_in_range(slots, 2, 20);
    for (uint32_t i = 1; i < slots; i++) {
        assert_slot(segment, i, current_bytes, i);
        assert_slot(segment, i, total_bytes, i);
    }
    for (uint32_t i = 1; i < RMM_SEGMENT_LOCATIONS; i++) {
        if (rmm__segment_read_location(segment, i, &record)) {
            locations++;
            assert_int_equal(
                location_figure(segment, i, RMM_LOCATION_STAT_total_bytes), 100);
        }
    }
    assert_in_range(locations, 3, 12); /* beside the first, on its pages */
    assert_int_equal(
        rmm__segment_read_log(segment, &cursor, true, note_message, &read), 0);
    assert_in_range(read, 1, 20);
    assert_true(read + cursor.lost >= MESSAGES);
}

CASE(a_disk_that_fills_up_later_costs_names_and_no_figures)
{
    char reason[RMM_SEGMENT_REASON_BYTES], name[RMM_SEGMENT_NAME_BYTES];
    rmm_segment_t segment;
    runtime_t place;
    child_t child;

    tmpfs_or_skip();
    (void)use_small_dir(&runtime);
    child_start_until(&child, use_everything_on_a_full_disk, NULL, 'r');
    place.fd = open_dir_of(&child);
    snprintf(place.path, sizeof(place.path), "/proc/%d/cwd", (int)child.pid);
    assert_int_equal(runtime_count(&place, RMM_FILE_SEGMENT, name), 1);
    assert_int_equal(
        rmm__segment_open(&segment, place.fd, name, reason), RMM_SEGMENT_GOOD);
    check_what_is_shown(&segment);
    assert_non_null(strstr(logged(), "/rmm will not show device"));
    rmm__segment_close(&segment);
    close(place.fd);
    assert_int_equal(child_wait(&child), 0);
}

/* --- before Linux 5.14 --------------------------------------------------------------- */

/* madvise() knows no MADV_POPULATE_WRITE. */
static void forget_populate(void)
{
    struct sock_filter rules[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_madvise, 0, 3),
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MADV_POPULATE_WRITE, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EINVAL),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {sizeof(rules) / sizeof(rules[0]), rules};

    CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
    CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void use_an_old_kernel(child_t *self, void *argument)
{
    rmm_accounting_t accounting;

    forget_populate();
    CHECK(open_accounting(&accounting, "first", 1) == RMM_OK);
    use_all_locations();
    use_all_slots();
    child_pause(self, 'r');
}

CASE(an_old_kernel_gives_all_its_space_at_the_start)
{
    rmm_segment_t segment;
    struct stat status;
    child_t child;

    start_and_read(&child, use_an_old_kernel, NULL, 'r', &segment);
    assert_int_equal(rmm__segment_slot_count(&segment), RMM_SEGMENT_SLOTS);
    assert_location(&segment, total_count, MANY_SLOTS);
    assert_int_equal(location_figure(&segment, 31, RMM_LOCATION_STAT_total_bytes), 100);
    assert_int_equal(fstat(segment.fd, &status), 0);
    assert_true(status.st_blocks * 512 >= status.st_size); /* no hole: no SIGBUS */
    end_and_close(&child, &segment);
}

/* --- one message at once -------------------------------------------------------------- */

#define LOGGERS 8

static void *log_many(void *argument)
{
    for (int i = 0; i < 40; i++) {
        rmm__log_warn("thread %d message %d", (int)(intptr_t)argument, i);
    }
    return NULL;
}

static void log_from_many_threads(child_t *self, void *argument)
{
    pthread_t threads[LOGGERS];
    rmm_accounting_t accounting;

    CHECK(open_accounting(&accounting, "logs", 1) == RMM_OK);
    for (int i = 0; i < LOGGERS; i++) {
        CHECK(pthread_create(&threads[i], NULL, log_many, (void *)(intptr_t)i) == 0);
    }
    for (int i = 0; i < LOGGERS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    child_pause(self, 'r');
}

CASE(threads_that_need_the_same_page_all_find_it)
{
    for (int i = 0; i < 20; i++) {
        rmm_ring_cursor_t cursor = {0};
        rmm_segment_t segment;
        uint64_t read = 0;
        child_t child;

        start_and_read(&child, log_from_many_threads, NULL, 'r', &segment);
        assert_int_equal(
            rmm__segment_read_log(&segment, &cursor, false, note_message, &read), 0);
        assert_int_equal(cursor.next, LOGGERS * 40);
        assert_in_range(read, RMM_LOG_RECORDS - LOGGERS, RMM_LOG_RECORDS);
        end_and_close(&child, &segment);
        runtime_empty(&runtime);
    }
}
