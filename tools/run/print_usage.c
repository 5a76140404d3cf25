/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Prints what memory was used for, as text and as JSON. The text shows the largest few; the JSON
 * has all that was kept.
 */
#include <inttypes.h>

#include "common/json.h"
#include "diag/diag_names.h"
#include "run/names.h"
#include "run/usage.h"

enum { SHOWN = 10 };

/* --- for people ------------------------------------------------------------------------- */

typedef struct amount {
    char text[24];
} amount_t;

static amount_t amount_of(uint64_t bytes)
{
    const char *const units[] = {
        bytes == 1 ? "byte" : "bytes", "KiB", "MiB", "GiB", "TiB"};
    double value = (double)bytes;
    size_t unit = 0;
    amount_t amount;
    while (value >= 1024.0 && unit + 1 < sizeof(units) / sizeof(units[0])) {
        value /= 1024.0;
        unit++;
    }
    snprintf(
        amount.text, sizeof(amount.text), unit == 0 ? "%.0f %s" : "%.1f %s", value,
        units[unit]);
    return amount;
}

static void print_location(int32_t device, FILE *out)
{
    if (device < 0) {
        fputs("host memory", out);
    } else {
        fprintf(out, "device %" PRId32, device);
    }
}

static const char *blocks(uint64_t count)
{
    return count == 1 ? "block" : "blocks";
}

static void print_user(const char *name, FILE *out)
{
    if (name[0] != '\0') {
        fputs("first used by ", out);
    }
    run_name_print(name, "never used", out);
}

static double percent(uint64_t bytes, uint64_t whole)
{
    return whole > 0 ? (double)bytes * 100.0 / (double)whole : 0.0;
}

static void print_peak(const run_peak_t *peak, FILE *out)
{
    uint64_t other = peak->other_bytes;
    fputs("  peak of ", out);
    print_location(peak->device, out);
    fprintf(
        out, ": %s in %" PRIu64 " %s\n", amount_of(peak->bytes).text, peak->count,
        blocks(peak->count));
    for (uint32_t i = 0; i < peak->share_count; i++) {
        const run_share_t *share = &peak->shares[i];
        if (i >= SHOWN) {
            other += share->bytes;
            continue;
        }
        fprintf(
            out, "    %5.1f %% %12s in %" PRIu64 " %s of ",
            percent(share->bytes, peak->bytes), amount_of(share->bytes).text,
            share->count, blocks(share->count));
        run_resource_print(share->resource_id, &share->resource, out);
        fputs(", ", out);
        print_user(share->first_user, out);
        fputc('\n', out);
        run_stack_print_short(share->stack, out);
    }
    if (other > 0) {
        fprintf(
            out, "    %5.1f %% %12s in others\n", percent(other, peak->bytes),
            amount_of(other).text);
    }
}

static const char *advice_on(uint32_t verdict)
{
    static const char *const all[] = {
        [RMM_DIAG_NEVER_USED] = "no kernel, copy or fill used it: do not allocate it",
        [RMM_DIAG_ALLOCATED_EARLY] = "allocate it when it is first used",
        [RMM_DIAG_FREED_LATE] = "free it after its last use",
        [RMM_DIAG_IDLE] = "free it, or move it to the host until it is used again",
        [RMM_DIAG_LEAKED] =
            "free it, unless it is meant to live as long as the program"};
    bool is_known = verdict < sizeof(all) / sizeof(all[0]) && all[verdict] != NULL;
    return is_known ? all[verdict] : "see docs/diagnostics.md";
}

static bool is_first_of_its_kind(const run_usage_t *usage, uint32_t index)
{
    uint32_t i = 0;
    while (i < index && usage->verdicts[i].verdict != usage->verdicts[index].verdict) {
        i++;
    }
    return i == index;
}

static void print_verdict(const run_usage_t *usage, uint32_t index, FILE *out)
{
    const run_verdict_t *verdict = &usage->verdicts[index];
    fprintf(
        out, "    %-15s %12s x s: %s in %" PRIu64 " %s of ",
        rmm__diag_verdict_name(verdict->verdict),
        amount_of(verdict->byte_ms / 1000).text, amount_of(verdict->bytes).text,
        verdict->count, blocks(verdict->count));
    run_resource_print(verdict->resource_id, &verdict->resource, out);
    fputs(", ", out);
    print_user(verdict->first_user, out);
    fprintf(out, " (%s)\n", verdict->confidence);
    if (is_first_of_its_kind(usage, index)) {
        fprintf(out, "        %s\n", advice_on(verdict->verdict));
    }
    run_stack_print_short(verdict->stack, out);
}

static void print_verdicts(const run_usage_t *usage, FILE *out)
{
    if (usage->verdict_count > 0) {
        fputs(
            "  wasted memory, bytes x time "
            "(uses through pointers in device memory are not seen):\n",
            out);
    }
    uint32_t shown = 0, leaks = 0; /* of leaks some are shown in any case */
    for (uint32_t i = 0; i < usage->verdict_count; i++) {
        bool is_leak = usage->verdicts[i].verdict == RMM_DIAG_LEAKED;
        if (i < SHOWN || (is_leak && leaks < SHOWN)) {
            print_verdict(usage, i, out);
            leaks += is_leak ? 1 : 0;
            shown++;
        }
    }
    if (usage->verdict_count > shown) {
        fprintf(
            out, "    %" PRIu32 " more: see --report\n", usage->verdict_count - shown);
    }
    if (usage->verdicts_dropped > 0) {
        fprintf(
            out, "    not shown: %" PRIu64 " verdicts on blocks of further kinds\n",
            usage->verdicts_dropped);
    }
}

