/* SPDX-License-Identifier: Apache-2.0 */
/* Recordings of rmm-top: what is read is what was written, and anything else is refused. */
#include "harness/harness.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "top/recording.h"
#include "top_node.h"

static node_t node, found;
static char path[] = "/tmp/rmm-top-recording.XXXXXX";
static char message[256];

static int begin(void **state)
{
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    close(fd);
    node_init(&node);
    node_init(&found);
    top_node_begin(&node, 2);
    return 0;
}

static int finish(void **state)
{
    unlink(path);
    strcpy(path + strlen(path) - 6, "XXXXXX");
    node_fini(&node);
    node_fini(&found);
    return 0;
}

#define TEST(name) TEST_CASE_WITH(name, begin, finish)

static void record(uint32_t times)
{
    recorder_t recorder;
    assert_true(recorder_open(&recorder, path, message, sizeof(message)));
    for (uint32_t i = 0; i < times; i++) {
        node.time_ns = 1000 + i;
        recorder_add(&recorder, &node);
    }
    assert_string_equal(recorder.reason, "");
    recorder_close(&recorder);
}

static void fill(void)
{
    node_use_t *use = top_node_program(&node, 77, "a \"b\" \\ c", 2, 5000);
    use->figures.oom_count = FIGURE_UNKNOWN;
    use->figures.total_count = UINT64_MAX - 1;
    node.devices[1].device_free_bytes = 400;
    strcpy(node.devices[2].uuid, "GPU-two");
    (void)top_node_resource(&node, 3, 1, "pool");
    (void)top_node_program(&node, 78, "b", NODE_HOST, 1);
    node.forbidden = 1;
    node.refused = 2;
    node.left_out = 3;
}

/* --- what is read is what was written ------------------------------------------------------ */

static void assert_same_figures(const figures_t *a, const figures_t *b)
{
    for (const figure_name_t *name = figures_of_resources; name->name != NULL; name++) {
        assert_int_equal(figure_value(a, name->offset), figure_value(b, name->offset));
    }
}

TEST(a_snapshot_comes_back_whole)
{
    player_t player;
    fill();
    record(1);
    assert_true(player_open(&player, path, message, sizeof(message)));
    assert_int_equal(player.count, 1);
    assert_true(player_take(&player, &found));
    assert_true(player_is_over(&player));
    player_close(&player);
    assert_int_equal(found.time_ns, 1000);
    assert_int_equal(found.device_count, 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_string_equal(found.devices[i].name, node.devices[i].name);
        assert_string_equal(found.devices[i].uuid, node.devices[i].uuid);
        assert_int_equal(
            found.devices[i].capacity_bytes, node.devices[i].capacity_bytes);
        assert_int_equal(
            found.devices[i].device_free_bytes, node.devices[i].device_free_bytes);
        assert_same_figures(&found.devices[i].figures, &node.devices[i].figures);
    }
    assert_true(found.devices[NODE_HOST].is_host && found.devices[1].use_count == 0);
    assert_int_equal(found.devices[2].use_count, 1);
    assert_int_equal(found.process_count, 2);
    assert_int_equal(found.processes[0].id, 77);
    assert_int_equal(found.processes[0].pid, 177);
    assert_string_equal(found.processes[0].command, "a \"b\" \\ c");
    assert_int_equal(found.use_count, 2);
    assert_int_equal(found.uses[0].device, 2);
    assert_int_equal(found.uses[1].process, 1);
    assert_same_figures(&found.uses[0].figures, &node.uses[0].figures);
    assert_int_equal(found.resource_count, 1);
    assert_int_equal(found.resources[0].instance_id, 3);
    assert_int_equal(found.resources[0].upstream_id, 1);
    assert_string_equal(found.resources[0].name, "pool");
    assert_int_equal(found.forbidden + 10 * found.refused + 100 * found.left_out, 321);
}

TEST(snapshots_come_in_their_order)
{
    player_t player;
    fill();
    record(5);
    assert_true(player_open(&player, path, message, sizeof(message)));
    for (uint64_t i = 0; i < 5; i++) {
        assert_false(player_is_over(&player));
        assert_true(player_take(&player, &found));
        assert_int_equal(found.time_ns, 1000 + i);
    }
    assert_true(player_is_over(&player));
    assert_false(player_take(&player, &found));
    player_close(&player);
    assert_true(player_open(&player, path, message, sizeof(message)));
    assert_true(player_take_last(&player, &found));
    assert_int_equal(found.time_ns, 1004);
    player_close(&player);
}

TEST(what_was_not_finished_is_left_out)
{
    player_t player;
    fill();
    record(3);
    FILE *file = fopen(path, "r+");
    assert_non_null(file);
    assert_int_equal(fseek(file, 0, SEEK_END), 0);
    long size = ftell(file);
    assert_int_equal(fclose(file), 0);
    for (long cut = 1; cut < size / 3; cut += 97) {
        assert_int_equal(truncate(path, size - cut), 0);
        assert_true(player_open(&player, path, message, sizeof(message)));
        assert_int_equal(player.count, 2);
        player_close(&player);
    }
}

