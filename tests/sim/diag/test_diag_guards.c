/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guards in whole programs on the simulated GPU, through librmm-inject: a kernel that writes behind
 * or before a block is found, with its name, the block and the offset, in every resource that
 * divides memory and in those that do not; correct programs have no finding, whatever the order in
 * which work of their streams runs. One attachment a process, so each case runs in a child.
 */
#include "sim/diag/diagnosed.h"

#include "diag/live_blocks.h"

#include <rmm/device_buffer.h>
#include <rmm/memory.h>
#include <rmm/resource_spec.h>
#include <rmm/sim.h>
#include <rmm/sys/diag.h>

#include "driver/sim/control.h"

enum { SEEDS = 40 };

static runtime_t runtime;

static int make_runtime(void **state)
{
    unsetenv("RMM_PUBLISH");
    setenv("RMM_DIAG", "guards", 1);
    runtime_open(&runtime);
    return 0;
}

static int drop_runtime(void **state)
{
    runtime_close(&runtime);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, make_runtime, drop_runtime)

/* --- kernels ------------------------------------------------------------------------- */

typedef struct write {
    char *block; /* a pointer that the diagnosis sees */
    uint64_t offset, bytes;
} write_t;

/* Zeros, as most kernels that go too far. */
static void write_zeros(const void *const *params)
{
    const write_t *write = params[0];

    memset(write->block + (int64_t)write->offset, 0, write->bytes);
}

static void launch(
    const char *name, rmm_stream_t stream, void *block, int64_t offset, uint64_t bytes)
{
    const write_t write = {block, (uint64_t)offset, bytes};
    const void *const params[] = {&write};
    const size_t sizes[] = {sizeof(write)};

    CHECK(rmm_sim_launch(name, write_zeros, stream, params, sizes, 1) == 0);
}

static void wait_for_all(void)
{
    CHECK(rmm_sim_device_synchronize() == 0);
}

static rmm_stream_t make_stream(void)
{
    rmm_stream_t stream = NULL;

    CHECK(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &stream) == RMM_OK);
    return stream;
}

static void let_wait(rmm_stream_t later, rmm_stream_t earlier)
{
    rmm_sim_event_t event = NULL;

    CHECK(rmm_sim_event_create(&event) == 0);
    CHECK(rmm_sim_event_record(event, earlier) == 0);
    CHECK(rmm_sim_stream_wait_event(later, event) == 0);
    CHECK(rmm_sim_event_destroy(event) == 0);
}

/* --- what was found ------------------------------------------------------------------ */

/* The diagnosis looks at results when it is called next. */
static void let_it_look(void)
{
    rmm_resource_t *cuda = NULL;
    void *block = NULL;

    wait_for_all();
    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    block = take(cuda, 256, RMM_STREAM_DEFAULT);
    rmm_resource_dealloc(cuda, block, 256, 0, RMM_STREAM_DEFAULT);
    rmm_resource_release(cuda);
}

static void look(diag_file_t *file)
{
    let_it_look();
    open_own_file(&runtime, file);
}

static void expect_nothing(void)
{
    let_it_look();
    expect_findings(&runtime, 0);
}

typedef struct expected {
    const char *kernel; /* NULL: not known */
    const void *block;
    int64_t offset;
} expected_t;

static void expect(const diag_file_t *file, uint32_t i, const expected_t *expected)
{
    const rmm_diag_finding_t *finding = &file->findings[i];

    CHECK(i < file->header->findings.used);
    CHECK(finding->kind == RMM_DIAG_OUT_OF_BOUNDS);
    CHECK(finding->access == RMM_DIAG_WRITES);
    CHECK(finding->block_address == (uint64_t)(uintptr_t)expected->block);
    CHECK((int64_t)(finding->address - finding->block_address) == expected->offset);
    if (expected->kernel != NULL) {
        CHECK(finding->call == RMM_DIAG_LAUNCH);
        CHECK(strcmp(diag_file_user(file, finding->user), expected->kernel) == 0);
    } else {
        CHECK(finding->user == RMM_DIAG_NO_USER);
    }
}

