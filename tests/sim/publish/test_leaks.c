/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What tracking adaptors show of a process, as its reader sees it from outside: while it
 * runs, when it was killed, and where it shows nothing.
 */
#include "sim/publish/publish_case.h"

#include <dlfcn.h>
#include <pthread.h>
#include <sys/resource.h>

#include <rmm/cuda_resource.h>
#include <rmm/host_resource.h>
#include <rmm/tracking_adaptor.h>

#include "core/host_memory.h"
#include "harness/no_leak_check.h"
#include "publish/leak_rows.h"
#include "segment/segment_leaks_reader.h"

#define THREADS 4
#define ROWS (RMM_LEAK_CHUNK_ROWS * RMM_LEAK_CHUNKS)

static rmm_resource_t *track(rmm_resource_t *upstream, bool stacks)
{
    rmm_tracking_options_t options = RMM_TRACKING_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;

    options.capture_stacks = stacks;
    CHECK(rmm_tracking_adaptor_create(upstream, &options, &mr) == RMM_OK);
    rmm_resource_release(upstream);
    return mr;
}

static rmm_resource_t *track_cuda(bool stacks)
{
    rmm_resource_t *cuda = NULL;

    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    return track(cuda, stacks);
}

static rmm_resource_t *track_host(bool stacks)
{
    rmm_resource_t *host = NULL;

    CHECK(rmm_host_resource_create(&host) == RMM_OK);
    return track(host, stacks);
}

static void *take(rmm_resource_t *mr, size_t bytes, rmm_stream_t stream)
{
    void *block = NULL;

    CHECK(rmm_resource_alloc(mr, bytes, 0, stream, &block) == RMM_OK);
    return block;
}

static void give(rmm_resource_t *mr, void *block, size_t bytes)
{
    rmm_resource_dealloc(mr, block, bytes, 0, NULL);
}

/* --- the list as its reader sees it ------------------------------------------------- */

typedef struct listed {
    rmm_leak_info_t *leaks;
    uint32_t count, capacity, left_out;
    uint64_t unlisted;
    rmm_leaks_module_t modules[256];
    uint32_t module_count;
} listed_t;

static bool note_leak(const rmm_leak_info_t *leak, void *arg)
{
    listed_t *listed = arg;

    assert_true(listed->count < listed->capacity);
    listed->leaks[listed->count++] = *leak;
    return true;
}

static bool note_module(const rmm_leaks_module_t *module, void *arg)
{
    listed_t *listed = arg;

    assert_true(listed->module_count < 256);
    listed->modules[listed->module_count++] = *module;
    return true;
}

/* Of the only segment there is. */
static void read_list(listed_t *listed)
{
    static rmm_leak_info_t leaks[ROWS];
    char name[RMM_SEGMENT_NAME_BYTES];
    rmm_leaks_file_t file;

    *listed = (listed_t){.leaks = leaks, .capacity = ROWS};
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, name), 1);
    assert_int_equal(rmm__leaks_open(&file, runtime.fd, name, geteuid()), 0);
    listed->left_out = rmm__leaks_each(&file, note_leak, listed);
    rmm__leaks_each_module(&file, note_module, listed);
    listed->unlisted =
        atomic_load_explicit(&file.header.unlisted, memory_order_relaxed);
    rmm__leaks_close(&file);
}

/* The file that a frame is in; "" for none. */
static const char *module_of(const listed_t *listed, uint64_t frame)
{
    for (uint32_t i = listed->module_count; i > 0; i--) {
        const rmm_leaks_module_t *module = &listed->modules[i - 1];

        if (module->begin < frame && frame <= module->end) {
            return module->path;
        }
    }
    return "";
}

static bool goes_through(
    const listed_t *listed, const rmm_leak_info_t *leak, const char *part_of_path)
{
    for (uint32_t i = 0; i < leak->frame_count; i++) {
        if (strstr(module_of(listed, leak->frames[i]), part_of_path) != NULL) {
            return true;
        }
    }
    return false;
}

/* --- what a row tells --------------------------------------------------------------- */

