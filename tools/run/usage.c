/* SPDX-License-Identifier: Apache-2.0 */
/* Reading of what memory was used for; see usage.h. */
#include "run/usage.h"

#include <stdlib.h>
#include <time.h>

#include "core/clock.h"
#include "diag/block_groups.h"
#include "diag/peak_reader.h"
#include "diag/resource_reader.h"
#include "diag/verdict_reader.h"

typedef struct reading {
    run_usage_t *usage;
    const rmm_diag_file_t *file;
    run_symbols_t *symbols;
    rmm_diag_groups_t *groups; /* of the peak, or verdicts, that is read now */
} reading_t;

static bool find_stack(const reading_t *reading, uint32_t site, const run_stack_t **out)
{
    *out =
        run_sites_find(&reading->usage->sites, site, reading->file, reading->symbols);
    return *out != NULL;
}

static bool take_shares(const reading_t *reading, run_peak_t *peak)
{
    const rmm_diag_groups_t *groups = reading->groups;
    uint32_t count = groups->count < RUN_SHARES_MAX ? groups->count : RUN_SHARES_MAX;
    peak->shares = calloc(RUN_SHARES_MAX, sizeof(peak->shares[0]));
    if (peak->shares == NULL) {
        return false;
    }
    peak->other_bytes = peak->bytes;
    for (uint32_t i = 0; i < count; i++) {
        const rmm_diag_group_t *group = &groups->entries[i];
        run_share_t *share = &peak->shares[i];
        share->bytes = group->bytes;
        share->count = group->count;
        share->resource_id = group->resource_id;
        rmm__diag_read_resource(reading->file, share->resource_id, &share->resource);
        (void)rmm__diag_read_user(reading->file, group->first_user, share->first_user);
        if (!find_stack(reading, group->site, &share->stack)) {
            return false;
        }
        peak->other_bytes -=
            group->bytes < peak->other_bytes ? group->bytes : peak->other_bytes;
    }
    peak->share_count = count;
    return true;
}

static bool read_peaks(const reading_t *reading)
{
    run_usage_t *usage = reading->usage;
    const rmm_diag_file_t *file = reading->file;
    rmm_diag_composition_t composition;
    bool good = true;
    for (uint32_t i = 0;
         good && i < rmm__diag_peak_count(file) && usage->peak_count < RUN_PEAKS_MAX;
         i++) {
        if (rmm__diag_read_composition(file, i, reading->groups, &composition)) {
            run_peak_t *peak = &usage->peaks[usage->peak_count++];
            *peak = (run_peak_t){
                .device = composition.peak.device,
                .bytes = composition.peak.bytes,
                .count = composition.peak.count};
            good = take_shares(reading, peak);
        }
    }
    return good;
}

static bool read_verdicts(const reading_t *reading)
{
    run_usage_t *usage = reading->usage;
    const rmm_diag_file_t *file = reading->file;
    rmm_diag_groups_t *groups = reading->groups;
    usage->verdicts = calloc(RUN_VERDICTS_MAX, sizeof(usage->verdicts[0]));
    if (usage->verdicts == NULL) {
        return false;
    }
    rmm__diag_read_verdicts(file, rmm__clock_ns(CLOCK_MONOTONIC), true, groups);
    usage->verdicts_dropped =
        groups->rest_count +
        atomic_load_explicit(&file->header.verdicts_dropped, memory_order_relaxed);
    for (uint32_t i = 0; i < groups->count; i++) {
        const rmm_diag_group_t *group = &groups->entries[i];
        if (i >= RUN_VERDICTS_MAX) {
            usage->verdicts_dropped += group->count;
            continue;
        }
        run_verdict_t *verdict = &usage->verdicts[usage->verdict_count++];
        *verdict = (run_verdict_t){
            .verdict = group->verdict,
            .confidence = rmm__diag_confidence(file, group->verdict),
            .device = group->device,
            .resource_id = group->resource_id,
            .bytes = group->bytes,
            .count = group->count,
            .largest = group->largest,
            .byte_ms = group->byte_ms};
        rmm__diag_read_resource(file, verdict->resource_id, &verdict->resource);
        (void)rmm__diag_read_user(file, group->first_user, verdict->first_user);
        if (!find_stack(reading, group->site, &verdict->stack)) {
            return false;
        }
    }
    return true;
}

bool run_usage_read(
    run_usage_t *usage, const rmm_diag_file_t *file, run_symbols_t *symbols)
{
    reading_t reading = {usage, file, symbols, rmm__diag_groups_create()};
    *usage = (run_usage_t){.peak_count = 0};
    usage->device_resets =
        atomic_load_explicit(&file->header.device_resets, memory_order_relaxed);
    usage->blocks_reset =
        atomic_load_explicit(&file->header.blocks_reset, memory_order_relaxed);
    usage->sites_dropped =
        atomic_load_explicit(&file->header.sites_dropped, memory_order_relaxed);
    rmm_diag_left_t left = rmm__diag_read_left(file);
    usage->leaked_count = left.count;
    usage->leaked_bytes = left.bytes;
    bool good = run_sites_init(
                    &usage->sites, RUN_PEAKS_MAX * RUN_SHARES_MAX + RUN_VERDICTS_MAX) &&
                reading.groups != NULL && read_peaks(&reading) &&
                read_verdicts(&reading);
    free(reading.groups);
    return good;
}

void run_usage_free(run_usage_t *usage)
{
    for (uint32_t i = 0; i < usage->peak_count; i++) {
        free(usage->peaks[i].shares);
    }
    usage->peak_count = 0;
    free(usage->verdicts);
    usage->verdicts = NULL;
    usage->verdict_count = 0;
    run_sites_free(&usage->sites);
}