static void expect_one(const expected_t *expected)
{
    diag_file_t file;

    look(&file);
    if (file.header->findings_total != 1) {
        print_findings(&file);
    }
    CHECK(file.header->findings_total == 1);
    expect(&file, 0, expected);
    diag_file_close(&file);
}

/* --- every resource ------------------------------------------------------------------ */

static const char *const specs[] = {
    "cuda",
    "managed",
    "pool",
    "pool_virtual",
    "arena",
    "async",
    "fixed_size",
    "binning",
    "aligned:4096+pool",
    "tracking+statistics+pool",
    "aligned:512+cuda"};

enum { SPECS = sizeof(specs) / sizeof(specs[0]) };

static rmm_resource_t *make(const char *spec)
{
    rmm_resource_t *mr = NULL;

    if (rmm_resource_create_from_spec(spec, &mr) != RMM_OK) {
        fprintf(stderr, "%s: %s\n", spec, rmm_last_error_message());
        CHECK(false);
    }
    return mr;
}

static const char *spec_now;

static void overrun(child_t *self, void *argument)
{
    const expected_t *expected = argument;
    rmm_resource_t *mr = make(spec_now);
    void *block = take(mr, 1000, RMM_STREAM_DEFAULT);
    void *other = take(mr, 1000, RMM_STREAM_DEFAULT);
    expected_t here = *expected;

    launch("correct", RMM_STREAM_DEFAULT, block, 0, 1000);
    launch("correct", RMM_STREAM_DEFAULT, other, 0, 1000);
    launch("faulty", RMM_STREAM_DEFAULT, block, expected->offset, 1);
    launch("correct", RMM_STREAM_DEFAULT, block, 0, 1000);
    here.block = block;
    expect_one(&here);
}

/* `offset` in a block of 1000 bytes */
static void in_every_resource(int64_t offset)
{
    expected_t expected = {"faulty", NULL, offset};

    for (int i = 0; i < SPECS; i++) {
        spec_now = specs[i];
        print_message("%s\n", spec_now);
        runtime_empty(&runtime);
        child_run(overrun, &expected);
    }
}

CASE(finds_one_byte_in_the_padding)
{
    in_every_resource(1000);
}

CASE(finds_the_byte_behind_the_padding)
{
    in_every_resource(1024);
}

CASE(finds_the_last_byte_of_the_guard)
{
    in_every_resource(1279);
}

static void underrun(child_t *self, void *argument)
{
    rmm_resource_t *mr = make(spec_now);
    char *a = take(mr, 1024, RMM_STREAM_DEFAULT);
    char *b = take(mr, 1024, RMM_STREAM_DEFAULT);
    char *later = a < b ? b : a;

    if (later - (a < b ? a : b) != 1280) {
        fprintf(stderr, "%s: not beside each other\n", spec_now);
        return; /* there is no block before */
    }
    launch("faulty", RMM_STREAM_DEFAULT, later, -4, 4);
    launch("correct", RMM_STREAM_DEFAULT, a < b ? a : b, 0, 1024);
    expect_one(&(expected_t){"faulty", later, -4});
}

CASE(finds_a_write_before_a_block_of_a_pool)
{
    static const char *const dividers[] = {"pool", "pool_virtual", "arena"};

    for (size_t i = 0; i < sizeof(dividers) / sizeof(dividers[0]); i++) {
        spec_now = dividers[i];
        runtime_empty(&runtime);
        child_run(underrun, NULL);
    }
}

static void use_correctly(child_t *self, void *argument)
{
    const char *spec = argument;
    rmm_resource_t *mr = make(spec);
    rmm_stream_t streams[] = {make_stream(), make_stream()};

    for (int round = 0; round < 200; round++) {
        size_t bytes = 1 + (size_t)round * 61 % 3000;
        rmm_stream_t stream = streams[round % 2];
        void *block = take(mr, bytes, stream);
        void *second = take(mr, bytes, stream);

        launch("first", stream, block, 0, bytes);
        let_wait(streams[1 - round % 2], stream);
        launch("second", streams[1 - round % 2], second, 0, bytes);
        let_wait(stream, streams[1 - round % 2]);
        rmm_resource_dealloc(mr, block, bytes, 0, stream);
        rmm_resource_dealloc(mr, second, bytes, 0, stream);
    }
    expect_nothing();
    wait_for_all();
    rmm_resource_release(mr);
}