static void hold_blocks(child_t *self, void *argument)
{
    rmm_resource_t *plain = track_cuda(false);
    rmm_resource_t *stacks = track_host(true);
    void *first = take(plain, 1000, NULL);
    void *second = take(plain, 2000, (rmm_stream_t)2);
    void *third = take(stacks, 3000, NULL);

    child_pause(self, 'r');
    give(plain, first, 1000);
    give(stacks, third, 3000);
    child_pause(self, 'f');
    give(plain, second, 2000);
    CHECK(take(plain, 0, NULL) == NULL);
    child_pause(self, 'e');
}

static const rmm_leak_info_t *leak_of(const listed_t *listed, uint64_t bytes)
{
    for (uint32_t i = 0; i < listed->count; i++) {
        if (listed->leaks[i].bytes == bytes) {
            return &listed->leaks[i];
        }
    }
    fail_msg("no block of %lu bytes is listed", (unsigned long)bytes);
    return NULL;
}

static void check_first_list(const listed_t *listed, pid_t pid)
{
    const rmm_leak_info_t *first = leak_of(listed, 1000);
    const rmm_leak_info_t *second = leak_of(listed, 2000);
    const rmm_leak_info_t *third = leak_of(listed, 3000);

    assert_int_equal(listed->count, 3);
    assert_int_equal(first->device, 0);
    assert_int_equal(third->device, -1);
    assert_int_equal(first->stream, 0);
    assert_int_equal(second->stream, 2);
    assert_int_equal(first->thread, pid);
    assert_int_equal(first->resource_id, second->resource_id);
    assert_int_not_equal(first->resource_id, third->resource_id);
    assert_int_not_equal(first->address, second->address);
    assert_int_equal(first->frame_count, 0);
    assert_true(third->frame_count >= 2);
    assert_true(first->allocated_ns != 0 && first->allocated_ns <= third->allocated_ns);
}

CASE(what_is_out_is_listed_until_it_is_freed)
{
    listed_t listed;
    child_t child;

    child_start_until(&child, hold_blocks, NULL, 'r');
    read_list(&listed);
    check_first_list(&listed, child.pid);
    child_go_on_until(&child, 'f');
    read_list(&listed);
    assert_int_equal(listed.count, 1);
    assert_int_equal(listed.leaks[0].bytes, 2000);
    child_go_on_until(&child, 'e');
    read_list(&listed);
    assert_int_equal(listed.count, 0);
    child_end(&child);
}

/* --- the files that frames are in --------------------------------------------------- */

typedef void *(*call_through_fn)(void *(*function)(void *), void *argument);

static void *take_here(void *mr)
{
    return take(mr, 100, NULL);
}

/* Allocate, load a library, allocate through it, unload it. */
static void allocate_through_a_late_library(child_t *self, void *argument)
{
    rmm_resource_t *mr = track_host(true);
    call_through_fn call_through;
    void *library, *symbol;

    (void)take(mr, 50, NULL);
    library = dlopen(getenv("RMM_TEST_LEAKS_MODULE"), RTLD_NOW | RTLD_LOCAL);
    CHECK(library != NULL);
    symbol = dlsym(library, "rmm_test_call_through");
    CHECK(symbol != NULL);
    memcpy(&call_through, &symbol, sizeof(call_through));
    CHECK(call_through(take_here, mr) != NULL);
    CHECK(dlclose(library) == 0);
    child_pause(self, 'r');
}

CASE(frames_are_in_files_when_the_process_was_killed)
{
    listed_t listed;
    child_t child;

    child_start_until(&child, allocate_through_a_late_library, NULL, 'r');
    (void)child_kill(&child);
    read_list(&listed);
    assert_int_equal(listed.count, 2);
    assert_true(goes_through(&listed, leak_of(&listed, 50), "/test_leaks"));
    assert_false(goes_through(&listed, leak_of(&listed, 50), "/libleaks_module"));
    assert_true(goes_through(&listed, leak_of(&listed, 100), "/test_leaks"));
    assert_true(goes_through(&listed, leak_of(&listed, 100), "/libleaks_module"));
    for (uint32_t i = 0; i < listed.module_count; i++) {
        for (uint32_t j = 0; j < i; j++) { /* each once */
            assert_true(
                listed.modules[i].begin != listed.modules[j].begin ||
                strcmp(listed.modules[i].path, listed.modules[j].path) != 0);
        }
    }
}