/* Why the peaks and verdicts are incomplete. */
static void print_missing(const run_usage_t *usage, FILE *out)
{
    if (usage->sites_dropped > 0) {
        fprintf(
            out,
            "  the stacks of %" PRIu64
            " allocations are missing: the program has too many different stacks\n",
            usage->sites_dropped);
    }
    if (usage->device_resets > 0) {
        fprintf(
            out,
            "  the program reset a GPU %" PRIu64 " %s: %" PRIu64
            " %s that were live then have no verdict\n",
            usage->device_resets, usage->device_resets == 1 ? "time" : "times",
            usage->blocks_reset, blocks(usage->blocks_reset));
    }
}

static void print_leaks(const run_usage_t *usage, FILE *out)
{
    if (usage->leaked_count > 0) {
        fprintf(
            out, "  %" PRIu64 " %s of %s not freed: see leaked below\n",
            usage->leaked_count, blocks(usage->leaked_count),
            amount_of(usage->leaked_bytes).text);
    }
}

/* Without mode usage nothing is known of its uses. */
static void print_leak(const run_verdict_t *leak, FILE *out)
{
    fprintf(
        out, "    %s in %" PRIu64 " %s of ", amount_of(leak->bytes).text, leak->count,
        blocks(leak->count));
    run_resource_print(leak->resource_id, &leak->resource, out);
    if (leak->first_user[0] != '\0') {
        fputs(", ", out);
        print_user(leak->first_user, out);
    }
    fputc('\n', out);
    run_stack_print_short(leak->stack, out);
}

void run_usage_print_leaks(const run_usage_t *usage, FILE *out)
{
    uint64_t left = usage->leaked_count; /* to be shown */
    uint32_t shown = 0;
    if (left > 0) {
        fprintf(
            out, "  %" PRIu64 " %s of %s not freed\n", left, blocks(left),
            amount_of(usage->leaked_bytes).text);
    }
    for (uint32_t i = 0; i < usage->verdict_count && shown < SHOWN; i++) {
        const run_verdict_t *verdict = &usage->verdicts[i];
        if (verdict->verdict == RMM_DIAG_LEAKED) {
            print_leak(verdict, out);
            left -= verdict->count < left ? verdict->count : left;
            shown++;
        }
    }
    if (left > 0) {
        fprintf(out, "    %" PRIu64 " %s more\n", left, blocks(left));
    }
}

void run_usage_print(const run_usage_t *usage, FILE *out)
{
    print_leaks(usage, out);
    for (uint32_t i = 0; i < usage->peak_count; i++) {
        print_peak(&usage->peaks[i], out);
    }
    print_verdicts(usage, out);
    print_missing(usage, out);
}

/* --- JSON ------------------------------------------------------------------------------- */

static json_t *json_of_share(const void *peak, size_t i)
{
    const run_share_t *share = &((const run_peak_t *)peak)->shares[i];
    json_t *object = json_object();
    return json_whole_or_null(
        object,
        json_put(object, "size_bytes", json_count(share->bytes)) &&
            json_put(object, "count", json_count(share->count)) &&
            run_resource_put_json(object, share->resource_id, &share->resource) &&
            run_name_put_json(object, "first_use", share->first_user) &&
            json_put(object, "python", run_python_json(&share->stack->python)) &&
            json_put(object, "stack", run_stack_json(share->stack)));
}

static json_t *json_of_peak(const void *usage, size_t i)
{
    const run_peak_t *peak = &((const run_usage_t *)usage)->peaks[i];
    json_t *object = json_object();
    return json_whole_or_null(
        object, json_put(object, "device", json_integer(peak->device)) &&
                    json_put(object, "size_bytes", json_count(peak->bytes)) &&
                    json_put(object, "count", json_count(peak->count)) &&
                    json_put(object, "other_bytes", json_count(peak->other_bytes)) &&
                    json_put(
                        object, "parts",
                        json_array_of(peak->share_count, json_of_share, peak)));
}

static json_t *json_of_verdict(const void *usage, size_t i)
{
    const run_verdict_t *verdict = &((const run_usage_t *)usage)->verdicts[i];
    json_t *object = json_object();
    return json_whole_or_null(
        object,
        json_put(
            object, "verdict", json_string(rmm__diag_verdict_name(verdict->verdict))) &&
            json_put(object, "confidence", json_string(verdict->confidence)) &&
            json_put(object, "device", json_integer(verdict->device)) &&
            run_resource_put_json(object, verdict->resource_id, &verdict->resource) &&
            json_put(object, "count", json_count(verdict->count)) &&
            json_put(object, "size_bytes", json_count(verdict->bytes)) &&
            json_put(object, "largest_bytes", json_count(verdict->largest)) &&
            json_put(
                object, "byte_seconds", json_real((double)verdict->byte_ms / 1000.0)) &&
            run_name_put_json(object, "first_use", verdict->first_user) &&
            json_put(object, "python", run_python_json(&verdict->stack->python)) &&
            json_put(object, "stack", run_stack_json(verdict->stack)) &&
            json_put(object, "advice", json_string(advice_on(verdict->verdict))));
}

bool run_usage_put_json(const run_usage_t *usage, json_t *object)
{
    return json_put(
               object, "peaks",
               json_array_of(usage->peak_count, json_of_peak, usage)) &&
           json_put(
               object, "verdicts",
               json_array_of(usage->verdict_count, json_of_verdict, usage)) &&
           json_put(object, "verdicts_dropped", json_count(usage->verdicts_dropped)) &&
           json_put(object, "leaked_count", json_count(usage->leaked_count)) &&
           json_put(object, "leaked_bytes", json_count(usage->leaked_bytes)) &&
           json_put(object, "sites_dropped", json_count(usage->sites_dropped)) &&
           json_put(object, "device_resets", json_count(usage->device_resets)) &&
           json_put(object, "blocks_reset", json_count(usage->blocks_reset));
}
