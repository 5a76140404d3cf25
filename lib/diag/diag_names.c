/* SPDX-License-Identifier: Apache-2.0 */
/* Names of findings and verdicts; see diag_names.h. */
#include "diag/diag_names.h"

#include <stddef.h>

#include "diag/diag_format.h"

static const char *const finding_names[] = {
    [RMM_DIAG_OUT_OF_BOUNDS] = "out_of_bounds",
    [RMM_DIAG_USE_UNORDERED] = "use_unordered",
    [RMM_DIAG_FREE_UNORDERED] = "free_unordered",
    [RMM_DIAG_USE_AFTER_FREE] = "use_after_free",
    [RMM_DIAG_FREE_UNDER_GRAPH] = "free_under_graph",
    [RMM_DIAG_DOUBLE_FREE] = "double_free",
    [RMM_DIAG_WRONG_SIZE_FREE] = "wrong_size_free",
    [RMM_DIAG_INVALID_FREE] = "invalid_free"};

static const char *const confidence_names[] = {
    [RMM_DIAG_CERTAIN] = "certain",
    [RMM_DIAG_LIKELY] = "likely",
    [RMM_DIAG_HINT] = "hint"};

static const char *const access_names[] = {
    [RMM_DIAG_READS] = "read",
    [RMM_DIAG_WRITES] = "write",
    [RMM_DIAG_USES] = "use",
    [RMM_DIAG_FREES] = "free"};

static const char *const verdict_names[] = {
    [RMM_DIAG_NEVER_USED] = "never_used",
    [RMM_DIAG_ALLOCATED_EARLY] = "allocated_early",
    [RMM_DIAG_FREED_LATE] = "freed_late",
    [RMM_DIAG_IDLE] = "idle",
    [RMM_DIAG_LEAKED] = "leaked"};

static const char *name_of(const char *const *names, size_t count, uint32_t number)
{
    return number < count && names[number] != NULL ? names[number] : "unknown";
}

#define NAME_OF(names, number) name_of(names, sizeof(names) / sizeof(names[0]), number)

const char *rmm_diag_finding_name(uint32_t kind)
{
    return NAME_OF(finding_names, kind);
}

const char *rmm_diag_access_name(uint32_t access)
{
    return NAME_OF(access_names, access);
}

const char *rmm_diag_confidence_name(uint32_t confidence)
{
    return NAME_OF(confidence_names, confidence);
}

const char *rmm_diag_verdict_name(uint32_t verdict)
{
    return NAME_OF(verdict_names, verdict);
}