/* The library's functions, as a program finds them that loads it. */
typedef struct library {
    rmm_status_t (*create_host)(rmm_resource_t **out);
    rmm_status_t (*create_tracking)(
        rmm_resource_t *upstream, const rmm_tracking_options_t *options,
        rmm_resource_t **out);
    rmm_status_t (*alloc)(
        rmm_resource_t *mr, size_t bytes, size_t align, rmm_stream_t stream,
        void **out);
} library_t;

static void find(void *library, const char *name, void *function_out)
{
    void *symbol = dlsym(library, name);

    CHECK(symbol != NULL);
    memcpy(function_out, &symbol, sizeof(symbol));
}

static void allocate_from_the_shared_library(child_t *self, void *argument)
{
    rmm_tracking_options_t options = RMM_TRACKING_OPTIONS_INIT;
    void *library = dlopen(getenv("RMM_TEST_LIBRARY"), RTLD_NOW | RTLD_LOCAL);
    rmm_resource_t *host, *mr;
    library_t rmm;
    void *block;

    CHECK(library != NULL);
    find(library, "rmm_host_resource_create", &rmm.create_host);
    find(library, "rmm_tracking_adaptor_create", &rmm.create_tracking);
    find(library, "rmm_resource_alloc", &rmm.alloc);
    options.capture_stacks = true;
    CHECK(rmm.create_host(&host) == RMM_OK);
    CHECK(rmm.create_tracking(host, &options, &mr) == RMM_OK);
    CHECK(rmm.alloc(mr, 100, 0, NULL, &block) == RMM_OK);
    child_pause(self, 'r');
}

CASE(the_librarys_own_frames_are_left_out)
{
    listed_t listed;
    child_t child;

    child_start_until(&child, allocate_from_the_shared_library, NULL, 'r');
    (void)child_kill(&child);
    read_list(&listed);
    assert_int_equal(listed.count, 1);
    assert_true(goes_through(&listed, &listed.leaks[0], "/test_leaks"));
#ifndef __SANITIZE_THREAD__ /* whose backtrace() begins with a frame of its own */
    assert_false(goes_through(&listed, &listed.leaks[0], "/librmm-c"));
#endif
}

/* --- threads ------------------------------------------------------------------------ */

typedef struct worker {
    rmm_resource_t *mr;
    size_t bytes;
    atomic_bool *stop;
} worker_t;

/* Blocks of its own size, and one that stays. */
static void *allocate_and_free(void *argument)
{
    worker_t *worker = argument;
    void *blocks[20];

    do {
        for (size_t i = 0; i < 20; i++) {
            blocks[i] = take(worker->mr, worker->bytes, (rmm_stream_t)worker->bytes);
        }
        for (size_t i = 0; i < 20; i++) {
            give(worker->mr, blocks[i], worker->bytes);
        }
    } while (!atomic_load_explicit(worker->stop, memory_order_relaxed));
    (void)take(worker->mr, worker->bytes, (rmm_stream_t)worker->bytes);
    return NULL;
}

static void work_until_told(child_t *self, void *argument)
{
    rmm_resource_t *both[2] = {track_host(true), track_host(false)};
    atomic_bool stop = false;
    worker_t workers[THREADS];
    pthread_t threads[THREADS];

    for (size_t i = 0; i < THREADS; i++) {
        workers[i] = (worker_t){both[i % 2], 100 + i, &stop};
        CHECK(pthread_create(&threads[i], NULL, allocate_and_free, &workers[i]) == 0);
    }
    child_pause(self, 'r');
    atomic_store_explicit(&stop, true, memory_order_relaxed);
    for (size_t i = 0; i < THREADS; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
    }
    child_pause(self, 'e');
}

