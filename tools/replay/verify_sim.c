/* SPDX-License-Identifier: Apache-2.0 */
/*
 * --verify on the simulated GPU: kernels are host functions that the library runs later,
 * one at a time, so that the report needs no lock.
 */
#include "replay/verify.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/simulated.h"

typedef struct sim_state {
    verify_report_t report;
    rmm_sim_event_t event;
} sim_state_t;

/* Blocks begin at multiples of 256; only the last word may be cut. */
static void fill_kernel(const void *const *params)
{
    verify_block_t block;
    memcpy(&block, params[0], sizeof block);
    unsigned char *bytes = block.address;
    for (uint64_t piece = 0; piece < verify_piece_count(block.bytes); piece++) {
        uint64_t end = verify_piece_end(block.bytes, piece);
        for (uint64_t at = verify_piece_begin(block.bytes, piece); at < end; at += 8) {
            uint64_t word = verify_word(block.op, at / 8);
            memcpy(bytes + at, &word, end - at < 8 ? end - at : 8);
        }
    }
}

static void count_mismatch(
    verify_report_t *report, const verify_block_t *block, uint64_t word, uint64_t found)
{
    if (report->count < VERIFY_SHOWN_MAX) {
        report->shown[report->count] = (verify_mismatch_t){
            .op = block->op,
            .address = (uintptr_t)block->address,
            .offset = word * 8,
            .expected =
                verify_word(block->op, word) & verify_word_mask(block->bytes, word),
            .found = found,
        };
    }
    report->count++;
}

static void check_kernel(const void *const *params)
{
    verify_block_t block;
    verify_report_t *report;
    memcpy(&block, params[0], sizeof block);
    memcpy(&report, params[1], sizeof report);
    const unsigned char *bytes = block.address;
    for (uint64_t piece = 0; piece < verify_piece_count(block.bytes); piece++) {
        uint64_t end = verify_piece_end(block.bytes, piece);
        for (uint64_t at = verify_piece_begin(block.bytes, piece); at < end; at += 8) {
            uint64_t expected = verify_word(block.op, at / 8);
            uint64_t found = 0;
            memcpy(&found, bytes + at, end - at < 8 ? end - at : 8);
            if (found != (expected & verify_word_mask(block.bytes, at / 8))) {
                count_mismatch(report, &block, at / 8, found);
            }
        }
    }
}

static int sim_open(void **state)
{
    sim_state_t *sim = calloc(1, sizeof *sim);
    if (sim == NULL) {
        return 2; /* cudaErrorMemoryAllocation */
    }
    int error = simulated()->event_create(&sim->event);
    if (error != 0) {
        free(sim);
        return error;
    }
    *state = sim;
    return 0;
}

static int sim_fill(void *state, const verify_block_t *block, rmm_stream_t stream)
{
    (void)state;
    const void *params[] = {block};
    const size_t param_bytes[] = {sizeof *block};
    return simulated()->launch(
        "verify_fill", fill_kernel, stream, params, param_bytes, 1);
}

static int sim_check(void *state, const verify_block_t *block, rmm_stream_t stream)
{
    sim_state_t *sim = state;
    const verify_report_t *report = &sim->report;
    const void *params[] = {block, &report};
    const size_t param_bytes[] = {sizeof *block, sizeof report};
    return simulated()->launch(
        "verify_check", check_kernel, stream, params, param_bytes, 2);
}

static int sim_order(void *state, rmm_stream_t earlier, rmm_stream_t later)
{
    sim_state_t *sim = state;
    int error = simulated()->event_record(sim->event, earlier);
    return error != 0 ? error : simulated()->stream_wait_event(later, sim->event);
}

static int sim_finish(void *state, verify_report_t *report)
{
    sim_state_t *sim = state;
    int error = simulated()->device_synchronize();
    if (error == 0) {
        *report = sim->report;
    }
    return error;
}

static void sim_close(void *state)
{
    sim_state_t *sim = state;
    simulated()->event_destroy(sim->event);
    free(sim);
}

static const char *sim_error_text(int error)
{
    static char text[64];
    snprintf(text, sizeof text, "the simulated GPU returned error %d", error);
    return text;
}

const verify_backend_t verify_sim_backend = {
    .open = sim_open,
    .fill = sim_fill,
    .check = sim_check,
    .order = sim_order,
    .finish = sim_finish,
    .close = sim_close,
    .error_text = sim_error_text,
};
