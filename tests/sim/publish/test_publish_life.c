/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The life of a segment: made whole before it is seen, held while the process lives in
 * whatever form, and let go when it ends in whatever way.
 */
#include "sim/publish/publish_case.h"

#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <time.h>

#include <rmm/cuda_resource.h>
#include <rmm/resource.h>

#include "harness/sweep.h"
#include "segment/runtime_dir.h"

extern char **environ;

static void publish_and_wait(child_t *self, void *argument)
{
    rmm_accounting_t accounting;

    CHECK(open_accounting(&accounting, "waits", 1) == RMM_OK);
    count_alloc(&accounting, 100);
    child_pause(self, 'r');
}

static uint64_t bytes_at_place(const rmm_segment_t *segment)
{
    return location_figure(segment, 0, RMM_LOCATION_STAT_current_bytes);
}

/* --- ends --------------------------------------------------------------------------- */

/* Every allocation is of 64 bytes and padded by 192, in one section. */
static void write_sections(child_t *self, void *argument)
{
    rmm_accounting_t accounting;

    CHECK(open_accounting(&accounting, "sections", 1) == RMM_OK);
    child_say(self, 'r');
    for (;;) {
        rmm__accounting_begin_exclusive(&accounting);
        rmm__accounting_alloc_exclusive(&accounting, 64, 192);
        rmm__accounting_end_exclusive(&accounting);
        rmm__accounting_begin_exclusive(&accounting);
        rmm__accounting_free_exclusive(&accounting, 64, 192);
        rmm__accounting_end_exclusive(&accounting);
    }
}

static void check_last_figures(const rmm_segment_t *segment)
{
    uint64_t bytes, padding;
    rmm_record_t record;
    bool torn;

    assert_true(rmm__segment_read_slot(segment, 0, &record, &torn));
    assert_true(
        rmm__segment_slot_stat(segment, &record, RMM_SLOT_STAT_current_bytes, &bytes));
    assert_true(rmm__segment_slot_stat(
        segment, &record, RMM_SLOT_STAT_padding_bytes, &padding));
    if (torn) { /* each figure is still one that was written */
        assert_true(bytes == 0 || bytes == 64);
        assert_true(padding == 0 || padding == 192);
    } else {
        assert_int_equal(padding, 3 * bytes);
    }
}

CASE(a_writer_killed_at_any_moment_leaves_a_dead_and_readable_segment)
{
    const unsigned seed = 20240607;

    print_message("seed %u\n", seed);
    srand(seed);
    for (int i = 0; i < 40; i++) {
        const struct timespec pause = {.tv_nsec = rand() % 2000000};
        rmm_segment_t segment;
        child_t child;

        start_and_read(&child, write_sections, NULL, 'r', &segment);
        assert_true(rmm__segment_is_live(&segment));
        nanosleep(&pause, NULL);
        child_kill(&child);
        assert_false(rmm__segment_is_live(&segment));
        check_last_figures(&segment);
        rmm__segment_close(&segment);
        runtime_empty(&runtime);
    }
}

static void die_inside_a_section(child_t *self, void *argument)
{
    rmm_accounting_t accounting;

    CHECK(open_accounting(&accounting, "dies", 1) == RMM_OK);
    rmm__accounting_begin_exclusive(&accounting);
    RMM_ACCOUNTING_SET(&accounting, free_bytes, 5);
    raise(SIGKILL);
}

CASE(killed_inside_a_section_it_is_torn)
{
    rmm_segment_t segment;
    rmm_record_t record;
    child_t child;
    uint64_t value;
    bool torn = false;

    child_start(&child, die_inside_a_section, NULL);
    assert_true(WIFSIGNALED(child_wait(&child)));
    runtime_segment(&runtime, &segment);
    assert_false(rmm__segment_is_live(&segment));
    assert_true(rmm__segment_read_slot(&segment, 0, &record, &torn));
    assert_true(torn);
    assert_true(
        rmm__segment_slot_stat(&segment, &record, RMM_SLOT_STAT_free_bytes, &value));
    assert_int_equal(value, 5);
    rmm__segment_close(&segment);
}

