/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a program leaves and what it frees wrongly, through each resource, on the simulated GPU and
 * through librmm-inject; and ranges behind a block, with the programs that may use such memory. One
 * attachment a process, so each case runs in a child.
 */
#include "sim/diag/diagnosed.h"

#include <rmm/callback_resource.h>
#include <rmm/memory.h>
#include <rmm/resource_spec.h>
#include <rmm/sim.h>

static runtime_t runtime;

static int make_runtime(void **state)
{
    unsetenv("RMM_PUBLISH");
    setenv("RMM_DIAG", "usage,bounds", 1);
    setenv("RMM_LOG_LEVEL", "off", 1);
    runtime_open(&runtime);
    return 0;
}

static int drop_runtime(void **state)
{
    runtime_close(&runtime);
    return 0;
}

#define CASE(name) TEST_CASE_WITH(name, make_runtime, drop_runtime)
#define STREAM RMM_STREAM_DEFAULT

static rmm_resource_t *make(const char *spec)
{
    rmm_resource_t *mr = NULL;

    CHECK(rmm_resource_create_from_spec(spec, &mr) == RMM_OK);
    return mr;
}

static void drop(rmm_resource_t *mr, void *block, size_t bytes)
{
    rmm_resource_dealloc(mr, block, bytes, 0, STREAM);
}

static void fill(void *at, size_t bytes)
{
    (void)!rmm_memset_async(at, 1, bytes, STREAM);
}

static uint64_t found(uint32_t kind)
{
    diag_file_t file;
    uint64_t count = 0;

    open_own_file(&runtime, &file);
    for (uint32_t i = 0; i < file.header->findings.used; i++) {
        count += file.findings[i].kind == kind ? file.findings[i].count : 0;
    }
    diag_file_close(&file);
    return count;
}

static void expect_left(uint64_t count, uint64_t bytes)
{
    diag_file_t file;

    open_own_file(&runtime, &file);
    CHECK(file.header->left_count == count && file.header->left_bytes == bytes);
    diag_file_close(&file);
}

/* --- what is left -------------------------------------------------------------------- */

static const char *const specs[] = {
    "pool:64MiB",
    "pool_virtual:64MiB",
    "arena:64MiB",
    "fixed_size:4KiB",
    "binning:64MiB",
    "cuda",
    "managed",
    "async:64MiB",
    "pinned",
    "pool_pinned:1MiB",
    "pool_managed:64MiB",
    "system",
    "statistics+tracking+pool:64MiB",
    "limiting:32MiB+arena:64MiB",
    "aligned:4KiB+pool:64MiB",
    "thread_safe+cuda",
    "prefetch+managed"};

#ifdef __SANITIZE_ADDRESS__ /* each is a process, which takes a second to start then */
enum { SPECS = 6 };
#else
enum { SPECS = sizeof(specs) / sizeof(specs[0]) };
#endif

static void leave(child_t *self, void *argument)
{
    rmm_resource_t *mr = make(argument);
    void *first = take(mr, 1000, STREAM);
    void *freed = take(mr, 2000, STREAM);

    (void)take(mr, 3000, STREAM);
    fill(first, 1000);
    drop(mr, freed, 2000);
    CHECK(rmm_sim_device_synchronize() == 0);
    expect_left(0, 0);
    rmm_resource_release(mr);
    expect_left(2, 4000);
    expect_findings(&runtime, 0);
}

CASE(what_ends_with_its_resource_is_left)
{
    for (int i = 0; i < SPECS; i++) {
        print_message("%s\n", specs[i]);
        runtime_close(&runtime);
        runtime_open(&runtime);
        child_run(leave, (void *)(uintptr_t)specs[i]);
    }
}

/* --- refused frees ------------------------------------------------------------------- */

/* It frees the block all the same. */
static bool mends_sizes(const char *spec)
{
    return strstr(spec, "tracking") != NULL;
}

static void free_wrongly(child_t *self, void *argument)
{
    rmm_resource_t *mr = make(argument);
    char *block = take(mr, 1000, STREAM);
    char *live = take(mr, 1000, STREAM);
    char own[64];

    (void)own;
    drop(mr, live, 0);
    drop(mr, live, 999);
    live = mends_sizes(argument) ? take(mr, 1000, STREAM) : live;
    drop(mr, live, 100000);
    live = mends_sizes(argument) ? take(mr, 1000, STREAM) : live;
    CHECK(found(RMM_DIAG_WRONG_SIZE_FREE) == 3);
    drop(mr, live + 256, 1000);
    drop(mr, own, 64);
    CHECK(found(RMM_DIAG_INVALID_FREE) == 2);
    drop(mr, block, 1000);
    drop(mr, block, 1000);
    CHECK(found(RMM_DIAG_DOUBLE_FREE) == 1);
    expect_findings(&runtime, 6);
    fill(live, 1000); /* which is what it was */
    drop(mr, live, 1000);
    CHECK(rmm_sim_device_synchronize() == 0);
    expect_findings(&runtime, 6);
    rmm_resource_release(mr);
    expect_left(0, 0);
}

