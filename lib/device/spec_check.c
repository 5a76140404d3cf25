/* SPDX-License-Identifier: Apache-2.0 */
/* Do the words and sizes of a spec make sense together? */
#include <stddef.h>
#include <stdio.h>

#include "device/spec.h"

static bool unknown_name(const char *name, char reason[RMM_SPEC_REASON_BYTES])
{
    const rmm_spec_kind_t *kind;
    int length = snprintf(
        reason, RMM_SPEC_REASON_BYTES, "no resource is named '%s'; the names are",
        name);

    for (size_t i = 0; (kind = rmm__spec_kind_at(i)) != NULL; i++) {
        if (length < RMM_SPEC_REASON_BYTES) {
            length += snprintf(
                reason + length, RMM_SPEC_REASON_BYTES - (size_t)length, " %s",
                kind->name);
        }
    }
    return false;
}

static bool check_place(
    const rmm_spec_kind_t *kind, bool is_last, char reason[RMM_SPEC_REASON_BYTES])
{
    if (is_last && kind->is_adaptor) {
        snprintf(
            reason, RMM_SPEC_REASON_BYTES,
            "'%s' is an adaptor and needs another resource after it: %s+pool",
            kind->name, kind->name);
        return false;
    }
    if (!is_last && !kind->is_adaptor) {
        snprintf(
            reason, RMM_SPEC_REASON_BYTES,
            "'%s' is not an adaptor and must be the last name", kind->name);
        return false;
    }
    return true;
}

static bool wrong_unit(
    const rmm_spec_kind_t *kind, const char *wanted, char reason[RMM_SPEC_REASON_BYTES])
{
    snprintf(reason, RMM_SPEC_REASON_BYTES, "'%s' takes %s", kind->name, wanted);
    return false;
}

/* "'limiting' takes 1 size: the limit" */
static bool wrong_count(const rmm_spec_kind_t *kind, char reason[RMM_SPEC_REASON_BYTES])
{
    const char *how_many = kind->least_sizes == kind->most_sizes ? ""
                           : kind->least_sizes == 0              ? "at most "
                                                                 : "1 or ";

    snprintf(
        reason, RMM_SPEC_REASON_BYTES, "'%s' takes %s%u size%s: %s", kind->name,
        how_many, kind->most_sizes, kind->most_sizes == 1 ? "" : "s", kind->size_names);
    return false;
}

static bool check_sizes(
    const rmm_spec_kind_t *kind, const rmm_spec_part_t *part,
    char reason[RMM_SPEC_REASON_BYTES])
{
    if (part->size_count > 0 && kind->most_sizes == 0) {
        snprintf(reason, RMM_SPEC_REASON_BYTES, "'%s' takes no size", kind->name);
        return false;
    }
    if (part->size_count > kind->most_sizes || part->size_count < kind->least_sizes) {
        return wrong_count(kind, reason);
    }
    for (uint32_t i = 0; i < part->size_count; i++) {
        if (part->sizes[i].is_ms != kind->in_ms) {
            return wrong_unit(
                kind, kind->in_ms ? "a time, such as 500ms" : "no time", reason);
        }
        if (part->sizes[i].is_percent && kind->no_percent) {
            return wrong_unit(
                kind, "a number of bytes, not a percentage of the free memory", reason);
        }
    }
    return true;
}

static bool check_options(
    const rmm_spec_kind_t *kind, const rmm_spec_part_t *part,
    char reason[RMM_SPEC_REASON_BYTES])
{
    uint32_t strange = part->options & ~rmm__spec_options_of(kind);

    if ((strange & RMM_SPEC_NO_PEER_ACCESS) != 0) {
        snprintf(
            reason, RMM_SPEC_REASON_BYTES,
            "'%s' has no option 'no_peer_access'; pool_virtual and async have it",
            kind->name);
    } else if (strange != 0) {
        snprintf(
            reason, RMM_SPEC_REASON_BYTES,
            "'%s' has no option 'wait'; async and async_managed have it", kind->name);
    }
    return strange == 0;
}

bool rmm__spec_check(const rmm_spec_t *spec, char reason[RMM_SPEC_REASON_BYTES])
{
    for (uint32_t i = 0; i < spec->count; i++) {
        const rmm_spec_part_t *part = &spec->parts[i];
        const rmm_spec_kind_t *kind = rmm__spec_kind(part->name);

        if (kind == NULL) {
            return unknown_name(part->name, reason);
        }
        if (!check_place(kind, i + 1 == spec->count, reason) ||
            !check_options(kind, part, reason) || !check_sizes(kind, part, reason)) {
            return false;
        }
    }
    return true;
}
