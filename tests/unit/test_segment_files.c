/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that lie in a runtime directory: what rmm__segment_open() refuses, what a sweep
 * removes and what it leaves, and what a small segment keeps. Root is needed for files of
 * other users; those cases say so and check less without it.
 */
#include "harness/runtime.h"
#include "harness/sweep.h"
#include "harness/tmpfs.h"

#include <sys/file.h>
#include <time.h>

#include "segment/runtime_dir.h"
#include "segment/segment_shrink.h"
#include "segment/segment_stripes.h"
#include "unit/segment_sample.h"

#define NAME_TAIL ".0123456789abcdef"

static runtime_t runtime;
static rmm_segment_layout_t sample;
static char name[RMM_SEGMENT_NAME_BYTES]; /* of this user's segment */

static int set_up(void **state)
{
    runtime_open(&runtime);
    sample_make(&sample);
    snprintf(name, sizeof(name), "%u" NAME_TAIL, (unsigned)geteuid());
    return 0;
}

static int tear_down(void **state)
{
    runtime_close(&runtime);
    return 0;
}

#define CASE(test) TEST_CASE_WITH(test, set_up, tear_down)

static void put_sample(const char *file_name)
{
    close(runtime_put_file(&runtime, file_name, &sample, sizeof(sample)));
}

static bool exists(const char *file_name)
{
    struct stat status;

    return fstatat(runtime.fd, file_name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

static void
assert_verdict(const char *file_name, rmm_segment_verdict_t verdict, const char *part)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    rmm_segment_t segment;

    if (rmm__segment_open(&segment, runtime.fd, file_name, reason) != verdict ||
        strstr(reason, part) == NULL) {
        fail_msg("%s: \"%s\"", file_name, reason);
    }
    if (verdict != RMM_SEGMENT_GOOD) {
        assert_int_equal(segment.fd, -1);
    }
    rmm__segment_close(&segment);
}

/* --- open --------------------------------------------------------------------------- */

CASE(opens_a_segment_of_the_uid_in_its_name)
{
    put_sample(name);
    assert_verdict(name, RMM_SEGMENT_GOOD, "");
}

CASE(says_when_there_is_no_such_file)
{
    assert_verdict(name, RMM_SEGMENT_GONE, "No such file");
}

CASE(refuses_names_that_are_none)
{
    put_sample("segment");
    assert_verdict("segment", RMM_SEGMENT_REFUSED, "not the name");
    assert_verdict("../x/1" NAME_TAIL, RMM_SEGMENT_REFUSED, "not the name");
}

CASE(refuses_links_fifos_and_directories)
{
    put_sample("target");
    assert_int_equal(symlinkat("target", runtime.fd, name), 0);
    assert_verdict(name, RMM_SEGMENT_REFUSED, "symbolic link");
    assert_int_equal(unlinkat(runtime.fd, name, 0), 0);

    assert_int_equal(linkat(runtime.fd, "target", runtime.fd, name, 0), 0);
    assert_verdict(name, RMM_SEGMENT_REFUSED, "2 hard links");
    assert_int_equal(unlinkat(runtime.fd, name, 0), 0);

    assert_int_equal(mkfifoat(runtime.fd, name, 0600), 0);
    assert_verdict(name, RMM_SEGMENT_REFUSED, "not a regular file");
    assert_int_equal(unlinkat(runtime.fd, name, 0), 0);

    assert_int_equal(mkdirat(runtime.fd, name, 0700), 0);
    assert_verdict(name, RMM_SEGMENT_REFUSED, "not a regular file");
}

/* A process in a user namespace names its file by the uid that it sees. */
CASE(a_segment_belongs_to_the_owner_of_its_file)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    rmm_segment_t segment;

    snprintf(name, sizeof(name), "%u" NAME_TAIL, (unsigned)geteuid() + 1);
    put_sample(name);
    assert_int_equal(
        rmm__segment_open(&segment, runtime.fd, name, reason), RMM_SEGMENT_GOOD);
    assert_int_equal(segment.uid, geteuid());
    rmm__segment_close(&segment);
}