TEST(a_full_disk_ends_it)
{
    recorder_t recorder;
    fill();
    assert_true(recorder_open(&recorder, "/dev/full", message, sizeof(message)));
    recorder_add(&recorder, &node);
    assert_null(recorder.file);
    assert_string_equal(recorder.reason, "No space left on device");
    recorder_add(&recorder, &node);
    recorder_close(&recorder);
    assert_false(recorder_open(&recorder, "/none/such", message, sizeof(message)));
    assert_string_equal(
        message, "cannot record to /none/such: No such file or directory");
}

/* The disk fills up in the middle of a line. */
TEST(a_line_that_does_not_fit_is_taken_back)
{
    struct rlimit limit;
    recorder_t recorder;
    struct stat status;
    fill();
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &limit), 0);
    assert_true(recorder_open(&recorder, path, message, sizeof(message)));
    recorder_add(&recorder, &node);
    uint64_t line_bytes = recorder.bytes;
    struct rlimit small = {line_bytes * 3 / 2, limit.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    recorder_add(&recorder, &node);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    (void)signal(SIGXFSZ, SIG_DFL);
    assert_null(recorder.file);
    assert_string_equal(recorder.reason, "File too large");
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_size, line_bytes);
}

TEST(it_has_a_bound)
{
    recorder_t recorder;
    fill();
    assert_true(recorder_open(&recorder, path, message, sizeof(message)));
    recorder.bytes = RECORDING_BYTES_MAX - 100;
    recorder_add(&recorder, &node);
    assert_string_equal(recorder.reason, "the file has reached 256 MiB");
}

/* --- what is refused ----------------------------------------------------------------------- */

static void assert_refused(const char *text, size_t length, const char *reason)
{
    player_t player;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
    if (player_open(&player, path, message, sizeof(message))) {
        fail_msg("accepted: %.100s", text);
    }
    if (strstr(message, reason) == NULL) {
        fail_msg("\"%s\" of: %.200s", message, text);
    }
    assert_null(strchr(message, '\n'));
}

#define NODE(devices, processes)                                                       \
    "\"time_ns\":1,\"ids\":[],\"node\":{\"schema_version\":1,\"devices\":[" devices    \
    "],\"processes\":[" processes "],\"unreadable_programs\":0,"                       \
    "\"implausible_programs\":0,\"left_out_programs\":0}}\n"

TEST(other_files_are_refused)
{
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "contains no snapshot"},
        {"{\"rmm_top_recording\":1", "contains no snapshot"},
        {"\n", "line 1 is not a snapshot"},
        {"[]\n", "line 1 is not a snapshot"},
        {"hello\n", "line 1 is not a snapshot"},
        {"{\"rmm_top_recording\":2}\n", "line 1 has a version"},
        {"{\"rmm_top_recording\":1}\n", "line 1 is damaged"},
        {"{\"rmm_top_recording\":1,\"rmm_top_recording\":1}\n", "is not a snapshot"},
        {"{\"rmm_top_recording\":1," NODE("", ""), "line 1 is damaged"},
        {"{\"rmm_top_recording\":1," NODE("{}", ""), "line 1 is damaged"},
        {"{\"rmm_top_recording\":1," NODE("1", "2"), "line 1 is damaged"},
        {"\x1f\x8b\x08\n", "line 1 is not a snapshot"}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_refused(cases[i].text, strlen(cases[i].text), cases[i].reason);
    }
    assert_refused("{\0}\n", 4, "line 1 is not a snapshot");
}

/* True: the file, with another byte at this place, is refused. */
static bool is_refused_with(int fd, off_t at, char byte)
{
    player_t player;
    char before;
    assert_int_equal(pread(fd, &before, 1, at), 1);
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    bool is_refused = !player_open(&player, path, message, sizeof(message));
    if (!is_refused) {
        assert_true(player_take(&player, &found));
        player_close(&player);
        assert_in_range(found.device_count, 1, 3);
        for (uint32_t i = 0; i < found.use_count; i++) {
            assert_true(found.uses[i].device < found.device_count);
        }
    }
    assert_int_equal(pwrite(fd, &before, 1, at), 1);
    return is_refused;
}

/* A value of another type, wherever it is, is noticed; a text is cut and cleaned. */
TEST(damaged_values_are_refused_or_harmless)
{
    uint32_t refused = 0, tried = 0;
    fill();
    record(1);
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    off_t length = lseek(fd, 0, SEEK_END);
    for (off_t i = 0; i + 1 < length; i += 5) {
        for (const char *put = "]{\"-9xn\x01\xff"; *put != '\0'; put++) {
            tried++;
            refused += is_refused_with(fd, i, *put);
        }
    }
    close(fd);
    assert_in_range(refused, tried / 3, tried - 100);
}

TEST(a_long_line_is_refused)
{
    player_t player;
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(ftruncate(fileno(file), (long)RECORDING_LINE_BYTES_MAX + 10), 0);
    assert_int_equal(fclose(file), 0);
    assert_false(player_open(&player, path, message, sizeof(message)));
    assert_non_null(strstr(message, "line 1 is not a snapshot"));
    assert_false(player_open(&player, "/tmp", message, sizeof(message)));
    assert_non_null(strstr(message, "Is a directory"));
}