CASE(rows_are_whole_while_threads_change_them)
{
    listed_t listed;
    child_t child;

    child_start_until(&child, work_until_told, NULL, 'r');
    for (int i = 0; i < 50; i++) {
        read_list(&listed);
        assert_true(listed.count + listed.left_out <= 20 * THREADS);
        for (uint32_t j = 0; j < listed.count; j++) {
            const rmm_leak_info_t *leak = &listed.leaks[j];

            assert_in_range(leak->bytes, 100, 100 + THREADS - 1);
            assert_int_equal(leak->stream, leak->bytes);
            assert_true((leak->frame_count > 0) == (leak->bytes % 2 == 0));
        }
    }
    child_go_on_until(&child, 'e');
    read_list(&listed);
    assert_int_equal(listed.count, THREADS);
    assert_int_equal(listed.left_out, 0);
    for (size_t i = 0; i < THREADS; i++) {
        (void)leak_of(&listed, 100 + i);
    }
    child_end(&child);
}

/* --- limits ------------------------------------------------------------------------- */

static void fill_the_table(child_t *self, void *argument)
{
    static void *blocks[ROWS + 10];
    rmm_resource_t *mr = track_host(false);
    rmm_resource_t *late = track_host(false);
    void *block;

    for (size_t i = 0; i < ROWS + 10; i++) {
        blocks[i] = take(mr, 8, NULL);
    }
    block = take(late, 9, NULL);
    child_pause(self, 'f');
    give(late, block, 9);
    for (size_t i = 0; i < ROWS + 10; i++) {
        give(mr, blocks[i], 8);
    }
    rmm_resource_release(mr); /* and its rows are for others */
    (void)take(late, 7, NULL);
    child_pause(self, 'e');
}

CASE(what_finds_no_row_is_counted)
{
    listed_t listed;
    child_t child;

    child_start_until(&child, fill_the_table, NULL, 'f');
    read_list(&listed);
    assert_int_equal(listed.count, ROWS);
    assert_int_equal(listed.unlisted, 11);
    child_go_on_until(&child, 'e');
    read_list(&listed);
    assert_int_equal(listed.count, 1);
    assert_int_equal(listed.leaks[0].bytes, 7);
    assert_int_equal(listed.unlisted, 0);
    child_end(&child);
}

/* --- where nothing is shown --------------------------------------------------------- */

/* The second row stands behind the first, which has as many frames as fit, and two more:
 * one would only be padding. */
static void show_a_full_stack(child_t *self, void *argument)
{
    void *frames[RMM_LEAKS_FRAMES + 2];
    rmm_leak_t full = {
        .bytes = 1, .frames = frames, .frame_count = RMM_LEAKS_FRAMES + 2};
    rmm_leak_t empty = {.bytes = 2};
    rmm_leak_rows_t rows = {0};
    uint32_t first;

    for (size_t i = 0; i < RMM_LEAKS_FRAMES + 2; i++) {
        frames[i] = &frames[i];
    }
    rmm__publish_open("none");
    rmm__leak_rows_open(&rows, 1);
    first = rmm__leak_row_show(&rows, &full);
    CHECK(rmm__leak_row_show(&rows, &empty) == first + 1);
    rmm__leak_row_clear(&rows, first);
    CHECK(rmm__leak_row_show(&rows, &full) == first);
    child_pause(self, 'r');
}

CASE(a_stack_that_is_too_deep_is_cut)
{
    listed_t listed;
    child_t child;

    child_start_until(&child, show_a_full_stack, NULL, 'r');
    read_list(&listed);
    assert_int_equal(listed.count, 2);
    assert_int_equal(leak_of(&listed, 1)->frame_count, RMM_LEAKS_FRAMES);
    assert_int_equal(leak_of(&listed, 2)->frame_count, 0);
    assert_int_equal(leak_of(&listed, 2)->resource_id, 1);
    assert_int_equal(child_wait(&child), 0);
}