/* --- sweep -------------------------------------------------------------------------- */

static int sweep(void)
{
    return sweep_directory(runtime.fd, (long)geteuid());
}

static void make_older(const char *file_name, int seconds)
{
    struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_nsec = 0}};

    times[1].tv_sec = time(NULL) - seconds;
    assert_int_equal(utimensat(runtime.fd, file_name, times, 0), 0);
}

static mode_t mode_of(const char *file_name)
{
    struct stat status;

    assert_int_equal(fstatat(runtime.fd, file_name, &status, 0), 0);
    return status.st_mode & 07777;
}

CASE(a_dead_segment_is_marked_then_removed_with_its_side_files)
{
    char control_name[RMM_SEGMENT_NAME_BYTES + 8];
    char leaks_name[RMM_SEGMENT_NAME_BYTES + 8];

    snprintf(control_name, sizeof(control_name), "%s.control", name);
    snprintf(leaks_name, sizeof(leaks_name), "%s.leaks", name);
    put_sample(name);
    put_sample(control_name);
    put_sample(leaks_name);
    make_older(
        name, 86400); /* how old the file is does not say when its process died */
    make_older(control_name, 86400);
    assert_int_equal(sweep(), 0);
    assert_int_equal(mode_of(name), 0400);
    assert_false(exists(control_name));         /* nobody obeys it */
    assert_verdict(name, RMM_SEGMENT_GOOD, ""); /* last figures stay readable */
    assert_int_equal(sweep(), 0);
    make_older(name, RMM_SWEEP_AFTER_SECONDS - 5);
    assert_int_equal(sweep(), 0);
    assert_true(exists(leaks_name));
    make_older(name, RMM_SWEEP_AFTER_SECONDS);
    assert_int_equal(sweep(), 2);
    assert_false(exists(name));
    assert_false(exists(leaks_name));
}

/* 8 MB of which two pages and the last bytes are written. */
static int put_thick(const char *file_name)
{
    int fd = runtime_put_file(&runtime, file_name, "head", 4);

    assert_int_equal(posix_fallocate(fd, 0, (8 << 20) + 100), 0);
    assert_int_equal(pwrite(fd, "page", 4, 1 << 20), 4);
    assert_int_equal(pwrite(fd, "end", 3, (8 << 20) + 97), 3);
    return fd;
}

static void assert_thick_text(int fd)
{
    char *text = calloc(1, (8 << 20) + 100), *expected = calloc(1, (8 << 20) + 100);

    memcpy(expected, "head", 4);
    memcpy(expected + (1 << 20), "page", 4);
    memcpy(expected + (8 << 20) + 97, "end", 3);
    assert_int_equal(pread(fd, text, (8 << 20) + 100, 0), (8 << 20) + 100);
    assert_memory_equal(text, expected, (8 << 20) + 100);
    free(text);
    free(expected);
}

static uint64_t allocated_bytes(int fd)
{
    struct stat status;

    assert_int_equal(fstat(fd, &status), 0);
    return (uint64_t)status.st_blocks * 512;
}

CASE(a_side_file_gives_back_what_was_never_written_when_its_process_has_ended)
{
    char diag_name[RMM_SEGMENT_NAME_BYTES + 8];
    int fd;

    snprintf(diag_name, sizeof(diag_name), "%s.diag", name);
    put_sample(name);
    fd = put_thick(diag_name);
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_int_equal(sweep(), 0);
    assert_true(allocated_bytes(fd) >= 8 << 20); /* somebody holds it */
    assert_int_equal(mode_of(diag_name), 0600);
    assert_int_equal(flock(fd, LOCK_UN), 0);
    assert_int_equal(sweep(), 0);
    assert_in_range(allocated_bytes(fd), 1, 128 << 10);
    assert_int_equal(mode_of(diag_name), 0400);
    assert_thick_text(fd);
    close(fd);
}