CASE(the_next_program_marks_what_the_last_one_left)
{
    struct stat status;
    char name[RMM_SEGMENT_NAME_BYTES];
    const struct timespec old[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000000000}};

    child_run(publish_and_wait, NULL);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, name), 1);
    child_run(publish_and_wait, NULL);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, NULL), 2);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SIDE, NULL), 1);
    assert_int_equal(fstatat(runtime.fd, name, &status, 0), 0);
    if ((status.st_mode & 0200) != 0) { /* listed second */
        char other[RMM_SEGMENT_NAME_BYTES];

        assert_int_equal(unlinkat(runtime.fd, name, 0), 0);
        assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, other), 1);
        assert_int_equal(fstatat(runtime.fd, other, &status, 0), 0);
        memcpy(name, other, sizeof(name));
    }
    assert_int_equal(status.st_mode & 07777, 0400);
    assert_int_equal(utimensat(runtime.fd, name, old, 0), 0);
    child_run(publish_and_wait, NULL);
    assert_int_not_equal(fstatat(runtime.fd, name, &status, 0), 0);
}

/* --- forms -------------------------------------------------------------------------- */

CASE(two_processes_are_two_segments)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    child_t children[2];
    rmm_segment_t segment;
    struct dirent *entry;
    DIR *directory;
    pid_t seen = 0;

    for (int i = 0; i < 2; i++) {
        child_start(&children[i], publish_and_wait, NULL);
        assert_int_equal(child_hear(&children[i]), 'r');
    }
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, NULL), 2);
    directory = opendir(runtime.path);
    while ((entry = readdir(directory)) != NULL) {
        if (rmm__segment_name_parse(entry->d_name, NULL)) {
            assert_int_equal(
                rmm__segment_open(&segment, runtime.fd, entry->d_name, reason),
                RMM_SEGMENT_GOOD);
            assert_int_equal(bytes_at_place(&segment), 100);
            seen += rmm__segment_pid(&segment);
            rmm__segment_close(&segment);
        }
    }
    closedir(directory);
    assert_int_equal(seen, children[0].pid + children[1].pid);
    assert_int_equal(child_wait(&children[0]), 0);
    assert_int_equal(child_wait(&children[1]), 0);
}

/* A forked child frees, counts, opens and reads; its parent's accounting must not notice. */
static void fork_while_publishing(child_t *self, void *argument)
{
    rmm_resource_t *mr = NULL;
    rmm_accounting_t accounting, more;
    void *block = NULL;
    void *side = NULL;
    pid_t pid;

    CHECK(rmm_cuda_resource_create(&mr) == RMM_OK);
    CHECK(rmm_resource_alloc(mr, 100, 0, NULL, &block) == RMM_OK);
    CHECK(open_accounting(&accounting, "inherited", 2) == RMM_OK);
    CHECK(rmm__publish_side_file("diag", 8192, &side) == RMM_OK);
    pid = fork();
    CHECK(pid >= 0);
    if (pid == 0) {
        count_alloc(&accounting, 7000);
        memset(side, 1, 8192);
        rmm_resource_dealloc(mr, block, 100, 0, NULL);
        CHECK(open_accounting(&more, "of the child", 3) == RMM_OK);
        count_alloc(&more, 9000);
        rmm__accounting_close(&more);
        CHECK(rmm__publish_side_file("late", 4096, &side) == RMM_OK);
        memset(side, 1, 4096);
        rmm_resource_release(mr);
    }
    child_say(self, pid == 0 ? 'c' : 'p');
    child_hear(self);
}

CASE(a_forked_child_neither_crashes_nor_counts_nor_keeps_it_alive)
{
    rmm_segment_t segment;
    char words[2];
    child_t child;

    child_start(&child, fork_while_publishing, NULL);
    words[0] = child_hear(&child);
    words[1] = child_hear(&child);
    assert_true(words[0] != 0 && words[1] != 0 && words[0] != words[1]);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, NULL), 1);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SIDE, NULL), 2);
    runtime_segment(&runtime, &segment);
    assert_int_equal(rmm__segment_pid(&segment), child.pid);
    assert_int_equal(bytes_at_place(&segment), 100);
    assert_location(&segment, total_count, 1);
    assert_int_equal(rmm__segment_slot_count(&segment), 2);

    kill(child.pid, SIGKILL);
    assert_int_equal(waitpid(child.pid, NULL, 0), child.pid);
    assert_false(rmm__segment_is_live(&segment)); /* its child still waits */
    child_note_ends(child.in, child.out, 0, 0);
    close(child.out); /* and now ends */
    assert_int_equal(child_hear(&child), 0);
    close(child.in);
    rmm__segment_close(&segment);
}

