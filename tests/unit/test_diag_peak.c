/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a peak was made of: the engine and the reader together, case by case and against a model
 * that copies all live blocks at each new peak.
 */
#include "harness/harness.h"

#include <stdlib.h>
#include <string.h>

#include "diag/peak_reader.h"
#include "diag/stacks_reader.h"
#include "harness/random.h"
#include "unit/amid_pread.h"
#include "unit/diag_groups.h"

#define BASE 0x7f4000000000ull
#define STEP 0x10000ull

/* Stacks are taken in mode bounds. */
static diag_fixture_t open_without_stacks(uint32_t rows)
{
    return diag_open_modes(rows, 16, NULL, RMM_DIAG_MODE_USAGE);
}

static rmm_diag_composition_t look(const diag_fixture_t *diag, uint32_t index)
{
    rmm_diag_composition_t composition;
    rmm_diag_file_t file = file_now(diag);

    assert_true(rmm__diag_read_composition(&file, index, groups, &composition));
    rmm__diag_close(&file);
    return composition;
}

static void take(
    diag_fixture_t *diag, uint64_t i, uint64_t bytes, uint32_t resource, int32_t device)
{
    const rmm_diag_block_v1_t block = {
        .address = BASE + i * STEP,
        .bytes = bytes,
        .resource_id = resource,
        .device = device};

    rmm__diag_engine_on_alloc(diag->engine, &block);
}

static const rmm_diag_group_t *
group_of(const diag_fixture_t *diag, uint32_t resource, const char *user)
{
    for (uint32_t i = 0; i < groups->count; i++) {
        if (groups->entries[i].resource_id == resource &&
            strcmp(diag_user_name(diag, groups->entries[i].first_user), user) == 0) {
            return &groups->entries[i];
        }
    }
    fail_msg("no group of resource %u and %s", resource, user);
    return NULL;
}

GROUPS_CASE(lists_the_blocks_that_were_live_at_the_peak)
{
    diag_fixture_t diag = open_without_stacks(64);
    rmm_diag_composition_t composition;

    take(&diag, 0, 1000, 1, 0);
    take(&diag, 1, 500, 1, 0);
    take(&diag, 2, 300, 2, 0);
    diag_launch(&diag, "fill", BASE, BASE + STEP);
    diag_free(&diag, BASE + STEP, 500);
    diag_launch(&diag, "late", BASE + 2 * STEP); /* used after the peak only */
    take(&diag, 3, 400, 3, 0);                   /* not a new peak */
    diag_free(&diag, BASE, 1000);
    composition = look(&diag, 0);
    assert_int_equal(composition.peak.bytes, 1800);
    assert_int_equal(composition.peak.count, 3);
    assert_int_equal(composition.missing_bytes, 0);
    assert_int_equal(groups->count, 2);
    assert_int_equal(group_of(&diag, 1, "fill")->bytes, 1500);
    assert_int_equal(group_of(&diag, 1, "fill")->count, 2);
    assert_int_equal(group_of(&diag, 2, "late")->bytes, 300);
    assert_int_equal(groups->entries[0].bytes, 1500); /* most first */
    diag_close(&diag);
}

GROUPS_CASE(a_new_peak_forgets_what_the_old_one_was_made_of)
{
    diag_fixture_t diag = open_without_stacks(64);
    rmm_diag_composition_t composition;

    take(&diag, 0, 1000, 1, 0);
    diag_free(&diag, BASE, 1000);
    take(&diag, 1, 1000, 2, 0); /* equal: the first stays the peak */
    composition = look(&diag, 0);
    assert_int_equal(groups->entries[0].resource_id, 1);
    take(&diag, 2, 1, 3, 0);
    diag_free(&diag, BASE + 2 * STEP, 1);
    composition = look(&diag, 0);
    assert_int_equal(composition.peak.bytes, 1001);
    assert_int_equal(groups->count, 2);
    assert_int_equal(group_of(&diag, 2, "none")->bytes, 1000);
    assert_int_equal(group_of(&diag, 3, "none")->bytes, 1);
    diag_close(&diag);
}

static diag_fixture_t *busy; /* its program allocates while the file is read */
static uint64_t new_peaks;