CASE(each_free_that_is_refused_is_a_finding)
{
    for (int i = 0; i < SPECS; i++) {
        print_message("%s\n", specs[i]);
        runtime_close(&runtime);
        runtime_open(&runtime);
        child_run(free_wrongly, (void *)(uintptr_t)specs[i]);
    }
}

static void free_by_another(child_t *self, void *unused)
{
    rmm_resource_t *pool = make_pool(), *other = make_pool();
    void *block = take(pool, 1000, STREAM);

    drop(other, block, 1000);
    CHECK(found(RMM_DIAG_INVALID_FREE) == 1);
    expect_findings(&runtime, 1);
    fill(block, 1000); /* it lives */
    expect_findings(&runtime, 1);
    fill(block, 1001);
    expect_findings(&runtime, 2);
    drop(pool, block, 1000);
    fill(block, 1000);
    CHECK(found(RMM_DIAG_USE_AFTER_FREE) == 1);
    expect_findings(&runtime, 3);
}

CASE(a_block_that_another_resource_refuses_lives_on)
{
    child_run(free_by_another, NULL);
}

static void free_from_two_places(child_t *self, void *unused)
{
    rmm_resource_t *pool = make_pool();
    void *block = take(pool, 1000, STREAM);
    diag_file_t file;

    drop(pool, block, 1000);
    for (int i = 0; i < 3; i++) {
        drop(pool, block, 1000);
    }
    drop(pool, block, 1000);
    open_own_file(&runtime, &file);
    CHECK(file.header->findings.used == 2 && file.header->findings_total == 4);
    CHECK(file.findings[0].count == 3 && file.findings[1].count == 1);
    diag_file_close(&file);
}

CASE(frees_from_two_places_are_two_findings)
{
    child_run(free_from_two_places, NULL);
}

/* --- behind a block ------------------------------------------------------------------ */

/* Element n of n: in padding, or in memory that no block has. */
static void write_element_behind(child_t *self, void *argument)
{
    rmm_resource_t *mr = make(argument);
    char host[8] = {0};
    char *block = take(mr, 1000, STREAM);
    diag_file_t file;

    fill(block, 1000);
    expect_findings(&runtime, 0);
    (void)!rmm_memcpy_async(block + 1000, host, sizeof(host), STREAM);
    open_own_file(&runtime, &file);
    CHECK(file.header->findings_total == 1);
    CHECK(file.findings[0].kind == RMM_DIAG_OUT_OF_BOUNDS);
    CHECK(file.findings[0].block_address == (uintptr_t)block);
    CHECK(file.findings[0].access == RMM_DIAG_WRITES);
    diag_file_close(&file);
    (void)!rmm_memcpy_async(host, block + 1000, sizeof(host), STREAM);
    expect_findings(&runtime, 2);
}

CASE(an_element_behind_a_block_is_out_of_bounds)
{
    for (int i = 0; i < SPECS; i++) {
        if (strcmp(specs[i], "pinned") == 0 || strcmp(specs[i], "system") == 0) {
            continue; /* whose the memory behind it is, is not known */
        }
        print_message("%s\n", specs[i]);
        runtime_close(&runtime);
        runtime_open(&runtime);
        child_run(write_element_behind, (void *)(uintptr_t)specs[i]);
    }
}

static void write_behind_whole_units(child_t *self, void *argument)
{
    rmm_resource_t *mr = make(argument);
    char *block = take(mr, 1024, STREAM), *next = take(mr, 1024, STREAM);
    char *last = next > block ? next : block;

    fill(last + 1024, 8); /* no padding: memory of the pool */
    expect_findings(&runtime, 1);
    fill(last, 1024);
    fill(last + 1024, 0);
    expect_findings(&runtime, 1);
}

CASE(memory_of_a_pool_without_a_block_is_out_of_bounds)
{
    static const char *const pools[] = {
        "pool:64MiB", "pool_virtual:64MiB", "arena:64MiB", "statistics+pool:64MiB"};

    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
        runtime_close(&runtime);
        runtime_open(&runtime);
        child_run(write_behind_whole_units, (void *)(uintptr_t)pools[i]);
    }
}

/* --- correct programs ---------------------------------------------------------------- */

enum { OWN_BYTES = 64 << 20, HEADER = 512 };

typedef struct own {
    rmm_resource_t *from;
    char *memory; /* of which parts are handed out */
    size_t used;
} own_t;

