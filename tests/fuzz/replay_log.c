/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whatever is in a log: the reader and the plan survive it, the pieces that it comes in
 * make no difference, and every free of the plan has its allocation.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/plan.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define REQUIRE(condition)                                                             \
    do {                                                                               \
        if (!(condition)) {                                                            \
            fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition);            \
            abort();                                                                   \
        }                                                                              \
    } while (0)

typedef struct reading {
    plan_t plan;
    uint64_t problems;
    uint64_t last_line;
} reading_t;

static bool take_row(void *context, const log_row_t *row)
{
    reading_t *reading = context;
    char problem[LOG_PROBLEM_MAX] = "";
    REQUIRE(row->line > reading->last_line);
    reading->last_line = row->line;
    plan_result_t result = plan_add(&reading->plan, row, problem);
    REQUIRE(result != PLAN_NO_MEMORY);
    REQUIRE((result == PLAN_ADDED) == (problem[0] == '\0'));
    return true;
}

static bool take_problem(void *context, uint64_t line, const char *text)
{
    reading_t *reading = context;
    REQUIRE(line > reading->last_line);
    REQUIRE(text[0] != '\0' && strlen(text) < LOG_PROBLEM_MAX);
    for (const char *c = text; *c != '\0'; c++) {
        REQUIRE(*c >= ' ' && *c <= '~');
    }
    reading->last_line = line;
    reading->problems++;
    return true;
}

static void
read_pieces(reading_t *reading, const uint8_t *data, size_t size, size_t piece)
{
    static log_reader_t reader;
    const log_sink_t sink = {reading, take_row, take_problem};
    memset(reading, 0, sizeof *reading);
    plan_init(&reading->plan);
    log_reader_init(&reader, &sink);
    for (size_t at = 0; at < size; at += piece) {
        size_t count = size - at < piece ? size - at : piece;
        REQUIRE(log_reader_feed(&reader, (const char *)data + at, count));
    }
    REQUIRE(log_reader_end(&reader));
}

/* Runs the plan on counters: handles are taken and given back in turn. */
static void check_plan(const plan_t *plan)
{
    uint64_t *held = calloc(plan->handle_count + 1, sizeof *held);
    uint64_t live = 0, peak = 0, count = 0, due = 0;
    REQUIRE(held != NULL);
    for (size_t i = 0; i < plan->op_count; i++) {
        const plan_op_t *op = &plan->ops[i];
        REQUIRE(op->handle < plan->handle_count && op->stream < plan->stream_count);
        REQUIRE(op->thread < plan->thread_count && op->due_ns >= due);
        due = op->due_ns;
        if (op->is_free) {
            REQUIRE(held[op->handle] == op->bytes + 1);
            held[op->handle] = 0;
            live -= op->bytes;
            count--;
        } else {
            REQUIRE(held[op->handle] == 0);
            held[op->handle] = op->bytes + 1;
            live += op->bytes;
            count++;
        }
        peak = live > peak ? live : peak;
    }
    REQUIRE(live == plan->left_bytes && count == plan->left_count);
    REQUIRE(peak == plan->peak_bytes);
    free(held);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static reading_t whole, pieces;
    read_pieces(&whole, data, size, size + 1);
    read_pieces(&pieces, data, size, size % 7 + 1);
    REQUIRE(whole.problems == pieces.problems);
    REQUIRE(whole.plan.op_count == pieces.plan.op_count);
    REQUIRE(whole.plan.peak_bytes == pieces.plan.peak_bytes);
    check_plan(&whole.plan);
    plan_fini(&whole.plan);
    plan_fini(&pieces.plan);
    return 0;
}