/* Four files at each start; the daemon thins all at once. */
CASE(starting_programs_make_side_files_thin)
{
    int fds[10], thin = 0;

    for (int i = 0; i < 10; i++) {
        char segment[RMM_SEGMENT_NAME_BYTES], diag_name[RMM_SEGMENT_NAME_BYTES + 8];

        snprintf(segment, sizeof(segment), "%u.%016x", (unsigned)geteuid(), i);
        snprintf(diag_name, sizeof(diag_name), "%s.diag", segment);
        put_sample(segment);
        assert_int_equal(fchmodat(runtime.fd, segment, 0400, 0), 0);
        fds[i] = put_thick(diag_name);
    }
    for (int start = 1; start <= 3; start++) {
        assert_int_equal(rmm__runtime_dir_sweep_some(runtime.fd, (long)geteuid()), 0);
        thin = 0;
        for (int i = 0; i < 10; i++) {
            thin += allocated_bytes(fds[i]) <= 128 << 10;
        }
        assert_int_equal(thin, start < 3 ? 4 * start : 10);
    }
    for (int i = 0; i < 10; i++) {
        assert_thick_text(fds[i]);
        close(fds[i]);
    }
}

CASE(a_full_file_system_loses_unwritten_pages_before_a_dead_segment)
{
    char diag_name[RMM_SEGMENT_NAME_BYTES + 8];
    int fd;

    snprintf(diag_name, sizeof(diag_name), "%s.diag", name);
    put_sample(name);
    assert_int_equal(fchmodat(runtime.fd, name, 0400, 0), 0);
    fd = put_thick(diag_name);
    assert_true(rmm__runtime_dir_reclaim(runtime.fd, (long)geteuid()));
    assert_in_range(allocated_bytes(fd), 1, 128 << 10);
    assert_true(exists(name));
    assert_true(rmm__runtime_dir_reclaim(runtime.fd, (long)geteuid()));
    assert_false(exists(name));
    assert_false(exists(diag_name));
    close(fd);
}

/* Each of these makes the room that a program needs. */
CASE(a_full_file_system_loses_the_oldest_dead_segment_first)
{
    static const int ages[] = {20, 30, 10}, order[] = {1, 0, 2};
    char names[3][RMM_SEGMENT_NAME_BYTES];

    for (int i = 0; i < 3; i++) {
        snprintf(names[i], sizeof(names[i]), "%u.%016x", (unsigned)geteuid(), 7 - i);
        put_sample(names[i]);
        assert_int_equal(fchmodat(runtime.fd, names[i], 0400, 0), 0);
        make_older(names[i], ages[i]);
    }
    for (int i = 0; i < 3; i++) {
        assert_true(exists(names[order[i]]));
        assert_true(rmm__runtime_dir_reclaim(runtime.fd, (long)geteuid()));
        assert_false(exists(names[order[i]]));
        assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, NULL), 2 - i);
    }
    assert_false(rmm__runtime_dir_reclaim(runtime.fd, (long)geteuid()));
}

/* What programs remove when they start, while the daemon may be down. */
CASE(a_dead_segment_waits_for_a_daemon_that_keeps_totals)
{
    put_sample(name);
    put_sample(RMM_TOTALS_FILE);
    assert_int_equal(rmm__runtime_dir_sweep_some(runtime.fd, (long)geteuid()), 0);
    make_older(name, RMM_SWEEP_AFTER_SECONDS);
    assert_int_equal(rmm__runtime_dir_sweep_some(runtime.fd, (long)geteuid()), 0);
    assert_true(exists(name));
    make_older(name, RMM_SWEEP_WITH_TOTALS_SECONDS);
    assert_int_equal(rmm__runtime_dir_sweep_some(runtime.fd, (long)geteuid()), 1);
    assert_false(exists(name));

    put_sample(name);
    assert_int_equal(sweep(), 0);
    make_older(name, RMM_SWEEP_AFTER_SECONDS);
    assert_int_equal(sweep(), 1); /* the daemon itself has counted it */
    assert_int_equal(unlinkat(runtime.fd, RMM_TOTALS_FILE, 0), 0);
}

