/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of segments: what one user's may take, that what is over it is counted, and that it is
 * looked at later. Without descriptors nothing is taken for gone or unknown.
 */
#include "model_fixture.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "harness/runtime.h"
#include "programs/holders.h"
#include "programs/scan.h"
#include "segments/exits.h"

#define FIT 10u
#define NAMES 30u

typedef struct place {
    runtime_t runtime;
    model_t model;
    segment_dir_t *dir;
    dirs_t dirs;
    scan_t scan;
} place_t;

static place_t *open_place(void)
{
    place_t *place = calloc(1, sizeof(*place));
    assert_non_null(place);
    log_level_set(LOG_LEVEL_OFF);
    runtime_open(&place->runtime);
    model_init(&place->model);
    place->model.descriptor_limit = 1024;
    place->dir = calloc(1, sizeof(*place->dir));
    place->dir->fd = open(place->runtime.path, O_RDONLY | O_DIRECTORY);
    place->dir->wd = -1;
    assert_true(place->dir->fd >= 0);
    place->dirs.inotify_fd = -1;
    place->dirs.list = malloc(sizeof(segment_dir_t *));
    place->dirs.list[0] = place->dir;
    place->dirs.count = 1;
    scan_init(&place->scan, &place->model, &place->dirs, -1);
    return place;
}

static void close_place(place_t *place)
{
    scan_fini(&place->scan);
    budget_user_t user;
    for (uint32_t i = 0; budget_user_at(&place->model.budget, i, &user); i++) {
        assert_int_equal(user.used[BUDGET_NAMES], 0);
    }
    model_fini(&place->model);
    dirs_close(&place->dirs);
    runtime_close(&place->runtime);
    free(place);
}

static void name_of(uint32_t number, char name[64])
{
    (void)snprintf(name, 64, "%u.%016x", (unsigned)geteuid(), number);
}

static void make_names(const place_t *place)
{
    char name[64];
    for (uint32_t i = 0; i < NAMES; i++) {
        name_of(i, name);
        int fd = openat(place->dir->fd, name, O_CREAT | O_WRONLY, 0600);
        assert_true(fd >= 0);
        (void)close(fd);
    }
}

/* All that can be done now. */
static void scan_all(place_t *place)
{
    scan_list_again(&place->scan);
    for (uint32_t i = 0; i < 100000 && scan_step(&place->scan); i++) {
    }
}

/* Before, what was over a queue's limit was dropped, and nothing told it. */
static void names_over_the_budget_are_counted_and_looked_at_later(void **state)
{
    (void)state;
    place_t *place = open_place();
    budget_t *budget = &place->model.budget;
    uid_t uid = geteuid();
    uint64_t taken = budget_limit(budget, uid, BUDGET_NAMES) - FIT;
    assert_true(budget_take(budget, uid, BUDGET_NAMES, taken));
    make_names(place);
    scan_all(place);
    assert_int_equal(place->dir->entries.count, FIT);
    assert_int_equal(budget_refused(budget, uid, BUDGET_NAMES), NAMES - FIT);
    budget_give(budget, uid, BUDGET_NAMES, taken);
    scan_all(place);
    assert_int_equal(place->dir->entries.count, NAMES);
    assert_int_equal(budget_refused(budget, uid, BUDGET_NAMES), NAMES - FIT);
    close_place(place);
}

/* A user can make and remove names without end: those that were not looked at yet are bounded, and
 * a name that finds no room is found by the next listing. */
static void names_that_arrive_are_bounded_and_none_is_lost(void **state)
{
    (void)state;
    char name[64];
    place_t *place = open_place();
    make_names(place);
    for (uint32_t i = 0; i < SCAN_ARRIVALS_MAX; i++) {
        name_of(1000 + i, name);
        place->dirs.name_changed(place->dirs.callback_arg, place->dir, name, false);
    }
    assert_false(place->dir->changed);
    for (uint32_t i = 0; i < NAMES; i++) {
        name_of(i, name);
        place->dirs.name_changed(place->dirs.callback_arg, place->dir, name, false);
    }
    assert_int_equal(place->dir->entries.count, SCAN_ARRIVALS_MAX);
    assert_true(place->dir->changed);
    for (uint32_t i = 0; i < 100000 && scan_step(&place->scan); i++) {
    }
    assert_int_equal(place->dir->entries.count, NAMES);
    assert_int_equal(place->dir->arrival_count, 0);
    close_place(place);
}