CASE(finds_nothing_in_correct_programs)
{
    for (int i = 0; i < SPECS; i++) {
        print_message("%s\n", specs[i]);
        runtime_empty(&runtime);
        child_run(use_correctly, (void *)(uintptr_t)specs[i]);
    }
}

/* --- order --------------------------------------------------------------------------- */

/*
 * A kernel on one stream is given the addresses of blocks of another stream, which it does not
 * follow: nothing orders it behind their allocation, nor before their free and the next use of
 * their memory.
 */
static void pass_pointers(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    rmm_stream_t owner = make_stream(), other = make_stream();

    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        rmm__sim_reseed(seed);
        for (int round = 0; round < 10; round++) {
            size_t bytes = 200 + (size_t)round % 3 * 700;
            char *block = take(pool, bytes, owner);

            launch("stranger", other, block, 0, 0);
            launch("owner", owner, block, 0, bytes);
            launch("stranger", other, block, 0, 0);
            rmm_resource_dealloc(pool, block, bytes, 0, owner);
            block = take(pool, bytes * 3, owner); /* over the guard of the last one */
            launch("owner", owner, block, 0, bytes * 3);
            launch("stranger", other, block, 0, 0);
            rmm_resource_dealloc(pool, block, bytes * 3, 0, owner);
        }
    }
    expect_nothing();
}

CASE(an_unordered_check_finds_nothing)
{
    child_run(pass_pointers, NULL);
}

/* Two kernels run at a time, and one of them is faulty: it alone has the block. */
static void run_two_streams(child_t *self, void *argument)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        rmm_resource_t *pool = make_pool();
        rmm_stream_t a = make_stream(), b = make_stream();
        char *block_a = take(pool, 100, a), *block_b = take(pool, 100, b);
        diag_file_t file;

        rmm__sim_reseed(seed);
        launch("innocent", b, block_b, 0, 100);
        launch("faulty", a, block_a, 100, 1);
        launch("innocent", b, block_b, 0, 100);
        look(&file);
        CHECK(file.header->findings_total == seed);
        for (uint32_t i = 0; i < file.header->findings.used; i++) {
            CHECK(strcmp(diag_file_user(&file, file.findings[i].user), "faulty") == 0);
        }
        diag_file_close(&file);
    }
}

CASE(the_kernel_of_the_other_stream_is_not_blamed)
{
    child_run(run_two_streams, NULL);
}

/* The block is freed and used again at once, in the order of its stream. */
static void free_at_once(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    rmm_stream_t stream = make_stream();
    char *block = take(pool, 1000, stream), *next = NULL;

    launch("faulty", stream, block, 1001, 1);
    rmm_resource_dealloc(pool, block, 1000, 0, stream);
    next = take(pool, 5000, stream);
    launch("correct", stream, next, 0, 5000);
    expect_one(&(expected_t){"faulty", block, 1001});
}

CASE(finds_the_error_on_a_block_that_is_freed_at_once)
{
    child_run(free_at_once, NULL);
}

static void free_after_waiting(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    void *block = NULL, *next = NULL;

    CHECK(rmm_resource_alloc_sync(pool, 1000, 0, &block) == RMM_OK);
    launch("faulty", RMM_STREAM_DEFAULT, block, 1001, 1);
    wait_for_all();
    rmm_resource_dealloc_sync(pool, block, 1000, 0);
    CHECK(rmm_resource_alloc_sync(pool, 3000, 0, &next) == RMM_OK);
    launch("correct", make_stream(), next, 0, 3000);
    expect_one(&(expected_t){"faulty", block, 1001});
}

CASE(finds_the_error_on_a_block_that_is_freed_after_a_wait)
{
    child_run(free_after_waiting, NULL);
}