/* As often as there are chunks, and some more. */
static void fail_to_list(child_t *self, void *argument)
{
    rmm_leak_t leak = {.bytes = 100};
    rmm_leak_rows_t rows = {0};
    uint32_t row;

    rmm__publish_open("none");
    rmm__leak_rows_open(&rows, 1);
    for (uint32_t i = 0; i < RMM_LEAK_CHUNKS + 8; i++) {
        rmm__host_memory_fail(1);
        row = rmm__leak_row_show(&rows, &leak);
        CHECK(rmm__host_memory_fail_struck());
        CHECK(row == RMM_NO_LEAK_ROW);
        rmm__leak_row_clear(&rows, row);
    }
    rmm__host_memory_fail(0);
    row = rmm__leak_row_show(&rows, &leak);
    CHECK(row != RMM_NO_LEAK_ROW);
    rmm__leak_row_clear(&rows, row);
    rmm__leak_rows_close(&rows);
    child_say(self, 'r');
}

CASE(a_failed_listing_for_lack_of_host_memory_keeps_no_row)
{
    child_t child;

    child_start_until(&child, fail_to_list, NULL, 'r');
    assert_int_equal(child_wait(&child), 0);
}

static void use_tracking(rmm_resource_t *mr)
{
    rmm_tracking_block_t *blocks = NULL;
    void *block = take(mr, 100, NULL);
    size_t count = 0;

    CHECK(rmm_tracking_outstanding(mr, &blocks, &count) == RMM_OK && count == 1);
    rmm_tracking_free(blocks);
    give(mr, block, 100);
    CHECK(rmm_tracking_outstanding(mr, &blocks, &count) == RMM_OK && count == 0);
}

static void use_tracking_twice(child_t *self, void *argument)
{
    for (int i = 0; i < 2; i++) {
        rmm_resource_t *mr = track_host(true);

        use_tracking(mr);
        rmm_resource_release(mr);
    }
}

CASE(unpublished_it_tracks_and_makes_no_file)
{
    setenv("RMM_PUBLISH", "0", 1);
    child_run(use_tracking_twice, NULL);
    unsetenv("RMM_PUBLISH");
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SIDE, NULL), 0);
    assert_string_equal(logged(), "");
}

/* A segment may be made, the list may not. */
static void use_tracking_with_small_files(child_t *self, void *argument)
{
    const struct rlimit limit = {RMM_SEGMENT_MAX_BYTES, RMM_SEGMENT_MAX_BYTES};

    signal(SIGXFSZ, SIG_IGN);
    CHECK(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    use_tracking_twice(self, argument);
}

CASE(a_file_that_cannot_be_made_is_one_warning)
{
    const char *warning;

    child_run(use_tracking_with_small_files, NULL);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SEGMENT, NULL), 1);
    assert_int_equal(runtime_count(&runtime, RMM_FILE_SIDE, NULL), 1); /* control */
    assert_int_equal(runtime_count(&runtime, RMM_FILE_TEMPORARY, NULL), 0);
    warning = strstr(logged(), "[warn]");
    if (warning == NULL ||
        strstr(warning, "will not show all of leaks of this process: ") == NULL ||
        strstr(warning, "File too large") == NULL ||
        strstr(warning + 1, "[warn]") != NULL) {
        fail_msg("log: \"%s\"", logged());
    }
}

static void fork_with_a_block_out(child_t *self, void *argument)
{
    rmm_resource_t *mr = track_host(true);
    void *block = take(mr, 500, NULL);
    int status = 0;
    pid_t pid = fork();

    CHECK(pid >= 0);
    if (pid == 0) {
        give(mr, block, 500);
        CHECK(rmm_resource_alloc(mr, 600, 0, NULL, &block) == RMM_ERR_UNSUPPORTED);
        rmm_resource_release(track_host(true));
        rmm_resource_release(mr);
        _exit(0);
    }
    CHECK(waitpid(pid, &status, 0) == pid && status == 0);
    child_pause(self, 'f');
    give(mr, block, 500);
    child_pause(self, 'e');
}

CASE(a_forked_child_leaves_its_parents_list_alone)
{
    listed_t listed;
    child_t child;

    child_start_until(&child, fork_with_a_block_out, NULL, 'f');
    read_list(&listed);
    assert_int_equal(listed.count, 1);
    assert_int_equal(listed.leaks[0].bytes, 500);
    child_go_on_until(&child, 'e');
    read_list(&listed);
    assert_int_equal(listed.count, 0);
    child_end(&child);
}
