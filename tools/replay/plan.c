/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Checks each row of the log once, so that the run itself needs no checks: in a
 * plan every free has its allocation and no address is live twice.
 */
#include "replay/plan.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAPACITY 1024
#define NS_PER_DAY (UINT64_C(86400) * 1000000000)
/* An exbibyte: sums of sizes stay far from overflow. */
#define LIVE_BYTES_MAX (UINT64_C(1) << 60)
#define LEGACY_HANDLE 1
#define PER_THREAD_HANDLE 2

void plan_init(plan_t *plan)
{
    memset(plan, 0, sizeof *plan);
}

void plan_fini(plan_t *plan)
{
    free(plan->ops);
    free(plan->streams);
    free(plan->handle_bytes);
    free(plan->free_handles);
    free(plan->null_handles);
    rmm__pointer_map_fini(&plan->live);
    rmm__pointer_map_fini(&plan->thread_index);
    rmm__pointer_map_fini(&plan->stream_index);
    rmm__pointer_map_fini(&plan->default_index);
    plan_init(plan);
}

/* Replaces *array by one of count elements; false: no host memory, it stays. */
static bool resize(void *array, size_t count, size_t element_bytes)
{
    void *old;
    memcpy(&old, array, sizeof old);
    void *larger = reallocarray(old, count, element_bytes);
    if (larger == NULL) {
        return false;
    }
    memcpy(array, &larger, sizeof larger);
    return true;
}

static bool reserve_op(plan_t *plan)
{
    if (plan->op_count < plan->op_capacity) {
        return true;
    }
    size_t capacity = plan->op_capacity == 0 ? FIRST_CAPACITY : plan->op_capacity * 2;
    if (!resize(&plan->ops, capacity, sizeof *plan->ops)) {
        return false;
    }
    plan->op_capacity = capacity;
    return true;
}

static bool reserve_handle(plan_t *plan)
{
    if (plan->free_handle_count > 0 || plan->handle_count < plan->handle_capacity) {
        return true;
    }
    size_t capacity =
        plan->handle_capacity == 0 ? FIRST_CAPACITY : plan->handle_capacity * 2;
    if (!resize(&plan->handle_bytes, capacity, sizeof *plan->handle_bytes) ||
        !resize(&plan->free_handles, capacity, sizeof *plan->free_handles) ||
        !resize(&plan->null_handles, capacity, sizeof *plan->null_handles)) {
        return false;
    }
    plan->handle_capacity = capacity;
    return true;
}

static bool find_index(const rmm_pointer_map_t *map, uint64_t key, uint32_t *out)
{
    size_t bytes;
    bool is_known = rmm__pointer_map_find(map, (void *)(uintptr_t)key, &bytes);
    if (is_known) {
        *out = (uint32_t)(bytes - 1);
    }
    return is_known;
}

/* False: no host memory. */
static bool add_index(rmm_pointer_map_t *map, uint64_t key, uint32_t index)
{
    bool has_room = rmm__pointer_map_reserve(map);
    if (has_room) {
        rmm__pointer_map_insert(map, (void *)(uintptr_t)key, (size_t)index + 1);
    }
    return has_room;
}

/* The index of key in a numbering; a new key gets the next of *count. */
static bool
number_key(rmm_pointer_map_t *map, uint64_t key, size_t *count, uint32_t *out)
{
    if (find_index(map, key, out)) {
        return true;
    }
    if (!add_index(map, key, (uint32_t)*count)) {
        return false;
    }
    *out = (uint32_t)(*count)++;
    return true;
}

static bool number_stream(plan_t *plan, const log_row_t *row, uint32_t *out)
{
    uint64_t handle = row->stream == LEGACY_HANDLE ? 0 : row->stream;
    bool per_thread = handle == PER_THREAD_HANDLE;
    rmm_pointer_map_t *map = per_thread ? &plan->default_index : &plan->stream_index;
    uint64_t key = per_thread ? row->thread : handle;
    if (find_index(map, key, out)) {
        return true;
    }
    size_t index = plan->stream_count;
    if (!resize(&plan->streams, index + 1, sizeof *plan->streams) ||
        !number_key(map, key, &plan->stream_count, out)) {
        return false;
    }
    plan->streams[index] = (plan_stream_t){handle, handle == 0};
    return true;
}

/*
 * The log has the time of day only. A fall by more than half a day is midnight; a
 * smaller one comes from threads that write their rows late, and counts as no time.
 */
static void advance_time(plan_t *plan, const log_row_t *row)
{
    uint64_t last = plan->last_time_ns;
    if (plan->op_count == 0) {
        plan->last_time_ns = row->time_ns;
        return;
    }
    if (row->time_ns >= last) {
        plan->elapsed_ns += row->time_ns - last;
        plan->last_time_ns = row->time_ns;
    } else if (last - row->time_ns > NS_PER_DAY / 2) {
        plan->elapsed_ns += NS_PER_DAY + row->time_ns - last;
        plan->last_time_ns = row->time_ns;
    }
}