static rmm_status_t
take_part(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    own_t *own = payload;

    *ptr_out = own->memory + own->used;
    own->used += (bytes + 255) / 256 * 256;
    fill(*ptr_out, bytes);
    return own->used <= OWN_BYTES ? RMM_OK : RMM_ERR_OUT_OF_MEMORY;
}

static void forget_part(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    fill(ptr, bytes);
}

/* With a header before each block, and a trailer behind it. */
static rmm_status_t
take_framed(size_t bytes, rmm_stream_t stream, void *payload, void **ptr_out)
{
    const own_t *own = payload;
    void *memory = NULL;
    rmm_status_t status =
        rmm_resource_alloc(own->from, bytes + 2 * HEADER, 0, stream, &memory);

    if (status == RMM_OK) {
        *ptr_out = (char *)memory + HEADER;
        fill(memory, HEADER);
        fill((char *)*ptr_out + bytes, HEADER);
    }
    return status;
}

static void drop_framed(void *ptr, size_t bytes, rmm_stream_t stream, void *payload)
{
    const own_t *own = payload;

    fill((char *)ptr - HEADER, HEADER);
    fill(ptr, bytes);
    fill((char *)ptr + bytes, HEADER);
    rmm_resource_dealloc(
        own->from, (char *)ptr - HEADER, bytes + 2 * HEADER, 0, stream);
}

static rmm_resource_t *
make_over(own_t *own, rmm_callback_alloc_fn alloc, rmm_callback_dealloc_fn dealloc)
{
    rmm_callback_options_t options = RMM_CALLBACK_OPTIONS_INIT;
    rmm_resource_t *mr = NULL;

    options.alloc = alloc;
    options.dealloc = dealloc;
    options.payload = own;
    CHECK(rmm_callback_resource_create(&options, &mr) == RMM_OK);
    return mr;
}

static void divide_own_memory(child_t *self, void *unused)
{
    own_t own = {.from = make("cuda")};
    rmm_resource_t *callback = NULL, *pool = NULL;
    void *block = NULL;

    own.memory = take(own.from, OWN_BYTES, STREAM);
    callback = make_over(&own, take_part, forget_part);
    CHECK(rmm_pool_resource_create(callback, NULL, &pool) == RMM_OK);
    block = take(pool, 1000, STREAM);
    fill(block, 1000);
    fill(own.memory, OWN_BYTES); /* a checkpoint of all of it */
    fill(own.memory + OWN_BYTES / 2, 4096);
    drop(pool, block, 1000);
    CHECK(rmm_sim_device_synchronize() == 0);
    rmm_resource_release(pool);
    fill(own.memory, OWN_BYTES);
    rmm_resource_release(callback);
    drop(own.from, own.memory, OWN_BYTES);
    rmm_resource_release(own.from);
    expect_findings(&runtime, 0);
}

CASE(a_program_uses_the_memory_that_it_gave_a_pool)
{
    child_run(divide_own_memory, NULL);
}

static void frame_blocks(child_t *self, void *unused)
{
    own_t own = {.from = make("pool:64MiB")};
    rmm_resource_t *framed = make_over(&own, take_framed, drop_framed);
    void *between[8], *blocks[8];

    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 8; i++) {
            blocks[i] = take(framed, (size_t)(100 + 100 * i), STREAM);
            between[i] = take(own.from, 512, STREAM);
            fill(blocks[i], (size_t)(100 + 100 * i));
        }
        for (int i = 0; i < 8; i++) {
            drop(framed, blocks[i], (size_t)(100 + 100 * i));
            drop(own.from, between[i], 512);
        }
    }
    CHECK(rmm_sim_device_synchronize() == 0);
    expect_findings(&runtime, 0);
}

CASE(a_function_of_the_program_writes_beside_its_blocks)
{
    child_run(frame_blocks, NULL);
}

static void grow_and_trim(child_t *self, void *argument)
{
    rmm_resource_t *mr = make(argument);
    rmm_resource_t *cuda = make("cuda");
    void *blocks[16];

    for (int round = 0; round < 20; round++) {
        for (int i = 0; i < 16; i++) {
            blocks[i] = take(mr, (size_t)(1 + i) << 18, STREAM);
            fill(blocks[i], (size_t)(1 + i) << 18);
        }
        for (int i = 0; i < 16; i++) {
            drop(mr, blocks[i], (size_t)(1 + i) << 18);
        }
        CHECK(rmm_sim_device_synchronize() == 0);
        (void)!rmm_resource_trim(mr, 0);
        for (int i = 0; i < 16; i++) { /* where the pool's memory was */
            blocks[i] = take(cuda, (size_t)(1 + i) << 19, STREAM);
            fill(blocks[i], (size_t)(1 + i) << 19);
        }
        for (int i = 0; i < 16; i++) {
            drop(cuda, blocks[i], (size_t)(1 + i) << 19);
        }
    }
    expect_findings(&runtime, 0);
}