CASE(a_mark_from_the_future_starts_again)
{
    struct stat status;
    struct timespec now;

    put_sample(name);
    assert_int_equal(sweep(), 0);
    make_older(name, -86400);
    assert_int_equal(sweep(), 0);
    assert_int_equal(fstatat(runtime.fd, name, &status, 0), 0);
    clock_gettime(CLOCK_REALTIME, &now); /* time() may lag behind by a tick */
    assert_true(status.st_mtim.tv_sec <= now.tv_sec);
}

CASE(what_somebody_holds_stays)
{
    char temporary[RMM_SEGMENT_NAME_BYTES + 8];
    char orphan[RMM_SEGMENT_NAME_BYTES + 8];
    const char *files[] = {name, temporary, orphan};
    int fds[3];

    snprintf(temporary, sizeof(temporary), ".%s.tmp", name);
    snprintf(orphan, sizeof(orphan), "%u.fedcba9876543210.control", geteuid());
    for (int i = 0; i < 3; i++) {
        fds[i] = runtime_put_file(&runtime, files[i], &sample, sizeof(sample));
        assert_int_equal(flock(fds[i], LOCK_EX | LOCK_NB), 0);
        make_older(files[i], 86400);
    }
    assert_int_equal(sweep(), 0);
    assert_int_equal(mode_of(name), 0600);
    for (int i = 0; i < 3; i++) {
        close(fds[i]);
    }
    assert_int_equal(sweep(), 2); /* the segment is only marked */
    assert_true(exists(name));
    assert_false(exists(temporary));
    assert_false(exists(orphan));
}

CASE(asking_who_holds_it_leaves_no_lock)
{
    char reason[RMM_SEGMENT_REASON_BYTES];
    rmm_segment_t segment;
    int fd;

    fd = runtime_put_file(&runtime, name, &sample, sizeof(sample));
    assert_int_equal(
        rmm__segment_open(&segment, runtime.fd, name, reason), RMM_SEGMENT_GOOD);
    assert_false(rmm__segment_is_live(&segment));
    assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
    assert_true(rmm__segment_is_live(&segment));
    assert_int_equal(rmm__segment_pid(&segment), getpid());
    assert_int_equal(flock(fd, LOCK_SH | LOCK_NB), 0); /* readers hold no segment */
    assert_false(rmm__segment_is_live(&segment));
    assert_int_equal(rmm__segment_pid(&segment), 0);
    close(fd);
    rmm__segment_close(&segment);
}

CASE(a_young_temporary_stays)
{
    char temporary[RMM_SEGMENT_NAME_BYTES + 8];

    snprintf(temporary, sizeof(temporary), ".%s.tmp", name);
    put_sample(temporary); /* not locked yet: its maker may be about to */
    assert_int_equal(sweep(), 0);
    assert_true(exists(temporary));
    make_older(temporary, RMM_SWEEP_AFTER_SECONDS);
    assert_int_equal(sweep(), 1);
}

CASE(what_is_not_ours_stays)
{
    put_sample("rmmfs.state");
    assert_int_equal(symlinkat("rmmfs.state", runtime.fd, name), 0);
    for (int i = 0; i < 2; i++) {
        make_older("rmmfs.state", 86400);
        assert_int_equal(sweep_directory(runtime.fd, -1), 0);
    }
    assert_int_equal(mode_of("rmmfs.state"), 0600);
    assert_int_equal(unlinkat(runtime.fd, name, 0), 0);
    assert_int_equal(linkat(runtime.fd, "rmmfs.state", runtime.fd, name, 0), 0);
    assert_int_equal(sweep_directory(runtime.fd, -1), 0);
    assert_int_equal(mode_of("rmmfs.state"), 0600); /* not through a hard link */
}