static plan_result_t
append_op(plan_t *plan, const log_row_t *row, uint32_t handle, bool is_free)
{
    advance_time(plan, row);
    plan_op_t *op = &plan->ops[plan->op_count];
    *op = (plan_op_t){
        .bytes = plan->handle_bytes[handle],
        .due_ns = plan->elapsed_ns,
        .address = row->pointer,
        .handle = handle,
        .line = (uint32_t)row->line,
        .is_free = is_free,
    };
    if (!number_key(
            &plan->thread_index, row->thread, &plan->thread_count, &op->thread) ||
        !number_stream(plan, row, &op->stream)) {
        return PLAN_NO_MEMORY;
    }
    plan->op_count++;
    return PLAN_ADDED;
}

static uint32_t take_handle(plan_t *plan)
{
    if (plan->free_handle_count > 0) {
        return plan->free_handles[--plan->free_handle_count];
    }
    return (uint32_t)plan->handle_count++;
}

static plan_result_t
refuse(char problem[LOG_PROBLEM_MAX], const char *what, const log_row_t *row)
{
    snprintf(
        problem, LOG_PROBLEM_MAX, "%s 0x%" PRIx64 " (%" PRIu64 " bytes)", what,
        row->pointer, row->bytes);
    return PLAN_REFUSED;
}

static plan_result_t
add_allocation(plan_t *plan, const log_row_t *row, char problem[LOG_PROBLEM_MAX])
{
    bool is_null = row->pointer == 0;
    uint32_t handle;
    if (is_null && row->bytes > 0) {
        return refuse(problem, "allocate of some bytes at address 0,", row);
    }
    if (!is_null && find_index(&plan->live, row->pointer, &handle)) {
        return refuse(problem, "allocate of an address that is still allocated,", row);
    }
    if (row->bytes > LIVE_BYTES_MAX - plan->left_bytes) {
        return refuse(problem, "allocate of more than any memory holds,", row);
    }
    if (!reserve_handle(plan)) {
        return PLAN_NO_MEMORY;
    }
    handle = take_handle(plan);
    plan->handle_bytes[handle] = row->bytes;
    if (is_null) {
        plan->null_handles[plan->null_handle_count++] = handle;
    } else if (!add_index(&plan->live, row->pointer, handle)) {
        return PLAN_NO_MEMORY;
    }
    plan->left_count++;
    plan->left_bytes += row->bytes;
    if (plan->left_bytes > plan->peak_bytes) {
        plan->peak_bytes = plan->left_bytes;
    }
    return append_op(plan, row, handle, false);
}

/* The handle that a free ends, taken out of the live ones; false: unknown address. */
static bool end_life(plan_t *plan, const log_row_t *row, uint32_t *handle)
{
    if (row->pointer == 0) {
        if (plan->null_handle_count == 0) {
            return false;
        }
        *handle = plan->null_handles[--plan->null_handle_count];
        return true;
    }
    return find_index(&plan->live, row->pointer, handle) &&
           rmm__pointer_map_erase(&plan->live, (void *)(uintptr_t)row->pointer);
}

static plan_result_t
add_free(plan_t *plan, const log_row_t *row, char problem[LOG_PROBLEM_MAX])
{
    uint32_t handle;
    if (!end_life(plan, row, &handle)) {
        return refuse(problem, "free of an address that is not allocated,", row);
    }
    uint64_t bytes = plan->handle_bytes[handle];
    plan->free_handles[plan->free_handle_count++] = handle;
    plan->left_count--;
    plan->left_bytes -= bytes;
    plan_result_t result = append_op(plan, row, handle, true);
    if (result == PLAN_ADDED && row->bytes != bytes) {
        snprintf(
            problem, LOG_PROBLEM_MAX,
            "free of 0x%" PRIx64 " with %" PRIu64 " bytes, allocated with %" PRIu64,
            row->pointer, row->bytes, bytes);
        return PLAN_NOTED;
    }
    return result;
}

plan_result_t
plan_add(plan_t *plan, const log_row_t *row, char problem[LOG_PROBLEM_MAX])
{
    if (row->action == LOG_ALLOCATE_FAILURE) {
        plan->failure_count++;
        if (row->bytes > plan->failure_bytes) {
            plan->failure_bytes = row->bytes;
        }
        return PLAN_ADDED;
    }
    if (row->line > UINT32_MAX) {
        return refuse(problem, "too many lines to replay, at", row);
    }
    if (!reserve_op(plan)) {
        return PLAN_NO_MEMORY;
    }
    return row->action == LOG_ALLOCATE ? add_allocation(plan, row, problem)
                                       : add_free(plan, row, problem);
}
