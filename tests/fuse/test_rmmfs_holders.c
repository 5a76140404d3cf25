/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which process holds a segment, from a list of locks: the question never waits for the reading
 * of the list, however long that takes, and the list is read the less often the longer it takes.
 */
#include "harness/harness.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "programs/holders.h"

/* Of a file that this process owns and "locked". */
static rmm_segment_t segment_of(uint64_t inode)
{
    rmm_segment_t segment = {.device = makedev(0, 25), .inode = inode};
    segment.uid = geteuid();
    segment.header.pid = 0; /* unknown: the locks must tell */
    return segment;
}

static void put_line(FILE *file, uint64_t inode)
{
    fprintf(
        file, "1: FLOCK  ADVISORY  WRITE %d 00:19:%llu 0 EOF\n", (int)getpid(),
        (unsigned long long)inode);
}

static void name_list(char path[64])
{
    (void)snprintf(path, 64, "/tmp/rmmfs-locks.%d", (int)getpid());
}

/* mode: of fopen(); one line. */
static void write_list(const char *path, const char *mode, uint64_t inode)
{
    FILE *file = fopen(path, mode);
    assert_non_null(file);
    put_line(file, inode);
    assert_int_equal(fclose(file), 0);
}

static holders_t *open_list(const char *path)
{
    holders_t *holders = holders_open(path);
    assert_non_null(holders);
    assert_true(holders_start(holders));
    return holders;
}

static holder_answer_t ask(holders_t *holders, uint64_t inode, uint64_t since_ns)
{
    rmm_segment_t segment = segment_of(inode);
    pid_t pid = -1;
    holder_answer_t answer = holders_find_owner(holders, &segment, since_ns, &pid);
    assert_int_equal(pid, answer == HOLDER_FOUND ? getpid() : 0);
    return answer;
}

static holder_answer_t
ask_until_told(holders_t *holders, uint64_t inode, uint64_t since_ns)
{
    holder_answer_t answer = HOLDER_LATER;
    for (int i = 0; i < 5000 && answer == HOLDER_LATER; i++) {
        answer = ask(holders, inode, since_ns);
        (void)usleep(1000);
    }
    return answer;
}

static void the_list_is_read_when_it_is_asked_for(void **state)
{
    char path[64];
    name_list(path);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (uint64_t i = 1; i < 1000; i++) {
        put_line(file, 10 * i);
    }
    assert_int_equal(fclose(file), 0);
    holders_t *holders = open_list(path);
    uint64_t since = model_clock_ns();
    assert_int_equal(ask(holders, 70, since), HOLDER_LATER);
    assert_int_equal(ask_until_told(holders, 70, since), HOLDER_FOUND);
    assert_int_equal(ask(holders, 9990, since), HOLDER_FOUND);
    assert_int_equal(ask_until_told(holders, 71, since), HOLDER_UNKNOWN);
    uint64_t later = model_clock_ns();
    write_list(path, "a", 71);
    assert_int_equal(ask(holders, 71, later), HOLDER_LATER);
    assert_int_equal(ask_until_told(holders, 71, later), HOLDER_FOUND);
    holders_close(holders);
    (void)unlink(path);
}

/* The kernel skips a line when another goes meanwhile: the lock may be in the next list. */
static void one_list_without_a_lock_is_not_enough(void **state)
{
    char path[64];
    name_list(path);
    write_list(path, "w", 70);
    holders_t *holders = open_list(path);
    uint64_t since = model_clock_ns();
    assert_int_equal(ask_until_told(holders, 70, since), HOLDER_FOUND);
    write_list(path, "a", 71);
    assert_int_equal(ask_until_told(holders, 71, since), HOLDER_FOUND);
    holders_close(holders);
    (void)unlink(path);
}

/* A file was removed, and the next one has its inode number: the lock in the list is not its. */
static void a_lock_of_an_earlier_file_is_not_believed(void **state)
{
    char path[64];
    name_list(path);
    write_list(path, "w", 70);
    holders_t *holders = open_list(path);
    assert_int_equal(ask_until_told(holders, 70, model_clock_ns()), HOLDER_FOUND);
    uint64_t later = model_clock_ns();
    write_list(path, "w", 71); /* before the question, which has the list read */
    assert_int_equal(ask(holders, 70, later), HOLDER_LATER);
    assert_int_equal(ask_until_told(holders, 70, later), HOLDER_UNKNOWN);
    assert_int_equal(ask_until_told(holders, 71, later), HOLDER_FOUND);
    holders_close(holders);
    (void)unlink(path);
}