CASE(a_user_sweeps_only_what_is_theirs_and_root_everything)
{
    char other[RMM_SEGMENT_NAME_BYTES];

    if (geteuid() != 0) {
        print_message("not root: no file of another user to sweep\n");
        return;
    }
    snprintf(other, sizeof(other), "5" NAME_TAIL); /* as a container's process saw it */
    put_sample(other);
    assert_int_equal(fchownat(runtime.fd, other, 1234, 1234, 0), 0);
    assert_int_equal(sweep_directory(runtime.fd, 0), 0);
    assert_int_equal(mode_of(other), 0600);
    assert_int_equal(sweep_directory(runtime.fd, -1), 0);
    assert_int_equal(mode_of(other), 0400);
    make_older(other, RMM_SWEEP_AFTER_SECONDS);
    assert_int_equal(sweep_directory(runtime.fd, 0), 0);
    assert_int_equal(sweep_directory(runtime.fd, 5), 0);
    assert_int_equal(sweep_directory(runtime.fd, 1234), 1);
}

/* --- made small --------------------------------------------------------------------- */

static uint64_t figure_of(const rmm_segment_t *segment, const char *figure)
{
    const rmm_segment_schema_t *entry =
        rmm__schema_find(segment, RMM_SCHEMA_LOCATION, figure);
    rmm_record_t record;
    uint64_t value;

    assert_non_null(entry);
    assert_true(rmm__segment_read_location(segment, 0, &record));
    memcpy(&value, record.bytes + entry->offset, sizeof(value));
    return value;
}

static rmm_segment_schema_t *schema_of(const char *figure)
{
    rmm_segment_schema_t *entry = sample.schema;

    while (strcmp(entry->name, figure) != 0) {
        entry++;
    }
    return entry;
}

/* An older program does not count it: then there is no such mark to reset. */
CASE(a_reset_of_a_figure_that_a_segment_lacks_changes_no_other)
{
    static rmm_control_page_t page;
    char reason[RMM_SEGMENT_REASON_BYTES];
    char control_name[RMM_SEGMENT_NAME_BYTES + 8];
    rmm_segment_t segment;
    uint64_t peak_count;

    strcpy(schema_of("peak_count")->name, "unlike_count");
    put_sample(name);
    page.magic = RMM_CONTROL_MAGIC;
    page.version_major = RMM_SEGMENT_MAJOR;
    page.locations_offset = offsetof(rmm_control_page_t, locations);
    page.locations_stride = sizeof(rmm_control_location_t);
    page.locations_count = 1;
    page.slots_offset = offsetof(rmm_control_page_t, slots);
    page.slots_stride = sizeof(rmm_control_slot_t);
    page.locations[0].peak_reset = 1;
    page.locations[0].node_peak_reset = sample.locations[0].node_peak_reset_seen;
    snprintf(control_name, sizeof(control_name), "%s.control", name);
    close(runtime_put_file(&runtime, control_name, &page, sizeof(page)));
    assert_int_equal(
        rmm__segment_open(&segment, runtime.fd, name, reason), RMM_SEGMENT_GOOD);
    peak_count = figure_of(&segment, "unlike_count");
    assert_true(
        figure_of(&segment, "peak_bytes") != figure_of(&segment, "current_bytes"));
    rmm__segment_close(&segment);
    assert_int_equal(rmm__segment_shrink(runtime.fd, name), 0);
    assert_int_equal(
        rmm__segment_open(&segment, runtime.fd, name, reason), RMM_SEGMENT_GOOD);
    assert_int_equal(figure_of(&segment, "unlike_count"), peak_count);
    assert_int_equal(
        figure_of(&segment, "peak_bytes"), figure_of(&segment, "current_bytes"));
    rmm__segment_close(&segment);
}

/* --- which directory ---------------------------------------------------------------- */