/* --- what no parameter tells ---------------------------------------------------------- */

static void write_by_a_stored_pointer(const void *const *params)
{
    char **table = *(char **const *)params[0];

    table[0][1000] = 0;
}

static void hide_the_pointer(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    char **table = take(pool, 8, RMM_STREAM_DEFAULT);
    char *block = take(pool, 1000, RMM_STREAM_DEFAULT);
    const void *const params[] = {&table};
    const size_t sizes[] = {sizeof(char *)};

    CHECK(rmm_memcpy_async(table, &block, 8, RMM_STREAM_DEFAULT) == RMM_OK);
    CHECK(
        rmm_sim_launch(
            "hidden", write_by_a_stored_pointer, RMM_STREAM_DEFAULT, params, sizes,
            1) == 0);
    expect_nothing();
    rmm_resource_dealloc(pool, block, 1000, 0, RMM_STREAM_DEFAULT);
    expect_one(&(expected_t){NULL, block, 1000});
}

CASE(finds_at_the_free_what_no_launch_explains)
{
    child_run(hide_the_pointer, NULL);
}

typedef struct many {
    char *blocks[RMM_BLOCKS_LISTED];
} many_t;

static void write_nothing(const void *const *params)
{
}

static uint64_t unchecked(void)
{
    diag_file_t file;
    uint64_t count;

    wait_for_all();
    look(&file);
    CHECK(file.header->findings_total == 0);
    count = file.header->guards_unchecked;
    diag_file_close(&file);
    return count;
}

/* There may be more of them than the list has room for. */
static void use_a_full_list(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    many_t many = {.blocks = {NULL}};
    const void *const params[] = {&many};
    const size_t sizes[] = {sizeof(many)};

    for (uint32_t i = 0; i < RMM_BLOCKS_LISTED; i++) {
        CHECK(unchecked() == 0);
        many.blocks[i] = take(pool, 1000, RMM_STREAM_DEFAULT);
        CHECK(
            rmm_sim_launch(
                "many", write_nothing, RMM_STREAM_DEFAULT, params, sizes, 1) == 0);
    }
    CHECK(unchecked() == 1);
}

CASE(a_launch_with_more_blocks_than_are_listed_is_not_quite_checked)
{
    child_run(use_a_full_list, NULL);
}

/* A launch that is captured runs later, as often as the graph does. */
static void capture_an_overrun(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    rmm_stream_t stream = make_stream();
    char *block = take(pool, 1000, stream);
    rmm_sim_graph_t graph = NULL;
    diag_file_t file;

    CHECK(rmm_sim_begin_capture(stream, 0) == 0);
    launch("captured", stream, block, 1000, 1);
    CHECK(rmm_sim_end_capture(stream, &graph) == 0);
    CHECK(rmm_sim_graph_launch(graph, stream) == 0);
    CHECK(rmm__sim_stream_synchronize(stream) == 0);
    look(&file);
    CHECK(file.header->findings_total == 0);
    CHECK(file.header->guards_unchecked == 1);
    diag_file_close(&file);
    launch("late", stream, block, 0, 1000);
    look(&file);
    CHECK(file.header->findings_total == 1);
    expect(&file, 0, &(expected_t){"late", block, 1000});
    CHECK(file.findings[0].other_call == RMM_DIAG_GRAPH_LAUNCH); /* one or the other */
    diag_file_close(&file);
    CHECK(rmm_sim_graph_destroy(graph) == 0);
}

CASE(a_captured_launch_is_counted_as_unchecked)
{
    child_run(capture_an_overrun, NULL);
}