/* Its header is still to be written. It is looked at again, later and later. */
static void a_segment_that_is_not_ready_is_tried_again_later(void **state)
{
    (void)state;
    char name[64];
    place_t *place = open_place();
    name_of(1, name);
    int fd = openat(place->dir->fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_int_equal(ftruncate(fd, sizeof(rmm_segment_layout_t)), 0);
    (void)close(fd);
    scan_all(place);
    entry_t *entry = entries_find(&place->dir->entries, name);
    assert_non_null(entry);
    for (uint32_t tries = 1; tries <= 3; tries++) {
        for (int i = 0; i < 1000 && entry->tries < tries; i++) {
            (void)usleep(1000); /* its time has not come */
            (void)scan_step(&place->scan);
        }
        assert_int_equal(entry->kind, ENTRY_WAITING);
        assert_int_equal(entry->tries, tries);
        uint64_t retry_ns = entry->retry_ns;
        entry->retry_ns = UINT64_MAX;
        scan_all(place);
        assert_int_equal(entry->tries, tries);
        entry->retry_ns = retry_ns;
    }
    close_place(place);
}

static void a_directory_that_is_gone_is_not_listed(void **state)
{
    (void)state;
    place_t *place = open_place();
    make_names(place);
    place->dir->gone = true;
    scan_all(place);
    assert_int_equal(place->dir->entries.count, 0);
    assert_true(place->dir->changed);
    place->dir->gone = false;
    scan_all(place);
    assert_int_equal(place->dir->entries.count, NAMES);
    close_place(place);
}

static void a_daemon_of_one_user_looks_at_no_names_of_others(void **state)
{
    (void)state;
    place_t *place = open_place();
    make_names(place);
    place->scan.only_uid = (long)geteuid() + 1;
    scan_all(place);
    assert_int_equal(place->dir->entries.count, 0);
    place->scan.only_uid = (long)geteuid();
    scan_all(place);
    assert_int_equal(place->dir->entries.count, NAMES);
    close_place(place);
}

/* Where the kernel dropped news nobody knows of which directory: all are listed again. */
static void a_directory_whose_news_were_lost_is_listed_again(void **state)
{
    (void)state;
    struct inotify_event lost = {.wd = -1, .mask = IN_Q_OVERFLOW};
    int ends[2];
    place_t *place = open_place();
    scan_all(place);
    make_names(place);
    assert_int_equal(pipe2(ends, O_NONBLOCK | O_CLOEXEC), 0); /* as if of inotify */
    place->dirs.inotify_fd = ends[0];
    place->dir->wd = 1;
    dirs_take_news(&place->dirs);
    assert_false(place->dir->changed);
    assert_int_equal(write(ends[1], &lost, sizeof(lost)), sizeof(lost));
    dirs_take_news(&place->dirs);
    assert_true(place->dirs.stale);
    for (uint32_t i = 0; i < 100000 && scan_step(&place->scan); i++) {
    }
    assert_int_equal(place->dir->entries.count, NAMES);
    place->dirs.inotify_fd = -1;
    place->dir->wd = -1;
    (void)close(ends[0]);
    (void)close(ends[1]);
    close_place(place);
}

static void tell_bad_name(place_t *place, uint32_t number)
{
    char name[64];
    name_of(number, name);
    int fd = openat(place->dir->fd, name, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, "no segment", 10), 10);
    (void)close(fd);
    place->dirs.name_changed(place->dirs.callback_arg, place->dir, name, false);
    for (uint32_t i = 0; i < 10 && scan_step(&place->scan); i++) {
    }
}