/* A pipe that is not written to yet: the reading begins, and does not end. */
static void a_reading_without_end_keeps_nobody(void **state)
{
    char path[64];
    name_list(path);
    assert_int_equal(mkfifo(path, 0600), 0);
    holders_t *holders = holders_open(path);
    assert_true(holders_start(holders));
    int writer = open(path, O_RDWR);
    assert_true(writer >= 0);
    uint64_t since = model_clock_ns();
    assert_int_equal(ask(holders, 70, since), HOLDER_LATER);
    uint64_t begin = model_clock_ns();
    assert_int_equal(ask_until_told(holders, 70, since), HOLDER_UNKNOWN);
    assert_true(model_clock_ns() - begin > HOLDERS_PATIENCE_NS / 2);
    /* The first call says so now. One that waited for the reading would not return. */
    assert_int_equal(ask(holders, 71, model_clock_ns()), HOLDER_UNKNOWN);
    FILE *file = fdopen(writer, "w");
    put_line(file, 70);
    (void)unlink(path); /* the reading has begun; another would not end */
    assert_int_equal(fclose(file), 0); /* the end of the list */
    for (int i = 0; i < 5000 && ask(holders, 70, since) != HOLDER_FOUND; i++) {
        (void)usleep(1000);
    }
    assert_int_equal(ask(holders, 70, since), HOLDER_FOUND);
    holders_close(holders);
}

/* One lock, behind so many lines that tell nothing. */
static void write_long_list(const char *path, uint32_t lines, uint64_t inode)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (uint32_t i = 0; i < lines; i++) {
        assert_true(fputs("1:\n", file) >= 0);
    }
    put_line(file, inode);
    assert_int_equal(fclose(file), 0);
}

/* Whether the next reading is so far away that nobody waits for it. */
static bool next_reading_is_far(const char *path)
{
    holders_t *holders = open_list(path);
    assert_int_equal(ask_until_told(holders, 70, model_clock_ns()), HOLDER_FOUND);
    holder_answer_t answer = ask(holders, 71, model_clock_ns());
    holders_close(holders);
    return answer == HOLDER_UNKNOWN;
}

/* A twentieth of the time is read: after 50 ms of CPU the next reading is a second away. How many
 * lines that takes depends on the machine. */
static void a_list_that_takes_long_is_read_seldom(void **state)
{
    char path[64];
    bool is_far = true;
    name_list(path);
    write_list(path, "w", 70);
    /* on a machine that is so busy that the reader does not run in time, once more */
    for (int i = 0; is_far && i < 50; i++) {
        is_far = next_reading_is_far(path);
    }
    assert_false(is_far);
    for (uint32_t lines = 1u << 18; !is_far && lines <= 1u << 24; lines *= 2) {
        write_long_list(path, lines, 70);
        is_far = next_reading_is_far(path);
    }
    assert_true(is_far);
    (void)unlink(path);
}

/* What could not be opened for want of a descriptor tells nothing about who has a lock. */
static void a_list_that_cannot_be_opened_is_read_again(void **state)
{
    char path[64];
    struct rlimit limit;
    name_list(path);
    write_list(path, "w", 70);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &limit), 0);
    const struct rlimit none = {.rlim_cur = 0, .rlim_max = limit.rlim_max};
    holders_t *holders = holders_open(path);
    uint64_t since = model_clock_ns();
    assert_int_equal(ask(holders, 70, since), HOLDER_LATER);
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    assert_true(holders_read(holders)); /* twice, and the second one counts */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
    assert_int_equal(ask(holders, 70, since), HOLDER_LATER);
    assert_true(holders_read(holders));
    assert_int_equal(ask(holders, 70, since), HOLDER_FOUND);
    holders_close(holders);
    (void)unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_list_is_read_when_it_is_asked_for),
        cmocka_unit_test(one_list_without_a_lock_is_not_enough),
        cmocka_unit_test(a_lock_of_an_earlier_file_is_not_believed),
        cmocka_unit_test(a_reading_without_end_keeps_nobody),
        cmocka_unit_test(a_list_that_takes_long_is_read_seldom),
        cmocka_unit_test(a_list_that_cannot_be_opened_is_read_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