static void fork_first(child_t *self, void *argument)
{
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        publish_and_wait(self, argument);
        _exit(0);
    }
    child_pause(self, 'p');
    CHECK(waitpid(pid, NULL, 0) == pid);
}

CASE(a_child_forked_before_any_segment_makes_its_own)
{
    rmm_segment_t segment;
    child_t child;

    child_start(&child, fork_first, NULL);
    assert_int_not_equal(child_hear(&child), 0);
    assert_int_not_equal(child_hear(&child), 0);
    runtime_segment(&runtime, &segment);
    assert_int_not_equal(rmm__segment_pid(&segment), child.pid);
    assert_int_equal(rmm__segment_pid(&segment), segment.header.pid);
    assert_int_equal(bytes_at_place(&segment), 100);
    rmm__segment_close(&segment);
    child_wait(&child);
}

static void publish_and_exec(child_t *self, void *argument)
{
    rmm_accounting_t accounting;

    CHECK(open_accounting(&accounting, "execs", 1) == RMM_OK);
    execl("/bin/sleep", "sleep", "1000", (char *)NULL);
    CHECK(!"exec");
}

/* The kernel lets go of old mappings a little after exec closed the pipes, and lets posix_spawn()
 * return a little before it closes what is to be closed. */
static bool dies_soon(const rmm_segment_t *segment)
{
    for (int i = 0; i < 10000 && rmm__segment_is_live(segment); i++) {
        usleep(1000);
    }
    return !rmm__segment_is_live(segment);
}

CASE(another_program_in_the_same_process_does_not_keep_it_alive)
{
    rmm_segment_t segment;
    child_t child;

    child_start(&child, publish_and_exec, NULL);
    assert_int_equal(child_hear(&child), 0); /* pipes close at exec */
    runtime_segment(&runtime, &segment);
    assert_true(dies_soon(&segment));
    assert_int_equal(waitpid(child.pid, NULL, WNOHANG), 0); /* it goes on */
    rmm__segment_close(&segment);
    child_kill(&child);
}

static void publish_and_spawn(child_t *self, void *argument)
{
    char *const command[] = {(char[]){"sleep"}, (char[]){"1000"}, NULL};
    rmm_accounting_t accounting;
    pid_t *pid = argument;

    CHECK(open_accounting(&accounting, "spawns", 1) == RMM_OK);
    CHECK(posix_spawn(pid, "/bin/sleep", NULL, NULL, command, environ) == 0);
    child_say(self, 'r');
    raise(SIGKILL);
}