/* A user can make files without end that are no segments. One more makes room for itself. */
static void only_the_newest_refused_names_are_remembered(void **state)
{
    (void)state;
    char name[64];
    place_t *place = open_place();
    for (uint32_t i = 0; i < SCAN_REFUSED_MAX; i++) {
        tell_bad_name(place, i);
    }
    assert_int_equal(place->model.segments_rejected, SCAN_REFUSED_MAX);
    assert_int_equal(place->dir->entries.count, SCAN_REFUSED_MAX);
    tell_bad_name(place, SCAN_REFUSED_MAX);
    assert_int_equal(place->model.segments_rejected, SCAN_REFUSED_MAX + 1);
    assert_int_equal(place->dir->entries.count, SCAN_REFUSED_MAX);
    for (uint32_t i = 0; i <= SCAN_REFUSED_MAX; i++) {
        name_of(i, name);
        assert_int_equal(entries_find(&place->dir->entries, name) != NULL, i != 0);
    }
    close_place(place);
}

/* --- descriptors -------------------------------------------------------------------- */

/* Returns the limit before. */
static rlim_t limit_descriptors(rlim_t most)
{
    struct rlimit limit;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    rlim_t before = limit.rlim_cur;
    limit.rlim_cur = most;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    return before;
}

/* However few there are, at whichever step it finds none. */
static void a_survey_without_descriptors_drops_no_directory(void **state)
{
    (void)state;
    char reason[256];
    runtime_t runtime;
    dirs_t dirs;
    log_level_set(LOG_LEVEL_OFF);
    runtime_open(&runtime);
    assert_true(dirs_open(&dirs, true, reason, sizeof(reason)));
    dirs_survey(&dirs);
    assert_int_equal(dirs.count, 1);
    for (rlim_t i = 0; i < 64; i++) {
        rlim_t before = limit_descriptors(i);
        dirs_survey(&dirs);
        (void)limit_descriptors(before);
        assert_int_equal(dirs.count, 1);
        assert_false(dirs.list[0]->gone);
        assert_true(dirs.list[0]->seen || dirs.stale);
    }
    assert_int_equal(dirs.refused_count, 0);
    dirs_survey(&dirs);
    assert_false(dirs.stale);
    dirs_close(&dirs);
    runtime_close(&runtime);
}

/* --- a process that ends ---------------------------------------------------------------- */

/* What is killed when the daemon is about to watch it, to find its pid or to ask whether a pid is
 * it, and the lock of its segment that goes with it; -1: a child keeps the lock, or it has gone. */
static pid_t ends_when_watched, ends_when_found, ends_when_asked_for;
static int lock_that_ends = -1;
/* The table of locks was read twice and does not have what ends then. */
static bool is_unknown_when_found;
/* No descriptor is left when the daemon is about to find a pid, or to open a segment. */
static bool is_short_when_found, is_short_when_opened;

int __real_exits_watch(exits_t *exits, pid_t pid, uint64_t serial);
int __wrap_exits_watch(exits_t *exits, pid_t pid, uint64_t serial);
holder_answer_t __real_holders_find(
    holders_t *holders, const rmm_segment_t *segment, uint64_t since_ns,
    pid_t *pid_out);
holder_answer_t __wrap_holders_find(
    holders_t *holders, const rmm_segment_t *segment, uint64_t since_ns,
    pid_t *pid_out);

bool __real_rmm__process_is(pid_t pid, uid_t uid, uint64_t start_time_ticks);
bool __wrap_rmm__process_is(pid_t pid, uid_t uid, uint64_t start_time_ticks);

rmm_segment_verdict_t __real_rmm__segment_open(
    rmm_segment_t *segment, int dirfd, const char *name,
    char reason[RMM_SEGMENT_REASON_BYTES]);
rmm_segment_verdict_t __wrap_rmm__segment_open(
    rmm_segment_t *segment, int dirfd, const char *name,
    char reason[RMM_SEGMENT_REASON_BYTES]);

