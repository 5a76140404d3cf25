/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What the words of a spec stand for: one table, one line a word. Not in it: what needs a
 * program's function (callback, failure_callback) or a handle (async_view), and host
 * memory, which a kernel cannot use.
 */
#include "device/spec.h"

#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <rmm/binning_resource.h>
#include <rmm/cuda_resource.h>
#include <rmm/fixed_size_resource.h>
#include <rmm/managed_resource.h>
#include <rmm/pinned_resource.h>
#include <rmm/pool_resource.h>

/* The bins that RMM's benchmarks use: 256 KiB to 4 MiB. */
enum { BIN_MIN_EXPONENT = 18, BIN_MAX_EXPONENT = 22 };

typedef rmm_status_t (*base_create_fn)(rmm_resource_t **out);

/* A creator of the table out of one that takes nothing. */
#define PLAIN(word)                                                                    \
    static rmm_status_t create_##word(                                                 \
        rmm_resource_t *upstream, const uint64_t sizes[RMM_SPEC_SIZES],                \
        rmm_resource_t **out)                                                          \
    {                                                                                  \
        (void)upstream;                                                                \
        (void)sizes;                                                                   \
        return rmm_##word##_resource_create(out);                                      \
    }

PLAIN(cuda)
PLAIN(managed)
PLAIN(pinned)

static rmm_status_t create_pool_over(
    base_create_fn create_base, const uint64_t sizes[RMM_SPEC_SIZES],
    rmm_resource_t **out)
{
    rmm_pool_options_t options = RMM_POOL_OPTIONS_INIT;
    rmm_resource_t *base;
    rmm_status_t status = create_base(&base);

    if (status != RMM_OK) {
        return status;
    }
    options.initial_bytes = sizes[0];
    options.maximum_bytes = sizes[1];
    status = rmm_pool_resource_create(base, &options, out);
    rmm_resource_release(base);
    return status;
}

#define POOL(word, base)                                                               \
    static rmm_status_t create_##word(                                                 \
        rmm_resource_t *upstream, const uint64_t sizes[RMM_SPEC_SIZES],                \
        rmm_resource_t **out)                                                          \
    {                                                                                  \
        (void)upstream;                                                                \
        return create_pool_over(rmm_##base##_resource_create, sizes, out);             \
    }

POOL(pool, cuda)
POOL(managed_pool, managed)
POOL(pinned_pool, pinned)

static rmm_status_t create_fixed_size(
    rmm_resource_t *upstream, const uint64_t sizes[RMM_SPEC_SIZES],
    rmm_resource_t **out)
{
    rmm_fixed_size_options_t options = RMM_FIXED_SIZE_OPTIONS_INIT;
    rmm_resource_t *cuda;
    rmm_status_t status = rmm_cuda_resource_create(&cuda);

    (void)upstream;
    if (status != RMM_OK) {
        return status;
    }
    options.block_bytes = sizes[0];
    status = rmm_fixed_size_resource_create(cuda, &options, out);
    rmm_resource_release(cuda);
    return status;
}

static rmm_status_t create_binning(
    rmm_resource_t *upstream, const uint64_t sizes[RMM_SPEC_SIZES],
    rmm_resource_t **out)
{
    rmm_binning_options_t options = RMM_BINNING_OPTIONS_INIT;
    rmm_resource_t *pool;
    rmm_status_t status = create_pool(NULL, sizes, &pool);

    (void)upstream;
    if (status != RMM_OK) {
        return status;
    }
    options.min_exponent = BIN_MIN_EXPONENT;
    options.max_exponent = BIN_MAX_EXPONENT;
    status = rmm_binning_resource_create(pool, &options, out);
    rmm_resource_release(pool);
    return status;
}

/* --- the table ---------------------------------------------------------------------- */

#define POOL_SIZES .most_sizes = 2, .size_names = "initial and maximum"

static const rmm_spec_kind_t kinds[] = {
    {.name = "cuda", .create = create_cuda},
    {.name = "managed", .create = create_managed},
    {.name = "pinned", .create = create_pinned},
    {.name = "pool", .create = create_pool, POOL_SIZES},
    {.name = "managed_pool", .create = create_managed_pool, POOL_SIZES},
    {.name = "pinned_pool", .create = create_pinned_pool, POOL_SIZES},
    {.name = "binning", .create = create_binning, POOL_SIZES},
    {.name = "fixed_size",
     .create = create_fixed_size,
     .most_sizes = 1,
     .size_names = "that of a block",
     .no_percent = true},
};

enum { KIND_COUNT = sizeof(kinds) / sizeof(kinds[0]) };

const rmm_spec_kind_t *rmm__spec_kind(const char *name)
{
    for (size_t i = 0; i < KIND_COUNT; i++) {
        if (strcmp(kinds[i].name, name) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* --- does it make sense ------------------------------------------------------------- */

static bool unknown_name(const char *name, char *reason)
{
    int length =
        snprintf(reason, RMM_SPEC_REASON_BYTES, "there is no resource '%s', but", name);

    for (size_t i = 0; i < KIND_COUNT && length < RMM_SPEC_REASON_BYTES; i++) {
        length += snprintf(
            reason + length, RMM_SPEC_REASON_BYTES - (size_t)length, " %s",
            kinds[i].name);
    }
    return false;
}

static bool check_place(
    const rmm_spec_kind_t *kind, bool is_last, char reason[RMM_SPEC_REASON_BYTES])
{
    if (is_last && kind->is_adaptor) {
        snprintf(
            reason, RMM_SPEC_REASON_BYTES,
            "'%s' is an adaptor and stands on another resource: %s+pool", kind->name,
            kind->name);
        return false;
    }
    if (!is_last && !kind->is_adaptor) {
        snprintf(
            reason, RMM_SPEC_REASON_BYTES,
            "'%s' is no adaptor: it stands on nothing and comes last", kind->name);
        return false;
    }
    return true;
}

static bool check_sizes(
    const rmm_spec_kind_t *kind, const rmm_spec_part_t *part,
    char reason[RMM_SPEC_REASON_BYTES])
{
    if (part->size_count > kind->most_sizes && kind->most_sizes == 0) {
        snprintf(reason, RMM_SPEC_REASON_BYTES, "'%s' takes no size", kind->name);
        return false;
    }
    if (part->size_count > kind->most_sizes || part->size_count < kind->least_sizes) {
        snprintf(
            reason, RMM_SPEC_REASON_BYTES, "'%s' takes %s%u size%s: %s", kind->name,
            kind->least_sizes < kind->most_sizes ? "at most " : "", kind->most_sizes,
            kind->most_sizes == 1 ? "" : "s", kind->size_names);
        return false;
    }
    for (uint32_t i = 0; i < part->size_count; i++) {
        if (part->sizes[i].is_percent && kind->no_percent) {
            snprintf(
                reason, RMM_SPEC_REASON_BYTES,
                "'%s' takes bytes, not a part of the free memory", kind->name);
            return false;
        }
    }
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
        if (!check_place(kind, i + 1 == spec->count, reason) ||
            !check_sizes(kind, part, reason)) {
            return false;
        }
    }
    return true;
}
