/* SPDX-License-Identifier: Apache-2.0 */
/* Names of findings and verdicts; see diag_names.h. */
#include "diag/diag_names.h"

#include <stdbool.h>
#include <stddef.h>

#include "diag/diag_format.h"

static const rmm_diag_finding_class_t finding_classes[] = {
    /* of a newer writer */
    {"unknown", RMM_DIAG_OTHER_NONE, "{call} on {stream}, {times}\n{block}"},
#define FINDING(kind, number, word, other, text)                                       \
    [RMM_DIAG_##kind] = {word, RMM_DIAG_OTHER_##other, text},
#include "diag/finding_classes.def"
#undef FINDING
};

enum { FINDING_CLASSES = sizeof(finding_classes) / sizeof(finding_classes[0]) };

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

const rmm_diag_finding_class_t *rmm__diag_finding_class(uint32_t kind)
{
    bool is_known = kind < FINDING_CLASSES && finding_classes[kind].name != NULL;

    return &finding_classes[is_known ? kind : 0];
}

const char *rmm__diag_finding_name(uint32_t kind)
{
    return rmm__diag_finding_class(kind)->name;
}

const char *rmm__diag_access_name(uint32_t access)
{
    return NAME_OF(access_names, access);
}

const char *rmm__diag_confidence_name(uint32_t confidence)
{
    return NAME_OF(confidence_names, confidence);
}

const char *rmm__diag_verdict_name(uint32_t verdict)
{
    return NAME_OF(verdict_names, verdict);
}