static void end_process(pid_t *pid)
{
    assert_int_equal(kill(*pid, SIGKILL), 0);
    assert_int_equal(waitpid(*pid, NULL, 0), *pid);
    *pid = 0;
    if (lock_that_ends >= 0) {
        (void)close(lock_that_ends);
        lock_that_ends = -1;
    }
}

int __wrap_exits_watch(exits_t *exits, pid_t pid, uint64_t serial)
{
    if (pid == ends_when_watched) {
        end_process(&ends_when_watched);
    }
    return __real_exits_watch(exits, pid, serial);
}

holder_answer_t __wrap_holders_find(
    holders_t *holders, const rmm_segment_t *segment, uint64_t since_ns, pid_t *pid_out)
{
    if ((pid_t)segment->header.pid == ends_when_found) {
        end_process(&ends_when_found);
        if (is_unknown_when_found) {
            *pid_out = 0;
            return HOLDER_UNKNOWN;
        }
    }
    rlim_t before = is_short_when_found ? limit_descriptors(0) : 0;
    holder_answer_t answer = __real_holders_find(holders, segment, since_ns, pid_out);
    if (is_short_when_found) {
        (void)limit_descriptors(before);
    }
    return answer;
}

bool __wrap_rmm__process_is(pid_t pid, uid_t uid, uint64_t start_time_ticks)
{
    if (pid == ends_when_asked_for) {
        end_process(&ends_when_asked_for);
    }
    return __real_rmm__process_is(pid, uid, start_time_ticks);
}

rmm_segment_verdict_t __wrap_rmm__segment_open(
    rmm_segment_t *segment, int dirfd, const char *name,
    char reason[RMM_SEGMENT_REASON_BYTES])
{
    rlim_t before = is_short_when_opened ? limit_descriptors(0) : 0;
    rmm_segment_verdict_t verdict =
        __real_rmm__segment_open(segment, dirfd, name, reason);
    if (is_short_when_opened) {
        (void)limit_descriptors(before);
    }
    return verdict;
}

static pid_t start_process(void)
{
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        for (;;) {
            (void)pause();
        }
    }
    return pid;
}

static uint64_t start_time_ticks(pid_t pid)
{
    char path[32];
    unsigned long long ticks;
    (void)snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_int_equal(
        fscanf(
            file,
            "%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d %*d %*d "
            "%*d %*d %*d %llu",
            &ticks),
        1);
    (void)fclose(file);
    return ticks;
}

/* A live segment of that process, whose lock another one has: the descriptor returned. */
static int make_segment(const place_t *place, pid_t pid)
{
    static rmm_segment_layout_t layout;
    char name[64];
    sample_make(&layout);
    layout.header.pid = (uint32_t)pid;
    layout.header.start_time_ticks = start_time_ticks(pid);
    name_of(1, name);
    int fd = openat(place->dir->fd, name, O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, &layout, sizeof(layout)), sizeof(layout));
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    return fd;
}

static place_t *open_place_of_processes(void)
{
    place_t *place = open_place();
    place->model.exits = exits_open(-1);
    place->model.holders = holders_open("/proc/locks");
    place->model.counts_ended = true;
    assert_non_null(place->model.exits);
    assert_non_null(place->model.holders);
    return place;
}

static void close_place_of_processes(place_t *place)
{
    exits_t *exits = place->model.exits;
    holders_t *holders = place->model.holders;
    close_place(place);
    exits_close(exits);
    holders_close(holders);
}

/* Before, the segment was shown under its pid for as long as its lock was held. */
static void a_process_that_ends_before_it_is_watched_has_no_pid(void **state)
{
    (void)state;
    place_t *place = open_place_of_processes();
    model_t *model = &place->model;
    ends_when_watched = start_process();
    int fd = make_segment(place, ends_when_watched);
    scan_all(place);
    while (model->member_count == 0) { /* it is met again some time later */
        assert_int_equal(usleep(1000), 0);
        (void)holders_read(model->holders);
        scan_all(place);
    }
    assert_int_equal(model->member_count, 1);
    assert_int_equal(model->members[0]->state, MEMBER_LIVE);
    assert_memory_equal(model->members[0]->process->name, "seg-", 4);
    (void)close(fd);
    close_place_of_processes(place);
}

