/* SPDX-License-Identifier: Apache-2.0 */
/* Snapshots of rmm-top from a tree of rmmfs, which stands in a directory of the test's. */
#include "harness/in_child.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#include "node/sampler.h"
#include "top/mount_read.h"

static char place[64];
static mount_reading_t reading;

/* The name in the tree of a file that is made. */
static const char *in_tree(const char *name)
{
    static char path[sizeof(place) + 64];
    snprintf(path, sizeof(path), "%s/%s", place, name);
    return path;
}

static void write_file(const char *name, const char *text)
{
    FILE *file = fopen(in_tree(name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int begin(void **state)
{
    strcpy(place, "/tmp/rmm-test.XXXXXX");
    assert_non_null(mkdtemp(place));
    write_file("version", "1\n");
    assert_true(mount_read_init(&reading, place));
    return 0;
}

static int
remove_one(const char *path, const struct stat *status, int kind, struct FTW *where)
{
    return remove(path);
}

static int finish(void **state)
{
    mount_read_fini(&reading);
    return nftw(place, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

#define TEST(name) TEST_CASE_WITH(name, begin, finish)

/* A node of one GPU with these programs. */
#define NODE(programs)                                                                 \
    "{\"schema_version\": 1, \"devices\": [{\"device\": \"gpu0\"}, "                   \
    "{\"device\": \"host\"}], \"processes\": [" programs "]}"
#define PROGRAM(pid, start)                                                            \
    "{\"pid\": \"" pid "\", \"start_time_ns\": " start                                 \
    ", \"uid\": 0, \"state\": \"live\", \"devices\": []}"

static const node_t *read_node(void)
{
    mount_read(&reading);
    assert_string_equal(reading.reason, "");
    assert_true(reading.has_memory);
    return &reading.node;
}

static void assert_refused(const char *reason)
{
    mount_read(&reading);
    assert_string_equal(reading.reason, reason);
}

/* --- files -------------------------------------------------------------------------------- */

TEST(says_why_a_tree_cannot_be_read)
{
    assert_refused("json: No such file or directory");
    write_file("version", "2\n");
    assert_refused("its version is not 1");
    assert_int_equal(unlink(in_tree("version")), 0);
    assert_refused("rmmfs is not mounted there");
    assert_int_equal(mkdir(in_tree("version"), 0700), 0);
    assert_refused("Is a directory");
}

/* A reader gets no more than a page at once. */
__attribute__((noreturn)) static void write_in_pieces(const char *text)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    int fd = open(in_tree("json"), O_WRONLY | O_CLOEXEC);
    bool is_written = fd >= 0 && fcntl(fd, F_SETPIPE_SZ, 1) > 0 &&
                      write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    _exit(is_written ? EXIT_SUCCESS : EXIT_FAILURE);
}

TEST(a_file_that_comes_in_pieces_is_read_whole)
{
    static char text[20000];
    snprintf(text, sizeof(text), "%*s", (int)sizeof(text) - 1, NODE(PROGRAM("7", "1")));
    assert_int_equal(mkfifo(in_tree("json"), 0600), 0);
    pid_t writer = fork_child();
    if (writer == 0) {
        write_in_pieces(text);
    }
    assert_int_equal(read_node()->process_count, 1);
    assert_int_equal(exit_status_of(writer), EXIT_SUCCESS);
}

/* --- the node ----------------------------------------------------------------------------- */

TEST(only_the_schema_that_is_known_is_read)
{
    static char text[] = NODE(PROGRAM("7", "1"));
    write_file("json", text);
    assert_int_equal(read_node()->device_count, 2);
    *strchr(text, '1') = '2';
    write_file("json", text);
    assert_refused("json is not that of a node");
}

static void write_gpus(uint32_t count)
{
    FILE *file = fopen(in_tree("json"), "w");
    assert_non_null(file);
    fputs("{\"schema_version\": 1, \"processes\": [], \"devices\": [", file);
    for (uint32_t i = 0; i < count; i++) {
        fprintf(file, "{\"device\": \"gpu%u\"}, ", i);
    }
    fputs("{\"device\": \"host\"}]}", file);
    assert_int_equal(fclose(file), 0);
}

TEST(a_node_has_at_most_128_gpus)
{
    write_gpus(GPUS_MAX);
    assert_int_equal(read_node()->device_count, GPUS_MAX + 1);
    write_gpus(GPUS_MAX + 1);
    assert_refused("json is not that of a node");
}

/* The totals of a device include programs that have ended, whose blocks are gone. */
TEST(live_blocks_are_those_that_the_daemon_counts)
{
    static const char gpu[] =
        "{\"schema_version\": 1, \"processes\": [], \"devices\": [{\"device\": "
        "\"gpu0\", \"total_count\": 10, \"freed_count\": 4, \"current_count\": 3}, "
        "{\"device\": \"host\"}]}";
    const figures_t *figures;
    write_file("json", gpu);
    figures = &read_node()->devices[1].figures;
    assert_int_equal(figures->current_count, 3);
    assert_int_equal(figures->freed_count, 4);
    assert_int_equal(figures->oom_count, FIGURE_UNKNOWN);
}

/* --- programs ----------------------------------------------------------------------------- */

TEST(a_command_line_is_that_of_the_programs_own_directory)
{
    assert_int_equal(mkdir(in_tree("proc"), 0700), 0);
    assert_int_equal(mkdir(in_tree("proc/7"), 0700), 0);
    assert_int_equal(mkdir(in_tree("elsewhere"), 0700), 0);
    write_file("proc/7/cmdline", "python train.py\nmore\n");
    write_file("elsewhere/cmdline", "of nobody\n");
    write_file("json", NODE(PROGRAM("7", "1") ", " PROGRAM("../elsewhere", "1")));
    const node_t *node = read_node();
    assert_int_equal(node->process_count, 2);
    assert_string_equal(node->processes[0].command, "python train.py");
    assert_string_equal(node->processes[1].command, "");
}

TEST(a_pid_that_is_used_again_is_another_program)
{
    write_file("json", NODE(PROGRAM("7", "1")));
    uint64_t first = read_node()->processes[0].id;
    assert_int_equal(read_node()->processes[0].id, first);
    write_file("json", NODE(PROGRAM("7", "2")));
    uint64_t second = read_node()->processes[0].id;
    assert_int_not_equal(second, first);
    write_file("json", NODE(PROGRAM("7", "1") ", " PROGRAM("7", "2")));
    const node_t *node = read_node();
    assert_int_equal(node->processes[1].id, second);
    assert_int_not_equal(node->processes[0].id, first); /* that one has ended */
}

TEST(a_pid_that_no_process_can_have_is_not_known)
{
    write_file(
        "json", NODE(PROGRAM("2147483647", "1") "," /* INT32_MAX */
                     PROGRAM("2147483648", "1") "," PROGRAM("4294967297", "1")));
    const node_t *node = read_node();
    assert_int_equal(node->process_count, 3);
    assert_int_equal(node->processes[0].pid, INT32_MAX);
    for (uint32_t i = 1; i < 3; i++) {
        assert_int_equal(node->processes[i].pid, 0);
    }
}

static void write_programs(uint32_t count)
{
    FILE *file = fopen(in_tree("json"), "w");
    assert_non_null(file);
    fputs(
        "{\"schema_version\": 1, \"devices\": [{\"device\": \"host\"}], "
        "\"processes\": [",
        file);
    for (uint32_t i = 1; i <= count; i++) {
        fprintf(
            file, "%s{\"pid\": \"%u\", \"uid\": 0, \"state\": \"live\"}",
            i > 1 ? ", " : "", i);
    }
    fputs("]}", file);
    assert_int_equal(fclose(file), 0);
}

TEST(programs_beyond_the_bound_are_left_out)
{
    write_programs(SEGMENTS_MAX);
    const node_t *node = read_node();
    assert_int_equal(node->process_count, SEGMENTS_MAX);
    assert_int_equal(node->left_out, 0);
    write_programs(SEGMENTS_MAX + 2);
    node = read_node();
    assert_int_equal(node->process_count, SEGMENTS_MAX);
    assert_int_equal(node->left_out, 2);
}