static void allocate_amid(int fd, uint64_t offset)
{
    if (new_peaks != 0 && offset >= sizeof(rmm_diag_header_t)) {
        new_peaks--;
        take(busy, 10 + new_peaks, 100, 1, 0);
        assert_int_equal(
            pwrite(fd, busy->header, busy->header->file_bytes, 0),
            busy->header->file_bytes);
    }
}

static bool look_while_busy(
    diag_fixture_t *diag, uint64_t allocations, rmm_diag_composition_t *composition)
{
    rmm_diag_file_t file = file_now(diag);
    bool is_whole;

    busy = diag;
    new_peaks = allocations;
    amid = allocate_amid;
    is_whole = rmm__diag_read_composition(&file, 0, groups, composition);
    amid = NULL;
    rmm__diag_close(&file);
    return is_whole;
}

GROUPS_CASE(a_peak_that_moves_meanwhile_is_read_again)
{
    diag_fixture_t diag = open_without_stacks(64);
    rmm_diag_composition_t composition;

    take(&diag, 0, 1000, 1, 0);
    assert_true(look_while_busy(&diag, 3, &composition));
    assert_int_equal(new_peaks, 0);
    assert_int_equal(composition.peak.bytes, 1300);
    assert_int_equal(composition.peak.count, 4);
    /* blocks that came after the reader attached are missing, and it says so */
    assert_int_equal(groups->count, 1);
    assert_int_equal(groups->entries[0].bytes + composition.missing_bytes, 1300);
    diag_close(&diag);
}

GROUPS_CASE(a_peak_that_moves_all_the_time_is_not_called_whole)
{
    diag_fixture_t diag = open_without_stacks(512);
    rmm_diag_composition_t composition;

    take(&diag, 0, 1000, 1, 0);
    assert_false(look_while_busy(&diag, 400, &composition));
    assert_true(new_peaks > 0); /* the reader gave up */
    diag_close(&diag);
}

GROUPS_CASE(each_location_has_a_peak_of_its_own)
{
    diag_fixture_t diag = open_without_stacks(64);

    for (int32_t device = -1; device < 20; device++) {
        take(&diag, (uint64_t)(device + 1), 100 + (uint64_t)(device + 1), 1, device);
    }
    assert_int_equal(diag.header->peaks.used, diag.header->peaks.count);
    assert_int_equal(diag.header->peaks_dropped, 21 - diag.header->peaks.count);
    for (uint32_t i = 0; i < diag.header->peaks.count; i++) {
        rmm_diag_composition_t composition = look(&diag, i);

        assert_int_equal(composition.peak.device, (int)i - 1);
        assert_int_equal(composition.peak.bytes, 100 + i);
        assert_int_equal(groups->count, 1);
    }
    diag_close(&diag);
}

GROUPS_CASE(blocks_without_a_part_are_counted_apart)
{
    enum { BLOCKS = 1000 };
    diag_fixture_t diag = open_without_stacks(BLOCKS);
    rmm_diag_composition_t composition;

    for (uint32_t i = 0; i < BLOCKS; i++) {
        take(&diag, i, 100, i, 0); /* a resource each */
    }
    composition = look(&diag, 0);
    assert_int_equal(groups->count, BLOCKS);
    assert_int_equal(composition.missing_bytes, 0);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        diag_free(&diag, BASE + i * STEP, 100);
    }
    composition = look(&diag, 0);
    assert_in_range(
        groups->count, diag.header->parts.count / diag.header->peaks.count * 3 / 4,
        diag.header->parts.count / diag.header->peaks.count);
    assert_int_equal(
        composition.missing_bytes, (uint64_t)(BLOCKS - groups->count) * 100);
    assert_int_equal(diag.header->peaks_dropped, 0);
    diag_close(&diag);
}