static char path[RMM_RUNTIME_DIR_BYTES], why[256];

static char *in_runtime(const char *entry)
{
    static char full[4][RMM_RUNTIME_DIR_BYTES];
    static int next;

    next = (next + 1) % 4;
    snprintf(full[next], sizeof(full[next]), "%.120s/%.100s", runtime.path, entry);
    return full[next];
}

static bool choose(rmm_runtime_roots_t roots)
{
    roots.shared = runtime.path;
    roots.uid = geteuid();
    why[0] = '\0';
    return rmm__runtime_dir_from(&roots, path, why, sizeof(why));
}

static const char *in_shared(void)
{
    static char shared[64];

    snprintf(shared, sizeof(shared), "/rmm-%u", (unsigned)geteuid());
    return shared;
}

CASE(takes_the_first_place_that_is_there)
{
    char shared_name[64];

    assert_int_equal(mkdirat(runtime.fd, "run", 0755), 0);
    assert_int_equal(mkdirat(runtime.fd, "session", 0700), 0);
    assert_true(choose((rmm_runtime_roots_t){
        .wanted = in_runtime("wanted"), .system = in_runtime("run")}));
    assert_string_equal(path, in_runtime("wanted"));
    assert_int_equal(mode_of("wanted"), 0700);

    assert_true(choose((rmm_runtime_roots_t){
        .wanted = "", .system = in_runtime("run"), .session = in_runtime("session")}));
    assert_string_equal(path, in_runtime("run"));

    assert_true(choose((rmm_runtime_roots_t){
        .system = in_runtime("missing"), .session = in_runtime("session")}));
    assert_string_equal(path, in_runtime("session/rmm"));
    assert_int_equal(unlinkat(runtime.fd, "session/rmm", AT_REMOVEDIR), 0);

    snprintf(shared_name, sizeof(shared_name), "rmm-%u", (unsigned)geteuid());
    assert_true(choose((rmm_runtime_roots_t){
        .system = in_runtime("missing"), .session = in_runtime("missing")}));
    assert_string_equal(path, in_runtime(shared_name));
    assert_int_equal(mode_of(shared_name), 0700);
}

/* A folder that is for all and is closed is passed over, and the caller told. */
CASE(tells_why_the_system_folder_is_passed_over)
{
    if (geteuid() ==
        0) { /* may write everywhere: tests/fuse/finds_programs_across_mounts.sh */
        return;
    }
    assert_int_equal(mkdirat(runtime.fd, "run", 0555), 0);
    assert_true(choose((rmm_runtime_roots_t){.system = in_runtime("run")}));
    assert_string_equal(strrchr(path, '/'), in_shared());
    assert_non_null(strstr(why, "is not writable: Permission denied (mode 0555"));
}

/* Of a session's path, with "/rmm" behind it. */
CASE(a_session_with_a_long_path_is_passed_over)
{
    for (int more = 0; more < 2; more++) {
        char session[RMM_RUNTIME_DIR_BYTES];
        size_t length = sizeof(session) - sizeof("/rmm") + (size_t)more;
        size_t begun = (size_t)snprintf(session, sizeof(session), "%s/", runtime.path);

        memset(session + begun, 'a', length - begun);
        session[length] = '\0';
        assert_int_equal(mkdir(session, 0700), 0);
        assert_true(choose((rmm_runtime_roots_t){.session = session}));
        if (more == 0) {
            assert_int_equal(strlen(path), sizeof(path) - 1);
            assert_int_equal(rmdir(path), 0);
        } else {
            assert_string_equal(strrchr(path, '/'), in_shared());
        }
        assert_int_equal(rmdir(session), 0);
    }
}