/* Met by the first look after the end of its process: its figures count. */
static void check_ended_process(pid_t *ends, bool is_locked)
{
    place_t *place = open_place_of_processes();
    char name[32];
    *ends = start_process();
    (void)snprintf(name, sizeof(name), "%d", (int)*ends);
    lock_that_ends = make_segment(place, *ends);
    if (!is_locked) {
        (void)close(lock_that_ends);
        lock_that_ends = -1;
    }
    scan_all(place);
    assert_int_equal(place->model.member_count, 1);
    const member_t *member = place->model.members[0];
    assert_int_equal(member->state, MEMBER_EXITED);
    assert_int_equal(member->pidfd, -1);
    assert_string_equal(member->process->name, name);
    assert_true(place->model.is_unsaved); /* the totals have it */
    close_place_of_processes(place);
}

/* Before, it was met again after a millisecond, or up to 200 for the table of locks: who waited for
 * its end and read the peak read one without it. */
static void a_process_that_ends_while_it_is_met_counts_at_once(void **state)
{
    (void)state;
    check_ended_process(&ends_when_watched, true);
    check_ended_process(&ends_when_found, true);
}

/* Before, it was shown without its pid. */
static void a_process_that_ends_while_its_pid_is_looked_for_has_it(void **state)
{
    (void)state;
    is_unknown_when_found = true;
    check_ended_process(&ends_when_found, true);
    is_unknown_when_found = false;
    check_ended_process(&ends_when_asked_for, false); /* a zombie has no locks */
}

/* Before, it had no pid, or was refused, for as long as it ran. */
static void check_found_later(bool *is_short)
{
    place_t *place = open_place_of_processes();
    model_t *model = &place->model;
    char name[32];
    int fd = make_segment(place, getpid());
    *is_short = true;
    scan_all(place);
    *is_short = false;
    assert_int_equal(model->member_count, 0);
    assert_int_equal(model->segments_rejected, 0);
    assert_int_equal(model->unshown[SHORT_OF_DESCRIPTORS], 1);
    while (model->member_count == 0) { /* it is met again some time later */
        assert_int_equal(usleep(1000), 0);
        scan_all(place);
    }
    assert_int_equal(model->unshown[SHORT_OF_DESCRIPTORS], 0);
    (void)snprintf(name, sizeof(name), "%d", (int)getpid());
    assert_string_equal(model->members[0]->process->name, name);
    (void)close(fd);
    close_place_of_processes(place);
}

static void a_process_is_found_when_there_are_descriptors_again(void **state)
{
    (void)state;
    check_found_later(&is_short_when_found);
    check_found_later(&is_short_when_opened);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_over_the_budget_are_counted_and_looked_at_later),
        cmocka_unit_test(names_that_arrive_are_bounded_and_none_is_lost),
        cmocka_unit_test(a_segment_that_is_not_ready_is_tried_again_later),
        cmocka_unit_test(a_directory_that_is_gone_is_not_listed),
        cmocka_unit_test(a_daemon_of_one_user_looks_at_no_names_of_others),
        cmocka_unit_test(a_directory_whose_news_were_lost_is_listed_again),
        cmocka_unit_test(only_the_newest_refused_names_are_remembered),
        cmocka_unit_test(a_process_that_ends_before_it_is_watched_has_no_pid),
        cmocka_unit_test(a_process_that_ends_while_its_pid_is_looked_for_has_it),
        cmocka_unit_test(a_process_that_ends_while_it_is_met_counts_at_once),
        cmocka_unit_test(a_survey_without_descriptors_drops_no_directory),
        cmocka_unit_test(a_process_is_found_when_there_are_descriptors_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