GROUPS_CASE(blocks_of_groups_too_many_are_summed_up)
{
    rmm_diag_group_t group = {.bytes = 700, .count = 3, .largest = 300, .byte_ms = 5};

    for (uint32_t i = 0; i < RMM_DIAG_GROUPS_MAX + 2; i++) {
        group.resource_id = i;
        rmm__diag_groups_add(groups, &group);
    }
    assert_int_equal(groups->count, RMM_DIAG_GROUPS_MAX);
    assert_int_equal(groups->rest_bytes, 2 * 700);
    assert_int_equal(groups->rest_count, 2 * 3);
    group.resource_id = 0; /* a known one has room for more */
    rmm__diag_groups_add(groups, &group);
    assert_int_equal(groups->entries[0].bytes, 2 * 700);
    assert_int_equal(groups->entries[0].count, 2 * 3);
    assert_int_equal(groups->entries[0].largest, 300);
    assert_int_equal(groups->entries[0].byte_ms, 2 * 5);
    assert_int_equal(groups->rest_count, 2 * 3);
}

/* --- allocation sites ------------------------------------------------------------------- */

static rmm_diag_stack_info_t stack_of(const diag_fixture_t *diag, uint32_t site)
{
    rmm_diag_file_t file = file_now(diag);
    rmm_diag_stack_info_t stack = {.frame_count = 0};

    (void)rmm__diag_read_site(&file, site, &stack);
    rmm__diag_close(&file);
    return stack;
}

static __attribute__((noinline)) void take_here(diag_fixture_t *diag, uint64_t i)
{
    take(diag, i, 100, 1, 0);
    __asm__ volatile(""); /* no tail call */
}

static __attribute__((noinline)) void take_there(diag_fixture_t *diag, uint64_t i)
{
    take(diag, i, 1000, 1, 0);
    __asm__ volatile("");
}

GROUPS_CASE(peaks_are_grouped_by_allocation_site)
{
    diag_fixture_t diag = diag_open(64, 16, NULL);

    for (uint64_t i = 0; i < 4; i++) {
        take_here(&diag, i);
    }
    take_there(&diag, 4);
    diag_free(&diag, BASE, 100); /* a part, and live rows */
    diag_free(&diag, BASE + 4 * STEP, 1000);
    assert_int_equal(look(&diag, 0).missing_bytes, 0);
    assert_int_equal(groups->count, 2);
    assert_int_equal(groups->entries[0].bytes, 1000);
    assert_int_equal(groups->entries[1].bytes, 400);
    assert_int_equal(groups->entries[1].count, 4);
    for (uint32_t i = 0; i < 2; i++) {
        assert_true(stack_of(&diag, groups->entries[i].site).frame_count > 0);
    }
    assert_int_equal(stack_of(&diag, 0).frame_count, 0);
    assert_int_equal(stack_of(&diag, UINT32_MAX).frame_count, 0);
    assert_int_equal(diag.header->sites_dropped, 0);
    diag_close(&diag);
}

/* Rows are used again. */
GROUPS_CASE(a_block_without_a_stack_has_no_site)
{
    diag_fixture_t diag = diag_open(64, 16, NULL);

    take_here(&diag, 0);
    assert_int_not_equal(diag_row(&diag, BASE)->site, 0);
    diag_free(&diag, BASE, 100);
    rmm__diag_engine_set_modes(diag.engine, RMM_DIAG_MODE_USAGE);
    take_here(&diag, 0);
    assert_int_equal(diag_row(&diag, BASE)->site, 0);
    assert_int_equal(diag.header->sites_dropped, 0);
    diag_close(&diag);
}

/* Another stack for each path. */
static __attribute__((noinline)) void
take_along(diag_fixture_t *diag, uint32_t path, int bits, uint64_t i)
{
    if (bits == 0) {
        take(diag, i, 100, 1, 0);
    } else if ((path & 1) != 0) {
        take_along(diag, path >> 1, bits - 1, i);
    } else {
        take_along(diag, path >> 1, bits - 1, i);
        __asm__ volatile("nop"); /* the calls stay two */
    }
    __asm__ volatile("");
}

