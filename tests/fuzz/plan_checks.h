/* SPDX-License-Identifier: Apache-2.0 */
/*
 * For the fuzzers of what rmm-replay reads: a sink that makes a plan, and what must hold of it.
 */
#ifndef RMM_TESTS_FUZZ_PLAN_CHECKS_H
#define RMM_TESTS_FUZZ_PLAN_CHECKS_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "replay/plan.h"

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

#endif /* RMM_TESTS_FUZZ_PLAN_CHECKS_H */
