/* SPDX-License-Identifier: Apache-2.0 */
/* From words to resources on the current device. */
#include <rmm/fallback_adaptor.h>
#include <rmm/resource_spec.h>

#include <stddef.h>
#include <string.h>

#include "core/assert.h"
#include "device/spec.h"
#include "driver/driver.h"

#define PERCENT_UNIT 256u
#define PERCENT_UNIT_VIRTUAL (2u << 20) /* to which a virtual pool rounds up */

/* The current device, and what was free on it. */
typedef struct place {
    const rmm_driver_t *driver; /* NULL: no size is a part of the free memory */
    int device;
    uint64_t free_bytes;
} place_t;

/* A pool of all free memory has none left for its barriers: their block is taken first, and is
 * no part of what the pool can have. */
static rmm_status_t place_open(place_t *place)
{
    rmm_status_t status = rmm__driver_here(&place->driver, &place->device);

    if (status != RMM_OK) {
        return status;
    }
    rmm__driver_barrier_keep(place->driver, place->device);
    status = rmm__driver_free_memory(place->driver, place->device, &place->free_bytes);
    if (status != RMM_OK) {
        rmm__driver_barrier_drop(place->driver, place->device);
    }
    return status;
}

/* The resources have their own references to the block. */
static void place_close(const place_t *place)
{
    if (place->driver != NULL) {
        rmm__driver_barrier_drop(place->driver, place->device);
    }
}

static bool has_percent(const rmm_spec_t *spec)
{
    for (uint32_t i = 0; i < spec->count; i++) {
        for (uint32_t j = 0; j < spec->parts[i].size_count; j++) {
            if (spec->parts[i].sizes[j].is_percent) {
                return true;
            }
        }
    }
    return false;
}

static void resolve_sizes(
    const rmm_spec_part_t *part, uint64_t free_bytes, uint64_t sizes[RMM_SPEC_VALUES])
{
    const bool may_map =
        strcmp(part->name, "pool_virtual") == 0 || strcmp(part->name, "auto") == 0;
    const uint64_t unit = may_map ? PERCENT_UNIT_VIRTUAL : PERCENT_UNIT;

    sizes[RMM_SPEC_OPTIONS] = part->options;
    sizes[RMM_SPEC_NODE] = part->node;
    for (uint32_t i = 0; i < RMM_SPEC_SIZES; i++) {
        sizes[i] = part->sizes[i].value + part->sizes[i].is_ms;
        if (part->sizes[i].is_percent) {
            sizes[i] = free_bytes / 100 * sizes[i];
            sizes[i] -= sizes[i] >= unit ? sizes[i] % unit : sizes[i] % PERCENT_UNIT;
        }
    }
}

/* `mr` becomes the one that falls back to `alternate`; takes over both references. */
static rmm_status_t put_before(rmm_resource_t **mr, rmm_resource_t *alternate)
{
    rmm_fallback_options_t options = RMM_FALLBACK_OPTIONS_INIT;
    rmm_resource_t *primary = *mr;
    rmm_status_t status;

    options.alternate = alternate;
    status = rmm_fallback_adaptor_create(primary, &options, mr);
    rmm_resource_release(primary);
    rmm_resource_release(alternate);
    return status;
}

/* Innermost first: the last alternate, the one before it, ... */
static rmm_status_t
build_parts(const rmm_spec_t *spec, uint64_t free_bytes, rmm_resource_t **out)
{
    rmm_resource_t *mr = NULL;
    rmm_status_t status = RMM_OK;

    for (uint32_t i = spec->count; i > 0 && status == RMM_OK; i--) {
        const rmm_spec_part_t *part = &spec->parts[i - 1];
        const bool has_alternate = i < spec->count && part[1].is_alternate;
        rmm_resource_t *below = mr;
        uint64_t sizes[RMM_SPEC_VALUES];

        resolve_sizes(part, free_bytes, sizes);
        status = rmm__spec_kind(part->name)
                     ->create(has_alternate ? NULL : below, sizes, &mr);
        if (status == RMM_OK && has_alternate) {
            status = put_before(&mr, below);
        } else {
            rmm_resource_release(below); /* retained by what stands on it */
        }
    }
    if (status == RMM_OK) {
        *out = mr;
    }
    return status;
}

/* The free memory before the first resource counts for all of them. */
static rmm_status_t build(const rmm_spec_t *spec, rmm_resource_t **out)
{
    place_t place = {.free_bytes = 0};
    rmm_status_t status = has_percent(spec) ? place_open(&place) : RMM_OK;

    if (status == RMM_OK) {
        status = build_parts(spec, place.free_bytes, out);
        place_close(&place);
    }
    return status;
}

static rmm_status_t read_spec(const char *what, const char *text, rmm_spec_t *spec)
{
    char reason[RMM_SPEC_REASON_BYTES];
    char shown[RMM_SPEC_SHOWN_BYTES];

    if (rmm__spec_parse(text, spec, reason) && rmm__spec_check(spec, reason)) {
        return RMM_OK;
    }
    return rmm__error(
        RMM_ERR_INVALID_ARGUMENT,
        "%s '%s' (examples: pool:50%%, statistics+arena:8GiB): %s", what,
        rmm__spec_show(text, strlen(text), shown), reason);
}

rmm_status_t rmm__spec_create(const char *what, const char *text, rmm_resource_t **out)
{
    char shown[RMM_SPEC_SHOWN_BYTES];
    rmm_spec_t spec;
    rmm_status_t status = read_spec(what, text, &spec);

    if (status != RMM_OK) {
        return status;
    }
    status = build(&spec, out);
    if (status != RMM_OK) {
        return rmm__error_cuda(
            status, rmm_last_cuda_error(), "%s '%s': %s", what,
            rmm__spec_show(text, strlen(text), shown), rmm_last_error_message());
    }
    return RMM_OK;
}

rmm_status_t rmm_resource_create_from_spec(const char *spec, rmm_resource_t **out)
{
    RMM_CHECK_ARG(spec != NULL, "the spec is NULL");
    RMM_CHECK_ARG(out != NULL, "out is NULL");
    return rmm__spec_create("the spec is", spec, out);
}

rmm_status_t rmm_resource_check_spec(const char *spec)
{
    rmm_spec_t parsed;

    RMM_CHECK_ARG(spec != NULL, "the spec is NULL");
    return read_spec("the spec is", spec, &parsed);
}