GROUPS_CASE(sites_too_many_are_counted_and_lose_no_block_of_the_peak)
{
    enum { BITS = 13, BLOCKS = 1 << BITS };
    diag_fixture_t diag = diag_open(BLOCKS, 16, NULL);

    for (uint32_t i = 0; i < BLOCKS; i++) {
        take_along(&diag, i, BITS, i);
    }
    assert_int_equal(diag.header->sites_dropped, BLOCKS - diag.header->sites.count);
    assert_int_equal(look(&diag, 0).missing_bytes, 0);
    assert_int_equal(groups->count, RMM_DIAG_GROUPS_WITH_SITE + 1);
    for (uint32_t i = 0; i < BLOCKS; i++) {
        diag_free(&diag, BASE + i * STEP, 100);
    }
    assert_int_equal(look(&diag, 0).missing_bytes, 0);
    assert_int_equal(groups->entries[0].site, 0); /* most found no part of their own */
    assert_true(
        groups->entries[0].count >=
        BLOCKS - diag.header->parts.count / diag.header->peaks.count);
    diag_close(&diag);
}

/* --- against a model --------------------------------------------------------------- */

enum { PLACES = 40, RESOURCES = 3, KERNELS = 4 };

/* All blocks that ever were, and those of the peak. */
typedef struct model_block {
    uint64_t bytes;
    uint32_t resource;
    uint32_t kernel; /* KERNELS: not used yet */
    bool in_peak;
} model_block_t;

typedef struct model {
    model_block_t blocks[20000];
    uint32_t count;
    uint32_t live[PLACES]; /* block + 1; 0: none */
    uint64_t live_bytes, peak_bytes;
} model_t;

static const char *const kernels[KERNELS + 1] = {"a", "b", "c", "d", "none"};

static void model_peak(model_t *model)
{
    for (uint32_t i = 0; i < model->count; i++) {
        model->blocks[i].in_peak = false;
    }
    for (int i = 0; i < PLACES; i++) {
        if (model->live[i] != 0) {
            model->blocks[model->live[i] - 1].in_peak = true;
        }
    }
    model->peak_bytes = model->live_bytes;
}

static void step(model_t *model, diag_fixture_t *diag, uint64_t *random)
{
    uint32_t place = (uint32_t)draw(random, PLACES);
    uint32_t *live = &model->live[place];
    model_block_t *block = *live != 0 ? &model->blocks[*live - 1] : NULL;

    if (block == NULL) {
        block = &model->blocks[model->count++];
        *block = (model_block_t){
            1 + draw(random, STEP), (uint32_t)draw(random, RESOURCES), KERNELS, false};
        *live = model->count;
        take(diag, place, block->bytes, block->resource, 0);
        model->live_bytes += block->bytes;
        if (model->live_bytes > model->peak_bytes) {
            model_peak(model);
        }
    } else if (draw(random, 2) == 0) {
        uint32_t kernel = (uint32_t)draw(random, KERNELS);

        diag_launch(diag, kernels[kernel], BASE + place * STEP);
        block->kernel = block->kernel == KERNELS ? kernel : block->kernel;
    } else {
        diag_free(diag, BASE + place * STEP, block->bytes);
        model->live_bytes -= block->bytes;
        *live = 0;
    }
}

static void compare(const model_t *model, const diag_fixture_t *diag)
{
    uint64_t bytes[RESOURCES][KERNELS + 1] = {{0}};
    rmm_diag_composition_t composition = look(diag, 0);
    uint32_t count = 0;

    for (uint32_t i = 0; i < model->count; i++) {
        const model_block_t *block = &model->blocks[i];

        bytes[block->resource][block->kernel] += block->in_peak ? block->bytes : 0;
    }
    assert_int_equal(composition.peak.bytes, model->peak_bytes);
    assert_int_equal(composition.missing_bytes, 0);
    for (uint32_t r = 0; r < RESOURCES; r++) {
        for (uint32_t k = 0; k <= KERNELS; k++) {
            if (bytes[r][k] != 0) {
                assert_int_equal(group_of(diag, r, kernels[k])->bytes, bytes[r][k]);
                count++;
            }
        }
    }
    assert_int_equal(groups->count, count);
}

GROUPS_CASE(agrees_with_a_model_that_copies_all_blocks)
{
    model_t *model = calloc(1, sizeof(*model));
    diag_fixture_t diag = open_without_stacks(PLACES);
    uint64_t random = 4711;

    assert_non_null(model);
    for (int i = 0; i < 20000; i++) {
        step(model, &diag, &random);
        if (i % 500 == 499) {
            compare(model, &diag);
        }
    }
    free(model);
    diag_close(&diag);
}