CASE(an_unusable_runtime_dir_has_no_fallback)
{
    char long_path[400];

    assert_int_equal(mkdirat(runtime.fd, "run", 0755), 0);
    assert_false(choose(
        (rmm_runtime_roots_t){.wanted = "relative/path", .system = in_runtime("run")}));
    assert_non_null(strstr(why, "absolute"));
    memset(long_path, 'a', sizeof(long_path));
    long_path[0] = '/';
    long_path[sizeof(long_path) - 1] = '\0';
    assert_false(choose((rmm_runtime_roots_t){.wanted = long_path}));
    memcpy(long_path, runtime.path, strlen(runtime.path));
    long_path[strlen(runtime.path)] = '/';
    long_path[RMM_RUNTIME_DIR_BYTES] = '\0'; /* one too many */
    assert_false(choose((rmm_runtime_roots_t){.wanted = long_path}));
    assert_non_null(strstr(why, "at most 255"));
    long_path[RMM_RUNTIME_DIR_BYTES - 1] = '\0';
    assert_true(choose((rmm_runtime_roots_t){.wanted = long_path}));
    assert_int_equal(rmdir(long_path), 0);
    assert_false(choose((rmm_runtime_roots_t){.wanted = in_runtime("no/such")}));
    assert_non_null(strstr(why, "No such file"));
    put_sample("file");
    assert_false(choose((rmm_runtime_roots_t){.wanted = in_runtime("file")}));
    assert_non_null(strstr(why, "not a directory"));
}

static void choose_on_a_read_only_mount(child_t *self, void *directory)
{
    (void)self;
    mount_tmpfs(directory, MS_RDONLY, "mode=700");
    CHECK(!choose((rmm_runtime_roots_t){0}));
    CHECK(strstr(why, "not writable: Read-only file system") != NULL);
}

CASE(a_read_only_file_system_is_named_as_the_reason)
{
    char shared_name[64];

    tmpfs_or_skip();
    snprintf(shared_name, sizeof(shared_name), "rmm-%u", (unsigned)geteuid());
    assert_int_equal(mkdirat(runtime.fd, shared_name, 0700), 0);
    child_run(choose_on_a_read_only_mount, in_runtime(shared_name));
}

CASE(a_runtime_directory_that_others_may_write_to_is_refused)
{
    char shared_name[64];

    snprintf(shared_name, sizeof(shared_name), "rmm-%u", (unsigned)geteuid());
    assert_int_equal(symlinkat("/tmp", runtime.fd, shared_name), 0);
    assert_false(choose((rmm_runtime_roots_t){0}));
    assert_non_null(strstr(why, "not a directory"));
    assert_int_equal(unlinkat(runtime.fd, shared_name, 0), 0);

    assert_int_equal(mkdirat(runtime.fd, shared_name, 0700), 0);
    assert_int_equal(fchmodat(runtime.fd, shared_name, 0777, 0), 0);
    assert_false(choose((rmm_runtime_roots_t){0}));
    assert_non_null(strstr(why, "writable for others"));
    assert_int_equal(fchmodat(runtime.fd, shared_name, 0770, 0), 0);
    assert_false(choose((rmm_runtime_roots_t){0}));
    assert_non_null(strstr(why, "writable for others"));
    assert_int_equal(fchmodat(runtime.fd, shared_name, 0700, 0), 0);
    assert_true(choose((rmm_runtime_roots_t){0}));
    if (geteuid() == 0) {
        assert_int_equal(fchownat(runtime.fd, shared_name, 1234, 1234, 0), 0);
        assert_false(choose((rmm_runtime_roots_t){0}));
        assert_non_null(strstr(why, "belongs to uid 1234"));
    }
}

CASE(another_users_session_is_passed_over)
{
    if (geteuid() != 0) {
        print_message("not root: no session of another user\n");
        return;
    }
    assert_int_equal(mkdirat(runtime.fd, "session", 0700), 0);
    assert_int_equal(fchownat(runtime.fd, "session", 1234, 1234, 0), 0);
    assert_true(choose((rmm_runtime_roots_t){.session = in_runtime("session")}));
    assert_string_equal(path, in_runtime("rmm-0"));
    assert_false(exists("session/rmm"));
}
