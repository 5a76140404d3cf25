/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an arena resource says when it finds no room: the error and the dump.
 */
#include "sim/resources/arena_harness.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

ARENA_CASE(says_all_when_it_finds_no_room)
{
    rmm_resource_t *arena = make_arena(4 * MIB);
    void *block = take(arena, 3 * MIB, NULL);
    void *small = take(arena, 1000, NULL);

    assert_false(has_room(arena, 2 * MIB, NULL));
    assert_non_null(strstr(
        rmm_last_error_message(),
        "arena 'arena': no room for 2097152 bytes: largest free 983040, total free "
        "1047552, reserved 4194304, device free "));
    assert_non_null(
        strstr(rmm_last_error_message(), "fragmentation 0.062; the device was"));
    give(arena, small, 1000, NULL);
    give(arena, block, 3 * MIB, NULL);
    rmm_resource_release(arena);
}

/* RMM prints NaN. */
ARENA_CASE(tells_a_fragmentation_when_nothing_is_free)
{
    rmm_resource_t *arena = make_arena(4 * MIB);
    void *block = take(arena, 4 * MIB, NULL);

    assert_false(has_room(arena, 256, NULL));
    assert_non_null(strstr(rmm_last_error_message(), "fragmentation 0.000"));
    give(arena, block, 4 * MIB, NULL);
    rmm_resource_release(arena);
}

static rmm_resource_t *make_dumping(const char *path)
{
    rmm_arena_options_t options = RMM_ARENA_OPTIONS_INIT;
    rmm_resource_t *cuda = make_cuda();
    rmm_resource_t *arena;

    options.arena_bytes = MIB;
    options.dump_on_failure = 1;
    options.dump_path = path;
    options.name = "dumping";
    assert_ok(rmm_arena_resource_create(cuda, &options, &arena));
    rmm_resource_release(cuda);
    return arena;
}

typedef struct folder {
    char before[512], path[512];
} folder_t;

static void folder_enter(folder_t *folder)
{
    const char *parent = getenv("TMPDIR");

    assert_non_null(getcwd(folder->before, sizeof(folder->before)));
    snprintf(
        folder->path, sizeof(folder->path), "%.400s/rmm-arena.XXXXXX",
        parent != NULL ? parent : "/tmp");
    assert_non_null(mkdtemp(folder->path));
    assert_int_equal(chdir(folder->path), 0);
}

static void folder_leave(const folder_t *folder)
{
    assert_int_equal(chdir(folder->before), 0);
    assert_int_equal(rmdir(folder->path), 0);
}

static void read_file(const char *path, char *text, size_t bytes)
{
    FILE *file = fopen(path, "re");

    assert_non_null(file);
    text[fread(text, 1, bytes - 1, file)] = '\0';
    assert_int_equal(fclose(file), 0);
}

/* Resource: DumpLogOnFailure. */
ARENA_CASE(dumps_on_failure_to_the_default_file)
{
    static const char *const lines[] = {
        "arena 'dumping' (",        "\nrequested bytes: 8388608\n",
        "\narena size: 1048576\n",  "\nnumber of superblocks: 0\n",
        "\ntotal free: 1048576\n",  "\nlargest free block: 1048576\n",
        "\nfragmentation: 0.00%\n", "\narena global: live blocks 0, free 1048576, "};
    rmm_resource_t *arena = make_dumping(NULL);
    folder_t folder;
    char text[4096];

    folder_enter(&folder);
    assert_false(has_room(arena, 8 * MIB, NULL));
    read_file("rmm_arena_memory_dump.log", text, sizeof(text));
    for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
        assert_non_null(strstr(text, lines[i]));
    }
    assert_int_equal(unlink("rmm_arena_memory_dump.log"), 0);
    folder_leave(&folder);
    rmm_resource_release(arena);
}

ARENA_CASE(replaces_the_dump_at_each_failure)
{
    rmm_resource_t *arena = make_dumping("here.log");
    void *block = take(arena, 60 * KIB, NULL);
    folder_t folder;
    char text[4096];

    folder_enter(&folder);
    assert_false(has_room(arena, 8 * MIB, NULL));
    assert_false(has_room(arena, MIB - 512, NULL));
    read_file("here.log", text, sizeof(text));
    assert_null(strstr(text, "8388608"));
    assert_non_null(strstr(text, "\nrequested bytes: 1048064\n"));
    assert_non_null(strstr(text, "\nnumber of superblocks: 1\n"));
    assert_non_null(strstr(text, "\nlive blocks: 1\n"));
    assert_int_equal(unlink("here.log"), 0);
    folder_leave(&folder);
    give(arena, block, 60 * KIB, NULL);
    rmm_resource_release(arena);
}

static int told; /* errors in the log about a dump */

static void count_told(rmm_log_level_t level, const char *message, void *arg)
{
    (void)arg;
    told +=
        level == RMM_LEVEL_ERROR && strstr(message, "cannot write its dump") != NULL;
}

ARENA_CASE(answers_alike_when_the_dump_cannot_be_written)
{
    static const char *const paths[] = {"missing/dump.log", ".", "pipe", "/dev/full"};
    folder_t folder;

    folder_enter(&folder);
    assert_int_equal(mkfifo("pipe", 0600), 0);
    assert_ok(rmm_log_to_callback(count_told, NULL));
    assert_ok(rmm_log_set_level(RMM_LEVEL_ERROR));
    for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
        rmm_resource_t *arena = make_dumping(paths[i]);

        told = 0;
        assert_false(has_room(arena, 8 * MIB, NULL));
        assert_int_equal(told, 1);
        assert_non_null(strstr(rmm_last_error_message(), "no room for 8388608 bytes"));
        assert_true(has_room(arena, MIB, NULL));
        rmm_resource_release(arena);
    }
    assert_ok(rmm_log_set_level(RMM_LEVEL_OFF));
    rmm_log_to_stderr();
    assert_int_equal(unlink("pipe"), 0);
    folder_leave(&folder);
}

ARENA_CASE(writes_no_dump_by_default)
{
    rmm_resource_t *arena = make_arena(MIB);
    folder_t folder;

    folder_enter(&folder);
    assert_false(has_room(arena, 8 * MIB, NULL));
    assert_int_equal(access("rmm_arena_memory_dump.log", F_OK), -1);
    folder_leave(&folder); /* is empty */
    rmm_resource_release(arena);
}
