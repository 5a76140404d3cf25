/* SPDX-License-Identifier: Apache-2.0 */
/*
 * capacity_model: what a log needs in models of pools, to compare resources with. Prints one
 * JSON object: the capacities that run it in RMM's pool, and the pages of the page model.
 *
 * With --disturbed the log has one block of 256 bytes more, from a tenth of its operations to
 * its end: how much of an answer is chance shows in how far it is from the answer without.
 *
 * The operations come in the log's order whatever their streams: a real pool with several
 * streams may have to wait, or to keep a block back, where the model does not.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "capacity/fit_model.h"
#include "capacity/page_model.h"
#include "common/error.h"
#include "common/numbers.h"
#include "replay/capacity.h"
#include "replay/load.h"

#define PAGE_BYTES (UINT64_C(2) << 20)

const char *const tool_name = "capacity_model";

typedef struct trial {
    const plan_t *plan;
    uint64_t *offsets;   /* of each handle */
    size_t disturbed_at; /* before this operation; as many as there are: never */
} trial_t;

static capacity_trial_t replay_in(fit_model_t *model, const trial_t *trial)
{
    for (size_t i = 0; i < trial->plan->op_count; i++) {
        const plan_op_t *op = &trial->plan->ops[i];
        uint64_t *offset = &trial->offsets[op->handle];
        uint64_t beside;
        if (i == trial->disturbed_at && !fit_alloc(model, FIT_UNIT, &beside)) {
            return CAPACITY_TOO_SMALL;
        }
        if (!op->is_free) {
            if (!fit_alloc(model, op->bytes, offset)) {
                return CAPACITY_TOO_SMALL;
            }
        } else if (!fit_dealloc(model, *offset, op->bytes)) {
            return CAPACITY_TRIAL_FAILED;
        }
    }
    return CAPACITY_FITS;
}

static capacity_trial_t try_capacity(void *context, uint64_t capacity_bytes)
{
    fit_model_t model;
    if (!fit_init(&model, FIT_BEST, capacity_bytes)) {
        return CAPACITY_TRIAL_FAILED;
    }
    capacity_trial_t answer = replay_in(&model, context);
    fit_fini(&model);
    return answer;
}

/* The most bytes of pages used at once; false: no memory, or too few addresses. */
static bool count_pages(const trial_t *trial, uint64_t page_bytes, uint64_t *most_bytes)
{
    page_model_t model;
    bool worked = page_model_init(&model, trial->plan->peak_bytes, page_bytes);
    if (!worked) {
        return false;
    }
    for (size_t i = 0; worked && i < trial->plan->op_count; i++) {
        const plan_op_t *op = &trial->plan->ops[i];
        uint64_t *offset = &trial->offsets[op->handle];
        worked = op->is_free ? page_model_dealloc(&model, *offset, op->bytes)
                             : page_model_alloc(&model, op->bytes, offset);
    }
    *most_bytes = model.most_pages * page_bytes;
    page_model_fini(&model);
    return worked;
}

static bool print_answer(const trial_t *trial, uint64_t page_bytes)
{
    capacity_curve_t curve;
    uint64_t paged_bytes;
    const plan_t *plan = trial->plan;
    void *context = &(trial_t){plan, trial->offsets, trial->disturbed_at};
    if (plan->peak_bytes == 0) {
        tool_error("the log has no allocation of any size");
        return false;
    }
    if (!capacity_curve_measure(plan->peak_bytes, try_capacity, context, &curve) ||
        !count_pages(trial, page_bytes, &paged_bytes)) {
        tool_error("no host memory for the model");
        return false;
    }
    unsigned safe = capacity_curve_safe(&curve);
    printf(
        "{\"operations\": %zu, \"log_peak_bytes\": %" PRIu64 ", \"safe_over_peak\": ",
        plan->op_count, plan->peak_bytes);
    if (safe > 0) {
        printf("%.2f", safe / 100.0);
    } else {
        printf("null");
    }
    printf(
        ", \"holes\": %u, \"page_bytes\": %" PRIu64 ", \"pages_over_peak\": %.4f}\n",
        capacity_curve_holes(&curve), page_bytes,
        (double)paged_bytes / (double)plan->peak_bytes);
    return fflush(stdout) == 0;
}

typedef struct arguments {
    uint64_t page_bytes;
    bool is_disturbed;
    const char *log;
} arguments_t;

/* The arguments without the program's name; false: not those of the usage text. */
static bool parse_arguments(char **arguments, arguments_t *out)
{
    const char *last = arguments[0];
    out->page_bytes = PAGE_BYTES;
    out->is_disturbed = last != NULL && strcmp(last, "--disturbed") == 0;
    arguments += out->is_disturbed;
    last = arguments[0];
    if (last != NULL && strcmp(last, "--page") == 0 && arguments[1] != NULL) {
        if (rmm__number_parse_bytes(
                arguments[1], strlen(arguments[1]), &out->page_bytes) !=
                RMM_NUMBER_OK ||
            out->page_bytes == 0 || out->page_bytes % FIT_UNIT != 0) {
            return false;
        }
        arguments += 2;
        last = arguments[0];
    }
    out->log = last;
    return last != NULL && last[0] != '-' && arguments[1] == NULL;
}

int main(int argc, char **argv)
{
    plan_t plan;
    load_counts_t counts;
    arguments_t arguments;
    if (argc < 1 || !parse_arguments(argv + 1, &arguments)) {
        tool_error("usage: capacity_model [--disturbed] [--page BYTES] LOG.csv[.gz], "
                   "with pages of a "
                   "multiple of 256 bytes, by default 2MiB");
        return TOOL_EXIT_USAGE;
    }
    bool worked = load_log(arguments.log, true, &plan, &counts);
    if (worked) {
        size_t at = arguments.is_disturbed ? plan.op_count / 10 : plan.op_count;
        trial_t trial = {&plan, calloc(plan.handle_count, sizeof(uint64_t)), at};
        worked = trial.offsets != NULL && print_answer(&trial, arguments.page_bytes);
        free(trial.offsets);
    }
    plan_fini(&plan);
    return worked ? EXIT_SUCCESS : EXIT_FAILURE;
}
