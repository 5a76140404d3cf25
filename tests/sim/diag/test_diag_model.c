/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Random programs on the simulated GPU, through librmm-inject, against a model that knows of each
 * call whether it is an error: each error is one finding, and nothing else is. Blocks come from
 * pools over each other and over the driver; streams are all three kinds. A seed is a case, and is
 * printed if it fails.
 */
#include "sim/diag/diagnosed.h"

#include <rmm/arena_resource.h>
#include <rmm/fixed_size_resource.h>
#include <rmm/memory.h>
#include <rmm/sim.h>

#include "harness/random.h"

enum { SEEDS = 40, STEPS = 2000, LIVE = 64, RESOURCES = 5, FIXED = 2, DRIVER = 4 };
enum { FIXED_BYTES = 4096, STREAMS = 3 };

typedef struct block {
    char *start; /* NULL: none */
    size_t bytes;
    uint64_t from; /* resource */
} block_t;

typedef struct model {
    uint64_t random;
    rmm_resource_t *resources[RESOURCES];
    rmm_stream_t streams[STREAMS];
    block_t blocks[LIVE];
    uint64_t overruns, late; /* planted */
} model_t;

static runtime_t runtime;

/* --- what a program does ---------------------------------------------------------------- */

static void open_model(model_t *model, uint64_t seed)
{
    rmm_fixed_size_options_t fixed = RMM_FIXED_SIZE_OPTIONS_INIT;
    rmm_resource_t **made = model->resources;

    *model = (model_t){
        .random = seed, .streams = {RMM_STREAM_LEGACY, RMM_STREAM_PER_THREAD}};
    fixed.block_bytes = FIXED_BYTES;
    fixed.blocks_per_chunk = 16;
    CHECK(rmm_stream_create(RMM_STREAM_NON_BLOCKING, &model->streams[2]) == RMM_OK);
    CHECK(rmm_cuda_resource_create(&made[DRIVER]) == RMM_OK);
    CHECK(rmm_pool_resource_create(made[DRIVER], NULL, &made[0]) == RMM_OK);
    CHECK(rmm_pool_resource_create(made[0], NULL, &made[1]) == RMM_OK);
    CHECK(rmm_fixed_size_resource_create(made[0], &fixed, &made[FIXED]) == RMM_OK);
    CHECK(rmm_arena_resource_create(made[DRIVER], NULL, &made[3]) == RMM_OK);
}

static void allocate(model_t *model, block_t *block, rmm_stream_t stream)
{
    size_t most = draw(&model->random, 4) == 0 ? 40000 : 3000;

    block->from = draw(&model->random, RESOURCES);
    most = block->from == FIXED ? FIXED_BYTES : most;
    block->bytes = 1 + draw(&model->random, most);
    block->start = take(model->resources[block->from], block->bytes, stream);
}

/* A third of them are used once more. What has gone back to the driver cannot be. */
static void deallocate(model_t *model, block_t *block, rmm_stream_t stream)
{
    char *freed = block->start + draw(&model->random, block->bytes);

    rmm_resource_dealloc(
        model->resources[block->from], block->start, block->bytes, 0, stream);
    block->start = NULL;
    if (block->from != DRIVER && draw(&model->random, 3) == 0) {
        (void)!rmm_memset_async(freed, 0, 1, stream);
        model->late++;
    }
}

static void fill(model_t *model, const block_t *block, rmm_stream_t stream)
{
    size_t at = draw(&model->random, block->bytes);
    size_t left = block->bytes - at;
    bool overruns = draw(&model->random, 4) == 0;
    size_t bytes = 1 + draw(&model->random, overruns ? 40 : left);

    (void)!rmm_memset_async(
        block->start + at, 1, bytes + (overruns ? left : 0), stream);
    model->overruns += overruns ? 1 : 0;
}

static void copy(model_t *model, const block_t *to, rmm_stream_t stream)
{
    const block_t *from = &model->blocks[draw(&model->random, LIVE)];
    size_t bytes = 1 + draw(&model->random, 200);
    size_t to_at = draw(&model->random, to->bytes), from_at;

    if (from->start == NULL || from == to) {
        return;
    }
    from_at = draw(&model->random, from->bytes);
    (void)!rmm_memcpy_async(to->start + to_at, from->start + from_at, bytes, stream);
    model->overruns += to_at + bytes > to->bytes ? 1 : 0;
    model->overruns += from_at + bytes > from->bytes ? 1 : 0;
}

static void kernel(const void *const *params)
{
    (void)params;
}

/* The pointer is in a structure, with padding before it. */
static void launch(model_t *model, const block_t *block, rmm_stream_t stream)
{
    struct {
        int number;
        char *pointer;
    } parameter = {7, block->start + draw(&model->random, block->bytes)};
    const void *params[] = {&parameter};
    const size_t bytes[] = {sizeof(parameter)};

    CHECK(rmm_sim_launch("kernel", kernel, stream, params, bytes, 1) == 0);
}

static void step(model_t *model)
{
    block_t *block = &model->blocks[draw(&model->random, LIVE)];
    rmm_stream_t stream = model->streams[draw(&model->random, STREAMS)];

    if (block->start == NULL) {
        allocate(model, block, stream);
        return;
    }
    switch (draw(&model->random, 6)) {
    case 0:
        deallocate(model, block, stream);
        break;
    case 1:
    case 2:
        fill(model, block, stream);
        break;
    case 3:
        launch(model, block, stream);
        break;
    default:
        copy(model, block, stream);
        break;
    }
}

/* --- what is found ---------------------------------------------------------------------- */

static uint64_t found(const diag_file_t *file, uint32_t kind)
{
    uint64_t count = 0;

    for (uint32_t i = 0; i < file->header->findings.used; i++) {
        count += file->findings[i].kind == kind ? file->findings[i].count : 0;
    }
    return count;
}

/* There may be more kinds of overruns than have a place; of late uses there are not. */
static void run_seed(child_t *self, void *argument)
{
    static model_t model;
    diag_file_t file;

    open_model(&model, *(const uint64_t *)argument);
    for (int i = 0; i < STEPS; i++) {
        step(&model);
    }
    open_own_file(&runtime, &file);
    if (file.header->findings_total != model.overruns + model.late) {
        fprintf(
            stderr, "seed %lu: %lu overruns, %lu late uses\n",
            (unsigned long)*(const uint64_t *)argument, (unsigned long)model.overruns,
            (unsigned long)model.late);
        print_findings(&file);
    }
    CHECK(model.overruns > 50 && model.late > 20);
    CHECK(file.header->findings_total == model.overruns + model.late);
    CHECK(
        found(&file, RMM_DIAG_OUT_OF_BOUNDS) + found(&file, RMM_DIAG_USE_AFTER_FREE) +
            file.header->findings_dropped ==
        model.overruns + model.late);
    CHECK(found(&file, RMM_DIAG_USE_AFTER_FREE) <= model.late);
    diag_file_close(&file);
}

TEST_CASE(finds_each_error_and_nothing_else)
{
    unsetenv("RMM_PUBLISH");
    setenv("RMM_DIAG", "usage,bounds", 1);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        runtime_open(&runtime); /* a program leaves its file */
        child_run(run_seed, &seed);
        runtime_close(&runtime);
    }
}
