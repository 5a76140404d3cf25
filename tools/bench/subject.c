/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A pool grows from nothing, except where its size is what is measured. An arena never
 * grows: without a size it gets most of the memory, since half (its default) does not hold
 * the largest workloads.
 */
#include "bench/subject.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <rmm/resource_spec.h>

#define ARENA_PART "85%"
#define FIXED_BLOCK_BYTES (UINT64_C(1) << 20) /* of fixed_size without a size */
#define FULL_BLOCK_BYTES 4096

const char *const subjects_usual[] = {"cuda",  "async",   "pool",       "pool_virtual",
                                      "arena", "binning", "fixed_size", NULL};

/* The resource that the memory comes from, behind all adaptors. */
static const char *innermost(const char *spec)
{
    const char *last = strrchr(spec, '+');
    return last != NULL ? last + 1 : spec;
}

static bool starts_with(const char *text, const char *start)
{
    return strncmp(text, start, strlen(start)) == 0;
}

/* A pool or an arena whose size is ours to choose. */
static bool takes_size(const char *type)
{
    return strchr(type, ':') == NULL &&
           (starts_with(type, "pool") || strcmp(type, "arena") == 0);
}

static bool suits_by_default(const char *spec, workload_resources_t resources)
{
    switch (resources) {
    case WORKLOAD_EACH:
    case WORKLOAD_SIZED:
        break;
    case WORKLOAD_POOL:
        return strcmp(spec, "pool") == 0;
    case WORKLOAD_TRIM:
        return starts_with(spec, "pool") || strcmp(spec, "async") == 0;
    case WORKLOAD_GROWN:
        return starts_with(spec, "pool");
    }
    return true;
}

bool subject_suits(const char *spec, const workload_t *workload, bool was_named)
{
    const char *type = innermost(spec);
    if (workload->resources == WORKLOAD_SIZED && !takes_size(type)) {
        return false;
    }
    if (workload->resources == WORKLOAD_GROWN &&
        (!takes_size(type) || !starts_with(type, "pool"))) {
        return false;
    }
    if (strcmp(type, "fixed_size") == 0 && workload->block_bytes > FIXED_BLOCK_BYTES) {
        return false;
    }
    return was_named || suits_by_default(spec, workload->resources);
}

bool subject_open(
    const char *spec, const workload_t *workload, const trial_scale_t *scale,
    rmm_resource_t **out)
{
    char sized[SUBJECT_SPEC_MAX + 64];
    const char *type = innermost(spec);
    uint64_t bytes = (uint64_t)scale->full_blocks * FULL_BLOCK_BYTES;
    if (workload->resources == WORKLOAD_SIZED && starts_with(type, "pool")) {
        snprintf(sized, sizeof sized, "%s:%" PRIu64 ":%" PRIu64, spec, bytes, bytes);
    } else if (workload->resources == WORKLOAD_GROWN) {
        snprintf(sized, sizeof sized, "%s:0:%" PRIu64, spec, scale->growth_bytes);
    } else if (workload->resources == WORKLOAD_SIZED) {
        snprintf(sized, sizeof sized, "%s:%" PRIu64, spec, bytes);
    } else if (strcmp(type, "arena") == 0) {
        snprintf(sized, sizeof sized, "%s:%s", spec, ARENA_PART);
    } else {
        snprintf(sized, sizeof sized, "%s", spec);
    }
    return rmm_resource_create_from_spec(sized, out) == RMM_OK;
}
