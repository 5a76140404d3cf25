/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The fault plan: the N-th call from now of a function of the table, or of all of them
 * together, returns an error and does nothing else. Each fault happens once.
 *
 * Only calls through the table count, which are those of the library; a test's own calls
 * through <rmm/sim.h> do not. Without a plan a call costs one relaxed load.
 *
 * Locking: plan_lock, so that calls which take no other lock can be counted.
 */
#include "driver/sim/internal.h"

#include <string.h>

#include "core/fork.h"
#include "core/numbers.h"

#define FAULT_MAX 32
#define ANY SIM_FN_COUNT

typedef struct sim_fault {
    sim_function_t function; /* or ANY */
    uint64_t countdown;      /* 0: has struck */
    int error;
} sim_fault_t;

typedef struct sim_plan {
    sim_fault_t faults[FAULT_MAX];
    size_t count;
    bool struck;
} sim_plan_t;

_Atomic(bool) rmm__sim_fault_armed;
static rmm_mutex_t plan_lock = RMM_MUTEX_INITIALIZER;
static sim_plan_t plan; /* protected by plan_lock */

bool rmm__sim_parse_number(const char *text, uint64_t *number_out)
{
    return rmm__number_parse(text, strlen(text), number_out) == RMM_NUMBER_OK;
}

static const char *const function_names[] = {
#define X(name) #name,
    SIM_FUNCTION_MAP(X)
#undef X
        "any"};

static bool parse_function(const char *text, size_t length, sim_function_t *out)
{
    for (size_t i = 0; i <= SIM_FN_COUNT; i++) {
        if (strlen(function_names[i]) == length &&
            memcmp(function_names[i], text, length) == 0) {
            *out = (sim_function_t)i;
            return true;
        }
    }
    return false;
}

static bool allocates(sim_function_t function)
{
    return function == SIM_FN_mem_alloc || function == SIM_FN_managed_alloc ||
           function == SIM_FN_host_alloc || function == SIM_FN_mempool_alloc ||
           function == SIM_FN_physical_create;
}

/* One FUNCTION:N[:ERROR], as a string of its own that is cut up. */
static bool parse_fault(char *text, sim_fault_t *fault)
{
    char *count = strchr(text, ':');
    char *error = count != NULL ? strchr(count + 1, ':') : NULL;
    uint64_t number = 0;

    if (count == NULL ||
        !parse_function(text, (size_t)(count - text), &fault->function)) {
        return false;
    }
    if (error != NULL) {
        *error = '\0';
    }
    if (!rmm__sim_parse_number(count + 1, &fault->countdown) || fault->countdown == 0) {
        return false;
    }
    if (error == NULL) {
        fault->error = allocates(fault->function) ? RMM_DRIVER_MEMORY_ALLOCATION
                                                  : SIM_ERROR_UNKNOWN;
        return true;
    }
    if (!rmm__sim_parse_number(error + 1, &number) || number == 0 ||
        number > INT32_MAX) {
        return false;
    }
    fault->error = (int)number;
    return true;
}

/* False: *wrong_out is the fault that is none, in text. */
static bool parse_plan(const char *text, sim_plan_t *out, const char **wrong_out)
{
    while (*text != '\0') {
        size_t length = strcspn(text, ",");
        char one[96];

        *wrong_out = text;
        if (length >= sizeof(one) || out->count == FAULT_MAX) {
            return false;
        }
        memcpy(one, text, length);
        one[length] = '\0';
        if (!parse_fault(one, &out->faults[out->count])) {
            return false;
        }
        out->count++;
        text += length;
        if (*text == ',' && *++text == '\0') {
            *wrong_out = text;
            return false; /* ends in a comma */
        }
    }
    return true;
}

bool rmm__sim_fault_set(const char *text, const char **wrong_out)
{
    sim_plan_t fresh = {.count = 0};

    if (text != NULL && !parse_plan(text, &fresh, wrong_out)) {
        return false;
    }
    rmm__mutex_lock(&plan_lock);
    plan = fresh;
    rmm__mutex_unlock(&plan_lock);
    atomic_store_explicit(
        &rmm__sim_fault_armed, fresh.count != 0, memory_order_relaxed);
    return true;
}

bool rmm__sim_fault_has_struck(void)
{
    bool struck;

    rmm__mutex_lock(&plan_lock);
    struck = plan.struck;
    rmm__mutex_unlock(&plan_lock);
    return struck;
}

/* Every fault counts the call; the first one in the plan that comes due decides. */
int rmm__sim_fault_slow(sim_function_t function)
{
    int error = RMM_DRIVER_OK;

    rmm__mutex_lock(&plan_lock);
    for (size_t i = 0; i < plan.count; i++) {
        sim_fault_t *fault = &plan.faults[i];

        if (fault->countdown == 0 ||
            (fault->function != ANY && fault->function != function)) {
            continue;
        }
        if (--fault->countdown == 0) {
            plan.struck = true;
            error = error == RMM_DRIVER_OK ? fault->error : error;
        }
    }
    rmm__mutex_unlock(&plan_lock);
    return error;
}

void rmm__sim_fault_join_forks(void)
{
    rmm__fork_join(RMM_FORK_SIM_FAULTS, &plan_lock, NULL);
}
