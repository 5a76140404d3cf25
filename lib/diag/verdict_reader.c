/* SPDX-License-Identifier: Apache-2.0 */
/* Verdicts for readers; see verdict_reader.h. */
#include "diag/verdict_reader.h"

#include "diag/verdict_rules.h"

typedef struct judge {
    const rmm_diag_file_t *file;
    uint64_t now_ns;
    bool has_ended;
    rmm_diag_groups_t *groups;
} judge_t;

static bool add_freed(const rmm_diag_group_t *group, void *arg)
{
    const judge_t *judge = arg;
    rmm__diag_groups_add(judge->groups, group);
    return true;
}

static rmm_diag_life_t life_of(const judge_t *judge, const rmm_diag_row_info_t *row)
{
    return (rmm_diag_life_t){
        .fate = judge->has_ended ? RMM_DIAG_FATE_LEFT : RMM_DIAG_FATE_LIVE,
        .device = row->device,
        .allocated_ns = row->allocated_ns,
        .first_use_ns = row->first_use_ns,
        .last_use_ns = row->last_use_ns,
        .end_ns = judge->now_ns,
        .allocated_at = row->allocated_at,
        .first_use_at = row->first_use_at,
        .last_use_at = row->last_use_at,
        .end_at =
            atomic_load_explicit(&judge->file->header.launches, memory_order_relaxed)};
}

static bool judge_live(const rmm_diag_row_info_t *row, void *arg)
{
    const judge_t *judge = arg;
    const rmm_diag_life_t life = life_of(judge, row);
    uint64_t since_ns = atomic_load_explicit(
        &judge->file->header.judged_since_ns, memory_order_relaxed);
    uint64_t wasted_ns;
    bool is_judged = rmm__diag_is_judged(row->allocated_ns, since_ns);
    int first = is_judged ? RMM_DIAG_NEVER_USED : RMM_DIAG_LEAKED;
    for (int verdict = first; verdict <= RMM_DIAG_LEAKED; verdict++) {
        if (rmm__diag_verdict_applies(&life, (rmm_diag_verdict_t)verdict, &wasted_ns)) {
            const rmm_diag_group_t group = {
                .verdict = (uint32_t)verdict,
                .resource_id = row->resource_id,
                .first_user = row->first_user,
                .device = row->device,
                .size_class = rmm__diag_size_class(row->bytes),
                .site = row->site,
                .bytes = row->bytes,
                .count = 1,
                .largest = row->bytes,
                .byte_ms = rmm__diag_byte_ms(row->bytes, wasted_ns)};
            rmm__diag_groups_add(judge->groups, &group);
        }
    }
    return true;
}

void rmm__diag_read_verdicts(
    const rmm_diag_file_t *file, uint64_t now_ns, bool has_ended,
    rmm_diag_groups_t *groups)
{
    judge_t judge = {file, now_ns, has_ended, groups};
    rmm__diag_groups_clear(groups);
    (void)rmm__diag_each_verdict(file, add_freed, &judge);
    (void)rmm__diag_each_row(file, judge_live, &judge);
    rmm__diag_groups_sort(groups);
}

static bool add_left(const rmm_diag_row_info_t *row, void *arg)
{
    rmm_diag_left_t *left = arg;
    left->count++;
    left->bytes += row->bytes;
    return true;
}

rmm_diag_left_t rmm__diag_read_left(const rmm_diag_file_t *file)
{
    const rmm_diag_header_t *header = &file->header;
    rmm_diag_left_t left = {
        .count = atomic_load_explicit(&header->left_count, memory_order_relaxed),
        .bytes = atomic_load_explicit(&header->left_bytes, memory_order_relaxed)};
    (void)rmm__diag_each_row(file, add_left, &left);
    return left;
}

const char *rmm__diag_confidence(const rmm_diag_file_t *file, uint32_t verdict)
{
    const rmm_diag_header_t *header = &file->header;
    uint64_t unseen =
        atomic_load_explicit(&header->graphs_unseen, memory_order_relaxed) |
        atomic_load_explicit(&header->parameter_failures, memory_order_relaxed);
    if (verdict == RMM_DIAG_LEAKED) {
        return "certain";
    }
    return unseen == 0 ? "likely" : "hint";
}