CASE(memory_that_a_pool_returned_is_somebody_elses)
{
    static const char *const pools[] = {
        "pool", "pool_virtual", "fixed_size:4MiB", "async", "prefetch+pool_managed"};

    for (size_t i = 0; i < sizeof(pools) / sizeof(pools[0]); i++) {
        runtime_close(&runtime);
        runtime_open(&runtime);
        child_run(grow_and_trim, (void *)(uintptr_t)pools[i]);
    }
}

/* --- guards -------------------------------------------------------------------------- */

static void break_guard(const void *const *params)
{
    char *block = *(char *const *)params[0];

    block[1000] = 1;
}

static void launch_break(void *block)
{
    const void *params[] = {&block};
    const size_t bytes[] = {sizeof(block)};

    CHECK(rmm_sim_launch("break", break_guard, STREAM, params, bytes, 1) == 0);
}

static void copy_into_guards(child_t *self, void *argument)
{
    rmm_resource_t *mr = make("pool:64MiB");
    char *blocks[3];

    for (int i = 0; i < 3; i++) {
        blocks[i] = take(mr, 1000, STREAM);
        fill(blocks[i], 1000);
    }
    fill(blocks[0], 1001);
    expect_findings(&runtime, 1);
    launch_break(blocks[1]); /* a kernel's own error, before a copy's */
    fill(blocks[1] + 1000, 8);
    for (int i = 0; i < 3; i++) {
        drop(mr, blocks[i], 1000);
    }
    CHECK(rmm_sim_device_synchronize() == 0);
    drop(mr, take(mr, 10, STREAM), 10); /* the results are looked at */
    expect_findings(&runtime, 3);
}

CASE(a_copy_into_a_guard_is_one_finding)
{
    static const char *const modes[] = {
        "usage,bounds,guards", "guards", "guards,order"};

    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        setenv("RMM_DIAG", modes[i], 1);
        runtime_close(&runtime);
        runtime_open(&runtime);
        child_run(copy_into_guards, NULL);
    }
}

/* --- streams ------------------------------------------------------------------------- */

static void do_nothing(const void *const *params)
{
    (void)params;
}

static void launch2(rmm_stream_t stream, const void *first, const void *second)
{
    const void *params[] = {&first, &second};
    const size_t bytes[] = {sizeof(first), sizeof(second)};

    CHECK(rmm_sim_launch("two", do_nothing, stream, params, bytes, 2) == 0);
}

/* The end of one array is where a block of another stream begins. */
static void pass_begin_and_end(child_t *self, void *unused)
{
    rmm_resource_t *mr = make("pool:64MiB");
    rmm_stream_t a = NULL, b = NULL;
    char *blocks[64];
    int pairs = 0;

    CHECK(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &a) == RMM_OK);
    CHECK(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &b) == RMM_OK);
    for (int i = 0; i < 64; i++) {
        blocks[i] = take(mr, 4096, i % 2 == 0 ? a : b);
    }
    for (int i = 0; i < 64; i += 2) {
        for (int j = 1; j < 64; j += 2) {
            if (blocks[i] + 4096 == blocks[j]) {
                launch2(a, blocks[i], blocks[j]);
                pairs++;
            }
        }
    }
    CHECK(pairs > 10);
    for (int i = 0; i < 64; i++) {
        rmm_resource_dealloc(mr, blocks[i], 4096, 0, i % 2 == 0 ? a : b);
    }
    expect_findings(&runtime, 0);
    blocks[0] = take(mr, 4096, a);
    launch2(b, blocks[0], blocks[0]); /* not such a pair */
    expect_findings(&runtime, 1);
}

CASE(the_end_of_an_array_is_no_use_of_the_next_block)
{
    setenv("RMM_DIAG", "usage,order", 1);
    child_run(pass_begin_and_end, NULL);
}

static void use_old_streams(child_t *self, void *unused)
{
    rmm_stream_t waits = NULL, free = NULL;
    rmm_resource_t *mr = NULL;
    void *block = NULL;
    diag_file_t file;

    CHECK(rmm_stream_create(0, &waits) == RMM_OK);
    CHECK(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &free) == RMM_OK);
    mr = make("pool:64MiB");
    block = take(mr, 4096, RMM_STREAM_LEGACY);
    launch2(waits, block, block);
    expect_findings(&runtime, 0);
    launch2(free, block, block);
    open_own_file(&runtime, &file);
    CHECK(file.header->findings_total == 1);
    CHECK(file.findings[0].stream_id == 2 && file.findings[0].other_stream_id == 0);
    diag_file_close(&file);
}

CASE(streams_that_are_older_than_the_diagnosis_are_what_they_are)
{
    setenv("RMM_DIAG", "usage,order", 1);
    child_run(use_old_streams, NULL);
}
