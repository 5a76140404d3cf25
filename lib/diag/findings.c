/* SPDX-License-Identifier: Apache-2.0 */
/* Writer of the findings; see findings.h. */
#include "diag/findings.h"

#include <stdbool.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "diag/row.h"

enum {
    FUNCTION_WORDS = sizeof(((rmm_diag_finding_t *)NULL)->function) / sizeof(uint64_t)
};

static bool
has_parties_of(const rmm_diag_finding_t *entry, const rmm_finding_t *finding)
{
    return RMM_ROW_GET(entry, user) == finding->user &&
           RMM_ROW_GET(entry, other_user) == finding->other_user &&
           RMM_ROW_GET(entry, other_call) == finding->other_call;
}

static bool has_range_of(const rmm_diag_finding_t *entry, const rmm_finding_t *finding)
{
    return RMM_ROW_GET(entry, block_bytes) == finding->block.bytes &&
           RMM_ROW_GET(entry, bytes) == finding->bytes &&
           RMM_ROW_GET(entry, address) - RMM_ROW_GET(entry, block_address) ==
               finding->address - finding->block.address;
}

static void name_function(uint64_t words[FUNCTION_WORDS], const char *function)
{
    memset(words, 0, FUNCTION_WORDS * sizeof(words[0]));
    if (function != NULL) {
        memcpy(
            words, function, strnlen(function, FUNCTION_WORDS * sizeof(words[0]) - 1));
    }
}

static bool
has_function_of(const rmm_diag_finding_t *entry, const rmm_finding_t *finding)
{
    uint64_t words[FUNCTION_WORDS];
    bool same = true;

    name_function(words, finding->function);
    for (size_t i = 0; i < FUNCTION_WORDS; i++) {
        same = same && RMM_ROW_GET(entry, function[i]) == words[i];
    }
    return same;
}

static bool is_like(const rmm_diag_finding_t *entry, const rmm_finding_t *finding)
{
    return RMM_ROW_GET(entry, kind) == finding->kind &&
           RMM_ROW_GET(entry, call) == finding->call &&
           RMM_ROW_GET(entry, access) == finding->access &&
           RMM_ROW_GET(entry, resource_id) == finding->block.resource_id &&
           has_parties_of(entry, finding) &&
           (!finding->tells_range || has_range_of(entry, finding)) &&
           has_function_of(entry, finding); /* last: it costs most */
}

static void set_function(rmm_diag_finding_t *entry, const char *function)
{
    uint64_t words[FUNCTION_WORDS];

    name_function(words, function);
    for (size_t i = 0; i < FUNCTION_WORDS; i++) {
        RMM_ROW_SET(entry, function[i], words[i]);
    }
}

static void open_entry(rmm_diag_finding_t *entry, const rmm_finding_t *finding)
{
    RMM_ROW_SET(entry, kind, (uint32_t)finding->kind);
    RMM_ROW_SET(entry, call, finding->call);
    RMM_ROW_SET(entry, access, finding->access);
    RMM_ROW_SET(entry, count, 0);
    RMM_ROW_SET(entry, first_ns, rmm__clock_ns(CLOCK_MONOTONIC));
    RMM_ROW_SET(entry, resource_id, finding->block.resource_id);
    RMM_ROW_SET(entry, user, finding->user);
    RMM_ROW_SET(entry, other_user, finding->other_user);
    RMM_ROW_SET(entry, other_call, finding->other_call);
    RMM_ROW_SET(entry, confidence, (uint32_t)finding->confidence);
    set_function(entry, finding->function);
}

static void count_entry(rmm_diag_finding_t *entry, const rmm_finding_t *finding)
{
    RMM_ROW_SET(entry, count, RMM_ROW_GET(entry, count) + 1);
    RMM_ROW_SET(entry, last_ns, rmm__clock_ns(CLOCK_MONOTONIC));
    RMM_ROW_SET(entry, block_address, finding->block.address);
    RMM_ROW_SET(entry, block_bytes, finding->block.bytes);
    RMM_ROW_SET(entry, block_stream_id, finding->block.stream_id);
    RMM_ROW_SET(entry, device, finding->block.device);
    RMM_ROW_SET(entry, address, finding->address);
    RMM_ROW_SET(entry, bytes, finding->bytes);
    RMM_ROW_SET(entry, stream_id, finding->stream_id);
    RMM_ROW_SET(entry, other_stream_id, finding->other_stream_id);
}

void rmm__findings_add(rmm_findings_t *findings, const rmm_finding_t *finding)
{
    rmm_diag_header_t *header = findings->header;
    uint32_t used = atomic_load_explicit(&header->findings.used, memory_order_relaxed);
    uint32_t i = 0;

    RMM_ROW_ADD(&header->findings_total, 1);
    used = used < RMM_DIAG_FINDINGS_COUNT ? used : RMM_DIAG_FINDINGS_COUNT;
    while (i < used && !(findings->sites[i] == finding->site &&
                         is_like(&findings->entries[i], finding))) {
        i++;
    }
    if (i == RMM_DIAG_FINDINGS_COUNT) {
        RMM_ROW_ADD(&header->findings_dropped, 1);
        return;
    }
    RMM_ROW_BEGIN(&findings->entries[i]);
    if (i == used) {
        open_entry(&findings->entries[i], finding);
        findings->origins[i] = finding->origin;
        findings->frees[i] = finding->freed;
        findings->sites[i] = finding->site;
    }
    count_entry(&findings->entries[i], finding);
    RMM_ROW_END(&findings->entries[i]);
    if (i == used) {
        /* release: the entry is written; pairs with a reader's first look */
        atomic_store_explicit(&header->findings.used, i + 1, memory_order_release);
    }
}