CASE(a_spawned_program_does_not_keep_it_alive)
{
    pid_t *pid = mmap(
        NULL, sizeof(*pid), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    rmm_segment_t segment;
    child_t child;

    assert_ptr_not_equal(pid, MAP_FAILED);
    child_start_until(&child, publish_and_spawn, pid, 'r');
    assert_true(WIFSIGNALED(child_wait(&child)));
    runtime_segment(&runtime, &segment);
    assert_int_equal(kill(*pid, 0), 0);
    assert_true(dies_soon(&segment));
    kill(*pid, SIGKILL);
    rmm__segment_close(&segment);
    munmap(pid, sizeof(*pid));
}

/* Forks all the time in one thread while another makes the segment. */
static void *fork_all_the_time(void *argument)
{
    const atomic_bool *stop = argument;

    while (!atomic_load(stop)) {
        pid_t pid = fork();

        if (pid == 0) {
            usleep(20000);
            _exit(0);
        }
        CHECK(pid > 0 && waitpid(pid, NULL, WNOHANG) >= 0);
        usleep(100);
    }
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
    return NULL;
}

static void publish_amid_forks(child_t *self, void *argument)
{
    static atomic_bool stop;
    pthread_t thread;
    rmm_accounting_t accounting;

    CHECK(pthread_create(&thread, NULL, fork_all_the_time, &stop) == 0);
    usleep(1000);
    CHECK(open_accounting(&accounting, "amid forks", 1) == RMM_OK);
    count_alloc(&accounting, 100);
    usleep(2000);
    raise(SIGKILL);
}

CASE(no_child_forked_meanwhile_inherits_the_lock)
{
    for (int i = 0; i < 20; i++) {
        rmm_segment_t segment;
        child_t child;

        child_start(&child, publish_amid_forks, NULL);
        assert_true(WIFSIGNALED(child_wait(&child)));
        runtime_segment(&runtime, &segment);
        assert_false(rmm__segment_is_live(&segment));
        rmm__segment_close(&segment);
        runtime_empty(&runtime);
    }
}

/* --- seen only whole ---------------------------------------------------------------- */

static void start_many(child_t *self, void *argument)
{
    child_t children[40];

    for (int i = 0; i < 40; i++) {
        child_start(&children[i], publish_and_wait, NULL);
    }
    for (int i = 0; i < 40; i++) {
        CHECK(child_hear(&children[i]) == 'r');
    }
    child_pause(self, 'r');
    for (int i = 0; i < 40; i++) {
        CHECK(child_wait(&children[i]) == 0);
    }
}

/* Every segment that has its name is good and held, at every moment. */
static int look_at_all(void)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    DIR *directory = opendir(runtime.path);
    struct dirent *entry;
    int count = 0;

    assert_non_null(directory);
    while ((entry = readdir(directory)) != NULL) {
        rmm_segment_t segment;
        rmm_control_t control;

        if (!rmm__segment_name_parse(entry->d_name, NULL)) {
            continue;
        }
        if (rmm__segment_open(&segment, runtime.fd, entry->d_name, reason) !=
            RMM_SEGMENT_GOOD) {
            fail_msg("%s: %s", entry->d_name, reason);
        }
        assert_true(rmm__segment_is_live(&segment));
        assert_int_equal(rmm__control_open(&control, runtime.fd, &segment), 0);
        rmm__control_close(&control);
        rmm__segment_close(&segment);
        count++;
    }
    closedir(directory);
    return count;
}

CASE(readers_never_see_one_half_made)
{
    child_t child;

    child_start(&child, start_many, NULL);
    while (look_at_all() < 40) {
        (void)sweep_directory(runtime.fd, -1); /* and no sweep gets in the way */
    }
    assert_int_equal(child_hear(&child), 'r');
    assert_int_equal(look_at_all(), 40);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_TEMPORARY, NULL), 0);
    assert_int_equal(child_wait(&child), 0);
}

/* --- side files --------------------------------------------------------------------- */

static void make_a_side_file(child_t *self, void *argument)
{
    rmm_accounting_t accounting;
    void *first = NULL, *again = NULL;
    unsigned descriptors;

    CHECK(open_accounting(&accounting, "first", 1) == RMM_OK);
    descriptors = count_descriptors();
    CHECK(rmm__publish_side_file("diag", 8192, &first) == RMM_OK);
    CHECK(rmm__publish_side_file("diag", 8192, &again) == RMM_OK);
    CHECK(first == again);
    CHECK(count_descriptors() == descriptors);
    for (size_t i = 0; i < 8192; i++) {
        CHECK(((unsigned char *)first)[i] == 0);
    }
    memcpy((char *)first + 8000, "here", 5);
    child_pause(self, 'r');
}

CASE(a_side_file_lies_beside_its_segment)
{
    char name[RMM_SEGMENT_NAME_BYTES + 8];
    char text[5] = "";
    rmm_segment_t segment;
    child_t child;
    int fd;

    start_and_read(&child, make_a_side_file, NULL, 'r', &segment);
    snprintf(name, sizeof(name), "%s.diag", segment.name);
    fd = openat(runtime.fd, name, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, text, sizeof(text), 8000), 5);
    assert_string_equal(text, "here");
    close(fd);
    end_and_close(&child, &segment);
}