/* Blocks that come and go on a capturing stream, and one that goes there. */
static void allocate_in_a_capture(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    rmm_stream_t stream = make_stream();
    char *before = take(pool, 1000, stream);
    char *block = NULL;
    rmm_sim_graph_t graph = NULL;

    launch("before", stream, before, 0, 1000);
    CHECK(rmm_sim_begin_capture(stream, 0) == 0);
    block = take(pool, 1000, stream);
    launch("captured", stream, block, 0, 1000);
    rmm_resource_dealloc(pool, block, 1000, 0, stream);
    rmm_resource_dealloc(pool, before, 1000, 0, stream);
    block = take(pool, 3000, stream);
    launch("captured", stream, block, 0, 3000);
    CHECK(rmm_sim_end_capture(stream, &graph) == 0);
    for (int i = 0; i < 3; i++) {
        CHECK(rmm_sim_graph_launch(graph, stream) == 0);
    }
    expect_nothing();
    CHECK(rmm_sim_violations() == 0);
    CHECK(rmm_sim_graph_destroy(graph) == 0);
}

CASE(finds_nothing_in_a_correct_capture)
{
    child_run(allocate_in_a_capture, NULL);
}

/* --- a full pool, a divided block, threads ---------------------------------------------- */

static void fill_a_pool(child_t *self, void *argument)
{
    rmm_resource_t *cuda = NULL, *pool = NULL;
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    void *block = NULL;

    options.initial_bytes = options.maximum_bytes = 1 << 20;
    CHECK(rmm_cuda_resource_create(&cuda) == RMM_OK);
    CHECK(rmm_pool_resource_create(cuda, &options, &pool) == RMM_OK);
    block = take(pool, 1 << 20, RMM_STREAM_DEFAULT); /* no room for a gap */
    launch("correct", RMM_STREAM_DEFAULT, block, 0, 1 << 20);
    expect_nothing();
    rmm_resource_dealloc(pool, block, 1 << 20, 0, RMM_STREAM_DEFAULT);
    rmm_resource_release(pool);
    rmm_resource_release(cuda);
}

CASE(a_block_that_fills_its_pool_has_no_guard)
{
    child_run(fill_a_pool, NULL);
}

enum { ROUNDS = 300 };

static void *allocate_and_launch(void *argument)
{
    rmm_resource_t *pool = argument;
    rmm_stream_t stream = make_stream();

    for (size_t i = 0; i < ROUNDS; i++) {
        size_t bytes = 1 + i * 37 % 5000;
        void *block = take(pool, bytes, stream);

        launch("thread", stream, block, 0, bytes);
        rmm_resource_dealloc(pool, block, bytes, 0, stream);
    }
    return NULL;
}

static void use_from_threads(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();

    run_in_threads(allocate_and_launch, pool);
    expect_nothing();
}

CASE(finds_nothing_while_blocks_change_hands)
{
    child_run(use_from_threads, NULL);
}

/* As /rmm/proc/PID/diag/mode: guards can be switched off, and not on again. */
static void switch_off(child_t *self, void *argument)
{
    rmm_resource_t *pool = make_pool();
    char *block = take(pool, 1000, RMM_STREAM_DEFAULT), *second = NULL;
    diag_file_t file;
    char path[512];
    uint32_t wanted = RMM_DIAG_MODES_SET;
    int fd;

    CHECK(diag_file_find(runtime.path, path));
    fd = open(path, O_RDWR | O_CLOEXEC);
    CHECK(
        pwrite(fd, &wanted, 4, offsetof(rmm_diag_header_t, modes_wanted)) ==
        sizeof(wanted));
    launch("faulty", RMM_STREAM_DEFAULT, block, 1000, 1);
    second = take(pool, 1000, RMM_STREAM_DEFAULT);
    wanted |= 16; /* guards */
    CHECK(
        pwrite(fd, &wanted, 4, offsetof(rmm_diag_header_t, modes_wanted)) ==
        sizeof(wanted));
    launch("faulty", RMM_STREAM_DEFAULT, second, 1000, 1);
    rmm_resource_dealloc(pool, block, 1000, 0, RMM_STREAM_DEFAULT);
    rmm_resource_dealloc(pool, second, 1000, 0, RMM_STREAM_DEFAULT);
    look(&file);
    CHECK(file.header->findings_total == 0);
    CHECK(file.header->modes_on == 0);
    diag_file_close(&file);
    close(fd);
}

CASE(guards_are_switched_off_and_never_on)
{
    child_run(switch_off, NULL);
}
