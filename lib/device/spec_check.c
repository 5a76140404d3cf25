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

/* The adaptors stand over a type and its alternates alike. */
static bool check_place(
    const rmm_spec_kind_t *kind, const rmm_spec_part_t *part, bool is_last,
    char reason[RMM_SPEC_REASON_BYTES])
{
    const bool has_alternate = !is_last && part[1].is_alternate;

    if (kind->is_adaptor && (part->is_alternate || has_alternate)) {
        snprintf(
            reason, RMM_SPEC_REASON_BYTES,
            "'%s' is an adaptor: on both sides of a '/' is the name of a resource, as "
            "in "
            "%s+pool/managed",
            kind->name, kind->name);
        return false;
    }
    if (is_last && kind->is_adaptor) {
        snprintf(
            reason, RMM_SPEC_REASON_BYTES,
            "'%s' is an adaptor and needs another resource after it: %s+pool",
            kind->name, kind->name);
        return false;
    }
    if (!is_last && !has_alternate && !kind->is_adaptor) {
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
        if (part->sizes[i].is_ms && part->sizes[i].value == 0 && kind->needs_time) {
            return wrong_unit(kind, "a time of at least 1ms", reason);
        }
        if (part->sizes[i].is_percent && kind->no_percent) {
            return wrong_unit(
                kind, "a number of bytes, not a percentage of the free memory", reason);
        }
    }
    return true;
}

/* "'pool' has no option 'wait'; it is one of async, async_managed" */
static bool no_option(
    const rmm_spec_kind_t *kind, uint32_t option, const char *word,
    char reason[RMM_SPEC_REASON_BYTES])
{
    int length = snprintf(
        reason, RMM_SPEC_REASON_BYTES, "'%s' has no option '%s'; it is one of",
        kind->name, word);
    const char *before = " ";
    const rmm_spec_kind_t *other;

    for (size_t i = 0; (other = rmm__spec_kind_at(i)) != NULL; i++) {
        if ((rmm__spec_options_of(other) & option) != 0 &&
            length < RMM_SPEC_REASON_BYTES) {
            length += snprintf(
                reason + length, RMM_SPEC_REASON_BYTES - (size_t)length, "%s%s", before,
                other->name);
            before = ", ";
        }
    }
    return false;
}

static bool check_options(
    const rmm_spec_kind_t *kind, const rmm_spec_part_t *part,
    char reason[RMM_SPEC_REASON_BYTES])
{
    uint32_t strange = part->options & ~rmm__spec_options_of(kind);

#define X(word, ours, bit)                                                             \
    if ((strange & (uint32_t)(ours)) != 0) {                                           \
        return no_option(kind, ours, #word, reason);                                   \
    }
    RMM_SPEC_OPTION_MAP(X)
#undef X
    return true;
}

bool rmm__spec_check(const rmm_spec_t *spec, char reason[RMM_SPEC_REASON_BYTES])
{
    for (uint32_t i = 0; i < spec->count; i++) {
        const rmm_spec_part_t *part = &spec->parts[i];
        const rmm_spec_kind_t *kind = rmm__spec_kind(part->name);

        if (kind == NULL) {
            return unknown_name(part->name, reason);
        }
        if (!check_place(kind, part, i + 1 == spec->count, reason) ||
            !check_options(kind, part, reason) || !check_sizes(kind, part, reason)) {
            return false;
        }
    }
    return true;
}
